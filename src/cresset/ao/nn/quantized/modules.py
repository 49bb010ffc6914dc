"""Layers that take and give quantized tensors, and those at the borders to floating point."""

import cresset
from cresset import nn

from .packing import integer_linear, quantized_weight


def _taken(module, x):
    if not x.is_quantized:
        raise RuntimeError(
            f"{type(module).__name__}: expected a quantized tensor, got {x.dtype}; put a QuantStub before it"
        )
    return x


class Quantize(nn.Module):
    """Floating point to integers, with a fixed scale."""

    def __init__(self, scale, zero_point, dtype, factory_kwargs=None):
        super().__init__()
        made = factory_kwargs or {}
        self.register_buffer("scale", cresset.tensor([float(scale)], **made))
        self.register_buffer(
            "zero_point", cresset.tensor([int(zero_point)], dtype=cresset.int64, device=made.get("device"))
        )
        self.dtype = dtype

    def forward(self, X):
        return cresset.quantize_per_tensor(X, float(self.scale), int(self.zero_point), self.dtype)

    @staticmethod
    def from_float(mod, use_precomputed_fake_quant=False):
        """Of a QuantStub, with the scale that its observer found."""
        scale, zero_point = mod.activation_post_process.calculate_qparams()
        return Quantize(float(scale), int(zero_point), mod.activation_post_process.dtype)

    def extra_repr(self):
        return f"scale={self.scale}, zero_point={self.zero_point}, dtype={self.dtype}"


class DeQuantize(nn.Module):
    """Integers to floating point."""

    def forward(self, Xq):
        return Xq.dequantize()

    @staticmethod
    def from_float(mod, use_precomputed_fake_quant=False):
        """Of a DeQuantStub."""
        return DeQuantize()


class _Weighted(nn.Module):
    """A layer with an int8 weight whose result has a fixed scale."""

    _relu = False

    def __init__(self):
        super().__init__()
        self.scale, self.zero_point = 1.0, 0
        self._weight = self._bias = None

    def weight(self):
        """The weight, quantized."""
        return self._weight

    def bias(self):
        """The bias, in floating point, or None."""
        return self._bias

    def set_weight_bias(self, w, b):
        """Use another weight and bias."""
        self._weight, self._bias = w, None if b is None else b.detach().float()

    def _take(self, layer, observed, precomputed):
        """The weight, bias and scale of a floating-point layer and of the observer behind it."""
        precomputed = precomputed and getattr(layer, "weight_fake_quant", None) is not None
        self.set_weight_bias(quantized_weight(layer.weight, _weight_observer(layer, observed), precomputed), layer.bias)
        scale, zero_point = observed.activation_post_process.calculate_qparams()
        self.scale, self.zero_point = float(scale), int(zero_point)
        return self

    def _given(self, result):
        result = result.relu() if self._relu else result
        return cresset.quantize_per_tensor(result, self.scale, self.zero_point, cresset.quint8)

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[prefix + "scale"], destination[prefix + "zero_point"] = (
            cresset.tensor(self.scale),
            cresset.tensor(self.zero_point),
        )
        destination[prefix + "_packed_params"] = (self._weight, self._bias)

    def _load_from_state_dict(
        self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
    ):
        if prefix + "_packed_params" in state_dict:
            self.scale, self.zero_point = (
                float(state_dict.pop(prefix + "scale")),
                int(state_dict.pop(prefix + "zero_point")),
            )
            self.set_weight_bias(*state_dict.pop(prefix + "_packed_params"))
        else:
            missing_keys.append(prefix + "_packed_params")
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, False, missing_keys, unexpected_keys, error_msgs
        )


def _weight_observer(layer, observed):
    config = getattr(observed, "qconfig", None) or getattr(layer, "qconfig", None)
    fake = getattr(layer, "weight_fake_quant", None)
    if fake is not None:
        return fake.activation_post_process
    return config.weight()


class Linear(_Weighted):
    """input @ weight.T + bias by integers, with sums in int32."""

    def __init__(self, in_features, out_features, bias_=True, dtype=cresset.qint8):
        super().__init__()
        if dtype is not cresset.qint8:
            raise RuntimeError(f"Linear: Unsupported dtype {dtype} of a weight; it is torch.qint8")
        self.in_features, self.out_features = in_features, out_features
        self.set_weight_bias(
            cresset.quantize_per_tensor(cresset.zeros(out_features, in_features), 1.0, 0, cresset.qint8),
            cresset.zeros(out_features) if bias_ else None,
        )

    def forward(self, x):
        x = _taken(self, x)
        return self._given(integer_linear(x._integers, x.q_scale(), x.q_zero_point(), self._weight, self._bias))

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """Of an observed nn.Linear, or of one fused with a relu."""
        layer = mod[0] if isinstance(mod, nn.Sequential) else mod
        return cls(layer.in_features, layer.out_features, layer.bias is not None)._take(
            layer, mod, use_precomputed_fake_quant
        )

    def _get_name(self):
        return "Quantized" + type(self).__name__

    def extra_repr(self):
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, scale={self.scale}, "
            f"zero_point={self.zero_point}, qscheme={self._weight.qscheme()}"
        )


class LinearReLU(Linear):
    """`Linear`, then a relu."""

    _relu = True


class _Conv(_Weighted):
    """A convolution with an int8 weight. The products are made in float32, where those of 8-bit integers are exact."""

    _function = None

    def __init__(self, layer):
        super().__init__()
        self.stride, self.padding, self.dilation, self.groups, self.padding_mode = (
            layer.stride,
            layer.padding,
            layer.dilation,
            layer.groups,
            layer.padding_mode,
        )
        self.in_channels, self.out_channels, self.kernel_size = layer.in_channels, layer.out_channels, layer.kernel_size
        if layer.padding_mode != "zeros":
            raise NotImplementedError(
                f"{type(self).__name__}: padding_mode={layer.padding_mode!r} is not implemented; it is for 'zeros'"
            )

    def forward(self, input):
        input = _taken(self, input)
        convolve = getattr(nn.functional, self._function)
        result = convolve(
            input.dequantize(),
            self._weight.dequantize(),
            self._bias,
            self.stride,
            self.padding,
            self.dilation,
            self.groups,
        )
        return self._given(result)

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """Of an observed convolution, or of one fused with a relu."""
        layer = mod[0] if isinstance(mod, nn.Sequential) else mod
        return cls(layer)._take(layer, mod, use_precomputed_fake_quant)

    def _get_name(self):
        return "Quantized" + type(self).__name__

    def extra_repr(self):
        return (
            f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}, "
            f"scale={self.scale}, zero_point={self.zero_point}"
        )


def _kinds(dims):
    plain = type(
        f"Conv{dims}d",
        (_Conv,),
        {
            "_function": f"conv{dims}d",
            "__module__": __name__,
            "__doc__": f"A {dims}-D convolution of quantized tensors.",
        },
    )
    return plain, type(
        f"ConvReLU{dims}d",
        (plain,),
        {
            "_relu": True,
            "__module__": __name__,
            "__doc__": f"A {dims}-D convolution of quantized tensors, then a relu.",
        },
    )


Conv1d, ConvReLU1d = _kinds(1)
Conv2d, ConvReLU2d = _kinds(2)
Conv3d, ConvReLU3d = _kinds(3)
