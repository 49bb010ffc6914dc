"""Normalizations of quantized tensors, with a scale for the result."""

from cresset.nn import functional
from cresset.tensors.quantized import rounded

from . import needs_quantized, operator

_AFFINE = "Tensor? weight, Tensor? bias, float eps, float output_scale, int output_zero_point"


@operator(f"layer_norm(Tensor input, int[] normalized_shape, {_AFFINE}) -> Tensor")
def layer_norm(input, normalized_shape, weight, bias, eps, scale, zero_point):
    needs_quantized("layer_norm", input)
    numbers = functional.layer_norm(input.dequantize(), normalized_shape, weight, bias, eps)
    return rounded(numbers.detach(), scale, zero_point, input.dtype)


@operator(f"group_norm(Tensor input, int num_groups, {_AFFINE}) -> Tensor")
def group_norm(input, num_groups, weight, bias, eps, scale, zero_point):
    needs_quantized("group_norm", input)
    numbers = functional.group_norm(input.dequantize(), num_groups, weight, bias, eps)
    return rounded(numbers.detach(), scale, zero_point, input.dtype)


@operator(f"instance_norm(Tensor input, {_AFFINE}) -> Tensor")
def instance_norm(input, weight, bias, eps, scale, zero_point):
    return group_norm(input, input.shape[1], weight, bias, eps, scale, zero_point)


def _batch_norm(name, relu):
    @operator(
        f"{name}(Tensor qx, Tensor? weight, Tensor? bias, Tensor mean, Tensor var, float eps, float output_scale, "
        "int output_zero_point) -> Tensor"
    )
    def normalize(input, weight, bias, mean, var, eps, scale, zero_point):
        """One multiply-add on the integers: factor (x - x0) + shift, in units of the result."""
        needs_quantized(name, input)
        shape = (-1, *(1,) * (input.dim() - 2))
        factor = 1.0 / (var + eps).sqrt() * (1.0 if weight is None else weight.detach())
        shift = (0.0 if bias is None else bias.detach()) - mean * factor
        numbers = input.dequantize() * factor.reshape(shape) + shift.reshape(shape)
        return rounded(numbers.relu() if relu else numbers, scale, zero_point, input.dtype)


for _name in ("batch_norm", "batch_norm1d", "batch_norm2d", "batch_norm3d"):
    _batch_norm(_name, False)
    _batch_norm(f"{_name}_relu", True)
