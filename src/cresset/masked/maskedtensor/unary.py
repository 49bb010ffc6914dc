"""Operators of one masked tensor, element by element: the mask stays."""

import cresset

from ...ops import aten_table
from .core import made_of, recorded, with_recorded

UNARY_NAMES = [
    "abs", "absolute", "acos", "arccos", "acosh", "arccosh", "angle", "asin", "arcsin", "asinh", "arcsinh", "atan",
    "arctan", "atanh", "arctanh", "bitwise_not", "ceil", "clamp", "clip", "conj_physical", "cos", "cosh", "deg2rad",
    "digamma", "erf", "erfc", "erfinv", "exp", "exp2", "expm1", "fix", "floor", "frac", "lgamma", "log", "log10",
    "log1p", "log2", "logit", "i0", "isnan", "nan_to_num", "neg", "negative", "positive", "pow", "rad2deg",
    "reciprocal", "round", "rsqrt", "sigmoid", "sign", "sgn", "signbit", "sin", "sinc", "sinh", "sqrt", "square",
    "tan", "tanh", "trunc",
]  # fmt: skip
INPLACE_UNARY_NAMES = [f"{n}_" for n in UNARY_NAMES if n not in {"angle", "positive", "signbit", "isnan"}]

NATIVE_UNARY_FNS = [aten_table.packet(name) for name in UNARY_NAMES]
NATIVE_INPLACE_UNARY_FNS = [aten_table.packet(name) for name in INPLACE_UNARY_NAMES]


def elementwise(func, input, *args, **kwargs):
    """`func` of the elements."""
    _check("unary", args, kwargs)
    data = input._masked_data
    return made_of(with_recorded(data, func(recorded(data), *args, **kwargs)), input._masked_mask.clone())


def in_place(func, input, *args, **kwargs):
    """`func`, which writes to its first argument, of the elements."""
    _check("unary", args, kwargs)
    func(recorded(input._masked_data), *args, **kwargs)
    return input


def _check(kind, args, kwargs):
    if any(cresset.is_tensor(value) for value in (*args, *kwargs.values())):
        raise TypeError(f"MaskedTensor {kind} ops do not support additional Tensor arguments")
