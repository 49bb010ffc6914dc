"""Layers that take and give quantized tensors, and those at the borders to floating point."""

import cresset
from cresset import nn

from ...operators import convolution, linear
from .packing import LinearPackedParams, quantized_weight


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

    def weight(self):
        """The weight, quantized."""
        return self._weight_bias()[0]

    def bias(self):
        """The bias, in floating point, or None."""
        return self._weight_bias()[1]

    def _take(self, layer, observed, precomputed):
        """The weight, bias and scale of a floating-point layer and of the observer behind it."""
        precomputed = precomputed and getattr(layer, "weight_fake_quant", None) is not None
        weight, bias = layer.folded() if hasattr(layer, "folded") else (layer.weight, layer.bias)
        self.set_weight_bias(quantized_weight(weight, _weight_observer(layer, observed), precomputed), bias)
        scale, zero_point = observed.activation_post_process.calculate_qparams()
        self.scale, self.zero_point = float(scale), int(zero_point)
        return self

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        super()._save_to_state_dict(destination, prefix, keep_vars)
        self._save_weight(destination, prefix)
        destination[prefix + "scale"] = cresset.tensor(self.scale)
        destination[prefix + "zero_point"] = cresset.tensor(self.zero_point)

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, strict, missing_keys, *rest):
        for name, kind in (("scale", float), ("zero_point", int)):
            if prefix + name in state_dict:
                setattr(self, name, kind(state_dict.pop(prefix + name)))
            else:
                missing_keys.append(prefix + name)
        self._load_weight(state_dict, prefix, local_metadata, missing_keys)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, False, missing_keys, *rest)


def _weight_observer(layer, observed):
    config = getattr(observed, "qconfig", None) or getattr(layer, "qconfig", None)
    fake = getattr(layer, "weight_fake_quant", None)
    if fake is not None:
        return fake  # which asks its observer where that is on
    return config.weight()


class Linear(_Weighted):
    """input @ weight.T + bias by integers, with sums in int32."""

    _version = 3

    def __init__(self, in_features, out_features, bias_=True, dtype=cresset.qint8):
        super().__init__()
        if dtype not in (cresset.qint8, cresset.float16):
            raise RuntimeError(f"Linear: Unsupported dtype {dtype} of a weight; it is torch.qint8 or torch.float16")
        self.in_features, self.out_features = in_features, out_features
        self._packed_params = LinearPackedParams(dtype)
        weight = cresset.zeros(out_features, in_features)
        self.set_weight_bias(
            cresset.quantize_per_tensor(weight, 1.0, 0, dtype) if dtype == cresset.qint8 else weight,
            cresset.zeros(out_features) if bias_ else None,
        )

    def _weight_bias(self):
        return self._packed_params._weight_bias()

    def set_weight_bias(self, w, b):
        """Use another weight and bias."""
        self._packed_params.set_weight_bias(w, b)

    def forward(self, x):
        return linear.requantized_linear(
            _taken(self, x), self._packed_params._packed_params, self.scale, self.zero_point, self._relu
        )

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """Of an observed nn.Linear, or of one fused with a relu."""
        layer = mod if hasattr(mod, "weight") else mod[0]
        return cls(layer.in_features, layer.out_features, layer.bias is not None)._take(
            layer, mod, use_precomputed_fake_quant
        )

    def _save_weight(self, destination, prefix):
        """Nothing: the weight is of a module inside."""

    def _load_weight(self, state_dict, prefix, local_metadata, missing_keys):
        if (local_metadata.get("version") or 1) == 1:  # then the weight was not of a module inside
            for name in ("weight", "bias"):
                if prefix + name in state_dict:
                    state_dict[f"{prefix}_packed_params.{name}"] = state_dict.pop(prefix + name)

    def _get_name(self):
        return "Quantized" + type(self).__name__

    def extra_repr(self):
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, scale={self.scale}, "
            f"zero_point={self.zero_point}, qscheme={self.weight().qscheme()}"
        )

    def __repr__(self):  # without the holder of the weight, which is no layer
        return f"{self._get_name()}({self.extra_repr()})"


class LinearReLU(Linear):
    """`Linear`, then a relu."""

    _relu = True


class _Conv(_Weighted):
    """A convolution with an int8 weight; what follows `out_channels` is as in nn's."""

    _dims = 2
    transposed = False

    def __init__(
        self, in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, bias=True,
        padding_mode="zeros", device=None, dtype=None,
    ):  # fmt: skip
        super().__init__()
        each = _ntuple(self._dims)
        if padding_mode not in ("zeros", "reflect"):
            raise ValueError(f"'padding_mode' {padding_mode} is not supported by quantized convolution")
        if in_channels % groups or out_channels % groups:
            raise ValueError(f"{in_channels} and {out_channels} channels must be divisible by {groups} groups")
        self.in_channels, self.out_channels, self.kernel_size = in_channels, out_channels, each(kernel_size)
        self.stride, self.dilation, self.groups, self.padding_mode = each(stride), each(dilation), groups, padding_mode
        self.padding = padding if isinstance(padding, str) else each(padding)
        self.output_padding = self._output_padding if self.transposed else each(0)
        weight = cresset.zeros(self._weight_shape(), device=device)
        self.set_weight_bias(
            cresset.quantize_per_tensor(weight, 1.0, 0, cresset.qint8),
            cresset.zeros(out_channels, device=device) if bias else None,
        )

    def __getstate__(self):
        """What PyTorch's pickles of a whole module hold."""
        return (
            self.in_channels, self.out_channels, self.kernel_size, self.stride, self.padding, self.dilation,
            self.transposed, self.output_padding, self.groups, self.padding_mode, *self._weight_bias(), self.scale,
            self.zero_point, self.training,
        )  # fmt: skip

    def __setstate__(self, state):
        nn.Module.__init__(self)
        (
            self.in_channels, self.out_channels, self.kernel_size, self.stride, self.padding, self.dilation,
            _, self.output_padding, self.groups, self.padding_mode, weight, bias, self.scale, self.zero_point,
            self.training,
        ) = state  # fmt: skip
        self.set_weight_bias(weight, bias)

    def _weight_shape(self):
        return self.out_channels, self.in_channels // self.groups, *self.kernel_size

    def _weight_bias(self):
        return self._packed_params.unpack()

    def set_weight_bias(self, w, b):
        """Use another weight and bias."""
        padding = self.padding if self.padding_mode == "zeros" else (0,) * self._dims
        self._packed_params = convolution.PackedConvolution(
            w, b, self.stride, padding, self.dilation, self.groups, self.output_padding if self.transposed else None
        )

    def forward(self, input):
        input = _taken(self, input)
        if self.padding_mode == "reflect":
            sides = [size for size in reversed(self.padding) for _ in range(2)]
            input = nn.functional.pad(input, sides, mode="reflect")
        name = f"conv_transpose{self._dims}d" if self.transposed else f"conv{self._dims}d"
        return convolution.convolved(name, input, self._packed_params, self.scale, self.zero_point, self._relu)

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """Of an observed convolution, or of one fused with a relu."""
        layer = mod if hasattr(mod, "weight") else mod[0]
        return cls._like(layer)._take(layer, mod, use_precomputed_fake_quant)

    @classmethod
    def _like(cls, layer):
        return cls(
            layer.in_channels, layer.out_channels, layer.kernel_size, layer.stride, layer.padding, layer.dilation,
            layer.groups, layer.bias is not None, layer.padding_mode,
        )  # fmt: skip

    def _save_weight(self, destination, prefix):
        destination[prefix + "weight"], destination[prefix + "bias"] = self._weight_bias()

    def _load_weight(self, state_dict, prefix, local_metadata, missing_keys):
        missing = [prefix + name for name in ("weight", "bias") if prefix + name not in state_dict]
        missing_keys.extend(missing)
        if not missing:
            self.set_weight_bias(state_dict.pop(prefix + "weight"), state_dict.pop(prefix + "bias"))

    def _get_name(self):
        return "Quantized" + type(self).__name__

    def extra_repr(self):
        text = (
            f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}, "
            f"scale={self.scale}, zero_point={self.zero_point}"
        )
        for name, usual in (("padding", 0), ("dilation", 1), ("output_padding", 0)):
            if getattr(self, name) != (usual,) * self._dims:
                text += f", {name}={getattr(self, name)}"
        text += f", groups={self.groups}" if self.groups != 1 else ""
        return text + (", bias=False" if self.bias() is None else "")


class _ConvTranspose(_Conv):
    """A transposed convolution with an int8 weight; the arguments are those of nn's."""

    transposed = True

    def __init__(
        self, in_channels, out_channels, kernel_size, stride=1, padding=0, output_padding=0, groups=1, bias=True,
        dilation=1, padding_mode="zeros", device=None, dtype=None,
    ):  # fmt: skip
        if out_channels <= 0:
            raise ValueError("out_channels must be greater than 0")
        if padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {type(self).__name__}')
        self._output_padding = _ntuple(self._dims)(output_padding)
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias, padding_mode, device, dtype
        )

    def _weight_shape(self):
        return self.in_channels, self.out_channels // self.groups, *self.kernel_size

    @classmethod
    def _like(cls, layer):
        return cls(
            layer.in_channels, layer.out_channels, layer.kernel_size, layer.stride, layer.padding, layer.output_padding,
            layer.groups, layer.bias is not None, layer.dilation, layer.padding_mode,
        )  # fmt: skip


def _ntuple(n):
    return lambda value: tuple(value) if isinstance(value, (tuple, list)) else (value,) * n


def _kinds(dims):
    """A convolution, one with a relu behind it, and a transposed one."""
    plain = type(
        f"Conv{dims}d",
        (_Conv,),
        {
            "_dims": dims,
            "__module__": __name__,
            "__doc__": f"A {dims}-D convolution of quantized tensors.",
        },
    )
    with_relu = type(
        f"ConvReLU{dims}d",
        (plain,),
        {
            "_relu": True,
            "__module__": __name__,
            "__doc__": f"A {dims}-D convolution of quantized tensors, then a relu.",
        },
    )
    turned = type(
        f"ConvTranspose{dims}d",
        (_ConvTranspose,),
        {
            "_dims": dims,
            "__module__": __name__,
            "__doc__": f"A {dims}-D transposed convolution of quantized tensors.",
        },
    )
    return plain, with_relu, turned


Conv1d, ConvReLU1d, ConvTranspose1d = _kinds(1)
Conv2d, ConvReLU2d, ConvTranspose2d = _kinds(2)
Conv3d, ConvReLU3d, ConvTranspose3d = _kinds(3)
