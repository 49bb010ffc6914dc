"""Activation functions of quantized tensors, with a scale for the result."""

import warnings

import cresset
from cresset.nn import functional
from cresset.tensors.quantized import fused_numbers, rounded

from . import needs_quantized, operator

_RESULT = "float output_scale, int output_zero_point"


def _apply(who, input, function, scale, zero_point):
    needs_quantized(who, input)
    return rounded(function(fused_numbers(input)), scale, zero_point, input.dtype)


@operator(f"sigmoid(Tensor qx, {_RESULT}) -> Tensor")
def sigmoid(input, scale, zero_point):
    return _apply("sigmoid", input, cresset.sigmoid, scale, zero_point)


@operator(f"softmax(Tensor qx, int dim, {_RESULT}) -> Tensor")
def softmax(input, dim, scale, zero_point):
    return _apply("softmax", input, lambda x: functional.softmax(x, dim), scale, zero_point)


@operator(f"hardswish(Tensor input, {_RESULT}) -> Tensor")
def hardswish(input, scale, zero_point):
    return _apply("hardswish", input, functional.hardswish, scale, zero_point)


@operator(f"elu(Tensor self, {_RESULT}, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor")
def elu(input, scale, zero_point, alpha=1.0, factor=1.0, input_scale=1.0):
    return _apply(
        "elu", input, lambda x: cresset.where(x < 0, alpha * cresset.expm1(x * input_scale), x) * factor, scale,
        zero_point,
    )  # fmt: skip


@operator(f"celu(Tensor self, {_RESULT}, Scalar alpha=1) -> Tensor")
def celu(input, scale, zero_point, alpha=1.0):
    return elu(input, scale, zero_point, alpha, 1.0, 1.0 / alpha)


@operator(f"leaky_relu(Tensor qx, Scalar negative_slope, bool inplace, {_RESULT}) -> Tensor")
def leaky_relu(input, negative_slope, inplace, scale, zero_point):
    if inplace:
        warnings.warn("quantized::leaky_relu: inplace=True is not supported: the result is a new tensor", stacklevel=2)
    return _apply("leaky_relu", input, lambda x: functional.leaky_relu(x, negative_slope), scale, zero_point)


@operator(f"prelu(Tensor qx, Tensor weight, {_RESULT}) -> Tensor")
def prelu(input, weight, scale, zero_point):
    needs_quantized("prelu", weight)
    return _apply("prelu", input, lambda x: functional.prelu(x, weight.dequantize()), scale, zero_point)


@operator("relu6(Tensor qx, bool inplace=False) -> Tensor")
def relu6(input, inplace=False):
    result = clamp(input, 0, 6)
    if not inplace:
        return result
    input._become(result)
    return input


@operator("clamp(Tensor qx, Scalar? min=None, Scalar? max=None) -> Tensor qy")
def clamp(input, min=None, max=None):
    needs_quantized("clamp", input)
    return input.clamp(min, max)


@operator("threshold(Tensor qx, Scalar threshold, Scalar value) -> Tensor qy")
def threshold(input, threshold, value):
    return _apply(
        "threshold", input, lambda x: functional.threshold(x, threshold, value), input.q_scale(), input.q_zero_point()
    )


@operator(f"dropout(Tensor self, {_RESULT}, Scalar p=0.5, bool training=False) -> Tensor")
def dropout(input, scale, zero_point, p=0.5, training=False):
    needs_quantized("dropout", input)
    if not training:
        return input.clone()
    return _apply("dropout", input, lambda x: functional.dropout(x, p, True), scale, zero_point)
