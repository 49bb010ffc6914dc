"""Expressions."""

import ast

from ...graph import types
from ..frontend import NotSupportedError, UnsupportedNodeError
from . import annotating, sugar
from .errors import CompileError
from .matching import match_operator
from .sugar import Several, is_value

_BINARY = {
    ast.Add: "aten::add", ast.Sub: "aten::sub", ast.Mult: "aten::mul", ast.Div: "aten::div", ast.Mod: "aten::remainder",
    ast.Pow: "aten::pow", ast.FloorDiv: "aten::floordiv",
    ast.MatMult: "aten::matmul", ast.BitAnd: "aten::__and__", ast.BitOr: "aten::__or__", ast.BitXor: "aten::__xor__",
    ast.LShift: "aten::__lshift__", ast.RShift: "aten::__rshift__",
}  # fmt: skip
_MAGIC = {
    ast.Add: "__add__", ast.Sub: "__sub__", ast.Mult: "__mul__", ast.Div: "__truediv__", ast.Mod: "__mod__",
    ast.Pow: "__pow__", ast.FloorDiv: "__floordiv__", ast.MatMult: "__matmul__",
    ast.BitAnd: "__and__", ast.BitOr: "__or__", ast.BitXor: "__xor__", ast.LShift: "__lshift__",
    ast.RShift: "__rshift__",
    ast.Lt: "__lt__", ast.Gt: "__gt__", ast.LtE: "__le__", ast.GtE: "__ge__", ast.Eq: "__eq__", ast.NotEq: "__ne__",
    ast.In: "__contains__",
    ast.USub: "__neg__", ast.Invert: "__invert__",
}  # fmt: skip
_COMPARE = {
    ast.Lt: "aten::lt",
    ast.Gt: "aten::gt",
    ast.LtE: "aten::le",
    ast.GtE: "aten::ge",
    ast.Eq: "aten::eq",
    ast.NotEq: "aten::ne",
}
_MIRRORED = {
    "aten::lt": "aten::gt",
    "aten::gt": "aten::lt",
    "aten::le": "aten::ge",
    "aten::ge": "aten::le",
    "aten::eq": "aten::eq",
    "aten::ne": "aten::ne",
}
_NUMBERS = (types.IntType, types.FloatType, types.ComplexType, types.NumberType, types.BoolType)


class Expressions:
    """The part of Emitter that writes expressions."""

    def emit(self, tree, wanted=None):
        """The meaning of an expression: a Value or a Sugar."""
        method = getattr(self, "expression_" + type(tree).__name__, None)
        if method is None:
            raise UnsupportedNodeError(self.source.range_of(tree), tree)
        self.place(tree)
        return (
            method(tree, wanted)
            if type(tree) in (ast.List, ast.Dict, ast.ListComp, ast.DictComp, ast.IfExp, ast.Tuple, ast.Call)
            else method(tree)
        )

    def operator(self, kind, args, tree, **kwargs):
        """The call of an operator."""
        place = tree if hasattr(tree, "highlight") else self.place(tree)
        return match_operator(self, kind, args, kwargs, place)

    def read_annotation(self, annotation, tree):
        """The type of an annotation: a tree, or the text of a comment."""
        place = self.source.range_of(tree)
        if isinstance(annotation, str):
            return annotating.from_text(annotation, self.names, self.unit.class_type, place)
        return annotating.from_tree(annotation, self.names, self.unit.class_type, place)

    # ---- names and literals

    def expression_Name(self, tree):
        return self.look(tree.id, tree)

    def expression_Constant(self, tree):
        if tree.value is Ellipsis:
            raise self.error(tree, "'...' can only be used as an index")
        if isinstance(tree.value, bytes):
            raise UnsupportedNodeError(self.source.range_of(tree), tree, "bytes")
        if isinstance(tree.value, int) and not -(2**63) <= tree.value < 2**63:
            raise self.error(tree, f"{tree.value} does not fit in 64 bits")
        return self.constant(tree.value)

    def expression_Attribute(self, tree):
        return self.member(self.emit(tree.value), tree.attr, tree)

    def expression_Subscript(self, tree):
        return self.item(tree)

    def expression_Starred(self, tree):
        raise self.error(tree, "a starred expression can only be an argument or a target")

    def expression_Tuple(self, tree, wanted=None):
        inside = (
            wanted.elements()
            if isinstance(wanted, types.TupleType) and len(wanted.elements()) == len(tree.elts)
            else [None] * len(tree.elts)
        )
        items = []
        for item, one in zip(tree.elts, inside, strict=True):
            if isinstance(item, ast.Starred):
                items += self.unpack(self.emit(item.value), item)
            else:
                items.append(self.emit(item, one))
        if all(is_value(item) for item in items):
            self.place(tree)
            return self.value(Several(items), tree)
        return Several(items)

    def expression_List(self, tree, wanted=None):
        inside = element_of(wanted, types.ListType)
        values = []
        for item in tree.elts:
            if isinstance(item, ast.Starred):
                values += [self.value(part, item) for part in self.unpack(self.emit(item.value), item)]
            else:
                values.append(self.emit_value(item, inside))
        self.place(tree)
        if inside is None or not all(value.type().isSubtypeOf(inside) for value in values):
            covering = types.TensorType() if not values else values[0].type()
            for value in values[1:]:
                covering = types.unify(covering, value.type(), to_union=True)
            inside = covering
        return self.graph.insert("prim::ListConstruct", values, [types.ListType(inside)]).output()

    def expression_Dict(self, tree, wanted=None):
        wanted = optional_of(wanted)
        key, value = (wanted.key, wanted.value) if isinstance(wanted, types.DictType) else (None, None)
        if None in tree.keys:
            raise NotSupportedError(self.source.range_of(tree), "Dict expansion (`{**dict}`) is not supported")
        keys, values = [self.emit_value(k, key) for k in tree.keys], [self.emit_value(v, value) for v in tree.values]
        self.place(tree)
        if key is None:
            key = self._cover(keys, tree) if keys else types.StringType()
            value = self._cover(values, tree) if values else types.TensorType()
        parts = [part for pair in zip(keys, values, strict=True) for part in pair]
        return self.graph.insert("prim::DictConstruct", parts, [types.DictType(key, value)]).output()

    def _cover(self, values, tree):
        covering = values[0].type()
        for value in values[1:]:
            found = types.unify(covering, value.type())
            if found is None:
                raise self.error(
                    tree,
                    f"Dict contains items of type {covering.annotation_str} and of type {value.type().annotation_str}",
                )
            covering = found
        return covering

    def expression_JoinedStr(self, tree):
        text, values = "", []
        for part in tree.values:
            if isinstance(part, ast.Constant):
                text += part.value.replace("{", "{{").replace("}", "}}")
            elif part.format_spec is not None or part.conversion not in (-1, 115):
                raise NotSupportedError(
                    self.source.range_of(tree), "Don't support conversion and format specifiers in JoinedStr"
                )
            else:
                text += "{}"
                values.append(self.emit_value(part.value))
        self.place(tree)
        return self.operator("aten::format", [self.constant(text), *values], tree)

    # ---- operators

    def expression_BinOp(self, tree):
        left, right = self.emit(tree.left), self.emit(tree.right)
        self.place(tree)
        if isinstance(tree.op, ast.Add) and all(self._is_tuple(side) for side in (left, right)):
            parts = [*self.unpack(left, tree), *self.unpack(right, tree)]
            return self.value(Several(parts), tree) if all(map(is_value, parts)) else Several(parts)
        return self.binary(tree.op, self.value(left, tree.left), self.value(right, tree.right), tree)

    @staticmethod
    def _is_tuple(meaning):
        return isinstance(meaning, Several) or (is_value(meaning) and isinstance(meaning.type(), types.TupleType))

    def binary(self, op, left, right, tree):
        kind = _BINARY.get(type(op))
        if kind is None:
            raise UnsupportedNodeError(self.source.range_of(tree), op)
        magic = _MAGIC[type(op)]
        if isinstance(left.type(), types.ClassType) and not left.type().is_module:
            return self.magic_call(left, magic, [right], tree)
        if isinstance(right.type(), types.ClassType) and not right.type().is_module:
            return self.call_method(right, "__r" + magic[2:], [left], {}, tree)
        if isinstance(op, ast.Mod) and isinstance(left.type(), types.StringType):
            return self.operator("aten::percentFormat", [left, right], tree)
        tensors = [isinstance(side.type(), types.TensorType) for side in (left, right)]
        if isinstance(op, ast.FloorDiv) and any(tensors):
            kind = "aten::floor_divide"
        if tensors == [False, True] and isinstance(left.type(), _NUMBERS):
            return self._number_first(kind, left, right, tree)
        return self.operator(kind, [left, right], tree)

    def _number_first(self, kind, number, tensor, tree):
        """A number and a tensor: operators take the tensor first."""
        if kind in ("aten::add", "aten::mul", "aten::__and__", "aten::__or__", "aten::__xor__"):
            return self.operator(kind, [tensor, number], tree)
        if kind == "aten::sub":
            return self.operator("aten::add", [self.operator("aten::neg", [tensor], tree), number], tree)
        if kind == "aten::div":
            return self.operator("aten::mul", [self.operator("aten::reciprocal", [tensor], tree), number], tree)
        if kind in _MIRRORED:
            return self.operator(_MIRRORED[kind], [tensor, number], tree)
        if kind in ("aten::pow", "aten::remainder"):
            return self.operator(kind, [number, tensor], tree)
        dtype, device = self.operator("prim::dtype", [tensor], tree), self.operator("prim::device", [tensor], tree)
        return self.operator(
            kind, [self.operator("aten::tensor", [number], tree, dtype=dtype, device=device), tensor], tree
        )

    def expression_UnaryOp(self, tree):
        if isinstance(tree.op, ast.Not):
            return self.bool_value(self.condition(tree)[0], tree)
        value = self.emit_value(tree.operand)
        self.place(tree)
        if (
            value.node().kind() == "prim::Constant"
            and isinstance(tree.operand, ast.Constant)
            and isinstance(tree.op, (ast.USub, ast.UAdd))
        ):
            number = value.node().attributes["value"]
            return self.constant(-number if isinstance(tree.op, ast.USub) else number)
        if isinstance(tree.op, ast.UAdd):
            return value
        if isinstance(value.type(), types.ClassType) and not value.type().is_module:
            return self.magic_call(value, _MAGIC[type(tree.op)], [], tree)
        return self.operator("aten::neg" if isinstance(tree.op, ast.USub) else "aten::bitwise_not", [value], tree)

    def magic_call(self, value, name, args, tree):
        """An operator of Python on an object."""
        if name not in value.type().methods:
            raise self.error(tree, f"'{value.type().annotation_str}' object has no attribute or method '{name}'")
        return self.call_method(value, name, args, {}, tree)

    def expression_BoolOp(self, tree):
        return self.bool_value(self.condition(tree)[0], tree)

    def expression_Compare(self, tree):
        if len(tree.ops) > 1:  # a < b < c: b is computed once, c only if a < b
            left, right = self._once(tree.left, "$left"), self._once(tree.comparators[0], "$right")
            first = ast.Compare(left, tree.ops[:1], [right])
            parts = [first, ast.Compare(right, tree.ops[1:], tree.comparators[1:])]
            both = ast.BoolOp(ast.And(), [ast.copy_location(part, tree) for part in parts])
            return self.bool_value(self.condition(ast.copy_location(both, tree))[0], tree)
        op, right = tree.ops[0], tree.comparators[0]
        if isinstance(op, (ast.Is, ast.IsNot)):
            return self.bool_value(self.condition(tree)[0], tree)
        left, right = self.emit(tree.left), self.emit(right)
        if isinstance(op, (ast.In, ast.NotIn)):
            return self._contains(left, right, isinstance(op, ast.NotIn), tree)
        left, right = self.value(left, tree), self.value(right, tree)
        kind = _COMPARE[type(op)]
        if isinstance(left.type(), types.ClassType) and not left.type().is_module:
            return self.magic_call(left, _MAGIC[type(op)], [right], tree)
        if isinstance(right.type(), types.TensorType) and isinstance(left.type(), _NUMBERS):
            return self.operator(_MIRRORED[kind], [right, left], tree)
        return self.operator(kind, [left, right], tree)

    def _once(self, tree, name):
        """Compute an expression now; gives a tree that means its value."""
        if isinstance(tree, (ast.Name, ast.Constant)):
            return tree
        name = f"{name}{len(self.variables)}"
        self.variables[name] = sugar.Variable(self.emit_value(tree))
        return ast.copy_location(ast.Name(name, ast.Load()), tree)

    def _contains(self, left, right, negated, tree):
        if is_value(right) and isinstance(right.type(), types.ClassType):
            if right.type().is_module:
                return self.constant((self.constant_text(left, tree) in self.module_names(right)) is not negated)
            found = self.call_method(right, "__contains__", [self.value(left, tree)], {}, tree)
        elif self._is_tuple(right):
            parts = [self.value(part, tree) for part in self.unpack(right, tree)]
            found = self.constant(False) if not parts else None
            for part in parts:
                try:
                    one = self.operator("aten::eq", [self.value(left, tree), part], tree)
                except CompileError:
                    one = self.constant(False)
                found = one if found is None else self.operator("aten::__or__", [found, one], tree)
        elif is_value(right) and isinstance(right.type(), types.StringType):
            text, part = right, self.value(left, tree)
            place = self.operator(
                "aten::find", [text, part, self.constant(0), self.operator("aten::len", [text], tree)], tree
            )
            return self.operator("aten::eq" if negated else "aten::ne", [place, self.constant(-1)], tree)
        else:
            found = self.operator("aten::__contains__", [self.value(right, tree), self.value(left, tree)], tree)
        return self.operator("aten::__not__", [found], tree) if negated else found

    def constant_text(self, meaning, tree):
        value = self.value(meaning, tree)
        if value.node().kind() != "prim::Constant":
            raise self.error(tree, "the name must be known when the program is compiled")
        return value.node().attributes["value"]

    # ---- choices and comprehensions

    def expression_IfExp(self, tree, wanted=None):
        value, yes, no = self.condition(tree.test)
        if isinstance(value, bool):
            before = dict(self.variables)
            self.refine(yes if value else no)
            meaning = self.emit(tree.body if value else tree.orelse, wanted)
            self.variables = before
            return meaning
        self.place(tree)
        node = self.graph.insert("prim::If", [value], 0)
        ends = []
        for part, refinement in ((tree.body, yes), (tree.orelse, no)):
            block = node.addBlock()
            given, _ = self.in_block(block, lambda part=part: self.emit_value(part, wanted), refinement)
            ends.append(given)
            block.registerOutput(given)
        covering = types.unify(ends[0].type(), ends[1].type())
        if covering is None and wanted is not None and all(end.type().isSubtypeOf(wanted) for end in ends):
            covering = wanted
        if covering is None:
            raise self.error(
                tree,
                (
                    f"if-expression's true branch has type {ends[0].type().annotation_str} but false branch has type "
                    f"{ends[1].type().annotation_str}"
                ),
            )
        return node.addOutput(covering)

    def expression_ListComp(self, tree, wanted=None):
        target, items = self._comprehension(tree)
        place = self.place(tree)
        before = dict(self.variables)
        if items.count is not None:
            if tree.generators[0].ifs:
                raise NotSupportedError(
                    self.source.range_of(tree),
                    "a condition in a comprehension over modules or a tuple, which is unrolled, aren't supported",
                )
            values = []
            for number in range(items.count):
                self.variables.update(dict(before))
                self._bind_fresh(target, items.item(self, number, place), tree)
                values.append(self.emit_value(tree.elt, element_of(wanted, types.ListType)))
            self.variables = before
            inside = self._cover(values, tree) if values else types.TensorType()
            return self.graph.insert("prim::ListConstruct", values, [types.ListType(inside)]).output()
        made = self.graph.insert("prim::ListConstruct", (), [types.ListType(types.TensorType())]).output()

        def write():
            inside = element_of(wanted, types.ListType)
            element = self.emit_value(tree.elt, inside)
            if inside is not None and element.type().isSubtypeOf(inside):
                made.setType(types.ListType(inside))
            else:
                made.setType(
                    types.ListType(
                        types.TensorType() if isinstance(element.type(), types.TensorType) else element.type()
                    )
                )
            self.operator("aten::append", [made, element], tree)

        self._comprehend(tree, target, items, write)
        self.variables = before
        return made

    def expression_DictComp(self, tree, wanted=None):
        target, items = self._comprehension(tree)
        before = dict(self.variables)
        self.place(tree)
        made = self.graph.insert(
            "prim::DictConstruct", (), [types.DictType(types.StringType(), types.TensorType())]
        ).output()

        def write():
            key, value = self.emit_value(tree.key), self.emit_value(tree.value)
            found = types.DictType(
                key.type(), types.TensorType() if isinstance(value.type(), types.TensorType) else value.type()
            )
            made.setType(optional_of(wanted) if isinstance(optional_of(wanted), types.DictType) else found)
            self.operator("aten::_set_item", [made, key, value], tree)

        if items.count is not None:
            for number in range(items.count):
                self._bind_fresh(target, items.item(self, number, self.place(tree)), tree)
                write()
        else:
            self._comprehend(tree, target, items, write)
        self.variables = before
        return made

    def expression_GeneratorExp(self, tree):
        """As a list: what any, all, sum and the like make of it is the same."""
        return self.expression_ListComp(ast.copy_location(ast.ListComp(tree.elt, tree.generators), tree))

    def _comprehension(self, tree):
        if len(tree.generators) != 1:
            raise NotSupportedError(self.source.range_of(tree), "Only a single generator is currently supported")
        (generator,) = tree.generators
        return generator.target, self.iteration(self.emit(generator.iter), generator.iter)

    def _bind_fresh(self, target, meaning, tree):
        """A comprehension's variable is its own."""
        for node in ast.walk(target):
            if isinstance(node, ast.Name):
                self.variables.pop(node.id, None)
                for level in self.outer:
                    level.pop(node.id, None)
        self.bind(target, meaning, tree)

    def _comprehend(self, tree, target, items, write):
        place = self.place(tree)

        def body(index):
            self._bind_fresh(target, items.item(self, index, place), tree)
            conditions = tree.generators[0].ifs
            if not conditions:
                write()
            else:
                test = (
                    conditions[0]
                    if len(conditions) == 1
                    else ast.copy_location(ast.BoolOp(ast.And(), conditions), tree)
                )
                value, yes, no = self.condition(test)
                self.branch(self.bool_value(value, tree), (yes, no), lambda: write(), lambda: None, tree)
            return self.constant(True)

        self.loop(items.length(self, place), self.constant(True), [], body, tree)

    # ---- things to loop over

    def iteration(self, meaning, tree):
        """Something to loop over."""
        if isinstance(meaning, sugar.Iteration):
            return meaning
        if isinstance(meaning, Several):
            return sugar.Static(meaning.items)
        if (
            isinstance(meaning, sugar.Py)
            and isinstance(meaning.object, (tuple, list))
            and (meaning.constant or self.loose)
        ):
            return sugar.Static([sugar.Py(item, True) for item in meaning.object])
        value = self.value(meaning, tree)
        type = value.type()
        if isinstance(type, types.TupleType):
            return sugar.Static(self.unpack(value, tree))
        if isinstance(type, types.DictType):
            return sugar.Indexed(self.operator("aten::keys", [value], tree))
        if isinstance(type, (types.ListType, types.StringType, types.TensorType)):
            return sugar.Indexed(value)
        if isinstance(type, types.ClassType) and type.is_module:
            return self.module_items(value, tree)
        raise self.error(tree, f"'{type.annotation_str}' object is not iterable")

    def iteration_as_list(self, meaning, tree):
        """A list of what is looped over, where a value is asked for; None if there is nothing to loop over."""
        if not isinstance(meaning, sugar.Iteration):
            return None
        place = self.place(tree)
        if meaning.count is not None:
            parts = [self.value(meaning.item(self, number, place), tree) for number in range(meaning.count)]
            inside = self._cover(parts, tree) if parts else types.TensorType()
            return self.graph.insert("prim::ListConstruct", parts, [types.ListType(inside)]).output()
        if isinstance(meaning, sugar.Indexed) and isinstance(meaning.value.type(), types.ListType):
            return meaning.value
        made = self.graph.insert("prim::ListConstruct", (), [types.ListType(types.TensorType())]).output()

        def body(index):
            element = self.value(meaning.item(self, index, place), tree)
            made.setType(types.ListType(element.type()))
            self.operator("aten::append", [made, element], tree)
            return self.constant(True)

        self.loop(meaning.length(self, place), self.constant(True), [], body, tree)
        return made


def optional_of(wanted):
    return wanted.element if isinstance(wanted, types.OptionalType) else wanted


def element_of(wanted, kind):
    """The element type of a list that is asked for."""
    wanted = optional_of(wanted)
    return wanted.element if isinstance(wanted, kind) else None
