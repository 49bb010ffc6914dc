"""The __torch_function__ protocol, by which other types take part in torch's functions, and modes that watch every
call.
"""

import builtins
import functools
import inspect
import threading

from . import _native
from .ops.registry import OBEYING

__all__ = [
    "BaseTorchFunctionMode", "DisableTorchFunction", "DisableTorchFunctionSubclass", "TorchFunctionMode",
    "enable_reentrant_dispatch", "get_default_nowrap_functions", "get_ignored_functions", "get_overridable_functions",
    "get_testing_overrides", "handle_torch_function", "has_torch_function", "redispatch_function",
    "has_torch_function_unary", "has_torch_function_variadic", "is_tensor_like", "is_tensor_method_or_property",
    "resolve_name", "wrap_torch_function",
]  # fmt: skip

_PLAIN = (_native.Tensor,)
NOBODY, MODES, MODES_AND_CLASSES = range(3)  # who answers for calls, for _native.set_answering


def _overrides(value):
    """Whether the type of `value` answers for itself."""
    kind = value.__class__
    if kind in _PLAIN or not hasattr(kind, "__torch_function__"):
        return False
    return kind.__torch_function__ is not _native.Tensor._disabled_torch_function and kind.__name__ != "Parameter"


class _Hop(threading.local):
    skips = False  # whether the next question whether somebody answers is answered no: see redispatch_function


_hop = _Hop()


def has_torch_function(relevant_args):
    """Whether one of the arguments has a __torch_function__ of its own (or a mode watches)."""
    if _hop.skips:
        _hop.skips = False
        return False
    return _native.has_torch_function(relevant_args)


def has_torch_function_unary(value):
    """has_torch_function for one argument."""
    return has_torch_function((value,))


def has_torch_function_variadic(*values):
    """has_torch_function for several arguments."""
    return has_torch_function(values)


def _overriding(relevant_args):
    """The arguments that are asked, one of each type, subclasses before their bases."""
    asked = []
    for value in relevant_args if _native.answering() == MODES_AND_CLASSES else ():
        if not _overrides(value) or builtins.any(value.__class__ is other.__class__ for other in asked):
            continue
        place = next((i for i, other in enumerate(asked) if issubclass(value.__class__, other.__class__)), len(asked))
        asked.insert(place, value)
    return asked


def handle_torch_function(public_api, relevant_args, *args, **kwargs):
    """Let the arguments' types compute `public_api(*args, **kwargs)`. TypeError when all of them decline.

    >>> class Loud:
    ...     @classmethod
    ...     def __torch_function__(cls, func, types, args=(), kwargs=None):
    ...         return f"{func.__name__} of {len(args)} arguments"
    >>> cresset.add(Loud(), 1)
    'add of 2 arguments'
    """
    asked = _overriding(relevant_args)
    types = tuple(value.__class__ for value in asked)
    if _native.function_mode_depth() and _native.answering() != NOBODY:
        with _without_top_mode() as mode:
            result = mode.__torch_function__(public_api, types, args, kwargs)
        if result is not NotImplemented:
            return result
    for value in asked:
        result = value.__torch_function__(public_api, types, args, kwargs)
        if result is not NotImplemented:
            return result
    name = f"{public_api.__module__}.{public_api.__name__}"
    raise TypeError(
        f"no implementation found for '{name}' on types that implement __torch_function__: "
        f"{[kind.__name__ for kind in types]}"
    )


def redispatch_function(func, types, args, kwargs):
    """Call a function as if nobody answered for it, while everything that it calls is answered for as usual. For
    handlers that want to see the operations inside.

    >>> class Loud(cresset.Tensor):
    ...     @classmethod
    ...     def __torch_function__(cls, func, types, args=(), kwargs=None):
    ...         print(func.__name__)
    ...         return cresset.overrides.redispatch_function(func, types, args, kwargs)
    >>> type(Loud(cresset.ones(2)) + 1).__name__
    add
    'Tensor'
    """
    kwargs = kwargs or {}
    if isinstance(func, OBEYING[1]):
        return func.__wrapped__(*args, **kwargs)
    if not inspect.isfunction(func):
        with DisableTorchFunction():
            return func(*args, **kwargs)
    _hop.skips = True
    try:
        return func(*args, **kwargs)
    finally:
        _hop.skips = False


def wrap_torch_function(dispatcher):
    """Make a function of one's own obey the protocol; `dispatcher(*args)` gives the arguments that may override it."""

    def decorate(function):
        @functools.wraps(function)
        def wrapped(*args, **kwargs):
            relevant = dispatcher(*args, **kwargs)
            if has_torch_function(relevant):
                return handle_torch_function(wrapped, relevant, *args, **kwargs)
            return function(*args, **kwargs)

        return wrapped

    return decorate


class _without_top_mode:
    """Inside, the innermost mode does not see the calls."""

    def __enter__(self):
        self.mode = _native.pop_function_mode()
        return self.mode

    def __exit__(self, *_):
        _native.push_function_mode(self.mode)


class TorchFunctionMode:
    """A context in which `__torch_function__(func, types, args, kwargs)` of the mode sees every call of a torch
    function.

    >>> class Count(cresset.overrides.TorchFunctionMode):
    ...     calls = 0
    ...     def __torch_function__(self, func, types, args=(), kwargs=None):
    ...         self.calls += 1
    ...         return func(*args, **(kwargs or {}))
    >>> with Count() as count:
    ...     _ = cresset.add(cresset.ones(2), 1)
    >>> count.calls
    2
    """

    _sees_attributes = True  # x.shape and x.dim(), too, and not only functions and operators

    def __torch_function__(self, func, types, args=(), kwargs=None):
        raise NotImplementedError(f"{self.__class__.__name__} has no __torch_function__")

    def __enter__(self):
        _native.push_function_mode(self)
        return self

    def __exit__(self, *_):
        _native.pop_function_mode()


class OperatorMode(TorchFunctionMode):
    """A mode that watches what is computed: questions about attributes go past it."""

    _sees_attributes = False


class BaseTorchFunctionMode(TorchFunctionMode):
    """A mode that changes nothing."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


class _Answering:
    """A block in which others see the calls: a number, as _native.set_answering takes it."""

    def __enter__(self):
        self.before = _native.set_answering(self.who())

    def __exit__(self, *_):
        _native.set_answering(self.before)


class DisableTorchFunctionSubclass(_Answering):
    """Inside, tensor subclasses do not see the calls; function modes do."""

    def who(self):
        return builtins.min(_native.answering(), MODES)


class DisableTorchFunction(_Answering):
    """Inside, neither tensor subclasses nor function modes see the calls."""

    def who(self):
        return NOBODY


def _get_current_function_mode():
    """The innermost mode, or None."""
    stack = _get_current_function_mode_stack()
    return stack[-1] if stack else None


def _get_current_function_mode_stack():
    """The modes that watch, the innermost last."""
    return _native.function_modes()


class enable_reentrant_dispatch(_Answering):
    """Inside a handler, let subclasses see the calls again."""

    def who(self):
        return MODES_AND_CLASSES


_enable_torch_function = enable_reentrant_dispatch  # PyTorch's other name for it


def is_tensor_like(inp):
    """Whether `inp` is a tensor or has __torch_function__.

    >>> cresset.overrides.is_tensor_like(cresset.ones(2)), cresset.overrides.is_tensor_like(3)
    (True, False)
    """
    return isinstance(inp, _native.Tensor) or hasattr(inp.__class__, "__torch_function__")


_ARITHMETIC = [
    f"__{form}{name}__"
    for name in "add sub mul truediv floordiv mod pow and or xor lshift rshift matmul".split()
    for form in (("", "r", "i") if name != "matmul" else ("", "r"))
] + [
    f"__{name}__"
    for name in """eq ne lt le gt ge neg abs invert getitem setitem len bool int float index complex contains reversed
        format repr dir array array_wrap dlpack dlpack_device deepcopy reduce_ex""".split()
]  # fmt: skip

_ATTRIBUTE, _METHOD = type(_native.Tensor.shape), type(_native.Tensor.dim)


def _of_tensors():
    """The methods and the parts of attributes of Tensor that obey the protocol, by name."""
    found = {name: getattr(_native.Tensor, name) for name in _ARITHMETIC}
    for name, value in vars(_native.Tensor).items():
        if isinstance(value, (_METHOD, *OBEYING)) and not (name.startswith("__") or name in found):
            found[name] = value
        elif isinstance(value, _ATTRIBUTE) and name != "__dict__":
            found[f"{name}.__get__"] = value.__get__
            found[f"{name}.__set__"] = value.__set__
    return found


@functools.cache
def _namespaces():
    """(public name, what holds the functions, the functions by name) of all namespaces with functions that obey the
    protocol.
    """
    import cresset

    def listed(holder):
        return [name for name in dir(holder) if not name.startswith("_") and isinstance(getattr(holder, name), OBEYING)]

    from .nn import functional as layer_functions  # upward: the lists have the functions of all floors
    from .nn import init  # upward: likewise

    functional = cresset.functional
    holders = {
        "torch": cresset,
        "torch.functional": functional,
        "torch.nn.functional": layer_functions,
        "torch.nn.init": init,
        "torch.Tensor": _native.Tensor,
        "torch.linalg": cresset.linalg,
        "torch.fft": cresset.fft,
        "torch.special": cresset.special,
    }
    found = {prefix: {name: getattr(holder, name) for name in listed(holder)} for prefix, holder in holders.items()}
    found["torch.Tensor"] = _of_tensors()
    for name in list(found["torch"]):
        if name.endswith("_") or hasattr(functional, name):
            del found["torch"][name]
    return [(prefix, holder, found[prefix]) for prefix, holder in holders.items()]


def get_overridable_functions():
    """The functions and methods that obey the protocol, by what holds them.

    >>> cresset.add in cresset.overrides.get_overridable_functions()[cresset]
    True
    """
    ignored = get_ignored_functions()
    found = {}
    for _, holder, functions in _namespaces():
        found[holder] = [function for function in functions.values() if function not in ignored]
    return found


_IGNORED = """tensor as_tensor asarray from_numpy frombuffer from_dlpack zeros ones empty full rand randn randint
    randperm arange range linspace logspace eye empty_strided scalar_tensor tril_indices triu_indices manual_seed seed
    initial_seed set_default_dtype get_default_dtype set_default_device get_default_device set_printoptions
    set_num_threads get_num_threads is_grad_enabled set_grad_enabled no_grad enable_grad inference_mode is_tensor
    is_storage typename promote_types can_cast get_rng_state set_rng_state vmap bartlett_window blackman_window
    hamming_window hann_window kaiser_window""".split()


@functools.cache
def get_ignored_functions():
    """The functions that do not ask, since they take no tensors: creation, defaults, seeds.

    >>> cresset.zeros in cresset.overrides.get_ignored_functions()
    True
    """
    import cresset

    return {getattr(cresset, name) for name in _IGNORED if hasattr(cresset, name)}


def get_default_nowrap_functions():
    """What gives a tensor that is not made into the class of the one it is asked of: its gradient and its base.

    >>> len(cresset.overrides.get_default_nowrap_functions())
    3
    """
    from .tensors.tensor import own_tensors

    return own_tensors()


def get_testing_overrides():
    """For each function that obeys the protocol, one with the same signature that gives -1: what a test's
    __torch_function__ may call.

    >>> cresset.overrides.get_testing_overrides()[cresset.add](1, 2)
    -1
    """
    found = {}
    for functions in get_overridable_functions().values():
        for function in functions:
            found[function] = _stand_in(function)
    return found


def _stand_in(function):
    def stand_in(*args, **kwargs):
        return -1

    try:
        stand_in.__signature__ = inspect.signature(function)
    except (TypeError, ValueError):
        if is_tensor_method_or_property(function):  # written in C, which says nothing of what else they take
            own = [inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)]
            stand_in.__signature__ = inspect.Signature(own)
    return stand_in


def is_tensor_method_or_property(func):
    """Whether `func` is a method of Tensor (or the getter of one of its properties).

    >>> cresset.overrides.is_tensor_method_or_property(cresset.Tensor.add)
    True
    """
    name = getattr(func, "__name__", "")
    return name in ("__get__", "__set__") or getattr(_native.Tensor, name, None) is func


def resolve_name(f):
    """The public name of a function, 'torch.add' or 'torch.Tensor.add_'; None if it has none.

    >>> cresset.overrides.resolve_name(cresset.add), cresset.overrides.resolve_name(cresset.Tensor.add_)
    ('torch.add', 'torch.Tensor.add_')
    """
    from .library import OpOverload
    from .ops.namespaces import OpOverloadPacket

    if isinstance(f, (OpOverload, OpOverloadPacket)):
        return str(f)
    for prefix, _, functions in _namespaces():
        for name, function in functions.items():
            if function == f:  # the __get__ of an attribute is a new object each time
                return f"{prefix}.{name}"
    return None
