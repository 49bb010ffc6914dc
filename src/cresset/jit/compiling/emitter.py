"""The Emitter: the state of writing one function's graph, branches and loops with the variables that leave them, and
conditions that tell more about a type.

Note [Leaving early]. A graph has no jumps. `return`, `break` and `continue` set flags that are variables like others:
`$return` the result, `$left` that the rest of this body is skipped, `$broke` that the loop ends, `$returned` that the
function does. Where a branch always leaves, the statements behind it move into the other branch; elsewhere they are put
behind `if not $left`. What a branch that is GONE (it returns or raises) gives for a variable is never read:
prim::Uninitialized. What one that has LEFT (break, continue) gives is read by the loop around, which carries it on.
"""

import ast
import math
import re

from ...graph import types
from ...graph.graph import Graph
from ...graph.scalar_types import number_of
from .calls import Calls
from .errors import CompileError
from .expressions import Expressions
from .indexing import Indexing
from .members import Members
from .statements import GONE, Statements
from .sugar import Py, Several, Variable, is_value

_NAMED = re.compile(r"(?!_\d*$|\$)")  # variables whose name is worth keeping for their values
FLAGS = ("$left", "$broke", "$returned")


# What TorchScript itself calls numbers that have no literal, wherever the program has them from.
_NUMBERS = {"inf": math.inf, "nan": math.nan}


class Emitter(Statements, Expressions, Calls, Members, Indexing):
    """Writes the graph of one function.

    Args:
        unit: the Unit that compiles what is called and names what is made.
        source: the Source of the text.
        names: an annotating.Lookup for names that are no variables.
        result: the declared type of the result, or None.
    """

    def __init__(self, unit, source, names, result=None, owner=None, loose=False):
        self.unit, self.source, self.names, self.declared_result, self.owner = unit, source, names, result, owner
        self.loose = loose  # whether constants of the file may be read, as the definitions of our own functions do
        self.graph = Graph()
        self.variables = {}
        self.outer = [{}]  # for each block we are in, the variables' types before it
        self.loops = 0
        self.carried = ()  # the variables that the loop around carries from round to round
        self.result_type = result
        self.in_init, self.defined_in = False, None  # whether this is __init__, the class that a method is from
        self.result_values = []  # Values of `$return`, which get the result's type at the end

    def beside(self):
        """An Emitter for a graph of its own, that sees the same names but no variables."""
        other = Emitter(self.unit, self.source, self.names, None, self.owner, self.loose)
        other.defined_in = self.defined_in
        return other

    # ---- small things

    def place(self, tree):
        """Where the tree stands; new nodes get it."""
        self.graph.place = place = self.source.range_of(tree)
        return place

    def error(self, tree, message):
        return CompileError(tree if hasattr(tree, "highlight") else self.source.range_of(tree), message)

    def constant(self, value, type=None):
        """A constant's Value."""
        if type is None:
            value = number_of(value)
            type = self.unit.infer(value)
        return self.graph.insertConstant(value, type)

    def literal(self, value, type):
        """A Python value, such as a parameter's default, in the graph, as a `type`."""
        inner = type.element if isinstance(type, types.OptionalType) else type
        if isinstance(inner, types.ListType) and isinstance(value, (list, tuple)):
            parts = [self.literal(item, inner.element) for item in value]
            return self.graph.insert("prim::ListConstruct", parts, [inner]).output()
        if isinstance(inner, types.TupleType) and isinstance(value, tuple):
            parts = [self.literal(item, part) for item, part in zip(value, inner.elements(), strict=True)]
            return self.graph.insert("prim::TupleConstruct", parts, [inner]).output()
        if isinstance(inner, types.DictType) and isinstance(value, dict):
            parts = [
                part for k, v in value.items() for part in (self.literal(k, inner.key), self.literal(v, inner.value))
            ]
            return self.graph.insert("prim::DictConstruct", parts, [inner]).output()
        if isinstance(inner, types.FloatType) and isinstance(value, int):
            value = float(value)
        return self.constant(value)

    def value(self, meaning, tree):
        """The meaning as a Value."""
        if is_value(meaning):
            return meaning
        if isinstance(meaning, Several):
            parts = [self.value(item, tree) for item in meaning.items]
            return self.graph.insert(
                "prim::TupleConstruct", parts, [types.TupleType(part.type() for part in parts)]
            ).output()
        if isinstance(meaning, Py):
            return self.python_value(meaning, tree)
        made = self.iteration_as_list(meaning, tree)
        if made is not None:
            return made
        raise self.error(tree, f"{meaning.what} cannot be used as a value")

    def emit_value(self, tree, wanted=None):
        """The Value of an expression. `wanted` is the type that an annotation asks for, which an empty list takes."""
        return self.value(self.emit(tree, wanted), tree)

    # ---- variables

    def look(self, name, tree):
        found = self.variables.get(name)
        if found is not None:
            return found.meaning
        if found is None and name in self.variables:
            raise self.error(tree, f"{name} is not defined in all branches that lead here")
        special = self.names.meaning(name)
        if special is not None:
            return special
        if name in _NUMBERS:
            return Py(_NUMBERS[name], constant=True)
        try:
            return Py(self.names.look(name))
        except KeyError:
            raise self.error(tree, f"undefined value {name}") from None

    def assign(self, name, meaning, tree, declared=None):
        """Let a name mean something from here on."""
        before = self.outer[-1].get(name)
        old = self.variables.get(name)
        if declared is None and old is not None:
            declared = old.declared
        if is_value(meaning):
            if (
                before is not None
                and not meaning.type().isSubtypeOf(before)
                and types.unify(before, meaning.type()) is None
            ):
                raise self.error(
                    tree,
                    (
                        f"Variable '{name}' previously had type {before.annotation_str} but is now being assigned to a "
                        f"value of type {meaning.type().annotation_str}"
                    ),
                )
            if declared is not None and not meaning.type().isSubtypeOf(declared):
                raise self.error(
                    tree,
                    (
                        f"Variable '{name}' is annotated with type {declared.annotation_str} but is being "
                        f"assigned to a value of type {meaning.type().annotation_str}"
                    ),
                )
            kind = meaning.node().kind()
            if (
                (_NAMED.match(name) or kind == "prim::ListConstruct")  # see matching.is_written_in_place
                and kind not in ("prim::Param", "prim::Constant")
                and not meaning.hasDebugName()
            ):
                meaning.setDebugName(name)
        elif before is not None:
            raise self.error(
                tree,
                (
                    f"Cannot re-assign '{name}' to {meaning.what} because '{name}' is not a first-class value. Only "
                    "reassignments to first-class values are allowed"
                ),
            )
        self.variables[name] = Variable(meaning, declared)

    def refine(self, refinements):
        """Let variables have the types that a condition told."""
        for name, type in refinements.items():
            variable = self.variables.get(name)
            if variable is not None and is_value(variable.meaning) and variable.meaning.type() != type:
                cast = (
                    self.constant(None)
                    if isinstance(type, types.NoneType)
                    else self.graph.insert("prim::unchecked_cast", [variable.meaning], [type]).output()
                )
                if _NAMED.match(name) and cast.node().kind() != "prim::Constant":
                    cast.setDebugName(name)
                self.variables[name] = Variable(cast, variable.declared, variable.root)

    # ---- blocks

    def in_block(self, block, write, refinements=None):
        """Write into a block. Gives (what `write` gave, the variables at its end, whether it always leaves)."""
        before, point = dict(self.variables), self.graph.insertPoint()
        self.graph.setInsertPoint(block)
        self.outer.append({name: v.type for name, v in before.items() if v is not None and is_value(v.meaning)})
        try:
            self.refine(refinements or {})
            given = write()
            return given, self.variables
        finally:
            self.outer.pop()
            self.variables = before
            self.graph.setInsertPoint(point)

    def branch(self, condition, refinements, first, second, tree):
        """An If with these two bodies, functions that write and tell whether they always leave. Gives how both do."""
        place = self.place(tree)
        node = self.graph.insert("prim::If", [condition], 0)
        ends = []
        for body, refinement in zip((first, second), refinements, strict=True):
            block = node.addBlock()
            leaves, variables = self.in_block(block, body, refinement)
            ends.append((block, leaves, variables))
        self.join(node, ends, place)
        return min(leaves or 0 for _, leaves, _ in ends)

    def join(self, node, ends, place):
        """Give the If an output for each variable that its branches changed."""
        (_, leaves_a, vars_a), (_, leaves_b, vars_b) = ends
        names = [
            name
            for name in dict.fromkeys([*vars_a, *vars_b])
            if vars_a.get(name) is not self.variables.get(name) or vars_b.get(name) is not self.variables.get(name)
        ]
        for name in names:
            a, b = vars_a.get(name), vars_b.get(name)
            if a is b:
                self.variables[name] = a
                continue
            if name in FLAGS:
                a, b = a or Variable(None), b or Variable(None)
                self._output(node, ends, name, [v.meaning for v in (a, b)], types.BoolType(), None, place)
                continue
            if name == "$return":
                self._output(
                    node,
                    ends,
                    name,
                    [v and v.meaning for v in (a, b)],
                    self.result_type or types.NoneType(),
                    None,
                    place,
                )
                continue
            if (a is None and not leaves_a) or (b is None and not leaves_b):
                self.variables.setdefault(name, None)
                if self.variables[name] is None:
                    continue
                raise AssertionError(f"join: {name} vanished")  # a branch cannot take a variable away
            gone_a, gone_b = (
                leaves == GONE or (leaves and name not in self.carried) for leaves in (leaves_a, leaves_b)
            )
            if gone_a and gone_b:
                continue
            before = self.variables.get(name)
            alive = [v for v, gone in ((a, gone_a), (b, gone_b)) if not gone]
            if before is not None and all(
                v.root is before.root for v in alive
            ):  # conditions told more of it, nothing more
                if len(alive) == 1:
                    self.refine({name: alive[0].meaning.type()})
                continue
            if gone_a or gone_b:
                lives = b if gone_a else a
                if not is_value(lives.meaning):
                    self.variables[name] = lives
                    continue
                gone = a if gone_a else b
                kept = (
                    gone.meaning
                    if gone is not None
                    and is_value(gone.meaning)
                    and gone.meaning.type().isSubtypeOf(lives.meaning.type())
                    else None
                )
                meanings = [kept, lives.meaning] if gone_a else [lives.meaning, kept]
                if (
                    kept is None
                    and self._visible(lives.meaning, node)
                    and lives.meaning.node().kind() != "prim::Constant"
                ):
                    self.variables[name] = lives
                    continue
                self._output(node, ends, name, meanings, lives.meaning.type(), lives.declared, place)
                continue
            if not is_value(a.meaning) or not is_value(b.meaning):
                self.variables[name] = None
                continue
            covering = types.unify(a.meaning.type(), b.meaning.type())
            declared = a.declared or b.declared
            if covering is None and declared is not None:
                covering = declared
            if covering is None:
                if before is None:
                    self.variables[name] = None  # the two have nothing in common: it cannot be used from here on
                    continue
                raise CompileError(
                    place,
                    (
                        f"Type mismatch: {name} is set to type {a.meaning.type().annotation_str} in the true branch "
                        "and "
                        f"type {b.meaning.type().annotation_str} in the false branch"
                    ),
                )
            self._output(node, ends, name, [a.meaning, b.meaning], covering, declared, place)

    @staticmethod
    def _visible(value, node):
        """Whether the value is made in a block around the node."""
        block, around = value.node().owningBlock(), node.owningBlock()
        while around is not None:
            if around is block:
                return True
            around = around.owningNode().owningBlock() if around.owningNode() is not None else None
        return False

    def _output(self, node, ends, name, meanings, type, declared, place):
        for (block, leaves, _), meaning in zip(ends, meanings, strict=True):
            if meaning is None:
                point = self.graph.insertPoint()
                self.graph.setInsertPoint(block)
                if name in FLAGS:
                    meaning = self.constant(bool(leaves) and name == "$left")
                else:
                    meaning = self.graph.insert("prim::Uninitialized", (), [type]).output()
                    if name == "$return":
                        self.result_values.append(meaning)
                self.graph.setInsertPoint(point)
            block.registerOutput(meaning)
        output = node.addOutput(type)
        if name == "$return":
            self.result_values.append(output)
        elif name not in FLAGS:
            output.setDebugName(name)
        self.variables[name] = Variable(output, declared)

    def loop(self, most, begin, assigned, write, tree):
        """A Loop. `write(round)` writes the body and gives the condition for going on. `assigned`: the names that the
        body may change.
        """
        place = self.place(tree)
        carried = [
            name for name in assigned if self.variables.get(name) is not None and is_value(self.variables[name].meaning)
        ]
        inputs = []
        for name in carried:
            meaning = self.variables[name].meaning
            declared = self.variables[name].declared
            if declared is not None and meaning.type() != declared and name not in FLAGS:
                meaning = self.graph.insert("prim::unchecked_cast", [meaning], [declared]).output()
            inputs.append(meaning)
        types_ = [value.type() for value in inputs]
        node = self.graph.insert("prim::Loop", [most, begin, *inputs], types_)
        block = node.addBlock()
        index = block.addInputToBlock(types.IntType())
        before = dict(self.variables)

        def body():
            for name, value in zip(carried, inputs, strict=True):
                taken = block.addInputToBlock(value.type())
                if name == "$return":
                    self.result_values.append(taken)
                elif name not in FLAGS:
                    taken.setDebugName(name)
                self.variables[name] = Variable(taken, before[name].declared)
            return write(index)

        around, self.carried = self.carried, carried
        go_on, variables = self.in_block(block, body)
        self.carried = around
        block.registerOutput(go_on)
        for name, type, output in zip(carried, types_, node.outputs(), strict=True):
            last = variables[name].meaning if variables.get(name) is not None else None
            if not is_value(last):
                raise CompileError(place, f"'{name}' is not a value at the end of the loop")
            if name == "$return":
                self.result_values.append(output)
            elif not last.type().isSubtypeOf(type):
                raise CompileError(
                    place,
                    (
                        f"Variable '{name}' previously had type {type.annotation_str} but is now being assigned to a "
                        f"value of type {last.type().annotation_str}"
                    ),
                )
            block.registerOutput(last)
            if name not in FLAGS and name != "$return":
                output.setDebugName(name)
            self.variables[name] = Variable(output, before[name].declared)
        return node

    # ---- conditions

    def condition(self, tree):
        """(a bool Value, or True/False if it is known beforehand; what variables are if it holds; what if not)."""
        if isinstance(tree, ast.UnaryOp) and isinstance(tree.op, ast.Not):
            value, yes, no = self.condition(tree.operand)
            if isinstance(value, bool):
                return not value, no, yes
            self.place(tree)
            return self.operator("aten::__not__", [value], tree), no, yes
        if isinstance(tree, ast.BoolOp):
            return self._and_or(tree.values, isinstance(tree.op, ast.And), tree)
        if isinstance(tree, ast.Compare) and len(tree.ops) == 1 and isinstance(tree.ops[0], (ast.Is, ast.IsNot)):
            return self._is_none(tree)
        if isinstance(tree, ast.Call):
            known = self.known_call(tree)
            if known is not None:
                return known
        return self.to_bool(self.emit_value(tree), tree), {}, {}

    def to_bool(self, value, tree):
        """A value as a bool; a constant as True or False."""
        type = value.type()
        if isinstance(type, types.BoolType):
            return value.node().attributes["value"] if value.node().kind() == "prim::Constant" else value
        if isinstance(type, types.ClassType) and "__bool__" in type.methods:
            found = self.call_method(value, "__bool__", [], {}, tree)
            if not isinstance(found.type(), types.BoolType):
                raise self.error(
                    tree, f"expected a bool expression for condition but found {found.type().annotation_str}"
                )
            return found
        if isinstance(type, (types.ListType, types.DictType, types.StringType)):
            count = self.operator("aten::len", [value], tree)
            return self.operator("aten::ne", [count, self.constant(0)], tree)
        try:
            return self.operator("aten::Bool", [value], tree)
        except CompileError:
            raise self.error(tree, f"Could not cast value of type {type.annotation_str} to bool") from None

    def bool_value(self, value, tree):
        self.place(tree)
        return self.constant(value) if isinstance(value, bool) else value

    def _and_or(self, trees, is_and, whole):
        first, *rest = trees
        value, yes, no = self.condition(first)
        if not rest:
            return value, yes, no
        if isinstance(value, bool):
            if value is not is_and:
                return value, yes, no
            return self._with(
                yes if is_and else no, lambda: self._and_or(rest, is_and, whole), yes if is_and else no, is_and
            )
        self.place(whole)
        node = self.graph.insert("prim::If", [value], [types.BoolType()])
        told, results = {}, []

        def second():
            inner, *told["inner"] = self._and_or(rest, is_and, whole)
            told["static"] = inner if isinstance(inner, bool) else None
            return self.bool_value(inner, whole)

        def other():
            return self.constant(not is_and)

        for body, refinement in zip((second, other) if is_and else (other, second), (yes, no), strict=True):
            block = node.addBlock()
            result, _ = self.in_block(block, body, refinement)
            results.append(result)
            block.registerOutput(result)
        if told["static"] is not None:  # the other decides, or this one does
            node.destroy()
            if told["static"] is not is_and:
                return told["static"], {}, {}
            return value, yes, no
        inner_yes, inner_no = told["inner"]
        both = {**(yes if is_and else no), **(inner_yes if is_and else inner_no)}
        either = _common(no if is_and else yes, inner_no if is_and else inner_yes)
        return node.output(), both if is_and else either, either if is_and else both

    def _with(self, refinements, write, keep, is_and):
        before = dict(self.variables)
        self.refine(refinements)
        value, yes, no = write()
        self.variables = before
        return value, {**keep, **yes} if is_and else yes, no if is_and else {**keep, **no}

    def _is_none(self, tree):
        left, right = tree.left, tree.comparators[0]
        negated = isinstance(tree.ops[0], ast.IsNot)
        if isinstance(left, ast.Constant) and left.value is None:
            left, right = right, left
        value, other = self.emit_value(left), self.emit_value(right)
        place = self.place(tree)
        if isinstance(other.type(), types.NoneType):
            type = value.type()
            name = left.id if isinstance(left, ast.Name) else None
            if isinstance(type, types.NoneType):
                return not negated, {}, {}
            if not types.NoneType().isSubtypeOf(type):
                return negated, {}, {}
            rest = without_none(type)
            is_none, is_not = (
                ({name: types.NoneType()} if name else {}),
                ({name: rest} if name and rest is not None else {}),
            )
            yes, no = (is_not, is_none) if negated else (is_none, is_not)
        else:
            yes, no = {}, {}
        return self.operator("aten::__isnot__" if negated else "aten::__is__", [value, other], place), yes, no


def without_none(type):
    """What is left of an Optional or Union without None; None for Any."""
    if isinstance(type, types.OptionalType):
        return type.element
    if isinstance(type, types.UnionType):
        return types.UnionType(member for member in type.members if not isinstance(member, types.NoneType))
    return None


def _common(first, second):
    """What two sets of refinements tell both: the variables that are in each, as what covers both types."""
    found = {}
    for name in first.keys() & second.keys():
        covering = types.unify(first[name], second[name])
        if covering is not None:
            found[name] = covering
    return found
