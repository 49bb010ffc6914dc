"""torch.ops.quantized_decomposed: quantization on ordinary integer tensors."""

import pytest

import cresset
from cresset._subclasses.fake_tensor import FakeTensorMode
from cresset.ao.quantization.fx import _decomposed  # noqa: F401  (makes the operators)
from cresset.fx.experimental.proxy_tensor import make_fx

ops = cresset.ops.quantized_decomposed
UINT8 = (0, 255, cresset.uint8)


@pytest.mark.parametrize("dtype", [cresset.float32, cresset.bfloat16, cresset.float16])
def test_one_scale_is_that_of_quantized_tensors(dtype):
    x = cresset.randint(-9, 9, (4, 5)).to(dtype)
    q = cresset.quantize_per_tensor(x.float(), 0.25, 40, cresset.quint8)
    integers = ops.quantize_per_tensor(x, 0.25, 40, *UINT8)
    assert integers.dtype == cresset.uint8 and integers.equal(q.int_repr())
    assert ops.dequantize_per_tensor(integers, 0.25, 40, *UINT8).equal(q.dequantize())
    scale, zero_point = cresset.tensor([0.25]), cresset.tensor([40])
    assert ops.quantize_per_tensor.tensor(x, scale, zero_point, *UINT8).equal(integers)
    low, high = cresset.tensor([0]), cresset.tensor([255])
    numbers = ops.dequantize_per_tensor.tensor2(
        integers, scale, zero_point, low, high, cresset.uint8, out_dtype=cresset.float16
    )
    assert numbers.dtype == cresset.float16 and numbers.float().equal(q.dequantize())


@pytest.mark.parametrize("axis", [0, 1])
def test_a_scale_for_each_channel_is_that_of_quantized_tensors(axis):
    x = cresset.randn(3, 3)
    scales, zero_points = cresset.tensor([0.1, 0.2, 0.5]), cresset.tensor([3, 0, 9])
    q = cresset.quantize_per_channel(x, scales, zero_points, axis, cresset.quint8)
    integers = ops.quantize_per_channel(x, scales, zero_points, axis, *UINT8)
    assert integers.equal(q.int_repr())
    assert ops.dequantize_per_channel(integers, scales, zero_points, axis, *UINT8).allclose(q.dequantize())
    assert ops.dequantize_per_channel(integers, scales, None, axis, *UINT8).equal(
        integers * scales.reshape((3, 1) if axis == 0 else (1, 3))
    )


def test_parameters_by_the_extremes():
    x = cresset.tensor([-1.0, 0.5, 3.0])
    scale, zero_point = ops.choose_qparams.tensor(x, 0, 200, 1e-5, cresset.uint8)
    assert scale.dtype == cresset.float64 and scale.tolist() == pytest.approx([0.02]) and zero_point.tolist() == [50]
    scale, zero_point = ops.choose_qparams_symmetric.tensor(x, -100, 100, 1e-5, cresset.int8)
    assert scale.tolist() == pytest.approx([0.03]) and zero_point.tolist() == [0]
    assert ops.choose_qparams.tensor(cresset.zeros(2), 0, 255, 0.5, cresset.uint8)[0].tolist() == [0.5]
    with pytest.raises(AssertionError, match="range must include 0"):
        ops.choose_qparams.tensor(x, 1, 10, 1e-5, cresset.int8)


def test_rows_are_restored_within_half_a_step():
    x = cresset.randn(4, 16, requires_grad=True)
    scales, zero_points = ops.choose_qparams_per_token_asymmetric(x, cresset.int8)
    limits = (-128, 127, cresset.int8)
    integers = ops.quantize_per_token(x.detach(), scales, zero_points, *limits)
    restored = ops.dequantize_per_token(integers, scales, zero_points, *limits, cresset.float32)
    assert bool(((restored - x).abs() <= 0.51 * scales).all())
    scales.sum().backward()  # by the extremes of each row
    assert x.grad.abs().sum(1).tolist() == pytest.approx([2 / 255] * 4)
    scales, zero_points = ops.choose_qparams_per_token(cresset.tensor([[1.0, -127.0]]), cresset.int8)
    assert scales.tolist() == [[1.0]] and zero_points.tolist() == [[0.0]]


def test_groups_of_a_row_have_a_scale_each():
    x = cresset.tensor([[1.0, 2.0, 10.0, 20.0]])
    scales, zero_points = cresset.tensor([[1.0, 10.0]]), cresset.tensor([[0, 1]])
    integers = ops.quantize_per_channel_group(x, scales, zero_points, -8, 7, cresset.int8, 2)
    assert integers.tolist() == [[1, 2, 2, 3]]
    restored = ops.dequantize_per_channel_group(integers, scales, zero_points, -8, 7, cresset.int8, 2, cresset.float32)
    assert restored.equal(x)
    with pytest.raises(AssertionError, match="must be divisible by group_size"):
        ops.quantize_per_channel_group(x, scales, zero_points, -8, 7, cresset.int8, 3)


def test_imitation_has_the_gradient_of_what_is_inside():
    x = cresset.tensor([[0.5, 9.0]], requires_grad=True)
    y = ops.fake_quant_per_channel(x, cresset.tensor([1.0, 1.0]), cresset.tensor([0, 0]), 1, 0, 5)
    y.sum().backward()
    assert y.tolist() == [[0.0, 5.0]] and x.grad.tolist() == [[1.0, 0.0]]


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda x: ops.quantize_per_tensor(x, 1.0, 0, -1, 255, cresset.uint8), AssertionError, "quant_min out of"),
        (lambda x: ops.quantize_per_tensor(x, 1.0, 0, 0, 256, cresset.uint8), AssertionError, "quant_max out of"),
        (lambda x: ops.quantize_per_tensor(x, 1.0, 0, 0, 9, cresset.int64), ValueError, "Unsupported dtype"),
        (lambda x: ops.quantize_per_tensor(x.double(), 1.0, 0, *UINT8), AssertionError, "dtype torch.float32"),
        (lambda x: ops.dequantize_per_tensor(x, 1.0, 0, *UINT8), AssertionError, "to have dtype: torch.uint8"),
        (
            lambda x: ops.quantize_per_tensor.tensor(x, cresset.ones(2), cresset.zeros(1), *UINT8),
            AssertionError,
            "scale tensor to be one element",
        ),
    ],
)
def test_what_does_not_fit_is_refused(call, error, words):
    with pytest.raises(error, match=words):
        call(cresset.ones(2))


def test_shapes_without_elements_and_graphs():
    with FakeTensorMode():
        scale, zero_point = ops.choose_qparams.tensor(cresset.ones(3), *UINT8[:2], 1e-5, cresset.uint8)
        assert ops.quantize_per_tensor.tensor(cresset.ones(3), scale, zero_point, *UINT8).dtype == cresset.uint8
    graph = make_fx(lambda x: ops.quantize_per_tensor(x, 0.5, 3, *UINT8))(cresset.ones(2))
    assert "quantized_decomposed.quantize_per_tensor.default(x_1, 0.5, 3, 0, 255, torch.uint8)" in graph.code
