"""Reading and writing parts of a distributed tensor by `[...]`."""

import cresset

from ...ops.registry import _operators
from .placement_types import Replicate

_index, _index_put_, _slice = _operators["index"], _operators["index_put_"], _operators["slice"]


def _is_places(item):
    return isinstance(item, (cresset.Tensor, list, range)) or (
        not isinstance(item, (int, slice, tuple, type(None), type(...))) and hasattr(item, "__array__")
    )


def _basic(tensor, index):
    """The view by numbers, slices and new dimensions, and the places for the dimensions that are left."""
    items = list(index) if isinstance(index, tuple) else [index]
    used = sum(
        item.ndim if isinstance(item, cresset.Tensor) and item.dtype == cresset.bool else 1
        for item in items
        if item is not None and item is not Ellipsis and not isinstance(item, bool)
    )
    if used > tensor.ndim:
        raise IndexError(f"too many indices for tensor of dimension {tensor.ndim}")
    if any(item is Ellipsis for item in items):
        at = next(i for i, item in enumerate(items) if item is Ellipsis)
        items[at : at + 1] = [slice(None)] * (tensor.ndim - used)
    places, dim, mesh = [], 0, tensor.device_mesh
    for item in items:
        if item is None:
            tensor = tensor.unsqueeze(dim)
            places.append(None)
        elif isinstance(item, bool):
            raise IndexError("a DTensor cannot be indexed by True or False; use unsqueeze, or a mask")
        elif isinstance(item, int):
            tensor = tensor.select(dim, item)
            continue
        elif isinstance(item, slice):
            if item != slice(None):
                tensor = _slice(tensor, dim, item.start, item.stop, 1 if item.step is None else item.step)
            places.append(None)
        elif _is_places(item):
            if not isinstance(item, cresset.Tensor):
                from .dtensor import DTensor

                item = DTensor.from_local(cresset.as_tensor(item), mesh, [Replicate()] * mesh.ndim)
            places.append(item)
            dim += item.ndim - 1 if item.dtype == cresset.bool else 0
        else:
            raise TypeError(f"a DTensor cannot be indexed by {type(item).__name__}")
        dim += 1
    return tensor, places


def read(tensor, index):
    """tensor[index]."""
    view, places = _basic(tensor, index)
    if all(place is None for place in places):
        return view.view_as(view) if view is tensor else view
    return _index(view, places)


def write(tensor, index, value):
    """tensor[index] = value."""
    view, places = _basic(tensor, index)
    if view._local_tensor.untyped_storage().data_ptr() != tensor._local_tensor.untyped_storage().data_ptr():
        raise RuntimeError(
            f"a part of a DTensor cannot be assigned where its dimension is cut: placements {tensor.placements}; "
            "redistribute it first, or write to its to_local()"
        )
    if all(place is None for place in places):
        if isinstance(value, cresset.Tensor):
            view.copy_(value.to(view.dtype))
        else:
            view.fill_(value)
        return
    if not isinstance(value, cresset.Tensor):
        value = cresset.tensor(value, dtype=tensor.dtype, device=tensor.device)
    _index_put_(view, places, value)
