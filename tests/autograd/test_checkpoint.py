"""Checkpointing: the same gradients from fewer kept values."""

import contextlib

import pytest

import cresset
from cresset.utils.checkpoint import (
    CheckpointError,
    GraphExecGroup,
    checkpoint,
    checkpoint_sequential,
    set_checkpoint_early_stop,
)


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


@pytest.mark.parametrize("function", [
    lambda x, w: x / w, lambda x, w: x**w, cresset.atan2, cresset.xlogy, lambda x, w: cresset.lerp(x, w, x),
], ids=["div", "pow", "atan2", "xlogy", "lerp"])  # fmt: skip
def test_what_several_gradients_of_one_operator_read_is_computed_again_once(function, reentrant):
    x, w = leaf(1.0, 2.0), leaf(3.0)
    checkpoint(function, x, w, use_reentrant=reentrant).sum().backward()
    got = x.grad.tolist(), w.grad.tolist()
    x.grad = w.grad = None
    function(x, w).sum().backward()
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


def test_autocast_is_on_again_when_values_are_computed_again():
    x, y = cresset.ones(3, 3, requires_grad=True), cresset.ones(3, 3, requires_grad=True)
    seen = []

    def product(x, y):
        result = cresset.mm(x, y)
        seen.append(result.dtype)
        return cresset.mm(result, y)

    with cresset.autocast("cpu", dtype=cresset.bfloat16):
        loss = checkpoint(product, x, y, use_reentrant=False).sum()
    loss.backward()
    assert seen == [cresset.bfloat16, cresset.bfloat16]


def test_a_value_is_handed_out_once_in_a_backward():
    class Twice(cresset.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            with pytest.raises(CheckpointError, match="already unpacked once"):
                _ = ctx.saved_tensors
            return grad * x

    x = leaf(3.0)
    checkpoint(lambda x: Twice.apply(x * 1), x, use_reentrant=False).backward()
    assert x.grad == 3


def test_an_argument_without_a_history_is_the_same_object_when_it_comes_back():
    found = []

    class Keep(cresset.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(y)
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            found.extend(ctx.saved_tensors)
            return grad, None

    x, y = leaf(1.0), cresset.tensor(2.0)
    checkpoint(Keep.apply, x, y, use_reentrant=False).backward()
    assert found[0] is y


def test_gradients_inside_of_a_checkpointed_function_without_an_early_stop():
    def slope(x):
        y = checkpoint(lambda x: x.sin().exp(), x, use_reentrant=False)
        (grad,) = cresset.autograd.grad(y, x, create_graph=True)
        return grad

    x = leaf(0.5)
    plain = cresset.autograd.grad(x.sin().exp(), x, create_graph=True)[0]
    (expected,) = cresset.autograd.grad(plain, x)
    with set_checkpoint_early_stop(False):
        (found,) = cresset.autograd.grad(checkpoint(slope, x, use_reentrant=False), x)
    assert cresset.allclose(found, expected)


def test_backward_calls_of_a_group_share_what_is_computed_again():
    calls = []

    def steps(x):
        calls.append(1)
        y = x.sin()
        return y, y.exp()

    x = leaf(0.5)
    y, z = checkpoint(steps, x, use_reentrant=False)
    with GraphExecGroup():
        (grad,) = cresset.autograd.grad(z, y)
        cresset.autograd.grad(y, x, grad)
    assert len(calls) == 2
    out = checkpoint(lambda x: x.sin().exp(), x, use_reentrant=False)
    with GraphExecGroup():
        out.backward(retain_graph=True)
        with pytest.raises(CheckpointError, match="two backward calls that overlap"):
            out.backward()


def test_a_context_that_hides_an_error_of_the_function_is_refused():
    class Hiding:
        def __enter__(self):
            return self

        def __exit__(self, *_):
            return True

    def fails(x):
        raise ValueError("no")

    with pytest.raises(RuntimeError, match="context_fn suppressed an exception"):
        checkpoint(fails, leaf(1.0), use_reentrant=False, context_fn=lambda: (Hiding(), contextlib.nullcontext()))
