"""The numbers and words that `.pt2` files have for dtypes, layouts, memory formats, arithmetic and numbers that
JSON lacks."""

import math

DTYPES = {
    "uint8": 1, "int8": 2, "int16": 3, "int32": 4, "int64": 5, "float16": 6, "float32": 7, "float64": 8, "complex32": 9,
    "complex64": 10, "complex128": 11, "bool": 12,
    "bfloat16": 13, "uint16": 28, "float8_e4m3fn": 29, "float8_e5m2": 30, "float8_e4m3fnuz": 31, "float8_e5m2fnuz": 32,
}  # fmt: skip
DTYPE_NAMES = {number: name for name, number in DTYPES.items()}
STRIDED = 7
MEMORY_FORMATS = {
    "torch.contiguous_format": 1,
    "torch.channels_last": 2,
    "torch.channels_last_3d": 3,
    "torch.preserve_format": 4,
}
ARITHMETIC = (
    "add",
    "sub",
    "mul",
    "floordiv",
    "truediv",
    "mod",
    "pow",
    "neg",
    "pos",
    "eq",
    "ne",
    "lt",
    "le",
    "gt",
    "ge",
    "and_",
    "or_",
)
NOT_FINITE = {"Infinity": math.inf, "-Infinity": -math.inf, "NaN": math.nan}
