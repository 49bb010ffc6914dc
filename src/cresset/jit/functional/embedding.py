"""Rows by their numbers."""

from typing import Optional

import cresset as torch
from cresset import Tensor
from cresset.nn import functional as F

aten = torch.ops.aten


def shorten(weight: Tensor, input: Tensor, max_norm: float, norm_type: float) -> None:
    """Scale the rows that are named and longer than `max_norm` to that length."""
    with torch.no_grad():
        index = input.reshape(-1)
        rows = weight.index_select(0, index)
        length = torch.norm(rows, norm_type, [1], True)
        factor = torch.where(length > max_norm, max_norm / (length + 1e-7), torch.ones_like(length))
        weight.index_copy_(0, index, rows * factor)


def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: Optional[int] = None,
    max_norm: Optional[float] = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    row = -1
    if padding_idx is not None:
        if padding_idx >= weight.size(0) or padding_idx < -weight.size(0):
            raise AssertionError("Padding_idx must be within num_embeddings")
        row = padding_idx if padding_idx >= 0 else weight.size(0) + padding_idx
    if max_norm is not None:
        input = input.contiguous()
        shorten(weight, input, max_norm, norm_type)
    return aten.embedding(weight, input, row, scale_grad_by_freq, sparse)


def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Optional[Tensor] = None,
    max_norm: Optional[float] = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Optional[Tensor] = None,
    include_last_offset: bool = False,
    padding_idx: Optional[int] = None,
) -> Tensor:
    if input.dim() == 2:
        if offsets is not None:
            raise ValueError(
                "if input is 2D, then offsets has to be None, as input is treated is a mini-batch of fixed length "
                "sequences"
            )
        offsets = torch.arange(0, input.numel(), input.size(1), dtype=input.dtype, device=input.device)
        input = input.reshape(-1)
        if per_sample_weights is not None:
            per_sample_weights = per_sample_weights.reshape(-1)
    elif input.dim() != 1:
        raise ValueError(f"input has to be 1D or 2D Tensor, but got Tensor of dimension {input.dim()}")
    if offsets is None:
        raise ValueError("offsets has to be a 1D Tensor but got None")
    if mode == "sum":
        number = 0
    elif mode == "mean":
        number = 1
    elif mode == "max":
        number = 2
    else:
        raise ValueError("mode has to be one of sum, mean or max")
    if max_norm is not None:
        shorten(weight, input, max_norm, norm_type)
    return aten.embedding_bag(
        weight, input, offsets, scale_grad_by_freq, number, sparse, per_sample_weights, include_last_offset, padding_idx
    )[0]


STANDS_FOR = {F: {"embedding": embedding, "embedding_bag": embedding_bag}}
