"""Memory that a worker and its parent both see, in which batches travel without copies.

One arena a worker. The worker gives out blocks and fills them; the parent makes tensors on them, and when the last
tensor of a block is gone the block's number goes back to the worker with the next task. The memory never has a name, so
that nothing stays behind, however the processes end: with `fork` it is anonymous, else it is a file without a name,
whose descriptor goes to the worker.
"""

import collections
import ctypes
import mmap
import multiprocessing.reduction
import os
import struct
import tempfile
import weakref

import cresset

HEADER = 64  # bytes at the start: the place in the epoch and the index that are being worked on
ALIGNMENT = 64
SMALLEST, LARGEST = 1 << 20, 1 << 32
NOWHERE = -1


class Arena:
    """Shared memory of `size` bytes. `descriptor` is the file that another process can map, or None when the memory is
    inherited.
    """

    def __init__(self, size, descriptor=None):
        self.size, self.descriptor = size, descriptor
        self.live = {}  # parent: block offset -> leases of the memory that its tensors hold
        self.sizes = {}  # parent: block offset -> size
        self.ended = collections.deque()  # parent: leases of memory that nobody holds any more
        if descriptor is None:
            self.memory = mmap.mmap(
                -1, size, flags=mmap.MAP_SHARED | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0)
            )
        else:
            self.memory = mmap.mmap(descriptor, size)
            weakref.finalize(self, os.close, descriptor).atexit = False
        struct.pack_into("<qq", self.memory, 0, NOWHERE, NOWHERE)

    @classmethod
    def inherited(cls, workers):
        """For forked workers: as large as the machine allows; untouched pages cost nothing. None if there is no room at
        all.
        """
        return cls._largest(workers, cls)

    @classmethod
    def sent(cls, workers):
        """The same for workers that start afresh, which get its file's descriptor."""
        return cls._largest(workers, cls._of_new_file)

    @staticmethod
    def _largest(workers, make):
        size = min(LARGEST, _physical_memory() // (2 * workers), _address_space() // (4 * workers))
        while size >= SMALLEST:
            try:
                return make(size // 4096 * 4096)
            except (OSError, ValueError):
                size //= 4
        return None

    @classmethod
    def _of_new_file(cls, size):
        if hasattr(os, "memfd_create"):
            descriptor = os.memfd_create("cresset", os.MFD_CLOEXEC)
        else:
            with tempfile.TemporaryFile() as file:
                descriptor = os.dup(file.fileno())
        try:
            os.ftruncate(descriptor, size)
            return cls(size, descriptor)
        except BaseException:
            os.close(descriptor)
            raise

    def __reduce__(self):
        return _received, (self.size, multiprocessing.reduction.DupFd(self.descriptor))

    # ---- what the worker is at

    def note(self, place, index):
        struct.pack_into(
            "<qq", self.memory, 0, place, index if type(index) is int and -(2**63) <= index < 2**63 else NOWHERE
        )

    def noted(self):
        """(place in the epoch, dataset index), NOWHERE for what is not known."""
        return struct.unpack_from("<qq", self.memory, 0)

    # ---- the parent's side

    def region(self, block, offset, size):
        """The bytes at `offset` as an object with the buffer protocol; the block is in use as long as any such object
        lives.
        """
        region = (ctypes.c_char * size).from_buffer(self.memory, offset)
        # What a weak reference calls is no Python: an interrupt that came there would be lost.
        lease = Lease(region, self.ended.append)
        lease.block = block
        self.live.setdefault(block, set()).add(lease)
        return region

    def take_freed(self):
        """The blocks that nobody has held any more since the last time, to give back with the next task."""
        freed = []
        while self.ended:
            lease = self.ended.popleft()
            leases = self.live[lease.block]
            leases.remove(lease)
            if not leases:
                del self.live[lease.block]
                freed.append(lease.block)
        return freed


class Lease(weakref.ref):
    """A weak reference to memory in a block."""

    __slots__ = ("block",)

    def __hash__(self):
        return id(self)

    def __eq__(self, other):
        return self is other


def _received(size, descriptor):
    return Arena(size, descriptor.detach())


def _physical_memory():
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _address_space():
    """How many bytes this process may still map: a limit (`ulimit -v`) counts pages that are never touched, too."""
    import resource

    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY:
        return LARGEST << 10
    try:
        with open("/proc/self/statm") as file:
            used = int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        used = limit // 2  # where the system does not tell
    return max(limit - used, 0)


class Blocks:
    """The worker's side: which parts of an arena are free. A block is what one batch takes; it grows until the batch is
    sent.
    """

    def __init__(self, arena, taken=()):
        self.arena = arena
        self.taken = dict(taken)  # offset -> size
        self.start = self.end = None  # of the block under construction
        self.limit, self.last_size, self.largest = 0, None, 0
        self.wanted = arena.size  # the room that the next block looks for
        self.is_widest = self.is_crowded = False  # the block is in the widest gap; and even that was too narrow once

    def give_back(self, offsets):
        for offset in offsets:
            self.taken.pop(offset, None)

    def begin(self):
        """Start a block: in the first gap that is wide enough, which keeps the same pages in use, or in the widest."""
        gaps, at = [], HEADER
        for offset in sorted(self.taken):
            gaps.append((offset - at, at))
            at = max(at, offset + self.taken[offset])
        gaps.append((self.arena.size - at, at))
        widest = max(gaps)
        width, self.start = next((gap for gap in gaps if gap[0] >= self.wanted), widest)
        self.end, self.limit, self.is_widest = self.start, self.start + width, width == widest[0]

    def allot(self, size):
        """The offset of `size` more bytes in the block, or None when it is full."""
        size = -(-max(size, 1) // ALIGNMENT) * ALIGNMENT
        if self.start is None or self.end + size > self.limit:
            if self.is_widest:
                self.is_crowded = True
            else:
                self.wanted = self.arena.size
            return None
        offset, self.end = self.end, self.end + size
        return offset

    def commit(self):
        """End the block: its offset and size, or (None, 0) if nothing is in it."""
        start, self.start = self.start, None
        if start is None or self.end == start:
            return None, 0
        size = self.taken[start] = self.end - start
        # Batches of one size fit where the last one was; for those that vary, twice the largest so far is kept free.
        self.largest = max(self.largest, size)
        self.wanted = size if self.last_size in (None, size) and size == self.largest else 2 * self.largest
        self.last_size = size
        return start, size

    def empty(self, shape, dtype):
        """A tensor in the block, or None when it is full."""
        count = 1
        for size in shape:
            count *= size
        offset = self.allot(count * dtype.itemsize)
        if offset is None:
            return None
        flat = (
            cresset.frombuffer(self.arena.memory, dtype=dtype, count=count, offset=offset)
            if count
            else cresset.empty(0, dtype=dtype)
        )
        made = flat.view(shape)
        made.arena_offset = offset
        return made
