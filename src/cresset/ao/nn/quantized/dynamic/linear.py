"""The linear layer of dynamically quantized models."""

import cresset
from cresset import nn

from ....operators import linear
from ..modules import Linear as StaticLinear
from ..packing import quantized_weight


class Linear(StaticLinear):
    """input @ weight.T + bias with an int8 weight. Each input becomes uint8 by its own extremes; sums are in int32.

    Args:
        dtype: torch.qint8; torch.float16 rounds the weight to float16 and computes in float32.

    >>> layer = cresset.ao.nn.quantized.dynamic.Linear(2, 1)
    >>> layer.set_weight_bias(cresset.quantize_per_tensor(cresset.tensor([[1.0, 2.0]]), 1.0, 0, cresset.qint8), None)
    >>> layer(cresset.tensor([[127.0, 0.0]]))
    tensor([[127.]])
    """

    _FLOAT_MODULE = nn.Linear
    _version = 4

    def __init__(self, in_features, out_features, bias_=True, dtype=cresset.qint8):
        super().__init__(in_features, out_features, bias_, dtype)
        self.version = self._version

    def forward(self, x):
        packed = self._packed_params._packed_params
        if self._packed_params.dtype == cresset.float16:
            return linear.linear_dynamic_fp16(x.float(), packed).to(x.dtype)
        reduced = self.version is None or self.version >= 4  # older files were made for 8 bits
        return linear.linear_dynamic(x.float(), packed, reduced).to(x.dtype)

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """The dynamically quantized form of an nn.Linear; its `qconfig` says how the weight is quantized."""
        from ....quantization.qconfig import default_dynamic_qconfig

        config = getattr(mod, "qconfig", None) or default_dynamic_qconfig
        mod = mod if hasattr(mod, "weight") else mod[0]
        observer = config.weight()
        if observer.dtype not in (cresset.qint8, cresset.float16):
            raise RuntimeError(
                f"dynamic.Linear: Unsupported dtype {observer.dtype} of a weight; it is torch.qint8 or torch.float16"
            )
        new = cls(mod.in_features, mod.out_features, mod.bias is not None, observer.dtype)
        half = observer.dtype == cresset.float16
        new.set_weight_bias(mod.weight if half else quantized_weight(mod.weight, observer), mod.bias)
        return new.train(mod.training)

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, *rest):
        self.version = local_metadata.get("version")
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)

    def _get_name(self):
        return "DynamicQuantizedLinear"

    def extra_repr(self):
        dtype = self._packed_params.dtype
        scheme = f", qscheme={self.weight().qscheme()}" if dtype == cresset.qint8 else ""
        return f"in_features={self.in_features}, out_features={self.out_features}, dtype={dtype}{scheme}"
