"""The loops that a pointwise operator consists of, as C++ text: its formula and its gradients, one a compute type.

Printed by the build for the operators of the package, and while a program runs for those that it defines.
"""

from functools import reduce
from operator import or_

from .expression import LOOK, Expression, choose
from .printing import TYPE_NAMES, WRAPPING, print_body

COMPUTES = ("f32", "f64", "i64", "u64", "b8", "c64", "c128")  # the order of enum Compute
MAX_INPUTS = 4  # kMaxPointwiseInputs
MAX_OTHER_NODE_NAMES = 2  # kMaxOtherNodeNames

# The primitives that native/base/vector_math.h has as inline code without branches; the others call the C library.
_INLINE = {
    "abs", "sqrt", "floor", "ceil", "trunc", "rint", "copysign", "signbit", "exp", "expm1", "log", "log1p", "tanh",
    "erf", "erf_inverse", "nextafter", "pow",
}  # fmt: skip
_INLINE_SINGLE = {
    "exp2", "log2", "log10", "sin", "cos", "tan", "asin", "acos", "atan", "atan2", "sinh", "cosh", "asinh",
    "acosh", "atanh", "erfc", "hypot", "fmod",
}  # fmt: skip
INLINE = {"f32": _INLINE | _INLINE_SINGLE, "f64": _INLINE}
# What is inline only for moderate angles; the plain functions have a branch for large ones.
QUICK = {"sin": "math::quick::sin", "cos": "math::quick::cos", "tan": "math::quick::tan"}
QUICK_NODES = {("sin", "f32"), ("cos", "f32"), ("tan", "f32"), ("sin", "f64"), ("cos", "f64")}
OPERATIONS = {
    "add", "sub", "mul", "div", "neg", "lt", "le", "gt", "ge", "eq", "ne", "and", "or", "xor", "not", "where", "cast",
    "literal", "variable",
}  # fmt: skip
CHEAP = OPERATIONS | {"abs", "sqrt", "floor", "ceil", "trunc", "rint", "copysign", "signbit"}

# What vectorizes of other numbers than real ones, beside the operations: not the division of integers, and of complex
# numbers neither division nor functions, which have branches.
_COMPLEX = OPERATIONS - {"div"} | {"conj", "real", "imag", "complex"}
PLAIN = {
    "i64": OPERATIONS - {"div"} | {"abs", "shl", "shr"},
    "b8": OPERATIONS,
    "c64": _COMPLEX,
    "c128": _COMPLEX,
}

# Of these the low bits of the result are made of the low bits of the operands alone: narrow integers are computed as
# they lie, in elements of 1, 2 and 4 bytes, and not in 64 bits.
IN_LOW_BITS = {*WRAPPING, "and", "or", "xor", "not", "literal", "variable"}
NARROW = ("uint8_t", "uint16_t", "uint32_t")

# The primitives that native/base/polynomials.h has for eight numbers at a time, and what may stand beside them there.
CHEBYSHEV = ("chebyshev_t", "chebyshev_u", "chebyshev_v", "chebyshev_w")
POLYNOMIALS = {*CHEBYSHEV, "hermite_h", "hermite_he", "laguerre_l", "legendre_p"}
IN_LANES = POLYNOMIALS | {"add", "sub", "mul", "div", "neg", "literal", "variable"}

LONG_FORMULA = 450  # nodes


class Loop:
    """One function of the generated code: a formula, or the gradient by one input, in one compute type.

    With `numbers` the formula reads one element of each input but the first: `x * 2`, `clamp(x, 0, 1)`. With `narrow`,
    a type of C++, the integers are that wide.
    """

    def __init__(self, operator, compute, input_index=None, numbers=False, narrow=None):
        self.operator, self.compute, self.narrow = operator, compute, narrow
        self.type_names = TYPE_NAMES | ({compute: narrow} if narrow else {})
        self.attributes = operator.attributes
        self.numbers = frozenset(operator.inputs[1:] if numbers else ())
        if input_index is None:
            self.name = f"{operator.name}{'_numbers' * numbers}_{narrow or compute}"
            self.expression = operator.forward(compute)
            self.result_type = operator.result_type(compute)
            self.wide_expression = operator.forward("f64") if compute in INLINE else None
            reads = operator.inputs
        else:
            name = operator.inputs[input_index]
            self.name = f"{operator.name}_gradient_{name}_{compute}"
            self.expression = operator.backward(compute)[input_index]
            self.result_type, self.wide_expression = compute, None
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
            return self.compute in PLAIN and all(node.op in PLAIN[self.compute] for node in nodes(self.expression))
        if self.in_lanes:
            return True
        # What attributes alone decide is computed before the loop.
        before, inline = {attribute.name for attribute in self.attributes}, _INLINE | _INLINE_SINGLE
        return all(
            node.op in OPERATIONS
            or node.op in INLINE.get(node.args[0].type, ())
            or self._is_quick(node)
            or (node.op in inline and variables(node) <= before)
            for node in nodes(self.expression)
        )

    @property
    def functions(self):
        """What primitives are called: a result in single precision has digits to spare for recurrences of higher
        degrees.
        """
        if self.narrow:
            return {name: f"math::{name}<{self.narrow}>" for name in WRAPPING}
        return {name: f"math::{name}<float>" for name in CHEBYSHEV} if self.compute == "f32" else {}

    @property
    def in_lanes(self):
        """Whether eight numbers are computed at a time, in double precision whatever the type."""
        ops = {node.op for node in nodes(self.wide_expression)} if self.wide_expression is not None else set()
        return bool(ops & POLYNOMIALS) and ops <= IN_LANES and not self.attributes

    def _is_quick(self, node):
        return (node.op, node.type) in QUICK_NODES

    def text(self):
        used = variables(self.expression)
        constant = frozenset(attribute.name for attribute in self.attributes)
        lines = [f"void {self.name}(char* const* pointers, const ScalarAttribute* scalars, int64_t count) {{"]
        for index, attribute in enumerate(self.attributes):
            if attribute.name in used:
                type = self.type_names[attribute.type_in(self.compute)]
                lines.append(f"  const {type} {attribute.name} = attribute<{type}>(scalars[{index}]);")
        lines.append(f"  auto* result = reinterpret_cast<{self.type_names[self.result_type]}*>(pointers[0]);")
        for index, (name, type) in enumerate(self.reads, 1):
            if name in used:
                stored = (
                    "uint8_t" if type == "b8" else self.type_names[type]
                )  # a byte compared with 0 vectorizes, a bool does not
                lines.append(f"  auto* {name}_ = reinterpret_cast<const {stored}*>(pointers[{index}]);")
                if name in self.numbers:
                    lines.append(f"  const {self.type_names[type]} {name} = *{name}_;")
        if self.in_lanes:
            return "\n".join([*lines, *self._lanes_loop(), "}", ""])
        lines += self._looking_first(self.expression, constant)
        return "\n".join([*lines, "}", ""])

    def _looking_first(self, expression, constant):
        """The loop, and shorter ones for numbers that all need less."""
        if expression.op == "where" and expression.value == LOOK:
            condition, usual, _ = expression.args
            whole = choose(*expression.args)
            return [*self._any("unusual", ~condition, constant), "  if (!unusual) {",
                    *_indented(self._looking_first(usual, constant)), "    return;", "  }",
                    *self._looking_first(whole, constant)]  # fmt: skip
        angles = [node.args[0] for node in nodes(expression) if self._is_quick(node)]
        if not angles:
            return self._choice(expression, constant)
        # The quick circular functions are for moderate angles.
        is_large = reduce(or_, (Expression("is_large_angle", (angle,), "b8") for angle in angles))
        return [*self._any("large", is_large, constant), "  if (large) {",
            *_indented(self._choice(expression, constant)),
                "    return;", "  }", *self._choice(expression, constant, QUICK)]  # fmt: skip

    def _any(self, name, question, constant):
        """A loop that finds out whether the answer is yes anywhere."""
        lines = self._loop([(name, question)], constant)
        lines[-2] = lines[-2].replace(f"{name} = ", f"{name} |= ")
        return [f"  int {name} = 0;", *lines]

    def _choice(self, expression, constant, functions=None):
        """The loop; a choice that attributes alone decide is made before, between two of them."""
        if expression.op != "where" or not variables(expression.args[0]) <= constant:
            return self._loop([("result[i]", expression)], constant, functions)
        condition, *sides = expression.args
        before, (line,) = print_body([("const bool chosen", condition)], constant, functions)
        first, second = (_indented(self._choice(side, constant, functions)) for side in sides)
        return [*(f"  {text}" for text in (*before, line)), "  if (chosen) {", *first, "  } else {", *second, "  }"]

    def _loop(self, results, constant, functions=None):
        used = set().union(*(variables(expression) for _, expression in results))
        before, body = print_body(results, constant, self.functions | (functions or {}), type_names=self.type_names)
        loads = [
            f"const {self.type_names[type]} {name} = {name}_[i]{' != 0' * (type == 'b8')};"
            for name, type in self.reads
            if name in used - self.numbers
        ]
        return [*(f"  {line}" for line in before), "#pragma GCC ivdep", "  for (int64_t i = 0; i < count; ++i) {",
                *(f"    {line}" for line in loads + body), "  }"]  # fmt: skip

    def _lanes_loop(self):
        _, body = print_body([("const double value", self.wide_expression)], functions=self.functions)
        loads = [f"const math::Lanes {name} = math::load_lanes({name}_ + i, count - i);" for name, _ in self.reads]
        body = [line.replace("const double ", "const math::Lanes ") for line in body]
        return ["  for (int64_t i = 0; i < count; i += math::kLanes) {", *(f"    {line}" for line in loads + body),
                "    math::store_lanes(result + i, value, count - i);", "  }"]  # fmt: skip


def _indented(lines):
    return ["  " * (not line.startswith("#")) + line for line in lines]


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


def is_heavy(expression):
    """Whether it calls a function that is more than arithmetic."""
    return any(node.op not in CHEAP for node in nodes(expression))


def shares_functions(operator):
    """Whether the derivative is a factor of the gradient and calls a function on what the formula calls it on: then it
    is worth making both at once (Note [Slopes] in native/dispatch/late_slopes.cpp).
    """
    if operator.attributes or "f32" not in operator.backward_types or operator.uses() != [operator.inputs[:1]]:
        return False
    forward, backward = Loop(operator, "f32"), Loop(operator, "f32", 0)
    factors = backward.expression.args if backward.expression.op == "mul" else ()
    if len(factors) != 2 or repr(factors[0]) != "grad" or "grad" in variables(factors[1]):
        return False
    shared = {id(node) for node in nodes(forward.expression)} & {id(node) for node in nodes(factors[1])}
    heavy = [node for node in nodes(forward.expression) if id(node) in shared and node.op not in CHEAP]
    return bool(heavy) and all(loop.at_every_level and not loop.in_lanes for loop in (forward, backward))


def loops_of(operator):
    """The loops by their place in the table: ("forward", compute), ("numbers", compute), ("narrow", its type) or
    (input index, compute).
    """
    loops = {("forward", compute): Loop(operator, compute) for compute in operator.types}
    whole = loops.get(("forward", "i64"))
    if whole and whole.expression.args and all(node.op in IN_LOW_BITS for node in nodes(whole.expression)):
        loops |= {("narrow", type): Loop(operator, "i64", narrow=type) for type in NARROW}
    for compute in INLINE if len(operator.inputs) > 1 and "b" not in operator.kinds else ():
        # Where memory is waited for, not a function, an operand less to read counts.
        loop = loops.get(("forward", compute))
        if loop and all(node.op in OPERATIONS for node in nodes(loop.expression)):
            loops["numbers", compute] = Loop(operator, compute, numbers=True)
    for compute in operator.backward_types:
        for index, has_gradient in enumerate(operator.has_gradient()):
            if has_gradient:
                loops[index, compute] = Loop(operator, compute, index)
    return loops


def table_row(table, inputs, reference):
    """The members of one PointwiseLoops: forward, with numbers, of narrow integers, backward by each input.
    `reference(loop)` names a loop.
    """

    def line(place, types=COMPUTES):
        found = [table.get((place, type)) for type in types]
        return (
            "{" + ", ".join("nullptr" if loop is None else reference(loop) for loop in found) + "}"
            if any(found)
            else "{}"
        )

    return (
        f"{line('forward')},\n     {line('numbers')},\n     {line('narrow', NARROW)},\n     {{"
        + ",\n      ".join(map(line, range(inputs)))
        + "}"
    )
