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

    def add_scalar(self, x, y: float):
        """x + a number, which needs no observer."""
        return cresset.add(x, y)

    def mul(self, x, y):
        """x * y."""
        return self.activation_post_process(cresset.mul(x, y))

    def mul_scalar(self, x, y: float):
        """x * a number, which needs no observer."""
        return cresset.mul(x, y)

    def cat(self, x: list[cresset.Tensor], dim: int = 0):
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

    def add(self, x, y):
        """x + y."""
        return self.activation_post_process(cresset.ops.quantized.add(x, y, self.scale, self.zero_point))

    def add_scalar(self, x, y: float):
        """x + a number."""
        return cresset.ops.quantized.add_scalar(x, y)

    def mul(self, x, y):
        """x * y."""
        return self.activation_post_process(cresset.ops.quantized.mul(x, y, self.scale, self.zero_point))

    def mul_scalar(self, x, y: float):
        """x * a number, which scales the scale."""
        return cresset.ops.quantized.mul_scalar(x, y)

    def cat(self, x: list[cresset.Tensor], dim: int = 0):
        """Tensors joined along a dimension."""
        return self.activation_post_process(cresset.ops.quantized.cat(x, dim, self.scale, self.zero_point))

    def add_relu(self, x, y):
        """relu(x + y)."""
        return self.activation_post_process(cresset.ops.quantized.add_relu(x, y, self.scale, self.zero_point))

    def matmul(self, x, y):
        """x @ y."""
        return self.activation_post_process(cresset.ops.quantized.matmul(x, y, self.scale, self.zero_point))

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """Of an observed FloatFunctional."""
        new = cls()
        scale, zero_point = mod.activation_post_process.calculate_qparams()
        new.scale, new.zero_point = float(scale), int(zero_point)
        return new

    def extra_repr(self):
        return f"scale={self.scale}, zero_point={self.zero_point}"

    def _get_name(self):
        return "QFunctional"

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[prefix + "scale"] = cresset.tensor(self.scale)
        destination[prefix + "zero_point"] = cresset.tensor(self.zero_point)

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, strict, missing_keys, *rest):
        for name, kind in (("scale", float), ("zero_point", int)):
            if prefix + name in state_dict:
                setattr(self, name, kind(state_dict.pop(prefix + name)))
            else:
                missing_keys.append(prefix + name)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, False, missing_keys, *rest)
