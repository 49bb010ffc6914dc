"""nn.parallel without GPUs: what is divided, joined, copied and called, on the meta device and in threads."""

import collections
import threading

import pytest

import cresset
from cresset import nn
from cresset.nn.parallel.parallel_apply import call_in_threads, get_a_var
from cresset.nn.parallel.scatter_gather import scatter_kwargs

META = [cresset.device("meta", 0), cresset.device("meta", 1)]
Pair = collections.namedtuple("Pair", "a b")


def test_tensors_are_divided_wherever_they_stand():
    x = cresset.zeros(5, 2)
    first, second = nn.parallel.scatter((x, [x, "text"], {"k": x}, Pair(x, 1)), META)
    assert [part.shape for part in (first[0], first[1][0], first[2]["k"], first[3].a)] == [(3, 2)] * 4
    assert [part.shape for part in (second[0], second[1][0], second[2]["k"], second[3].a)] == [(2, 2)] * 4
    assert first[1][1] == "text" and second[3].b == 1 and isinstance(second[3], Pair)
    assert first[0].device == META[0] and second[0].device == META[1]
    assert nn.parallel.scatter(x, META, dim=1)[1].shape == (5, 1)


def test_fewer_rows_than_devices_use_fewer_devices():
    assert len(nn.parallel.scatter(cresset.zeros(1, 2), META)) == 1


def test_positional_and_named_arguments_become_equally_many():
    assert scatter_kwargs((), {"a": 1}, META) == (((), ()), ({"a": 1}, {"a": 1}))
    assert scatter_kwargs((), None, META) == ((), ())


def test_the_cpu_is_refused():
    with pytest.raises(ValueError, match="Expected a non cpu device"):
        nn.parallel.scatter(cresset.ones(2), ["cpu"])
    with pytest.raises(AssertionError, match="not implemented for CPU"):
        nn.parallel.gather([cresset.ones(2, device="cpu")], 0)
    with pytest.raises(AssertionError, match="not implemented for CPU"):
        nn.parallel.replicate(nn.Linear(1, 1, device="cpu"), [0])


def test_results_are_joined_in_the_form_of_the_first():
    def result(rows):
        x = cresset.zeros(rows, 2, device="meta")
        return {"x": x, "pair": Pair(x, None), "list": [x]}

    joined = nn.parallel.gather([result(3), result(2)], META[0])
    assert joined["x"].shape == joined["pair"].a.shape == joined["list"][0].shape == (5, 2)
    assert joined["pair"].b is None and isinstance(joined["pair"], Pair)
    with pytest.raises(ValueError, match="same number of keys"):
        nn.parallel.gather([{"a": None}, {}], META[0])
    with pytest.warns(UserWarning, match="scalars"):
        assert nn.parallel.gather([cresset.zeros((), device="meta")] * 3, META[0]).shape == (3,)


def test_copies_are_results_of_the_modules_own_parameters():
    model = nn.Sequential(nn.Linear(2, 3, device="meta"), nn.BatchNorm1d(3, device="meta"))
    first, second = nn.parallel.replicate(model, META)
    assert (
        first._is_replica and list(first.parameters()) == [] and list(first[0]._former_parameters) == ["weight", "bias"]
    )
    assert (
        second[0].weight.device == META[1] and second[0].weight.requires_grad and first[0].weight is not model[0].weight
    )
    assert second[1].running_mean.device == META[1]
    second(cresset.zeros(4, 2, device=META[1])).sum().backward()
    assert model[0].weight.grad.shape == (3, 2) and len(list(model.parameters())) == 4


def test_detached_copies_have_parameters_of_their_own():
    model = nn.Linear(2, 3, device="meta")
    (copy,) = nn.parallel.replicate(model, META[1:], detach=True)
    assert isinstance(copy.weight, nn.Parameter) and copy.weight.is_leaf and copy.weight.device == META[1]


def test_shared_parameters_stay_shared_in_a_copy():
    model = nn.Sequential(nn.Linear(2, 2, device="meta"), nn.Linear(2, 2, device="meta"))
    model[1].weight = model[0].weight
    (copy,) = nn.parallel.replicate(model, META[1:])
    assert copy[0].weight is copy[1].weight


class Noting:
    """A context that notes who entered it."""

    def __init__(self, notes, number):
        self.notes, self.number = notes, number

    def __enter__(self):
        self.notes[self.number] = threading.get_ident()

    def __exit__(self, *_):
        return False


def test_modules_are_called_in_threads_of_their_own_with_the_callers_modes():
    notes, seen, both = {}, [], threading.Barrier(2, timeout=60)

    def module(x, add=0):
        both.wait()  # each waits for the other: one after the other would not end
        seen.append((cresset.is_grad_enabled(), cresset.is_autocast_enabled("cpu")))
        return x + add

    with cresset.no_grad(), cresset.autocast("cpu", cresset.bfloat16):
        results = call_in_threads([module] * 2, [1, (2,)], [{}, {"add": 5}], lambda i: Noting(notes, i))
    assert results == [1, 7] and seen == [(False, True)] * 2
    assert len({*notes.values(), threading.get_ident()}) == 3


def test_what_a_thread_raises_is_raised_in_the_caller():
    def module(x):
        raise ValueError("bad input")

    with pytest.raises(ValueError, match="in replica 0(?s:.*)bad input"):
        call_in_threads([module] * 2, [1, 2], None, lambda i: Noting({}, i))


def test_the_first_tensor_is_found():
    x = cresset.ones(1)
    assert get_a_var([1, {"a": ("b", x)}]) is x and get_a_var([1, "a"]) is None


@pytest.mark.skipif(cresset.accelerator.is_available(), reason="about machines without GPU")
class TestWithoutGPU:
    def test_data_parallel_calls_the_module(self):
        model = nn.DataParallel(nn.Linear(2, 1), device_ids=[0, 1])
        assert model.device_ids == [] and model(cresset.ones(3, 2)).shape == (3, 1)
        assert list(model.state_dict()) == ["module.weight", "module.bias"]

    def test_what_needs_a_gpu_says_so(self):
        with pytest.raises(RuntimeError, match="accelerator"):
            nn.parallel.parallel_apply([nn.ReLU()], [cresset.ones(1)])
        with pytest.raises(RuntimeError, match="could not be determined"):
            nn.parallel.data_parallel(nn.ReLU(), cresset.ones(1))
        with pytest.raises(AssertionError, match="number of modules 2 is not equal to the number of inputs 1"):
            nn.parallel.parallel_apply([nn.ReLU()] * 2, [cresset.ones(1)])

    def test_other_makers_devices_are_refused(self):
        for move in ("xpu", "mtia"):
            with pytest.raises(AssertionError, match="not compiled with"):
                getattr(nn.Linear(1, 1), move)()
        with pytest.raises(RuntimeError, match="no support for ipu"):
            nn.Linear(1, 1).ipu()
