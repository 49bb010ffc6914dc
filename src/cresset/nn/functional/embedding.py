"""Rows of a table, one by one (embedding), summed in bags (embedding_bag), or as unit vectors (one_hot)."""

import math
import warnings

import cresset

from ..._native import name_node
from ...autograd.forward_ad import _set_fwd_grad_enabled
from ...ops.batches import all_samples


def _row_number(padding_idx, weight):
    """`padding_idx` counted from the front; refused outside of the table."""
    if padding_idx >= weight.size(0):
        raise AssertionError(f"Padding_idx must be within num_embeddings, got {padding_idx} for {weight.size(0)} rows")
    if padding_idx < -weight.size(0):
        raise AssertionError(f"Padding_idx must be within num_embeddings, got {padding_idx} for {weight.size(0)} rows")
    return padding_idx % weight.size(0)


@cresset.no_grad()
def _limit_rows(weight, indices, max_norm, norm_type):
    """Scale the rows of `weight` that `indices` names to a norm of at most `max_norm`, in place. That is not
    differentiated, in either direction.
    """
    named = indices.reshape(-1).unique()
    max_norm = float(max_norm)
    with _set_fwd_grad_enabled(False):
        rows = weight[named]
        norms = rows.norm(norm_type, 1, keepdim=True)
        scale = cresset.where(norms > max_norm, max_norm / (norms + 1e-7), cresset.ones_like(norms))
        weight[named] = rows * scale


def embedding(input, weight, padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, sparse=False):
    """The rows of `weight` that `input` names.

    Args:
        input: row numbers, any shape.
        weight: the table, (rows, features).
        padding_idx: a row that gets no gradient.
        max_norm: scale the named rows to at most this norm first; changes `weight` in place.
        scale_grad_by_freq: divide the gradient of a row by how often it is named.

    >>> F.embedding(cresset.tensor([2, 0]), cresset.tensor([[1.0], [2.0], [3.0]]))
    tensor([[3.],
            [1.]])
    """
    padding_idx = -1 if padding_idx is None else _row_number(padding_idx, weight)
    if max_norm is not None:
        _limit_rows(weight, input.contiguous(), max_norm, norm_type)
    return cresset.embedding(weight, input, padding_idx, scale_grad_by_freq, sparse)


def embedding_bag(
    input, weight, offsets=None, max_norm=None, norm_type=2, scale_grad_by_freq=False, mode="mean", sparse=False,
    per_sample_weights=None, include_last_offset=False, padding_idx=None,
):  # fmt: skip
    """The sum, mean or maximum of the rows of `weight` named in each bag.

    Args:
        input: row numbers: a bag a row (2-D), or all bags one after the other (1-D).
        offsets: where each bag of a 1-D input begins.
        mode: "sum", "mean" or "max".
        per_sample_weights: a factor for each entry of `input`; only for "sum".
        include_last_offset: the last offset is where the last bag ends.
        padding_idx: a row that is left out.

    >>> F.embedding_bag(cresset.tensor([[0, 2]]), cresset.tensor([[1.0], [2.0], [3.0]]), mode="sum")
    tensor([[4.]])
    """
    if weight.dtype is cresset.int64 and input.is_floating_point():
        warnings.warn(
            "Argument order of nn.functional.embedding_bag was changed. Usage `embedding_bag(weight, input, ...)` is "
            "deprecated, and should now be `embedding_bag(input, weight, ...)`.",
            stacklevel=2,
        )
        weight, input = input, weight
    if per_sample_weights is not None and input.shape != per_sample_weights.shape:
        raise ValueError(
            f"embedding_bag: If per_sample_weights ({list(per_sample_weights.shape)}) is not None, "
            f"then it must have the same shape as the input ({list(input.shape)})"
        )
    if weight.ndim != 2:
        raise ValueError(f"weight has to be a 2D Tensor, but got Tensor of dimension {weight.ndim}")
    if input.ndim == 2:
        if offsets is not None:
            raise ValueError(
                "if input is 2D, then offsets has to be None, as input is treated is a mini-batch of fixed length "
                "sequences. "
                f"However, found offsets of type {type(offsets)}"
            )
        (bags, length), starts = input.shape, None
        input = input.reshape(-1)
        if per_sample_weights is not None:
            per_sample_weights = per_sample_weights.reshape(-1)
    elif input.ndim == 1:
        if offsets is None:
            raise ValueError("offsets has to be a 1D Tensor but got None")
        if offsets.ndim != 1:
            raise ValueError("offsets has to be a 1D Tensor")
        bags = offsets.numel() - bool(include_last_offset)
        if bags < 0:
            raise RuntimeError("embedding_bag: include_last_offset: number of offset should be at least 1, got 0")
        length = None
        if bags > 0 and offsets.device.type == "cpu":
            first, last = offsets[0].item(), offsets[-1].item()
            if first != 0:
                raise RuntimeError(
                    "embedding_bag: offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start "
                    "from "
                    f"position 0. However, got {first}"
                )
            if last > input.numel():
                raise RuntimeError(
                    f"embedding_bag: offsets[-1] can not be greater than input's length {input.numel()}; got {last}"
                )
            falls = offsets[1:] < offsets[:-1]
            if falls.any():
                at = int(falls.int().argmax()) + 1
                raise RuntimeError(
                    f"embedding_bag: offsets must not be negative and must not decrease, but offsets[{at}] is "
                    f"{offsets[at]} "
                    f"after {offsets[at - 1]}"
                )
        if include_last_offset:
            starts = offsets.long()
            input = input[: offsets[-1]]
            if per_sample_weights is not None:
                per_sample_weights = per_sample_weights[: offsets[-1]]
        else:
            starts = cresset.cat([offsets.long(), offsets.new_full([1], input.numel(), dtype=cresset.int64)])
    else:
        raise ValueError(f"input has to be 1D or 2D Tensor, but got Tensor of dimension {input.ndim}")
    if mode not in ("sum", "mean", "max"):
        raise ValueError("mode has to be one of sum, mean or max")
    if mode == "max" and (scale_grad_by_freq or sparse):
        option = "scaling the gradient by the frequency" if scale_grad_by_freq else "sparse weights"
        raise ValueError(f"max mode does not support {option}")
    if per_sample_weights is not None and mode != "sum":
        raise NotImplementedError(
            "embedding_bag: per_sample_weights was not None. per_sample_weights is only supported for mode='sum' "
            f"(got mode='{mode}')."
        )
    if per_sample_weights is not None and weight.device.type == "cpu" and per_sample_weights.dtype != weight.dtype:
        raise RuntimeError(
            "embedding_bag: expected weight to have the same type as per_sample_weights, but they have "
            f"{weight.dtype} and {per_sample_weights.dtype}"
        )
    count = weight.size(0)
    if padding_idx is not None and not -count <= padding_idx < count:
        raise RuntimeError(
            f"embedding_bag: padding_idx must be within the number of embeddings, -{count} through {count - 1}, but "
            f"got {padding_idx}"
        )
    if max_norm is not None:
        _limit_rows(weight, input, max_norm, norm_type)
    padded, weighted = padding_idx is not None, per_sample_weights is not None
    plain = not (padded or weighted or mode == "max" or scale_grad_by_freq or sparse or length == 0)
    try:
        if plain and weight.is_floating_point() and weight.dtype.itemsize > 1:
            places = input.long()
            return cresset._embedding_bags(
                weight, places if length is None else places.view(bags, length), starts, mode == "mean"
            )
        if length is None:
            bag = cresset.searchsorted(starts, cresset.arange(input.numel(), device=input.device), right=True) - 1
        else:
            bag = cresset.arange(bags, device=input.device).repeat_interleave(length)
        if padded:
            kept = input != padding_idx % count
            input, bag = input[kept], bag[kept]
            if weighted:
                per_sample_weights = per_sample_weights[kept]
        rows = cresset.embedding(weight, input.long(), -1, scale_grad_by_freq, sparse)
    except IndexError:
        wrong = input[(input < 0) | (input >= count)][0]
        raise RuntimeError(
            f"embedding_bag: Expected idx >= 0 && idx < num_embeddings but found idx to be {wrong}"
        ) from None
    if weight.dtype in (cresset.float16, cresset.bfloat16):
        rows = rows.float()
    if weighted:
        rows = rows * per_sample_weights.unsqueeze(1).to(rows.dtype)
    return name_node(_of_bags(rows, bag, bags, mode).to(weight.dtype), "EmbeddingBagBackward0")


def _of_bags(rows, bag, bags, mode):
    if mode == "max":
        return _largest_of_bags(rows, bag, bags)
    total = rows.new_zeros(bags, rows.size(1)).index_add(0, bag, rows)
    if mode == "sum":
        return total
    return total / cresset.bincount(bag, minlength=bags).clamp_min(1).unsqueeze(1).to(total.dtype)


def _largest_of_bags(rows, bag, bags):
    """The first of the largest, which alone has a gradient. Nothing is larger than a nan that comes first, and no later
    nan is larger than anything.
    """
    count, width = rows.shape
    if not count:
        return rows.new_zeros(bags, width).index_add(0, bag, rows)  # which depends on the table all the same
    values, places = rows.detach(), bag.unsqueeze(1).expand(count, width)
    unknown = values != values
    known = values.masked_fill(unknown, -math.inf) if values.is_floating_point() else values
    largest = known.new_zeros(bags, width).scatter_reduce(0, places, known, "amax", include_self=False)
    at = cresset.arange(count, device=rows.device)
    is_largest = (known == largest.gather(0, places)) & ~unknown
    none = at.new_full((bags, width), count)
    first = none.scatter_reduce(0, places, cresset.where(is_largest, at.unsqueeze(1), count), "amin")
    begin = none.scatter_reduce(0, places, at.unsqueeze(1).expand(count, width), "amin")
    chosen = cresset.where(unknown.gather(0, begin.clamp_max(count - 1)), begin, first)
    return rows.gather(0, chosen.clamp_max(count - 1)).masked_fill(begin == count, 0)


def one_hot(tensor, num_classes=-1):
    """A vector of zeros with a one at the place that each element names.

    Args:
        num_classes: the length of the vectors; one more than the largest element if -1.

    >>> F.one_hot(cresset.tensor([2, 0]), 3)
    tensor([[0, 0, 1],
            [1, 0, 0]])
    """
    if tensor.dtype is not cresset.int64:
        raise RuntimeError(f"one_hot is only applicable to index tensor of type LongTensor, got {tensor.dtype}.")
    if tensor.numel() == 0:
        if num_classes <= 0:
            raise RuntimeError("one_hot: Can not infer total number of classes from empty tensor.")
        return tensor.new_empty((*tensor.shape, num_classes))
    if tensor.device.type == "meta":
        if num_classes == -1:
            raise NotImplementedError("one_hot: the number of classes is not known for a meta tensor; pass num_classes")
    elif num_classes == -1 or tensor.device.type == "cpu":  # a device reports a class that is none by itself, later
        low, high = (bound.item() for bound in cresset.aminmax(all_samples(tensor)))
        if low < 0:
            raise RuntimeError(f"one_hot: Class values must be non-negative, got {low}.")
        if num_classes == -1:
            num_classes = high + 1
        elif high >= num_classes:
            raise RuntimeError(f"one_hot: Class values must be smaller than num_classes, got {high} of {num_classes}.")
    return tensor.new_zeros((*tensor.shape, num_classes)).scatter_(-1, tensor.unsqueeze(-1), 1)
