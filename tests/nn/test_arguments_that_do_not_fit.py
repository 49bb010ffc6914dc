"""Arguments of layers and their functions that do not fit, and what is said of them."""

import math

import pytest

import cresset
from cresset import nn
from cresset.nn import functional as F


def test_a_module_is_moved_in_place_and_never_copied():
    layer = nn.Linear(2, 2)
    with pytest.raises(RuntimeError, match="copy=True"):
        layer.to("cpu", copy=True)
    with pytest.raises(RuntimeError, match="copy=True"):
        layer.to("cpu", cresset.float32, False, True)
    assert layer.to("cpu", cresset.float64, True).weight.dtype == cresset.float64


@pytest.mark.parametrize("args", [(cresset.device("cpu"), True), (None, True), (True,)], ids=str)
def test_a_flag_stands_behind_the_dtype(args):
    with pytest.raises(TypeError, match="invalid combination of arguments"):
        nn.Linear(2, 2).to(*args)


def test_a_buffer_does_not_hide_an_attribute():
    module = nn.Module()
    module.name = 5
    with pytest.raises(KeyError, match="already exists"):
        module.name = nn.Buffer(cresset.ones(1))


def test_what_answers_like_a_tensor_may_be_a_buffer():
    class Like:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return NotImplemented

    module, first, second = nn.Module(), Like(), Like()
    module.register_buffer("held", first)
    assert module.held is first
    module.held = second
    assert module.get_buffer("held") is second


def test_a_list_of_parameters_without_data_is_shown_without_a_place():
    shown = str(nn.ParameterList([nn.Parameter(cresset.empty(1, device="meta"))]))
    assert shown == "ParameterList(  (0): Parameter containing: [torch.float32 of size 1])"


@pytest.mark.parametrize("layer, shape", [(nn.ReflectionPad1d(2), (3, 0, 10)), (nn.ReplicationPad2d(2), (3, 0, 9, 9))])
def test_only_the_batch_may_be_empty_where_elements_are_taken(layer, shape):
    with pytest.raises(RuntimeError, match="possibly 0 batch size"):
        layer(cresset.ones(shape))
    assert layer(cresset.ones(0, 3, *shape[2:])).numel() == 0


def test_bounds_of_softshrink_and_rrelu():
    half = cresset.ones(2, dtype=cresset.float16)
    for lambd in (-1.0, 65507.0):
        with pytest.raises(RuntimeError, match=rf"range \[0, 65504\] for the input dtype Half, but found {lambd:g}"):
            F.softshrink(half, lambd)
    for bound in (math.inf, math.nan):
        with pytest.raises(RuntimeError, match="upper bound must be finite"):
            F.rrelu(cresset.ones(2), 0.1, bound)


def test_an_upscale_factor_has_a_square():
    with pytest.raises(ValueError, match="does not fit in 64 bits"):
        F.pixel_shuffle(cresset.ones(2, 16, 9, 3), 545460846592)


def test_padding_by_kind_is_found_where_pytorch_has_it():
    padded = cresset._C._nn.reflection_pad1d(cresset.arange(3.0).view(1, 1, 3), [1, 1])
    assert padded.flatten().tolist() == [1.0, 0.0, 1.0, 2.0, 1.0]


@pytest.mark.parametrize("other", [0, 1, 2, 3])
def test_a_bilinear_map_does_not_round_an_operand_of_another_dtype(other):
    given = [cresset.ones(2, 3), cresset.ones(2, 3), cresset.ones(4, 3, 3), cresset.ones(4)]
    given[other] = given[other].double()
    with pytest.raises(RuntimeError, match="All tensors must have the same dtype, got input1: "):
        F.bilinear(*given)
