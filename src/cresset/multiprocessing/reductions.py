"""How tensors travel between processes: their memory moves into a shared block once, and only its file descriptor is
sent.
"""

import weakref
from multiprocessing import reduction
from multiprocessing.reduction import ForkingPickler

import cresset

from ..nn.parameter import Buffer, Parameter
from ..storage import UntypedStorage
from ..tensors import shared_memory


class StorageWeakRef:
    """A weak reference to a storage, typed or not: equal for all tensors of the same memory."""

    __slots__ = ("_storage", "cdata")

    def __init__(self, storage):
        storage = getattr(storage, "_untyped_storage", storage)
        self.cdata, self._storage = storage._cdata, weakref.ref(storage)

    def expired(self):
        """Whether the storage is gone."""
        return self._storage() is None

    def __eq__(self, other):
        return isinstance(other, StorageWeakRef) and self.cdata == other.cdata

    def __hash__(self):
        return hash(self.cdata)


def reduce_tensor(tensor):
    """Send a tensor: both processes see the same memory afterwards."""
    if tensor.requires_grad and not tensor.is_leaf:
        raise RuntimeError(
            "Cowardly refusing to serialize non-leaf tensor which requires_grad, since autograd does not support "
            "crossing process boundaries. "
            "If you just want to transfer the data, call detach() on the tensor before serializing (e.g., putting it "
            "on the queue)."
        )
    if (
        type(tensor) not in (cresset.Tensor, Parameter, Buffer)
        or tensor.device.type != "cpu"
        or tensor.layout != cresset.strided
    ):
        return tensor.__reduce_ex__(2)
    plain = tensor.detach()
    block = shared_memory.share(plain)
    layout = str(plain.dtype).removeprefix("torch."), tuple(plain.shape), plain.stride(), plain.storage_offset()
    return rebuild_tensor, (
        type(tensor).__name__,
        reduction.DupFd(block.descriptor),
        plain.untyped_storage().nbytes(),
        layout,
        tensor.requires_grad,
    )


def rebuild_tensor(kind, duplicate, bytes, layout, requires_grad):
    dtype, size, stride, offset = layout
    storage = _open(duplicate, bytes)
    tensor = cresset.empty(0, dtype=getattr(cresset, dtype)).set_(storage, offset, size, stride)
    if kind == "Parameter":
        return Parameter(tensor, requires_grad)
    return Buffer(tensor) if kind == "Buffer" else tensor.requires_grad_(requires_grad)


def _open(duplicate, bytes):
    block = shared_memory.open_block(duplicate.detach(), bytes)
    return UntypedStorage._of(cresset._native.from_buffer(block)[:bytes])


def reduce_storage(storage):
    block = shared_memory.share(storage._bytes)
    return _open, (reduction.DupFd(block.descriptor), storage.nbytes())


def init_reductions():
    """Teach the pickler of multiprocessing's queues and pipes about tensors."""
    for kind in (cresset.Tensor, Parameter, Buffer):
        ForkingPickler.register(kind, reduce_tensor)
    ForkingPickler.register(UntypedStorage, reduce_storage)
