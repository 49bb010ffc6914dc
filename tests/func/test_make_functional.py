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


def test_a_parameter_with_two_names_is_given_once():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.bias = nn.Parameter(torch.zeros(2))
            self.linear = nn.Linear(2, 2)
            self.linear.bias = self.bias
            self.again = self.linear

        def forward(self, x):
            return self.again(self.linear(x)) + self.bias

    function, parameters = make_functional(Tied())
    assert len(parameters) == 2
    given = [torch.ones(2), torch.eye(2)]  # x + 1, then + 1, then + 1
    assert function(given, torch.zeros(1, 2)).tolist() == [[3.0, 3.0]]


def test_models_whose_parameters_do_not_all_want_gradients_are_not_stacked():
    models = [nn.Linear(2, 2) for _ in range(2)]
    models[0].weight.requires_grad_(False)
    with pytest.raises(RuntimeError, match="Expected weight from each model to have the same .requires_grad"):
        torch.func.stack_module_state(models)
