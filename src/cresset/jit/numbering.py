"""The numbers that stand for dtypes, layouts and memory formats in programs, as in PyTorch's files."""

_DTYPES = {
    0: "uint8", 1: "int8", 2: "int16", 3: "int32", 4: "int64", 5: "float16", 6: "float32", 7: "float64", 8: "complex32",
    9: "complex64", 10: "complex128", 11: "bool",
    12: "qint8", 13: "quint8", 14: "qint32", 15: "bfloat16", 16: "quint4x2", 17: "quint2x4", 23: "float8_e5m2",
    24: "float8_e4m3fn", 25: "float8_e5m2fnuz", 26: "float8_e4m3fnuz",
    27: "uint16", 28: "uint32", 29: "uint64",
}  # fmt: skip
_LAYOUTS = {
    0: "strided",
    1: "sparse_coo",
    2: "sparse_csr",
    4: "sparse_csc",
    5: "sparse_bsr",
    6: "sparse_bsc",
    7: "jagged",
}
_MEMORY_FORMATS = {0: "contiguous_format", 1: "preserve_format", 2: "channels_last", 3: "channels_last_3d"}
_QSCHEMES = {0: "per_tensor_affine", 1: "per_channel_affine", 2: "per_tensor_symmetric", 3: "per_channel_symmetric"}


def _converter(names, what):
    def convert(number):
        if number is None or not isinstance(number, int):
            return number
        import cresset

        found = getattr(cresset, names.get(number, ""), None)
        if found is None:
            raise RuntimeError(f"{number} is the number of no {what} known here")
        return found

    return convert


to_dtype = _converter(_DTYPES, "dtype")
to_layout = _converter(_LAYOUTS, "layout")
to_memory_format = _converter(_MEMORY_FORMATS, "memory format")
CONVERTERS = {
    "ScalarType": to_dtype,
    "Layout": to_layout,
    "MemoryFormat": to_memory_format,
    "QScheme": _converter(_QSCHEMES, "quantization scheme"),
}


def number_of(value):
    """The number that stands for a dtype, layout or memory format in a graph."""
    name = str(value).removeprefix("torch.")
    for names in (_DTYPES, _LAYOUTS, _MEMORY_FORMATS, _QSCHEMES):
        for number, known in names.items():
            if known == name:
                return number
    raise RuntimeError(f"{value} has no number in TorchScript")
