"""Layers for training whose inputs will be quantized each by its own extremes."""

from . import Linear as _Linear

__all__ = ["Linear"]


class Linear(_Linear):
    """nn.Linear whose weight is quantized in imitation, and whose input will be when the model runs."""

    def __init__(self, in_features, out_features, bias=True, qconfig=None, device=None, dtype=None):
        super().__init__(in_features, out_features, bias, qconfig, device, dtype)
        _check(qconfig)

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """Of an nn.Linear with a `qconfig`; shares its parameters."""
        _check(mod.qconfig)
        return super().from_float(mod, use_precomputed_fake_quant)


def _check(qconfig):
    """Each input has a scale of its own, so nothing may be remembered of those before."""
    activation = qconfig.activation()
    watch = getattr(activation, "activation_post_process", activation)
    if getattr(watch, "averaging_constant", None) != 1:
        raise ValueError(
            "Dynamic QAT requires a memoryless observer.This means a MovingAverage observer with averaging constant "
            "equal to 1"
        )
