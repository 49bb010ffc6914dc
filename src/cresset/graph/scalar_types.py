"""The numbers that TorchScript and exported programs have for dtypes, layouts and memory formats."""

import cresset

NAMES = {
    0: "uint8", 1: "int8", 2: "int16", 3: "int32", 4: "int64", 5: "float16", 6: "float32", 7: "float64", 8: "complex32",
    9: "complex64", 10: "complex128",
    11: "bool", 12: "qint8", 13: "quint8", 14: "qint32", 15: "bfloat16", 16: "quint4x2", 17: "quint2x4",
    18: "bits1x8", 19: "bits2x4", 20: "bits4x2", 21: "bits8", 22: "bits16", 23: "float8_e5m2", 24: "float8_e4m3fn",
    25: "float8_e5m2fnuz", 26: "float8_e4m3fnuz", 27: "uint16", 28: "uint32", 29: "uint64",
    **{29 + bits: f"uint{bits}" for bits in range(1, 8)}, **{36 + bits: f"int{bits}" for bits in range(1, 8)},
    44: "float8_e8m0fnu", 45: "float4_e2m1fn_x2",
}  # fmt: skip
NUMBERS = {name: number for number, name in NAMES.items()}
LAYOUTS = {
    "torch.strided": 0,
    "torch.sparse_coo": 1,
    "torch.sparse_csr": 2,
    "torch._mkldnn": 3,
    "torch.sparse_csc": 4,
    "torch.sparse_bsr": 5,
    "torch.sparse_bsc": 6,
    "torch.jagged": 7,
}
MEMORY_FORMATS = {
    "torch.contiguous_format": 0,
    "torch.preserve_format": 1,
    "torch.channels_last": 2,
    "torch.channels_last_3d": 3,
}


def number_of(value):
    """The number of a dtype, layout or memory format; other values as they are."""
    if isinstance(value, cresset.dtype):
        return NUMBERS[str(value).removeprefix("torch.")]
    if isinstance(value, cresset.layout):
        return LAYOUTS[str(value)]
    if isinstance(value, cresset.memory_format):
        return MEMORY_FORMATS[str(value)]
    return value
