"""Tensors from data: tensor, as_tensor, asarray, from_numpy, frombuffer, from_dlpack; and the defaults for new
tensors."""

import os
import warnings

from .. import _native
from ..storage import TypedStorage, is_storage

Tensor = _native.Tensor


def tensor(data, *, dtype=None, device=None, requires_grad=False, pin_memory=False):
    """A tensor with a copy of `data`: numbers, nested lists, arrays.

    >>> cresset.tensor([[1.0, 2.0], [3.0, 4.0]])
    tensor([[1., 2.],
            [3., 4.]])
    """
    if _native.has_torch_function(()) and _mode_sees_data():
        return _by_mode(tensor, data, dtype=dtype, device=device, requires_grad=requires_grad, pin_memory=pin_memory)
    if isinstance(data, Tensor):
        warnings.warn(
            "To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() or "
            "sourceTensor.detach().clone().requires_grad_(True), "
            "rather than torch.tensor(sourceTensor).",
            stacklevel=2,
        )
        if hasattr(type(data), "_recorded"):  # sparse or nested: its parts are copied
            copied = data.detach().clone().to(dtype or data.dtype)
            return copied.requires_grad_() if requires_grad else copied
    made = made_of(data, dtype, device)
    if pin_memory:
        made = made.pin_memory()
    return made.requires_grad_() if requires_grad else made


def _mode_sees_data():
    """Whether the mode that watches is a program's: recorders take tensors made of data as they are."""
    return _native.function_modes()[-1]._sees_attributes


def _by_mode(function, data, **named):
    """The call as a TorchFunctionMode sees it: with the arguments that are not the defaults. The data are not asked."""
    from ..overrides import handle_torch_function  # upward: there is a mode

    defaults = function.__kwdefaults__ or {}
    given = {name: value for name, value in named.items() if value is not defaults.get(name)}
    return handle_torch_function(function, (), data, **given)


def from_numpy(ndarray):
    """A tensor that shares the memory of a NumPy array."""
    if not (hasattr(ndarray, "__array_interface__") and hasattr(ndarray, "__setitem__")):  # or one of NumPy's numbers
        raise TypeError(f"expected np.ndarray (got {type(ndarray).__name__})")
    if not ndarray.flags.writeable:
        warnings.warn(
            "The given NumPy array is not writable, and PyTorch does not support non-writable tensors. This means "
            "writing to this tensor will result in undefined behavior. "
            "You may want to copy the array to protect its data or make it writable before converting it to a tensor.",
            stacklevel=2,
        )
    if ndarray.dtype.byteorder == ">":
        raise ValueError(
            "given numpy array has byte order different from the native byte order. Conversion between byte orders is "
            "currently not supported."
        )
    return _native.from_buffer(ndarray)


def as_tensor(data, dtype=None, device=None):
    """`data` as a tensor, sharing memory where that is possible."""
    if _native.has_torch_function(()) and _mode_sees_data():
        return _by_mode(as_tensor, data, dtype=dtype, device=device)
    if isinstance(data, Tensor):
        return data.to(device=device, dtype=dtype)
    if hasattr(data, "__array_interface__") and hasattr(data, "flags"):
        shared = (
            _native.from_buffer(data)
            if data.dtype.byteorder != ">"
            else _native.make_tensor(data.tolist(), dtype, device)
        )
        return shared.to(device=device, dtype=dtype)
    return made_of(data, dtype, device)


def made_of(data, dtype, device):
    """A new tensor of numbers or nested sequences of them, or one on the memory of a storage."""
    if _native.is_dispatching() and not isinstance(data, Tensor) and not is_storage(data):
        from ..dispatch.handling import lift, without_modes  # upward: a mode sees tensors come into being

        with without_modes():
            made = _native.make_tensor(data, dtype, "cpu")
        made = lift(made)
        return made if device is None else made.to(device)
    if not is_storage(data):
        if hasattr(data, "__dlpack__") and not hasattr(data, "__array_interface__") and not isinstance(data, Tensor):
            return from_dlpack(data).to(device=device, dtype=dtype, copy=True)
        return _native.make_tensor(data, dtype, device)
    if isinstance(data, TypedStorage):
        dtype = dtype or _native.get_default_dtype()
        if data.dtype != dtype:
            raise RuntimeError(f"tensor: Expected a Storage of type {dtype} or an UntypedStorage, but got {data.dtype}")
        data = data.untyped()
    dtype = dtype or (_native.int64 if data.nbytes() else _native.get_default_dtype())  # as of a list of its bytes
    return _native.make_tensor([], dtype, data.device).set_(data).to(device=device)


def asarray(obj, *, dtype=None, device=None, copy=None, requires_grad=None):
    """`obj` as a tensor: a tensor, a storage, an array, a buffer, a DLPack capsule, a number or nested lists.

    Args:
        copy: whether the memory must be new (True) or `obj`'s (False); by default it is `obj`'s where it can be.
        requires_grad: by default that of `obj`; False: without its history.
    """
    if _native.has_torch_function(()) and _mode_sees_data():
        return _by_mode(asarray, obj, dtype=dtype, device=device, copy=copy, requires_grad=requires_grad)
    if isinstance(obj, Tensor):
        made = obj
    elif is_storage(obj):
        made = made_of(obj, getattr(obj, "dtype", dtype), None)
    elif hasattr(obj, "__array_interface__") and hasattr(obj, "__setitem__"):  # an array, not one of NumPy's numbers
        made = _native.from_buffer(obj)
        copy = True if copy is None and not made.ndim else copy  # a number, which PyTorch copies
    elif hasattr(obj, "__dlpack__") or type(obj).__name__ == "PyCapsule":
        made = from_dlpack(obj)
    elif isinstance(obj, (bytes, bytearray, memoryview)) or type(obj).__name__ == "array":
        made = frombuffer(obj, dtype=dtype or _native.get_default_dtype())
    else:
        if copy is False and hasattr(obj, "__array_interface__"):
            raise RuntimeError("can't alias NumPy scalars. Either remove copy=False or make an array of it")
        if copy is False:
            raise ValueError("can't alias arbitrary sequence.")
        return tensor(obj, dtype=dtype, device=device, requires_grad=bool(requires_grad))
    converted = made.to(device=device, dtype=dtype)
    if copy is False and converted is not made:
        if device is not None and made.device != converted.device:
            raise ValueError(f"can't alias tensor from device '{made.device}' to '{converted.device}'.")
        raise ValueError(f"can't alias tensor with dtype '{made.dtype}' into dtype '{dtype}'.")
    if copy and converted is made:
        converted = made.clone()
    if requires_grad is False and converted.requires_grad:
        converted = converted.detach()
    if requires_grad and not converted.requires_grad and (converted.is_floating_point() or converted.is_complex()):
        converted = converted.detach().requires_grad_()
    return converted


def from_file(
    filename, shared=None, size=0, *, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False
):
    """A 1-D tensor of `size` elements on the memory of a file.

    Args:
        shared: writes reach the file, which is made long enough; else they stay here.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     _ = file.write(bytes([1, 0, 2, 0]))
    ...     file.flush()
    ...     cresset.from_file(file.name, size=2, dtype=cresset.int16)
    tensor([1, 2], dtype=torch.int16)
    """
    from ..storage import UntypedStorage

    dtype = _native.get_default_dtype() if dtype is None else dtype
    if device is not None and _native.device(device).type != "cpu":
        raise RuntimeError(f"from_file: a file's memory is on the CPU, not on {device}")
    if layout not in (None, _native.strided):
        raise RuntimeError(f"from_file: expected the layout torch.strided, got {layout}")
    if pin_memory:
        raise RuntimeError("from_file: tensors constructed from a file cannot be pinned")
    if not isinstance(filename, (str, os.PathLike)):
        raise TypeError(f"from_file(): argument 'filename' (position 1) must be str, not {type(filename).__name__}")
    storage = UntypedStorage.from_file(os.fspath(filename), bool(shared), size * dtype.itemsize)
    made = _native.make_tensor([], dtype, None).set_(storage, 0, (size,), (1,))
    return made.requires_grad_() if requires_grad else made


def frombuffer(buffer, *, dtype, count=-1, offset=0, requires_grad=False):
    """A 1-D tensor on the memory of an object with the buffer protocol.

    >>> cresset.frombuffer(bytearray([1, 0, 2, 0]), dtype=cresset.int16)
    tensor([1, 2], dtype=torch.int16)
    """
    try:
        view = memoryview(buffer)
    except TypeError:
        raise ValueError(
            f"frombuffer: a {type(buffer).__name__} object does not implement Python buffer protocol."
        ) from None
    if view.readonly:
        warnings.warn(
            "The given buffer is not writable, and PyTorch does not support non-writable tensors. This means you can "
            "write to the underlying (supposedly non-writable) buffer "
            "using the tensor. You may want to copy the buffer to protect its data or make it writable before "
            "converting it to a tensor.",
            stacklevel=2,
        )
    dtype = _native.as_dtype(dtype)
    size = view.nbytes
    width = dtype.itemsize
    if size == 0 or count == 0:
        raise ValueError(f"both buffer length ({size}) and count ({count}) must not be 0")
    if offset < 0 or offset >= size:
        raise ValueError(
            f"offset ({offset} bytes) must be non-negative and no greater than buffer length ({size} bytes) minus 1"
        )
    if count > 0:
        if offset + count * width > size:
            raise ValueError(
                f"requested buffer length ({count} * {width} bytes) after offset ({offset} bytes) must not be greater "
                f"than actual buffer length ({size} bytes)"
            )
    elif (size - offset) % width:
        raise ValueError(
            f"buffer length ({size - offset} bytes) after offset ({offset} bytes) must be a multiple of element size "
            f"({width})"
        )
    n = count if count > 0 else (size - offset) // width
    made = _native.from_buffer(view.cast("B")[offset : offset + n * width]).view(dtype)
    return made.requires_grad_() if requires_grad else made


def from_dlpack(ext_tensor, *, device=None, copy=None):
    """A tensor on the memory of an object with __dlpack__ (or of a DLPack capsule).

    Args:
        device: where the tensor shall be; on another device than the object's memory it is a copy.
        copy: True for a copy in any case, False for none: an error where one would be needed.

    >>> x = cresset.zeros(2)
    >>> cresset.from_dlpack(x).add_(1) is x, x
    (False, tensor([1., 1.]))
    """
    if not hasattr(ext_tensor, "__dlpack__"):
        if device is not None or copy is not None:
            raise AssertionError(
                "from_dlpack: device and copy kwargs not supported when ext_tensor is already a DLPack capsule."
            )
        return _native.from_dlpack_capsule(ext_tensor)
    if device is not None and not isinstance(device, (str, _native.device)):
        raise AssertionError(f"from_dlpack: unsupported device type: {type(device)}")
    place = tuple(ext_tensor.__dlpack_device__()) if hasattr(ext_tensor, "__dlpack_device__") else (1, 0)
    if place[0] == 2:
        from ..cuda.streams import current_stream

        # 1 is the default stream; what the other library has to do there comes first.
        options = {"stream": current_stream(place[1]).cuda_stream or 1}
    else:
        options = {}
    try:
        capsule = ext_tensor.__dlpack__(**options, max_version=(1, 0))
    except TypeError:  # from before version 1
        capsule = ext_tensor.__dlpack__(**options)
    made = _native.from_dlpack_capsule(capsule)
    if device is not None:
        there = made.to(device)
        if copy is False and there.device != made.device:
            raise ValueError(
                f"from_dlpack: cannot move DLPack tensor from device {made.device} to {there.device} without copying. "
                "Set copy=None or copy=True."
            )
        made, copy = there, copy and there.device == made.device
    return made.clone() if copy else made


def to_dlpack(tensor):
    """A DLPack capsule on the memory of a tensor, for other libraries to read once."""
    return tensor.__dlpack__()


def set_default_device(device):
    """Where new tensors are made when no device is given; None for the CPU."""
    _native.set_default_device_raw(device)


def get_default_device():
    """Where new tensors are made when no device is given."""
    return _native.default_device()


def set_default_tensor_type(t):
    """Set the default dtype by an old tensor type, such as torch.DoubleTensor or its name."""
    from .typed import LEGACY

    warnings.warn(
        "torch.set_default_tensor_type() is deprecated as of PyTorch 2.1, please use torch.set_default_dtype() and "
        "torch.set_default_device() instead.",
        stacklevel=2,
    )
    word = (t if isinstance(t, str) else getattr(t, "__name__", "")).rpartition(".")[2].removesuffix("Tensor")
    if word not in LEGACY:
        raise TypeError(f"invalid type object: {t}; an old tensor type is wanted, such as torch.FloatTensor")
    on_device = ".cuda." in t if isinstance(t, str) else t.is_cuda
    if on_device:
        from ..cuda import is_available

        if not is_available():
            raise TypeError(
                f"type {t if isinstance(t, str) else 'torch.cuda.' + t.__name__} not available. Torch not compiled "
                "with CUDA enabled."
            )
    _native.set_default_dtype(getattr(_native, LEGACY[word]))
    if on_device:
        _native.set_default_device_raw(_native.device("cuda"))
    elif _native.default_device().type == "cuda":
        _native.set_default_device_raw(None)
