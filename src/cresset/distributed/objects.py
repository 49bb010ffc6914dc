"""Collectives of Python objects. They travel as torch.save writes them and are read as torch.load reads them: data
only, so that no process runs what another sends."""

import io

import cresset

from .collectives import _peer, all_gather, broadcast, gather, recv, scatter, send
from .errors import DistError
from .world import member_of


def _to_tensor(obj, who):
    file = io.BytesIO()
    try:
        cresset.save(obj, file)
        data = file.getvalue()
        file.seek(0)
        cresset.load(file, weights_only=True)
    except Exception as error:
        raise DistError(
            f"{who}: an object of {type(obj).__name__} cannot be sent: other processes read data only (numbers, text, "
            "containers, "
            f"tensors). {error}"
        ) from error
    return cresset.frombuffer(bytearray(data), dtype=cresset.uint8)


def _to_object(tensor):
    return cresset.load(io.BytesIO(bytes(memoryview(tensor.contiguous()))), weights_only=True)


def all_gather_object(object_list, obj, group=None):
    """Collect an object of each process, in each.

    Args:
        object_list: a list of the group's size, whose items are replaced.
        obj: what this process gives.
    """
    chosen = member_of(group, "all_gather_object")
    if chosen is None:
        return
    if len(object_list) != chosen.size():
        raise ValueError(f"all_gather_object: object_list has {len(object_list)} places for a group of {chosen.size()}")
    data = _to_tensor(obj, "all_gather_object")
    sizes = [cresset.zeros(1, dtype=cresset.int64) for _ in range(chosen.size())]
    all_gather(sizes, cresset.tensor([data.numel()]), chosen)
    longest = max(int(size) for size in sizes)
    padded = cresset.zeros(longest, dtype=cresset.uint8)
    padded[: data.numel()] = data
    parts = [cresset.empty(longest, dtype=cresset.uint8) for _ in range(chosen.size())]
    all_gather(parts, padded, chosen)
    for rank, (part, size) in enumerate(zip(parts, sizes, strict=True)):
        object_list[rank] = _to_object(part[: int(size)])


def gather_object(obj, object_gather_list=None, dst=None, group=None, group_dst=None):
    """Collect an object of each process in one of them."""
    chosen = member_of(group, "gather_object")
    if chosen is None:
        return
    root = _peer(chosen, dst, group_dst, "gather_object", "dst") or 0
    collects = chosen.rank() == root
    if collects != bool(object_gather_list):
        raise ValueError(
            f"gather_object: Argument ``object_gather_list`` must {'be' if collects else 'NOT be'} specified on "
            f"{'' if collects else 'non-'}destination rank."
        )
    data = _to_tensor(obj, "gather_object")
    sizes = [cresset.zeros(1, dtype=cresset.int64) for _ in range(chosen.size())]
    all_gather(sizes, cresset.tensor([data.numel()]), chosen)
    longest = max(int(size) for size in sizes)
    padded = cresset.zeros(longest, dtype=cresset.uint8)
    padded[: data.numel()] = data
    parts = [cresset.empty(longest, dtype=cresset.uint8) for _ in range(chosen.size())] if collects else None
    gather(padded, parts, group=chosen, group_dst=root)
    if collects:
        for rank, (part, size) in enumerate(zip(parts, sizes, strict=True)):
            object_gather_list[rank] = _to_object(part[: int(size)])


def broadcast_object_list(object_list, src=None, group=None, device=None, group_src=None):
    """Give the objects in the list of one process to all.

    Args:
        object_list: of the sender the objects; of the others a list of the same length, whose items are replaced.
        device: where PyTorch would put the bytes; they travel from the CPU here.
    """
    chosen = member_of(group, "broadcast_object_list")
    if chosen is None:
        return
    root = _peer(chosen, src, group_src, "broadcast_object_list", "src") or 0
    sends = chosen.rank() == root
    parts = [_to_tensor(obj, "broadcast_object_list") for obj in object_list] if sends else []
    sizes = (
        cresset.tensor([part.numel() for part in parts])
        if sends
        else cresset.zeros(len(object_list), dtype=cresset.int64)
    )
    broadcast(sizes, group=chosen, group_src=root)
    data = cresset.cat(parts) if sends and parts else cresset.empty(int(sizes.sum()), dtype=cresset.uint8)
    broadcast(data, group=chosen, group_src=root)
    if not sends:
        for i, part in enumerate(data.split(sizes.tolist())):
            object_list[i] = _to_object(part)


def scatter_object_list(
    scatter_object_output_list, scatter_object_input_list=None, src=None, group=None, group_src=None
):
    """Give each process its object of a list that one of them has; it becomes the first item of its list."""
    chosen = member_of(group, "scatter_object_list")
    if chosen is None:
        return
    if not scatter_object_output_list:
        raise ValueError(
            "scatter_object_list: Expected argument scatter_object_output_list to be a list of size at least 1."
        )
    root = _peer(chosen, src, group_src, "scatter_object_list", "src") or 0
    sends = chosen.rank() == root
    parts, info = None, cresset.zeros(1 + chosen.size(), dtype=cresset.int64)
    if sends:
        if not scatter_object_input_list or len(scatter_object_input_list) != chosen.size():
            raise ValueError(f"scatter_object_list: the sender needs a list of {chosen.size()} objects")
        data = [_to_tensor(obj, "scatter_object_list") for obj in scatter_object_input_list]
        info[0] = max(part.numel() for part in data)
        info[1:] = cresset.tensor([part.numel() for part in data])
        parts = [cresset.cat([part, part.new_zeros(int(info[0]) - part.numel())]) for part in data]
    broadcast(info, group=chosen, group_src=root)
    place = cresset.empty(int(info[0]), dtype=cresset.uint8)
    scatter(place, parts, group=chosen, group_src=root)
    scatter_object_output_list[0] = _to_object(place[: int(info[1 + chosen.rank()])])


def send_object_list(object_list, dst=None, group=None, device=None, group_dst=None, use_batch=False):
    """Send objects to a process.

    Args:
        device: where PyTorch would put the bytes; they travel from the CPU here.
        use_batch: PyTorch's way to begin both sends at once; one way here.
    """
    if member_of(group, "send_object_list") is None:
        return
    parts = [_to_tensor(obj, "send_object_list") for obj in object_list]
    send(cresset.tensor([part.numel() for part in parts]), dst, group, group_dst=group_dst)
    send(cresset.cat(parts), dst, group, group_dst=group_dst)


def recv_object_list(object_list, src=None, group=None, device=None, group_src=None, use_batch=False):
    """Receive objects from a process into a list of as many items; who sent them.

    Args:
        device: where PyTorch would put the bytes; they travel to the CPU here.
        use_batch: PyTorch's way to begin both receives at once; one way here.
    """
    if member_of(group, "recv_object_list") is None:
        return -1
    sizes = cresset.zeros(len(object_list), dtype=cresset.int64)
    sender = recv(sizes, src, group, group_src=group_src)
    data = cresset.empty(int(sizes.sum()), dtype=cresset.uint8)
    recv(data, sender, group)
    for i, part in enumerate(data.split(sizes.tolist())):
        object_list[i] = _to_object(part)
    return sender
