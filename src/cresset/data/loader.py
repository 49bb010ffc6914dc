"""DataLoader: batches of a dataset, fetched here or by workers, in an order that a seed decides."""

import collections
import contextlib
import copy
import itertools
import math
import multiprocessing
import multiprocessing.connection
import tempfile
import threading
import time
import types
import warnings
import weakref
from collections.abc import Iterator
from typing import Any, Generic, TypeVar

import cresset

from . import seeding
from .arena import Arena
from .collate import default_collate, default_convert
from .datasets import IterableDataset, Samples
from .fetching import IterableFetcher, MapFetcher
from .iterating import _BaseDataLoaderIter, warn_of_no_accelerator
from .pinning import pin_memory
from .pipes import IterDataPipe, MapDataPipe, apply_shuffle_settings, loading
from .samplers import BatchSampler, RandomSampler, SequentialSampler, drawn_seed
from .workers import Epoch, Plan, ProcessWorker, Task, ThreadWorker

T_co = TypeVar("T_co", covariant=True)


class _DatasetKind:
    Map = 0
    Iterable = 1

    @staticmethod
    def create_fetcher(kind, dataset, auto_collation, collate_fn, drop_last):
        fetcher = MapFetcher if kind == _DatasetKind.Map else IterableFetcher
        return fetcher(dataset, auto_collation, collate_fn, drop_last)


class _InfiniteConstantSampler:
    """Stands for the order of a stream, which has none."""

    def __iter__(self):
        return itertools.repeat(None)


class DataLoader(Generic[T_co]):
    """Iterates over `dataset` in batches.

    Args:
        dataset: answers `dataset[index]` and `len(dataset)`, or is an IterableDataset.
        batch_size: samples in a batch; None gives the samples themselves.
        shuffle: a new random order each epoch. Of pipes, whether those that can shuffle do so.
        sampler: gives the order instead, as an iterable of indices.
        batch_sampler: gives whole batches of indices.
        num_workers: how many workers fetch; 0 fetches in this process. Samples and augmentations are the same for any
            number.
        collate_fn: makes a batch of a list of samples.
        pin_memory: copy batches into pinned memory, where there is a GPU.
        drop_last: leave out a last batch that is not full.
        timeout: seconds to wait for a batch; 0 waits, and says after five seconds what for.
        worker_init_fn: called in each worker with its number.
        multiprocessing_context: how processes start: "fork", "spawn", "forkserver", or a context.
        generator: draws the order and the workers' seeds.
        prefetch_factor: batches each worker prepares ahead; 2 unless given.
        persistent_workers: keep the workers from epoch to epoch.
        pin_memory_device: PyTorch has deprecated it; given together with pin_memory it is warned about, and the current
            device is used.
        in_order: give batches in the sampler's order; False gives them as they come.
        worker_type: "process", or "thread" for datasets whose work leaves the interpreter lock; threads share the
            generators of this process, so their augmentations are not reproducible.

    `state_dict` and `load_state_dict` continue an epoch at the exact next batch.

    >>> loader = DataLoader(range(5), batch_size=2)
    >>> list(loader)
    [tensor([0, 1]), tensor([2, 3]), tensor([4])]
    """

    _initialized = False

    def __init__(
        self, dataset: Samples[T_co], batch_size=1, shuffle=None, sampler=None, batch_sampler=None, num_workers=0,
        collate_fn=None, pin_memory=False, drop_last=False, timeout=0, worker_init_fn=None,
        multiprocessing_context=None, generator=None, *, prefetch_factor=None, persistent_workers=False,
        pin_memory_device="", in_order=True, worker_type="process",
    ):  # fmt: skip
        if num_workers < 0:
            raise ValueError(
                "num_workers option should be non-negative; use num_workers=0 to disable multiprocessing. Got "
                f"{num_workers}"
            )
        if timeout < 0:
            raise ValueError(f"timeout option should be non-negative, got {timeout}")
        if num_workers == 0 and prefetch_factor is not None:
            raise ValueError(
                "prefetch_factor option could only be specified in multiprocessing. Let num_workers > 0 to enable "
                "multiprocessing, otherwise set prefetch_factor to None."
            )
        if prefetch_factor is not None and prefetch_factor < 0:
            raise ValueError(f"prefetch_factor option should be non-negative, got {prefetch_factor}")
        if persistent_workers and num_workers == 0:
            raise ValueError("persistent_workers option needs num_workers > 0")
        if worker_type not in ("process", "thread"):
            raise ValueError(f"worker_type should be 'process' or 'thread', got {worker_type!r}")
        self.dataset, self.num_workers, self.pin_memory, self.pin_memory_device = (
            dataset,
            num_workers,
            pin_memory,
            pin_memory_device,
        )
        self.prefetch_factor = 2 if num_workers and prefetch_factor is None else prefetch_factor
        self.timeout, self.worker_init_fn, self.in_order, self.worker_type = (
            timeout,
            worker_init_fn,
            in_order,
            worker_type,
        )
        if pin_memory and pin_memory_device:
            warnings.warn(
                (
                    "pin_memory_device is deprecated, the current accelerator will be used as the device, ignore "
                    f"pin_memory_device={pin_memory_device!r}."
                ),
                stacklevel=2,
            )
        self._dataset_kind = _DatasetKind.Iterable if isinstance(dataset, IterableDataset) else _DatasetKind.Map
        if _is_stream(self):
            if isinstance(dataset, IterDataPipe):
                self.dataset = apply_shuffle_settings(dataset, shuffle)
            elif shuffle not in (False, None):
                raise ValueError(
                    f"DataLoader with IterableDataset: expected unspecified shuffle option, but got shuffle={shuffle}"
                )
            if sampler is not None:
                raise ValueError(
                    f"DataLoader with IterableDataset: expected unspecified sampler option, but got sampler={sampler}"
                )
            if batch_sampler is not None:
                raise ValueError(
                    "DataLoader with IterableDataset: expected unspecified batch_sampler option, but got "
                    f"batch_sampler={batch_sampler}"
                )
        if sampler is not None and shuffle:
            raise ValueError("sampler option is mutually exclusive with shuffle")
        if batch_sampler is not None:
            if batch_size != 1 or shuffle or sampler is not None or drop_last:
                raise ValueError(
                    "batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and drop_last"
                )
            batch_size, drop_last = None, False
        elif batch_size is None and drop_last:
            raise ValueError("batch_size=None option disables auto-batching and is mutually exclusive with drop_last")
        if sampler is None:
            if _is_stream(self):
                sampler = _InfiniteConstantSampler()
            else:
                sampler = RandomSampler(dataset, generator=generator) if shuffle else SequentialSampler(dataset)
        if batch_size is not None and batch_sampler is None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.batch_size, self.drop_last, self.sampler, self.batch_sampler, self.generator = (
            batch_size,
            drop_last,
            sampler,
            batch_sampler,
            generator,
        )
        self.collate_fn = (
            collate_fn if collate_fn is not None else default_collate if self._auto_collation else default_convert
        )
        self.persistent_workers = persistent_workers
        self.multiprocessing_context = multiprocessing_context
        self._iterator: Any = None
        self._running: Any = None
        self._resume = None
        self._epoch = 0
        self._arenas = []  # those of workers that have ended
        self._initialized = True
        self.check_worker_number_rationality()

    _IterableDataset_len_called = None  # what a stream said its length is; its iterators warn if they give more

    def __getstate__(self):
        return {
            **self.__dict__,
            "_arenas": [],
            "_iterator": None,
            "_running": None,
        }  # memory and workers stay with their process

    def __setattr__(self, name, value):
        if self._initialized and name in (
            "batch_size",
            "batch_sampler",
            "sampler",
            "drop_last",
            "dataset",
            "persistent_workers",
        ):
            raise ValueError(f"{name} attribute should not be set after {type(self).__name__} is initialized")
        super().__setattr__(name, value)

    @property
    def multiprocessing_context(self):
        return self._context

    @multiprocessing_context.setter
    def multiprocessing_context(self, context):
        if context is not None:
            if self.num_workers == 0:
                raise ValueError(
                    "multiprocessing_context can only be used with multi-process loading (num_workers > 0), but got "
                    f"num_workers={self.num_workers}"
                )
            if isinstance(context, str):
                known = multiprocessing.get_all_start_methods()
                if context not in known:
                    raise ValueError(
                        f"multiprocessing_context option should specify a valid start method in {known!r}, but got "
                        f"multiprocessing_context={context!r}"
                    )
                context = multiprocessing.get_context(context)
            if not isinstance(context, multiprocessing.context.BaseContext):
                raise TypeError(
                    "multiprocessing_context option should be a valid context object or a string specifying the "
                    f"start method, but got multiprocessing_context={context}"
                )
        self._context = context

    @property
    def _auto_collation(self):
        return self.batch_sampler is not None

    @property
    def _index_sampler(self):
        return self.batch_sampler if self._auto_collation else self.sampler

    def __iter__(self) -> Iterator[Any]:
        if self._iterator is None:  # workers are started
            self.check_worker_number_rationality()
        if self.persistent_workers and self.num_workers > 0:
            if self._iterator is None:
                self._iterator = self._get_iterator()
            else:
                self._iterator._reset(self)
            self._running = self._iterator
        else:
            self._running = self._get_iterator()
        return self._running

    def _get_iterator(self):
        return _SingleProcessDataLoaderIter(self) if self.num_workers == 0 else _MultiProcessingDataLoaderIter(self)

    def __len__(self):
        if _is_stream(self):
            length = self._IterableDataset_len_called = len(self.dataset)
            if self.batch_size is None:
                return length
            whole, rest = divmod(length, self.batch_size)
            return whole + bool(rest and not self.drop_last)
        return len(self._index_sampler)

    # ---- resuming

    def state_dict(self):
        """Where the running epoch stands, or that the next one starts: plain data for a checkpoint."""
        if self._resume is not None and self._running is None:
            return dict(self._resume)
        running = self._running
        if running is None or running._finished:
            return {"epoch": self._epoch, "batches": 0, "start": None}
        return {
            "epoch": self._epoch,
            "batches": running._num_yielded,
            "start": running._start,
            "drawn": running._drawn(),
            "order_ended": running._order_ended,
        }

    def load_state_dict(self, state):
        """The next iteration continues where `state` was taken; its random order and augmentations are the same."""
        if _is_stream(self) and state["batches"] and self.num_workers > 0:
            warnings.warn("DataLoader: a stream is resumed by reading it again from the start", stacklevel=2)
        self._epoch, self._running = state["epoch"], None
        self._resume = dict(state)
        if self._iterator is not None:
            self._iterator._shut_down()
            self._iterator = None

    def check_worker_number_rationality(self):
        """Warn if there are more worker processes than processors that this process may use. Called here, and when an
        epoch starts.
        """
        if self.num_workers == 0 or _own(self, "worker_type", "process") != "process":
            return
        from ..__config__ import usable_processors

        if self.num_workers > usable_processors():
            warnings.warn(
                f"This DataLoader will create {self.num_workers} worker processes in total. Our suggested max number "
                "of worker in current system "
                f"is {usable_processors()}, the number of processors that this process may use; excessive worker "
                "creation might get DataLoader running slow or even freeze",
                stacklevel=3,
            )


def _is_stream(loader):
    return loader._dataset_kind == _DatasetKind.Iterable


def _own(loader, name, default):
    """An attribute that only our loaders have. What stands in for one, with PyTorch's attributes, is given it here."""
    if not hasattr(loader, name):
        setattr(loader, name, default)
    return getattr(loader, name)


class _Start:
    """The generators as they were when an epoch began, and the seed of its samples."""

    @staticmethod
    def take(loader):
        order = getattr(loader, "sampler", None)  # a stand-in has the _index_sampler alone
        sampler = getattr(order, "generator", None)
        state = {
            "global": cresset.get_rng_state(),
            "generator": loader.generator.get_state() if loader.generator is not None else None,
            "sampler": sampler.get_state() if sampler is not None and sampler is not loader.generator else None,
            "sampler_epoch": getattr(order, "epoch", None),
        }
        return state

    @staticmethod
    @contextlib.contextmanager
    def put_back(loader, state):
        """The generators as at the start, for as long as the order is drawn again; then as they are now."""
        now = _Start.take(loader)
        _Start._set(loader, state)
        try:
            yield
        finally:
            _Start._set(loader, now)

    @staticmethod
    def _set(loader, state):
        cresset.set_rng_state(state["global"])
        if state["generator"] is not None:
            loader.generator.set_state(state["generator"])
        if state["sampler"] is not None:
            loader.sampler.generator.set_state(state["sampler"])
        if state["sampler_epoch"] is not None:
            loader.sampler.epoch = state["sampler_epoch"]


class _Iterator(_BaseDataLoaderIter):
    """What both ways of iterating share: the order, the seed of the epoch, the count of what was given."""

    def __init__(self, loader):
        self._take_settings(loader)
        warn_of_no_accelerator(loader)
        self._loader = weakref.ref(loader)  # to tell it where the epoch stands: the loader may be gone
        self._begin_epoch(loader)

    def _begin_epoch(self, loader, seed=None):
        """Take up the order of an epoch, and its seed, which is drawn unless it is given."""
        self._finished, self._num_yielded, self._place, skipped = False, 0, 0, 0
        self._tasks = self._drawn_at_start = 0
        self._order_ended = False
        self._IterableDataset_len_called = loader._IterableDataset_len_called
        resume, loader._resume = _own(loader, "_resume", None), None
        if resume is not None and resume["start"] is not None:
            self._start, skipped = resume["start"], resume["batches"]
            with _Start.put_back(loader, self._start):
                self._draw_order(loader, self._start.get("seed"))
                # As much of the order as was drawn then, ahead of what was given: a sampler may draw as it goes.
                first = (
                    list(itertools.islice(self._sampler_iter, resume.get("drawn", skipped + 1)))
                    if not _is_stream(loader)
                    else []
                )
                if resume.get("order_ended"):
                    next(self._sampler_iter, None)
                    self._order_ended = True
            self._num_yielded = self._tasks = skipped
            self._drawn_at_start = len(first)
            if first:
                self._place = sum(len(batch) if loader._auto_collation else 1 for batch in first[:skipped])
                self._sampler_iter = itertools.chain(first[skipped:], self._sampler_iter)
        else:
            self._start = {**_Start.take(loader), "seed": seed}
            self._draw_order(loader, seed)
        self._skip_in_stream = skipped if _is_stream(loader) else 0

    def _draw_order(self, loader, seed):
        self._sampler_iter = iter(loader._index_sampler)
        self._pipe_seed = loading.seed_of_epoch(loader.generator) if isinstance(loader.dataset, IterDataPipe) else None
        self._base_seed = drawn_seed(loader.generator) if seed is None else seed

    def _drawn(self):
        """How many batches of the order the sampler was asked for so far."""
        return max(self._tasks, self._drawn_at_start)

    def _next_task(self, number):
        try:
            indices = next(self._sampler_iter)
        except StopIteration:
            self._order_ended = True
            raise
        self._tasks += 1
        task = Task(number, indices, self._place)
        self._place += len(indices) if self._auto_collation else 1
        return task

    def __next__(self):
        if self._finished:
            raise StopIteration
        try:
            batch = self._next_data()
        except StopIteration:
            self._end_epoch()
            raise
        self._count_one()
        return pin_memory(batch) if self._pin_memory else batch

    def _end_epoch(self):
        if not self._finished:
            self._finished = True
            loader = self._loader()
            if loader is not None:
                loader._epoch = _own(loader, "_epoch", 0) + 1


class _SingleProcessDataLoaderIter(_Iterator):
    """Fetches in this process."""

    def _begin_epoch(self, loader, seed=None):
        super()._begin_epoch(loader, seed)
        if isinstance(loader.dataset, (IterDataPipe, MapDataPipe)):
            loading.shared(loader.dataset)
        if self._pipe_seed is not None:
            loading.shuffled_by(loader.dataset, self._pipe_seed)
        self._fetcher = _DatasetKind.create_fetcher(
            loader._dataset_kind, loader.dataset, loader._auto_collation, loader.collate_fn, loader.drop_last
        )
        for _ in range(self._skip_in_stream):
            task = self._next_task(0)
            self._fetcher.fetch(task.indices, self._base_seed, task.place)

    def _next_data(self):
        task = self._next_task(0)
        if not self._fetcher.draws:
            return self._fetcher.fetch(task.indices, self._base_seed, task.place)
        with seeding.KeepGenerators():
            return self._fetcher.fetch(task.indices, self._base_seed, task.place)


class _MultiProcessingDataLoaderIter(_Iterator):
    """Shares the batches out to workers, round robin, and gives them in order."""

    def __init__(self, loader):
        self._workers, self._stacks, self._position = [], None, None
        self._prefetch_factor, self._in_order = loader.prefetch_factor, loader.in_order
        self._worker_type = _own(loader, "worker_type", "process")
        super().__init__(loader)
        self._start_workers(loader)
        self._fill()

    def _draw_order(self, loader, seed):
        super()._draw_order(loader, seed)
        if self._pipe_seed is not None and seed is None:
            drawn_seed(loader.generator)  # PyTorch's new workers draw once more, for nothing; what follows is alike

    def _start_workers(self, loader):
        context = loader.multiprocessing_context or multiprocessing.get_context()
        processes = self._worker_type == "process"
        forked = processes and context.get_start_method() == "fork"
        fetcher = IterableFetcher if _is_stream(loader) else MapFetcher
        self._replied = threading.Condition()  # of workers that are threads
        self._stacks = stacks = tempfile.TemporaryFile("w+") if forked else None  # noqa: SIM115 - closed with the workers
        if stacks is not None:
            _open_files.add(stacks)
        try:
            for number in range(loader.num_workers):
                plan = Plan(
                    self._dataset_of_worker(loader, processes),
                    fetcher,
                    loader._auto_collation,
                    loader.collate_fn,
                    loader.drop_last,
                    loader.worker_init_fn,
                    number,
                    loader.num_workers,
                    "process" if processes else "thread",
                )
                seed = self._base_seed + number
                if processes:
                    arena = _arena(loader, number, forked)
                    self._workers.append(ProcessWorker(plan, context, arena, seed, loader.timeout, stacks))
                else:
                    self._workers.append(ThreadWorker(plan, seed, loader.timeout, self._replied))
        except BaseException:
            self._shut_down()
            raise
        self._announce_epoch()

    @staticmethod
    def _dataset_of_worker(loader, processes):
        """A pipe has one iterator at a time: each thread has a copy, as each process does."""
        alone = processes or not isinstance(loader.dataset, IterDataPipe)
        return loader.dataset if alone else copy.deepcopy(loader.dataset)

    def _announce_epoch(self):
        for worker in self._workers:
            worker.send(Epoch(self._base_seed, self._pipe_seed))
        self._sent, self._turn = 0, 0
        self._waiting = collections.deque()  # which worker has the next batch, and the one after it, …
        self._ended = set()  # workers whose stream has come to its end

    def _reset(self, loader):
        """Persistent workers: the next epoch."""
        if not self._workers:  # an error ended them
            self._begin_epoch(loader)
            self._start_workers(loader)
        else:
            for worker in self._workers:
                while worker.outstanding:
                    worker.receive()
            # Nothing is drawn for workers that are there, as in PyTorch: the loader's generator goes on with the order.
            self._begin_epoch(loader, seeding.sample_seed(self._base_seed, -1))
            self._announce_epoch()
        self._fill()

    def _fill(self):
        """Give every worker enough to do, in turn."""
        count = len(self._workers)
        while len(self._waiting) < max(1, self._prefetch_factor * count) and len(self._ended) < count:
            while self._turn in self._ended:
                self._turn = (self._turn + 1) % count
            try:
                task = self._next_task(self._sent)
            except StopIteration:
                return
            self._workers[self._turn].send(task)
            self._waiting.append(self._turn)
            self._sent += 1
            self._turn = (self._turn + 1) % count

    def _next_data(self):
        while True:
            kind, what = self._next_reply()
            if kind == "error":  # of this batch; who asks goes on with the next
                self._let_go()
                what.reraise()
            if self._position is not None:
                self._take_up()
            if kind == "end":
                continue
            if self._skip_in_stream:
                self._skip_in_stream -= 1
                continue
            return what

    def _let_go(self):
        """Leave the loader with where this iterator stands, so that the workers end as soon as nobody asks for more."""
        loader = self._loader()
        if loader is not None and _own(loader, "_running", None) is self:
            fields = {name: getattr(self, name) for name in ("_finished", "_num_yielded", "_start", "_order_ended")}
            drawn = self._drawn()
            self._position = loader._running = types.SimpleNamespace(**fields, _drawn=lambda: drawn)

    def _take_up(self):
        """Somebody asks for more: the loader holds the iterator again, unless another runs by now."""
        loader = self._loader()
        if loader is not None and loader._running is self._position:
            loader._running = self
        self._position = None

    def _next_reply(self):
        if not self._waiting:
            raise StopIteration
        try:
            at = self._waiting.popleft() if self._in_order else self._first_ready()
            _, kind, what = self._workers[at].receive()
            if kind == "end":
                self._ended.add(at)
            self._fill()
        except BaseException:
            self._shut_down()
            raise
        return kind, what

    def _first_ready(self):
        """A worker that has a batch, in whatever order."""
        if self._worker_type == "thread":
            return self._first_ready_thread()
        busy = {worker.pipe: at for at, worker in enumerate(self._workers) if worker.outstanding}
        sentinels = [worker.process.sentinel for worker in self._workers if worker.outstanding]
        ready = multiprocessing.connection.wait([*busy, *sentinels], self._timeout or None)
        at = next((busy[pipe] for pipe in ready if pipe in busy), self._waiting[0])
        self._waiting.remove(at)
        return at

    def _first_ready_thread(self):
        deadline = time.monotonic() + self._timeout if self._timeout > 0 else math.inf
        with self._replied:
            while True:
                at = next(
                    (at for at in self._waiting if self._workers[at].over or not self._workers[at].replies.empty()),
                    None,
                )
                if at is not None:
                    break
                if time.monotonic() >= deadline:
                    raise RuntimeError(
                        f"DataLoader timed out after {self._timeout} seconds: no worker thread has a batch"
                    )
                self._replied.wait(min(1, deadline - time.monotonic()))
        self._waiting.remove(at)
        return at

    def _shut_down(self):
        workers, self._workers = self._workers, []
        self._waiting = collections.deque()
        for worker in workers:
            if isinstance(worker, ProcessWorker):
                with contextlib.suppress(OSError):
                    worker.pipe.close()
        loader = self._loader()
        for worker in workers:
            worker.stop()
            if worker.arena is not None and loader is not None:
                loader._arenas.append(worker.arena)
        if self._stacks is not None:
            self._stacks.close()
            _open_files.discard(self._stacks)

    _shutdown_workers = _shut_down

    def _end_epoch(self):
        super()._end_epoch()
        if not self._persistent_workers:
            self._shut_down()

    def __del__(self):
        with contextlib.suppress(Exception):
            self._shut_down()


# Of iterators: in garbage that is collected as a whole, a file may come before the iterator that closes it.
_open_files: set = set()


def _arena(loader, number, forked):
    """A worker's memory, kept from epoch to epoch: its pages are there already. Two iterators at a time have none in
    common.
    """
    kept = [arena for arena in _own(loader, "_arenas", []) if forked or arena.descriptor is not None]
    arena = kept[0] if kept else (Arena.inherited if forked else Arena.sent)(loader.num_workers)
    loader._arenas = [other for other in loader._arenas if other is not arena]
    if arena is None and number == 0:
        warnings.warn(
            "DataLoader: there is no room for shared memory; batches travel through pipes, which is slower",
            stacklevel=4,
        )
    return arena
