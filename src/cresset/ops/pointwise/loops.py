"""The loops that a pointwise operator consists of, as C++ text: its formula and its gradients, one a compute type.

Printed by the build for the operators of the package, and while a program runs for those that it defines.
"""

from functools import reduce
from operator import or_

from .expression import Expression
from .printing import TYPE_NAMES, print_body

COMPUTES = ("f32", "f64", "i64", "u64", "b8", "c64", "c128")  # the order of enum Compute
MAX_INPUTS = 4  # kMaxPointwiseInputs

# The primitives that native/base/vector_math.h has as inline code without branches; the others call the C library.
_INLINE = {
    "abs", "sqrt", "floor", "ceil", "trunc", "rint", "copysign", "signbit", "exp", "expm1", "log", "log1p", "tanh",
    "erf_inverse", "nextafter",
}  # fmt: skip
_INLINE_SINGLE = {
    "exp2", "log2", "log10", "pow", "sin", "cos", "tan", "asin", "acos", "atan", "atan2", "sinh", "cosh", "asinh",
    "acosh", "atanh", "erf", "erfc", "hypot", "fmod",
}  # fmt: skip
INLINE = {"f32": _INLINE | _INLINE_SINGLE, "f64": _INLINE}
# What is inline only for moderate angles; the plain functions have a branch for large ones.
QUICK = {"sin": "math::quick::sin", "cos": "math::quick::cos", "tan": "math::quick::tan"}
OPERATIONS = {
    "add", "sub", "mul", "div", "neg", "lt", "le", "gt", "ge", "eq", "ne", "and", "or", "xor", "not", "where", "cast",
    "literal", "variable",
}  # fmt: skip

LONG_FORMULA = 450  # nodes


class Loop:
    """One function of the generated code: a formula, or the gradient by one input, in one compute type."""

    def __init__(self, operator, compute, input_index=None):
        self.operator, self.compute = operator, compute
        self.attributes = operator.attributes
        if input_index is None:
            self.name = f"{operator.name}_{compute}"
            self.expression = operator.forward(compute)
            self.result_type = operator.result_type(compute)
            reads = operator.inputs
        else:
            name = operator.inputs[input_index]
            self.name = f"{operator.name}_gradient_{name}_{compute}"
            self.expression = operator.backward(compute)[input_index]
            self.result_type = compute
            reads = ["grad", *operator.uses()[input_index]]
        kinds = dict(zip(operator.inputs, operator.kinds, strict=True))
        self.reads = [(name, self._type_of(name, kinds)) for name in reads]

    def _type_of(self, name, kinds):
        if name in ("grad", "output"):
            return self.operator.result_type(self.compute)
        return "b8" if kinds[name] == "b" else self.compute

    @property
    def at_every_level(self):
        """Whether it vectorizes and is short: then it is worth the time to compile it for each instruction set."""
        if self.compute not in INLINE or len(nodes(self.expression)) > LONG_FORMULA:
            return False
        return all(
            node.op in OPERATIONS or node.op in INLINE.get(node.args[0].type, ()) for node in nodes(self.expression)
        )

    def text(self):
        used = variables(self.expression)
        constant = frozenset(attribute.name for attribute in self.attributes)
        lines = [f"void {self.name}(char* const* pointers, const ScalarAttribute* scalars, int64_t count) {{"]
        for index, attribute in enumerate(self.attributes):
            if attribute.name in used:
                type = TYPE_NAMES[attribute.type_in(self.compute)]
                lines.append(f"  const {type} {attribute.name} = attribute<{type}>(scalars[{index}]);")
        lines.append(f"  auto* result = reinterpret_cast<{TYPE_NAMES[self.result_type]}*>(pointers[0]);")
        for index, (name, type) in enumerate(self.reads, 1):
            if name in used:
                stored = (
                    "uint8_t" if type == "b8" else TYPE_NAMES[type]
                )  # a byte compared with 0 vectorizes, a bool does not
                lines.append(f"  auto* {name}_ = reinterpret_cast<const {stored}*>(pointers[{index}]);")
        angles = [node.args[0] for node in nodes(self.expression) if node.type == "f32" and node.op in QUICK]
        if angles:
            # The quick circular functions are for moderate angles: look first whether there are others.
            lines.append("  int large = 0;")
            lines += self._loop(
                [("large", reduce(or_, (Expression("is_large_angle", (angle,), "b8") for angle in angles)))], constant
            )
            lines[-2] = lines[-2].replace("large = ", "large |= ")
            lines.append("  if (large) {")
            lines += [
                "  " * (not line.startswith("#")) + line
                for line in self._loop([("result[i]", self.expression)], constant)
            ]
            lines += ["    return;", "  }"]
        lines += self._loop([("result[i]", self.expression)], constant, QUICK if angles else {})
        return "\n".join([*lines, "}", ""])

    def _loop(self, results, constant, functions=None):
        if functions is None:
            functions = {}
        used = set().union(*(variables(expression) for _, expression in results))
        before, body = print_body(results, constant, functions)
        loads = [
            f"const {TYPE_NAMES[type]} {name} = {name}_[i]{' != 0' * (type == 'b8')};"
            for name, type in self.reads
            if name in used
        ]
        return [*(f"  {line}" for line in before), "#pragma GCC ivdep", "  for (int64_t i = 0; i < count; ++i) {",
                *(f"    {line}" for line in loads + body), "  }"]  # fmt: skip


def variables(expression):
    return {node.value for node in nodes(expression) if node.op == "variable"}


def nodes(expression):
    seen, pending = {}, [expression]
    while pending:
        node = pending.pop()
        if id(node) not in seen:
            seen[id(node)] = node
            pending.extend(node.args)
    return seen.values()


def loops_of(operator):
    """The loops by their place in the table: ("forward", compute) or (input index, compute)."""
    loops = {("forward", compute): Loop(operator, compute) for compute in operator.types}
    for compute in operator.backward_types:
        for index, has_gradient in enumerate(operator.has_gradient()):
            if has_gradient:
                loops[index, compute] = Loop(operator, compute, index)
    return loops


def table_row(table, inputs, reference):
    """The members of one PointwiseLoops: forward, then backward by each input. `reference(loop)` names a loop."""

    def line(place):
        found = [table.get((place, compute)) for compute in COMPUTES]
        return (
            "{" + ", ".join("nullptr" if loop is None else reference(loop) for loop in found) + "}"
            if any(found)
            else "{}"
        )

    return f"{line('forward')},\n     {{" + ",\n      ".join(map(line, range(inputs))) + "}"
