"""What passes between the parent and a worker: pickled, but tensors and large buffers go into the arena and only their
places are written.
"""

import contextlib
import io
import math
import pickle
import sys
import threading

import cresset

_current = threading.local()


class _Pickler(pickle.Pickler):
    def __init__(self, file, blocks):
        super().__init__(file, protocol=5, buffer_callback=self.put_buffer if blocks is not None else None)
        self.blocks, self.buffers, self.whole = blocks, [], True
        self.dispatch_table = {cresset.Tensor: self.reduce_tensor}
        if "cresset.nn" in sys.modules:  # else there are no parameters, and importing it would delay the first batch
            self.dispatch_table[cresset.nn.Parameter] = self.reduce_tensor

    def put_buffer(self, buffer):
        """True leaves the bytes in the message: small ones, and what does not fit."""
        raw = buffer.raw()
        offset = self.blocks.allot(raw.nbytes) if raw.nbytes >= 4096 else None
        if offset is None:
            return True
        self.blocks.arena.memory[offset : offset + raw.nbytes] = raw
        self.buffers.append((offset, raw.nbytes))
        return False

    def reduce_tensor(self, tensor):
        if tensor.device.type != "cpu" or tensor.layout != cresset.strided or type(tensor) is not cresset.Tensor:
            return tensor.__reduce_ex__(2)
        plain, offset = tensor.detach(), getattr(tensor, "arena_offset", None)
        described = tuple(plain.shape), str(plain.dtype).partition(".")[2], tensor.requires_grad
        if offset is None and self.blocks is not None:
            target = self.blocks.empty(tuple(plain.shape), plain.dtype)
            if target is not None:
                target.copy_(plain)
                offset = target.arena_offset
        if offset is None:
            self.whole = False
            return _tensor_of_bytes, (bytearray(memoryview(plain.reshape(-1).view(cresset.uint8))), *described)
        return _tensor_at, (offset, *described)


def pack(message, blocks):
    """`message` as bytes. The second value is False when something did not fit into the arena and travels in the bytes
    instead.
    """
    file = io.BytesIO()
    pickler = _Pickler(file, blocks)
    pickler.dump(message)
    block, size = blocks.commit() if blocks is not None else (None, 0)
    return pickle.dumps((block, size, pickler.buffers), protocol=5) + file.getvalue(), pickler.whole


def unpack(data, arena):
    """The message, its tensors on the arena's memory."""
    file = io.BytesIO(data)
    block, size, buffers = pickle.load(file)
    if block is not None:
        arena.sizes[block] = size
    with _reading(arena, block):
        regions = [arena.region(block, offset, size) for offset, size in buffers]
        return pickle.load(file, buffers=regions)


@contextlib.contextmanager
def _reading(arena, block):
    _current.arena, _current.block = arena, block
    try:
        yield
    finally:
        del _current.arena, _current.block


def _tensor_at(offset, shape, dtype, requires_grad):
    size = getattr(cresset, dtype).itemsize * math.prod(shape)
    region = _current.arena.region(_current.block, offset, size) if size else bytearray()
    return _tensor_of_bytes(region, shape, dtype, requires_grad)


def _tensor_of_bytes(data, shape, dtype, requires_grad):
    dtype = getattr(cresset, dtype)
    made = cresset.frombuffer(data, dtype=dtype).view(shape) if math.prod(shape) else cresset.empty(shape, dtype=dtype)
    return made.requires_grad_() if requires_grad else made
