"""Layers that say in floating point what a quantized layer computes: the weight is quantized and dequantized, nothing
else. A compiler for another device reads such a model, and puts its own layers in their place.
"""

import cresset
from cresset import nn

__all__ = ["Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d", "Linear"]

_AFFINE = {
    cresset.per_tensor_symmetric: cresset.per_tensor_affine,
    cresset.per_channel_symmetric: cresset.per_channel_affine,
}
_INTEGERS = (cresset.quint8, cresset.qint8, cresset.quint4x2, cresset.qint32)


def parameters_of(observer):
    """What an observer found, as the `weight_qparams` that these layers take."""
    found = {"qscheme": _AFFINE.get(observer.qscheme, observer.qscheme), "dtype": observer.dtype}
    if observer.dtype in _INTEGERS:
        found["scale"], found["zero_point"] = observer.calculate_qparams()
        if found["qscheme"] in (cresset.per_channel_affine, cresset.per_channel_affine_float_qparams):
            found["axis"] = observer.ch_axis
    return found


class ReferenceQuantizedModule(nn.Module):
    """The base: `weight_qparams` says how the weight is quantized, {"qscheme", "dtype", "scale", "zero_point", "axis"}
    by default quint8 with a scale of one.
    """

    _IS_REFERENCE = True

    def _init_weight_qparams(self, weight_qparams):
        given = weight_qparams or {
            "qscheme": cresset.per_tensor_affine, "dtype": cresset.quint8, "scale": 1.0, "zero_point": 0
        }  # fmt: skip
        scheme, dtype = given["qscheme"], given["dtype"]
        if scheme not in (
            None, cresset.per_tensor_affine, cresset.per_channel_affine, cresset.per_channel_affine_float_qparams
        ):  # fmt: skip
            raise AssertionError(f"qscheme: {scheme} is not supported in reference quantized {self._get_name()}")
        self.weight_qscheme, self.weight_dtype = scheme, dtype
        kept = given if dtype in _INTEGERS else {"scale": 1.0, "zero_point": 0}
        device = self.weight.device
        for name, usual in (("scale", cresset.float), ("zero_point", cresset.int), ("axis", cresset.int)):
            value = kept.get(name, 0)
            known = isinstance(value, cresset.Tensor)
            tensor = value.detach().clone() if known else cresset.tensor(value, dtype=usual, device=device)
            self.register_buffer(f"weight_{name}", tensor)

    def get_quantized_weight(self):
        """The weight as integers; as it is where its dtype is none of integers."""
        if self.weight_dtype not in _INTEGERS:
            return self.weight.to(self.weight_dtype)
        if self.weight_qscheme == cresset.per_tensor_affine:
            scale, zero_point = float(self.weight_scale), int(self.weight_zero_point)
            return cresset.quantize_per_tensor(self.weight.detach(), scale, zero_point, self.weight_dtype)
        return cresset.quantize_per_channel(
            self.weight.detach(), self.weight_scale, self.weight_zero_point, int(self.weight_axis), self.weight_dtype
        )

    def get_weight(self):
        """The weight, quantized and dequantized."""
        found = self.get_quantized_weight()
        return found.dequantize() if found.is_quantized else found.to(self.weight.dtype)

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[prefix + "weight_qscheme"] = self.weight_qscheme
        destination[prefix + "weight_dtype"] = self.weight_dtype

    def _load_from_state_dict(self, state_dict, prefix, *rest):
        for name in ("weight_qscheme", "weight_dtype"):
            if prefix + name in state_dict:
                setattr(self, name, state_dict.pop(prefix + name))
        for name in ("weight_scale", "weight_zero_point"):
            if prefix + name in state_dict:
                getattr(self, name).resize_(state_dict[prefix + name].shape)
        super()._load_from_state_dict(state_dict, prefix, *rest)

    def _get_name(self):
        return f"Quantized{type(self).__name__}(Reference)"


def _kind(name, compute):
    base = getattr(nn, name)

    def __init__(self, *args, weight_qparams=None, **kwargs):
        base.__init__(self, *args, **kwargs)
        self._init_weight_qparams(weight_qparams)

    def from_float(cls, mod, weight_qparams):
        """Of a floating-point layer; shares the memory of its parameters."""
        new = cls.__new__(cls)
        nn.Module.__init__(new)
        kept = {key: value for key, value in vars(mod).items() if key not in vars(new) and key != "qconfig"}
        new.__dict__.update(kept, training=mod.training)
        for key, value in mod._parameters.items():
            new.register_parameter(key, None if value is None else nn.Parameter(value.detach()))
        new._init_weight_qparams(weight_qparams)
        return new

    members = {
        "__init__": __init__, "forward": compute, "from_float": classmethod(from_float), "__module__": __name__,
        "__doc__": f"nn.{name} whose weight is quantized and dequantized.",
    }  # fmt: skip
    return type(name, (ReferenceQuantizedModule, base), members)


def _linear(self, x):
    return nn.functional.linear(x, self.get_weight(), self.bias)


def _convolution(self, x):
    return self._conv_forward(x, self.get_weight(), self.bias)


def _transposed(self, x, output_size=None):
    extra = self.output_padding if output_size is None else self._output_padding(x, list(output_size))
    return self._convolve(x, self.get_weight(), self.bias, self.stride, self.padding, extra, self.groups, self.dilation)


Linear = _kind("Linear", _linear)
Conv1d, Conv2d, Conv3d = (_kind(f"Conv{dims}d", _convolution) for dims in (1, 2, 3))
ConvTranspose1d, ConvTranspose2d, ConvTranspose3d = (_kind(f"ConvTranspose{dims}d", _transposed) for dims in (1, 2, 3))
