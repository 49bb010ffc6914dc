"""What the distributions share: broadcasting of parameters, probabilities and logits, lazy properties, triangles of
matrices.
"""

import functools

import cresset

from ..overrides import is_tensor_like

__all__ = [
    "broadcast_all",
    "logits_to_probs",
    "clamp_probs",
    "probs_to_logits",
    "lazy_property",
    "tril_matrix_to_vec",
    "vec_to_tril_matrix",
]

euler_constant = 0.57721566490153286060  # Euler Mascheroni Constant
_NUMBER = (int, float, bool)


def broadcast_all(*values):
    """The values as tensors of one shape. A number takes dtype and device of the first tensor among them.

    >>> [x.tolist() for x in cresset.distributions.utils.broadcast_all(1.0, cresset.tensor([2.0, 3.0]))]
    [[1.0, 1.0], [2.0, 3.0]]
    """
    for value in values:
        if not (is_tensor_like(value) or isinstance(value, _NUMBER)):
            raise ValueError(
                "Input arguments must all be instances of Number, torch.Tensor or objects implementing "
                f"__torch_function__, got a {type(value).__name__}"
            )
    like = next((v for v in values if isinstance(v, cresset.Tensor)), None)
    options = {"dtype": cresset.get_default_dtype()} if like is None else {"dtype": like.dtype, "device": like.device}
    return cresset.broadcast_tensors(*(v if is_tensor_like(v) else cresset.tensor(v, **options) for v in values))


def _standard_normal(shape, dtype, device):
    """Normal random numbers of mean 0 and variance 1."""
    return cresset.empty(shape, dtype=dtype, device=device).normal_()


def _sum_rightmost(value, dim):
    """The sum over the last `dim` dimensions."""
    return value if dim == 0 else value.reshape(value.shape[:-dim] + (-1,)).sum(-1)


def logits_to_probs(logits, is_binary=False):
    """Probabilities from logits: by softmax over the last dimension, or by sigmoid for yes-or-no ones.

    >>> cresset.distributions.utils.logits_to_probs(cresset.zeros(2))
    tensor([0.5000, 0.5000])
    """
    return cresset.sigmoid(logits) if is_binary else cresset.softmax(logits, -1)


def clamp_probs(probs):
    """The probabilities kept away from 0 and 1 by one machine epsilon."""
    eps = cresset.finfo(probs.dtype).eps
    return probs.clamp(min=eps, max=1 - eps)


def probs_to_logits(probs, is_binary=False):
    """Logits from probabilities, the inverse of `logits_to_probs`.

    >>> cresset.distributions.utils.probs_to_logits(cresset.tensor([0.5]), is_binary=True)
    tensor([0.])
    """
    probs = clamp_probs(probs)
    return probs.log() - cresset.log1p(-probs) if is_binary else probs.log()


class lazy_property:
    """An attribute that is computed when it is first read, with gradients recorded, and then kept."""

    def __init__(self, wrapped):
        self.wrapped = wrapped
        functools.update_wrapper(self, wrapped)

    def __get__(self, instance, obj_type=None):
        if instance is None:
            return self
        with cresset.enable_grad():
            value = self.wrapped(instance)
        setattr(instance, self.wrapped.__name__, value)
        return value


def _triangle(size, diag, device):
    """True on and below diagonal `diag` of a square matrix."""
    return cresset.ones(size, size, dtype=cresset.bool, device=device).tril(diag)


def tril_matrix_to_vec(mat, diag=0):
    """The elements on and below diagonal `diag` of the last two dimensions, row by row.

    >>> cresset.distributions.utils.tril_matrix_to_vec(cresset.tensor([[1, 2], [3, 4]]))
    tensor([1, 3, 4])
    """
    size = mat.shape[-1]
    if not -size <= diag < size:
        raise ValueError(f"tril_matrix_to_vec: diag must be between {-size} and {size - 1}, got {diag}")
    return mat[..., _triangle(size, diag, mat.device)]


def vec_to_tril_matrix(vec, diag=0):
    """The lower triangular matrix whose elements on and below diagonal `diag` are `vec`, row by row.

    >>> cresset.distributions.utils.vec_to_tril_matrix(cresset.tensor([1.0, 3.0, 4.0]))
    tensor([[1., 0.],
            [3., 4.]])
    """
    # A triangle of side n and diagonal d has n (n + 1) / 2 + d n - (d (d + 1) / 2 if d > 0) elements; solved for n:
    length = vec.shape[-1]
    size = (-(1 + 2 * diag) + ((1 + 2 * diag) ** 2 + 8 * length + 4 * abs(diag) * (diag + 1)) ** 0.5) / 2
    if round(size) - size > cresset.finfo(vec.dtype).eps:
        raise ValueError(
            f"vec_to_tril_matrix: {length} elements do not fill the triangle of a square matrix below diagonal {diag}"
        )
    size = round(size)
    mat = vec.new_zeros(vec.shape[:-1] + (size, size))
    mat[..., _triangle(size, diag, vec.device)] = vec
    return mat
