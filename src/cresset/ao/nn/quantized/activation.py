"""Activations that take and give quantized tensors, with a scale for the result where it needs another one."""

import cresset
from cresset import nn

from ...operators import activation


def scale_found(module):
    """The scale and the zero point that the observer behind a module asks for."""
    scale, zero_point = module.activation_post_process.calculate_qparams()
    return float(scale), int(zero_point)


class Scaled:
    """A layer whose result has a scale that is in its state."""

    def _scale(self, scale, zero_point, device=None, dtype=None):
        self.register_buffer("scale", cresset.tensor(scale, device=device, dtype=dtype))
        self.register_buffer("zero_point", cresset.tensor(zero_point, device=device))

    def _result(self):
        return float(self.scale), int(self.zero_point)

    def _get_name(self):
        return "Quantized" + type(self).__name__


class ReLU6(nn.ReLU):
    """The elements between 0 and 6, in the scale of the input.

    >>> x = cresset.quantize_per_tensor(cresset.tensor([-1.0, 3.0, 8.0]), 0.5, 10, cresset.quint8)
    >>> cresset.ao.nn.quantized.ReLU6()(x).tolist()
    [0.0, 3.0, 6.0]
    """

    def forward(self, input):
        return activation.relu6(input, self.inplace)

    def _get_name(self):
        return "QuantizedReLU6"

    @staticmethod
    def from_float(mod, use_precomputed_fake_quant=False):
        """Of an nn.ReLU6."""
        return ReLU6(mod.inplace)


class Hardswish(Scaled, nn.Hardswish):
    """`nn.Hardswish` with a scale for the result."""

    def __init__(self, scale, zero_point, device=None, dtype=None):
        super().__init__()
        self._scale(scale, zero_point, device, dtype)

    def forward(self, input):
        return activation.hardswish(input, *self._result())

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """Of an observed nn.Hardswish."""
        return cls(*scale_found(mod))


class LeakyReLU(Scaled, nn.LeakyReLU):
    """`nn.LeakyReLU` with a scale for the result."""

    def __init__(self, scale, zero_point, negative_slope=1e-2, inplace=False, device=None, dtype=None):
        super().__init__(negative_slope, inplace)
        self._scale(scale, zero_point, device, dtype)

    def forward(self, input):
        return activation.leaky_relu(input, self.negative_slope, self.inplace, *self._result())

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """Of an observed nn.LeakyReLU."""
        return cls(*scale_found(mod), mod.negative_slope, mod.inplace)


class ELU(nn.ELU):
    """`nn.ELU` with a scale for the result."""

    def __init__(self, scale, zero_point, alpha=1.0):
        super().__init__(alpha)
        self.scale, self.zero_point = scale, zero_point

    def forward(self, input):
        return activation.elu(input, self.scale, self.zero_point, self.alpha)

    def _get_name(self):
        return "QuantizedELU"

    @staticmethod
    def from_float(mod, use_precomputed_fake_quant=False):
        """Of an observed nn.ELU."""
        return ELU(*scale_found(mod), mod.alpha)


class Sigmoid(nn.Sigmoid):
    """`nn.Sigmoid` with a scale for the result."""

    def __init__(self, output_scale, output_zero_point):
        super().__init__()
        self.output_scale, self.output_zero_point = output_scale, output_zero_point

    def forward(self, input):
        return activation.sigmoid(input, self.output_scale, self.output_zero_point)

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """Of an observed nn.Sigmoid."""
        return cls(*scale_found(mod))


class Softmax(nn.Softmax):
    """`nn.Softmax` with a scale for the result."""

    def __init__(self, dim=None, scale=1.0, zero_point=0):
        super().__init__(dim)
        self.scale, self.zero_point = scale, zero_point

    def forward(self, input):
        return activation.softmax(input, self.dim, self.scale, self.zero_point)

    def _get_name(self):
        return "QuantizedSoftmax"

    @staticmethod
    def from_float(mod, use_precomputed_fake_quant=False):
        """Of an observed nn.Softmax."""
        return Softmax(mod.dim, *scale_found(mod))


class PReLU(nn.Module):
    """`nn.PReLU` with quantized slopes and a scale for the result."""

    def __init__(self, output_scale, output_zero_point, num_parameters=1):
        super().__init__()
        self.num_parameters, self.scale, self.zero_point = num_parameters, output_scale, output_zero_point
        self.set_weight(cresset.quantize_per_tensor(cresset.randn(num_parameters), 1.0, 0, cresset.quint8))

    def set_weight(self, w):
        """Use other slopes: a quantized tensor."""
        self.weight = w

    def forward(self, input):
        return activation.prelu(input, self.weight, self.scale, self.zero_point)

    def _get_name(self):
        return "QuantizedPReLU"

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """Of an observed nn.PReLU."""
        new = cls(*scale_found(mod), mod.num_parameters)
        weight, observer = mod.weight.detach().float(), mod.qconfig.weight()
        observer(weight)
        scale, zero_point = observer.calculate_qparams()
        new.set_weight(cresset.quantize_per_tensor(weight, float(scale), int(zero_point), cresset.quint8))
        return new


class Dropout(nn.Dropout):
    """The input: a quantized model is not trained."""

    def forward(self, input):
        return input

    def _get_name(self):
        return "QuantizedDropout"

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """Of an nn.Dropout."""
        return cls(mod.p, mod.inplace)
