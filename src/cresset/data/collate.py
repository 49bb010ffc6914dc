"""How samples become a batch: tensors are stacked, numbers become a tensor, containers are walked."""

import collections.abc
import copy
import re
import sys

import cresset

np_str_obj_array_pattern = re.compile(r"[SaUO]")

default_collate_err_msg_format = (
    "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {}"
)


def _is_numpy(value):
    return type(value).__module__ == "numpy"


def default_convert(data):
    """NumPy arrays and numbers inside `data` as tensors; everything else as it is.

    >>> default_convert([1, (2.0, "text")])
    [1, [2.0, 'text']]
    """
    if isinstance(data, cresset.Tensor):
        return data
    if _is_numpy(data):
        if hasattr(data, "dtype") and np_str_obj_array_pattern.search(data.dtype.str):
            return data
        return cresset.as_tensor(data)
    if isinstance(data, collections.abc.Mapping):
        return _like(data, {key: default_convert(data[key]) for key in data})
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*(default_convert(value) for value in data))
    if isinstance(data, tuple):
        return [default_convert(value) for value in data]
    if isinstance(data, collections.abc.Sequence) and not isinstance(data, (str, bytes)):
        return _like(data, [default_convert(value) for value in data])
    return data


def _like(original, made):
    """`made` as the container type of `original`, where that can be built; else as the plain dict or list."""
    try:
        if isinstance(original, collections.abc.MutableMapping):
            clone = copy.copy(original)
            clone.update(made)
            return clone
        if isinstance(original, collections.abc.MutableSequence):
            clone = copy.copy(original)
            for i, value in enumerate(made):
                clone[i] = value
            return clone
        return type(original)(made)
    except (TypeError, IndexError):
        return made


def collate(batch, *, collate_fn_map=None):
    """One batch from a list of samples, with a table of functions for the types of their elements."""
    first = batch[0]
    kind = type(first)
    if collate_fn_map is not None:
        if kind in collate_fn_map:
            return collate_fn_map[kind](batch, collate_fn_map=collate_fn_map)
        for known, function in collate_fn_map.items():
            if isinstance(first, known):
                return function(batch, collate_fn_map=collate_fn_map)
    if isinstance(first, collections.abc.Mapping):
        made = {key: collate([sample[key] for sample in batch], collate_fn_map=collate_fn_map) for key in first}
        return _like(first, made)
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return kind(*(collate(column, collate_fn_map=collate_fn_map) for column in zip(*batch, strict=True)))
    if isinstance(first, collections.abc.Sequence):
        if any(len(sample) != len(first) for sample in batch):
            raise RuntimeError(
                f"each element in list of batch should be of equal size; they are {sorted({len(s) for s in batch})}"
            )
        columns = [collate(column, collate_fn_map=collate_fn_map) for column in zip(*batch, strict=True)]
        return columns if isinstance(first, tuple) else _like(first, columns)
    raise TypeError(default_collate_err_msg_format.format(kind))


def _empty_for_batch(shape, dtype):
    """Where a stacked batch goes: in a worker into memory that the parent sees, else None."""
    from . import workers

    return workers.shared_tensor(shape, dtype)


def collate_tensor_fn(batch, *, collate_fn_map=None):
    first = batch[0]
    if first.requires_grad or first.layout != cresset.strided or first.device.type != "cpu":
        return cresset.stack(batch, 0)
    out = _empty_for_batch((len(batch), *first.shape), first.dtype)
    return cresset.stack(batch, 0, out=out) if out is not None else cresset.stack(batch, 0)


def collate_numpy_array_fn(batch, *, collate_fn_map=None):
    if np_str_obj_array_pattern.search(batch[0].dtype.str):
        raise TypeError(default_collate_err_msg_format.format(batch[0].dtype))
    return collate_tensor_fn([cresset.as_tensor(array) for array in batch])


def collate_numpy_scalar_fn(batch, *, collate_fn_map=None):
    import numpy as np

    return cresset.as_tensor(np.asarray(batch))


def collate_float_fn(batch, *, collate_fn_map=None):
    return cresset.tensor(batch, dtype=cresset.float64)


def collate_int_fn(batch, *, collate_fn_map=None):
    return cresset.tensor(batch)


def collate_str_fn(batch, *, collate_fn_map=None):
    return batch


default_collate_fn_map = {
    cresset.Tensor: collate_tensor_fn,
    float: collate_float_fn,
    int: collate_int_fn,
    str: collate_str_fn,
    bytes: collate_str_fn,
}


def default_collate(batch):
    """Stack the tensors, arrays and numbers of the samples along a new first dimension, inside dicts, tuples and lists.

    >>> default_collate([(cresset.ones(2), "a"), (cresset.zeros(2), "b")])
    [tensor([[1., 1.],
            [0., 0.]]), ('a', 'b')]
    """
    if "numpy" in sys.modules and sys.modules["numpy"].ndarray not in default_collate_fn_map:
        import numpy as np

        default_collate_fn_map[np.ndarray] = collate_numpy_array_fn
        default_collate_fn_map[np.number] = default_collate_fn_map[np.bool_] = collate_numpy_scalar_fn
    return collate(batch, collate_fn_map=default_collate_fn_map)
