"""Parameters as functions of others: `register_parametrization(module, "weight", f)` makes module.weight
f(original)."""

import contextlib
import copy

import cresset

from ..containers import ModuleDict, ModuleList
from ..conversion import swap_tensors, swaps
from ..module import Module
from ..parameter import Parameter

__all__ = [
    "cached", "ParametrizationList", "register_parametrization", "is_parametrized", "remove_parametrizations",
    "type_before_parametrizations", "transfer_parametrizations_and_params",
]  # fmt: skip

_caching = 0
_cache = {}


@contextlib.contextmanager
def cached():
    """Compute each parametrized tensor once inside the block."""
    global _caching
    _caching += 1
    try:
        yield
    finally:
        _caching -= 1
        if not _caching:
            _cache.clear()


class ParametrizationList(ModuleList):
    """The functions behind one tensor, and the original (or originals) they start from.

    Args:
        modules: called one after the other.
        original: the tensor as it was; the functions' `right_inverse`, where they have one, say where to start.
        unsafe: do not check that shapes and dtypes stay the same.
    """

    def __init__(self, modules, original, unsafe=False):
        modules = list(modules)
        if not modules:
            raise ValueError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        dtype, shape = original.dtype, original.shape  # as it is before a right_inverse gives it another
        value = original
        with cresset.no_grad():
            for module in reversed(self):
                if hasattr(module, "right_inverse"):
                    try:
                        value = module.right_inverse(value)
                    except NotImplementedError:
                        break
        if not isinstance(value, (cresset.Tensor, list, tuple)):
            raise ValueError(
                "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). Got "
                + type(value).__name__
            )
        self.is_tensor = isinstance(value, cresset.Tensor)
        self.ntensors = 1 if self.is_tensor else len(value)
        if self.is_tensor:
            if original.dtype != value.dtype and not unsafe:
                raise ValueError(
                    "When `right_inverse` outputs one tensor, it may not change the dtype.\n"
                    f"original.dtype: {original.dtype}\nright_inverse(original).dtype: {value.dtype}"
                )
            if original.device != value.device and not unsafe:
                raise ValueError(
                    "When `right_inverse` outputs one tensor, it may not change the device.\n"
                    f"original.device: {original.device}\nright_inverse(original).device: {value.device}"
                )
            if value is not original:  # the parameter keeps its identity, so that an optimizer goes on knowing it
                _become(original, value)
            _register(self, "original", original)
        else:
            for number, part in enumerate(value):
                if not isinstance(part, cresset.Tensor):
                    raise ValueError(
                        "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). "
                        f"Got element {number} of the sequence with type {type(part).__name__}."
                    )
                part = Parameter(part) if isinstance(original, Parameter) and not isinstance(part, Parameter) else part
                part.requires_grad_(original.requires_grad)
                _register(self, f"original{number}", part)
        if not unsafe:
            _check_same(self(), dtype, shape)

    def right_inverse(self, value):
        """Change the originals so that the tensor becomes `value`."""
        with cresset.no_grad():
            for module in reversed(self):
                if not hasattr(module, "right_inverse"):
                    raise RuntimeError(
                        f"parametrization {type(module).__name__} does not implement right_inverse, so the tensor "
                        "cannot be assigned"
                    )
                value = module.right_inverse(value)
            if self.is_tensor:
                _become(self.original, value.to(self.original.dtype))
            else:
                for number, part in enumerate(value):
                    _become(getattr(self, f"original{number}"), part)

    def forward(self):
        first, *others = self
        if self.is_tensor:
            value = first(self.original)
        else:
            value = first(*[getattr(self, f"original{number}") for number in range(self.ntensors)])
        for module in others:
            value = module(value)
        return value


def _check_same(made, dtype, shape):
    """A parametrization gives a tensor like the one it takes."""
    if not isinstance(made, cresset.Tensor):
        raise ValueError(f"A parametrization must return a tensor. Got {type(made).__name__}.")
    for what, before, after in (("dtype", dtype, made.dtype), ("shape", shape, made.shape)):
        if before != after:
            raise ValueError(
                f"Registering a parametrization may not change the {what} of the tensor, unless the `unsafe` flag is "
                f"enabled: it was {before}, the parametrized one has {after}"
            )


def _check_inverse(found, before):
    """On top of others, a right_inverse gives a tensor like the one that the parametrization takes."""
    if not isinstance(found, cresset.Tensor):
        raise ValueError(f"parametrization.right_inverse must return a tensor. Got {type(found).__name__}.")
    for what in ("dtype", "shape"):
        if getattr(found, what) != getattr(before, what):
            raise ValueError(
                f"The tensor returned by parametrization.right_inverse must have the same {what} as the tensor, unless "
                f"the `unsafe` flag is enabled: {getattr(before, what)} and {getattr(found, what)}"
            )


def _become(original, value):
    """Give an original the data of `value`, and its class where the data are the class's own."""
    if swaps(original) or swaps(value):
        value = value.detach()  # a tensor of its own: `value` may hold the original
        if isinstance(original, Parameter):
            value = Parameter(value, requires_grad=original.requires_grad)
        swap_tensors(original, value)
    else:
        original.data = value.data


def _register(module, name, tensor):
    if isinstance(tensor, Parameter):
        module.register_parameter(name, tensor)
    else:
        module.register_buffer(name, tensor)


def _value(module, name):
    """What the property on the parametrized class gives."""
    if not _caching:
        return module.parametrizations[name]()
    key = id(module), name
    if key not in _cache:
        _cache[key] = module.parametrizations[name]()
    return _cache[key]


def _make_parametrized(module):
    """Give `module` a class of its own, on which tensors can be properties."""
    kind = type(module)

    def deepcopy(self, memo):
        if id(self) not in memo:
            replica = self.__new__(type(self))
            memo[id(self)] = replica
            replica.__dict__ = copy.deepcopy(self.__dict__, memo)
        return memo[id(self)]

    def refuse(self):
        raise RuntimeError(
            "Serialization of parametrized modules is only supported through state_dict(). "
            "See:\nhttps://pytorch.org/tutorials/beginner/saving_loading_models.html#saving-loading-a-general-checkpoint-for-inference-and-or-resuming-training"
        )

    members = {"__getstate__": refuse}
    if not hasattr(kind, "__deepcopy__"):
        members["__deepcopy__"] = deepcopy
    module.__class__ = type(f"Parametrized{kind.__name__}", (kind,), members)
    module.parametrizations = ModuleDict()


def register_parametrization(module, tensor_name, parametrization, *, unsafe=False):
    """Make a parameter or buffer of `module` a function of what it was.

    Args:
        tensor_name: its name.
        parametrization: a module that computes it; with `right_inverse(value)` the original starts where the tensor
            was.
        unsafe: allow another shape or dtype, and do not check.

    >>> class Positive(nn.Module):
    ...     def forward(self, x):
    ...         return x.abs()
    >>> layer = nn.utils.parametrize.register_parametrization(nn.Linear(2, 2), "weight", Positive())
    >>> bool((layer.weight >= 0).all()), [name for name, _ in layer.named_parameters()]
    (True, ['bias', 'parametrizations.weight.original'])
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        if not unsafe:
            before = getattr(module, tensor_name)
            made = parametrization(before)
            _check_same(made, before.dtype, before.shape)
            if hasattr(parametrization, "right_inverse"):
                _check_inverse(parametrization.right_inverse(made), before)
        module.parametrizations[tensor_name].append(parametrization)
        module.parametrizations[tensor_name].unsafe |= unsafe
        return module
    if tensor_name not in module._parameters and tensor_name not in module._buffers:
        raise ValueError(
            f"Module '{module}' does not have a parameter, a buffer, or a parametrized element with name "
            f"'{tensor_name}'"
        )
    original = getattr(module, tensor_name)
    functions = ParametrizationList([parametrization], original, unsafe=unsafe)
    delattr(module, tensor_name)
    if not is_parametrized(module):
        _make_parametrized(module)

    def get(self):
        return _value(self, tensor_name)

    def assign(self, value):
        self.parametrizations[tensor_name].right_inverse(value)

    setattr(type(module), tensor_name, property(get, assign))
    module.parametrizations[tensor_name] = functions
    return module


def is_parametrized(module, tensor_name=None):
    """Whether `module` has parametrizations, or one for `tensor_name`."""
    parametrizations = module.__dict__.get("_modules", {}).get("parametrizations")
    if not isinstance(parametrizations, ModuleDict):
        return False
    return len(parametrizations) > 0 if tensor_name is None else tensor_name in parametrizations


def remove_parametrizations(module, tensor_name, leave_parametrized=True):
    """Make a tensor an ordinary parameter or buffer again.

    Args:
        leave_parametrized: with the value it has now; else with that of the original.
    """
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {module} does not have a parametrization on {tensor_name}")
    functions = module.parametrizations[tensor_name]
    if functions.is_tensor:
        original = functions.original
        if leave_parametrized:
            with cresset.no_grad():
                _become(original, getattr(module, tensor_name).clone())
    elif leave_parametrized:
        value = getattr(module, tensor_name)
        original = Parameter(value.detach().clone()) if value.requires_grad else value
    else:
        raise ValueError(
            "Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is parametrized in terms of a "
            "sequence of tensors."
        )
    delattr(type(module), tensor_name)
    del module.parametrizations[tensor_name]
    _register(module, tensor_name, original)
    if not is_parametrized(module):
        delattr(module, "parametrizations")
        module.__class__ = type(module).__bases__[0]
    return module


def type_before_parametrizations(module):
    """The class of `module` without its parametrizations."""
    return type(module).__bases__[0] if is_parametrized(module) else type(module)


def transfer_parametrizations_and_params(from_module, to_module, tensor_name=None):
    """Give `to_module` the parametrizations of `from_module`, and their originals."""
    if not is_parametrized(from_module):
        return to_module
    if not isinstance(from_module.parametrizations, Module):
        raise AssertionError("from_module.parametrizations must be a module")
    for name in from_module.parametrizations if tensor_name is None else [tensor_name]:
        if not hasattr(to_module, name):
            setattr(to_module, name, Parameter(getattr(from_module, name)))
        for function in from_module.parametrizations[name]:
            register_parametrization(to_module, name, function)
        if hasattr(from_module.parametrizations[name], "original"):
            to_module.parametrizations[name].original = from_module.parametrizations[name].original
        else:
            for number in range(from_module.parametrizations[name].ntensors):
                key = f"original{number}"
                setattr(to_module.parametrizations[name], key, getattr(from_module.parametrizations[name], key))
    return to_module
