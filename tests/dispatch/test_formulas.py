"""Pointwise operators of tensors that answer for themselves: where aten has none of the name, the formula is read as
operations that it has.
"""

import pytest

import cresset
from cresset import _native
from cresset._subclasses import FakeTensorMode
from cresset.nn import functional as F
from cresset.ops.pointwise import definitions
from cresset.utils._pytree import tree_map_only


class Held(cresset.Tensor):
    """A tensor that holds another, which does the work."""

    @staticmethod
    def __new__(cls, held):
        made = cresset.Tensor._make_wrapper_subclass(cls, held.shape, strides=held.stride(), dtype=held.dtype)
        made.held = held
        return made

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        args, kwargs = tree_map_only(cls, lambda x: x.held, (args, kwargs or {}))
        return tree_map_only(cresset.Tensor, cls, func(*args, **kwargs))


def inputs_of(name):
    return [cresset.linspace(0.1, 0.9, 4) + 0.01 * place for place in range(len(definitions[name].inputs))]


def names():
    """The operators that take these floating-point numbers and nothing else."""
    for name in definitions:
        try:
            _native.operators()[name](*inputs_of(name))
        except (KeyError, RuntimeError, TypeError):
            continue
        if name != "gamma_density":  # whose primitive is no operator
            yield name


@pytest.mark.parametrize("name", sorted(names()))
def test_a_wrapped_tensor_gives_what_it_wraps_gives(name):
    operator, inputs = _native.operators()[name], inputs_of(name)
    found = operator(*map(Held, inputs))
    cresset.testing.assert_close(found.held, operator(*inputs), equal_nan=True, rtol=1e-5, atol=1e-6)


X, Y, W = cresset.tensor([[0.2, 0.4, 0.9]]), cresset.tensor([[0.0, 1.0, 0.5]]), cresset.tensor([0.1, 0.2, 0.3])
LOSSES = {
    "binary_cross_entropy": lambda kind: F.binary_cross_entropy(kind(X), kind(Y)),
    "binary_cross_entropy_with_logits": lambda kind: F.binary_cross_entropy_with_logits(
        kind(X), kind(Y), pos_weight=kind(W)
    ),
    "huber_loss": lambda kind: F.huber_loss(kind(X), kind(Y)),
    "poisson_nll_loss": lambda kind: F.poisson_nll_loss(kind(X), kind(Y)),
    "prelu": lambda kind: F.prelu(kind(X), kind(W)),
    "smooth_l1_loss": lambda kind: F.smooth_l1_loss(kind(X), kind(Y)),
    "soft_margin_loss": lambda kind: F.soft_margin_loss(kind(X), kind(Y)),
    "softsign": lambda kind: F.softsign(kind(X)),
}


@pytest.mark.parametrize("name", LOSSES)
def test_functions_made_of_them_do_too(name):
    expected = LOSSES[name](lambda tensor: tensor)
    cresset.testing.assert_close(LOSSES[name](Held).held, expected)
    fake = LOSSES[name](FakeTensorMode().from_tensor)
    assert fake.shape == expected.shape and fake.dtype == expected.dtype
