"""Fractional pooling: sizes that are refused, and outputs without elements."""

import pytest

import cresset
from cresset import nn
from cresset.nn import functional as F

IMAGE, VOLUME = cresset.ones(1, 2, 7, 7), cresset.ones(1, 2, 7, 7, 7)


@pytest.mark.parametrize("size", [(), (1,), (2, 2, 2)])
def test_sizes_are_one_number_or_one_for_each_dimension(size):
    with pytest.raises(RuntimeError, match="kernel_size must either be"):
        F.fractional_max_pool2d(IMAGE, size, output_size=3)
    with pytest.raises(RuntimeError, match="output_size must either be"):
        F.fractional_max_pool2d(IMAGE, 2, output_size=size)
    with pytest.raises(RuntimeError, match="output_size must either be"):
        F.fractional_max_pool3d(VOLUME, 2, output_size=size[:2])


@pytest.mark.parametrize("size, side", [((9, 3), "height"), ((3, 9), "width")])
def test_an_output_that_does_not_fit_names_its_side(size, side):
    with pytest.raises(RuntimeError, match=f"too large relative to input {side}"):
        F.fractional_max_pool2d(IMAGE, 2, output_size=size)


def test_only_a_batch_may_be_empty():
    assert F.fractional_max_pool2d(cresset.ones(0, 2, 7, 7), 2, output_size=3).shape == (0, 2, 3, 3)
    with pytest.raises(RuntimeError, match="Expected input to have non-zero size for non-batch dimensions"):
        F.fractional_max_pool2d(cresset.ones(1, 0, 7, 7), 2, output_size=3)


def test_an_output_may_have_no_elements():
    x = cresset.ones(1, 2, 7, 7, requires_grad=True)
    values, places = F.fractional_max_pool2d(x, 2, output_size=(0, 1), return_indices=True)
    assert values.shape == places.shape == (1, 2, 0, 1) and places.dtype == cresset.int64
    values.sum().backward()
    assert x.grad.abs().sum() == 0
    assert F.fractional_max_pool3d(VOLUME, 2, output_size=0).shape == (1, 2, 0, 0, 0)


@pytest.mark.parametrize("size", [0, -1, (2, 0, 1)])
def test_a_layer_for_volumes_refuses_windows_without_elements(size):
    with pytest.raises(ValueError, match="kernel_size must be greater than 0"):
        nn.FractionalMaxPool3d(size, output_size=1)
