"""finfo and iinfo: the limits of dtypes."""

import copyreg

from .. import _native

# name: (bits, eps, max, smallest normal, smallest subnormal, resolution)
_FLOATS = {
    "float16": (16, 2.0**-10, 65504.0, 2.0**-14, 2.0**-24, 1e-3),
    "bfloat16": (16, 2.0**-7, (2 - 2.0**-7) * 2.0**127, 2.0**-126, 2.0**-133, 1e-2),
    "float32": (32, 2.0**-23, (2 - 2.0**-23) * 2.0**127, 2.0**-126, 2.0**-149, 1e-6),
    "float64": (64, 2.0**-52, (2 - 2.0**-52) * 2.0**1023, 2.0**-1022, 5e-324, 1e-15),
    "float8_e4m3fn": (8, 2.0**-3, 448.0, 2.0**-6, 2.0**-9, 1.0),
    "float8_e5m2": (8, 2.0**-2, 57344.0, 2.0**-14, 2.0**-16, 1.0),
    "float8_e4m3fnuz": (8, 2.0**-3, 240.0, 2.0**-7, 2.0**-10, 1.0),
    "float8_e5m2fnuz": (8, 2.0**-2, 57344.0, 2.0**-15, 2.0**-17, 1.0),
    "float8_e8m0fnu": (8, 1.0, 2.0**127, 2.0**-127, 2.0**-127, 1.0),
}
_INTEGERS = {"uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64"}
_COMPONENT = {"complex32": "float16", "complex64": "float32", "complex128": "float64"}


def _name(dtype):
    return str(dtype).removeprefix("torch.")


def _named_by_python(type):
    return _native.as_dtype(type) if type in (float, int, bool, complex) else type


def named(name):
    """The dtype, layout or memory format of that name: how they are pickled."""
    return getattr(_native, name)


def rebuild_size(sizes):
    return _native.Size(sizes)


def rebuild_device(text):
    return _native.device(text)


for _kind in (_native.dtype, _native.layout, _native.memory_format):
    copyreg.pickle(_kind, lambda value: (named, (_name(value),)))
copyreg.pickle(_native.Size, lambda size: (rebuild_size, (tuple(size),)))
copyreg.pickle(_native.device, lambda device: (rebuild_device, (str(device),)))


class finfo:
    """The limits of a floating-point dtype (of the components, for a complex one).

    >>> cresset.finfo(cresset.float16).max
    65504.0
    """

    __slots__ = ("bits", "eps", "max", "min", "tiny", "smallest_normal", "smallest_subnormal", "resolution", "dtype")

    def __init__(self, type=None):
        dtype = _native.get_default_dtype() if type is None else _named_by_python(type)
        name = _COMPONENT.get(_name(dtype), _name(dtype))
        if name not in _FLOATS:
            raise TypeError(
                "torch.finfo() requires a floating point input type. Use torch.iinfo to handle "
                f"'{type.__class__.__name__}'"
            )
        self.bits, self.eps, self.max, self.smallest_normal, self.smallest_subnormal, self.resolution = _FLOATS[name]
        self.min, self.tiny, self.dtype = -self.max, self.smallest_normal, name
        if name == "float8_e8m0fnu":  # has no sign
            self.min = self.smallest_normal

    def __repr__(self):
        return (
            f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, eps={self.eps:g}, "
            f"smallest_normal={self.smallest_normal:g}, "
            f"tiny={self.tiny:g}, dtype={self.dtype})"
        )

    def __eq__(self, other):
        return isinstance(other, finfo) and self.dtype == other.dtype

    def __hash__(self):
        return hash(self.dtype)


class iinfo:
    """The limits of an integer dtype.

    >>> cresset.iinfo(cresset.int8).max
    127
    """

    __slots__ = ("bits", "max", "min", "dtype")

    def __init__(self, type):
        type = _named_by_python(type)
        if not isinstance(type, _native.dtype) or type.is_floating_point or type.is_complex:
            raise TypeError(f"torch.iinfo() requires an integer input type. Use torch.finfo to handle '{_name(type)}'")
        if type == _native.bool:
            raise TypeError("torch.bool is not supported by torch.iinfo")
        if _name(type) not in _INTEGERS and not _name(type).startswith("q"):
            raise TypeError(f"torch.iinfo() requires an integer input type; {type} has no arithmetic")
        self.bits, self.dtype = 8 * type.itemsize, _name(type)
        is_signed = self.dtype.startswith("qint") if self.dtype.startswith("q") else type.is_signed
        self.min = -(2 ** (self.bits - 1)) if is_signed else 0
        self.max = 2 ** (self.bits - is_signed) - 1

    def __repr__(self):
        return f"iinfo(min={self.min:g}, max={self.max:g}, dtype={self.dtype})"

    def __eq__(self, other):
        return isinstance(other, iinfo) and self.dtype == other.dtype

    def __hash__(self):
        return hash(self.dtype)
