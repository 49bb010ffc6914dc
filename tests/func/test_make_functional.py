"""Modules taken apart into a function and its parameters, and vmap in parts."""

import pytest

import cresset as torch
from cresset import nn
from cresset.func import chunk_vmap, combine_state_for_ensemble, make_functional, make_functional_with_buffers, vmap

X = torch.tensor([[1.0, 2.0], [3.0, 4.0]])


def test_the_function_gives_what_the_module_gives():
    model = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1))
    function, parameters = make_functional(model)
    assert [tuple(p.shape) for p in parameters] == [(3, 2), (3,), (1, 3), (1,)]
    assert torch.equal(function(parameters, X), model(X))
    assert function([torch.zeros_like(p) for p in parameters], X).tolist() == [[0.0], [0.0]]
    assert all(not p.requires_grad for p in make_functional(model, disable_autograd_tracking=True)[1])


def test_buffers_are_arguments_of_their_own():
    model = nn.BatchNorm1d(2).eval()
    with pytest.raises(RuntimeError, match="has buffers"):
        make_functional(model)
    function, parameters, buffers = make_functional_with_buffers(model)
    assert torch.equal(function(parameters, buffers, X), model(X))


def test_an_ensemble_runs_under_vmap():
    models = [nn.Linear(2, 1) for _ in range(3)]
    function, parameters, buffers = combine_state_for_ensemble(models)
    together = vmap(function, in_dims=(0, 0, None))(parameters, buffers, X)
    assert torch.allclose(together, torch.stack([m(X) for m in models]))
    with pytest.raises(RuntimeError, match="at least one model"):
        combine_state_for_ensemble([])


@pytest.mark.parametrize("chunks", [1, 2, 3, 10])
def test_vmap_in_parts_gives_what_vmap_gives(chunks):
    batch = torch.arange(14.0).reshape(7, 2)
    assert torch.equal(chunk_vmap(torch.sum, chunks=chunks)(batch), vmap(torch.sum)(batch))
