"""Parts of PyTorch that programs name to compare with: kernels, metadata, memory."""

import pytest

import cresset
from cresset._prims import utils
from cresset._subclasses import fake_utils
from cresset.nn import functional as F


def test_kernels_of_attention_can_be_named_but_not_run():
    aten = cresset.ops.aten
    assert len({aten._scaled_dot_product_flash_attention.default, aten._efficient_attention_forward}) == 2
    with pytest.raises(NotImplementedError, match="only named here"):
        aten._flash_attention_forward(cresset.ones(1))


@pytest.mark.parametrize("transposed", [False, True])
def test_convolution_backward_gives_the_gradients_of_a_convolution(transposed):
    x, w, b = (cresset.randn(*s, requires_grad=True) for s in ((2, 4, 5), (4, 4, 3), (4,)))
    y = (F.conv_transpose1d if transposed else F.conv1d)(x, w, b, stride=2, padding=1)
    grad = cresset.randn_like(y)
    wanted = cresset.autograd.grad(y, (x, w, b), grad)
    settings = [4], [2], [1], [1], transposed, [0], 1
    found = cresset.ops.aten.convolution_backward(grad, x, w, *settings, [True, True, True])
    for one, other in zip(found, wanted, strict=True):
        assert cresset.allclose(one, other, atol=1e-5)
    assert cresset.ops.aten.convolution_backward(grad, x, w, *settings, [False, False, True])[:2] == (None, None)


def test_tensors_are_compared_without_their_numbers():
    a = cresset.zeros(2, 3)
    utils.compare_tensor_meta(a, cresset.ones(2, 3), check_strides=True)
    for other, what in ((a.double(), "dtype"), (a[:1], "shape"), (cresset.zeros(3, 2).T, "strides")):
        with pytest.raises(AssertionError, match=what):
            utils.compare_tensor_meta(a, other, check_strides=True)
    assert utils.is_integer_dtype(cresset.int8) and not utils.is_integer_dtype(cresset.bool)
    assert utils.is_boolean_dtype(cresset.bool) and utils.is_complex_dtype(cresset.complex64)


def test_results_that_share_memory_are_told():
    x = cresset.ones(2)
    assert fake_utils.outputs_alias_inputs([x[0]], x) and not fake_utils.outputs_alias_inputs(x + 1, x)
    assert fake_utils.outputs_are_inputs((x,), {"a": x}) and not fake_utils.outputs_are_inputs(x[:], x)
    assert fake_utils.output_alias_each_other((x[0], x[1])) and not fake_utils.output_alias_each_other((x, x + 1))


def test_how_views_are_tracked_is_remembered():
    mode = cresset.autograd._force_original_view_tracking
    before = mode.enabled
    with mode(True):
        assert mode.enabled
    assert mode.enabled is before
