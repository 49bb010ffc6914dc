"""Buckets: gradients that travel together between processes, and which parameters share one."""

import math

import cresset

MEGABYTE = 1 << 20
FIRST, USUAL = MEGABYTE, 25 * MEGABYTE  # bytes; the first is small, so that something leaves early
ALL = math.inf  # bytes: no gradient is as large


class GradBucket:
    """Gradients that travel together, as a communication hook sees them."""

    def __init__(self, index, flat, parameters, is_last):
        self._index, self._buffer, self._parameters, self._is_last = index, flat, parameters, is_last

    def index(self):
        """Which bucket this is."""
        return self._index

    def buffer(self):
        """All gradients in one tensor with one dimension."""
        return self._buffer

    def set_buffer(self, buffer):
        """Replace it by another of the same size."""
        if buffer.numel() != self._buffer.numel():
            raise ValueError(f"set_buffer: {buffer.numel()} elements for a bucket of {self._buffer.numel()}")
        self._buffer = buffer

    def gradients(self):
        """The gradients, as views of the buffer."""
        return views_of(self._buffer, self._parameters)

    def parameters(self):
        """The parameters."""
        return list(self._parameters)

    def is_last(self):
        """Whether it is the last one of a backward pass."""
        return self._is_last


GradBucket.__module__ = "torch.distributed"


def views_of(flat, parameters):
    """Consecutive parts of a flat tensor in the shapes of the parameters."""
    parts = flat.split([p.numel() for p in parameters])
    return [part.view(p.shape) for part, p in zip(parts, parameters, strict=True)]


class Bucket:
    """Some parameters, the memory for the gradients that are copied together, and what is on its way.

    Args:
        copied: gradients of fewer bytes are copied into one piece of memory; larger ones are exchanged where they lie.
    """

    def __init__(self, index, parameters, copied):
        self.index, self.parameters, self.keys = index, parameters, frozenset(map(id, parameters))
        self.pack(copied)
        self.start()

    def pack(self, copied):
        """Make the memory for those that are copied."""
        small = [p for p in self.parameters if p.numel() * p.element_size() < copied]
        first = self.parameters[0]
        self.flat = cresset.zeros(sum(p.numel() for p in small), dtype=first.dtype, device=first.device)
        self.views = {id(p): view for p, view in zip(small, views_of(self.flat, small), strict=True)}

    def start(self):
        """A new backward pass begins."""
        self.missing = set(self.keys)
        self.alone = {}  # id of a parameter -> its gradient, which is exchanged where it lies
        self.works, self.future = None, None

    def has_left(self):
        """Whether its exchange began."""
        return self.works is not None or self.future is not None

    def fill(self):
        """Take the gradients as they are now, zeros for those that are not there."""
        for p in self.parameters:
            view, grad = self.views.get(id(p)), p.grad
            if view is None:
                if grad is None:
                    grad = cresset.zeros_like(p)
                self.alone[id(p)] = grad.detach() if grad.requires_grad else grad
            elif grad is None:
                view.zero_()
            elif grad is not view and grad.data_ptr() != view.data_ptr():
                view.copy_(grad.detach())

    def wait(self):
        """Until the averages are there."""
        for work in self.works or ():
            work.wait()
        if self.future is not None:
            result = self.future.wait()
            result = result[0] if isinstance(result, (list, tuple)) else result
            if result.data_ptr() != self.flat.data_ptr():
                self.flat.copy_(result)

    def empty(self):
        """Fill it with zeros, for a process that takes part without data."""
        self.flat.zero_()
        self.missing = set()
        self.alone = {id(p): cresset.zeros_like(p) for p in self.parameters if id(p) not in self.views}

    def size(self):
        """Bytes."""
        return sum(p.numel() * p.element_size() for p in self.parameters)


def caps(bucket_cap_mb, bucket_cap_mb_list):
    """The bytes of the first bucket, the second, ...; the last number is that of all others."""
    if bucket_cap_mb_list:
        return [int(size * MEGABYTE) for size in bucket_cap_mb_list]
    return [FIRST, USUAL] if bucket_cap_mb is None else [int(bucket_cap_mb * MEGABYTE)]


def divided(parameters, sizes, copied):
    """The buckets of parameters in this order: one dtype and device each, and up to so many bytes."""
    open_groups, done, made = {}, [], {}
    for p in parameters:
        key = (p.dtype, p.device)
        group, size = open_groups.get(key, ([], 0))
        group, size = [*group, p], size + p.numel() * p.element_size()
        if size >= sizes[min(made.get(key, 0), len(sizes) - 1)]:
            done.append(group)
            open_groups.pop(key, None)
            made[key] = made.get(key, 0) + 1
        else:
            open_groups[key] = (group, size)
    groups = done + [group for group, _ in open_groups.values()]
    return [Bucket(index, group, copied) for index, group in enumerate(groups)]
