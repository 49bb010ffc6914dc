"""Parameters and buffers: tensors that a module knows as its own, and those whose shape is not known yet."""

from collections import OrderedDict

import cresset
from cresset import Tensor, _native, _utils

__all__ = ["Parameter", "Buffer", "UninitializedParameter", "UninitializedBuffer", "is_lazy"]


class _ParameterMeta(type(Tensor)):  # type: ignore[misc]
    # A tensor of another class, passed to Parameter(), keeps its class and carries a mark.
    def __instancecheck__(cls, instance):
        if super().__instancecheck__(instance):
            return True
        return cls is Parameter and isinstance(instance, Tensor) and getattr(instance, "_is_param", False)


class Parameter(Tensor, metaclass=_ParameterMeta):
    """A tensor that, assigned to a module, is one of its parameters.

    Args:
        data: the values; the parameter shares their memory.
        requires_grad: whether it is trained.

    >>> nn.Parameter(cresset.tensor([1.0, 2.0]))
    Parameter containing:
    tensor([1., 2.], requires_grad=True)
    """

    def __new__(cls, data=None, requires_grad=True):
        if data is None:
            data = cresset.empty(0)
        if type(data) is Tensor or type(data) is Parameter:
            return _native.make_subclass(cls, data, requires_grad)
        if not isinstance(data, Tensor):
            raise TypeError(f"Parameter: data must be a Tensor, got {type(data).__name__}")
        marked = data.detach().requires_grad_(requires_grad)
        if type(marked) is not type(data):
            raise RuntimeError(
                f"Creating a Parameter from an instance of type {type(data).__name__} requires that detach() returns "
                "an "
                f"instance of the same type, but return type {type(marked).__name__} was found instead. To use the "
                "type as a "
                "Parameter, please correct the detach() semantics defined by its __torch_dispatch__() implementation."
            )
        marked._is_param = True
        return marked

    def __deepcopy__(self, memo):
        if id(self) not in memo:
            values = self.data.clone(memory_format=cresset.preserve_format)
            memo[id(self)] = type(self)(values, self.requires_grad)
        return memo[id(self)]

    def __reduce_ex__(self, protocol):
        state = _utils._get_obj_state(self)
        if state:
            return _utils._rebuild_parameter_with_state, (self.data, self.requires_grad, OrderedDict(), state)
        return _utils._rebuild_parameter, (self.data, self.requires_grad, OrderedDict())

    __torch_function__ = Tensor._disabled_torch_function


_native.set_parameter_type(Parameter)


def forget_gradients(parameters, set_to_none=True):
    """What zero_grad does: forget the gradients, or set them to zero."""
    if set_to_none:
        _native.clear_gradients(parameters)
        return
    grads = [parameter.grad for parameter in parameters if parameter.grad is not None]
    for grad in grads:
        if grad.grad_fn is not None:
            grad.detach_()
        else:
            grad.requires_grad_(False)
    if grads:
        cresset._foreach_zero_(grads)


class _BufferMeta(type(Tensor)):  # type: ignore[misc]
    # Buffer() marks a plain tensor; there are no instances of the class itself.
    def __instancecheck__(cls, instance):
        if super().__instancecheck__(instance):
            return True
        return cls is Buffer and isinstance(instance, Tensor) and getattr(instance, "_is_buffer", False)


class Buffer(Tensor, metaclass=_BufferMeta):
    """A tensor that, assigned to a module, is one of its buffers: state that is not trained.

    Args:
        data: the values; the buffer shares their memory.
        persistent: whether it belongs to the module's state_dict.

    >>> nn.Buffer(cresset.zeros(2))
    tensor([0., 0.])
    """

    def __new__(cls, data=None, *, persistent=True):
        if data is None:
            data = cresset.empty(0)
        marked = data.detach().requires_grad_(data.requires_grad)
        marked.persistent = persistent
        marked._is_buffer = True
        return marked

    __torch_function__ = Tensor._disabled_torch_function


def check_not_lazy(who, parameter):
    """Refuse a parameter whose shape is not known yet."""
    if is_lazy(parameter):
        raise ValueError(
            f"The module passed to `{who}` can't have uninitialized parameters. Make sure to run the dummy forward "
            "before it is applied"
        )


def is_lazy(parameter):
    """Whether the shape is not known yet."""
    return isinstance(parameter, UninitializedTensorMixin)


class UninitializedTensorMixin:
    """A parameter or buffer without shape, until `materialize` gives it one."""

    _allowed = frozenset(
        ["__hash__", "size", "copy_", "is_complex", "is_floating_point", "half", "float", "double", "char", "short",
            "int",
         "long", "cuda", "cpu", "to", "get_device", "__get__", "__set__"]
    )  # fmt: skip

    def materialize(self, shape, device=None, dtype=None):
        """Give it a shape, with values not set yet, and make it an ordinary parameter or buffer."""
        self.data = cresset.empty(
            shape,
            device=self.data.device if device is None else device,
            dtype=self.data.dtype if dtype is None else dtype,
        )
        self.__class__ = self.cls_to_become

    @property
    def shape(self):
        raise RuntimeError(
            "Can't access the shape of an uninitialized parameter or buffer. This error usually happens in "
            "`load_state_dict` when trying to load an uninitialized parameter into an initialized one. "
            "Call `forward` to initialize the parameters before accessing their attributes."
        )

    def share_memory_(self):
        raise RuntimeError(
            "Can't share memory on an uninitialized parameter or buffer. "
            "Call `forward` to initialize the parameters before calling `module.share_memory()`."
        )

    def __repr__(self):
        return f"<{type(self).__name__}>"

    def __reduce_ex__(self, protocol):
        return type(self), (self.requires_grad,)

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        name = getattr(func, "__name__", "")
        if name in cls._allowed:
            before = _native.set_answering(0)
            try:
                return func(*args, **(kwargs or {}))
            finally:
                _native.set_answering(before)
        raise ValueError(
            f"Attempted to use an uninitialized parameter in {func}. This error happens when you are using a "
            "`LazyModule` or "
            f"explicitly manipulating `torch.nn.parameter.{cls.__name__}` objects. When using LazyModules "
            "Call `forward` with a dummy batch to initialize the parameters before calling torch functions"
        )


class UninitializedParameter(UninitializedTensorMixin, Parameter):
    """A parameter whose shape is found out at the first forward pass of a lazy module."""

    cls_to_become = Parameter

    def __new__(cls, requires_grad=True, device=None, dtype=None):
        return _native.make_subclass(cls, cresset.empty(0, device=device, dtype=dtype), requires_grad)

    def __deepcopy__(self, memo):
        if id(self) not in memo:
            memo[id(self)] = type(self)(self.requires_grad, self.data.device, self.data.dtype)
        return memo[id(self)]


class UninitializedBuffer(UninitializedTensorMixin, Tensor):
    """A buffer whose shape is found out at the first forward pass of a lazy module."""

    cls_to_become = Tensor

    def __new__(cls, requires_grad=False, device=None, dtype=None, persistent=True):
        buffer = _native.make_subclass(cls, cresset.empty(0, device=device, dtype=dtype), requires_grad)
        buffer.persistent = persistent
        buffer._is_buffer = True
        return buffer

    def __deepcopy__(self, memo):
        if id(self) not in memo:
            memo[id(self)] = type(self)(self.requires_grad, self.data.device, self.data.dtype, self.persistent)
        return memo[id(self)]
