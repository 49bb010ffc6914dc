"""The numbers that stand for dtypes, layouts and memory formats in programs, as in PyTorch's files."""

from ..graph.scalar_types import LAYOUTS, MEMORY_FORMATS, NAMES

_DTYPES = NAMES
_LAYOUTS, _MEMORY_FORMATS = (
    {number: name.removeprefix("torch.") for name, number in numbers.items()} for numbers in (LAYOUTS, MEMORY_FORMATS)
)
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
