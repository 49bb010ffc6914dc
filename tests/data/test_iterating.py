"""What packages with a loader of their own take from PyTorch's: the iterator's protocol, fetchers, workers, pipes."""

import gc
import importlib.util
import os
import random
import signal
import subprocess
import sys
import time

import pytest

import cresset
from cresset.utils import data
from cresset.utils.data import _utils, graph_settings
from cresset.utils.data.dataloader import _BaseDataLoaderIter, _sharding_worker_init_fn
from cresset.utils.data.datapipes.iter import IterableWrapper


class InThisProcess(_BaseDataLoaderIter):
    def __init__(self, loader):
        super().__init__(loader)
        self.fetcher = data._DatasetKind.create_fetcher(
            self._dataset_kind, self._dataset, self._auto_collation, self._collate_fn, self._drop_last
        )

    def _next_data(self):
        return self.fetcher.fetch(self._next_index())


class Stream(data.IterableDataset):
    def __iter__(self):
        return iter(range(5))


class Noise(data.Dataset):
    def __len__(self):
        return 3

    def __getitem__(self, index):
        return random.random()


def test_an_iterator_by_pytorchs_protocol_gives_the_batches_of_each_epoch():
    loader = data.DataLoader(data.TensorDataset(cresset.arange(5)), batch_size=2)
    batches = InThisProcess(loader)
    assert [x.tolist() for (x,) in batches] == [[0, 1], [2, 3], [4]]
    assert len(batches) == 3 and batches._num_yielded == 3 and (batches._world_size, batches._rank) == (1, 0)
    batches._reset(loader)
    assert next(batches)[0].tolist() == [0, 1] and batches._num_yielded == 1
    assert isinstance(iter(loader), _BaseDataLoaderIter)
    with pytest.raises(NotImplementedError, match="cannot be pickled"):
        batches.__getstate__()
    with pytest.raises(NotImplementedError, match="needs a method _next_data"):
        next(_BaseDataLoaderIter(loader))


def test_a_stream_is_fetched_by_its_iterator_which_can_be_replaced():
    batches = InThisProcess(data.DataLoader(Stream(), batch_size=2))
    assert next(batches).tolist() == [0, 1] and batches.fetcher.ended is False
    batches.fetcher.dataset_iter = iter([7, 8, 9])
    assert [x.tolist() for x in batches] == [[7, 8], [9]] and batches.fetcher.ended


def test_a_fetcher_without_an_epochs_seed_leaves_the_generators_alone():
    fetcher = data._DatasetKind.create_fetcher(data._DatasetKind.Map, Noise(), True, list, False)
    random.seed(3)
    expected = [random.random() for _ in range(3)]
    random.seed(3)
    assert fetcher.fetch([0, 1, 2]) == expected


def test_a_worker_of_somebodys_own_loader_says_which_one_it_is():
    info = _utils.worker.WorkerInfo(id=1, num_workers=2, seed=0, dataset=None)
    _utils.worker._worker_info = info
    try:
        assert data.get_worker_info() is info and _utils.worker._worker_info is info
    finally:
        _utils.worker._worker_info = None
    assert data.get_worker_info() is None
    assert _utils.worker.ManagerWatchdog().is_alive()


@pytest.mark.skipif(importlib.util.find_spec("numpy") is None, reason="NumPy's seeds")
def test_the_state_of_numpys_generator_in_a_worker():
    # What PyTorch's workers use for this seed and worker.
    found = _utils.worker._generate_state(12345678901234567, 3)
    assert found == [2377215042, 2522568625, 962964186, 3121645664]


class Pipe(data.IterDataPipe):
    def __init__(self, source=None):
        self.source, self.seed, self.share, self.shuffle = source, None, None, None

    def __iter__(self):
        number, of = self.share or (0, 1)
        return iter(range(number, 6, of))

    def is_shardable(self):
        return True

    def apply_sharding(self, of, number):
        self.share = (number, of)

    def set_seed(self, seed):
        self.seed = seed

    def set_shuffle(self, shuffle):
        self.shuffle = shuffle


def test_settings_reach_every_pipe_that_a_dataset_is_made_of():
    inner = Pipe()
    outer = Pipe([inner, {"again": inner}])
    with pytest.raises(RuntimeError, match="Sharding twice on a single pipeline"):
        graph_settings.apply_sharding(outer, 3, 1)
    graph_settings.apply_sharding(IterableWrapper([0]).zip(inner), 3, 1)
    assert inner.share == (1, 3) and list(inner) == [1, 4]
    graph_settings.apply_shuffle_settings(outer, shuffle=False)
    assert inner.shuffle is False
    first = cresset.Generator().manual_seed(5)
    graph_settings.apply_random_seed(outer, first)
    seeds = (outer.seed, inner.seed)
    graph_settings.apply_random_seed(outer, cresset.Generator().manual_seed(5))
    assert (outer.seed, inner.seed) == seeds and seeds[0] != seeds[1]


def test_a_pipe_in_a_loader_has_one_seed_an_epoch_and_a_share_a_worker():
    pipe = Pipe()
    batches = InThisProcess(data.DataLoader(pipe, batch_size=3))
    assert [x.tolist() for x in batches] == [[0, 1, 2], [3, 4, 5]] and pipe.seed is not None
    _utils.worker._worker_info = _utils.worker.WorkerInfo(id=1, num_workers=2, seed=0, dataset=pipe)
    try:
        called = []
        _sharding_worker_init_fn(called.append, 2, 1, 1)  # worker 1 of 2, in process 1 of 2
        assert pipe.share == (3, 4) and called == [1]
    finally:
        _utils.worker._worker_info = None


def test_the_end_of_a_worker_is_an_error_unless_it_was_asked_to_end():
    handling = _utils.signal_handling
    for how, said in ((signal.SIGKILL, "is killed by signal: Killed"), (signal.SIGTERM, None)):
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
        handling._set_worker_pids(1, (child.pid,))
        try:
            handling._error_if_any_worker_fails()
            child.send_signal(how)
            deadline = time.monotonic() + 10
            while os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
                assert time.monotonic() < deadline
                time.sleep(0.01)
            if said is None:
                handling._error_if_any_worker_fails()
            else:
                with pytest.raises(RuntimeError, match=rf"DataLoader worker \(pid {child.pid}\) {said}"):
                    handling._error_if_any_worker_fails()
        finally:
            handling._remove_worker_pids(1)
            child.kill()
            child.wait()
    with pytest.raises(ValueError, match="no worker processes"):
        handling._remove_worker_pids(1)


@pytest.mark.parametrize("persistent", [False, True])
def test_workers_end_with_an_iterator_whose_loader_nobody_holds(persistent):
    iterator = iter(data.DataLoader(range(12), batch_size=2, num_workers=2, persistent_workers=persistent))
    assert next(iterator).tolist() == [0, 1]
    workers = [worker.process for worker in iterator._workers]
    gc.disable()  # nothing may be left for the collector
    try:
        del iterator
        for worker in workers:
            worker.join(10)
        assert not any(worker.is_alive() for worker in workers)
    finally:
        gc.enable()


def test_workers_leave_by_themselves_while_those_of_a_later_loader_live():
    first = iter(data.DataLoader(range(12), batch_size=2, num_workers=2))
    second = iter(data.DataLoader(range(12), batch_size=2, num_workers=2))  # forked, with all that is open here
    assert next(first).tolist() == next(second).tolist() == [0, 1]
    workers = list(first._workers)
    del first
    for worker in workers:
        worker.join(10)
    assert [worker.exitcode for worker in workers] == [0, 0]  # nobody had to kill them
    assert all(worker.is_alive() for worker in second._workers)


def test_an_iterator_goes_on_when_its_loader_is_gone():
    iterator = iter(data.DataLoader(range(12), batch_size=4, num_workers=2))
    gc.collect()
    assert [batch.tolist() for batch in iterator] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]


def test_a_stream_longer_than_it_said_is_told_of_once_its_length_was_asked_for():
    class Longer(data.IterableDataset):
        def __iter__(self):
            return iter(range(4))

        def __len__(self):
            return 3

    loader = data.DataLoader(Longer(), batch_size=None)
    assert list(loader) == [0, 1, 2, 3]
    assert len(loader) == 3
    iterator = iter(loader)
    assert [next(iterator) for _ in range(3)] == [0, 1, 2]
    with pytest.warns(UserWarning, match="Length of IterableDataset .* was reported to be 3"):
        next(iterator)


@pytest.mark.parametrize("handler", [signal.SIG_DFL, signal.SIG_IGN], ids=["default", "ignored by the parent"])
def test_a_worker_answers_as_a_process_does(handler):
    before = signal.signal(signal.SIGTERM, handler)
    try:
        iterator = iter(data.DataLoader(range(4), num_workers=1))
    finally:
        signal.signal(signal.SIGTERM, before)
    (worker,) = iterator._workers
    assert worker.is_alive() and worker.exitcode is None
    assert next(iterator).tolist() == [0]  # so it has begun
    worker.terminate()
    worker.join(10)
    assert not worker.is_alive() and worker.exitcode == -signal.SIGTERM


def test_a_loader_in_one_process_imports_nothing_of_several():
    program = (
        "import sys, cresset; from cresset.utils.data import DataLoader; list(DataLoader(range(4), batch_size=2)); "
        "sys.exit('cresset.distributed' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0
