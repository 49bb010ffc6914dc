"""Copies of tensors between devices: to all of them, from all of them, in pieces. torch.cuda.comm and
torch.nn.parallel.comm.
"""

import cresset

from .. import _native
from .absent import require
from .devices import current_device, device_index

__all__ = ["broadcast", "broadcast_coalesced", "gather", "reduce_add", "reduce_add_coalesced", "scatter"]


def _place(device):
    """A device given as a number, a name or a device; the CPU is -1."""
    if device == -1 or (not isinstance(device, int) and _native.device(device).type == "cpu"):
        return _native.device("cpu")
    return _native.device("cuda", device_index(device))


def _on_devices(who, tensors):
    for tensor in tensors:
        if not tensor.is_cuda:
            raise TypeError(f"{who}: expected tensors on CUDA devices, got one on '{tensor.device}'")


def broadcast(tensor, devices=None, *, out=None):
    """Copies of a tensor on several devices; the device that has it keeps the tensor itself.

    Args:
        devices: where to, the first one included.
        out: tensors to write into, instead of `devices`.
    """
    require()
    if (devices is None) == (out is None):
        raise RuntimeError(f"broadcast: exactly one of devices and out is given, got devices={devices} and out={out}")
    if out is not None:
        return tuple(target.copy_(tensor, non_blocking=True) for target in out)
    return tuple(tensor.to(_place(device), non_blocking=True) for device in devices)


def broadcast_coalesced(tensors, devices, buffer_size=10485760):
    """`broadcast` of several tensors: for each device a list with all of them.

    Args:
        buffer_size: accepted; copies are asynchronous anyway.
    """
    require()
    _on_devices("broadcast_coalesced", tensors)
    return [[tensor.to(_place(device), non_blocking=True) for tensor in tensors] for device in devices]


def reduce_add(inputs, destination=None):
    """The sum of tensors of one shape from several devices.

    Args:
        destination: where the sum lies; the current device if it is None.
    """
    require()
    place = _native.device("cuda", current_device() if destination is None else device_index(destination))
    _on_devices("reduce_add", inputs)
    shape = inputs[0].shape
    for number, tensor in enumerate(inputs):
        if tensor.shape != shape:
            raise ValueError(f"input {number} has invalid size: got {tuple(tensor.shape)}, but expected {tuple(shape)}")
    total = inputs[0].to(place, copy=True)
    for tensor in inputs[1:]:
        total += tensor.to(place, non_blocking=True)
    return total


def reduce_add_coalesced(inputs, destination=None, buffer_size=10485760):
    """`reduce_add` of several tensors, given as one list for each device.

    Args:
        buffer_size: accepted.
    """
    return tuple(reduce_add(column, destination) for column in zip(*inputs, strict=True))


def scatter(tensor, devices=None, chunk_sizes=None, dim=0, streams=None, *, out=None):
    """Pieces of a tensor on several devices.

    Args:
        devices: one for each piece.
        chunk_sizes: the pieces' lengths; as equal as they can be if it is None.
        dim: along which it is divided.
        streams: the stream for each copy; the current one where it is None.
        out: tensors to write into, instead of `devices` and `chunk_sizes`.
    """
    require()
    if out is not None:
        if devices is not None or chunk_sizes is not None:
            raise RuntimeError("scatter: devices and chunk_sizes are not given together with out")
        pieces = tensor.split([target.size(dim) for target in out], dim)
        return tuple(target.copy_(piece, non_blocking=True) for target, piece in zip(out, pieces, strict=True))
    pieces = tensor.split(list(chunk_sizes), dim) if chunk_sizes is not None else tensor.chunk(len(devices), dim)
    if len(pieces) != len(devices) and chunk_sizes is not None:
        raise RuntimeError(f"scatter: there are {len(devices)} devices and {len(chunk_sizes)} chunk_sizes")
    made = []
    for number, (piece, device) in enumerate(zip(pieces, devices, strict=False)):
        with cresset.cuda.stream(streams[number] if streams else None):
            made.append(piece.to(_place(device), non_blocking=True))
    return tuple(made)


def gather(tensors, dim=0, destination=None, *, out=None):
    """Tensors of several devices, joined on one.

    Args:
        dim: along which they are joined.
        destination: a device, "cpu" or -1; the current device if it is None.
        out: a tensor to write into, instead of `destination`.
    """
    require()
    _on_devices("gather", tensors)
    if out is not None:
        if destination is not None:
            raise RuntimeError(f"gather: destination is not given together with out, got {destination}")
        return out.copy_(cresset.cat([tensor.to(out.device, non_blocking=True) for tensor in tensors], dim))
    place = _place(current_device() if destination is None else destination)
    return cresset.cat([tensor.to(place) for tensor in tensors], dim)
