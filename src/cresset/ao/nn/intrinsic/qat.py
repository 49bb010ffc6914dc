"""Fused layers for training with imitated quantization.

Note [Batch norm inside of a layer]
What will be quantized is the weight with the batch norm's factor g / s folded in, s the running deviation. So it is
this weight that passes the FakeQuantize, W' = fake(W g / s). The convolution is made with W' and without a bias; its
result, divided by g / s again, is what the batch norm is given: in training it takes the statistics of this batch, in
evaluation the factors cancel.

That divides by g, which may be 0. With `_enable_slow_path_for_better_numerical_stability` the convolution is made twice
in training: with W for the statistics m, v of this batch, and with W', whose result times s / sqrt(v + eps) is the
normalized one but for the shift h - g m / sqrt(v + eps).
"""

import math

import cresset
from cresset import nn

from ..qat import Conv1d, Conv2d, Conv3d, Linear
from . import ConvBn1d as _ConvBn1d
from . import ConvBn2d as _ConvBn2d
from . import ConvBn3d as _ConvBn3d
from . import ConvBnReLU1d as _ConvBnReLU1d
from . import ConvBnReLU2d as _ConvBnReLU2d
from . import ConvBnReLU3d as _ConvBnReLU3d
from . import ConvReLU1d as _ConvReLU1d
from . import ConvReLU2d as _ConvReLU2d
from . import ConvReLU3d as _ConvReLU3d
from . import LinearBn1d as _LinearBn1d
from . import LinearReLU as _LinearReLU
from . import _FusedModule

__all__ = [
    "ConvBn1d", "ConvBn2d", "ConvBn3d", "ConvBnReLU1d", "ConvBnReLU2d", "ConvBnReLU3d", "ConvReLU1d", "ConvReLU2d",
    "ConvReLU3d", "LinearBn1d", "LinearReLU", "freeze_bn_stats", "update_bn_stats",
]  # fmt: skip


class _WithNorm(_FusedModule):
    """See Note [Batch norm inside of a layer]. Comes before the layer's class in the order of bases."""

    _relu = False
    _enable_slow_path_for_better_numerical_stability = False

    def _norm(self, kind, eps, momentum, freeze_bn, qconfig):
        if not qconfig:
            raise AssertionError("qconfig must be provided for QAT module")
        self.qconfig = qconfig
        self.bn = kind(self.weight.shape[0], eps, momentum, True, True)
        self.weight_fake_quant = qconfig.weight()
        self.reset_bn_parameters()
        self.freeze_bn_stats() if freeze_bn else self.update_bn_stats()

    def reset_running_stats(self):
        """Forget the running statistics."""
        self.bn.reset_running_stats()

    def reset_bn_parameters(self):
        """Fresh statistics and parameters of the batch norm, and a fresh bias."""
        self.bn.reset_running_stats()
        nn.init.uniform_(self.bn.weight)
        nn.init.zeros_(self.bn.bias)
        if self.bias is not None:
            bound = 1 / math.sqrt(self.weight[0].numel())
            nn.init.uniform_(self.bias, -bound, bound)

    def update_bn_stats(self):
        """Let the batch norm take the statistics of each batch."""
        self.freeze_bn, self.bn.training = False, True
        return self

    def freeze_bn_stats(self):
        """Let the batch norm use the running statistics, also in training."""
        self.freeze_bn, self.bn.training = True, False
        return self

    def train(self, mode=True):
        """Training or evaluation; a frozen batch norm stays in evaluation."""
        self.training = mode
        if not self.freeze_bn:
            for child in self.children():
                child.train(mode)
        return self

    def forward(self, input):
        slow = self._enable_slow_path_for_better_numerical_stability
        result = self._without_dividing(input) if slow else self._divided(input)
        return nn.functional.relu(result) if self._relu else result

    def _without_dividing(self, input):
        bn, along = self.bn, (1, -1, *(1,) * (self.weight.dim() - 2))
        bias = 0 if self.bias is None else self.bias
        if bn.training:
            plain = self._apply_weight(input, self.weight)
            with cresset.no_grad():
                bn(plain + (bias if self.bias is None else bias.reshape(along)))  # for its running statistics
        deviation = cresset.sqrt(bn.running_var + bn.eps)
        factor = (bn.weight / deviation).reshape(-1, *(1,) * (self.weight.dim() - 1))
        result = self._apply_weight(input, self.weight_fake_quant(self.weight * factor))
        if not bn.training:
            return result + (bn.bias - bn.weight * (bn.running_mean - bias) / deviation).reshape(along)
        axes = [0, *range(2, plain.dim())]
        mean = plain.mean(axes)
        batch = cresset.sqrt((plain - mean.reshape(along)).square().mean(axes) + bn.eps)
        return result * (deviation / batch).reshape(along) + (bn.bias - bn.weight * mean / batch).reshape(along)

    def _divided(self, input):
        factor = self.bn.weight / cresset.sqrt(self.bn.running_var + self.bn.eps)
        weight = self.weight_fake_quant(self.weight * factor.reshape(-1, *(1,) * (self.weight.dim() - 1)))
        along = (1, -1, *(1,) * (self.weight.dim() - 2))
        result = self._apply_weight(input, weight) / factor.reshape(along)
        if self.bias is not None:
            result = result + self.bias.reshape(along)
        return self.bn(result)

    def folded(self):
        """The weight and the bias that do what layer and batch norm do in evaluation."""
        bn, fold = self.bn, nn.utils.fusion.fuse_conv_bn_weights  # which is right for a matrix as well
        return fold(self.weight, self.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias)

    def to_float(self):
        """The floating-point layer with the batch norm folded in, and the relu."""
        plain = self._plain(*self._settings(self))
        plain.weight, plain.bias = (nn.Parameter(value.detach()) for value in self.folded())
        made = self._with_relu(plain, nn.ReLU()) if self._relu else plain
        return made.train(self.training)

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """Of a fused layer with a `qconfig`; shares its parameters."""
        if type(mod) is not cls._fused:
            raise AssertionError(f"qat.{cls.__name__}.from_float only works for {cls._fused.__name__}")
        if not getattr(mod, "qconfig", None):
            raise AssertionError("Input float module must have a valid qconfig")
        layer, bn = mod[0], mod[1]
        new = cls(*cls._settings(layer), eps=bn.eps, momentum=bn.momentum, qconfig=mod.qconfig)
        new.weight, new.bias = layer.weight, layer.bias
        new.bn.weight, new.bn.bias = bn.weight, bn.bias
        for name in ("running_mean", "running_var", "num_batches_tracked"):
            setattr(new.bn, name, getattr(bn, name))
        return new


class LinearBn1d(_WithNorm, nn.Linear):
    """A linear layer and a batch norm; `qconfig.weight` imitates the quantization of the weight."""

    _fused, _plain = _LinearBn1d, nn.Linear

    def __init__(
        self, in_features, out_features, bias=True, eps=1e-05, momentum=0.1, freeze_bn=False, qconfig=None
    ):  # fmt: skip
        nn.Linear.__init__(self, in_features, out_features, bias)
        self._norm(nn.BatchNorm1d, eps, momentum, freeze_bn, qconfig)

    @staticmethod
    def _settings(layer):
        return layer.in_features, layer.out_features, layer.bias is not None

    def _apply_weight(self, input, weight):
        return nn.functional.linear(input, weight)


class _ConvBn(_WithNorm):
    @staticmethod
    def _settings(layer):
        return (
            layer.in_channels, layer.out_channels, layer.kernel_size, layer.stride, layer.padding, layer.dilation,
            layer.groups, layer.bias is not None, layer.padding_mode,
        )  # fmt: skip

    def _apply_weight(self, input, weight):
        return self._conv_forward(input, weight, None)


def _with_norm(dims, fused, relu):
    base, norm = getattr(nn, f"Conv{dims}d"), getattr(nn, f"BatchNorm{dims}d")

    def __init__(
        self, in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, bias=None,
        padding_mode="zeros", eps=1e-05, momentum=0.1, freeze_bn=False, qconfig=None,
    ):  # fmt: skip
        base.__init__(
            self, in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bool(bias), padding_mode
        )
        self._norm(norm, eps, momentum, freeze_bn, qconfig)

    members = {
        "__init__": __init__, "__module__": __name__, "_fused": fused, "_plain": base, "_relu": relu,
        "_with_relu": [None, _ConvReLU1d, _ConvReLU2d, _ConvReLU3d][dims],
        "__doc__": f"A {dims}-D convolution{', a batch norm and a relu' if relu else ' and a batch norm'}; "
        "`qconfig.weight` imitates the quantization of the weight.",
    }  # fmt: skip
    return type(fused.__name__, (_ConvBn, base), members)


ConvBn1d, ConvBnReLU1d = _with_norm(1, _ConvBn1d, False), _with_norm(1, _ConvBnReLU1d, True)
ConvBn2d, ConvBnReLU2d = _with_norm(2, _ConvBn2d, False), _with_norm(2, _ConvBnReLU2d, True)
ConvBn3d, ConvBnReLU3d = _with_norm(3, _ConvBn3d, False), _with_norm(3, _ConvBnReLU3d, True)


def _with_relu(base, fused):
    def forward(self, input):
        return nn.functional.relu(base.forward(self, input))

    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """Of a fused layer with a `qconfig`; shares its parameters."""
        layer = mod[0]
        layer.qconfig = mod.qconfig
        return super(made, cls).from_float(layer)

    def to_float(self):
        """The floating-point layer and the relu."""
        plain = super(made, self).to_float()
        return fused(plain, nn.ReLU()).train(self.training)

    doc = f"{base.__name__} and a relu; `qconfig.weight` imitates the quantization of the weight."
    members = {"forward": forward, "from_float": classmethod(from_float), "to_float": to_float}
    made = type(fused.__name__, (base, _FusedModule), {**members, "__module__": __name__, "__doc__": doc})
    return made


LinearReLU = _with_relu(Linear, _LinearReLU)
ConvReLU1d, ConvReLU2d = _with_relu(Conv1d, _ConvReLU1d), _with_relu(Conv2d, _ConvReLU2d)
ConvReLU3d = _with_relu(Conv3d, _ConvReLU3d)


def update_bn_stats(mod):
    """`model.apply(update_bn_stats)`: batch norms inside of fused layers take the statistics of each batch."""
    if isinstance(mod, _WithNorm):
        mod.update_bn_stats()


def freeze_bn_stats(mod):
    """`model.apply(freeze_bn_stats)`: batch norms inside of fused layers use the running statistics."""
    if isinstance(mod, _WithNorm):
        mod.freeze_bn_stats()
