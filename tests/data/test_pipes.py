"""Pipes: datasets that are chained."""

import copy
import gc
import pickle
import warnings

import pytest

import cresset
from cresset import data
from cresset.data.pipes.files import StreamWrapper
from cresset.utils.data.datapipes import iter as streams
from cresset.utils.data.datapipes import map as keyed
from cresset.utils.data.graph import traverse_dps
from cresset.utils.data.graph_settings import apply_sharding, apply_shuffle_settings, get_all_graph_pipes


def counted(n):
    return streams.IterableWrapper(range(n))


def is_odd(n):
    return n % 2 == 1


def parity(n):
    return n % 2


def initial(word):
    return word[0]


def add(a, b):
    return a + b


# ---- one after the other


def test_a_chain_computes_as_it_is_read():
    assert list(counted(10).map(abs).filter(is_odd).batch(2)) == [[1, 3], [5, 7], [9]]
    assert len(counted(10).map(abs).batch(3)) == 4 and len(counted(10).batch(3, drop_last=True)) == 3
    with pytest.raises(TypeError, match="FilterIterDataPipe' has no len"):
        len(counted(10).filter(is_odd))
    with pytest.raises(TypeError, match="BatcherIterDataPipe instance doesn't have valid length"):
        len(counted(10).filter(is_odd).batch(2))


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ({"input_col": 1}, (1, 4, 3)),
        ({"input_col": 1, "output_col": 0}, (4, 2, 3)),
        ({"input_col": 1, "output_col": -1}, (1, 2, 3, 4)),
    ],
)
def test_map_takes_a_column_and_puts_its_result_into_one(columns, expected):
    assert list(streams.IterableWrapper([(1, 2, 3)]).map((2).__mul__, **columns)) == [expected]


def test_map_of_several_columns_leaves_its_result_in_the_first():
    assert list(streams.IterableWrapper([(1, 2, 3)]).map(add, input_col=[2, 0])) == [(2, 4)]
    assert list(streams.IterableWrapper([{"a": 1, "b": 2}]).map(add, ["a", "b"], "c")) == [{"a": 1, "b": 2, "c": 3}]


def test_functions_that_do_not_fit_are_refused_when_the_pipe_is_made():
    with pytest.raises(ValueError, match="add takes 2 positional parameters, but 1 are required"):
        counted(3).map(add)
    with pytest.raises(ValueError, match="`output_col` must be None when `input_col` is None"):
        counted(3).map(abs, output_col=1)
    with pytest.raises(ValueError, match="Boolean output is required"):
        list(counted(3).filter(parity))
    with pytest.warns(UserWarning, match="Local function is not supported by pickle"):
        counted(3).map(lambda x: x)


def test_an_error_says_which_pipe_it_came_from_once():
    with pytest.raises(ZeroDivisionError, match="thrown by __iter__ of MapperIterDataPipe") as caught:
        list(counted(3).map((1).__floordiv__).map(abs))
    assert str(caught.value).count("thrown by") == 1


def test_samples_that_are_changed_in_place_are_new_in_the_next_epoch():
    pipe = streams.IterableWrapper([[1], [2]])
    for sample in pipe:
        sample.append(0)
    assert list(pipe) == [[1], [2]]


# ---- groups


def test_batches_are_taken_apart_again():
    nested = counted(8).batch(2).batch(2)
    assert list(nested.unbatch()) == [[0, 1], [2, 3], [4, 5], [6, 7]]
    assert list(nested.unbatch(-1)) == list(nested.unbatch(2)) == list(range(8))
    with pytest.raises(IndexError, match="unbatch_level 3 exceeds the depth"):
        list(nested.unbatch(3))


def test_groups_leave_when_they_are_full_or_the_buffer_is():
    words = streams.IterableWrapper(["ape", "bee", "ant", "bat", "auk", "cod"])
    assert list(words.groupby(initial, group_size=2)) == [["ape", "ant"], ["bee", "bat"], ["auk"], ["cod"]]
    assert list(words.groupby(initial, buffer_size=3, keep_key=True)) == [
        ("a", ["ape", "ant"]),
        ("b", ["bee", "bat"]),
        ("a", ["auk"]),
        ("c", ["cod"]),
    ]
    with pytest.raises(RuntimeError, match="Failed to group items"):
        list(words.groupby(initial, buffer_size=2, group_size=2))
    assert list(words.groupby(initial, buffer_size=2, group_size=2, drop_remaining=True)) == [["cod"]]


# ---- several


def test_joins_end_with_the_shortest():
    short, long = counted(2), streams.IterableWrapper(range(10, 14))
    assert list(short.zip(long)) == [(0, 10), (1, 11)] and len(short.zip(long)) == 2
    assert list(short.mux(long)) == [0, 10, 1, 11] and len(short.mux(long)) == 4
    assert list(short.concat(long)) == [0, 1, 10, 11, 12, 13] and len(short.concat(long)) == 6
    with pytest.raises(TypeError, match="Expected all inputs to be `IterDataPipe`"):
        short.concat([1])


def test_branches_of_a_fork_read_the_source_once():
    reads = []
    a, b = streams.IterableWrapper(reads_into(reads), deepcopy=False).fork(2)
    assert list(zip(a, b)) == [(0, 0), (1, 1), (2, 2)] and reads == [0, 1, 2]


def reads_into(reads):
    for n in range(3):
        reads.append(n)
        yield n


def test_a_branch_may_not_run_too_far_ahead():
    a, _ = counted(10).fork(2, buffer_size=3)
    with pytest.raises(BufferError, match="buffer size 3 is insufficient"):
        list(a)
    a, _ = counted(10).demux(2, parity, buffer_size=3)
    with pytest.raises(BufferError, match="buffer size 3 is insufficient"):
        list(a)


def test_a_branch_that_begins_again_resets_the_others():
    a, b = counted(4).fork(2)
    old = iter(b)
    assert next(old) == 0 and list(a) == [0, 1, 2, 3]
    with pytest.warns(UserWarning, match="Some child DataPipes are not exhausted"):
        again = iter(a)
    with pytest.raises(RuntimeError, match="one of the ChildDataPipes"):
        next(old)
    del old
    gc.collect()  # the end of an old iterator is nothing to the new ones
    assert list(again) == list(b) == [0, 1, 2, 3]


def test_demux_gives_each_branch_its_samples():
    even, odd = counted(5).demux(2, parity)
    assert list(odd) == [1, 3] and list(even) == [0, 2, 4]
    with pytest.raises(ValueError, match="should be between 0 and 0. 1 is returned"):
        list(counted(2).demux(1, parity)[0])
    (known,) = streams.IterableWrapper([0, None]).demux(1, abs_or_none, drop_none=True)
    assert list(known) == [0]


def abs_or_none(n):
    return None if n is None else abs(n)


# ---- iterators


def test_a_new_iterator_ends_the_one_before():
    pipe = counted(3)
    first, second = iter(pipe), iter(pipe)
    assert next(first) == 0 and next(second) == 0
    with pytest.raises(RuntimeError, match="another iterator has been created from the same IterDataPipe"):
        next(first)
    assert list(second) == [1, 2] and pipe._number_of_samples_yielded == 3


class Countdown(data.IterDataPipe):
    def __init__(self, n):
        self.n = n

    def reset(self):
        self.left = self.n

    def __iter__(self):
        return self

    def __next__(self):
        if self.left == 0:
            raise StopIteration
        self.left -= 1
        return self.left


def test_a_pipe_that_is_its_own_iterator_is_reset_for_each():
    pipe = Countdown(3)
    assert list(pipe) == [2, 1, 0] and list(pipe) == [2, 1, 0] and pipe._number_of_samples_yielded == 3


def test_a_class_becomes_a_method_of_pipes_and_its_name_is_taken():
    @data.functional_datapipe("countdown_of_tests")
    class Doubled(data.IterDataPipe):
        """Twice."""

        def __init__(self, source):
            self.source = source

        def __iter__(self):
            for sample in self.source:
                yield 2 * sample

    try:
        assert list(Countdown(3).countdown_of_tests()) == [4, 2, 0]
        assert Countdown(3).countdown_of_tests.__doc__ == "Twice." and "countdown_of_tests" in dir(Countdown(3))
        with pytest.raises(Exception, match="already taken"):
            data.functional_datapipe("countdown_of_tests")(Doubled)
    finally:
        del data.IterDataPipe.functions["countdown_of_tests"]
    with pytest.raises(AttributeError, match="'Countdown' object has no attribute 'countdown_of_tests'"):
        Countdown(3).countdown_of_tests
    with pytest.raises(TypeError, match="can only decorate"):
        data.functional_datapipe("anything")(list)


def test_what_is_not_deterministic_can_be_refused():
    varying = data.non_deterministic(Countdown)
    assert list(varying(2)) == [1, 0]
    with data.guaranteed_datapipes_determinism(), pytest.raises(TypeError, match="Countdown is non-deterministic"):
        varying(2)
    assert list(varying(2)) == [1, 0]


# ---- order, shares and loaders


def test_a_shuffle_is_decided_by_its_seed():
    pipe = counted(100).shuffle(buffer_size=10)
    first = list(pipe.set_seed(3))
    assert first != list(range(100)) and sorted(first) == list(range(100))
    assert list(pipe.set_seed(3)) == first != list(pipe)
    assert list(pipe.set_shuffle(False)) == list(range(100))
    cresset.manual_seed(0)
    drawn = list(counted(9).shuffle())
    cresset.manual_seed(0)
    assert list(counted(9).shuffle()) == drawn


def test_shares_are_disjoint_and_whole_also_among_groups():
    groups = streams.sharding.SHARDING_PRIORITIES
    found = []
    for process in range(2):
        for worker in range(3):
            pipe = counted(20).sharding_filter()
            pipe.apply_sharding(2, process, groups.DISTRIBUTED)
            pipe.apply_sharding(3, worker, groups.MULTIPROCESSING)
            assert len(pipe) == len(list(pipe))
            found += pipe
    assert sorted(found) == list(range(20))
    with pytest.raises(RuntimeError, match="cannot mix DEFAULT and non DEFAULT groups"):
        pipe.apply_sharding(2, 0)
    with pytest.raises(ValueError, match=r"instance_id\(2\) should be smaller"):
        counted(3).sharding_filter().apply_sharding(2, 2)


@pytest.mark.parametrize(
    "workers",
    [{}, {"num_workers": 2}, {"num_workers": 2, "worker_type": "thread"}],
    ids=["here", "processes", "threads"],
)
def test_a_loader_shuffles_a_pipe_anew_each_epoch_and_shares_it_among_workers(workers):
    pipe = counted(20).shuffle().sharding_filter()
    loader = data.DataLoader(pipe, batch_size=None, shuffle=True, **workers)
    cresset.manual_seed(1)
    first, second = list(loader), list(loader)
    assert sorted(first) == sorted(second) == list(range(20)) and first != second != list(range(20))
    cresset.manual_seed(1)
    assert list(loader) == first


def test_a_loader_adds_a_shuffle_where_none_is():
    with pytest.warns(UserWarning, match="does not contain a `Shuffler`"):
        loader = data.DataLoader(counted(50), batch_size=None, shuffle=True)
    assert sorted(loader) == list(range(50)) != list(loader)


def test_the_pipes_that_a_pipe_is_made_of():
    source = counted(3)
    pipe = source.map(abs).zip(source.map(abs))
    graph = traverse_dps(pipe)
    assert [type(p).__name__ for p in get_all_graph_pipes(graph)] == [
        "ZipperIterDataPipe", "MapperIterDataPipe", "IterableWrapperIterDataPipe", "MapperIterDataPipe",
    ]  # fmt: skip
    assert graph[id(pipe)][0] is pipe and len(graph[id(pipe)][1]) == 2
    with pytest.raises(RuntimeError, match="Sharding twice"):
        apply_sharding(counted(3).sharding_filter().sharding_filter(), 2, 0)
    assert apply_shuffle_settings(source) is source


def test_pipes_are_copied_and_pickled_without_what_was_read():
    for pipe in (
        counted(6).shuffle().batch(2), counted(6).groupby(parity), counted(6).fork(2)[0], counted(6).demux(2, parity)[1]
    ):  # fmt: skip
        next(iter(pipe))
        for copied in (copy.deepcopy(pipe), pickle.loads(pickle.dumps(pipe))):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                assert len(list(copied)) == len(list(pipe))


# ---- files


def test_files_are_listed_by_name_opened_and_read(tmp_path):
    (tmp_path / "deeper").mkdir()
    for name, text in (("b.txt", "two"), ("a.txt", "one"), ("c.bin", "no"), ("deeper/d.txt", "three")):
        (tmp_path / name).write_text(text)
    root = str(tmp_path)
    names = [path.removeprefix(root + "/") for path in streams.FileLister(root, "*.txt", recursive=True)]
    assert names == ["a.txt", "b.txt", "deeper/d.txt"]
    read = streams.FileLister(root, ["*.txt"]).open_files("b").read_from_stream(2)
    assert [content for _, content in read] == [b"on", b"e", b"tw", b"o"]
    with pytest.raises(TypeError, match="doesn't have valid length"):
        len(read.datapipe)
    assert len(streams.FileOpener([], length=4)) == 4
    with pytest.warns(UserWarning, match="No such file"), pytest.raises(FileNotFoundError):
        list(streams.FileLister(root + "/nowhere"))
    with pytest.raises(ValueError, match="Invalid mode w"):
        streams.FileOpener([], "w")


def test_a_stream_closes_with_the_last_that_was_made_from_it(tmp_path):
    (tmp_path / "a").write_text("text")
    archive = StreamWrapper(open(tmp_path / "a"), name="archive")  # noqa: SIM115
    member = StreamWrapper(object(), parent_stream=archive)
    archive.autoclose()
    assert not archive.closed and "archive" in repr(archive) and archive.read() == "text"
    StreamWrapper.close_streams([{"member": member}])
    assert member.closed and archive.closed and archive.file_obj.closed


# ---- with keys


def test_pipes_with_keys():
    pipe = keyed.SequenceWrapper([1, -2, 3]).map(abs)
    assert pipe[1] == 2 and len(pipe) == 3
    assert list(pipe.batch(2)) == [[1, 2], [3]] and len(pipe.batch(2, drop_last=True)) == 1
    assert pipe.concat(pipe)[4] == 2 and pipe.zip(pipe)[2] == (3, 3)
    with pytest.raises(IndexError, match="Index 6 is out of range"):
        pipe.concat(pipe)[6]
    with pytest.raises(IndexError, match="Index 3 is out of range for one of"):
        pipe.zip(pipe)[3]
    shuffled = pipe.shuffle()
    assert sorted(shuffled) == [1, 2, 3] and list(shuffled.set_seed(1)) == list(shuffled.set_seed(1))
    assert list(shuffled.set_shuffle(False)) == [1, 2, 3]
    assert keyed.SequenceWrapper({"a": 1}).map(str)["a"] == "1"
