"""Layers for training with imitated quantization: the weight passes a FakeQuantize before it is used."""

from cresset import nn

__all__ = ["Conv1d", "Conv2d", "Conv3d", "Embedding", "EmbeddingBag", "Linear", "dynamic"]


def _from_float(cls, mod, use_precomputed_fake_quant=False):
    """The form of a floating-point layer that imitates quantization; shares its parameters."""
    if getattr(mod, "qconfig", None) is None:
        raise AssertionError(f"{cls.__name__}.from_float: the layer must have a qconfig")
    new = cls.__new__(cls)
    new.__dict__.update(mod.__dict__)
    new._modules = dict(mod._modules)
    new.weight_fake_quant = mod.qconfig.weight()
    return new


def _to_float(self):
    """The floating-point layer, without what imitates and observes; shares the memory of the parameters."""
    plain = next(kind for kind in type(self).__mro__ if kind.__module__.startswith("cresset.nn."))
    new = plain.__new__(plain)
    nn.Module.__init__(new)
    kept = {name: value for name, value in vars(self).items() if name not in vars(new) and name != "qconfig"}
    new.__dict__.update(kept, training=self.training)
    for name, value in self._parameters.items():
        new.register_parameter(name, None if value is None else nn.Parameter(value.detach()))
    return new


def _imitating(layer, qconfig):
    """Let a layer that was made imitate the quantization that `qconfig` asks for."""
    if not qconfig:
        raise AssertionError(f"{type(layer).__name__}: qconfig must be provided for QAT module")
    layer.qconfig = qconfig
    layer.weight_fake_quant = qconfig.weight()


class Linear(nn.Linear):
    """nn.Linear whose weight is quantized in imitation, as `qconfig` says."""

    from_float, to_float = classmethod(_from_float), _to_float

    def __init__(self, in_features, out_features, bias=True, qconfig=None, device=None, dtype=None):
        super().__init__(in_features, out_features, bias, device=device, dtype=dtype)
        _imitating(self, qconfig)

    def forward(self, input):
        return nn.functional.linear(input, self.weight_fake_quant(self.weight), self.bias)


def _kind(dims):
    base = getattr(nn, f"Conv{dims}d")

    def __init__(self, *args, qconfig=None, **kwargs):
        base.__init__(self, *args, **kwargs)
        _imitating(self, qconfig)

    def forward(self, input):
        return self._conv_forward(input, self.weight_fake_quant(self.weight), self.bias)

    members = {
        "__init__": __init__, "forward": forward, "from_float": classmethod(_from_float), "to_float": _to_float,
        "__module__": __name__,
    }  # fmt: skip
    return type(
        f"Conv{dims}d", (base,), {**members, "__doc__": f"nn.Conv{dims}d whose weight is quantized in imitation."}
    )


Conv1d, Conv2d, Conv3d = _kind(1), _kind(2), _kind(3)


from . import dynamic  # noqa: E402  (a layer of the classes above)
from .embedding import Embedding, EmbeddingBag  # noqa: E402
