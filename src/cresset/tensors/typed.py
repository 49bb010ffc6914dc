"""Types of tensors by dtype, as they were before there were dtypes: `x.type()`, FloatTensor and the others, `x.new`."""

import builtins

from .. import _native
from ..storage import is_storage

Tensor = _native.Tensor

LEGACY = {
    "Float": "float32", "Double": "float64", "Half": "float16", "BFloat16": "bfloat16", "Long": "int64", "Int": "int32",
    "Short": "int16", "Char": "int8",
    "Byte": "uint8", "Bool": "bool", "ComplexFloat": "complex64", "ComplexDouble": "complex128",
}  # fmt: skip


def type(self, dtype=None, non_blocking=False, **kwargs):
    """The name of the tensor's type ('torch.FloatTensor'); with a dtype or such a name, the tensor converted to it."""
    if "async" in kwargs:  # what non_blocking was called before Python had the word
        non_blocking = kwargs.pop("async")
    if kwargs:
        raise TypeError(f"type() got an unexpected keyword argument {next(iter(kwargs))!r}")
    if dtype is None:
        name = str(self.dtype)[6:]
        word = next((word for word, plain in LEGACY.items() if plain == name), _capitalized(name))
        return f"torch.{'' if self.is_cpu else self.device.type + '.'}{word}Tensor"
    if isinstance(dtype, _native.dtype):
        return self.to(dtype, non_blocking)
    if dtype is Tensor or dtype == "torch.Tensor":  # the type of new tensors
        from .from_data import get_default_device

        on_device, dtype = get_default_device().type == "cuda", _native.get_default_dtype()
    elif isinstance(dtype, str):
        word = dtype.rpartition(".")[2].removesuffix("Tensor")
        if word not in LEGACY:
            raise ValueError(f"invalid type: '{dtype}'")
        on_device = ".cuda." in dtype
        dtype = getattr(_native, LEGACY[word])
    elif not isinstance(dtype, builtins.type):
        raise TypeError(f"type: dtype must be a type, str, or dtype object, got {dtype!r}")
    elif not isinstance(getattr(dtype, "dtype", None), _native.dtype):
        raise ValueError(f"invalid type: '{dtype.__name__}'")
    else:
        on_device, dtype = dtype.is_cuda, dtype.dtype
    if on_device == self.is_cuda:
        return self.to(dtype, non_blocking)
    return self.to("cuda" if on_device else "cpu", dtype, non_blocking)


def _capitalized(name):
    """What a dtype without an old name is called in the name of its type: UInt4, Float8_e5m2."""
    return "ComplexHalf" if name == "complex32" else name.capitalize().replace("Uint", "UInt")


def new(self, *args, **kwargs):
    """A tensor of the same dtype from sizes or data (the old way)."""
    return legacy_new(*args, **kwargs, dtype=self.dtype, home=self.device)


def legacy_new(*args, size=None, device=None, dtype=None, home=None):
    """What Tensor(...) and FloatTensor(...) are: a tensor from sizes, a tensor, a storage or a sequence, of the default
    dtype or of `dtype`, on the device that the class or tensor is of.
    """
    import cresset

    wanted, dtype = dtype, dtype or _native.get_default_dtype()
    given, device = device, device or home
    if given is not None and _native.device(given).type != _native.device(home or "cpu").type:
        raise RuntimeError(
            f"legacy constructor expects device type: {_native.device(home or 'cpu').type} but device type: "
            f"{_native.device(given).type} was passed"
        )
    if size is not None:
        args = (*args, _native.Size(size))
    if not args or all(isinstance(a, int) for a in args):
        return cresset.empty(args or (0,), device=device, dtype=dtype)
    if len(args) > 1:
        raise TypeError(
            "new() received an invalid combination of arguments: expected sizes, a tensor, a storage or a sequence, "
            f"got ({', '.join(a.__class__.__name__ for a in args)})"
        )
    (data,) = args
    if isinstance(data, _native.Size):
        return cresset.empty(data, device=device, dtype=dtype)
    if is_storage(data):
        return cresset.empty(0, device=device, dtype=dtype).set_(data)
    if isinstance(data, Tensor):
        if given is not None:
            raise RuntimeError(
                "Legacy tensor constructor of the form torch.Tensor(tensor, device=device) is not supported.  "
                "Use torch.tensor(...) or torch.as_tensor(...) instead."
            )
        if wanted and data.dtype != wanted:
            raise TypeError(f"expected {wanted} (got {data.dtype}); use .to()")
        before = _native.set_answering(0)  # the result is of the class that was called
        try:
            return data.as_strided(data.shape, data.stride())
        finally:
            _native.set_answering(before)
    if not hasattr(data, "__len__"):
        raise TypeError(f"new(): data must be a sequence (got {data.__class__.__name__})")
    from .from_data import made_of

    return made_of(data, dtype, device)


class tensortype(builtins.type):
    """The type of FloatTensor, LongTensor, ...: the old names of a tensor with a certain dtype."""

    def __new__(meta, name, bases, namespace):
        for base in bases:
            raise TypeError(f"type 'torch.{base.__name__}' is not an acceptable base type; Tensor is one")
        return super().__new__(meta, name, bases, namespace)

    def __call__(cls, *args, **kwargs):
        return legacy_new(*args, dtype=cls.dtype, **kwargs)

    def __instancecheck__(cls, instance):
        return isinstance(instance, Tensor) and instance.dtype == cls.dtype and instance.is_cpu


legacy_types: dict[str, builtins.type] = {
    word + "Tensor": tensortype(
        word + "Tensor",
        (),
        {
            "dtype": getattr(_native, name),
            "layout": _native.strided,
            "is_cuda": False,
            "is_xpu": False,
            "is_sparse": False,
            "__module__": "torch",
            "__doc__": f"A tensor of {name} on the CPU; an older name of `tensor(data, dtype={name})`.",
        },  # fmt: skip
    )
    for word, name in LEGACY.items()
    if not word.startswith("Complex")
}


def typename(obj):
    """The name of an object's type; of a tensor, that of its dtype ('torch.FloatTensor')."""
    if isinstance(obj, Tensor):
        return obj.type()
    kind = obj if isinstance(obj, builtins.type) else obj.__class__
    return kind.__name__ if kind.__module__ in (None, "builtins") else f"{kind.__module__}.{kind.__name__}"
