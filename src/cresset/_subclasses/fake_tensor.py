"""Fake tensors: a model runs on shapes, dtypes and devices alone, without memory and without the devices.

Note [Fake tensors]
A FakeTensor is a wrapper subclass around a tensor of the meta device, with the device that it claims to be on. An
operator of fake tensors runs on the meta device, by the operator's shape rule; its results are on the device of the
arguments, or on the one it is asked for. While a FakeTensorMode is on, what is made (`torch.ones`, parameters of
modules) is fake, too. Where a value would be needed (`item`, `if tensor:`, nonzero), there is none: an exception says
which operator asked.

Note [Values of fake tensors]
A fake tensor may know its value: of one element, where a program wrote it down (`torch.tensor(4.0)`) and what is
computed of such ones (`constant`); or of any size, in a mode that is made with the setting
`torch._functorch.config.fake_tensor_propagate_real_tensors`, which runs each operator for real beside (`real_tensor`).
What is written to by an operator whose other arguments are not known, or drawn at random, is not known from then on,
and neither is what shares its memory.
"""

import contextlib
import weakref

import cresset

from .. import _native
from .._library.operator import OpOverload as CustomOperator
from .._native import Tensor
from .._utils import reduce_on
from ..dispatch import handling, modes
from ..ops import aten_table
from ..ops.aten_table import NUMBERS_AS_TENSORS
from ..ops.tags import Tag
from ..overrides import TorchFunctionMode
from ..pytree import tree_leaves, tree_map, tree_map_only
from ..serialization.options import _serialization_tls
from ..storage import TypedStorage

__all__ = [
    "DataDependentOutputException", "DynamicOutputShapeException", "FakeCopyMode", "FakeTensor",
    "FakeTensorConverter",
    "FakeTensorMode", "UnsupportedFakeTensorException", "UnsupportedOperatorException", "is_fake",
    "maybe_get_fake_mode", "unset_fake_temporarily",
]  # fmt: skip


class UnsupportedFakeTensorException(RuntimeError):
    """A tensor of a kind that has no fake form."""

    def __init__(self, reason):
        super().__init__(reason)
        self.reason = reason


class _OfOperator(RuntimeError):
    def __init__(self, func):
        super().__init__(str(func))
        self.func = func


class DynamicOutputShapeException(_OfOperator):
    """The shape of an operator's result depends on values."""


class DataDependentOutputException(_OfOperator):
    """An operator's result is a value."""


class MetadataMismatchError(RuntimeError):
    """A fake result has another shape, dtype or device than the real one."""


def difference(real, fake, strides=False):
    """What a real and a fake tensor differ in, in words; None if in nothing.

    Args:
        strides: whether they are compared, too: of dimensions longer than one, of tensors that have elements.
    """
    for name in ("shape", "dtype", "device", "layout"):
        ours, theirs = getattr(fake, name), getattr(real, name)
        if ours != theirs:
            return f"{name} {theirs} of the real one, {ours} of the fake one"
    if not strides or real.layout != cresset.strided or not real.numel():
        return None
    long = [d for d in range(real.dim()) if real.shape[d] > 1]
    if [real.stride(d) for d in long] != [fake.stride(d) for d in long]:
        return f"stride {real.stride()} of the real one, {fake.stride()} of the fake one"
    return None


class UnsupportedOperatorException(_OfOperator):
    """An operator has no shape rule."""


def is_fake(x):
    """Whether a tensor is fake."""
    return isinstance(x, FakeTensor)


def maybe_get_fake_mode(t):
    """The mode of a fake tensor; None of others."""
    return t.fake_mode if isinstance(t, FakeTensor) else None


@contextlib.contextmanager
def unset_fake_temporarily():
    """A block in which no fake mode is on; gives the innermost one that was, or None."""
    with handling.without_modes() as kept:
        fake = [mode for mode in kept if isinstance(mode, FakeTensorMode)]
        for mode in kept:
            if mode not in fake:
                handling.push(mode)
        yield fake[-1] if fake else None


class FakeTensor(Tensor):
    """A tensor without memory: shape, strides, dtype and a device that need not be there.

    >>> with cresset._subclasses.FakeTensorMode():
    ...     x = cresset.ones(1000, 1000, 1000, device="cuda")
    >>> (x @ x.mT).shape, x.device.type
    (torch.Size([1000, 1000, 1000]), 'cuda')
    """

    def __new__(cls, fake_mode, elem, device, constant=None):
        device = _native.device(device)
        if device.type in ("cuda", "xpu") and device.index is None:
            device = _native.device(device.type, 0)
        self = modes.make_wrapper_subclass(
            cls,
            elem.shape,
            strides=elem.stride(),
            storage_offset=elem.storage_offset(),
            dtype=elem.dtype,
            device=device,
            requires_grad=elem.requires_grad,
        )
        self._shape_holder, self.fake_mode, self.fake_device = elem, fake_mode, device
        self.constant = self.real_tensor = None
        if constant is not None:
            fake_mode._know(self, constant)
        return self

    __torch_function__ = Tensor._disabled_torch_function

    @property
    def is_fake(self):
        return True

    @staticmethod
    def from_tensor(t, fake_mode):
        """The fake form of a tensor."""
        return fake_mode.from_tensor(t)

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        fake = next(leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, FakeTensor))
        return fake.fake_mode.dispatch(func, types, args, kwargs)

    def untyped_storage(self):
        """What stands for the memory: of the meta device, and one for all views of a tensor."""
        return self._shape_holder.untyped_storage()

    def tolist(self):
        """Refused: there are no values."""
        raise DataDependentOutputException(aten_table.packet("_local_scalar_dense").default)

    def numpy(self, *, force=False):
        """Refused: there are no values."""
        raise RuntimeError(".numpy() is not supported for tensor subclasses.")

    def __deepcopy__(self, memo):
        if id(self) not in memo:
            with self.fake_mode:
                made = self.detach().clone().requires_grad_(self.requires_grad)
            for name in ("_is_param",):
                if hasattr(self, name):
                    setattr(made, name, getattr(self, name))
            memo[id(self)] = made
        return memo[id(self)]

    def __copy__(self):
        made = FakeTensor(self.fake_mode, self._shape_holder, self.fake_device, self.fake_mode._value(self))
        return made.requires_grad_(self.requires_grad)

    def __reduce_ex__(self, protocol):
        if not _serialization_tls.materialize_fake_tensors:
            raise AttributeError(
                "Can't pickle a FakeTensor, which has no data; torch.serialization.skip_data("
                "materialize_fake_tensors=True) saves it as a tensor with room for them"
            )
        storage = TypedStorage(wrap_storage=self.untyped_storage(), dtype=self.dtype)
        storage._untyped_storage._fake_device = self.fake_device
        return reduce_on(self, storage)

    def __repr__(self, *, tensor_contents=None):
        parts = [f"size={tuple(self.shape)}"]
        if self.dtype != cresset.get_default_dtype():
            parts.append(f"dtype={self.dtype}")
        parts = [f"..., {', '.join(parts)}"]
        if self.device.type != "cpu":
            parts.insert(0, f"..., device='{self.device}'")
            parts[1] = parts[1].removeprefix("..., ")
        if self.grad_fn is not None:
            parts.append(f"grad_fn=<{type(self.grad_fn).__name__}>")
        elif self.requires_grad:
            parts.append("requires_grad=True")
        return f"FakeTensor({', '.join(parts)})"


class FakeTensorConverter:
    """Makes fake tensors of real ones: the same one each time for one tensor."""

    def __init__(self):
        self._made = {}  # id -> (weak reference to the tensor, its fake form)

    def from_real_tensor(self, fake_mode, t, make_constant=False, **_options):
        """The fake form of a tensor, in a mode."""
        known = self._made.get(id(t))
        if known is not None and known[0]() is t:
            return known[1]
        if t.layout != cresset.strided or t.is_quantized:
            raise UnsupportedFakeTensorException(f"FakeTensor: a {t.layout} tensor has no fake form")
        if hasattr(type(t), "__tensor_flatten__"):  # made of others, which are faked
            names, context = t.__tensor_flatten__()
            parts = {name: self.from_real_tensor(fake_mode, getattr(t, name), make_constant) for name in names}
            return type(t).__tensor_unflatten__(parts, context, t.shape, t.stride())
        with handling.without_modes(), cresset.no_grad():
            shape = _native.operators()["empty_strided"](tuple(t.shape), t.stride(), dtype=t.dtype, device="meta")
        fake = FakeTensor(fake_mode, shape, t.device, _value_of(fake_mode, t, make_constant))
        if t.requires_grad:
            fake.requires_grad_()
            if t.is_leaf and t.grad_dtype != t.dtype:
                fake.grad_dtype = t.grad_dtype
        if isinstance(t, cresset.nn.Parameter):
            fake._is_param = True
        key = id(t)
        self._made[key] = (weakref.ref(t, lambda _: self._made.pop(key, None)), fake)
        return fake


def _value_of(fake_mode, real, make_constant):
    """A copy of what a real tensor holds, if its fake form is to know it."""
    if real.device.type == "meta" or not (fake_mode.propagate_real_tensors or (make_constant and real.numel() <= 1)):
        return None
    with handling.without_modes(), cresset.no_grad():
        return real.detach().clone()


# Asked for a value, or for a shape that only values decide.
_VALUES = {"_local_scalar_dense", "item", "equal", "is_nonzero", "allclose", "tolist"}
_SHAPES = {
    "nonzero", "nonzero_numpy", "unique", "_unique", "_unique2", "unique_dim", "unique_consecutive", "masked_select",
    "bincount", "repeat_interleave", "argwhere",
}  # fmt: skip


class FakeTensorMode(modes.TorchDispatchMode):
    """A context in which tensors are made without memory.

    Args:
        allow_fallback_kernels: taken as in PyTorch; an operator without a shape rule is an error either way.
        allow_non_fake_inputs: let real tensors take part, as if they were fake; else they are an error.
        shape_env: where symbols would come from. Sizes are numbers here, so tensors are taken only with
            `static_shapes`.
        static_shapes: whether sizes are numbers; by default if there is no `shape_env`.

    >>> with cresset._subclasses.FakeTensorMode():
    ...     model = cresset.nn.Linear(3, 2)
    ...     y = model(cresset.ones(5, 3))
    >>> y.shape
    torch.Size([5, 2])
    """

    def __init__(
        self,
        *,
        allow_fallback_kernels=True,
        allow_non_fake_inputs=False,
        shape_env=None,
        static_shapes=None,
        export=False,
    ):
        from .._functorch import config  # upward: the setting has PyTorch's home

        super().__init__()
        self.allow_fallback_kernels, self.allow_non_fake_inputs = allow_fallback_kernels, allow_non_fake_inputs
        self.shape_env, self.export = shape_env, export
        self.static_shapes = shape_env is None if static_shapes is None else static_shapes
        self.fake_tensor_converter = FakeTensorConverter()
        self.in_kernel_invocation = False
        self.propagate_real_tensors = config.fake_tensor_propagate_real_tensors
        self._knowing = {}  # id -> weak reference to a fake tensor whose value is known

    def from_tensor(self, tensor, *, static_shapes=None, source=None, symbolic_context=None, trace=True):
        """The fake form of a tensor; a fake one of this mode is its own."""
        if not (self.static_shapes if static_shapes is None else static_shapes):
            raise NotImplementedError(
                "from_tensor: sizes are numbers here; symbolic ones come with torch.export. Make the FakeTensorMode "
                "with static_shapes=True"
            )
        if isinstance(tensor, FakeTensor):
            if tensor.fake_mode is not self:
                raise AssertionError("Mixing fake modes NYI")
            return tensor
        return self.fake_tensor_converter.from_real_tensor(self, tensor)

    def __enter__(self):
        self._entered = getattr(self, "_entered", [])
        self._entered.append(self not in handling.stack())
        if self._entered[-1]:
            handling.push(self)
        return self

    def __exit__(self, *_):
        if self._entered.pop():
            handling.pop()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return self.dispatch(func, types, args, kwargs)

    def dispatch(self, func, types, args=(), kwargs=None):
        """The operator on shapes."""
        kwargs = dict(kwargs or {})
        name = func._schema.op
        if any(
            kind is not FakeTensor and kind.__torch_dispatch__ is not Tensor.__torch_dispatch__ for kind in types
        ) and not all(issubclass(kind, FakeTensor) for kind in types):
            return NotImplemented
        if name in ("lift_fresh", "lift", "lift_fresh_copy"):
            return (
                args[0]
                if isinstance(args[0], FakeTensor)
                else self.fake_tensor_converter.from_real_tensor(self, args[0], make_constant=True)
            )
        if name in _VALUES:
            if any(self._value(leaf) is None for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, FakeTensor)):
                raise DataDependentOutputException(func)
            return self._run_for_real(func, args, kwargs)
        if name in _SHAPES and not (name == "repeat_interleave" and kwargs.get("output_size") is not None):
            if not self._is_known(func, args, kwargs):
                raise DynamicOutputShapeException(func)
            found = self._run_for_real(func, args, kwargs)
            return tree_map_only(Tensor, lambda t: self.fake_tensor_converter.from_real_tensor(self, t), found)
        if isinstance(func, CustomOperator) and "meta" not in func._kernels:
            with self, cresset.no_grad():
                result = func._run_fake(func._schema.bind(args, kwargs))
            self._propagate(func, args, kwargs, result)
            return result
        device = self._device(func, args, kwargs)
        known = {}

        def shape_of(value):
            if isinstance(value, FakeTensor):
                if value.fake_mode is not self:
                    raise AssertionError("Mixing fake modes NYI")
                known[id(value._shape_holder)] = value
                return value._shape_holder
            if isinstance(value, Tensor):
                return self._shape_of_real(func, value)
            return value

        bare = tree_map(shape_of, (list(args), kwargs))
        if "device" in bare[1] or not any(isinstance(leaf, Tensor) for leaf in tree_leaves(bare)):
            bare[1]["device"] = _native.device("meta")
        if name == "to" and len(bare[0]) > 1 and isinstance(bare[0][1], _native.device):
            bare[0][1] = _native.device("meta")
        with handling.without_modes(), cresset.no_grad():
            try:
                result = func(*bare[0], **bare[1])
            except NotImplementedError as error:
                raise UnsupportedOperatorException(func) from error

        def fake_of(value):
            if not isinstance(value, Tensor):
                return value
            fake = known.get(id(value))
            return FakeTensor(self, value, device) if fake is None else _refreshed(fake)

        result = tree_map(fake_of, result)
        self._propagate(func, args, kwargs, result)
        return result

    # Note [Values of fake tensors]

    @staticmethod
    def _value(fake):
        return fake.constant if fake.real_tensor is None else fake.real_tensor

    def _know(self, fake, value):
        if self.propagate_real_tensors:
            fake.real_tensor = value
        if value.numel() <= 1:
            fake.constant = value
        key = id(fake)
        self._knowing[key] = weakref.ref(fake, lambda _: self._knowing.pop(key, None))

    def _forget(self, fake):
        memory = _native.storage_address(fake._shape_holder)
        for key, reference in list(self._knowing.items()):
            other = reference()
            if other is not None and _native.storage_address(other._shape_holder) == memory:
                other.constant = other.real_tensor = None
                self._knowing.pop(key, None)

    def _is_known(self, func, args, kwargs):
        """Whether an operator can run for real: beside every operator, or on known numbers that lead to one more."""
        fakes = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, FakeTensor)]
        if any(self._value(fake) is None for fake in fakes):
            return False
        if self.propagate_real_tensors:
            return True
        tags = (Tag.nondeterministic_seeded, Tag.inplace_view)
        made_of_numbers = func._schema.op in NUMBERS_AS_TENSORS
        return (bool(fakes) or made_of_numbers) and not any(tag in func.tags for tag in tags)

    def _propagate(self, func, args, kwargs, result):
        """Tell the results of an operator what they hold, and what it wrote to that it is not known any more."""
        found = [leaf for leaf in tree_leaves(result) if isinstance(leaf, FakeTensor)]
        small = all(fake.numel() <= 1 for fake in found)
        if all(map(_is_here, found)) and (small or self.propagate_real_tensors) and self._is_known(func, args, kwargs):
            real = [leaf for leaf in tree_leaves(self._run_for_real(func, args, kwargs)) if isinstance(leaf, Tensor)]
            for index, (fake, value) in enumerate(zip(found, real, strict=True)):
                if self.propagate_real_tensors:
                    differs = difference(value, fake)
                    if differs is not None:
                        raise MetadataMismatchError(
                            f"Real tensor propagation found a metadata mismatch between the real and the fake result "
                            f"{index} of {func}: {differs}"
                        )
                self._know(fake, value)
            return
        for argument, value in zip(func._schema.arguments, func._schema.bind(args, kwargs), strict=True):
            for leaf in tree_leaves(value) if argument.is_written else ():
                if isinstance(leaf, FakeTensor):
                    self._forget(leaf)

    def _run_for_real(self, func, args, kwargs):
        args, kwargs = tree_map_only(FakeTensor, self._value, (args, kwargs))
        with handling.without_modes(), cresset.no_grad():
            return func(*args, **kwargs)

    def _shape_of_real(self, func, tensor):
        # An index that is a list has become a tensor before anybody was asked.
        listed = func._schema.op in ("index", "index_put", "index_put_", "_index_put_impl_")
        if tensor.dim() == 0 or self.allow_non_fake_inputs or type(tensor) is not Tensor or listed:
            return self.fake_tensor_converter.from_real_tensor(self, tensor)._shape_holder
        raise AssertionError(
            "Please convert all Tensors to FakeTensors first or instantiate FakeTensorMode with "
            f"'allow_non_fake_inputs'. Found in {func}: a tensor of shape {tuple(tensor.shape)}"
        )

    def _device(self, func, args, kwargs):
        """Where the results are: as asked for, or with the arguments; a 0-d one on the CPU goes anywhere."""
        asked = kwargs.get("device")
        if asked is None and func._schema.op == "to":
            asked = next((a for a in args if isinstance(a, (_native.device, str))), None)
        if asked is not None:
            return _native.device(asked)
        device, number = None, False
        for tensor in (leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)):
            here = tensor.device
            if device is None or (number and here.type != "cpu") or (number and tensor.dim()):
                device, number = here, tensor.dim() == 0 and here.type == "cpu"
            elif here != device and not (tensor.dim() == 0 and here.type == "cpu"):
                if func._schema.op in ("copy_", "_to_copy", "index_put_", "index", "_index_put_impl_", "set_"):
                    continue
                raise RuntimeError(
                    f"Unhandled FakeTensor Device Propagation for {func}, found two different devices {device}, {here}"
                )
        return device or cresset.get_default_device()


class FakeCopyMode(TorchFunctionMode):
    """While it is active, copies of tensors are fake: `copy.deepcopy(module)` gives one without memory.

    >>> import copy
    >>> with cresset._subclasses.fake_tensor.FakeCopyMode(cresset._subclasses.FakeTensorMode()):
    ...     layer = copy.deepcopy(cresset.nn.Linear(2, 3))
    >>> type(layer.weight.data).__name__, layer.weight.shape
    ('FakeTensor', torch.Size([3, 2]))
    """

    def __init__(self, fake_mode):
        super().__init__()
        self.fake_mode = fake_mode

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func is Tensor.clone:
            return func(self.fake_mode.from_tensor(args[0], static_shapes=True), **kwargs)
        if func is Tensor.__deepcopy__ and type(args[0]) is Tensor:
            tensor, memo = args
            if id(tensor) not in memo:
                memo[id(tensor)] = self.fake_mode.from_tensor(tensor, static_shapes=True)
            return memo[id(tensor)]
        return func(*args, **kwargs)


def _is_here(fake):
    """Whether the device that a fake tensor claims to be on can compute."""
    return fake.device.type == "cpu" or (fake.device.type == "cuda" and cresset.cuda.is_available())


def _refreshed(fake):
    """A fake tensor whose shape was changed in place."""
    shape = fake._shape_holder
    if (tuple(fake.shape), fake.stride()) != (tuple(shape.shape), shape.stride()):
        other = FakeTensor(fake.fake_mode, shape, fake.device)
        _native.become_view("resize_", fake, other)
    return fake
