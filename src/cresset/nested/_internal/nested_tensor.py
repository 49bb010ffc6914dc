"""Nested tensors of layout torch.jagged from their parts, unchecked, as other libraries make them."""

import cresset

from ..sizes import RaggedSize, number_of
from ..tensor import NestedTensor, from_items

__all__ = [
    "NestedTensor", "get_tensor_symint", "jagged_from_list", "jagged_from_tensor_and_lengths", "nested_from_padded",
    "nested_view_from_values_offsets", "nested_view_from_values_offsets_lengths",
]  # fmt: skip


def get_tensor_symint(tensor, *, coeff=1):
    """The symbol of the ragged dimension that has these offsets, times `coeff`."""
    return RaggedSize(number_of(tensor), coeff)


def jagged_from_list(tensors, offsets, dtype=None, device=None):
    """A nested tensor of components, and its offsets: those given, if there are any."""
    new = from_items([t.to(device=device, dtype=dtype) for t in tensors], cresset.jagged)
    if offsets is not None:
        new._offsets = offsets
    return new, new._offsets


def nested_view_from_values_offsets(values, offsets, ragged_idx=1, min_seqlen=None, max_seqlen=None):
    """A nested tensor on packed values, which it shares."""
    return nested_view_from_values_offsets_lengths(values, offsets, None, ragged_idx, min_seqlen, max_seqlen)


def nested_view_from_values_offsets_lengths(values, offsets, lengths, ragged_idx=1, min_seqlen=None, max_seqlen=None):
    """The same, with gaps between the components."""
    bounds = {"min_seqlen": min_seqlen, "max_seqlen": max_seqlen}
    known = {name: bound for name, bound in bounds.items() if bound is not None}
    new = NestedTensor(values, offsets, lengths=lengths, _ragged_idx=ragged_idx, _metadata_cache=known)
    new.__dict__["_source"] = values if values._base is None else values._base
    return new


def jagged_from_tensor_and_lengths(tensor, starts, lengths):
    """A nested tensor of a part of each row of a dense one; its offsets and lengths (None where there are no gaps)."""
    new = cresset.nested.narrow(tensor, 1, starts, lengths, layout=cresset.jagged)
    return new, new._offsets, new._lengths


def nested_from_padded(padded, offsets, ragged_idx=1, min_seqlen=None, max_seqlen=None, sum_S=None):
    """A nested tensor of the first elements of each row of a dense one; `offsets` say how many."""
    if ragged_idx != 1:
        raise RuntimeError(f"nested_from_padded(): only ragged_idx=1 is supported, got {ragged_idx}")
    packed = cresset._padded_dense_to_jagged_forward(padded, [offsets], sum_S)
    return nested_view_from_values_offsets(packed, offsets, 1, min_seqlen, max_seqlen)
