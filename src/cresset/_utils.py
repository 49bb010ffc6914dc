"""PyTorch's torch._utils, as far as files and other packages name it: how tensors are rebuilt from a storage, and
flattened into one.
"""

import importlib
import importlib.util
import sys
from collections import OrderedDict

from . import _native
from .storage import HELD_AS, TypedStorage

__all__ = []


def _rebuild_tensor(storage, storage_offset, size, stride):
    """A tensor of the dtype of a typed storage, on its memory."""
    new = _native.make_tensor([], storage.dtype, storage.device)
    return _native.set_storage(new, storage._untyped_storage._bytes, storage_offset, tuple(size), tuple(stride))


def _rebuild_tensor_v2(storage, storage_offset, size, stride, requires_grad, backward_hooks, metadata=None):
    """The inverse of pickling a tensor."""
    tensor = _rebuild_tensor(storage, storage_offset, size, stride)
    for change in ("conj", "neg"):  # PyTorch's lazy forms of these; here they are done at once
        if metadata and metadata.get(change):
            tensor = getattr(tensor, change)()
    if requires_grad:
        tensor.requires_grad_()
    return tensor


def _rebuild_tensor_v3(storage, storage_offset, size, stride, requires_grad, backward_hooks, dtype, metadata=None):
    """The same for the dtypes that have no storage class of their own: the storage is bytes."""
    untyped = getattr(storage, "_untyped_storage", storage)
    typed = TypedStorage(wrap_storage=untyped, dtype=dtype)
    return _rebuild_tensor_v2(typed, storage_offset, size, stride, requires_grad, backward_hooks, metadata)


def _rebuild_meta_tensor_no_storage(dtype, size, stride, requires_grad):
    """The inverse of pickling a tensor without data."""
    import cresset

    return cresset.empty_strided(tuple(size), tuple(stride), dtype=dtype, device="meta").requires_grad_(requires_grad)


def _rebuild_sparse_tensor(layout, data):
    """The inverse of pickling a sparse tensor; what `data` says is checked."""
    if layout == _native.sparse_coo:
        from .sparse.coo import rebuild_coo

        indices, values, size, *coalesced = data
        return rebuild_coo(indices, values, tuple(size), bool(coalesced and coalesced[0]))
    from .sparse.compressed import rebuild_compressed

    first, second, values, size = data
    return rebuild_compressed(first, second, values, tuple(size), layout)


def _rebuild_qtensor(storage, storage_offset, size, stride, quantizer_params, requires_grad, backward_hooks):
    """The inverse of pickling a quantized tensor; what the parts say is checked."""
    from .tensors.quantized import rebuild

    held = TypedStorage(wrap_storage=storage._untyped_storage, dtype=HELD_AS.get(storage.dtype, storage.dtype))
    return rebuild(held, storage.dtype, storage_offset, size, stride, quantizer_params)


def _rebuild_nested_tensor(packed, *parts):
    """The inverse of pickling a nested tensor; what the parts say is checked. PyTorch writes those of the strided
    layout as sizes, strides and offsets in a buffer.
    """
    from .nested.tensor import from_buffer, rebuild_nested

    return (from_buffer if len(parts) == 3 else rebuild_nested)(packed, *parts)


def _rebuild_parameter(data, requires_grad, backward_hooks):
    """The inverse of pickling a Parameter."""
    from .nn.parameter import Parameter  # upward: a Parameter is a tensor that nn knows

    return Parameter(data, requires_grad)


def _rebuild_parameter_with_state(data, requires_grad, backward_hooks, state):
    """The same for a Parameter with attributes of its own."""
    return _set_obj_state(_rebuild_parameter(data, requires_grad, backward_hooks), state)


def _rebuild_from_type_v2(func, new_type, args, state):
    """The inverse of pickling an instance of a subclass of Tensor, or (new_type None or Tensor) a tensor with
    attributes of its own.
    """
    tensor = func(*args)
    new_type = new_type or type(tensor)
    if type(tensor) is not new_type:
        tensor = tensor.as_subclass(new_type)
    if hasattr(new_type, "__setstate__"):
        tensor.__setstate__(state)
        return tensor
    return _set_obj_state(tensor, state)


def _rebuild_wrapper_subclass(cls, dtype, size, stride, storage_offset, layout, device, requires_grad):
    """The inverse of pickling a tensor without memory, whose class answers for it."""
    return _native.Tensor._make_wrapper_subclass(
        cls, size, strides=stride, dtype=dtype, storage_offset=storage_offset, layout=layout, device=device,
        requires_grad=requires_grad,
    )  # fmt: skip


def _get_obj_state(obj):
    """The attributes of an object, for pickling: a dictionary, or (dictionary, that of its slots); what its class has
    in a __getstate__ of its own goes first.
    """
    own = getattr(type(obj), "__getstate__", None)
    if own is not None and own is not getattr(object, "__getstate__", None):
        return obj.__getstate__()
    attributes = {name: value for name, value in obj.__dict__.items() if name != "_post_accumulate_hooks"}
    slots = _get_slots(obj)
    return (attributes, slots) if slots else attributes


def _get_slots(obj):
    """The values of the slots that the classes of an object name."""
    import copyreg

    return {name: getattr(obj, name) for name in copyreg._slotnames(type(obj)) if hasattr(obj, name)}


def _set_obj_state(obj, state):
    """Give an object the attributes that `_get_obj_state` read."""
    attributes, slots = state if isinstance(state, tuple) else (state, None)
    obj.__dict__.update(attributes or {})
    for name, value in (slots or {}).items():
        setattr(obj, name, value)
    return obj


def reduce_tensor(tensor):
    """What pickles a plain tensor: (function, arguments)."""
    if tensor.device.type == "meta":
        about = tensor.dtype, tuple(tensor.shape), tensor.stride(), tensor.requires_grad
        return _rebuild_meta_tensor_no_storage, about
    return reduce_on(tensor, tensor.storage())


def reduce_on(tensor, storage):
    """The same for a tensor whose memory is said to be a typed storage."""
    size, stride = tuple(tensor.shape), tensor.stride()
    rest = (tensor.storage_offset(), size, stride, tensor.requires_grad, OrderedDict())
    if storage._pickle_storage_type() is None:
        return _rebuild_tensor_v3, (storage._untyped_storage, *rest, tensor.dtype)
    return _rebuild_tensor_v2, (storage, *rest)


def _flatten_dense_tensors(tensors):
    """One flat tensor with the elements of all."""
    import cresset

    return cresset.cat([tensor.contiguous().view(-1) for tensor in tensors]) if len(tensors) else cresset.tensor([])


def _unflatten_dense_tensors(flat, tensors):
    """The inverse of `_flatten_dense_tensors`: views of `flat` in the shapes of `tensors`."""
    views, at = [], 0
    for tensor in tensors:
        views.append(flat.narrow(0, at, tensor.numel()).view_as(tensor))
        at += tensor.numel()
    return tuple(views)


def _take_tensors(tensors, size_limit):
    """Groups of tensors of one dtype and device that stay below `size_limit` bytes each."""
    groups = {}
    for tensor in tensors:
        key, bytes_needed = (tensor.dtype, tensor.device), tensor.numel() * tensor.element_size()
        group, size = groups.get(key, ([], 0))
        if group and size + bytes_needed > size_limit:
            yield group
            group, size = [], 0
        groups[key] = ([*group, tensor], size + bytes_needed)
    for group, _size in groups.values():
        if group:
            yield group


class ExceptionWrapper:
    """An exception on its way to another thread or process; `reraise` raises it there with the traceback as text.

    >>> try:
    ...     raise ValueError("bad")
    ... except ValueError:
    ...     kept = cresset._utils.ExceptionWrapper(where="in a worker")
    >>> kept.exc_type.__name__
    'ValueError'
    """

    def __init__(self, exc_info=None, where="in background"):
        import sys
        import traceback

        exc_info = sys.exc_info() if exc_info is None else exc_info
        self.exc_type, self.where = exc_info[0], where
        self.exc_msg = "".join(traceback.format_exception(*exc_info))

    def reraise(self):
        """Raise the exception again."""
        message = f"Caught {self.exc_type.__name__} {self.where}.\nOriginal {self.exc_msg}"
        if self.exc_type is KeyError:
            raise KeyError(message)
        try:
            exception = self.exc_type(message)
        except Exception:
            raise RuntimeError(message) from None
        raise exception


def _element_size(dtype):
    """Bytes of one element."""
    return dtype.itemsize


def _get_available_device_type():
    """The type of the accelerator of this machine; None if there is none."""
    from . import accelerator

    found = accelerator.current_accelerator()
    return None if found is None else found.type


def _get_device_module(device_type):
    """The module of a device type."""
    from . import accelerator

    return accelerator.get_device_module(device_type)


def _get_device_index(device, optional=False, allow_cpu=False):
    """The number of a device given as a number, a name or a device; -1 for the CPU, if that is allowed."""
    if isinstance(device, str):
        device = _native.device(device)
    if isinstance(device, _native.device):
        if device.type == "cpu":
            if not allow_cpu:
                raise ValueError(f"Expected a non cpu device, but got: {device}")
            return -1
        device = device.index
    if device is None:
        if not optional:
            raise ValueError("Expected a torch.device with a specified index or an integer, but got: None")
        from . import accelerator

        return accelerator.current_device_index()
    return device


def is_compiling():
    """Whether a compiler is reading the program, rather than Python running it."""
    return False


def try_import(module_name):
    """A module by its name; None where there is none."""
    if module_name in sys.modules:
        return sys.modules[module_name]
    return importlib.import_module(module_name) if importlib.util.find_spec(module_name) is not None else None


def render_call(fn, args, kwargs):
    """A call as text, tensors by their sizes.

    >>> from cresset._utils import render_call
    >>> render_call(cresset.sum, [cresset.ones(100)], {"dim": 0})
    'torch.sum(tensor([...], size=(100,)), dim=0)'
    """

    def shown(value):
        if isinstance(value, _native.Tensor):
            return (
                f"tensor([...], size={tuple(value.shape)}"
                + ("" if value.dtype is _native.float32 else f", dtype={value.dtype}")
                + ")"
            )
        return repr(value)

    from .overrides import resolve_name

    words = [*map(shown, args), *(f"{name}={shown(value)}" for name, value in kwargs.items())]
    return f"{resolve_name(fn) or fn}({', '.join(words)})"
