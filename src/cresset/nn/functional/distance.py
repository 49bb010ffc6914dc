"""How far apart, or how alike in direction, two vectors are."""

import cresset

from ..._native import name_node
from ...ops.autocast import autocast


@autocast(cuda="float32")
def cosine_similarity(x1, x2, dim=1, eps=1e-8):
    """The cosine of the angle between `x1` and `x2` along `dim`; lengths are at least `eps`.

    >>> F.cosine_similarity(cresset.tensor([3.0, 0.0]), cresset.tensor([4.0, 3.0]), dim=0)
    tensor(0.8000)
    """
    dtype = cresset.promote_types(x1.dtype, x2.dtype)
    if not dtype.is_floating_point:
        raise RuntimeError(
            f"cosine_similarity: expected common dtype to be floating point, yet common dtype is {dtype}"
        )
    if eps < 0:
        raise RuntimeError(f"cosine_similarity: eps must be non-negative, got: {eps}")
    x1, x2 = cresset.broadcast_tensors(x1.to(dtype), x2.to(dtype))
    n1, n2 = (x.norm(2, dim, keepdim=True).clone() for x in (x1, x2))
    with cresset.no_grad():  # the gradient sees the norm even where it was raised to eps
        n1.clamp_min_(eps)
        n2.clamp_min_(eps)
    return ((x1 / n1) * (x2 / n2)).sum(dim)


def pairwise_distance(x1, x2, p=2.0, eps=1e-6, keepdim=False):
    """The p-norm of x1 - x2 + eps along the last dimension.

    >>> F.pairwise_distance(cresset.tensor([[0.0, 0.0]]), cresset.tensor([[3.0, 4.0]]))
    tensor([5.0000])
    """
    for place, (name, value) in enumerate((("x1", x1), ("x2", x2)), 1):
        if not isinstance(value, cresset.Tensor):
            raise TypeError(
                f"pairwise_distance(): argument '{name}' (position {place}) must be Tensor, not {type(value).__name__}"
            )
    return name_node((x1 - x2 + eps).norm(float(p), -1, keepdim=keepdim), "NormBackward1")


@autocast(cuda="float32")
def pdist(input, p=2):
    """The p-norm distance between every two rows of `input`: n (n - 1) / 2 numbers.

    >>> F.pdist(cresset.tensor([[0.0], [1.0], [3.0]]))
    tensor([1., 3., 2.])
    """
    return cresset.pdist(input, p)
