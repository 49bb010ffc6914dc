"""Divide tensors over devices and bring them together again, wherever they stand inside tuples, lists and dictionaries.

Made of `chunk`, `to` and `cat`, so that gradients find their way back through both.
"""

import warnings

import cresset

__all__ = ["gather", "scatter", "scatter_kwargs"]


def _is_namedtuple(value):
    return isinstance(value, tuple) and hasattr(value, "_asdict") and hasattr(value, "_fields")


def accelerators(devices):
    """Devices given as numbers, names or devices; the CPU is refused."""
    kind = cresset.accelerator.current_accelerator()
    found = [
        cresset.device(kind.type if kind else "cuda", d) if isinstance(d, int) else cresset.device(d) for d in devices
    ]
    for device in found:
        if device.type == "cpu":
            raise ValueError(f"Expected a non cpu device, but got: {device}")
    return found


def scatter(inputs, target_gpus, dim=0):
    """Divide each tensor along `dim` into as many pieces as there are devices; other values are repeated.

    Args:
        inputs: a tensor, or tuples, lists and dictionaries that hold some.
        target_gpus: the devices, one for each piece.

    Returns: a list with what each device gets, in the form of `inputs`.

    >>> nn.parallel.scatter(("rate", 0.5), [0, 1])
    [('rate', 0.5), ('rate', 0.5)]
    """
    devices = accelerators(target_gpus)

    def divided(value):
        if isinstance(value, cresset.Tensor):
            return tuple(
                piece.to(device) for piece, device in zip(value.chunk(len(devices), dim), devices, strict=False)
            )
        if _is_namedtuple(value):
            return [type(value)(*items) for items in zip(*map(divided, value), strict=False)]
        if isinstance(value, (tuple, list)) and value:
            pieces = zip(*map(divided, value), strict=False)
            return list(pieces) if isinstance(value, tuple) else [list(items) for items in pieces]
        if isinstance(value, dict) and value:
            return [type(value)(items) for items in zip(*map(divided, value.items()), strict=False)]
        return [value] * len(devices)

    return divided(inputs)


def scatter_kwargs(inputs, kwargs, target_gpus, dim=0):
    """Divide positional and named arguments; the shorter of the two is filled with empty ones."""
    inputs = scatter(inputs, target_gpus, dim) if inputs else []
    kwargs = scatter(kwargs, target_gpus, dim) if kwargs else []
    count = max(len(inputs), len(kwargs))
    inputs.extend(() for _ in range(count - len(inputs)))
    kwargs.extend({} for _ in range(count - len(kwargs)))
    return tuple(inputs), tuple(kwargs)


def gather(outputs, target_device, dim=0):
    """Bring what several devices made to one: tensors are joined along `dim`, in the form of the first output.

    Args:
        outputs: one for each device.
        target_device: where the result goes; the CPU may be given, too.

    >>> nn.parallel.gather([None, None], 0) is None
    True
    """

    def joined(values):
        first = values[0]
        if isinstance(first, cresset.Tensor):
            return _joined(values, target_device, dim)
        if first is None:
            return None
        if isinstance(first, dict):
            if any(len(value) != len(first) for value in values):
                raise ValueError("All dicts must have the same number of keys")
            return type(first)((key, joined([value[key] for value in values])) for key in first)
        parts = (joined(items) for items in zip(*values, strict=True))
        return type(first)._make(parts) if _is_namedtuple(first) else type(first)(parts)

    return joined(outputs)


def _joined(tensors, target, dim):
    if any(tensor.device.type == "cpu" for tensor in tensors):
        raise AssertionError("Gather function not implemented for CPU tensors")
    target = cresset.device("cpu") if target in (-1, "cpu") else accelerators([target])[0]
    if dim == 0 and all(tensor.dim() == 0 for tensor in tensors):
        warnings.warn(
            (
                "Was asked to gather along dimension 0, but all input tensors were scalars; will instead unsqueeze and "
                "return a vector."
            ),
            stacklevel=2,
        )
        tensors = [tensor.unsqueeze(0) for tensor in tensors]
    return cresset.cat([tensor.to(target) for tensor in tensors], dim)
