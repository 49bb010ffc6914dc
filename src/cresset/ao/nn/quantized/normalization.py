"""Normalizations that take and give quantized tensors, with a scale for the result."""

from cresset import nn

from ...operators import PACKETS, normalization
from .activation import Scaled, scale_found


class LayerNorm(Scaled, nn.LayerNorm):
    """`nn.LayerNorm` with a scale for the result."""

    def __init__(
        self, normalized_shape, weight, bias, scale, zero_point, eps=1e-5, elementwise_affine=True, device=None,
        dtype=None,
    ):  # fmt: skip
        super().__init__(normalized_shape, eps, elementwise_affine, device=device, dtype=dtype)
        self.weight, self.bias = weight, bias
        self._scale(scale, zero_point, device, dtype)

    def forward(self, input):
        return normalization.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps, *self._result())

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """Of an observed nn.LayerNorm."""
        found = scale_found(mod)
        return cls(mod.normalized_shape, mod.weight, mod.bias, *found, mod.eps, mod.elementwise_affine)


class GroupNorm(Scaled, nn.GroupNorm):
    """`nn.GroupNorm` with a scale for the result."""

    def __init__(
        self, num_groups, num_channels, weight, bias, scale, zero_point, eps=1e-5, affine=True, device=None, dtype=None
    ):
        super().__init__(num_groups, num_channels, eps, affine, device=device, dtype=dtype)
        self.weight, self.bias = weight, bias
        self._scale(scale, zero_point, device, dtype)

    def forward(self, input):
        return normalization.group_norm(input, self.num_groups, self.weight, self.bias, self.eps, *self._result())

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """Of an observed nn.GroupNorm."""
        found = scale_found(mod)
        return cls(mod.num_groups, mod.num_channels, mod.weight, mod.bias, *found, mod.eps, mod.affine)


class _InstanceNorm(Scaled):
    """`nn.InstanceNorm` with a scale for the result."""

    def __init__(
        self, num_features, weight, bias, scale, zero_point, eps=1e-5, momentum=0.1, affine=False,
        track_running_stats=False, device=None, dtype=None,
    ):  # fmt: skip
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device=device, dtype=dtype)
        self.weight, self.bias = weight, bias
        self._scale(scale, zero_point, device, dtype)

    def forward(self, input):
        return normalization.instance_norm(input, self.weight, self.bias, self.eps, *self._result())

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """Of an observed nn.InstanceNorm."""
        return cls(mod.num_features, mod.weight, mod.bias, *scale_found(mod), mod.eps, mod.affine)


class _BatchNorm(Scaled):
    """`nn.BatchNorm` in evaluation, with a scale for the result."""

    _operator = ""

    def __init__(self, num_features, eps=1e-5, momentum=0.1, device=None, dtype=None):
        super().__init__(num_features, eps, momentum, True, True, device=device, dtype=dtype)
        self._scale(1.0, 0, device, dtype)

    def forward(self, input):
        (normalize,) = PACKETS[self._operator]._overloads.values()
        return normalize(input, self.weight, self.bias, self.running_mean, self.running_var, self.eps, *self._result())

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """Of an observed nn.BatchNorm, or of one fused with a relu."""
        norm = mod[0] if isinstance(mod, nn.Sequential) else mod
        new = cls(norm.num_features, norm.eps)
        new.weight, new.bias, new.running_mean, new.running_var = (
            norm.weight, norm.bias, norm.running_mean, norm.running_var,
        )  # fmt: skip
        new.scale, new.zero_point = mod.activation_post_process.calculate_qparams()
        return new


def _kind(name, base, plain, **fields):
    words = (
        f"`nn.{plain.__name__}` of quantized tensors, with a scale for the result{', then a relu' * ('ReLU' in name)}."
    )
    return type(name, (base, plain), {**fields, "__module__": __name__, "__doc__": words})


InstanceNorm1d = _kind("InstanceNorm1d", _InstanceNorm, nn.InstanceNorm1d)
InstanceNorm2d = _kind("InstanceNorm2d", _InstanceNorm, nn.InstanceNorm2d)
InstanceNorm3d = _kind("InstanceNorm3d", _InstanceNorm, nn.InstanceNorm3d)
BatchNorm2d = _kind("BatchNorm2d", _BatchNorm, nn.BatchNorm2d, _operator="batch_norm2d")
BatchNorm3d = _kind("BatchNorm3d", _BatchNorm, nn.BatchNorm3d, _operator="batch_norm3d")
BNReLU2d = _kind("BNReLU2d", _BatchNorm, nn.BatchNorm2d, _operator="batch_norm2d_relu")
BNReLU3d = _kind("BNReLU3d", _BatchNorm, nn.BatchNorm3d, _operator="batch_norm3d_relu")
