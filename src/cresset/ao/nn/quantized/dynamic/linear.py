"""The linear layer of dynamically quantized models."""

import cresset
from cresset import nn
from cresset.tensors.quantized import choose_parameters

from ..packing import integer_linear, quantized_weight


class Linear(nn.Module):
    """input @ weight.T + bias with an int8 weight. Each input becomes uint8 by its own extremes; sums are in int32.

    Args:
        dtype: torch.qint8; torch.float16 keeps the weight in float16 and computes in float32.

    >>> layer = cresset.ao.nn.quantized.dynamic.Linear(2, 1)
    >>> layer.set_weight_bias(cresset.quantize_per_tensor(cresset.tensor([[1.0, 2.0]]), 1.0, 0, cresset.qint8), None)
    >>> layer(cresset.tensor([[127.0, 0.0]]))
    tensor([[127.]])
    """

    _FLOAT_MODULE = nn.Linear

    def __init__(self, in_features, out_features, bias_=True, dtype=cresset.qint8):
        super().__init__()
        if dtype not in (cresset.qint8, cresset.float16):
            raise RuntimeError(f"dynamic.Linear: unsupported dtype {dtype}; it is torch.qint8 or torch.float16")
        self.in_features, self.out_features, self.dtype = in_features, out_features, dtype
        weight = cresset.zeros(out_features, in_features)
        self._weight = (
            cresset.quantize_per_tensor(weight, 1.0, 0, cresset.qint8) if dtype == cresset.qint8 else weight.half()
        )
        self._bias = cresset.zeros(out_features) if bias_ else None

    def weight(self):
        """The weight, quantized."""
        return self._weight

    def bias(self):
        """The bias, in floating point, or None."""
        return self._bias

    def set_weight_bias(self, w, b):
        """Use another weight and bias."""
        self._weight, self._bias = w, None if b is None else b.detach().float()

    def forward(self, x):
        if self.dtype == cresset.float16:
            return nn.functional.linear(x, self._weight.float(), self._bias)
        x = x.float()
        least, greatest = (float(x.min()), float(x.max())) if x.numel() else (0.0, 0.0)
        scale, zero_point = choose_parameters(least, greatest, 0, 255)
        integers = cresset.quantize_per_tensor(x, scale, zero_point, cresset.quint8)._integers
        return integer_linear(integers, scale, zero_point, self._weight, self._bias)

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """The dynamically quantized form of an nn.Linear; its `qconfig` says how the weight is quantized."""
        from ....quantization.qconfig import default_dynamic_qconfig

        config = getattr(mod, "qconfig", None) or default_dynamic_qconfig
        observer = config.weight()
        if observer.dtype == cresset.float16:
            new = cls(mod.in_features, mod.out_features, mod.bias is not None, cresset.float16)
            new.set_weight_bias(mod.weight.detach().half(), mod.bias)
        elif observer.dtype == cresset.qint8:
            new = cls(mod.in_features, mod.out_features, mod.bias is not None)
            new.set_weight_bias(quantized_weight(mod.weight, observer), mod.bias)
        else:
            raise RuntimeError(
                f"dynamic.Linear: Unsupported dtype {observer.dtype} of a weight; it is torch.qint8 or torch.float16"
            )
        return new.train(mod.training)

    def _get_name(self):
        return "DynamicQuantizedLinear"

    def extra_repr(self):
        scheme = f", qscheme={self._weight.qscheme()}" if self.dtype == cresset.qint8 else ""
        return f"in_features={self.in_features}, out_features={self.out_features}, dtype={self.dtype}{scheme}"

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[prefix + "_packed_params.dtype"] = self.dtype
        destination[prefix + "_packed_params._packed_params"] = (self._weight, self._bias)

    def _load_from_state_dict(
        self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
    ):
        self.dtype = state_dict.pop(prefix + "_packed_params.dtype", self.dtype)
        packed = state_dict.pop(prefix + "_packed_params._packed_params", None)
        if packed is None:
            missing_keys.append(prefix + "_packed_params._packed_params")
        else:
            self.set_weight_bias(*packed)
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, False, missing_keys, unexpected_keys, error_msgs
        )
