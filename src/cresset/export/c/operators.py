"""How each aten operator is written as C: `EMITTERS` maps its name to a function of the writer and the schema's
arguments.
"""

import math
import re

import cresset

from ...fx.node import Node
from . import movement
from .arrays import Array
from .text import broadcast_strides, ctype, f, literal, loops, merged, place, strides_of

EMITTERS = dict(movement.EMITTERS)


def emits(*names):
    """Decorator: the emitter of these operators."""

    def enter(function):
        EMITTERS.update(dict.fromkeys(names, function))
        return function

    return enter


# ---- pointwise

UNARY = {
    "relu": "(x < 0 ? 0 : x)", "tanh": "{tanh}(x)", "exp": "{exp}(x)", "log": "{log}(x)", "sqrt": "{sqrt}(x)",
    "rsqrt": "1 / {sqrt}(x)", "abs": "{fabs}(x)", "neg": "-x",
    "sin": "{sin}(x)", "cos": "{cos}(x)", "tan": "{tan}(x)", "erf": "{erf}(x)", "floor": "{floor}(x)",
    "ceil": "{ceil}(x)", "reciprocal": "1 / x", "square": "x * x",
    "sigmoid": "1 / (1 + {exp}(-x))", "silu": "x / (1 + {exp}(-x))", "log1p": "{log1p}(x)", "expm1": "{expm1}(x)",
    "logical_not": "!x", "sign": "(x > 0) - (x < 0)",
    "relu6": "(x < 0 ? 0 : x > 6 ? 6 : x)", "hardsigmoid": "(x <= -3 ? 0 : x >= 3 ? 1 : x / 6 + {half})",
    "hardswish": "x * (x <= -3 ? 0 : x >= 3 ? 1 : (x + 3) / 6)",
    "mish": "x * {tanh}({log1p}({exp}(x)))", "log_sigmoid": "-({log1p}({exp}(-{fabs}(x))) + (x < 0 ? -x : 0))",
    "softsign": "x / (1 + {fabs}(x))",
    "isnan": "x != x", "round": "{rint}(x)", "trunc": "{trunc}(x)", "log2": "{log2}(x)", "log10": "{log10}(x)",
    "exp2": "{exp2}(x)", "selu": "{selu}",
}  # fmt: skip
FUNCTIONS = "tanh exp log sqrt fabs sin cos tan erf floor ceil log1p expm1 rint trunc log2 log10 exp2 pow fmod".split()


def _math(dtype):
    named = {name: f(name, dtype) for name in FUNCTIONS}
    named["half"] = literal(0.5, dtype)
    named["selu"] = (
        f"(x > 0 ? {literal(1.0507009873554805, dtype)} * x : {literal(1.7580993408473766, dtype)} * "
        f"({f('exp', dtype)}(x) - 1))"
    )
    return named


def pointwise(writer, formula, operands):
    """Apply a formula of the operands' names to arrays of shapes that broadcast."""
    made = writer.new()
    arrays = {name: writer.array(value) for name, value in operands.items()}
    compute = _computed_in(made, arrays.values())
    strides = [broadcast_strides(a.shape, made.shape) for a in arrays.values()]
    shape, (own, *steps) = merged(made.shape, strides_of(made.shape), *strides)
    names = [f"i{k}" for k in range(len(shape))]
    kind = ctype(compute)
    reads = "\n".join(
        f"const {kind} {name} = ({kind}){array.name}[{place(step, names)}];"
        for (name, array), step in zip(arrays.items(), steps, strict=True)
    )
    text = loops(
        shape, f"{reads}\n{made.name}[{place(own, names)}] = ({made.ctype})({formula.format(**_math(compute))});"
    )
    return writer.step(text, made, arrays.values())


def _computed_in(made, arrays):
    """The dtype of the computation: that of the operands together, as promotion has it; a result of bools does not
    say."""
    dtypes = [a.dtype for a in arrays]
    if made.dtype.is_floating_point:
        return made.dtype
    found = dtypes[0]
    for dtype in dtypes[1:]:
        found = cresset.promote_types(found, dtype)
    return found


def _unary(name):
    def emit(writer, **given):
        (value, *_) = given.values()
        return pointwise(writer, UNARY[name], {"x": value})

    return emit


for _name in UNARY:
    emits(_name)(_unary(_name))


@emits("gelu")
def gelu(writer, self, approximate="none"):
    dtype = writer.array(self).dtype
    if approximate == "tanh":
        inside = f"{literal(math.sqrt(2 / math.pi), dtype)} * (x + {literal(0.044715, dtype)} * x * x * x)"
        return pointwise(writer, f"{{half}} * x * (1 + {{tanh}}({inside}))", {"x": self})
    return pointwise(writer, f"{{half}} * x * (1 + {{erf}}(x * {literal(math.sqrt(0.5), dtype)}))", {"x": self})


@emits("leaky_relu")
def leaky_relu(writer, self, negative_slope=0.01):
    return pointwise(writer, f"x < 0 ? x * {literal(negative_slope, writer.array(self).dtype)} : x", {"x": self})


@emits("elu")
def elu(writer, self, alpha=1, scale=1, input_scale=1):
    dtype = writer.array(self).dtype
    below = f"{literal(alpha * scale, dtype)} * ({{exp}}(x * {literal(input_scale, dtype)}) - 1)"
    return pointwise(writer, f"x > 0 ? {literal(scale, dtype)} * x : {below}", {"x": self})


@emits("softplus")
def softplus(writer, self, beta=1, threshold=20):
    dtype = writer.array(self).dtype
    b = literal(beta, dtype)
    return pointwise(
        writer, f"x * {b} > {literal(threshold, dtype)} ? x : {{log1p}}({{exp}}(x * {b})) / {b}", {"x": self}
    )


@emits("hardtanh")
def hardtanh(writer, self, min_val=-1, max_val=1):
    return clamp(writer, self, min_val, max_val)


@emits("clamp")
def clamp(writer, self, min=None, max=None):
    dtype = writer.array(self).dtype
    low, high = writer.number(min), writer.number(max)
    if (min is not None and low is None) or (max is not None and high is None):
        raise writer.unsupported("limits that depend on the inputs")
    formula = "x"
    if low is not None:
        formula = f"({formula} < {literal(low, dtype)} ? {literal(low, dtype)} : {formula})"
    if high is not None:
        formula = f"({formula} > {literal(high, dtype)} ? {literal(high, dtype)} : {formula})"
    return pointwise(writer, formula, {"x": self})


@emits("clamp_min")
def clamp_min(writer, self, min):
    return clamp(writer, self, min, None)


@emits("to", "_to_copy")
def to(writer, self, **_):
    array = writer.array(self)
    if array.dtype == writer.node.meta["val"].dtype:
        return Array(array.shape, array.dtype).part_of(array, 0)
    made_of = "x != 0" if writer.node.meta["val"].dtype == cresset.bool else "x"
    return pointwise(writer, made_of, {"x": self})


BINARY = {
    "mul": "a * b", "div": "a / b", "maximum": "(a > b || a != a ? a : b)", "minimum": "(a < b || a != a ? a : b)",
    "eq": "a == b", "ne": "a != b", "lt": "a < b", "le": "a <= b",
    "gt": "a > b", "ge": "a >= b", "logical_and": "a && b", "logical_or": "a || b", "bitwise_and": "a & b",
    "bitwise_or": "a | b", "pow": "{pow}(a, b)", "logical_xor": "!a != !b",
}  # fmt: skip


def binary(writer, formula, a, b):
    """A formula of two operands, each an array or a number."""
    operands, numbers = {}, {}
    for name, value in (("a", a), ("b", b)):
        if isinstance(value, Node):
            operands[name] = value
        else:
            numbers[name] = value
    if numbers:
        array = writer.array(next(iter(operands.values())))
        made = writer.node.meta["val"].dtype
        dtype = made if made.is_floating_point else array.dtype
        if any(isinstance(v, float) for v in numbers.values()) and not dtype.is_floating_point:
            raise writer.unsupported("whole numbers and a fraction together")
        for name, value in numbers.items():
            formula = _replaced(formula, name, literal(value, dtype) if not value < 0 else f"({literal(value, dtype)})")
    return pointwise(writer, formula, operands)


def _replaced(formula, name, text):
    return re.sub(rf"\b{name}\b(?!\()", lambda _: text, formula)


def _binary(name):
    def emit(writer, **given):
        a, b, *rest = given.values()
        if given.get("rounding_mode") is not None:
            raise writer.unsupported(f"rounding_mode={given['rounding_mode']!r}")
        return binary(writer, BINARY[name], a, b)

    return emit


for _name in BINARY:
    emits(_name)(_binary(_name))


def _scaled(alpha, writer):
    return "b" if alpha == 1 else f"{literal(alpha, writer.node.meta['val'].dtype)} * b"


@emits("add")
def add(writer, self, other, alpha=1):
    return binary(writer, f"a + {_scaled(alpha, writer)}", self, other)


@emits("sub", "subtract")
def sub(writer, self, other, alpha=1):
    return binary(writer, f"a - {_scaled(alpha, writer)}", self, other)


@emits("rsub")
def rsub(writer, self, other, alpha=1):
    return binary(writer, "b - a", self, other) if alpha == 1 else _no(writer, "alpha")


def _no(writer, what):
    raise writer.unsupported(f"the argument {what}")


@emits("where")
def where(writer, condition, self, other):
    operands, formula = {"c": condition}, "c ? a : b"
    for name, value in (("a", self), ("b", other)):
        if isinstance(value, Node):
            operands[name] = value
        else:
            formula = _replaced(formula, name, literal(value, writer.node.meta["val"].dtype))
    return pointwise(writer, formula, operands)


@emits("masked_fill")
def masked_fill(writer, self, mask, value):
    number = writer.number(value)
    if number is None:
        return pointwise(writer, "c ? v : x", {"x": self, "c": mask, "v": value})
    return pointwise(writer, f"c ? {literal(number, writer.array(self).dtype)} : x", {"x": self, "c": mask})


# ---- products


def _floats(writer, *arrays):
    for array in arrays:
        if array is not None and array.dtype != cresset.float32:
            raise writer.unsupported(f"{array.dtype}; float32 is written")


def _optional(writer, value):
    return None if value is None else writer.array(value)


def _pointer(array):
    return "NULL" if array is None else array.name


@emits("linear")
def linear(writer, input, weight, bias=None):
    x, w, b = writer.array(input), writer.array(weight), _optional(writer, bias)
    _floats(writer, x, w, b)
    made = writer.new()
    writer.helper("linear")
    text = (
        f"linear({x.name}, {w.name}, {_pointer(b)}, {made.name}, {x.count // x.shape[-1]}, {w.shape[1]}, {w.shape[0]});"
    )
    return writer.step(text, made, [a for a in (x, w, b) if a is not None])


@emits("mm", "bmm", "matmul")
def matmul(writer, self, **given):
    (other,) = given.values()
    a, b = writer.array(self), writer.array(other)
    _floats(writer, a, b)
    made = writer.new()
    writer.helper("matmul")
    first = (1, *a.shape) if len(a.shape) == 1 else a.shape
    second = (*b.shape, 1) if len(b.shape) == 1 else b.shape
    rows, inner, columns = first[-2], first[-1], second[-1]
    batch = list(cresset.broadcast_shapes(first[:-2], second[:-2]))
    names = [f"i{k}" for k in range(len(batch))]
    steps = [broadcast_strides(shape[:-2], batch) for shape in (first, second)]
    at = [
        f"{array.name} + ({place(step, names)}) * {size}" if batch else array.name
        for array, step, size in ((a, steps[0], rows * inner), (b, steps[1], inner * columns))
    ]
    out = f"{made.name} + ({place(strides_of(batch), names)}) * {rows * columns}" if batch else made.name
    call = f"matmul({at[0]}, {at[1]}, {out}, {rows}, {inner}, {columns});"
    return writer.step(loops(batch, call) if batch else call, made, [a, b])


@emits("addmm")
def addmm(writer, self, mat1, mat2, beta=1, alpha=1):
    if (beta, alpha) != (1, 1):
        return _no(writer, "alpha or beta")
    product = matmul(writer, mat1, mat2=mat2)
    made = writer.new()
    bias = writer.array(self)
    own, step = strides_of(made.shape), broadcast_strides(bias.shape, made.shape)
    body = (
        f"{made.name}[{place(own, ['i0', 'i1'])}] = {product.name}[{place(own, ['i0', 'i1'])}] + "
        f"{bias.name}[{place(step, ['i0', 'i1'])}];"
    )
    return writer.step(loops(made.shape, body), made, [product, bias])


@emits("scaled_dot_product_attention")
def attention(writer, query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
    q, k, v = (writer.array(t) for t in (query, key, value))
    _floats(writer, q, k, v)
    if attn_mask is not None or dropout_p or enable_gqa or q.shape[:-2] != k.shape[:-2]:
        raise writer.unsupported("a mask, dropout or shared heads; write it with matmul and softmax")
    made = writer.new()
    writer.helper("attention")
    heads = q.count // (q.shape[-1] * q.shape[-2]) if q.count else 0
    factor = literal(1 / math.sqrt(q.shape[-1]) if scale is None else scale, cresset.float32)
    row_line = f"static float row[{max(k.shape[-2], 1)}];"
    call = (
        f"attention({q.name}, {k.name}, {v.name}, {made.name}, row, {heads}, {q.shape[-2]}, {k.shape[-2]}, "
        f"{q.shape[-1]}, {v.shape[-1]}, {factor}, {int(is_causal)});"
    )
    return writer.step(f"{{\n    {row_line}\n    {call}\n}}", made, [q, k, v])


# ---- convolution and pooling


def _pair(value, dims):
    values = [value] * dims if isinstance(value, int) else list(value)
    values = values * dims if len(values) == 1 else values
    return [*([None] * (2 - dims)), *values]


def _longs(*lists):
    """Small arrays of whole numbers as C literals."""
    return ", ".join("(const long[]){" + ", ".join(map(str, values)) + "}" for values in lists)


@emits("conv1d", "conv2d")
def conv(writer, input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    x, w, b = writer.array(input), writer.array(weight), _optional(writer, bias)
    _floats(writer, x, w, b)
    dims = len(w.shape) - 2
    if isinstance(padding, str) or len(x.shape) != dims + 2:
        raise writer.unsupported(f"padding={padding!r} of an input of shape {x.shape}")
    made = writer.new()
    writer.helper("conv")
    one, zero = [1] * (2 - dims), [0] * (2 - dims)
    stride, dilation = one + _pair(stride, dims)[2 - dims :], one + _pair(dilation, dims)[2 - dims :]
    padding = zero + _pair(padding, dims)[2 - dims :]
    height, width = one + list(x.shape[2:])
    kh, kw = one + list(w.shape[2:])
    oh, ow = one + list(made.shape[2:])
    text = (
        f"conv({x.name}, {w.name}, {_pointer(b)}, {made.name}, {x.shape[0]}, {x.shape[1]}, {height}, {width}, "
        f"{w.shape[0]}, {kh}, {kw}, {oh}, {ow},\n"
        f"     {_longs(stride, padding, dilation)}, {groups});"
    )
    return writer.step(text, made, [a for a in (x, w, b) if a is not None])


def _planes(array, dims):
    total = 1
    for size in array.shape[: len(array.shape) - dims]:
        total *= size
    return total


@emits("max_pool1d", "max_pool2d")
def max_pool(writer, self, kernel_size, stride=(), padding=0, dilation=1, ceil_mode=False):
    x, made = writer.array(self), writer.new()
    _floats(writer, x)
    dims = len(kernel_size) if not isinstance(kernel_size, int) else 2
    kernel, step, pad, gap, height, width, oh, ow = _window(x, made, dims, kernel_size, stride, padding, dilation)
    writer.helper("max_pool")
    text = (
        f"max_pool({x.name}, {made.name}, {_planes(x, dims)}, {height}, {width}, {kernel[0]}, {kernel[1]}, {oh}, "
        f"{ow}, {_longs(step, pad, gap)});"
    )
    return writer.step(text, made, [x])


@emits("avg_pool1d", "avg_pool2d")
def avg_pool(
    writer, self, kernel_size, stride=(), padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None
):
    if divisor_override is not None:
        return _no(writer, "divisor_override")
    x, made = writer.array(self), writer.new()
    _floats(writer, x)
    dims = len(kernel_size) if not isinstance(kernel_size, int) else 2
    kernel, step, pad, _, height, width, oh, ow = _window(x, made, dims, kernel_size, stride, padding, 1)
    writer.helper("avg_pool")
    text = (
        f"avg_pool({x.name}, {made.name}, {_planes(x, dims)}, {height}, {width}, {kernel[0]}, {kernel[1]}, {oh}, "
        f"{ow}, {_longs(step, pad)}, {int(count_include_pad)});"
    )
    return writer.step(text, made, [x])


def _window(x, made, dims, kernel, stride, padding, dilation):
    """Kernel, step, padding, gap, sizes before and after, all of two dimensions."""
    one, zero = [1] * (2 - dims), [0] * (2 - dims)
    kernel = one + _pair(kernel, dims)[2 - dims :]
    step = one + _pair(stride, dims)[2 - dims :] if stride not in ((), [], None) else kernel
    pad, gap = zero + _pair(padding, dims)[2 - dims :], one + _pair(dilation, dims)[2 - dims :]
    height, width = one + list(x.shape[len(x.shape) - dims :])
    oh, ow = one + list(made.shape[len(made.shape) - dims :])
    return kernel, step, pad, gap, height, width, oh, ow


@emits("adaptive_avg_pool1d", "adaptive_avg_pool2d")
def adaptive_avg_pool(writer, self, output_size):
    x, made = writer.array(self), writer.new()
    _floats(writer, x)
    dims = len(output_size)
    one = [1] * (2 - dims)
    height, width = one + list(x.shape[len(x.shape) - dims :])
    oh, ow = one + list(made.shape[len(made.shape) - dims :])
    writer.helper("adaptive_avg_pool")
    return writer.step(
        f"adaptive_avg_pool({x.name}, {made.name}, {_planes(x, dims)}, {height}, {width}, {oh}, {ow});", made, [x]
    )


# ---- normalization and reductions


@emits("batch_norm")
def batch_norm(writer, input, weight, bias, running_mean, running_var, training, momentum, eps, cudnn_enabled):
    if training or running_mean is None:
        raise writer.unsupported("batch normalization in training mode; call eval() before the export")
    known = [None if v is None else writer.known[v] for v in (weight, bias, running_mean, running_var)]
    w, b, mean, var = known
    scale = (1 if w is None else w) / cresset.sqrt(var + eps)
    shift = (0 if b is None else b) - mean * scale
    x, made = writer.array(input), writer.new()
    _floats(writer, x)
    scales, shifts = (
        writer.constant(writer.node.name + "_scale", scale),
        writer.constant(writer.node.name + "_shift", shift),
    )
    channels = x.shape[1]
    size = x.count // (x.shape[0] * channels) if x.count else 0
    index = f"(n * {channels} + c) * {size} + i"
    body = f"{made.name}[{index}] = {x.name}[{index}] * {scales.name}[c] + {shifts.name}[c];"
    return writer.step(loops([x.shape[0], channels, size], body, ["n", "c", "i"]), made, [x])


@emits("layer_norm")
def layer_norm(writer, input, normalized_shape, weight=None, bias=None, eps=1e-5, cudnn_enable=True):
    x, w, b = writer.array(input), _optional(writer, weight), _optional(writer, bias)
    _floats(writer, x, w, b)
    made, width = writer.new(), math.prod(normalized_shape)
    writer.helper("normalize")
    text = (
        f"normalize({x.name}, {_pointer(w)}, {_pointer(b)}, {made.name}, {x.count // max(width, 1)}, {width}, 1, "
        f"{literal(eps, cresset.float32)});"
    )
    return writer.step(text, made, [a for a in (x, w, b) if a is not None])


@emits("group_norm")
def group_norm(writer, input, num_groups, weight=None, bias=None, eps=1e-5, cudnn_enabled=True):
    x, made = writer.array(input), writer.new()
    w, b = _optional(writer, weight), _optional(writer, bias)
    _floats(writer, x, w, b)
    channels, each = x.shape[1], x.shape[1] // num_groups
    size = x.count // (x.shape[0] * channels) if x.count else 0
    writer.helper("normalize")
    at = [f"{array.name} + g * {each}" if array is not None else "NULL" for array in (w, b)]
    part = f"(n * {num_groups} + g) * {each * size}"
    body = (
        f"normalize({x.name} + {part}, {at[0]}, {at[1]}, {made.name} + {part}, 1, {each * size}, {size}, "
        f"{literal(eps, cresset.float32)});"
    )
    return writer.step(loops([x.shape[0], num_groups], body, ["n", "g"]), made, [a for a in (x, w, b) if a is not None])


@emits("softmax", "_softmax", "log_softmax", "_log_softmax")
def softmax(writer, self, dim, **_):
    x, made = writer.array(self), writer.new()
    _floats(writer, x)
    dim %= max(len(x.shape), 1)
    outer, inner = math.prod(x.shape[:dim]), math.prod(x.shape[dim + 1 :])
    writer.helper("softmax")
    logarithm = "log" in writer.node.target._schema.op
    return writer.step(
        f"softmax({x.name}, {made.name}, {outer}, {x.shape[dim] if x.shape else 1}, {inner}, {int(logarithm)});",
        made,
        [x],
    )


REDUCTIONS = {
    "sum": ("0", "result += x", "result"), "mean": ("0", "result += x", "result / {count}"),
    "amax": ("{first}", "if (x > result || x != x) result = x", "result"),
    "amin": ("{first}", "if (x < result || x != x) result = x", "result"),
    "any": ("0", "result = result || x != 0", "result"), "all": ("1", "result = result && x != 0", "result"),
    "prod": ("1", "result *= x", "result"),
}  # fmt: skip


def _reduction(name):
    def emit(writer, self, dim=None, keepdim=False, dtype=None):
        array, made = writer.array(self), writer.new()
        rank = len(array.shape)
        dims = (
            range(rank)
            if dim is None or dim == []
            else [dim % rank]
            if isinstance(dim, int)
            else [d % rank for d in dim]
        )
        kept, reduced = [d for d in range(rank) if d not in dims], list(dims)
        steps = strides_of(array.shape)
        outer = [f"i{d}" for d in kept]
        start, each, end = REDUCTIONS[name]
        base = place([steps[d] for d in kept], outer)
        inner = place([steps[d] for d in reduced], [f"i{d}" for d in reduced])
        count = literal(math.prod(array.shape[d] for d in reduced), made.dtype)
        body = loops(
            [array.shape[d] for d in reduced],
            f"const {array.ctype} x = {array.name}[{base} + {inner}];\n{each};",
            [f"i{d}" for d in reduced],
        )
        body = f"{made.ctype} result = {start.format(first=f'{array.name}[{base}]')};\n{body}\n"
        body += f"{made.name}[{place(strides_of([array.shape[d] for d in kept]), outer)}] = {end.format(count=count)};"
        return writer.step(loops([array.shape[d] for d in kept], body, outer), made, [array])

    return emit


for _name in REDUCTIONS:
    emits(_name)(_reduction(_name))


@emits("argmax", "argmin")
def argmax(writer, self, dim=None, keepdim=False):
    array, made = writer.array(self), writer.new()
    rank = len(array.shape)
    before, size, after = (
        (1, array.count, 1)
        if dim is None
        else (math.prod(array.shape[: dim % rank]), array.shape[dim % rank], math.prod(array.shape[dim % rank + 1 :]))
    )
    sign = ">" if writer.node.target._schema.op == "argmax" else "<"
    body = (
        f"long best = 0;\nfor (long i = 1; i < {size}; ++i)\n"
        f"    if ({array.name}[(o * {size} + i) * {after} + k] {sign} {array.name}[(o * {size} + best) * {after} + "
        f"k]) best = i;\n{made.name}[o * {after} + k] = best;"
    )
    return writer.step(loops([before, after], body, ["o", "k"]), made, [array])
