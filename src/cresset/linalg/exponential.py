"""The exponential function of matrices."""

import math

import cresset

from .._native import name_node
from ..autograd.function import BatchFunction
from ..ops.batches import all_samples
from .calling import with_tensors
from .checking import check_floating, check_square_shape, is_without_values

# The numerator of Padé's approximant of order 13, lowest power first; the denominator alternates the signs.
_PADE = [
    math.factorial(26 - k) * math.factorial(13) / (math.factorial(26) * math.factorial(k) * math.factorial(13 - k))
    for k in range(14)
]
_RADIUS = 5.37  # the norm up to which the approximant is exact in double precision (Higham 2005)
# Each squaring doubles the error. Of matrices of at most so many rows, whose products are a small part of the work, the
# exponential is computed in double precision: it is then right to the last bit of single precision.
_FEW_ROWS = 64
_WIDE = {cresset.float32: cresset.float64, cresset.complex64: cresset.complex128}


def _exponential(A):
    """An approximant of A / 2ˢ, squared s times; s is chosen for each matrix of the batch."""
    if is_without_values(A):
        return cresset.empty_like(A, memory_format=cresset.contiguous_format)
    radius, approximant = (_RADIUS, _pade) if A.dtype in (cresset.float64, cresset.complex128) else _OF_SINGLES
    norms = A.abs().sum(-2).amax(-1)
    halvings = (norms / radius).log2().ceil().clamp(min=0).nan_to_num(0, 0, 0)
    least, most = cresset.stack(all_samples(halvings).aminmax()).tolist()
    result = approximant(A * cresset.exp2(-halvings).to(A.dtype).unsqueeze(-1).unsqueeze(-1))
    for step in range(int(most)):
        if step < least:
            result = result @ result
            continue
        again = (halvings > step).unsqueeze(-1).unsqueeze(-1)
        result = cresset.where(again, result @ result, result)
    return result


def _taylor(A):
    """The series up to A¹² / 12!, by five products: cubic polynomials, joined by A⁴."""
    identity = cresset.eye(A.size(-1), dtype=A.dtype, device=A.device)
    A2 = A @ A
    A3, A4 = A2 @ A, A2 @ A2
    powers = (identity, A, A2, A3)

    def cubic(first, more=()):
        """The sum of Aᵏ / (first + k)! for k up to 3."""
        return sum(power / math.factorial(first + k) for k, power in enumerate((*powers, *more)))

    result = cubic(8, (A4,))
    for first in (4, 0):
        result = cubic(first) + A4 @ result
    return result


def _pade(scaled):
    """Padé's approximant of order 13."""
    identity = cresset.eye(scaled.size(-1), dtype=scaled.dtype, device=scaled.device)
    A2 = scaled @ scaled
    A4 = A2 @ A2
    A6 = A4 @ A2
    c = _PADE

    def polynomial(first):
        """The sum of c[first + 2 i] A²ⁱ."""
        low = c[first] * identity + c[first + 2] * A2 + c[first + 4] * A4 + c[first + 6] * A6
        high = c[first + 8] * A2 + c[first + 10] * A4 + (c[first + 12] * A6 if first + 12 <= 13 else 0)
        return low + A6 @ high

    even, odd = polynomial(0), scaled @ polynomial(1)
    return cresset.linalg.solve_ex(even - odd, even + odd).result


# The norm up to which the series is exact in single precision (Bader, Blanes and Casas 2019). Padé's approximant goes
# further, but its equations take longer than products, on a GPU ten times as long.
_OF_SINGLES = (1.46, _taylor)


class Exponential(BatchFunction):
    """exp(A) = I + A + A²/2 + …"""

    _node_name = "LinalgMatrixExpBackward0"

    @staticmethod
    def forward(ctx, A):
        ctx.save_for_backward(A)
        wide = _WIDE.get(A.dtype, A.dtype) if A.size(-1) <= _FEW_ROWS else A.dtype
        return _exponential(A.to(wide)).to(A.dtype).contiguous()

    @staticmethod
    def backward(ctx, grad):
        """gA is the upper right block of exp([[Aᴴ, g], [0, Aᴴ]]).

        It is linear in g, which is first brought near the size of A: the block of a large g would be halved and squared
        more often than A needs, and each squaring doubles the error.
        """
        (A,) = ctx.saved_tensors
        n = A.size(-1)
        with cresset.no_grad():
            sizes = (M.abs().amax((-2, -1), keepdim=True) for M in (grad, A))
            exponent = cresset.sub(*(size.log2().nan_to_num(0, 0, 0) for size in sizes)).floor()
            scale = cresset.exp2(exponent).to(A.dtype)
        top = cresset.cat([A.mH, grad / scale], -1)
        below = cresset.cat([cresset.zeros_like(A), A.mH], -1)
        return Exponential.apply(cresset.cat([top, below], -2))[..., :n, n:] * scale


@with_tensors
def matrix_exp(A):
    """The exponential of a matrix: I + A + A²/2 + A³/6 + …

    >>> cresset.linalg.matrix_exp(cresset.tensor([[0.0, 1.0], [0.0, 0.0]]))
    tensor([[1., 1.],
            [0., 1.]])
    """
    check_floating("linalg.matrix_exp", A, low_precision=True)
    check_square_shape("linalg.matrix_exp", A)
    if not A.numel():
        return name_node(A.clone(), Exponential._node_name)
    if A.shape[-1] == 1:
        return name_node(A.exp(), Exponential._node_name)
    if A.dtype in (cresset.float16, cresset.bfloat16):
        return name_node(Exponential.apply(A.to(cresset.float32)).to(A.dtype), Exponential._node_name)
    return Exponential.apply(A)
