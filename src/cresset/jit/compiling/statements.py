"""Statements."""

import ast

from ...graph import types
from ..frontend import NotSupportedError, UnsupportedNodeError
from . import sugar
from .matching import Mismatch, carry_out, convert_plan, parts_of_tuple
from .sugar import Variable, is_value

MOST = 2**63 - 1
_LITERALS = {"prim::ListConstruct": "List", "prim::DictConstruct": "Dict", "prim::TupleConstruct": "Tuple"}
_AUGMENTED = {
    ast.Add: ("aten::add", "aten::add_"), ast.Sub: ("aten::sub", "aten::sub_"), ast.Mult: ("aten::mul", "aten::mul_"),
    ast.Div: ("aten::div", "aten::div_"),
    ast.Mod: ("aten::remainder", "aten::remainder_"), ast.Pow: ("aten::pow", "aten::pow_"),
    ast.FloorDiv: ("aten::floordiv", "aten::floor_divide_"), ast.BitAnd: ("aten::__and__", "aten::__iand__"),
    ast.BitOr: ("aten::__or__", "aten::__ior__"), ast.BitXor: ("aten::__xor__", "aten::__ixor__"),
    ast.LShift: ("aten::__lshift__", "aten::__ilshift__"),
    ast.RShift: ("aten::__rshift__", "aten::__irshift__"),
}  # fmt: skip


# How statements leave, if no way leads past them: with variables that the loop around reads, or for good.
LEFT, GONE = 1, 2


def exits(statements, in_loop=True):
    """Whether there is a return in the statements, or a break or continue that is theirs."""
    for statement in statements:
        if isinstance(statement, ast.Return) or (in_loop and isinstance(statement, (ast.Break, ast.Continue))):
            return True
        inner = isinstance(statement, (ast.For, ast.While))
        for part in ("body", "orelse"):
            if exits(getattr(statement, part, None) or [], in_loop and not inner):
                return True
    return False


def has(statements, kinds):
    """Whether a statement of these kinds is there; break and continue of inner loops are theirs."""
    for statement in statements:
        if isinstance(statement, kinds):
            return True
        inner = isinstance(statement, (ast.For, ast.While))
        searched = tuple(kind for kind in kinds if kind is ast.Return) if inner else kinds
        for part in ("body", "orelse"):
            if searched and has(getattr(statement, part, None) or [], searched):
                return True
    return False


def always_leaves(statements):
    """Whether no way leads past the statements."""
    for statement in statements:
        if isinstance(statement, (ast.Return, ast.Break, ast.Continue, ast.Raise)):
            return True
        if (
            isinstance(statement, ast.If)
            and statement.orelse
            and always_leaves(statement.body)
            and always_leaves(statement.orelse)
        ):
            return True
        if isinstance(statement, ast.With) and always_leaves(statement.body):
            return True
    return False


def assigned_names(statements):
    """The names that statements give a new meaning, in order."""
    found = {}

    def target(tree):
        if isinstance(tree, ast.Name):
            found[tree.id] = True
        elif isinstance(tree, (ast.Tuple, ast.List)):
            for item in tree.elts:
                target(item)
        elif isinstance(tree, ast.Starred):
            target(tree.value)

    for statement in statements:
        for node in ast.walk(statement):
            if isinstance(node, ast.Assign):
                for one in node.targets:
                    target(one)
            elif isinstance(node, (ast.AugAssign, ast.AnnAssign, ast.For)):
                target(node.target)
            elif isinstance(node, ast.withitem) and node.optional_vars is not None:
                target(node.optional_vars)
    return list(found)


class Statements:
    """The part of Emitter that writes statements. Each `emit_X` for a block of statements tells whether it always
    leaves: LEFT, GONE, or neither.
    """

    def emit_body(self, statements):
        """Write statements. Gives LEFT or GONE if no way leads past them."""
        for number, statement in enumerate(statements):
            rest = statements[number + 1 :]
            if isinstance(statement, ast.If):
                if exits([statement]):
                    return self.emit_leaving_if(statement, rest)
                if left := self.emit_if(statement):
                    return left
                continue
            if isinstance(statement, (ast.For, ast.While)):
                if left := self.emit_loop(statement):
                    return left
                if has([statement], (ast.Return,)):
                    return self.skip_if("$returned", rest, statement)
                continue
            if isinstance(statement, ast.With):
                if left := self.emit_with(statement):
                    return left
                if exits(statement.body):
                    return self.skip_if("$left", rest, statement)
                continue
            if left := self.emit_statement(statement):
                return left
        return False

    def emit_statement(self, tree):
        """Write one statement that is neither branch nor loop. Gives LEFT or GONE if it leaves."""
        method = getattr(self, "emit_" + type(tree).__name__, None)
        if method is None:
            raise UnsupportedNodeError(self.source.range_of(tree), tree)
        self.place(tree)
        return method(tree)

    # ---- branches

    def emit_if(self, tree):
        value, yes, no = self.condition(tree.test)
        if isinstance(value, bool):
            self.refine(yes if value else no)
            return self.emit_body(tree.body if value else tree.orelse)
        return self.branch(
            value, (yes, no), lambda: self.emit_body(tree.body), lambda: self.emit_body(tree.orelse), tree
        )

    def emit_leaving_if(self, tree, rest):
        """An If with a return, break or continue inside, and the statements behind it: see Note [Leaving early]."""
        value, yes, no = self.condition(tree.test)
        if isinstance(value, bool):
            self.refine(yes if value else no)
            return self.emit_body([*(tree.body if value else tree.orelse), *rest])
        body, orelse = list(tree.body), list(tree.orelse)
        if always_leaves(body):
            orelse, rest = [*orelse, *rest], []
        elif always_leaves(orelse):
            body, rest = [*body, *rest], []
        if left := self.branch(value, (yes, no), lambda: self.emit_body(body), lambda: self.emit_body(orelse), tree):
            return left
        return self.skip_if("$left", rest, tree) if rest else False

    def skip_if(self, flag, rest, tree):
        """Write the rest for the case that the flag is not set."""
        left = self.variables.get(flag)
        if left is None:  # what would have set it is never reached
            return self.emit_body(rest)
        if flag == "$returned":
            self.variables["$left"] = left
        if not rest:
            return False

        def skipped():
            return LEFT if self.loops and flag == "$left" else GONE

        return self.branch(left.meaning, ({}, {}), skipped, lambda: self.emit_body(rest), tree)

    # ---- leaving

    def _set(self, name, value, tree):
        self.variables[name] = Variable(self.constant(value) if isinstance(value, bool) else value)

    def emit_Return(self, tree):
        value = self.emit_value(tree.value, self.declared_result) if tree.value is not None else self.constant(None)
        return self.leave_with(value, tree)

    def leave_with(self, value, tree):
        self.place(tree)
        if self.declared_result is not None:
            value = self.fit_result(value, self.declared_result, tree)
        else:
            covering = value.type() if self.result_type is None else types.unify(self.result_type, value.type())
            if covering is None:
                raise self.error(
                    tree,
                    (
                        f"Previous return statement returned a value of type {self.result_type.annotation_str} but "
                        "this "
                        f"return statement returns a value of type {value.type().annotation_str}"
                    ),
                )
            self.result_type = covering
        self._set("$return", value, tree)
        self._set("$left", True, tree)
        self._set("$returned", True, tree)
        if self.loops:
            self._set("$broke", True, tree)
        return GONE

    def fit_result(self, value, wanted, tree):
        if value.type().isSubtypeOf(wanted):
            return value
        if isinstance(wanted, types.TupleType) and isinstance(value.type(), types.TupleType):
            kinds = value.type().elements()
            if len(kinds) == len(wanted.elements()) and any(type(kind) is types.NumberType for kind in kinds):
                parts = parts_of_tuple(self, value)
                parts = [self.fit_result(*pair, tree) for pair in zip(parts, wanted.elements(), strict=True)]
                return self.graph.insert("prim::TupleConstruct", parts, [wanted]).output()
        try:
            return carry_out(self, convert_plan(value, wanted, None, {}, type(value.type()) is types.NumberType))
        except Mismatch:
            raise self.error(
                tree,
                (
                    f"Return value was annotated as having type {wanted.annotation_str} but is actually of type "
                    f"{value.type().annotation_str}"
                ),
            ) from None

    def emit_Break(self, tree):
        if not self.loops:
            raise self.error(tree, "'break' statement outside loop")
        self._set("$broke", True, tree)
        self._set("$left", True, tree)
        return LEFT

    def emit_Continue(self, tree):
        if not self.loops:
            raise self.error(tree, "'continue' statement outside loop")
        self._set("$left", True, tree)
        return LEFT

    def emit_Raise(self, tree):
        message, name = self.constant(""), None
        if tree.exc is not None:
            raised = self.emit(tree.exc)
            if isinstance(raised, sugar.Py):
                raised = self.call(raised, [], {}, tree.exc)
            if isinstance(raised, sugar.Raised):
                message, name = raised.message, raised.name
            elif is_value(raised) and isinstance(raised.type(), types.StringType):
                message = raised
            else:
                raise self.error(tree, "exceptions must derive from BaseException")
        self.place(tree)
        self.graph.insert("prim::RaiseException", [message, self.constant(name)], 0)
        return GONE

    def emit_Assert(self, tree):
        value, yes, no = self.condition(tree.test)

        def fails():
            message = self.emit_value(tree.msg) if tree.msg is not None else self.constant("")
            if not isinstance(message.type(), types.StringType):
                message = self.operator("aten::str", [message], tree)
            text = message.node().attributes.get("value") if message.node().kind() == "prim::Constant" else None
            message = (
                self.constant(f"AssertionError: {text}")
                if text is not None
                else self.operator("aten::add", [self.constant("AssertionError: "), message], tree)
            )
            self.graph.insert("prim::RaiseException", [message, self.constant("builtins.AssertionError")], 0)
            return GONE

        if isinstance(value, bool):
            if not value:
                self.refine(no)
                return fails()
            self.refine(yes)
            return False
        self.branch(value, (yes, no), lambda: False, fails, tree)
        self.refine(yes)
        return False

    # ---- loops

    def emit_loop(self, tree):
        if tree.orelse:
            raise NotSupportedError(self.source.range_of(tree.orelse[0]), "else branches of loops aren't supported")
        return self.emit_while(tree) if isinstance(tree, ast.While) else self.emit_for(tree)

    def _loop(self, tree, most, begin, before_body, go_on):
        """A loop over the statements of `tree`. `go_on` writes whether there is another round."""
        breaks = has(tree.body, (ast.Break, ast.Return))
        returns = has(tree.body, (ast.Return,))
        names = assigned_names([tree])
        if breaks:
            self._set("$broke", False, tree)
            names.append("$broke")
        if returns:
            self.variables.pop("$returned", None)
            self._set("$returned", False, tree)
            before = self.graph.insert("prim::Uninitialized", (), [self.result_type or types.NoneType()]).output()
            self.result_values.append(before)
            self._set("$return", before, tree)
            names += ["$returned", "$return"]

        def write(index):
            self.variables.pop("$left", None)
            before_body(index)
            self.loops += 1
            self.emit_body(tree.body)
            self.loops -= 1
            self.variables.pop("$left", None)
            if not breaks:
                return go_on()
            broke = self.variables["$broke"].meaning
            node = self.graph.insert("prim::If", [broke], [types.BoolType()])
            for write_end in (lambda: self.constant(False), go_on):
                block = node.addBlock()
                block.registerOutput(self.in_block(block, write_end)[0])
            return node.output()

        outside = {name: self.variables.get(name) for name in ("$left", "$broke")} if self.loops else {}
        self.loop(most, begin, names, write, tree)
        self.variables.pop("$left", None)
        self.variables.pop("$broke", None)
        if self.loops and returns:  # a return leaves the loops around, too
            self._set("$broke", self.variables["$returned"].meaning, tree)
        elif outside.get("$broke") is not None:
            self.variables["$broke"] = outside["$broke"]

    def emit_while(self, tree):
        value, yes, _ = self.condition(tree.test)
        if value is False:
            return
        begin = self.bool_value(value, tree.test)

        def go_on():
            return self.bool_value(self.condition(tree.test)[0], tree.test)

        self._loop(tree, self.constant(MOST), begin, lambda index: self.refine(yes), go_on)

    def emit_for(self, tree):
        items = self.iteration(self.emit(tree.iter), tree.iter)
        place = self.place(tree)
        if items.count is not None:
            if has(tree.body, (ast.Break, ast.Continue, ast.Return)):
                return self._unrolled_with_exits(tree, items, place)
            for number in range(items.count):
                self.bind(tree.target, items.item(self, number, place), tree)
                self.emit_body(tree.body)
            return
        most = items.length(self, place)

        def before_body(index):
            self.bind(tree.target, items.item(self, index, place), tree)

        self._loop(tree, most, self.constant(True), before_body, lambda: self.constant(True))

    def _unrolled_with_exits(self, tree, items, place):
        """Rounds one in the other, so that leaving one skips those behind it."""
        if has(tree.body, (ast.Break, ast.Continue)):
            raise NotSupportedError(
                self.source.range_of(tree),
                "break and continue in a loop over modules or a tuple, which is unrolled, aren't supported",
            )
        self._set("$returned", False, tree)
        targets = [part.id for part in ast.walk(tree.target) if isinstance(part, ast.Name)]

        def round(number):
            if number == items.count:
                return False
            for name in targets:  # the item of each round has a type of its own
                self.outer[-1].pop(name, None)
            self.bind(tree.target, items.item(self, number, place), tree)
            if left := self.emit_body(tree.body):
                return left
            returned = self.variables.get("$returned")
            if returned is None or returned.meaning.node().kind() == "prim::Constant":
                return round(number + 1)
            return self.branch(returned.meaning, ({}, {}), lambda: GONE, lambda: round(number + 1), tree)

        return round(0)

    # ---- assignment

    def emit_Expr(self, tree):
        if isinstance(tree.value, ast.Constant) and isinstance(tree.value.value, (str, type(Ellipsis))):
            return  # documentation
        self.emit(tree.value)

    def emit_FunctionDef(self, tree):
        if not tree.name.startswith("__forked_function") or tree.args.args:
            raise UnsupportedNodeError(self.source.range_of(tree), tree)
        self.variables[tree.name] = Variable(sugar.Closure(tree))

    def emit_Pass(self, tree):
        pass

    def emit_Assign(self, tree):
        wanted = None
        if tree.type_comment:
            wanted = self.read_annotation(tree.type_comment, tree)
        meaning = self.emit(tree.value, wanted)
        if wanted is not None:
            meaning = self.as_declared(self.value(meaning, tree.value), wanted, tree)
        for target in tree.targets:
            self.bind(target, meaning, tree, wanted)

    def emit_AnnAssign(self, tree):
        wanted = self.read_annotation(tree.annotation, tree)
        if tree.value is None:
            if isinstance(tree.target, ast.Name) and tree.target.id not in self.variables:
                raise self.error(tree, f"'{tree.target.id}' has an annotation and no value")
            return
        self.bind(tree.target, self.as_declared(self.emit_value(tree.value, wanted), wanted, tree), tree, wanted)

    def as_declared(self, value, wanted, tree, convert=False):
        """The value as its annotation says; `convert`: a tensor may become the number that is asked for."""
        if not value.type().isSubtypeOf(wanted):
            convert = convert or type(value.type()) is types.NumberType
            try:
                return carry_out(self, convert_plan(value, wanted, None, {}, convert))
            except Mismatch:
                literal = _LITERALS.get(value.node().kind())
                raise self.error(
                    tree,
                    f"Expected an annotation of type {literal} but got {wanted.annotation_str}"
                    if literal is not None
                    else (
                        f"Variable is annotated with type {wanted.annotation_str} but is being assigned to a value of "
                        f"type {value.type().annotation_str}"
                    ),
                ) from None
        if value.type() != wanted and not isinstance(value.type(), types.TensorType):
            return self.graph.insert("prim::unchecked_cast", [value], [wanted]).output()
        return value

    def bind(self, target, meaning, tree, declared=None):
        """Let the target of an assignment be the meaning."""
        if isinstance(target, ast.Name):
            self.assign(target.id, meaning, tree, declared)
        elif isinstance(target, (ast.Tuple, ast.List)):
            self.bind_several(target, meaning, tree)
        elif isinstance(target, ast.Attribute):
            self.set_member(target, self.value(meaning, tree), tree)
        elif isinstance(target, ast.Subscript):
            self.set_item(target, self.value(meaning, tree), tree)
        else:
            raise UnsupportedNodeError(self.source.range_of(target), target)

    def bind_several(self, target, meaning, tree):
        stars = [number for number, item in enumerate(target.elts) if isinstance(item, ast.Starred)]
        if len(stars) > 1:
            raise self.error(target, "Only one starred expression is allowed on the lhs")
        parts = self.unpack(meaning, tree, None if stars else len(target.elts))
        if stars:
            (star,) = stars
            behind = len(target.elts) - star - 1
            if len(parts) < len(target.elts) - 1:
                raise self.error(tree, f"need at least {len(target.elts) - 1} values to unpack, got {len(parts)}")
            middle = parts[star : len(parts) - behind]
            parts = [*parts[:star], sugar.Several(middle), *parts[len(parts) - behind :]]
        for item, part in zip(target.elts, parts, strict=True):
            self.bind(item.value if isinstance(item, ast.Starred) else item, part, tree)

    def unpack(self, meaning, tree, count=None):
        """The parts of a tuple, or of a list of `count` items."""
        if isinstance(meaning, sugar.Several):
            parts = meaning.items
        elif isinstance(meaning, sugar.Iteration) and meaning.count is not None:
            parts = [meaning.item(self, number, self.place(tree)) for number in range(meaning.count)]
        else:
            value = self.value(meaning, tree)
            self.place(tree)
            if isinstance(value.type(), types.TupleType):
                parts = parts_of_tuple(self, value)
            elif isinstance(value.type(), types.ListType) and count is not None:
                return self.graph.insert("prim::ListUnpack", [value], [value.type().element] * count).outputs()
            elif isinstance(value.type(), types.TensorType) and count is not None:
                listed = self.operator("aten::unbind", [value, self.constant(0)], tree)
                return self.graph.insert("prim::ListUnpack", [listed], [types.TensorType()] * count).outputs()
            elif isinstance(value.type(), types.ClassType) and value.type().is_module:
                return self.unpack(self.iteration(value, tree), tree, count)
            else:
                raise self.error(
                    tree, f"Provided value of type {value.type().annotation_str} cannot be unpacked as a tuple"
                )
        if count is not None and len(parts) != count:
            raise self.error(tree, f"Expected {count} values to unpack but found {len(parts)}")
        return parts

    def emit_AugAssign(self, tree):
        kinds = _AUGMENTED.get(type(tree.op))
        if kinds is None:
            raise UnsupportedNodeError(self.source.range_of(tree), tree.op)
        if isinstance(tree.target, ast.Subscript) and self.augment_item(tree, kinds):
            return
        old = self.emit_value(tree.target)
        other = self.emit_value(tree.value)
        magic = "__i" + _MAGIC[type(tree.op)]
        self.place(tree)
        if isinstance(old.type(), types.ClassType) and not isinstance(old.type(), types.InterfaceType):
            name = magic if magic in old.type().methods else "__" + _MAGIC[type(tree.op)]
            new = self.call_method(old, name, [other], {}, tree)
        elif isinstance(old.type(), types.TensorType):
            new = self.operator(kinds[1], [old, other], tree)
            if isinstance(tree.target, ast.Attribute):
                return
        elif isinstance(old.type(), types.ListType) and isinstance(tree.op, (ast.Add, ast.Mult)):
            new = self.operator(kinds[1], [old, other], tree)
        else:
            new = self.binary(tree.op, old, other, tree)
        self.bind(tree.target, new, tree)

    def emit_Delete(self, tree):
        for target in tree.targets:
            if isinstance(target, ast.Subscript):
                if isinstance(target.slice, ast.Slice):
                    raise self.error(
                        target, "del statements only support deletion at a single index, slicing is not supported"
                    )
                self.place(tree)
                held, index = self.emit_value(target.value), self.emit_value(target.slice)
                if isinstance(held.type(), types.ClassType):
                    if "__delitem__" not in held.type().methods:
                        raise self.error(target, "Class does not define __delitem__")
                    self.call_method(held, "__delitem__", [index], {}, tree)
                else:
                    self.operator("aten::Delete", [held, index], tree)
            elif isinstance(target, ast.Name):
                if target.id not in self.variables:
                    raise self.error(tree, f"'{target.id}' is not a variable that could be deleted")
                self.variables[target.id] = None
            else:
                raise self.error(
                    tree, "del statements are only supported for deleting list and dict items and variables"
                )

    # ---- with

    def emit_with(self, tree):
        entered = []
        for item in tree.items:
            meaning = self.emit_manager(item.context_expr)
            value = self.value(meaning, item.context_expr)
            if not isinstance(value.type(), types.ClassType) or not {"__enter__", "__exit__"} <= set(
                value.type().methods
            ):
                raise self.error(
                    item.context_expr,
                    (
                        "With item expression must return an object; "
                        f"{value.type().annotation_str} does not define __enter__ and __exit__ methods"
                    ),
                )
            place = self.place(tree)
            result = self.method_result(value.type(), "__enter__", place)
            given = self.graph.insert("prim::Enter", [value], [result]).output()
            if item.optional_vars is not None:
                self.bind(item.optional_vars, given, tree)
            entered.append(value)
        leaves = self.emit_body(tree.body)
        for value in reversed(entered):
            result = self.method_result(value.type(), "__exit__", self.place(tree))
            self.graph.insert("prim::Exit", [value], [result])
        return leaves


_MAGIC = {
    ast.Add: "add__", ast.Sub: "sub__", ast.Mult: "mul__", ast.Div: "truediv__", ast.Mod: "mod__", ast.Pow: "pow__",
    ast.FloorDiv: "floordiv__", ast.BitAnd: "and__", ast.BitOr: "or__",
    ast.BitXor: "xor__", ast.LShift: "lshift__", ast.RShift: "rshift__", ast.MatMult: "matmul__",
}  # fmt: skip
