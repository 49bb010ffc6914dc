"""Sums, products and joins as modules, so that an observer can stand behind each."""

import cresset
from cresset import nn


class FloatFunctional(nn.Module):
    """Operations between tensors in a model that is to be quantized; each result passes the observer of this module.

    >>> f = cresset.nn.quantized.FloatFunctional()
    >>> f.add(cresset.tensor(3.0), cresset.tensor(4.0))
    tensor(7.)
    """

    def __init__(self):
        super().__init__()
        self.activation_post_process = nn.Identity()

    def forward(self, x):
        raise RuntimeError(
            "FloatFunctional is not intended to use the forward. Please use the underlying operation: add, mul, cat, "
            "..."
        )

    def add(self, x, y):
        """x + y."""
        return self.activation_post_process(cresset.add(x, y))

    def add_scalar(self, x, y):
        """x + a number, which needs no observer."""
        return cresset.add(x, y)

    def mul(self, x, y):
        """x * y."""
        return self.activation_post_process(cresset.mul(x, y))

    def mul_scalar(self, x, y):
        """x * a number, which needs no observer."""
        return cresset.mul(x, y)

    def cat(self, x, dim=0):
        """Tensors joined along a dimension."""
        return self.activation_post_process(cresset.cat(x, dim=dim))

    def add_relu(self, x, y):
        """relu(x + y)."""
        return self.activation_post_process(cresset.relu(cresset.add(x, y)))

    def matmul(self, x, y):
        """x @ y."""
        return self.activation_post_process(cresset.matmul(x, y))


class FXFloatFunctional(FloatFunctional):
    """The operations without observers."""

    def __init__(self):
        super().__init__()


class QFunctional(nn.Module):
    """The same operations between quantized tensors, with a fixed scale for the result."""

    def __init__(self):
        super().__init__()
        self.scale, self.zero_point = 1.0, 0
        self.activation_post_process = nn.Identity()

    def forward(self, x):
        raise RuntimeError(
            "Functional is not intended to use the forward. Please use the underlying operation: add, mul, cat, ..."
        )

    def _given(self, result):
        return self.activation_post_process(
            cresset.quantize_per_tensor(result, self.scale, self.zero_point, cresset.quint8)
        )

    def add(self, x, y):
        """x + y."""
        return self._given(x.dequantize() + y.dequantize())

    def add_scalar(self, x, y):
        """x + a number."""
        return cresset.quantize_per_tensor(x.dequantize() + y, x.q_scale(), x.q_zero_point(), x.dtype)

    def mul(self, x, y):
        """x * y."""
        return self._given(x.dequantize() * y.dequantize())

    def mul_scalar(self, x, y):
        """x * a number, which scales the scale."""
        return cresset.quantize_per_tensor(x.dequantize() * y, x.q_scale() * abs(y) or 1.0, x.q_zero_point(), x.dtype)

    def cat(self, x, dim=0):
        """Tensors joined along a dimension."""
        return self._given(cresset.cat([t.dequantize() for t in x], dim=dim))

    def add_relu(self, x, y):
        """relu(x + y)."""
        return self._given((x.dequantize() + y.dequantize()).relu())

    def matmul(self, x, y):
        """x @ y."""
        return self._given(x.dequantize() @ y.dequantize())

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """Of an observed FloatFunctional."""
        new = cls()
        scale, zero_point = mod.activation_post_process.calculate_qparams()
        new.scale, new.zero_point = float(scale), int(zero_point)
        return new

    def extra_repr(self):
        return f"scale={self.scale}, zero_point={self.zero_point}"
