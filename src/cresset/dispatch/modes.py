"""Modes that see every operator of a block, and what handlers of __torch_dispatch__ share."""

import contextlib
import inspect

from .. import _native
from .._native import Tensor
from ..ops import aten_table
from ..ops.namespaces import OpOverload
from ..pytree import tree_map_only
from . import handling


class TorchDispatchMode:
    """A context in which `__torch_dispatch__(func, types, args, kwargs)` of the mode sees every operator, below
    autograd. `func` is an overload of torch.ops; inside the handler the mode is off.

    >>> from cresset.utils._python_dispatch import TorchDispatchMode
    >>> class Log(TorchDispatchMode):
    ...     def __torch_dispatch__(self, func, types, args=(), kwargs=None):
    ...         print(func)
    ...         return func(*args, **(kwargs or {}))
    >>> with Log():
    ...     _ = cresset.ones(2) + 1
    aten.ones.default
    aten.add.Tensor
    """

    def __init__(self, _dispatch_key=None):
        if _dispatch_key is not None:
            raise NotImplementedError("TorchDispatchMode: there are no dispatch keys here for a mode to stand before")

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        raise NotImplementedError(f"{self.__class__.__name__} has no __torch_dispatch__")

    def __enter__(self):
        if isinstance(inspect.getattr_static(self, "__torch_dispatch__"), classmethod):
            raise RuntimeError(
                f"{type(self).__name__}: __torch_dispatch__ of a mode as a classmethod is not supported, please make "
                "it a plain method"
            )
        handling.push(self)
        return self

    def __exit__(self, *_):
        handling.pop()

    @classmethod
    def push(cls, *args, **kwargs):
        """The older way to write `with Mode():`."""
        return cls(*args, **kwargs)

    @classmethod
    def is_infra_mode(cls):
        """Whether PyTorch's own machinery uses the mode: never here."""
        return False


class BaseTorchDispatchMode(TorchDispatchMode):
    """A mode that changes nothing."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


def _get_current_dispatch_mode():
    """The innermost mode; None outside of all."""
    return handling.stack()[-1] if handling.stack() else None


def _get_current_dispatch_mode_stack():
    """All modes, the innermost last."""
    return list(handling.stack())


def is_in_torch_dispatch_mode(include_infra_modes=True):
    """Whether a mode is on."""
    return any(include_infra_modes or not mode.is_infra_mode() for mode in handling.stack())


def is_in_any_mode_without_ignore_compile_internals():
    """Whether a mode is on."""
    return bool(handling.stack())


def _push_mode(mode):
    handling.push(mode)


def _pop_mode(k=None):
    return handling.pop()


@contextlib.contextmanager
def _pop_mode_temporarily(k=None):
    mode = handling.pop()
    try:
        yield mode
    finally:
        handling.push(mode)


@contextlib.contextmanager
def _disable_current_modes():
    """A block that no mode sees; gives the modes that were on."""
    with handling.without_modes() as modes:
        yield list(modes)


class no_dispatch:
    """A block in which no class of tensors is asked; a subclass with memory of its own counts as a plain tensor."""

    def __enter__(self):
        self.before = _native.set_dispatch_disabled(True)

    def __exit__(self, *_):
        _native.set_dispatch_disabled(self.before)


def return_and_correct_aliasing(func, args, kwargs, out):
    """What a handler of __torch_dispatch__ returns, so that the operator's schema holds: an operator that writes to
    arguments gives these arguments back, not new objects.
    """
    if not isinstance(func, OpOverload):
        raise AssertionError(f"return_and_correct_aliasing: expected an OpOverload, got {type(func)}")
    schema = func._schema
    given = dict(zip((argument.name for argument in schema.arguments), args, strict=False)) | (kwargs or {})
    written = [given[argument.name] for argument in schema.arguments if argument.is_written and argument.name in given]
    if not written or not any(result.is_written for result in schema.returns):
        return out
    if len(schema.returns) == 1:
        return written[0]
    results, left = [], list(written)
    for result, value in zip(schema.returns, out, strict=True):
        results.append(left.pop(0) if result.is_written else value)
    return type(out)(results) if isinstance(out, (list, tuple)) else out


def transform_subclass(t, callback, outer_size=None, outer_stride=None):
    """A tensor of a subclass, made of what `callback(name, inner tensor)` gives for each of its inner tensors."""
    outer_size = t.size() if outer_size is None else outer_size
    outer_stride = t.stride() if outer_stride is None else outer_stride
    names, context = t.__tensor_flatten__()
    inner = {name: callback(name, getattr(t, name)) for name in names}
    made = type(t).__tensor_unflatten__(inner, context, outer_size, outer_stride)
    if tuple(made.shape) != tuple(outer_size):
        raise AssertionError(
            f"Expected return value from {type(t)}__tensor_unflatten__() to have shape equal to {tuple(outer_size)}, "
            f"but got: {tuple(made.shape)}"
        )
    return made


def unwrapped(cls, unwrap, args, kwargs):
    """(args, kwargs) with the tensors of a class replaced by what they wrap."""
    return tree_map_only(cls, unwrap, args), tree_map_only(cls, unwrap, kwargs or {})


def make_wrapper_subclass(
    cls,
    size,
    strides=None,
    storage_offset=None,
    memory_format=None,
    dtype=None,
    layout=None,
    device=None,
    pin_memory=False,
    requires_grad=False,
    dispatch_sizes_strides_policy=None,
    dispatch_device=False,
    dispatch_layout=False,
    _extra_dispatch_keys=None,
    storage_size=None,
):
    """A tensor of a class with __torch_dispatch__ that has a shape, strides, a dtype and a device, and no memory.

    >>> class Labeled(cresset.Tensor):
    ...     @staticmethod
    ...     def __new__(cls, inner, label):
    ...         self = cresset.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)
    ...         self.inner, self.label = inner, label
    ...         return self
    ...     @classmethod
    ...     def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
    ...         bare = [a.inner if isinstance(a, Labeled) else a for a in args]
    ...         return Labeled(func(*bare, **(kwargs or {})), str(func))
    ...     def __repr__(self):
    ...         return f"Labeled({self.inner.tolist()}, {self.label})"
    >>> Labeled(cresset.ones(2), "start") * 3
    Labeled([3.0, 3.0], aten.mul.Tensor)
    """
    import cresset

    if not isinstance(cls, type) or not issubclass(cls, Tensor):
        raise TypeError(f"cls must be a type (got {type(cls).__name__})")
    if cls.__torch_dispatch__ is Tensor.__torch_dispatch__:
        raise TypeError(
            f"{cls.__name__} must define __torch_dispatch__: a tensor without memory has to be answered for"
        )
    if dispatch_sizes_strides_policy not in (None, "sizes", "strides"):
        raise RuntimeError(f"Unknown dispatch_sizes_strides_policy: {dispatch_sizes_strides_policy}")
    if dispatch_device or dispatch_layout:
        raise NotImplementedError(
            "_make_wrapper_subclass: a wrapper's device and layout are those it was made with; its class is not asked "
            "for them (dispatch_device, dispatch_layout)"
        )
    if dispatch_sizes_strides_policy is not None:
        cls._layout_policy = dispatch_sizes_strides_policy
        _native.set_layout_speaker(_said_by_class)
    if layout not in (None, cresset.strided):
        raise NotImplementedError(f"_make_wrapper_subclass: a wrapper is strided, not {layout}; leave layout out")
    if pin_memory:
        raise RuntimeError("_make_wrapper_subclass: pin_memory=True, but the tensor has no memory")
    made = _native.make_wrapper(
        cls,
        tuple(size),
        tuple(strides) if strides is not None else _strides_for(size, memory_format),
        int(storage_offset or 0),
        cresset.get_default_dtype() if dtype is None else dtype,
        cresset.get_default_device() if device is None else device,
    )
    if requires_grad:
        made.requires_grad_()
    return made


def _said_by_class(tensor, which):
    """What the class of a wrapper says is its "size" or "stride"; NotImplemented where it is not to be asked, or
    declines: then they are those that the tensor was made with.
    """
    kind = type(tensor)
    policy = getattr(kind, "_layout_policy", None)
    if policy is None or (which == "size" and policy != "sizes"):
        return NotImplemented
    found = kind.__torch_dispatch__(aten_table.packet(f"sym_{which}").default, (kind,), (tensor,), {})
    if found is NotImplemented:
        return NotImplemented
    return _native.Size(found) if which == "size" else tuple(found)


def _strides_for(size, memory_format):
    if memory_format is None:
        return None
    import cresset

    return cresset.empty(tuple(size), device="meta").to(memory_format=memory_format).stride()
