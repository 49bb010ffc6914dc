"""Convolutions of dynamically quantized models.

The result has the scale that was found for the input, as PyTorch's has: what is larger than the largest input is cut
off. Hence the warning that each gives when it is made.
"""

import warnings

from cresset import nn, ops

from .. import modules

__all__ = ["Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"]


def _kind(name):
    base, dims = getattr(modules, name), int(name[-2])
    operator = f"conv{'_transpose' * ('Transpose' in name)}{dims}d_dynamic"

    def __init__(self, *args, **kwargs):
        warnings.warn(
            f"The current implementation of the {self._get_name()} module has poor numerical accuracy and its use is "
            "not recommended",
            stacklevel=2,
        )
        base.__init__(self, *args, **kwargs)

    def forward(self, input, reduce_range=True):
        if input.dim() != dims + 2:
            raise ValueError(f"Input shape must be `(N, C, {', '.join('DHW'[-dims:] if dims > 1 else 'L')})`!")
        if self.padding_mode == "reflect":
            sides = [size for size in reversed(self.padding) for _ in range(2)]
            input = nn.functional.pad(input, sides, mode="reflect")
        return getattr(ops.quantized, operator)(input, self._packed_params, reduce_range)

    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """The dynamically quantized form of a layer; its `qconfig` says how the weight is quantized."""
        if not getattr(mod, "qconfig", None):
            raise AssertionError("Input float module must have qconfig defined.")
        new = cls._like(mod)
        new.set_weight_bias(modules.quantized_weight(mod.weight, mod.qconfig.weight()), mod.bias)
        return new

    def _get_name(self):
        return f"DynamicQuantized{name}"

    members = {
        "__init__": __init__, "forward": forward, "from_float": classmethod(from_float), "_get_name": _get_name,
        "__module__": __name__, "_FLOAT_MODULE": getattr(nn, name),
        "__doc__": f"nn.{name} with an int8 weight; each input becomes uint8 by its own extremes.",
    }  # fmt: skip
    return type(name, (base,), members)


Conv1d, Conv2d, Conv3d = _kind("Conv1d"), _kind("Conv2d"), _kind("Conv3d")
ConvTranspose1d, ConvTranspose2d = _kind("ConvTranspose1d"), _kind("ConvTranspose2d")
ConvTranspose3d = _kind("ConvTranspose3d")
