"""Pruning: what is zero, what stays a parameter, and that a failure changes nothing."""

import pytest

import cresset
from cresset import nn
from cresset.nn.utils import prune


def layer(values):
    made = nn.Linear(len(values), 1, bias=False)
    made.weight.data = cresset.tensor([values])
    return made


def test_the_smallest_elements_go_first():
    made = prune.l1_unstructured(layer([4.0, -1.0, 3.0, -2.0]), "weight", amount=0.5)
    assert made.weight.tolist() == [[4.0, 0.0, 3.0, 0.0]]
    assert [name for name, _ in made.named_parameters()] == ["weight_orig"]
    assert [name for name, _ in made.named_buffers()] == ["weight_mask"]


def test_pruning_again_takes_from_what_is_left():
    made = prune.l1_unstructured(layer([4.0, -1.0, 3.0, -2.0]), "weight", amount=2)
    prune.l1_unstructured(made, "weight", amount=1)
    assert made.weight.tolist() == [[4.0, 0.0, 0.0, 0.0]]


def test_gradients_flow_to_the_parameter_through_the_mask():
    made = prune.l1_unstructured(layer([4.0, -1.0]), "weight", amount=1)
    made(cresset.ones(1, 2)).sum().backward()
    assert made.weight_orig.grad.tolist() == [[1.0, 0.0]]


def test_removing_makes_it_permanent():
    made = prune.l1_unstructured(layer([4.0, -1.0]), "weight", amount=1)
    prune.remove(made, "weight")
    assert isinstance(made.weight, nn.Parameter) and made.weight.tolist() == [[4.0, 0.0]]
    assert not prune.is_pruned(made)
    with pytest.raises(ValueError, match="has to be pruned before"):
        prune.remove(made, "weight")


def test_global_pruning_compares_all_layers():
    first, second = layer([1.0, 10.0]), layer([2.0, 20.0])
    prune.global_unstructured([(first, "weight"), (second, "weight")], prune.L1Unstructured, amount=2)
    assert first.weight.tolist() == [[0.0, 10.0]] and second.weight.tolist() == [[0.0, 20.0]]


def test_whole_channels_by_norm():
    made = nn.Linear(2, 3, bias=False)
    made.weight.data = cresset.tensor([[1.0, 1.0], [5.0, 5.0], [3.0, 3.0]])
    prune.ln_structured(made, "weight", amount=1, n=2, dim=0)
    assert made.weight.tolist() == [[0.0, 0.0], [5.0, 5.0], [3.0, 3.0]]


@pytest.mark.parametrize(
    ("amount", "kind"), [(-1, ValueError), (1.5, ValueError), (9, ValueError), ("half", TypeError)]
)
def test_impossible_amounts_change_nothing(amount, kind):
    made = layer([4.0, -1.0])
    with pytest.raises(kind):
        prune.l1_unstructured(made, "weight", amount=amount)
    assert [name for name, _ in made.named_parameters()] == ["weight"] and not made._forward_pre_hooks


def test_amounts_are_numbers_of_elements_or_fractions():
    assert prune._compute_nparams_toprune(amount=0.4, tensor_size=17) == 7
    assert prune._compute_nparams_toprune(amount=1, tensor_size=17) == 1
    prune._validate_pruning_amount_init(amount=1.0)
    prune._validate_pruning_amount(amount=0.3, tensor_size=0)
    with pytest.raises(ValueError, match="smaller than the number of parameters"):
        prune._validate_pruning_amount(amount=20, tensor_size=19)
    with pytest.raises(ValueError, match="non-negative"):
        prune._validate_pruning_amount_init(amount=-1)
