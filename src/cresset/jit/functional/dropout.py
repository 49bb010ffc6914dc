"""Dropout of whole channels for selu networks; noise for choices that can be learned."""

from typing import Optional

import cresset as torch
from cresset import Tensor
from cresset.nn import functional as F

aten = torch.ops.aten


def feature_alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    if p < 0.0 or p > 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    return (
        aten.feature_alpha_dropout_(input, p, training) if inplace else aten.feature_alpha_dropout(input, p, training)
    )


def gumbel_softmax(logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> Tensor:
    noise = -torch.empty_like(logits).exponential_().log()
    soft = torch.softmax((logits + noise) / tau, dim)
    if hard:
        index = soft.max(dim, keepdim=True)[1]
        return torch.zeros_like(logits).scatter_(dim, index, 1.0) - soft.detach() + soft
    return soft


def softmax(input: Tensor, dim: Optional[int] = None, _stacklevel: int = 3, dtype: Optional[int] = None) -> Tensor:
    return torch.softmax(input, dim if dim is not None else implicit(input.dim()), dtype)


def log_softmax(input: Tensor, dim: Optional[int] = None, _stacklevel: int = 3, dtype: Optional[int] = None) -> Tensor:
    return torch.log_softmax(input, dim if dim is not None else implicit(input.dim()), dtype)


def implicit(dims: int) -> int:
    """The dimension that softmax takes where none is given."""
    return 0 if dims == 0 or dims == 1 or dims == 3 else 1


STANDS_FOR = {
    F: {
        "feature_alpha_dropout": feature_alpha_dropout,
        "gumbel_softmax": gumbel_softmax,
        "softmax": softmax,
        "log_softmax": log_softmax,
    }
}
