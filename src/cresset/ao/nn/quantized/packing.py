"""Weights as integers, and the holder of a linear layer's that both static and dynamic layers have."""

import cresset
from cresset import nn

from ...operators import linear


def quantized_weight(weight, observer, precomputed=False):
    """A weight as a quantized tensor, with the scale that the observer finds, or has found before."""
    if not precomputed:
        observer(weight.detach())
    scale, zero_point = observer.calculate_qparams()
    weight = weight.detach().float()
    if observer.qscheme in (cresset.per_channel_affine, cresset.per_channel_symmetric):
        return cresset.quantize_per_channel(weight, scale, zero_point, getattr(observer, "ch_axis", 0), cresset.qint8)
    return cresset.quantize_per_tensor(weight, float(scale), int(zero_point), cresset.qint8)


class LinearPackedParams(nn.Module):
    """The weight and the bias of a quantized linear layer; in a state dictionary they are one entry."""

    _version = 3

    def __init__(self, dtype=cresset.qint8):
        super().__init__()
        self.dtype = dtype
        self.set_weight_bias(
            cresset.quantize_per_tensor(cresset.zeros(1, 1), 1.0, 0, dtype)
            if dtype == cresset.qint8
            else cresset.zeros(1, 1),
            None,
        )

    def set_weight_bias(self, weight, bias):
        """Use another weight and bias."""
        pack = linear.linear_prepack if self.dtype == cresset.qint8 else linear.linear_prepack_fp16
        self._packed_params = pack(weight, bias)

    def _weight_bias(self):
        return self._packed_params.unpack()

    def forward(self, x):
        return x

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[prefix + "dtype"] = self.dtype
        destination[prefix + "_packed_params"] = self._weight_bias()

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, strict, missing_keys, *rest):
        version = local_metadata.get("version") or (3 if prefix + "_packed_params" in state_dict else 1)
        names = ["dtype"] * (version > 1) + (["weight", "bias"] if version < 3 else ["_packed_params"])
        missing = [prefix + name for name in names if prefix + name not in state_dict]
        if missing:
            missing_keys.extend(missing)
        else:
            self.dtype = state_dict.pop(prefix + "dtype") if version > 1 else cresset.qint8
            parts = [state_dict.pop(prefix + name) for name in names if name != "dtype"]
            self.set_weight_bias(*(parts if version < 3 else parts[0]))
        super()._load_from_state_dict(state_dict, prefix, local_metadata, False, missing_keys, *rest)

    def __repr__(self):
        return repr(self._weight_bias())
