"""Selective checkpointing: which operators' results are kept instead of being computed again."""

import functools

import pytest

import cresset as torch
from cresset.utils._python_dispatch import TorchDispatchMode
from cresset.utils.checkpoint import (
    CheckpointPolicy,
    checkpoint,
    create_selective_checkpoint_contexts,
)

aten = torch.ops.aten


class Count(TorchDispatchMode):
    """How often each operator ran."""

    def __init__(self):
        super().__init__()
        self.calls = {}

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.calls[func._opname] = self.calls.get(func._opname, 0) + 1
        return func(*args, **(kwargs or {}))


def run(policy, allow_mutation=False):
    """x.sin().exp() checkpointed, forward and backward: the operators that backward ran, and the gradient."""
    x = torch.tensor([0.0, 1.0], requires_grad=True)
    contexts = functools.partial(create_selective_checkpoint_contexts, policy, allow_mutation)
    y = checkpoint(lambda x: x.sin().exp(), x, use_reentrant=False, context_fn=contexts)
    with Count() as count:
        y.sum().backward()
    return count.calls, x.grad


EXPECTED = torch.tensor([0.0, 1.0]).cos() * torch.tensor([0.0, 1.0]).sin().exp()


def test_what_a_list_names_is_not_computed_again():
    calls, grad = run([aten.sin.default])
    assert "sin" not in calls and calls["exp"] == 1
    assert torch.allclose(grad, EXPECTED)


def test_a_policy_decides_call_by_call_in_the_first_computation():
    asked = []

    def policy(ctx, op, *args, **kwargs):
        asked.append((ctx.is_recompute, op._opname))
        return CheckpointPolicy.MUST_SAVE if op is aten.exp.default else CheckpointPolicy.PREFER_RECOMPUTE

    calls, grad = run(policy)
    assert calls["sin"] == 1 and "exp" not in calls
    assert torch.allclose(grad, EXPECTED)
    assert asked == [(False, "sin"), (False, "exp")]


def test_results_on_the_cpu_come_back():
    calls, grad = run(lambda ctx, op, *args, **kwargs: CheckpointPolicy.MUST_CPU_OFFLOAD)
    assert "sin" not in calls and "exp" not in calls
    assert torch.allclose(grad, EXPECTED)


def test_a_second_backward_finds_nothing_left():
    x = torch.ones(2, requires_grad=True)
    contexts = functools.partial(create_selective_checkpoint_contexts, [aten.sin.default])
    y = checkpoint(lambda x: x.sin().exp(), x, use_reentrant=False, context_fn=contexts)
    y.sum().backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="Trying to backward an extra time"):
        y.sum().backward()


def test_what_is_no_policy_is_refused():
    with pytest.raises(TypeError, match="either a function or a list of ops"):
        create_selective_checkpoint_contexts(3)
    with pytest.raises(ValueError, match="specific OpOverload"):
        create_selective_checkpoint_contexts([aten.sin])


def test_a_call_that_the_first_computation_did_not_make_is_refused():
    calls = []

    def changing(x):
        calls.append(1)
        x = x.sin()
        return x.sin().cos() if len(calls) > 1 else x.cos()

    contexts = functools.partial(create_selective_checkpoint_contexts, [aten.sin.default])
    x = torch.ones(2, requires_grad=True)
    y = checkpoint(changing, x, use_reentrant=False, context_fn=contexts, early_stop=False)
    with pytest.raises(RuntimeError, match="invocation index 1 .* not found in storage"):
        y.sum().backward()
