"""Tensors exchanged under their objects, and modules converted and loaded that way (torch.__future__)."""

import weakref

import pytest

import cresset as torch
from cresset import nn


@pytest.fixture
def swapping():
    torch.__future__.set_swap_module_params_on_conversion(True)
    yield
    torch.__future__.set_swap_module_params_on_conversion(False)


class Named(torch.Tensor):
    pass


def test_two_tensors_change_places_with_class_attributes_and_memory():
    a, b = torch.zeros(2), torch.arange(3).as_subclass(Named)
    a.note, b.title = "first", "second"
    torch.utils.swap_tensors(a, b)
    assert type(a) is Named and a.tolist() == [0, 1, 2] and a.title == "second" and not hasattr(a, "note")
    assert type(b) is torch.Tensor and b.tolist() == [0.0, 0.0] and b.note == "first"


def test_a_tensor_that_somebody_else_holds_is_not_swapped():
    a, b = torch.zeros(2), torch.ones(2)
    reference = weakref.ref(a)
    with pytest.raises(RuntimeError, match="Cannot swap t1 because it has weakref"):
        torch.utils.swap_tensors(a, b)
    assert reference() is a
    c = torch.zeros(2, requires_grad=True)
    view = c[:1]
    with pytest.raises(RuntimeError, match="Expected use_count of t2"):
        torch.utils.swap_tensors(b, c)
    assert view.shape == (1,)


def test_backward_to_a_leaf_that_was_swapped_says_so():
    weight = torch.ones(2, requires_grad=True)
    loss = (weight * 2).sum()
    torch.utils.swap_tensors(weight, torch.zeros(2))
    with pytest.raises(RuntimeError, match="poisoned by swap_tensors"):
        loss.backward()


def test_a_converted_module_keeps_its_parameters_as_objects(swapping):
    layer = nn.Linear(2, 1)
    layer.weight.grad = torch.ones(1, 2)
    weight, grad = layer.weight, layer.weight.grad
    layer.to("meta")
    assert layer.weight is weight and weight.is_meta
    assert weight.grad is grad and grad.is_meta


def test_without_swapping_a_parameter_that_leaves_its_device_is_another_object():
    layer = nn.Linear(2, 1)
    weight = layer.weight
    layer.to("meta")
    assert layer.weight is not weight


def test_overwriting_makes_new_parameters():
    layer = nn.Linear(2, 1)
    weight = layer.weight
    torch.__future__.set_overwrite_module_params_on_conversion(True)
    try:
        layer.double()
    finally:
        torch.__future__.set_overwrite_module_params_on_conversion(False)
    assert layer.weight is not weight and layer.weight.dtype == torch.float64 and weight.dtype == torch.float32


def test_a_state_dict_is_loaded_by_swapping(swapping):
    layer = nn.Linear(2, 1)
    weight = layer.weight
    layer.load_state_dict({"weight": torch.ones(1, 2), "bias": torch.zeros(1)}, assign=True)
    assert layer.weight is weight and weight.tolist() == [[1.0, 1.0]] and isinstance(weight, nn.Parameter)


def test_a_module_load_that_gives_its_argument_is_refused(swapping):
    class Careless(torch.Tensor):
        def module_load(self, other, assign=False):
            return other

    layer = nn.Linear(2, 1)
    layer.weight = nn.Parameter(torch.zeros(1, 2).as_subclass(Careless))
    with pytest.raises(RuntimeError, match="module_load returned one of self or other"):
        layer.load_state_dict({"weight": torch.ones(1, 2), "bias": torch.zeros(1)})


def test_slots_that_are_not_set_change_places_too():
    class Noted(torch.Tensor):
        __slots__ = ("note",)

    first, second = torch.zeros(1).as_subclass(Noted), torch.ones(1).as_subclass(Noted)
    first.note = "first"
    torch.utils.swap_tensors(first, second)
    assert second.note == "first" and not hasattr(first, "note")
