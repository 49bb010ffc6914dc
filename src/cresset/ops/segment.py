"""Reductions over segments of a dimension, given by their lengths or by where they start."""

import cresset

from .registry import function

_IDENTITY = {"sum": 0.0, "mean": 0.0, "prod": 1.0, "max": float("-inf"), "min": float("inf")}
_SCATTERED = {"sum": "sum", "mean": "mean", "prod": "prod", "max": "amax", "min": "amin"}


@function
def segment_reduce(data, reduce, *, lengths=None, indices=None, offsets=None, axis=0, unsafe=False, initial=None):
    """Reduce each segment along `axis` to one element: by "sum", "mean", "prod", "max" or "min".

    Args:
        lengths: of the segments; its leading dimensions are those of `data` before `axis`.
        offsets: where the segments start, and where the last one ends, instead.
        unsafe: do not check that the segments cover the dimension.
        initial: takes part in every segment; what an empty segment gives (else 0, nan, 1, -inf, inf in the order
            above).

    >>> cresset.segment_reduce(cresset.tensor([1.0, 2.0, 3.0, 4.0]), "sum", lengths=cresset.tensor([1, 3]))
    tensor([1., 9.])
    """
    if reduce not in _SCATTERED:
        raise RuntimeError(f"segment_reduce: reduce should be one of {sorted(_SCATTERED)}, got {reduce!r}")
    if indices is not None:
        raise RuntimeError("segment_reduce(): indices based reduction is not supported yet.")
    if (lengths is None) == (offsets is None):
        raise RuntimeError("segment_reduce(): Either lengths or offsets must be defined, and not both.")
    axis = axis + data.ndim if axis < 0 else axis
    borders = lengths if offsets is None else offsets
    if borders.ndim != axis + 1:
        raise RuntimeError(
            f"segment_reduce(): Expected lengths or offsets to have {axis + 1} dimensions for axis={axis}, got "
            f"{borders.ndim}"
        )
    if borders.shape[:-1] != data.shape[:axis]:
        raise RuntimeError(
            f"segment_reduce(): lengths or offsets of shape {tuple(borders.shape)} do not fit data of shape "
            f"{tuple(data.shape)}"
        )
    size = data.size(axis)
    if offsets is None:
        if not unsafe and lengths.numel() and int(lengths.min()) < 0:
            raise RuntimeError(f"lengths contains negative value {int(lengths.min())}")
        if not unsafe and lengths.numel() and int(lengths.max()) > size:  # sums of such lengths could wrap
            raise RuntimeError(
                f"segment_reduce(): Expected all rows of lengths along axis to sum to data.size(axis) = {size}, got a "
                f"length {int(lengths.max())}"
            )
        ends = lengths.cumsum(-1)
        starts = ends - lengths
    else:
        starts, ends = offsets[..., :-1], offsets[..., 1:]
    if not unsafe and ends.numel() and bool((ends[..., -1] != size).any()):
        raise RuntimeError(
            f"segment_reduce(): Expected all rows of lengths along axis to sum to data.size(axis) = {size}"
        )
    count = ends.size(-1)
    places = cresset.arange(size, device=data.device).expand(*ends.shape[:-1], size).contiguous()
    which = cresset.searchsorted(
        ends.contiguous(), places, right=True
    )  # the segment of each place; `count` past the last
    which = which.masked_fill(places < starts[..., :1], count) if count else which
    shape = (*data.shape[:axis], count + 1, *data.shape[axis + 1 :])
    index = which.reshape(*which.shape, *[1] * (data.ndim - axis - 1)).expand(data.shape)
    begun = data.new_full(shape, _IDENTITY[reduce] if initial is None else initial)
    kind = "sum" if reduce == "mean" else _SCATTERED[reduce]
    reduced = begun.scatter_reduce(axis, index, data, kind, include_self=True).narrow(axis, 0, count)
    if reduce in ("max", "min", "prod") and data.requires_grad:
        return _with_gradient_of_nan(reduce, reduced, begun, data, axis, index)
    if reduce != "mean":
        return reduced
    members = (ends - starts).to(data.dtype).reshape(*ends.shape, *[1] * (data.ndim - axis - 1))
    if initial is not None:  # PyTorch adds it to the sum and does not count it; a segment without members keeps it
        return cresset.where(members > 0, reduced / members.clamp_min(1), reduced)
    return reduced / members


def _with_gradient_of_nan(reduce, reduced, begun, data, axis, index):
    """The results where a nan is in the segment: the gradient of the largest or smallest element goes to the nans, in
    equal parts; that of a product to a single nan is the product of the others.
    """
    is_nan, segments = data.isnan(), reduced.size(axis)
    nothing = cresset.zeros_like(begun)
    count = nothing.scatter_add(axis, index, is_nan.to(data.dtype)).narrow(axis, 0, segments)
    nans = nothing.scatter_add(axis, index, cresset.where(is_nan, data, 0)).narrow(axis, 0, segments)
    if reduce == "prod":
        others = begun.scatter_reduce(axis, index, data.masked_fill(is_nan, 1), "prod").narrow(axis, 0, segments)
        return cresset.where(count > 0, nans * others.where(count < 2, float("nan")), others)
    return cresset.where(count > 0, nans / count, reduced)


function(segment_reduce, name="_segment_reduce")  # PyTorch's older name
