"""Pointwise operators: those that ONNX has, and all others by their formulas.

A formula called with symbolic values gives an Expression; each of its nodes is an ONNX node.
"""

import math

import cresset

from ...graph.recording import Value
from ...graph.sizes import Fraction, Size
from ...ops.pointwise.definition import definitions
from ...ops.pointwise.expression import literal, variable
from . import exports, rules

# The nodes of formulas.
NODES = {
    "add": "Add", "sub": "Sub", "mul": "Mul", "div": "Div", "neg": "Neg", "lt": "Less", "le": "LessOrEqual",
    "gt": "Greater", "ge": "GreaterOrEqual",
    "eq": "Equal", "and": "And", "or": "Or", "xor": "Xor", "not": "Not", "where": "Where", "exp": "Exp", "log": "Log",
    "sqrt": "Sqrt", "sin": "Sin",
    "cos": "Cos", "tan": "Tan", "asin": "Asin", "acos": "Acos", "atan": "Atan", "sinh": "Sinh", "cosh": "Cosh",
    "tanh": "Tanh", "asinh": "Asinh",
    "acosh": "Acosh", "atanh": "Atanh", "erf": "Erf", "pow": "Pow", "floor": "Floor", "ceil": "Ceil", "rint": "Round",
    "abs": "Abs",
    "quotient": "Div",
}  # fmt: skip
BITS = {"and": "BitwiseAnd", "or": "BitwiseOr", "xor": "BitwiseXor", "not": "BitwiseNot"}
COMPOSED = {
    "exp2": lambda g, dtype, x: g.op("Pow", g.number(2.0, dtype), x),
    "expm1": lambda g, dtype, x: g.op("Sub", g.op("Exp", x), g.number(1.0, dtype)),
    "log1p": lambda g, dtype, x: g.op("Log", g.op("Add", x, g.number(1.0, dtype))),
    "log2": lambda g, dtype, x: g.op("Div", g.op("Log", x), g.number(0.6931471805599453, dtype)),
    "log10": lambda g, dtype, x: g.op("Div", g.op("Log", x), g.number(2.302585092994046, dtype)),
    "erfc": lambda g, dtype, x: g.op("Sub", g.number(1.0, dtype), g.op("Erf", x)),
    "ne": lambda g, dtype, x, y: g.op("Not", g.op("Equal", x, y)),
    "hypot": lambda g, dtype, x, y: g.op("Sqrt", g.op("Add", g.op("Mul", x, x), g.op("Mul", y, y))),
    "fmod": lambda g, dtype, x, y: g.op("Mod", x, y, fmod=1),
    "modulo": lambda g, dtype, x, y: g.op("Mod", x, y, fmod=1),
    "copysign": lambda g, dtype, x, y: g.op(
        "Where", g.op("Less", y, g.number(0, dtype)), g.op("Neg", g.op("Abs", x)), g.op("Abs", x)
    ),
    "signbit": lambda g, dtype, x: g.op("Less", x, g.number(0, dtype)),
    "atan2": lambda g, dtype, y, x: _angle(g, dtype, y, x),
    "erf_inverse": lambda g, dtype, x, rest: _erf_inverse(g, dtype, x, rest),
    "trunc": lambda g, dtype, x: g.op("Mul", g.op("Sign", x), g.op("Floor", g.op("Abs", x))),
}


def _angle(g, dtype, y, x):
    """The angle of a point: that of its slope, half a turn further on the left, and a quarter turn up or down above and
    below 0.
    """
    zero, half_turn = g.number(0.0, dtype), g.number(math.pi, dtype)
    turn = g.op("Where", g.op("Less", y, zero), g.op("Neg", half_turn), half_turn)
    slope = g.op("Atan", g.op("Div", y, x))
    found = g.op("Where", g.op("Less", x, zero), g.op("Add", slope, turn), slope)
    upright = g.op("Where", g.op("Equal", y, zero), zero, g.op("Mul", turn, g.number(0.5, dtype)))
    return g.op("Where", g.op("Equal", x, zero), upright, found)


def _erf_inverse(g, dtype, x, rest):
    """As in single precision: x times a polynomial in w = -log(1 - x²), or far out in its root (error_function.h)."""
    if dtype is cresset.float64:
        raise g.unsupported("the inverse of erf is there in single precision alone")

    def polynomial(x, *coefficients):
        *rest, found = (g.number(c, dtype) for c in coefficients)
        for coefficient in reversed(rest):
            found = g.op("Add", g.op("Mul", found, x), coefficient)
        return found

    w = g.op("Neg", g.op("Log", g.op("Mul", rest, g.op("Add", x, g.number(1.0, dtype)))))
    near = polynomial(
        w, 0.8862269242, 0.2320137128, 0.01154916512, -0.002335270595, -0.0001265394743, 4.404880433e-5, 4.150663237e-6,
        -2.008271339e-6, 2.243043015e-7, -8.93192597e-9,
    )  # fmt: skip
    far = polynomial(
        g.op("Sub", g.op("Sqrt", w), g.number(3.168034, dtype)), 3.001526776, 1.004297002, 0.006405777927,
        -0.004692371871, 0.003267002292, -0.002208947708, 0.001223259198, -0.0003477913992, -0.0001368445975,
        0.0001115385808,
    )  # fmt: skip
    return g.op("Mul", x, g.op("Where", g.op("Less", w, g.number(5.0, dtype)), near, far))


def _named(kind):
    def rule(g, input):
        if input.dtype is cresset.bool or not input.dtype.is_floating_point and kind not in ("Abs", "Neg", "Sign"):
            return formula(g, g.call.name, {"input": input})
        return g.op(kind, input)

    return rule


for _definition in definitions.values():
    if _definition.onnx is not None:
        rules[_definition.name] = _named(_definition.onnx)


def formula(g, name, bound):
    """Write a pointwise operator by its formula. `bound` has the arguments by their public names."""
    definition = definitions[name]
    public = definition._public_names
    given = {n: bound[public.get(n, n)] for n in definition.inputs}
    tensors = {n: v for n, v in given.items() if isinstance(v, (Value, str))}
    numbers = {n: v for n, v in given.items() if v is not None and n not in tensors}
    computed = _compute_dtype(g, definition, given)
    compute = (
        "b8"
        if computed is cresset.bool
        else "f64"
        if computed is cresset.float64
        else "f32"
        if computed.is_floating_point
        else "i64"
    )
    if compute not in definition.types:
        raise g.unsupported(f"it is not written for {computed}")
    variables, values = {}, {}
    for n, kind in zip(definition.inputs, definition.kinds, strict=True):
        if given[n] is None:
            continue
        if n in numbers and isinstance(given[n], (bool, int, float)) and kind != "b":
            value = given[n]
            variables[n] = (
                literal(value, compute)
                if compute.startswith("f") or value == int(value)
                else literal(int(value), compute)
            )
            continue
        dtype = cresset.bool if kind == "b" else computed
        variables[n] = variable(n, "b8" if kind == "b" else compute)
        values[n] = g.cast(given[n], given[n].dtype, dtype) if n in tensors else g.number(given[n], dtype)
    for attribute in definition.attributes:
        value = bound.get(attribute.name, attribute.default)
        if isinstance(value, (Size, Fraction, Value)):
            variables[attribute.name] = variable(attribute.name, attribute.type_in(compute))
            values[attribute.name] = g.number(value, computed)
        else:
            variables[attribute.name] = value
    try:
        expression = definition.expression(definition._bind((), variables))
    except TypeError as error:  # a fraction among whole numbers
        raise g.unsupported(str(error)) from None
    if expression.op == "literal":  # as isreal of what is always real
        return g.op("Expand", g.number(expression.value, g.result.dtype), g.sizes(g.result.shape))
    return write(g, expression, values, computed, definition.result_type(compute), g.result.dtype)


def _compute_dtype(g, definition, given):
    """The dtype in which the operands meet. A number joins without changing it, unless it is of a higher kind."""
    operands = [
        v for (n, v), kind in zip(given.items(), definition.kinds, strict=True) if kind != "b" and v is not None
    ]
    if definition.result == "bool":
        kinds = [
            cresset.empty((1,) * bool(v.shape), dtype=v.dtype)
            if isinstance(v, Value)
            else 1
            if isinstance(v, Size)
            else 1.0
            if isinstance(v, Fraction)
            else v
            for v in operands
        ]
        found = cresset.result_type(kinds[0], kinds[1]) if len(kinds) > 1 else kinds[0].dtype
        return found if "b8" in definition.types or found is not cresset.bool else cresset.int64
    return g.result.dtype


def write(g, expression, values, dtype, type, wanted):
    """The nodes of an expression; the name of its result in dtype `wanted`. `dtype` is what the type of the computation
    stands for.
    """
    dtypes = {"b8": cresset.bool, "f64": cresset.float64}
    done = {}

    def dtype_of(type):
        if type in ("f32", "f64") and dtype.is_floating_point:
            return dtype if type == "f32" or dtype is cresset.float64 else cresset.float64
        if type in ("i64", "u64"):
            return cresset.int64 if dtype.is_floating_point or dtype is cresset.bool else dtype
        return dtypes.get(type, cresset.float32)

    def visit(node):
        if id(node) not in done:
            done[id(node)] = make(node)
        return done[id(node)]

    def make(node):
        if node.op == "literal":
            return g.number(node.value, dtype_of(node.type))
        if node.op == "variable":
            return values[node.value]
        args = [visit(arg) for arg in node.args]
        kind = dtype_of(node.args[-1].type)
        if node.op == "cast":
            return g.cast(args[0], kind, dtype_of(node.type))
        if (
            node.op in ("erf", "erfc") and kind is cresset.float64 and dtype is not kind
        ):  # accuracy that runtimes do not have
            args = [g.cast(args[0], kind, cresset.float32)]
            found = g.op("Erf", *args) if node.op == "erf" else COMPOSED["erfc"](g, cresset.float32, *args)
            return g.cast(found, cresset.float32, kind)
        if node.op in COMPOSED:
            return COMPOSED[node.op](g, kind, *args)
        if node.op in BITS and kind is not cresset.bool:
            if g.opset < 18:
                raise g.unsupported(f"opset {g.opset} has no operations on bits; opset 18 has")
            return g.op(BITS[node.op], *args)
        if node.op not in NODES:
            raise g.unsupported(f"its formula needs {node.op}, which ONNX does not have")
        if kind is cresset.bool and node.op == "eq":
            return g.op("Not", g.op("Xor", *args))
        if kind is cresset.bool and node.op == "where":
            return g.choose(*args)
        if kind is cresset.bool and node.op in ("lt", "le", "gt", "ge"):
            args = [g.cast(arg, kind, cresset.int32) for arg in args]
        return g.op(NODES[node.op], *args)

    found = visit(expression)
    return g.cast(found, dtype_of(expression.type), wanted)


@exports("gelu", "gelu_tanh")
def gelu(g, input):
    if g.opset >= 20:
        return g.op("Gelu", input, approximate="none" if g.call.name == "gelu" else "tanh")
    return formula(g, g.call.name, {"input": input})


@exports("round")
def round(g, input, decimals):
    if decimals or not input.dtype.is_floating_point:
        return formula(g, "round", {"input": input, "decimals": decimals})
    return g.op("Round", input)


@exports("div")
def div(g, input, other, rounding_mode=None):
    name = {None: "div", "floor": "div_floor", "trunc": "div_trunc"}[rounding_mode]
    return formula(g, name, {"input": input, "other": other})


@exports("leaky_relu")
def leaky_relu(g, input, negative_slope):
    return g.op("LeakyRelu", input, alpha=float(negative_slope))


@exports("maximum")
def maximum(g, input, other):
    return g.of_two("Max", input, other)


@exports("minimum")
def minimum(g, input, other):
    return g.of_two("Min", input, other)


@exports("clamp", "clamp_min", "clamp_max")
def clamp(g, input, min=None, max=None):
    dtype = g.result.dtype
    x = g.cast(input, input.dtype, dtype)
    x = x if min is None else g.of_two("Max", x, min)
    return x if max is None else g.of_two("Min", x, max)


@exports("pow")
def pow(g, input, exponent):
    dtype = g.result.dtype
    if not isinstance(exponent, Value) and exponent == 2:
        x = g.number(input, dtype)
        return g.op("Mul", x, x)
    return g.op("Pow", g.number(input, dtype), g.number(exponent, dtype))


@exports("isinf")
def isinf(g, input):
    if not input.dtype.is_floating_point:
        return formula(g, "isinf", {"input": input})
    return g.op("IsInf", g.cast(input, input.dtype, cresset.float32) if input.dtype is cresset.float16 else input)
