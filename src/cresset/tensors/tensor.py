"""Methods of Tensor that are written in Python: printing, copying, pickling, storage, subclasses.

Those for other libraries are in exchange.py, the types that came before dtypes in typed.py.

Those of autograd are in autograd/engine.py.
"""

import functools
import math
import sys
import warnings

from .. import _native
from . import underscored
from .exchange import (
    __array__,
    __array_namespace__,
    __array_wrap__,
    __dlpack__,
    __dlpack_device__,
    numpy,
)
from .typed import legacy_new, new, type

Tensor = _native.Tensor


# ---------------------------------------------------------------- printing


def __repr__(self, *, tensor_contents=None):
    from ..show.printing import tensor_repr

    with _without_overrides():
        return tensor_repr(self, tensor_contents=tensor_contents)


def __format__(self, spec):
    from ..show.printing import tensor_format

    return tensor_format(self, spec)


def _repr_html_(self):
    from ..show.notebook import repr_html

    return repr_html(self)


class _without_overrides:
    """Inside, neither tensor subclasses nor function modes see the calls."""

    def __enter__(self):
        self.before = _native.set_answering(0)

    def __exit__(self, *_):
        _native.set_answering(self.before)


# ---------------------------------------------------------------- Python protocols


def __iter__(self):
    if self.dim() == 0:
        raise TypeError("iteration over a 0-d tensor")
    return iter(self.unbind(0))


def __contains__(self, element):
    if isinstance(element, (Tensor, int, float, complex)):
        return bool((element == self).any())
    raise RuntimeError(f"Tensor.__contains__ only supports Tensor or scalar, but you passed in a {element.__class__}.")


def __reversed__(self):
    return self if self.dim() == 0 else self.flip(0)


def __complex__(self):
    if self.numel() != 1:
        raise ValueError(f"only one element tensors can be converted to Python scalars, this one has {self.numel()}")
    return complex(self.item())


# Names from Python 2, which programs still call. They are not shown: for a slip of the pen Python looks for the nearest
# name only where there are no more than 750.
_OF_PYTHON_2 = {"__div__": "__truediv__", "__idiv__": "__itruediv__", "__nonzero__": "__bool__", "__long__": "__int__"}


def __dir__(self):
    names = set(object.__dir__(self)).difference(_OF_PYTHON_2, ["volatile"])
    if self.device.type != "cuda":
        names.discard("__cuda_array_interface__")
    return sorted(names)


def tolist(self):
    """The elements as nested lists of Python numbers; of a 0-d tensor, the number.

    >>> cresset.tensor([[1, 2], [3, 4]]).tolist()
    [[1, 2], [3, 4]]
    """
    if _has_no_memory(self):
        raise RuntimeError(f".tolist() is not supported for tensor subclasses. This is a {self.__class__.__name__}")
    return _native.tolist(self)


# ---------------------------------------------------------------- attributes made of operators


def _matrix_only(self, name):
    if self.dim() == 1:
        raise RuntimeError(f"tensor.{name} is only supported on matrices or batches of matrices. Got 1-D tensor.")


def _T(self):
    if self.dim() not in (0, 2):
        warnings.warn(
            "The use of `x.T` on tensors of dimension other than 2 to reverse their shape is deprecated and it will "
            "throw an error in a future release. "
            "Consider `x.mT` to transpose batches of matrices or `x.permute(*torch.arange(x.ndim - 1, -1, -1))` to "
            "reverse the dimensions of a tensor.",
            stacklevel=2,
        )
    if self.dim() == 2:
        return _native.name_node(self.t(), "PermuteBackward0")
    return self.permute(tuple(range(self.dim() - 1, -1, -1)))


def _mT(self):
    _matrix_only(self, "mT")
    return self.transpose(-2, -1) if self.dim() else self


def _H(self):
    if self.dim() not in (0, 2):
        raise RuntimeError(f"tensor.H is only supported on matrices (2-D tensors). Got {self.dim()}-D tensor.")
    return self.mH


def _mH(self):
    _matrix_only(self, "mH")
    return self.mT.conj() if self.dim() else self.conj()


def _set_real(self, value):
    _native.operators()["real"](self).copy_(value)


def _set_imag(self, value):
    _native.operators()["imag"](self).copy_(value)


def _volatile(self):
    warnings.warn("volatile was removed (Variable.volatile is always False)", stacklevel=2)
    return False


# ---------------------------------------------------------------- copying, pickling, storage


def __deepcopy__(self, memo):
    if id(self) in memo:
        return memo[id(self)]
    if not self.is_leaf:
        raise RuntimeError(
            "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment.  "
            "If you were attempting to deepcopy a module, this may be because of a torch.nn.utils.weight_norm usage, "
            "see https://github.com/pytorch/pytorch/pull/103001"
        )
    import copy

    if _has_no_memory(self) or (self.device.type == "meta" and self.__class__.clone is not Tensor.clone):
        return _copied_by_its_class(self, memo)
    with _no_recording():
        with _without_overrides():  # a class is not asked about an instance that is not whole yet
            storage = copy.deepcopy(self.untyped_storage(), memo)
            new = _native.make_tensor([], self.dtype, None)
            if self.device.type == "meta":
                new = self.detach().clone()
            else:
                _native.set_storage(new, storage._bytes, self.storage_offset(), tuple(self.shape), self.stride())
            if self.__class__ is not Tensor:
                new = _native.make_subclass(self.__class__, new)
            new.requires_grad_(self.requires_grad)
        if self.grad is not None:
            grad = copy.deepcopy(self.grad, memo)
            with _without_overrides():
                new.grad = grad
        memo[id(self)] = new
        new.__dict__.update(
            copy.deepcopy({k: v for k, v in self.__dict__.items() if k != "_post_accumulate_hooks"}, memo)
        )
        _copy_slots(self, new, memo)
    return new


def _copy_slots(old, new, memo):
    if old.__class__ is Tensor:
        return
    import copy

    from .._utils import _get_slots

    for name, value in _get_slots(old).items():
        if not hasattr(new, name):
            setattr(new, name, copy.deepcopy(value, memo))


def _has_no_memory(self):
    """Whether a tensor's class answers for it and holds what it stands for."""
    return _native.is_dispatched(self) and self.device.type != "meta" and _native.storage_info(self)[2] == 0


def _copied_by_its_class(self, memo):
    import copy

    with _no_recording():
        new = self.clone()
    if new.__class__ is not self.__class__:
        raise RuntimeError(
            "The default implementation of __deepcopy__() for wrapper subclasses only works for subclass types that "
            "properly implement clone() and for which cloning returns another instance of the same subclass: that of "
            f"{self.__class__.__name__} gave {new.__class__.__name__}. Please correct it, or define __deepcopy__() "
            "yourself"
        )
    new.requires_grad_(self.requires_grad)
    memo[id(self)] = new
    if self.grad is not None:
        new.grad = copy.deepcopy(self.grad, memo)
    for name, value in self.__dict__.items():
        if name not in new.__dict__:
            new.__dict__[name] = copy.deepcopy(value, memo)
    _copy_slots(self, new, memo)
    return new


class _no_recording:
    def __enter__(self):
        self.before = _native.set_grad_mode(False)

    def __exit__(self, *_):
        _native.set_grad_mode(self.before)


def __reduce_ex__(self, protocol):
    from .._utils import _get_obj_state, _rebuild_from_type_v2, _rebuild_wrapper_subclass, reduce_tensor

    kind, state = self.__class__, _get_obj_state(self)
    if kind is Tensor and not state:
        return reduce_tensor(self)
    if _has_no_memory(self):
        arguments = (
            kind, self.dtype, tuple(self.shape), self.stride(), self.storage_offset(), self.layout, self.device,
            self.requires_grad,
        )  # fmt: skip
        return _rebuild_from_type_v2, (_rebuild_wrapper_subclass, kind, arguments, state)
    with _without_overrides():
        function, arguments = reduce_tensor(self)
    return _rebuild_from_type_v2, (
        function,
        None if kind is Tensor else kind,
        arguments,
        state,
    )  # pickle cannot name Tensor: it would look in torch


def set_(self, source=None, storage_offset=0, size=None, stride=None):
    """Use other memory from now on: that of a tensor or a storage, in the given sizes and strides; empty without
    `source`.

    >>> cresset.zeros(3).set_(cresset.arange(6.0).untyped_storage(), 1, (2, 2), (2, 1))
    tensor([[1., 2.],
            [3., 4.]])
    """
    if not (source is None or isinstance(source, Tensor) or hasattr(source, "untyped")):
        raise TypeError(f"set_: argument 'source' must be Tensor or a storage, not {source.__class__.__name__}")
    if self.requires_grad and self.is_leaf and _native.is_grad_enabled():
        raise RuntimeError("set_: a leaf Variable that requires grad is being used in an in-place operation.")
    if self.requires_grad and _native.is_grad_enabled():
        raise RuntimeError("set_: derivative for set_ is not implemented: the tensor is recorded; detach it first")
    if self.is_inference() and not _native.is_inference_mode_enabled():
        raise RuntimeError(
            "set_: Inplace update to inference tensor outside InferenceMode is not allowed. You can make a clone to "
            "get a normal tensor before doing inplace update."
        )
    if any(_native.get_tangents(x) for x in (self, source) if isinstance(x, Tensor)):
        raise NotImplementedError("set_: Trying to use forward AD with set_ that does not support it")
    version = None if self.is_inference() else self._version
    _native.bump_version(self)  # to those that share the memory up to now, one of them has changed
    _native.forget_accumulator(self)
    try:
        return _use_memory(self, source, storage_offset, size, stride)
    except Exception:
        if version is not None:
            _native.set_version(self, version)
        raise


def _use_memory(self, source, storage_offset, size, stride):
    share = _native.operators()["set_"]
    if source is None:
        return share(self, _native.make_tensor([], self.dtype, self.device))
    if isinstance(source, Tensor):
        if size is None:
            version = None if source.is_inference() else source._version
            share(self, source)
            if version is not None:
                _native.set_version(self, version)  # the source was not written to
            return self
        if source.dtype != self.dtype:
            raise RuntimeError(f"set_: the tensor is {self.dtype}, the source {source.dtype}")
        memory = _native.storage_bytes(source)
    else:
        if getattr(source, "dtype", self.dtype) != self.dtype:
            raise RuntimeError(f"set_: Expected a Storage of type {self.dtype}, but got one of {source.dtype}")
        memory = getattr(source, "_untyped_storage", source)._bytes
    if size is None:
        size = (memory.numel() // self.itemsize - storage_offset,)
    elif tuple(size) == tuple(self.shape):
        stride = self.stride() if stride is None else stride  # sizes that stay keep their strides
    else:
        memory = _grown(source, self.itemsize, storage_offset, size, stride)
    return _native.set_storage(self, memory, storage_offset, tuple(size), None if stride is None else tuple(stride))


def _grown(storage, itemsize, offset, size, stride):
    """The bytes of a storage, or of a tensor's, made more where a tensor of other sizes than before asks for them."""
    whole = storage.untyped_storage() if isinstance(storage, Tensor) else getattr(storage, "_untyped_storage", storage)
    if 0 not in size and offset >= 0:
        if stride is None:
            last = math.prod(size) - 1
        else:
            last = sum((length - 1) * step for length, step in zip(size, stride, strict=True))
        needed = (offset + last + 1) * itemsize
        if needed > whole.nbytes():
            whole.resize_(needed)
    return whole._bytes


def is_set_to(self, tensor):
    """Whether both are the same view of the same memory."""
    if not isinstance(tensor, Tensor):
        raise TypeError(f"is_set_to: argument 'tensor' must be Tensor, not {tensor.__class__.__name__}")
    same_view = (self.shape, self.stride(), self.storage_offset()) == (
        tensor.shape,
        tensor.stride(),
        tensor.storage_offset(),
    )
    mine, other = _native.storage_info(self), _native.storage_info(tensor)
    return same_view and (mine[0] == other[0] or (mine[2] > 0 and mine[1:3] == other[1:3]))


def untyped_storage(self):
    """The memory behind the tensor, as bytes."""
    from ..storage import PythonStorage, UntypedStorage

    try:
        return UntypedStorage._of(self)
    except RuntimeError:
        if not _native.is_dispatched(self):
            raise
        return PythonStorage.of(self)


def storage(self):
    """The memory behind the tensor, as elements of its dtype."""
    from ..storage import TypedStorage

    return TypedStorage._of(self)


def _typed_storage(self):
    return storage(self)


def element_size(self):
    """Bytes of one element.

    >>> cresset.zeros(1).element_size()
    4
    """
    return self.itemsize


def is_shared(self):
    """Whether the memory can be seen by other processes."""
    from .shared_memory import is_shared

    return is_shared(self)


def share_memory_(self):
    """Move the memory where other processes can see it. Tensors on the same storage move along."""
    if not self.is_shared() and self.device.type == "cpu":
        from .shared_memory import share

        share(self)
    return self


def _check_pins(device):
    """Memory is pinned for CUDA alone."""
    if device is not None and _native.device(device).type != "cuda":
        raise RuntimeError(f"pin_memory: memory can be pinned for 'cuda', not for {str(device)!r}")


def is_pinned(self, device=None):
    """Whether it lies in page-locked memory, which is so for CUDA alone."""
    return (device is None or _native.device(device).type == "cuda") and self._is_pinned()


def pin_memory(self, device=None):
    """A copy in page-locked memory, from which a GPU copies faster. Without one it is an error."""
    _check_pins(device)
    if self.is_pinned():
        return self
    from .. import cuda

    if not cuda.is_available():
        raise RuntimeError("Cannot access accelerator device when none is available.")
    return _native.cuda.pin(self)


def new_tensor(self, data, *, dtype=None, device=None, requires_grad=False, layout=None, pin_memory=False):
    """A tensor with a copy of `data`, or on a storage, of this tensor's dtype and device unless said otherwise."""
    from ..ops.check import only_strided
    from .from_data import made_of

    only_strided("new_tensor", layout)
    made = made_of(data, dtype or self.dtype, device or self.device)
    if pin_memory:
        made = made.pin_memory()
    return made.requires_grad_() if requires_grad else made


def _make_subclass(cls, data, require_grad=False):
    return _native.make_subclass(cls, data, require_grad)


def as_subclass(self, cls):
    """A view of the whole tensor that is an instance of a subclass."""
    return _native.as_subclass(cls, self)


def cuda(self, device=None, non_blocking=False, memory_format=None):
    """The tensor on a CUDA device."""
    device = "cuda" if device is None else device
    if _native.device(device).type != "cuda":
        raise RuntimeError(f"Invalid device, must be cuda device, got {device}")
    return self.to(device, non_blocking=non_blocking, memory_format=memory_format)


def xpu(self, device=None, non_blocking=False, memory_format=None):
    """The tensor on one of Intel's GPUs; there is no support for them, so that is an error."""
    raise AssertionError("Torch not compiled with XPU enabled")


def mtia(self, device=None, non_blocking=False, memory_format=None):
    """The tensor on one of Meta's accelerators; there is no support for them, so that is an error."""
    raise AssertionError("Torch not compiled with MTIA enabled")


def ipu(self, device=None, non_blocking=False, memory_format=None):
    """The tensor on one of Graphcore's processors; there is no support for them, so that is an error."""
    raise RuntimeError("ipu: there is no support for ipu devices")


def dim_order(self, ambiguity_check=False):
    """The dimensions from the outermost in memory to the innermost; one that is expanded stays where it is.

    Args:
        ambiguity_check: True for an error if another order would do as well; a list of memory formats for one unless
            exactly one of them holds.

    >>> cresset.ones(2, 3).t().dim_order()
    (1, 0)
    """
    if self.layout != _native.strided:
        raise AttributeError(f"dim_order: a tensor of layout {self.layout} has no order of its dimensions in memory")
    formats = ambiguity_check if isinstance(ambiguity_check, list) else []
    if not isinstance(ambiguity_check, (bool, list)) or not all(
        isinstance(one, _native.memory_format) for one in formats
    ):
        raise TypeError("The ambiguity_check argument must be a bool or a list of memory formats.")
    if ambiguity_check is not False:
        ambiguous = any(a == b for a, b in zip(self.stride(), self.stride()[1:], strict=False)) or 1 in self.shape
        if ambiguous and sum(self.is_contiguous(memory_format=one) for one in formats) != 1:
            raise RuntimeError(
                "The tensor does not have unique dim order, or cannot map to exact one of the given memory formats: "
                f"sizes {tuple(self.shape)}, strides {self.stride()}"
            )
    channels_last = self.dim() == 4 and self.is_contiguous(memory_format=_native.channels_last)
    if self.is_contiguous() != channels_last:  # where images fit both, the strides decide
        return (0, 2, 3, 1) if channels_last else tuple(range(self.dim()))

    def outside(a, b):
        """1 when dimension a lies outside of b in memory, -1 when inside, 0 when it cannot be told."""
        if self.stride(a) == 0 or self.stride(b) == 0:
            return 0
        return (self.stride(a) > self.stride(b)) - (self.stride(a) < self.stride(b)) or int(self.size(a) > self.size(b))

    order = []  # from the innermost
    for d in reversed(range(self.dim())):
        order.append(d)
        place = len(order) - 1
        for before in reversed(range(place)):
            comparison = outside(order[before], order[place])
            if comparison < 0:
                break
            if comparison > 0:
                order[before], order[place] = order[place], order[before]
                place = before
    return tuple(reversed(order))


def resize_as_(self, other, memory_format=None):
    """Give the tensor the size of `other`, in place; contiguous, in the memory format that is given, or like `other`
    (preserve_format).
    """
    if memory_format is not _native.preserve_format or self.layout is not _native.strided:
        return self.resize_(other.shape, memory_format=memory_format)
    suggested = _native.channels_last if other.dim() == 4 else _native.channels_last_3d
    last = other.dim() in (4, 5) and other.is_contiguous(memory_format=suggested) and not other.is_contiguous()
    return self.resize_(other.shape, memory_format=suggested if last else _native.contiguous_format)


def refuse_gradient(name, *tensors):
    if any(t.requires_grad for t in tensors):
        raise RuntimeError(f"Can't call {name}() on Variable that requires grad. Use var.detach().{name}() instead.")


def map_(self, other, callable):
    """Replace each element by callable(element, element of other)."""
    refuse_gradient("map_", self, other)
    flat = [
        callable(a, b)
        for a, b in zip(self.reshape(-1).tolist(), other.expand_as(self).reshape(-1).tolist(), strict=True)
    ]
    return self.copy_(_native.make_tensor(flat, self.dtype, None).reshape(self.shape))


def apply_(self, callable):
    """Replace each element by callable(element)."""
    refuse_gradient("apply_", self)
    flat = [callable(a) for a in self.reshape(-1).tolist()]
    return self.copy_(_native.make_tensor(flat, self.dtype, None).reshape(self.shape))


# ---------------------------------------------------------------- subclasses


def __torch_function__(cls, func, types, args=(), kwargs=None):
    """Run `func` and give its results the subclass `cls`. Subclasses override this to see every call on their
    instances.
    """
    if not all(issubclass(cls, t) for t in types):
        return NotImplemented
    before = _native.answering()
    _native.set_answering(min(before, 1))  # function modes alone
    try:
        # Asked again for a function that runs already, though nobody here asks now: it is PyTorch's, which sees
        # __torch_function__ and would ask for ever.
        if before < 2 and func in _RUNNING:
            func = _ours_for(func)
        _RUNNING.append(func)
        try:
            result = func(*args, **(kwargs or {}))
        finally:
            _RUNNING.pop()
        return result if func in own_tensors() else _converted(result, cls)
    finally:
        _native.set_answering(before)


@functools.cache
def own_tensors():
    """The attributes that lead to a tensor that there is, which stays what it is: a gradient is the same one each
    time.
    """
    return {Tensor._base.__get__, Tensor.grad.__get__, Tensor._grad.__get__}


_RUNNING = []  # the functions that __torch_function__ runs now


def _ours_for(func):
    """Our function of the name that an installed PyTorch has for `func`."""
    overrides = sys.modules.get("torch.overrides")
    name = overrides.resolve_name(func) if overrides else None
    ours = sys.modules["cresset"] if name else None
    for part in (name or "").split(".")[1:]:
        ours = getattr(ours, part, None)
    if ours is None or ours is func:
        raise TypeError(
            f"{name or getattr(func, '__name__', func)}: a function of another library got a cresset tensor; there is "
            "none of its name here"
        )
    return ours


def _converted(result, cls):
    if cls is Tensor:
        return result
    if isinstance(result, Tensor) and not isinstance(result, cls):
        return result.as_subclass(cls)
    if isinstance(result, (tuple, list)):
        items = [_converted(r, cls) for r in result]
        return result.__class__(items) if not hasattr(result, "n_sequence_fields") else result.__class__(items)
    return result


def _disabled_torch_function(cls, func, types, args=(), kwargs=None):
    return NotImplemented


def __init_subclass__(cls, **options):
    """A class that answers for its tensors with __torch_dispatch__ sees the calls there; unless it has a
    __torch_function__, too, results stay what it gives.
    """
    super(Tensor, cls).__init_subclass__(**options)
    function = cls.__torch_function__
    if "__torch_dispatch__" in cls.__dict__ and getattr(function, "__func__", None) is __torch_function__:
        cls.__torch_function__ = _disabled_torch_function


def _disabled_torch_dispatch(func, types, args=(), kwargs=None):
    """The __torch_dispatch__ of classes that do not answer for their tensors: the operator on their memory."""
    from ..dispatch.handling import below  # upward: a class that leaves an operator to Tensor asks

    return below(func, args, kwargs or {})


def _make_wrapper_subclass(cls, size, *places, **options):
    from ..dispatch.modes import make_wrapper_subclass  # upward: only who has such a class asks for it

    return make_wrapper_subclass(cls, size, *places, **options)


def _handle(name, args, out):
    from ..dispatch.handling import handle  # upward: the call path asks, when there is somebody to hand a call to

    return handle(name, args, out)


def _handle_item(tensor):
    from ..dispatch.handling import item  # upward: likewise

    return item(tensor)


_native.set_dispatch_handlers(_handle, _handle_item, _disabled_torch_dispatch)


METHODS = [
    __repr__, __format__, _repr_html_, __iter__, __contains__, __reversed__, __complex__, __dir__, tolist, numpy,
    __array__, __array_wrap__, __dlpack__, __dlpack_device__,
    __array_namespace__, __deepcopy__, __reduce_ex__, set_, is_set_to, untyped_storage, storage,
    _typed_storage, element_size, is_shared,
    share_memory_, is_pinned, pin_memory, type, new_tensor, new, as_subclass, cuda, xpu, mtia, ipu, dim_order,
    resize_as_, map_, apply_,
]  # fmt: skip


# By __torch_function__, nobody is told of these; of those that compute nothing, modes that watch operators are not.
UNTOLD = {_repr_html_, __iter__, __array_namespace__, is_set_to, _typed_storage, as_subclass, new}
COMPUTING = {set_, cuda, map_, apply_}


def install(methods):
    """Attach operators and the methods above to the native type."""
    for name, method in methods.items():
        setattr(Tensor, name, method)
    for method in (*METHODS, *underscored.METHODS):
        if method not in UNTOLD:
            method = _native.overridable(method, "torch.Tensor", False, method not in COMPUTING)
        setattr(Tensor, method.__name__, method)
    Tensor._legacy_new = staticmethod(legacy_new)
    Tensor._make_subclass = staticmethod(_make_subclass)
    Tensor.__torch_function__ = classmethod(__torch_function__)
    Tensor.__init_subclass__ = classmethod(__init_subclass__)
    Tensor._disabled_torch_function = staticmethod(_disabled_torch_function)
    Tensor._make_wrapper_subclass = staticmethod(_make_wrapper_subclass)
    Tensor.__torch_dispatch__ = _disabled_torch_dispatch
    Tensor.__array_priority__ = 1000
    for older, name in _OF_PYTHON_2.items():
        setattr(Tensor, older, getattr(Tensor, name))
    for flag in ("is_mtia", "is_vulkan", "is_maia"):  # devices that there are none of
        _native.add_attribute(flag, lambda self: False)
    _native.add_attribute("volatile", _volatile, lambda self, value: _volatile(self))
    for name, function in (("T", _T), ("mT", _mT), ("H", _H), ("mH", _mH)):
        _native.add_attribute(name, function)
    operators = _native.operators()
    _native.add_attribute("real", operators["real"], _set_real)
    _native.add_attribute("imag", operators["imag"], _set_imag)
    Tensor.__module__ = "torch"
