"""New tensors: documentation of the operators that make them, and functions made of those.

Where nothing else is said, `dtype` is the default dtype and `device` the default device; `requires_grad=True` makes a
leaf that wants a gradient; `out=` takes the result.
"""

import cresset

from .check import only_strided
from .copy import batch_of_converted
from .dimensions import sizes
from .registry import batch, function, onnx, operator, placement

# ---------------------------------------------------------------- empty and filled

operator("empty", """A tensor of the given size whose elements are whatever the memory held.

    >>> cresset.empty(2, 3).shape
    torch.Size([2, 3])
    """)  # fmt: skip
operator("empty_strided", """A tensor of the given size and strides whose elements are whatever the memory held.

    >>> cresset.empty_strided((2, 3), (1, 2)).stride()
    (1, 2)
    """)  # fmt: skip
operator("zeros", """A tensor of zeros.

    >>> cresset.zeros(2, 3)
    tensor([[0., 0., 0.],
            [0., 0., 0.]])
    """)  # fmt: skip
operator("ones", """A tensor of ones.

    >>> cresset.ones(3, dtype=cresset.int64)
    tensor([1, 1, 1])
    """)  # fmt: skip
operator("full", """A tensor filled with `fill_value`, whose kind decides the dtype if none is given.

    >>> cresset.full((2, 2), 7)
    tensor([[7, 7],
            [7, 7]])
    """)  # fmt: skip
operator("scalar_tensor", """A 0-d tensor; of the default dtype, whatever the number is, if none is given.

    >>> cresset.scalar_tensor(3)
    tensor(3.)
    """)  # fmt: skip

_LIKE = "The size, dtype, device and order of memory are those of `input` unless given otherwise."
operator("empty_like", f"""A tensor shaped like `input` whose elements are whatever the memory held. {_LIKE}""")
operator("zeros_like", f"""Zeros in the shape of `input`. {_LIKE}

    >>> cresset.zeros_like(cresset.tensor([1, 2]))
    tensor([0, 0])
    """)  # fmt: skip
operator("ones_like", f"""Ones in the shape of `input`. {_LIKE}

    >>> cresset.ones_like(cresset.tensor([5.0, 6.0]))
    tensor([1., 1.])
    """)  # fmt: skip
operator("full_like", f"""`fill_value` in the shape of `input`. {_LIKE}

    >>> cresset.full_like(cresset.tensor([1, 2]), 9)
    tensor([9, 9])
    """)  # fmt: skip

_NEW = "The dtype and device are those of this tensor unless given otherwise."
operator("new_empty", f"""A tensor of the given size whose elements are whatever the memory held. {_NEW}""")
operator(
    "new_empty_strided",
    f"""A tensor of the given size and strides whose elements are whatever the memory held. {_NEW}""",
)
operator("new_zeros", f"""A tensor of zeros. {_NEW}

    >>> cresset.tensor([1, 2]).new_zeros(3)
    tensor([0, 0, 0])
    """)  # fmt: skip
operator("new_ones", f"""A tensor of ones. {_NEW}

    >>> cresset.tensor([True]).new_ones(2)
    tensor([True, True])
    """)  # fmt: skip
operator("new_full", f"""A tensor filled with `fill_value`. {_NEW}

    >>> cresset.tensor([0.5]).new_full((2,), 3)
    tensor([3., 3.])
    """)  # fmt: skip

fill_ = operator("fill_", """Make every element `value`, a number or a 0-d tensor, in place.

    >>> cresset.zeros(2).fill_(3)
    tensor([3., 3.])
    """)  # fmt: skip
fill = operator("fill", """A copy of `input` in which every element is `value`, a number or a 0-d tensor.

    >>> cresset.fill(cresset.zeros(2), 3)
    tensor([3., 3.])
    """)  # fmt: skip


@fill_.derivative
@fill.derivative
def _(grad):
    yield lambda: cresset.zeros_like(grad)
    yield lambda: grad.sum()


zero_ = operator("zero_", """Make every element zero, in place.

    >>> cresset.ones(2).zero_()
    tensor([0., 0.])
    """)  # fmt: skip


@zero_.derivative
def _(grad):
    yield lambda: cresset.zeros_like(grad)


# ---------------------------------------------------------------- ranges

operator("arange", """The numbers from `start` (0) up to but without `end`, `step` (1) apart.

    The dtype is int64 if all three are integers, otherwise the default dtype.

    >>> cresset.arange(4)
    tensor([0, 1, 2, 3])
    >>> cresset.arange(1, 2, 0.5)
    tensor([1.0000, 1.5000])
    """)  # fmt: skip
operator(
    "range",
    """The numbers from `start` to `end`, both included, `step` apart; `arange` is what Python programs expect.""",
)
operator("linspace", """`steps` numbers in equal distances from `start` to `end`, both included.

    >>> cresset.linspace(0, 1, 5)
    tensor([0.0000, 0.2500, 0.5000, 0.7500, 1.0000])
    """)  # fmt: skip
operator("logspace", """`base` to the powers of `steps` numbers in equal distances from `start` to `end`, both included.

    >>> cresset.logspace(0, 2, 3)
    tensor([  1.,  10., 100.])
    """)  # fmt: skip


# ---------------------------------------------------------------- matrices and indices

operator("eye", """Ones on the diagonal of a matrix with `n` rows and `m` (or `n`) columns, zeros elsewhere.

    >>> cresset.eye(2)
    tensor([[1., 0.],
            [0., 1.]])
    """)  # fmt: skip
operator("tril_indices", """The row and column indices of what is on and below a diagonal of a `row` × `col` matrix.

    >>> cresset.tril_indices(2, 2)
    tensor([[0, 1, 1],
            [0, 0, 1]])
    """)  # fmt: skip
operator("triu_indices", """The row and column indices of what is on and above a diagonal of a `row` × `col` matrix.

    >>> cresset.triu_indices(2, 2)
    tensor([[0, 0, 1],
            [0, 1, 1]])
    """)  # fmt: skip


@function
def vander(x, N=None, increasing=False):
    """The matrix whose columns are powers of `x`, from N - 1 down to 0 (or up, if `increasing`).

    Args:
        N: the number of columns; the number of elements of `x` if None.

    >>> cresset.vander(cresset.tensor([1, 2, 3]))
    tensor([[1, 1, 1],
            [4, 2, 1],
            [9, 3, 1]])
    """
    if x.ndim != 1:
        raise RuntimeError(f"vander: x must be a one-dimensional tensor, got {x.ndim} dimensions")
    columns = x.size(0) if N is None else N
    if columns < 0:
        raise RuntimeError(f"vander: N must be non-negative, got {N}")
    x = x.to(cresset.promote_types(x.dtype, cresset.int64))
    powers = x.new_ones(x.size(0), min(columns, 1))
    if columns > 1:
        powers = cresset.cat([powers, x.unsqueeze(1).expand(x.size(0), columns - 1).cumprod(1)], 1)
    return powers if increasing else powers.flip((1,))


@function
def empty_permuted(
    size, physical_layout, *, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False
):
    """A tensor without definite elements, whose dimensions lie in memory in the order `physical_layout`.

    >>> cresset.empty_permuted((2, 3), (1, 0)).stride()
    (1, 2)
    """
    only_strided("empty_permuted", layout)
    size, order = sizes(size), sizes(physical_layout)
    if len(size) != len(order):
        raise RuntimeError(
            "empty_permuted: Number of dimensions in size does not match the length of the physical_layout; "
            f"i.e. len(size) = {len(size)} is not equal to len(physical_layout) = {len(order)}"
        )
    for dim in order:
        if not 0 <= dim < len(size):
            raise RuntimeError(
                "empty_permuted: Dimension out of range (expected to be between 0 and "
                f"{len(size) - 1}, but got {dim} in {order})"
            )
        if order.count(dim) > 1:
            raise RuntimeError(f"empty_permuted: Duplicate dim not allowed, got {order}")
    memory = cresset.empty([size[dim] for dim in order], dtype=dtype, device=device, pin_memory=pin_memory)
    return memory.permute([order.index(dim) for dim in range(len(size))]).requires_grad_(requires_grad)


# ---------------------------------------------------------------- complex numbers

complex = operator("complex", """Complex numbers from their real and imaginary parts.

    >>> cresset.complex(cresset.tensor([1.0]), cresset.tensor([2.0]))
    tensor([1.+2.j])
    """)  # fmt: skip


@complex.derivative
def _(grad):
    yield lambda: cresset.real(grad)
    yield lambda: cresset.imag(grad)


polar = operator("polar", """Complex numbers from their absolute values and angles.

    >>> cresset.polar(cresset.tensor([2.0]), cresset.tensor([0.0]))
    tensor([2.+0.j])
    """, autocast={"cpu": "float32"}, batch="pointwise")  # fmt: skip


@polar.derivative
def _(grad, abs, angle):
    """With z = abs exp(i angle): dz / d(abs) is exp(i angle), dz / d(angle) is i z."""
    real, imag, cosine, sine = cresset.real(grad), cresset.imag(grad), angle.cos(), angle.sin()
    yield lambda: real * cosine + imag * sine
    yield lambda: abs * (imag * cosine - real * sine)


# --- inside vmap ---

batch("zeros_like", "ones_like", "full_like", "empty_like")(batch_of_converted)
batch("zero_")("leading")
batch("complex")("pointwise")


@batch("fill")
def _(call):
    return cresset.full_like(call.full(), 0).copy_(
        call.padded(1, call.rank()) if call.dims[1] is not None else call.args[1]
    )


@batch("new_zeros", "new_ones", "new_empty", "new_full")
def _(call):
    """A fresh tensor for each sample, so that it can be written to."""
    return call.run(call.args[0], (call.size, *call.args[1]), *call.args[2:])


@batch("new_empty_strided")
def _(call):
    size, stride, *rest = call.args[1:]
    length = 1 + sum((s - 1) * t for s, t in zip(size, stride, strict=True)) if all(size) else 0
    return call.run(call.args[0], (call.size, *size), (length, *stride), *rest)


# --- as ONNX ---


@onnx("zeros", "empty", "new_zeros", "new_empty", "zeros_like", "empty_like")
def _(g):
    return g.filled(0)


@onnx("ones", "new_ones", "ones_like")
def _(g):
    return g.filled(1)


@onnx("full", "new_full", "full_like")
def _(g, fill_value):
    return g.filled(fill_value)


@onnx("scalar_tensor")
def _(g, s):
    return g.number(s, g.result.dtype)


@onnx("arange")
def _(g, end, start=0, step=1):
    dtype = g.result.dtype
    wide = (
        cresset.int64
        if not dtype.is_floating_point
        else cresset.float32
        if dtype in (cresset.float16, cresset.bfloat16)
        else dtype
    )
    start = 0 if start is None else start
    found = g.op("Range", g.number(start, wide), g.number(end, wide), g.number(1 if step is None else step, wide))
    return g.cast(found, wide, dtype)


@onnx("linspace")
def _(g, start, end, steps):
    dtype = g.result.dtype
    places = g.op("Range", g.number(0, cresset.int64), g.number(steps, cresset.int64), g.number(1, cresset.int64))
    width = g.op("Sub", g.number(end, dtype), g.number(start, dtype))
    intervals = g.number(steps - 1 if steps != 1 else 1, dtype)
    return g.op(
        "Add", g.number(start, dtype), g.op("Div", g.op("Mul", g.cast(places, cresset.int64, dtype), width), intervals)
    )


@onnx("eye")
def _(g, n, m):
    shape = g.sizes([n, n if m is None else m])
    zeros = g.op("Expand", g.number(0.0, cresset.float32), shape)
    return g.cast(g.op("EyeLike", zeros), cresset.float32, g.result.dtype)


@onnx("fill_", "fill")
def _(g, input, value):
    return g.op("Expand", g.number(value, input.dtype), g.sizes(input.shape))


@onnx("zero_")
def _(g, input):
    return g.op("Expand", g.number(0, input.dtype), g.sizes(input.shape))


# How they lie on several processes: words of distributed/tensor/words.py.
placement("zeros_like", "ones_like", "full_like", "empty_like")("like")
placement("fill", "fill_", "zero_")("filled")
placement("new_zeros", "new_ones", "new_empty", "new_full")("new")
placement("complex")("pointwise")
