"""The engine between processes: MPI, by its standard ABI."""

import atexit
import contextlib
import importlib.metadata
import os
import socket
import time
import uuid
from datetime import timedelta

import cresset

from ... import _native
from ..errors import DistBackendError
from ..launchers import is_launched_by_mpi
from . import COPIED, Kind, pmi

LIBRARY = "libmpi_abi.so.1"
SHARED, SHARED_BYTES = "/dev/shm", 17 << 16  # where MPI has memory that processes share, and how much each adds to it


class _Job:
    """The MPI of this process: started once, kept until it ends."""

    answers = world = name = None
    broken = is_started = False
    owner = 0


def libraries():
    """Where the library may be: what CRESSET_MPI names, where the system looks, in the package mpich."""
    if path := os.environ.get("CRESSET_MPI"):
        return [path]
    found = [LIBRARY]
    try:
        files = importlib.metadata.files("mpich") or []
    except importlib.metadata.PackageNotFoundError:
        files = []
    return found + [str(file.locate()) for file in files if file.name == LIBRARY]


def open_library():
    """Open MPI; DistBackendError says how to get it."""
    problems = []
    for path in libraries():
        try:
            _native.distributed.open_mpi(path)
            return
        except RuntimeError as error:
            problems.append(str(error))
    raise DistBackendError(
        "init_process_group: more than one process needs MPI, and there is none here. `pip install "
        "cresset[distributed]` brings "
        f"MPICH; or CRESSET_MPI names a libmpi_abi. ({'; '.join(problems)})"
    )


def is_available():
    """Whether the library can be opened."""
    try:
        open_library()
    except DistBackendError:
        return False
    return True


def world(store, rank, size, timeout):
    """The engine of all `size` processes that meet in `store`.

    Args:
        store: of this group alone.
        timeout: seconds to wait for the others.
    """
    open_library()
    patience = timedelta(seconds=timeout)
    if _Job.owner not in (0, os.getpid()):
        raise DistBackendError(
            "init_process_group: MPI was started before this process was forked; start it anew (spawn)"
        )
    if _Job.broken:
        raise DistBackendError(
            "init_process_group: an earlier error has broken MPI in this process; start a new process"
        )
    first = _Job.world is None
    store.set(f"host/{rank}", socket.gethostname() if first else "")
    hosts = store_values(store, "host", size, patience)
    if first and all(hosts):
        _start(store, rank, size, hosts, patience)
    elif first or any(hosts):
        raise DistBackendError("init_process_group: some of the processes were in a group before and some were not")
    store.set(f"place/{rank}", f"{_Job.name} {_Job.world.rank}")
    places = [text.split() for text in store_values(store, "place", size, patience)]
    if len({job for job, _ in places}) > 1:
        raise DistBackendError("init_process_group: the processes were in different groups before; start new ones")
    order = [int(place) for _, place in places]
    if order == list(range(_Job.world.size)):
        return Mpi(_Job.world)
    return Mpi(_Job.world.among(order, 1))


def store_values(store, name, size, patience):
    """What each rank has set under a name."""
    keys = [f"{name}/{rank}" for rank in range(size)]
    store.wait(keys, patience)
    return [value.decode() for value in store.multi_get(keys)]


def begin_as_launched():
    """Start MPI in a process that mpiexec has started; (rank, size, tell). `tell(text)` gives all the text of rank
    0."""
    open_library()
    _start_library()
    _Job.is_started, channel = True, _native.distributed.Channel.world()

    def tell(text):
        words = cresset.zeros(256, dtype=cresset.uint8)
        if channel.rank == 0:
            words[: len(text)] = cresset.tensor(list(text.encode()), dtype=cresset.uint8)
        engine = Mpi(channel)
        exchange = engine.begin(Kind.BROADCAST, words, words)
        while engine.poll(exchange, 50_000) is None:
            pass
        return bytes(words.tolist()).rstrip(b"\0").decode()

    return channel.rank, channel.size, tell


def _start_library():
    # Within a machine MPICH has shared memory of its own; what UCX would make beside it, a kill would leave in
    # /dev/shm.
    settles = "UCX_TLS" not in os.environ
    if settles:
        os.environ["UCX_TLS"] = "^posix,sysv"
    try:
        _native.distributed.start_mpi()
    finally:
        if settles:
            del os.environ["UCX_TLS"]


def _start(store, rank, size, hosts, patience):
    if not _Job.is_started and not is_launched_by_mpi():
        if rank == 0:
            store.set("job", uuid.uuid4().hex)
        store.wait(["job"], patience)
        _Job.answers = pmi.Answers(store.clone(), rank, size, "cresset" + store.get("job").decode(), hosts)
    try:
        if not _Job.is_started:
            _find_room(store, rank, size, patience)
            _start_library()
    finally:
        if _Job.answers is not None:
            _Job.answers.forget()
    _Job.world, _Job.name, _Job.owner = _native.distributed.Channel.world(), uuid.uuid4().hex, os.getpid()
    if rank == 0:
        store.set("name", _Job.name)
    store.wait(["name"], patience)
    _Job.name = store.get("name").decode()
    store.barrier("attached", size, patience)
    _forget_shared_memory()
    if _Job.world.size != size or _Job.world.rank != rank:
        raise DistBackendError(
            f"init_process_group: MPI says rank {_Job.world.rank} of {_Job.world.size}, the environment {rank} of "
            f"{size}"
        )
    atexit.register(_end)


def _find_room(store, rank, size, patience):
    """See that there is room for the shared memory of all ranks: where it is short, MPI ends by a signal."""
    reserved = None
    if os.path.isdir(SHARED) and hasattr(os, "O_TMPFILE"):
        try:
            reserved = os.open(SHARED, os.O_TMPFILE | os.O_RDWR, 0o600)
            os.posix_fallocate(reserved, 0, SHARED_BYTES)
        except OSError as error:
            who = f"rank {rank} on {os.uname().nodename}"
            what = f"{who} needs {SHARED_BYTES} bytes in {SHARED}: {error.strerror}"
            store.set("no room", f"{what}. Make room there; a container takes --shm-size")
    try:
        store.barrier("room", size, patience)
        if store.check(["no room"]):
            raise DistBackendError(f"init_process_group: {store.get('no room').decode()}")
    finally:
        if reserved is not None:
            os.close(reserved)


def _forget_shared_memory():
    """Take the names of the job's shared memory away: all have opened it, and what ends it may be a kill. What it has
    not used yet is taken from the disk now, so that nobody else can."""
    with contextlib.suppress(OSError), open("/proc/self/maps") as maps:
        for path in {line.split(maxsplit=5)[5].strip() for line in maps if "/dev/shm/mpich_shm_" in line}:
            with contextlib.suppress(OSError):
                with open(path, "r+b") as file:
                    os.posix_fallocate(file.fileno(), 0, os.fstat(file.fileno()).st_size)
                os.unlink(path)


def remove_orphans():
    """Take away the shared memory of jobs whose processes were all killed before they could do so.

    A file is an orphan when it is ours and no process has it open.
    """
    orphans = _orphans()
    if orphans:
        time.sleep(0.2)  # somebody may have made one just now
        for path in orphans & _orphans():
            with contextlib.suppress(OSError):
                os.unlink(path)


def _orphans():
    try:
        found = {f"/dev/shm/{name}" for name in os.listdir("/dev/shm") if name.startswith("mpich_shm_")}
    except OSError:
        return set()
    found = {path for path in found if os.path.exists(path) and os.stat(path).st_uid == os.getuid()}
    for pid in filter(str.isdigit, os.listdir("/proc")) if found else ():
        with contextlib.suppress(OSError), open(f"/proc/{pid}/maps") as maps:
            text = maps.read()
            found = {path for path in found if path not in text}
    return found


def _end():
    """End MPI, if the program has let go of its groups. If it has not, others may never come, and none is waited
    for."""
    from ..world import is_initialized

    if _Job.owner == os.getpid() and not _Job.broken and not is_initialized():
        _native.distributed.finish_mpi()
        if _Job.answers is not None:
            _Job.answers.answer_the_last()


# MPI has no such numbers: they travel as others of their size, and are not added up.
CARRIED = {
    _native.complex32: _native.int32,
    **dict.fromkeys(
        (
            _native.float8_e4m3fn, _native.float8_e4m3fnuz, _native.float8_e5m2, _native.float8_e5m2fnuz,
            _native.float8_e8m0fnu,
        ),
        _native.uint8,
    ),
}  # fmt: skip
REDUCES = (Kind.ALL_REDUCE, Kind.REDUCE, Kind.REDUCE_SCATTER)


class Mpi:
    """A group of processes that exchange by MPI."""

    sums_lists = True

    def __init__(self, channel):
        self.channel, self.rank, self.size = channel, channel.rank, channel.size
        self.copied = 0 if channel.shares_memory else COPIED

    def begin(self, kind, source, target, reduction=0, root=0, tag=0, fingerprint=0, sent=(), received=(), factor=1):
        """Begin an exchange.

        Args:
            source: of a sum, also a list of tensors that travel together, in place; each is multiplied by `factor`.
        """
        if isinstance(source, list):
            pieces = [(tensor.data_ptr(), tensor.numel()) for tensor in source]
            return self.channel.begin_sum(pieces, source[0].dtype, factor, fingerprint)
        some = source if source is not None else target
        count, dtype = (0, _native.uint8) if some is None else (some.numel(), some.dtype)
        if dtype in CARRIED:
            if kind in REDUCES:
                raise RuntimeError(f"distributed: Invalid scalar type: tensors of {dtype} cannot be reduced")
            dtype = CARRIED[dtype]
        if kind in (Kind.ALL_GATHER, Kind.GATHER):
            count = source.numel()
        elif kind in (Kind.SCATTER, Kind.REDUCE_SCATTER):
            count = target.numel()
        return self.channel.begin(
            int(kind),
            0 if source is None else source.data_ptr(),
            0 if target is None else target.data_ptr(),
            count,
            dtype,
            reduction,
            root,
            tag,
            fingerprint,
            list(sent),
            list(received),
        )

    def poll(self, exchange, microseconds):
        """What became of an exchange: "done", "different", "failed", or None if it is on its way."""
        return exchange.state if self.channel.poll(exchange, microseconds) else None

    def among(self, ranks, tag):
        return Mpi(self.channel.among(list(ranks), tag))

    def abandon(self):
        _Job.broken = True
        self.channel.abandon()

    def release(self):
        self.channel.release()
