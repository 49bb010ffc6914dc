"""A worker: a process (or a thread) that fetches batches for a DataLoader, and the parent's view of it.

Note [A worker's life]
The parent sends tasks over one duplex pipe and reads replies from it. In the worker a thread reads the pipe, so that
the parent's sends never wait and the end of the parent ends the worker at once, whatever it is doing. The parent waits
on the pipe and on the process itself: a worker that dies for any reason becomes one exception that says how, and at
which sample.
"""

import _thread
import contextlib
import faulthandler
import functools
import gc
import math
import multiprocessing.connection
import os
import pickle
import queue
import signal
import sys
import threading
import time
import traceback
import warnings
import weakref

import cresset

from . import messages, seeding
from .arena import NOWHERE, Blocks
from .collate import default_collate
from .pipes import IterDataPipe, MapDataPipe, loading

STACK_SIGNAL = getattr(signal, "SIGRTMAX", None)  # asks a worker to write down where it is
PATIENCE = 5.0  # seconds without news before a worker's whereabouts are shown, once


class WorkerInfo:
    """What `get_worker_info` tells: id, num_workers, seed, dataset, worker_type."""

    def __init__(self, **fields):
        self.__dict__.update(fields)

    def __setattr__(self, name, value):
        raise RuntimeError(f"Cannot assign attributes to WorkerInfo objects (tried to set {name})")

    def __repr__(self):
        return f"WorkerInfo({', '.join(f'{name}={value}' for name, value in vars(self).items())})"


_here = threading.local()


def get_worker_info():
    """In a worker of a DataLoader: which one this is; None elsewhere."""
    return getattr(_here, "info", None)


def set_worker_info(info):
    """In a worker of somebody's own loader: say which one this is."""
    _here.info = info


def shared_tensor(shape, dtype):
    """In a worker that is stacking a batch: a tensor in memory that the parent sees, if there is room; None
    elsewhere."""
    blocks = getattr(_here, "blocks", None)
    return blocks.empty(shape, dtype) if blocks is not None else None


class ExceptionText:
    """An exception that goes to another process: its class if that can travel, and the traceback as text."""

    def __init__(self, error, where):
        self.where = where
        self.text = "".join(traceback.format_exception(error))
        self.short = str(error)
        try:
            pickle.loads(pickle.dumps(type(error)))
            self.kind = type(error)
        except Exception:
            self.kind = None

    def reraise(self):
        """Raise an exception of the same class with the worker's traceback as its message."""
        message = f"Caught {self.kind.__name__ if self.kind else 'an exception'} {self.where}.\nOriginal {self.text}"
        # Nothing here names the exception: its traceback holds this frame, and the loader's iterator, which ends its
        # workers when it goes, would wait for the garbage collector.
        raise self._made(message)

    def _made(self, message):
        if self.kind is None:
            return RuntimeError(message)
        if self.kind is KeyError:  # whose text is the repr of its argument: one line, were it not for this
            return KeyError(_Verbatim(message))
        try:
            return self.kind(message)
        except Exception:
            return RuntimeError(message)


class _Verbatim(str):
    __slots__ = ()

    def __repr__(self):
        return str(self)


class Task:
    """One batch to fetch: its number, the indices, and where its first sample stands in the epoch."""

    __slots__ = ("freed", "indices", "number", "place")

    def __init__(self, number, indices, place, freed=()):
        self.number, self.indices, self.place, self.freed = number, indices, place, freed

    def __reduce__(self):
        return Task, (self.number, self.indices, self.place, self.freed)


class Epoch:
    """The start of an epoch: the seed of its samples, and that of a pipe's order."""

    def __init__(self, seed, pipe_seed=None):
        self.seed, self.pipe_seed = seed, pipe_seed


class Plan:
    """What a worker needs to know once."""

    def __init__(self, dataset, fetcher, auto_collation, collate_fn, drop_last, init, number, workers, kind):
        self.dataset, self.fetcher, self.auto_collation, self.collate_fn = dataset, fetcher, auto_collation, collate_fn
        self.drop_last, self.init, self.number, self.workers, self.kind = drop_last, init, number, workers, kind

    def collate(self, samples):
        """Stack straight into shared memory; only the default does, as a function of the user's might keep what it
        made.
        """
        if self.collate_fn is not default_collate:
            return self.collate_fn(samples)
        _here.blocks = getattr(_here, "arena_blocks", None)
        try:
            return default_collate(samples)
        finally:
            _here.blocks = None


def serve(plan, receive, reply, blocks, note, seed):
    """Fetch batch after batch until None arrives. `receive` gives tasks, `reply` takes (number, kind, what)."""
    where = f"in DataLoader worker {plan.kind} {plan.number}"
    fetcher = epoch_seed = None
    if plan.kind == "thread":
        cresset.random.begin_thread_generator()
        cresset.random.thread_safe_generator().manual_seed(seed)
    _here.info = WorkerInfo(
        id=plan.number, num_workers=plan.workers, seed=seed, dataset=plan.dataset, worker_type=plan.kind
    )
    _here.arena_blocks = blocks
    failed, seeds_itself = None, False
    try:
        if isinstance(plan.dataset, (IterDataPipe, MapDataPipe)):
            loading.shared(plan.dataset, plan.workers, plan.number)
        if plan.init is not None:
            plan.init(plan.number)
            seeds_itself = plan.kind == "process" and cresset.initial_seed() != seed
    except Exception as error:
        failed = ExceptionText(error, where)
    while (task := receive()) is not None:
        if isinstance(task, Epoch):
            epoch_seed, fetcher = None if seeds_itself else task.seed, None
            if task.pipe_seed is not None:
                loading.shuffled_by(plan.dataset, task.pipe_seed)
            continue
        if blocks is not None:
            blocks.give_back(task.freed)
            blocks.begin()
        try:
            if failed is None and fetcher is None:
                fetcher = plan.fetcher(plan.dataset, plan.auto_collation, plan.collate, plan.drop_last)
            if failed is not None:
                reply((task.number, "error", failed))
            else:
                reply((task.number, "batch", fetcher.fetch(task.indices, epoch_seed, task.place, note)))
        except StopIteration:
            reply((task.number, "end", None))
        except Exception as error:
            reply((task.number, "error", ExceptionText(error, where)))
        if note is not None:
            note(NOWHERE, NOWHERE)


def start_thread(run):
    """Call `run` in a daemon thread. One that has no memory to begin ends without a word, and `Thread.start` would wait
    for it for ever.
    """
    # Plain locks: what an Event does to wake a waiter wants memory, and may leave it asleep.
    begun, given_up = _thread.allocate_lock(), _thread.allocate_lock()
    begun.acquire()

    def body():
        if cresset._native.make_thread_data():
            begun.release()
            if not given_up.locked():
                run()

    identity = _thread.start_new_thread(body, ())
    for _ in range(10):
        if begun.acquire(timeout=1):
            return
    if identity not in sys._current_frames():
        given_up.acquire()
        raise RuntimeError("can't start new thread: it had no memory to begin")
    begun.acquire()


def run_process(plan, pipe, arena, taken, seed, inherited, stacks):
    """The main function of a worker process."""
    for connection in inherited:
        connection.close()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent gets it too and ends us
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # whatever a forked worker's parent does then: `terminate` ends us
    if stacks is not None:
        faulthandler.enable(stacks, all_threads=False)
        if STACK_SIGNAL is not None:
            faulthandler.register(STACK_SIGNAL, stacks, all_threads=False)
    cresset.set_num_threads(1)
    seeding.seed_all(seed)
    tasks = queue.SimpleQueue()

    def read():
        with contextlib.suppress(EOFError, OSError):
            while True:
                tasks.put(pickle.loads(pipe.recv_bytes()))
        os._exit(0)  # the parent is gone

    blocks = Blocks(arena, taken) if arena is not None else None
    warned = False

    def reply(message):
        nonlocal warned
        try:
            data, whole = messages.pack(message, blocks)
        except Exception as error:  # what the dataset or collate_fn returned cannot be sent
            data, whole = messages.pack(
                (message[0], "error", ExceptionText(error, f"in DataLoader worker process {plan.number}")), None
            )
        if not whole and not warned and blocks.is_crowded:
            warned = True
            print(
                f"cresset: DataLoader worker {plan.number}: shared memory is full ({arena.size >> 20} MB); batches "
                "now travel through a pipe, "
                "which is slower. Keep fewer batches alive, or make them smaller.",
                file=sys.stderr,
            )
        with contextlib.suppress(BrokenPipeError, ConnectionError):
            pipe.send_bytes(data)

    start_thread(read)
    try:
        serve(plan, tasks.get, reply, blocks, arena.note if arena is not None else None, seed)
    except SystemExit as leaving:
        code = leaving.code if isinstance(leaving.code, int) else 1 if leaving.code else 0
        os._exit(code)


# Weak references to this process's ends of the pipes to its workers, of all loaders. A fork copies them, and a worker
# leaves when the last copy of its pipe's other end is closed: so each new worker closes those it got. (What is done
# with the set is one step under the interpreter's lock: a lock of its own could be held by another thread at a fork.)
_pipes = set()


class ProcessWorker:
    """The parent's view of a worker process."""

    def __init__(self, plan, context, arena, seed, timeout, stacks):
        self.plan, self.arena, self.timeout, self.stacks = plan, arena, timeout, stacks
        self.pipe, theirs = context.Pipe(duplex=True)
        _pipes.add(weakref.ref(self.pipe, _pipes.discard))
        forked = context.get_start_method() == "fork"
        taken = {block: arena.sizes.get(block, 0) for block in arena.live} if arena is not None else {}
        arguments = (
            plan,
            theirs,
            arena,
            taken,
            seed,
            [pipe for reference in list(_pipes) if (pipe := reference())] if forked else [],
            stacks if forked else None,
        )
        self.process = context.Process(
            target=run_process, args=arguments, daemon=True, name=f"cresset data worker {plan.number}"
        )
        gc.freeze()  # what is alive now is not visited, and so not copied, by the worker's collector
        try:
            self.process.start()
        except (AttributeError, pickle.PicklingError) as error:
            warnings.warn(
                f"Got pickle error when starting DataLoader worker {plan.number} by {context.get_start_method()}, "
                f"which sends it the dataset and the functions: {error}. Define them at the top of a module.",
                stacklevel=2,
            )
            raise
        finally:
            gc.unfreeze()
        theirs.close()
        self.pid = self.process.pid
        self.outstanding = 0

    def send(self, task):
        if isinstance(task, Task) and self.arena is not None:
            task.freed = self.arena.take_freed()
        try:
            self.pipe.send_bytes(pickle.dumps(task, protocol=5))
        except (BrokenPipeError, ConnectionError):
            self.fail()
        self.outstanding += isinstance(task, Task)

    def receive(self):
        """The next reply; raises if the worker is dead, or silent for longer than the timeout."""
        start, shown = time.monotonic(), False
        while True:
            waited = time.monotonic() - start
            limit = PATIENCE if not shown else 3600.0
            if self.timeout > 0:
                limit = min(limit, max(0.0, self.timeout - waited))
            ready = multiprocessing.connection.wait([self.pipe, self.process.sentinel], limit)
            if self.pipe in ready:
                try:
                    data = self.pipe.recv_bytes()
                except (EOFError, ConnectionError):
                    self.fail()
                self.outstanding -= 1
                message = messages.unpack(data, self.arena)
                return message
            if ready:
                self.fail()
            waited = time.monotonic() - start
            if self.timeout > 0 and waited >= self.timeout:
                raise RuntimeError(
                    f"DataLoader timed out after {self.timeout} seconds: {self.describe()}{self.whereabouts()}\nIt "
                    f"was waiting for{self.where()}."
                )
            if not shown and waited >= PATIENCE:
                shown = True
                print(
                    (
                        f"cresset: still waiting for {self.describe()}, busy with{self.where()} for {waited:.0f} "
                        f"s.{self.whereabouts()}"
                    ),
                    file=sys.stderr,
                )

    def is_alive(self):
        return self.process.is_alive()

    def join(self, timeout=None):
        self.process.join(timeout)

    def terminate(self):
        self.process.terminate()

    @property
    def exitcode(self):
        return self.process.exitcode

    def describe(self):
        return f"DataLoader worker {self.plan.number} (pid {self.pid})"

    def where(self):
        """' sample 5 of the epoch (dataset index 12)', as far as it is known."""
        place, index = self.arena.noted() if self.arena is not None else (NOWHERE, NOWHERE)
        if place == NOWHERE:
            return " no sample"
        return f" sample {place} of the epoch" + (f" (dataset index {index})" if index != NOWHERE else "")

    def whereabouts(self):
        """The worker's own stack, which it writes down when asked."""
        if self.stacks is None or STACK_SIGNAL is None or not self.process.is_alive():
            return ""
        self.stacks.seek(0, os.SEEK_END)
        before = self.stacks.tell()
        with contextlib.suppress(OSError):
            os.kill(self.pid, STACK_SIGNAL)
        for _ in range(20):
            time.sleep(0.02)
            self.stacks.seek(before)
            text = self.stacks.read()
            if text:
                return _stack(text)
        return ""

    def fail(self):
        """Raise what became of the worker."""
        self.process.join(1.0)
        code = self.process.exitcode
        if code is not None and code < 0:
            with contextlib.suppress(ValueError):
                how = f"is killed by signal: {signal.strsignal(-code)} ({signal.Signals(-code).name})"
        elif code is None:
            how = "closed its pipe"
        else:
            how = f"left with exit code {code}"
        crash = ""
        if self.stacks is not None:
            self.stacks.seek(0)
            text = self.stacks.read()
            crash = _stack(text[text.index("Fatal Python error") :]) if "Fatal Python error" in text else ""
        raise RuntimeError(
            f"DataLoader worker (pid(s) {self.pid}) exited unexpectedly: worker {self.plan.number} {how} while it was "
            f"working on{self.where()}.{crash}"
        )

    def stop(self):
        """End the worker, whatever it does. It holds nothing that would need to be written down."""
        with contextlib.suppress(OSError):
            self.pipe.close()  # it leaves when it sees this
        self.process.join(0.2)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()


def _stack(dumped):
    """The user's part of what faulthandler wrote."""
    lines = [line for line in dumped.splitlines() if line.startswith("  File")]
    for last, line in enumerate(lines):
        if line.endswith(" in run_process"):
            lines = lines[:last]
            break
    return "\nIts stack, latest call first:\n" + "\n".join(lines)


class ThreadWorker:
    """A worker that is a thread of this process, for datasets that spend their time outside the interpreter lock."""

    def __init__(self, plan, seed, timeout, replied):
        self.plan, self.timeout, self.outstanding, self.arena, self.replied = plan, timeout, 0, None, replied
        self.tasks, self.replies = queue.SimpleQueue(), queue.SimpleQueue()
        self.over = False
        start_thread(functools.partial(self._serve, seed))

    def _serve(self, seed):
        try:
            serve(self.plan, self.tasks.get, self._reply, None, None, seed)
        finally:
            self.over = True  # also where not even the error could be told

    def _reply(self, message):
        with self.replied:
            self.replies.put(message)
            self.replied.notify_all()

    def send(self, task):
        self.outstanding += isinstance(task, Task)
        self.tasks.put(task)

    def receive(self):
        deadline = time.monotonic() + self.timeout if self.timeout > 0 else math.inf
        while True:
            was_over = self.over
            try:
                message = self.replies.get(timeout=max(0, min(1, deadline - time.monotonic())))
                break
            except queue.Empty:
                if time.monotonic() >= deadline:
                    raise RuntimeError(
                        f"DataLoader timed out after {self.timeout} seconds: worker thread {self.plan.number}"
                    ) from None
                if was_over:
                    raise RuntimeError(
                        f"DataLoader: worker thread {self.plan.number} ended without a reply; had it no memory?"
                    ) from None
        self.outstanding -= 1
        return message

    def stop(self):
        self.tasks.put(None)
