"""DataLoader: the same samples for any number of workers, resuming, and all the ways in which a worker can fail."""

import ctypes
import gc
import os
import pickle
import random
import resource
import signal
import subprocess
import sys
import textwrap
import threading
import time
import warnings

import pytest

import cresset
from cresset.utils.data import (
    BatchSampler,
    DataLoader,
    Dataset,
    IterableDataset,
    RandomSampler,
    Subset,
    TensorDataset,
    get_worker_info,
)


class Labeled(Dataset):
    """Its number, and a row of it."""

    def __len__(self):
        return 64

    def __getitem__(self, index):
        return index, cresset.full((2000,), float(index))


class Noisy(Dataset):
    """Samples with numbers from every generator."""

    def __init__(self, count=20):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        return index, cresset.rand(2), random.random()


class Failing(Noisy):
    """Does something at sample 7."""

    def __init__(self, deed):
        super().__init__()
        self.deed = deed

    def __getitem__(self, index):
        if index == 7:
            self.deed()
        return index


def flat(batches):
    return [[part.tolist() for part in batch] for batch in batches]


def children():
    """Processes whose parent is this one."""
    mine = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat") as stat:
                fields = stat.read().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == os.getpid() and fields[0] != "Z":
            mine.append(int(pid))
    return mine


class TestAnyNumberOfWorkers:
    @pytest.mark.parametrize("workers", [1, 2, 5])
    def test_gives_the_samples_and_augmentations_of_none(self, workers):
        def epochs(count):
            cresset.manual_seed(1)
            loader = DataLoader(Noisy(), batch_size=3, shuffle=True, num_workers=count)
            return flat(loader), flat(loader)

        assert epochs(workers) == epochs(0)

    def test_epochs_differ(self):
        loader = DataLoader(Noisy(), batch_size=20)
        (first,), (second,) = list(loader), list(loader)
        assert first[1].tolist() != second[1].tolist()

    def test_fetching_here_leaves_the_generators_alone(self):
        iterator = iter(DataLoader(Noisy(), batch_size=4))
        ours, pythons = cresset.get_rng_state(), random.getstate()
        next(iterator)
        assert cresset.get_rng_state().equal(ours)
        assert random.getstate() == pythons

    def test_spawned_workers(self):
        cresset.manual_seed(2)
        expected = flat(DataLoader(Noisy(6), batch_size=3))
        cresset.manual_seed(2)
        loader = DataLoader(Noisy(6), batch_size=3, num_workers=1, multiprocessing_context="spawn")
        assert flat(loader) == expected

    @pytest.mark.parametrize("context", ["fork", "spawn"])
    def test_two_iterators_of_one_loader_have_memory_of_their_own(self, context):
        loader = DataLoader(Labeled(), batch_size=4, num_workers=1, shuffle=True, multiprocessing_context=context)
        kept = [batch for pair in zip(loader, loader, strict=True) for batch in pair]
        assert [rows[:, 0].tolist() for _, rows in kept] == [numbers.tolist() for numbers, _ in kept]

    @pytest.mark.parametrize("context", ["fork", "spawn"])
    def test_a_loader_that_was_used_can_be_pickled(self, context):
        loader = DataLoader(range(6), batch_size=3, num_workers=1, multiprocessing_context=context)
        assert flat(loader) == flat(pickle.loads(pickle.dumps(loader)))

    @pytest.mark.skipif(not os.path.isdir("/proc/self/map_files"), reason="the files of a process are read from /proc")
    @pytest.mark.parametrize("context", ["fork", "spawn"])
    def test_a_killed_loader_leaves_no_file(self, context, tmp_path):
        program = tmp_path / "program.py"
        program.write_text(KILLED)
        process = subprocess.Popen(
            [sys.executable, program, context],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "TMPDIR": str(tmp_path), "OMP_NUM_THREADS": "1"},
        )
        with process:
            files = process.stdout.readline().split("\t")
            process.kill()
        assert "batch" in files and not [path for path in files if os.path.exists(path)]
        assert os.listdir(tmp_path) == ["program.py"]

    def test_threads_fetch_too(self):
        loader = DataLoader(TensorDataset(cresset.arange(10)), batch_size=3, num_workers=2, worker_type="thread")
        assert [batch[0].tolist() for batch in loader] == [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9]]

    def test_persistent_workers_go_on_after_a_break(self):
        loader = DataLoader(range(12), batch_size=2, num_workers=2, persistent_workers=True)
        next(iter(loader))
        pids = children()
        assert [batch.tolist() for batch in loader] == [[0, 1], [2, 3], [4, 5], [6, 7], [8, 9], [10, 11]]
        assert children() == pids

    def test_batches_out_of_order_are_all_there(self):
        loader = DataLoader(range(20), batch_size=2, num_workers=3, in_order=False)
        assert sorted(value for batch in loader for value in batch.tolist()) == list(range(20))

    def test_a_stream_is_shared_by_the_workers_that_ask(self):
        class Stream(IterableDataset):
            def __iter__(self):
                info = get_worker_info()
                return iter(range(info.id, 7, info.num_workers))

        assert sorted(
            value for batch in DataLoader(Stream(), batch_size=2, num_workers=3) for value in batch.tolist()
        ) == list(range(7))


class TestMemory:
    def test_batches_that_are_kept_stay_as_they_are(self):
        rows = cresset.arange(4000.0).view(1000, 4)

        class Rows(Dataset):
            def __len__(self):
                return 1000

            def __getitem__(self, index):
                return rows[index]

        kept = list(DataLoader(Rows(), batch_size=10, num_workers=2))
        assert cresset.cat(kept).equal(rows)

    def test_memory_comes_back_when_a_batch_is_dropped(self):
        loader = DataLoader(Noisy(400), batch_size=4, num_workers=1)
        for batch in loader:
            del batch
        arena = loader._arenas[0]
        arena.take_freed()
        assert not arena.live
        assert max(arena.sizes) < 1 << 16  # the same few blocks went round

    def test_numpy_arrays_travel_too(self):
        numpy = pytest.importorskip("numpy")
        loader = DataLoader(
            range(4), batch_size=2, num_workers=1, collate_fn=lambda samples: numpy.full(5000, samples[0])
        )
        assert [array.sum() for array in loader] == [0, 10000]

    def test_few_file_descriptors_are_enough(self):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, hard))
        try:
            assert len(list(DataLoader(Noisy(200), batch_size=2, num_workers=8))) == 100
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

    def test_a_full_arena_falls_back_to_the_pipe(self, monkeypatch, capfd):
        from cresset.data import arena

        monkeypatch.setattr(arena, "LARGEST", 1 << 20)
        kept = list(
            DataLoader(
                range(6), batch_size=1, num_workers=1, collate_fn=lambda s: cresset.full((100_000,), float(s[0]))
            )
        )
        assert [batch[0].item() for batch in kept] == [0, 1, 2, 3, 4, 5]
        assert capfd.readouterr().err.count("shared memory is full") == 1


class TestResuming:
    @pytest.mark.parametrize("workers", [{}, {"num_workers": 2}, {"num_workers": 2, "persistent_workers": True}])
    def test_continues_at_the_next_batch(self, workers):
        def make():
            return DataLoader(Noisy(), batch_size=3, shuffle=True, **workers)

        cresset.manual_seed(4)
        whole = make()
        first = flat(whole)
        second = flat(whole)
        cresset.manual_seed(4)
        stopped = make()
        list(stopped)
        iterator = iter(stopped)
        head = flat([next(iterator), next(iterator)])
        state = stopped.state_dict()
        del iterator
        cresset.manual_seed(99)
        resumed = make()
        resumed.load_state_dict(state)
        assert head + flat(resumed) == second
        assert first != second

    def test_a_state_between_epochs_starts_the_next(self):
        loader = DataLoader(range(4), batch_size=2)
        list(loader)
        state = loader.state_dict()
        assert (state["epoch"], state["batches"]) == (1, 0)
        fresh = DataLoader(range(4), batch_size=2)
        fresh.load_state_dict(state)
        assert [batch.tolist() for batch in fresh] == [[0, 1], [2, 3]]

    def test_a_generator_of_its_own_is_resumed(self):
        def make():
            return DataLoader(range(10), batch_size=2, shuffle=True, generator=cresset.Generator().manual_seed(8))

        expected = [batch.tolist() for batch in make()]
        stopped = make()
        iterator = iter(stopped)
        next(iterator)
        resumed = make()
        resumed.load_state_dict(stopped.state_dict())
        assert [batch.tolist() for batch in resumed] == expected[1:]


def leave():
    sys.exit(3)


def loop():
    while True:
        pass


class Unpicklable(Exception):
    def __init__(self, one, two):
        super().__init__("cannot be rebuilt")

    def __reduce__(self):
        raise TypeError("no")


def raise_unpicklable():
    raise Unpicklable(1, 2)


def end_by(number):
    return lambda: os.kill(os.getpid(), number)


class TestFaults:
    """Each ends in one exception that says what happened and where, soon, and leaves no process behind."""

    @pytest.mark.parametrize(
        ("deed", "kind", "said"),
        [
            (end_by(signal.SIGKILL), RuntimeError, r"killed by signal: Killed \(SIGKILL\).*dataset index 7"),
            (lambda: ctypes.string_at(0), RuntimeError, r"(?s)Segmentation fault.*dataset index 7.*in __getitem__"),
            (leave, RuntimeError, r"left with exit code 3.*dataset index 7"),
            (raise_unpicklable, RuntimeError, r"(?s)worker process 1.*cannot be rebuilt"),
            (lambda: {}["seven"], KeyError, r"(?s)Caught KeyError in DataLoader worker process 1.*in __getitem__"),
        ],
        ids=["kill", "segfault", "exit", "unpicklable", "KeyError"],
    )
    def test_fault(self, deed, kind, said):
        before, start = children(), time.monotonic()
        with pytest.raises(kind, match=said):
            list(DataLoader(Failing(deed), batch_size=4, num_workers=2))
        assert time.monotonic() - start < 5
        assert not set(children()) - set(before)

    @pytest.mark.alone
    def test_endless_loop(self):
        before, start = children(), time.monotonic()
        with pytest.raises(RuntimeError, match=r"(?s)timed out after 1 seconds.*in loop.*dataset index 7"):
            list(DataLoader(Failing(loop), batch_size=4, num_workers=2, timeout=1))
        assert time.monotonic() - start < 5
        assert not set(children()) - set(before)

    def test_what_cannot_be_sent_is_named(self):
        with pytest.raises(Exception, match="lambda"):
            list(DataLoader(range(4), num_workers=1, collate_fn=lambda samples: lambda: samples))

    def test_worker_init_fn_that_fails(self):
        def broken(number):
            raise OSError("no such disk")

        with pytest.raises(OSError, match="no such disk"):
            list(DataLoader(range(4), num_workers=2, worker_init_fn=broken))

    def test_interrupt_and_death_of_the_parent_leave_nothing(self, tmp_path):
        program = textwrap.dedent("""
            import os, sys, time
            import cresset
            from cresset.utils.data import DataLoader, Dataset

            class Slow(Dataset):
                def __len__(self):
                    return 1000
                def __getitem__(self, index):
                    open(os.path.join(sys.argv[1], str(os.getpid())), "w").close()
                    time.sleep(0.02)
                    return index

            try:
                for batch in DataLoader(Slow(), batch_size=2, num_workers=2, multiprocessing_context="fork"):
                    print("batch", flush=True)
            except KeyboardInterrupt:
                print("interrupted", flush=True)
        """)
        for number in (signal.SIGINT, signal.SIGKILL):
            folder = tmp_path / str(int(number))
            folder.mkdir()
            with subprocess.Popen(
                [sys.executable, "-c", program, str(folder)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
            ) as process:
                assert process.stdout.readline() == "batch\n"
                process.send_signal(number)
                said, errors = process.communicate(timeout=5)
            if number == signal.SIGINT:
                assert said.endswith("interrupted\n")
                assert "Traceback" not in errors
            deadline = time.monotonic() + 5
            while left := [pid for pid in os.listdir(folder) if os.path.exists(f"/proc/{pid}")]:
                assert time.monotonic() < deadline, left
                time.sleep(0.05)


class TestArguments:
    @pytest.mark.parametrize(
        "arguments",
        [
            {"num_workers": -1}, {"timeout": -1}, {"prefetch_factor": 2}, {"persistent_workers": True},
            {"batch_size": 0}, {"shuffle": True, "sampler": [0]}, {"batch_sampler": [[0]], "shuffle": True},
            {"batch_size": None, "drop_last": True}, {"multiprocessing_context": "fork"}, {"worker_type": "fibre"},
        ],
        ids=str,
    )  # fmt: skip
    def test_contradictions_are_refused(self, arguments):
        with pytest.raises(ValueError):
            DataLoader(range(4), **arguments)

    def test_what_decides_the_batches_is_fixed(self):
        loader = DataLoader(range(4))
        with pytest.raises(ValueError, match="batch_size attribute should not be set"):
            loader.batch_size = 2

    def test_rows_taken_at_once_equal_rows_taken_one_by_one(self):
        data = TensorDataset(cresset.randn(10, 3), cresset.arange(10))
        quick = list(DataLoader(data, batch_size=4))
        slow = list(
            DataLoader(data, batch_size=4, collate_fn=lambda samples: cresset.utils.data.default_collate(samples))
        )
        assert all(a.equal(b) for one, other in zip(quick, slow, strict=True) for a, b in zip(one, other, strict=True))

    def test_batch_sampler_over_a_random_sampler(self):
        sampler = BatchSampler(RandomSampler(range(7)), 3, True)
        assert [len(batch) for batch in sampler] == [3, 3]
        assert len(sampler) == 2


class Growing(Dataset):
    """Sample i has a length that varies without an order."""

    def __len__(self):
        return 60

    def __getitem__(self, index):
        return cresset.full((1 + index * 37 % 60 * 100,), index)


def test_batches_of_varying_sizes_do_not_fill_the_shared_memory(capfd):
    loader = DataLoader(Growing(), batch_size=None, num_workers=1)
    assert [int(sample[0]) for sample in loader] == list(range(60))
    assert "shared memory is full" not in capfd.readouterr().err


@pytest.mark.parametrize("processors, workers, warned", [(2, 3, True), (2, 2, False), (8, 3, False)])
def test_more_workers_than_processors_are_warned_about(monkeypatch, processors, workers, warned):
    monkeypatch.setattr("cresset.__config__.usable_processors", lambda: processors)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        loader = DataLoader(range(4), num_workers=workers)
        loader.check_worker_number_rationality()
    expected = (
        f"This DataLoader will create {workers} worker processes in total. Our suggested max number of worker "
        f"in current system is {processors}"
    )
    assert len(seen) == 2 * warned and all(str(entry.message).startswith(expected) for entry in seen)
    assert all(entry.filename == __file__ for entry in seen[:1])


def test_threads_and_loading_here_are_no_processes(monkeypatch):
    monkeypatch.setattr("cresset.__config__.usable_processors", lambda: 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        DataLoader(range(4), num_workers=3, worker_type="thread")
        DataLoader(range(4))


KILLED = """
import os, sys, time
import cresset
from cresset.utils.data import DataLoader

def writable_files(pid):
    with open(f"/proc/{pid}/maps") as file:
        return [line.split(maxsplit=5)[5].strip() for line in file if line.split()[1] == "rw-s"]

if __name__ == "__main__":
    loader = iter(DataLoader(cresset.arange(100000.0), batch_size=1000, num_workers=2, multiprocessing_context=sys.argv[1]))
    next(loader)
    files = writable_files(os.getpid())
    for worker in loader._workers:
        files += writable_files(worker.pid)
    print("batch", *files, sep="\\t", flush=True)
    time.sleep(60)
"""  # noqa: E501


SMALL_SHARED_MEMORY = """
import os
import cresset
from cresset.utils.data import DataLoader, Dataset

class Large(Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, index):
        return cresset.full((4_000_000,), float(index))

if __name__ == "__main__":
    space = os.statvfs("/dev/shm")
    print(space.f_blocks * space.f_frsize >> 20)
    for context in ("fork", "spawn"):
        kept = list(DataLoader(Large(), batch_size=1, num_workers=2, multiprocessing_context=context))
        print(context, [batch[0, -1].item() for batch in kept])
    print(os.listdir("/dev/shm"))
"""


def test_64_megabytes_of_shared_memory_are_enough(tmp_path):
    """128 MB of batches are kept at a time: what does not fit goes through the pipe."""
    program = tmp_path / "program.py"
    program.write_text(SMALL_SHARED_MEMORY)
    mount = 'mount -t tmpfs -o size=64m tmpfs /dev/shm && exec "$0" "$1"'
    if subprocess.run(["unshare", "--mount", "true"], capture_output=True).returncode:
        pytest.skip("a small /dev/shm cannot be mounted here")
    run = subprocess.run(
        ["unshare", "--mount", "sh", "-c", mount, sys.executable, program], capture_output=True, text=True, timeout=120
    )
    numbers = [float(i) for i in range(8)]
    assert run.stdout.splitlines() == ["64", f"fork {numbers}", f"spawn {numbers}", "[]"], run.stderr


class TestThreadsInAnyOrder:
    class Slow(Dataset):
        def __init__(self):
            self.go = threading.Event()

        def __len__(self):
            return 4

        def __getitem__(self, index):
            if index == 0 and not self.go.wait(20):
                raise RuntimeError("nobody let the first sample go")
            return index

    def test_a_batch_that_is_ready_does_not_wait_for_one_that_is_not(self):
        data = self.Slow()
        batches = iter(DataLoader(data, num_workers=2, worker_type="thread", in_order=False))
        first = next(batches).item()
        data.go.set()
        rest = [batch.item() for batch in batches]
        assert first == 1 and sorted(rest) == [0, 2, 3]

    def test_all_come_once_when_a_worker_fails_the_error_comes(self):
        assert sorted(
            b.item() for b in DataLoader(range(50), num_workers=3, worker_type="thread", in_order=False)
        ) == list(range(50))
        data = self.Slow()
        loader = DataLoader(data, num_workers=1, worker_type="thread", in_order=False, timeout=0.2)
        with pytest.raises(RuntimeError, match="timed out after 0.2 seconds"):
            next(iter(loader))
        data.go.set()


def test_a_device_for_pinned_memory_is_warned_about():
    with pytest.warns(UserWarning, match="pin_memory_device is deprecated"):
        DataLoader(range(3), pin_memory=True, pin_memory_device="cuda")


@pytest.mark.skipif(cresset.cuda.is_available(), reason="memory can be pinned here")
def test_memory_that_cannot_be_pinned_is_warned_about():
    with pytest.warns(UserWarning, match="no accelerator is found"):
        assert [b.item() for b in DataLoader(range(3), pin_memory=True)] == [0, 1, 2]


class TestLoadersThatStandInForOurs:
    """Other packages iterate with loaders of their own, which have PyTorch's attributes and no others."""

    NAMES = (
        "dataset", "_dataset_kind", "_IterableDataset_len_called", "_auto_collation", "drop_last", "_index_sampler",
        "num_workers", "pin_memory", "timeout", "collate_fn", "generator",
        "worker_init_fn", "prefetch_factor", "multiprocessing_context", "persistent_workers", "in_order",
    )  # fmt: skip

    def stand_in(self, **settings):
        loader = DataLoader(list(range(6)), batch_size=2, **settings)
        stand_in = type("StandIn", (), {})()
        for name in self.NAMES:
            setattr(stand_in, name, getattr(loader, name))
        return stand_in

    def test_an_iterator_asks_for_pytorchs_attributes_only(self):
        from cresset.utils.data.dataloader import _MultiProcessingDataLoaderIter, _SingleProcessDataLoaderIter

        batches = [[0, 1], [2, 3], [4, 5]]
        assert [b.tolist() for b in _SingleProcessDataLoaderIter(self.stand_in())] == batches
        assert [b.tolist() for b in _MultiProcessingDataLoaderIter(self.stand_in(num_workers=2))] == batches

    def test_a_subclass_around_another_loader(self):
        class Around(DataLoader):
            def __init__(self, base):
                self.base = base

            def __getattr__(self, name):
                return getattr(self.__dict__["base"], name)

        around = Around(DataLoader(list(range(4)), batch_size=2))
        for _ in range(2):
            assert [b.tolist() for b in around] == [[0, 1], [2, 3]]
        assert around.batch_size == 2


def test_a_subset_that_reads_samples_its_own_way_reads_batches_so_too():
    class Doubled(Subset):
        def __getitem__(self, index):
            return 2 * super().__getitem__(index)

    with pytest.raises(NotImplementedError, match="Doubled overrides __getitem__ but not __getitems__"):
        Doubled(range(4), [0, 1])

    class Both(Doubled):
        def __getitems__(self, indices):
            return [self[index] for index in indices]

    assert Both(range(4), [1, 3]).__getitems__([0, 1]) == [2, 6]


def test_too_many_workers_may_be_slow():
    with pytest.warns(UserWarning, match="excessive worker creation might get DataLoader running slow or even freeze"):
        DataLoader(range(4), num_workers=1000)


def test_the_file_for_stacks_does_not_depend_on_who_is_collected_first():
    """Collected before the iterator of its cycle, an open file would warn."""
    from cresset.data.loader import _open_files

    before = set(_open_files)
    iterator = iter(DataLoader(range(8), num_workers=1))
    (file,) = _open_files - before
    iterator.me = iterator
    del iterator
    gc.collect()
    assert file.closed and file not in _open_files


class FailsAtOdd(Dataset):
    def __len__(self):
        return 6

    def __getitem__(self, index):
        if index % 2:
            raise ValueError(f"sample {index} is broken")
        return index


@pytest.mark.parametrize("workers", [0, 2])
def test_after_a_broken_batch_the_next_ones_come(workers):
    batches, found, broken = iter(DataLoader(FailsAtOdd(), batch_size=None, num_workers=workers)), [], 0
    while True:
        try:
            found.append(next(batches))
        except ValueError:
            broken += 1
        except StopIteration:
            break
    assert found == [0, 2, 4] and broken == 3


def test_where_a_loader_stands_is_known_after_a_broken_batch():
    loader = DataLoader(FailsAtOdd(), batch_size=None, num_workers=1)
    with pytest.raises(ValueError, match="sample 1 is broken"):
        list(loader)
    assert loader.state_dict()["batches"] == 1


def _seed_the_worker(number):
    cresset.manual_seed(12345)


class Seeds(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        return cresset.initial_seed()


def test_a_worker_that_is_seeded_when_it_begins_keeps_its_seed():
    assert list(DataLoader(Seeds(), batch_size=None, num_workers=2, worker_init_fn=_seed_the_worker)) == [12345] * 4


def test_workers_can_be_waited_for():
    batches = iter(DataLoader(range(100), batch_size=2, num_workers=2))
    workers = list(batches._workers)
    next(batches)
    assert all(worker.is_alive() for worker in workers)
    batches._shutdown_workers()
    for worker in workers:
        worker.join(5)
        assert not worker.is_alive()


def test_functions_that_cannot_be_sent_to_a_worker_are_told_of():
    loader = DataLoader(
        range(4), num_workers=1, worker_init_fn=lambda number: None, multiprocessing_context="forkserver"
    )
    with pytest.warns(UserWarning, match="Got pickle error when"), pytest.raises(Exception, match="lambda"):
        next(iter(loader))


def test_a_limit_of_the_address_space_leaves_room_beside_the_workers(tmp_path):
    script = tmp_path / "limited.py"
    script.write_text(
        "import resource\n"
        "resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))\n"
        "import cresset\n"
        "from cresset.utils.data import DataLoader\n"
        "loaders = [DataLoader(range(8), num_workers=4, persistent_workers=True) for _ in range(3)]\n"
        "assert [len(list(loader)) for loader in loaders] == [8, 8, 8]\n"
        "cresset.ones(1 << 27)\n"  # half a gigabyte
    )
    done = subprocess.run([sys.executable, "-W", "ignore", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_nothing_cannot_be_shuffled():
    for make in (RandomSampler, lambda data: DataLoader(data, shuffle=True)):
        with pytest.raises(ValueError, match="num_samples should be a positive integer value, but got num_samples=0"):
            make([])
