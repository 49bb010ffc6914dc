"""Nested tensors: batches of tensors that differ in size. PyTorch's torch.nested.

A nested tensor is an interpreted one: see Note [Interpreted tensors] in cresset/tensors/interpreted.py.
"""

import cresset

from . import layers, reducing, rules  # noqa: F401  they enter their rules
from .tensor import NestedTensor, from_items, nested, padded

__all__ = [
    "as_nested_tensor",
    "masked_select",
    "narrow",
    "nested_tensor",
    "nested_tensor_from_jagged",
    "to_padded_tensor",
]


def _layout(layout):
    layout = cresset.strided if layout is None else layout
    if layout not in (cresset.strided, cresset.jagged):
        raise RuntimeError(f"Specified layout is unsupported for nested tensors: {layout}")
    return layout


def nested_tensor(tensor_list, *, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False):
    """A nested tensor with a copy of each of `tensor_list`: a leaf of its own.

    Args:
        tensor_list: tensors, or nested lists of numbers, with the same number of dimensions.
        layout: torch.strided, or torch.jagged, in which the components may differ in their first dimension alone.

    >>> nt = cresset.nested.nested_tensor([cresset.ones(2), cresset.zeros(1)])
    >>> nt.to_padded_tensor(-1.0)
    tensor([[ 1.,  1.],
            [ 0., -1.]])
    """
    if isinstance(tensor_list, NestedTensor):
        tensor_list = tensor_list.unbind()
    if not isinstance(tensor_list, (list, tuple)):
        raise TypeError(
            "nested_tensor(): Expected first argument to be a list / tuple of tensors or of numbers, got "
            f"{type(tensor_list).__name__}"
        )
    if layout == cresset.jagged:
        _check_components([t for t in tensor_list if isinstance(t, cresset.Tensor)], dtype)
    parts = [
        t.detach().to(dtype=dtype, device=device)
        if isinstance(t, cresset.Tensor)
        else cresset.tensor(t, dtype=dtype, device=device)
        for t in tensor_list
    ]
    if dtype is None and parts and any(t.dtype != parts[0].dtype for t in parts):
        parts = [t.to(parts[0].dtype) for t in parts]
    new = from_items(parts, _layout(layout))
    if len(parts) == 1:
        new._become(new._with(new._recorded.clone()))
    if pin_memory:
        new._become(new._with(new._recorded.pin_memory()))
    return new.requires_grad_() if requires_grad else new


def _check_components(tensors, dtype):
    if dtype is None and len({t.dtype for t in tensors}) > 1:
        raise RuntimeError("When constructing a nested tensor, all tensors in list must have the same dtype")


def as_nested_tensor(ts, dtype=None, device=None, layout=None):
    """A nested tensor of `ts`, a list of tensors or a dense batch; gradients flow back to them.

    >>> x = cresset.ones(2, requires_grad=True)
    >>> cresset.nested.as_nested_tensor([x, x], layout=cresset.jagged).sum().backward()
    >>> x.grad
    tensor([2., 2.])
    """
    if isinstance(ts, NestedTensor):
        if layout is None or layout == ts.layout:
            return ts if dtype is None else ts.to(dtype)
        return from_items(ts.unbind(), _layout(layout))
    if not isinstance(ts, (list, tuple, cresset.Tensor)):
        raise TypeError(
            "as_nested_tensor(): Expected first argument to be a tensor or a list / tuple of tensors, got "
            f"{type(ts).__name__}"
        )
    if isinstance(ts, cresset.Tensor):
        if ts.dim() < 2:
            raise RuntimeError(f"as_nested_tensor(): Expected tensor argument to have dim() > 1, got {ts.dim()}")
        ts = ts.unbind(0)
    return from_items([cresset.as_tensor(t, dtype=dtype, device=device) for t in ts], _layout(layout))


def _check_lengths(lengths, least, most):
    """Compare what a caller says of the lengths with what they are."""
    if (least is not None and least > min(lengths)) or (most is not None and most < max(lengths)):
        raise RuntimeError(
            f"nested_tensor_from_jagged(): min_seqlen={least} and max_seqlen={most} do not fit lengths from "
            f"{min(lengths)} to {max(lengths)}"
        )


def nested_tensor_from_jagged(values, offsets=None, lengths=None, jagged_dim=None, min_seqlen=None, max_seqlen=None):
    """A nested tensor of layout torch.jagged on packed `values`, which it shares; gradients flow back to them.

    Args:
        offsets: where each component begins, and where the last ends.
        lengths: how long each is, when there are gaps between them, or in place of offsets.
        jagged_dim: the ragged dimension of the result; 1 by default.
        min_seqlen, max_seqlen: bounds of the lengths, which are checked.

    >>> nt = cresset.nested.nested_tensor_from_jagged(cresset.arange(5.0), cresset.tensor([0, 2, 5]))
    >>> [t.tolist() for t in nt.unbind()]
    [[0.0, 1.0], [2.0, 3.0, 4.0]]
    """
    if offsets is None:
        if lengths is None:
            raise RuntimeError("nested_tensor_from_jagged(): At least one of offsets or lengths is required.")
        offsets, lengths = cresset.cat([lengths.new_zeros(1), lengths.cumsum(0)]), None
    ragged = 1 if jagged_dim is None else jagged_dim
    if ragged < 1:
        raise ValueError(f"nested_tensor_from_jagged(): Expected jagged_dim >=1, but got {ragged}.")
    if ragged > values.dim():
        raise RuntimeError(
            f"nested_tensor_from_jagged(): Expected jagged_dim of at most {values.dim()}, but got {ragged}."
        )
    source = values if values._base is None else values._base
    places = offsets.tolist()
    if lengths is None and len(places) > 1:
        _check_lengths([b - a for a, b in zip(places, places[1:], strict=False)], min_seqlen, max_seqlen)
    elif lengths is not None and lengths.numel():
        _check_lengths(lengths.tolist(), min_seqlen, max_seqlen)
    size = values.shape[ragged - 1]
    if lengths is not None:
        if lengths.numel() != offsets.numel() - 1:
            raise AssertionError(
                f"offsets and lengths batch sizes must match: offsets.shape[0] - 1 = {offsets.numel() - 1}, "
                f"lengths.shape[0] = {lengths.numel()}"
            )
        ends = (offsets[:-1] + lengths).tolist()
        if any(not 0 <= begin <= end <= size for begin, end in zip(places, ends, strict=False)):
            raise RuntimeError(
                f"nested_tensor_from_jagged(): offsets {places} and lengths {lengths.tolist()} go beyond the {size} "
                "values"
            )
    elif (
        not places
        or places[0] != 0
        or places[-1] > size
        or any(a > b for a, b in zip(places, places[1:], strict=False))
    ):
        raise RuntimeError(
            f"nested_tensor_from_jagged(): offsets must begin with 0, not decrease and end within the {size} values, "
            f"got {places}"
        )
    elif places[-1] < size:
        values = values.narrow(ragged - 1, 0, places[-1])
    if not values.requires_grad:
        values = values.detach()  # requires_grad_() of the whole is none of the given tensor's
    new = nested(values, cresset.jagged, offsets, ragged, lengths)
    new.__dict__["_source"] = source
    bounds = {"min_seqlen": min_seqlen, "max_seqlen": max_seqlen}
    new._metadata_cache.update({name: bound for name, bound in bounds.items() if bound is not None})
    return new


def narrow(tensor, dim, start, length, layout=None):
    """A nested tensor of a part of each row of a dense one.

    Args:
        dim: 1, the dimension from which parts are taken.
        start, length: of each part: a number, or a tensor with one for each row.

    >>> x, start, length = cresset.arange(6.0).reshape(2, 3), cresset.tensor([0, 1]), cresset.tensor([1, 2])
    >>> nt = cresset.nested.narrow(x, 1, start, length, layout=cresset.jagged)
    >>> [t.tolist() for t in nt.unbind()]
    [[0.0], [4.0, 5.0]]
    """
    if dim != 1:
        raise RuntimeError(f"jagged layout only supports dim=1, got {dim}")
    rows = tensor.shape[0]
    starts = [int(start)] * rows if isinstance(start, int) else start.tolist()
    lengths = [int(length)] * rows if isinstance(length, int) else length.tolist()
    parts = [row.narrow(0, s, n) for row, s, n in zip(tensor.unbind(0), starts, lengths, strict=True)]
    if _layout(layout) == cresset.strided or not tensor.is_contiguous():
        return from_items(parts, _layout(layout))
    size = tensor.shape[1]  # one after the other in memory, and so in one packed tensor
    begins = cresset.tensor([i * size + s for i, s in enumerate(starts)], dtype=cresset.int64)
    counts = cresset.tensor(lengths, dtype=cresset.int64)
    packed = tensor.flatten(0, 1)
    ends = begins + counts
    offsets = cresset.cat([begins, ends[-1:]]) if rows else begins.new_zeros(1)
    if bool((ends[:-1] == begins[1:]).all()):
        first, last = int(offsets[0]), int(offsets[-1])
        new = nested(packed[first:last], cresset.jagged, offsets - first, 1)
    else:
        new = nested(packed, cresset.jagged, offsets, 1, counts)
    new.__dict__["_source"] = tensor if tensor._base is None else tensor._base
    return new


def masked_select(tensor, mask):
    """A nested tensor of layout torch.jagged with the elements of each row where the mask is True.

    >>> mask = cresset.tensor([[True, True], [False, True]])
    >>> nt = cresset.nested.masked_select(cresset.arange(4).reshape(2, 2), mask)
    >>> [t.tolist() for t in nt.unbind()]
    [[0, 1], [3]]
    """
    if tensor.layout != cresset.strided:
        raise RuntimeError(f"masked_select: expected a strided tensor, got {tensor.layout}")
    mask = mask.expand(tensor.shape)
    counts = mask.sum(-1).reshape(-1)
    return nested_tensor_from_jagged(tensor.masked_select(mask), cresset.cat([counts.new_zeros(1), counts.cumsum(0)]))


def to_padded_tensor(input, padding, output_size=None, out=None):
    """A dense tensor in which all components have one size, filled up with `padding`.

    >>> nt = cresset.nested.nested_tensor([cresset.ones(1), cresset.ones(2)])
    >>> cresset.nested.to_padded_tensor(nt, 0.0)
    tensor([[1., 0.],
            [1., 1.]])
    """
    if not isinstance(input, NestedTensor):
        raise RuntimeError("to_padded_tensor: expected a nested tensor; a dense one has nothing to fill up")
    result = padded(input, padding, output_size)
    return result if out is None else out.copy_(result)
