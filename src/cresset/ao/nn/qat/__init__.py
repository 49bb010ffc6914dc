"""Layers for training with imitated quantization: the weight passes a FakeQuantize before it is used."""

from cresset import nn

__all__ = ["Conv1d", "Conv2d", "Conv3d", "Linear"]


def _from_float(cls, mod, use_precomputed_fake_quant=False):
    """The form of a floating-point layer that imitates quantization; shares its parameters."""
    if getattr(mod, "qconfig", None) is None:
        raise AssertionError(f"{cls.__name__}.from_float: the layer must have a qconfig")
    new = cls.__new__(cls)
    new.__dict__.update(mod.__dict__)
    new._modules = dict(mod._modules)
    new.weight_fake_quant = mod.qconfig.weight()
    return new


class Linear(nn.Linear):
    """nn.Linear whose weight is quantized in imitation."""

    from_float = classmethod(_from_float)

    def forward(self, input):
        return nn.functional.linear(input, self.weight_fake_quant(self.weight), self.bias)


def _kind(dims):
    base = getattr(nn, f"Conv{dims}d")

    def forward(self, input):
        return self._conv_forward(input, self.weight_fake_quant(self.weight), self.bias)

    text = f"nn.Conv{dims}d whose weight is quantized in imitation."
    return type(
        f"Conv{dims}d",
        (base,),
        {"forward": forward, "from_float": classmethod(_from_float), "__module__": __name__, "__doc__": text},
    )


Conv1d, Conv2d, Conv3d = _kind(1), _kind(2), _kind(3)
