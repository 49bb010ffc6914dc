"""The cross product of vectors of three elements."""

import cresset

from .dimensions import wrap_dim
from .registry import function, operator


@function(method=True, out=True, autocast={"cuda": "promote"})
def cross(input, other, dim=None):
    """The cross product of vectors of three elements, along `dim` (by default the first dimension of size 3).

    >>> cresset.cross(cresset.tensor([1, 0, 0]), cresset.tensor([0, 1, 0]))
    tensor([0, 0, 1])
    """
    if input.ndim != other.ndim:
        raise RuntimeError(
            "cross: inputs must have the same number of dimensions, "
            f"got shapes {list(input.shape)} and {list(other.shape)}"
        )
    if input.dtype != other.dtype:
        raise RuntimeError(f"cross: expected scalar type {input.dtype} but found {other.dtype}")
    if dim is None:
        if 3 not in input.shape:
            raise RuntimeError(f"cross: no dimension of size 3 in input of shape {list(input.shape)}")
        dim = input.shape.index(3)
    else:
        dim = wrap_dim(dim, input.ndim, "cross")
    if input.size(dim) != 3 or other.size(dim) != 3:
        raise RuntimeError(
            f"cross: inputs dimension {dim} must have length 3. Got {input.size(dim)} and {other.size(dim)}"
        )
    return cresset.linalg_cross(input, other, dim=dim)


linalg_cross = operator(
    "linalg_cross",
    """The cross product of vectors of three elements along `dim`; the other dimensions broadcast: see `linalg.cross`.

    >>> cresset.linalg_cross(cresset.tensor([1, 0, 0]), cresset.tensor([0, 1, 0]))
    tensor([0, 0, 1])
    """,
)


@linalg_cross.derivative
def _(grad, input, other, dim):
    """With c = a x b: da = b x dc and db = dc x a, of conjugates."""
    yield lambda: cresset.linalg_cross(other.conj(), grad, dim=dim)
    yield lambda: cresset.linalg_cross(grad, input.conj(), dim=dim)


@linalg_cross.batch
def _(call):
    rank = call.rank()
    dim = wrap_dim(call.args[2], rank, "linalg.cross") - rank  # counted from the end, where batches change nothing
    return call.run(call.full(0), call.full(1), dim)


@linalg_cross.onnx
def _(g, input, other, dim):
    axis = dim % len(input.shape)

    def turned(x, *places):
        return g.op("Gather", x, g.ints(places), axis=axis)

    first = g.op("Mul", turned(input, 1, 2, 0), turned(other, 2, 0, 1))
    return g.op("Sub", first, g.op("Mul", turned(input, 2, 0, 1), turned(other, 1, 2, 0)))
