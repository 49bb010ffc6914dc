"""Checkpointing: the same gradients from fewer kept values."""

import pytest

import cresset
from cresset.utils.checkpoint import CheckpointError, checkpoint, checkpoint_sequential, set_checkpoint_early_stop


def leaf(*values):
    return cresset.tensor(values if len(values) > 1 else values[0], requires_grad=True)


@pytest.fixture(params=[True, False], ids=["reentrant", "not reentrant"])
def reentrant(request):
    return request.param


def test_the_gradients_are_the_same(reentrant):
    x, w = leaf(1.0, 2.0), leaf(3.0, 4.0)
    checkpoint(lambda x: (x * w).exp() * x, x, use_reentrant=reentrant).sum().backward()
    got = x.grad.tolist(), w.grad.tolist()
    x.grad = w.grad = None
    ((x * w).exp() * x).sum().backward()
    assert got == (x.grad.tolist(), w.grad.tolist())


def test_forward_runs_once_more(reentrant):
    calls = []

    def f(x):
        calls.append(1)
        return x.exp() * x

    y = checkpoint(f, leaf(1.0), use_reentrant=reentrant)
    assert len(calls) == 1
    y.backward()
    assert len(calls) == 2


def test_only_the_inputs_are_kept():
    x = cresset.ones(99, requires_grad=True)
    kept = []
    with cresset.autograd.graph.saved_tensors_hooks(lambda t: (kept.append(t.shape), t)[1], lambda t: t):
        checkpoint(lambda x: x.exp().sin().cos() * x, x, use_reentrant=False)
    assert kept == [(99,)]


def test_random_numbers_are_the_same_again(reentrant):
    drawn = []

    def f(x):
        drawn.append(cresset.rand(1).item())
        return x * drawn[-1] * x

    here = cresset.random if cresset.get_default_device().type == "cpu" else cresset.cuda
    before = here.get_rng_state()
    checkpoint(f, leaf(1.0), use_reentrant=reentrant).backward()
    after = cresset.rand(1).item()
    assert drawn[0] == drawn[1] != after
    here.set_rng_state(before)
    assert cresset.rand(1).item() == drawn[0]
    assert cresset.rand(1).item() == after  # the second run has not moved the state


def test_several_arguments_and_keywords():
    x = leaf(2.0)
    y = checkpoint(lambda x, n, *, scale: x**n * scale, x, 3, scale=10, use_reentrant=False)
    y.backward()
    assert x.grad.item() == 120


def test_nested_checkpoints():
    x = leaf(0.5, 1.5)
    calls = []

    def inner(x):
        calls.append("inner")
        return x * x * x

    def outer(x):
        calls.append("outer")
        return checkpoint(inner, x * 2, use_reentrant=False) * x

    checkpoint(outer, x, use_reentrant=False).sum().backward()
    assert x.grad.tolist() == [4 * 8 * 0.5**3, 4 * 8 * 1.5**3]
    assert calls[:2] == ["outer", "inner"]


def test_backward_twice():
    x = leaf(2.0)
    y = checkpoint(lambda x: x.exp().log() * x, x, use_reentrant=False)
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.item() == pytest.approx(8)


def test_second_derivatives():
    x = leaf(2.0)
    (slope,) = cresset.autograd.grad(checkpoint(lambda x: (x * x) * x, x, use_reentrant=False), x, create_graph=True)
    assert slope.item() == 12 and cresset.autograd.grad(slope, x)[0].item() == 12


def test_the_second_run_stops_early():
    calls = []

    def f(x):
        calls.append("needed")
        y = x.exp()
        calls.append("not needed")
        return y + 1

    for stop, expected in ((True, 3), (False, 4)):
        calls.clear()
        with set_checkpoint_early_stop(stop):
            y = checkpoint(f, leaf(1.0), use_reentrant=False)
        y.backward()
        assert len(calls) == expected


def test_a_different_second_run_is_found():
    calls = []

    def fewer(x):
        calls.append(1)
        return x.exp() * x if len(calls) == 1 else x.exp()

    def smaller(x):
        calls.append(1)
        return (x.exp() * x).sum() if len(calls) == 1 else (x[:1].exp() * x[:1]).sum()

    with pytest.raises(CheckpointError, match="A different number of tensors was saved"):
        checkpoint(fewer, leaf(1.0), use_reentrant=False).backward()
    calls.clear()
    with pytest.raises(CheckpointError, match="different metadata"):
        checkpoint(smaller, leaf(1.0, 2.0), use_reentrant=False).backward()
    calls.clear()
    with pytest.raises(CheckpointError, match=r"Operators in forward:\n  exp\(.*\n  mul\("):
        checkpoint(fewer, leaf(1.0), use_reentrant=False, debug=True).backward()


def test_contexts_for_both_runs():
    seen = []

    class Note:
        def __init__(self, name):
            self.name = name

        def __enter__(self):
            seen.append(self.name)

        def __exit__(self, *_):
            pass

    checkpoint(
        cresset.exp, leaf(1.0), use_reentrant=False, context_fn=lambda: (Note("first"), Note("again"))
    ).backward()
    assert seen == ["first", "again"]


def test_without_recording_nothing_is_kept(reentrant):
    with cresset.no_grad():
        assert not checkpoint(cresset.exp, leaf(1.0), use_reentrant=reentrant).requires_grad


def test_segments():
    functions = [cresset.exp, cresset.sin, lambda x: x * 2, cresset.cos, lambda x: x + 1]
    for segments in (1, 2, 3, 5):
        x = leaf(0.3, 0.4)
        checkpoint_sequential(functions, segments, x, use_reentrant=False).sum().backward()
        expected = leaf(0.3, 0.4)
        y = expected
        for function in functions:
            y = function(y)
        y.sum().backward()
        assert x.grad.tolist() == expected.grad.tolist()


@pytest.mark.parametrize(
    "options, error, phrase",
    [
        ({"use_reentrant": True, "context_fn": print}, ValueError, "only supported when use_reentrant=False"),
        ({"use_reentrant": True, "scale": 1}, ValueError, "Unexpected keyword arguments: scale"),
        ({"use_reentrant": False, "determinism_check": "strict"}, ValueError, "determinism_check should be one of"),
    ],
)
def test_what_is_refused(options, error, phrase):
    with pytest.raises(error, match=phrase):
        checkpoint(cresset.exp, leaf(1.0), **options)


def test_the_reentrant_kind_needs_backward():
    x = leaf(1.0)
    with pytest.raises(RuntimeError, match="incompatible with .grad"):
        cresset.autograd.grad(checkpoint(cresset.exp, x, use_reentrant=True), x)
    with pytest.warns(UserWarning, match="None of the inputs have requires_grad=True"):
        checkpoint(cresset.exp, cresset.ones(1), use_reentrant=True)
    with pytest.warns(UserWarning, match="use_reentrant parameter should be passed explicitly"):
        checkpoint(cresset.exp, x)
