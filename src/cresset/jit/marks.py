"""What programs tell the compiler of torch.jit: decorators on functions and methods, annotations of values, and the
questions `is_scripting` and `is_tracing`.

A decorator leaves a word in `_torchscript_modifier` of the function, where the compiler reads it; in Python the
function runs as before.
"""

import functools
import inspect
import types
import typing
import warnings
from typing import Final

from ..futures import Future
from . import _state

__all__ = [
    "Attribute", "Final", "FunctionModifiers", "annotate", "export", "fork", "ignore", "interface", "is_scripting",
    "is_tracing", "isinstance", "script_if_tracing", "unused", "wait",
]  # fmt: skip

_builtin_isinstance = isinstance


class FunctionModifiers:
    """The words that decorators leave."""

    UNUSED = "unused (ignored and replaced with raising of an exception)"
    IGNORE = "ignore (leave as a call to Python, cannot be torch.jit.save'd)"
    EXPORT = "export (compile this function even if nothing calls it)"
    DEFAULT = "default (compile if called from a exported function / forward)"
    COPY_TO_SCRIPT_WRAPPER = "if this method is not scripted, copy the python method onto the scripted model"
    _DROP = "_drop (function is fully ignored, declaration can be unscriptable)"


def get_torchscript_modifier(function):
    """What a decorator left on the function; DEFAULT if nothing. None for what cannot be called."""
    if not callable(function):
        return None
    return getattr(getattr(function, "__func__", function), "_torchscript_modifier", FunctionModifiers.DEFAULT)


def copy_torchscript_modifier(orig, new):
    """Let `new` be treated as `orig` is."""
    modifier = get_torchscript_modifier(orig)
    if modifier is not None:
        new._torchscript_modifier = modifier


def is_ignored_fn(fn):
    """Whether the compiler leaves the function alone."""
    return get_torchscript_modifier(fn) in (FunctionModifiers.UNUSED, FunctionModifiers.IGNORE, FunctionModifiers._DROP)


def should_drop(fn):
    """Whether a call of the function becomes an exception."""
    return get_torchscript_modifier(fn) in (FunctionModifiers.UNUSED, FunctionModifiers._DROP)


def _mark(function, word):
    if _builtin_isinstance(function, property):
        for part in (function.fget, function.fset):
            if part is not None:
                part._torchscript_modifier = word
    else:
        function._torchscript_modifier = word
    return function


def export(fn):
    """Compile this method of a module though nothing that is compiled calls it.

    >>> class Scale(nn.Module):
    ...     def forward(self, x):
    ...         return 2 * x
    ...
    ...     @torch.jit.export
    ...     def back(self, x):
    ...         return x / 2
    >>> torch.jit.script(Scale()).back(torch.tensor([4.0]))
    tensor([2.])
    """
    return _mark(fn, FunctionModifiers.EXPORT)


def unused(fn):
    """Do not compile this function: where it is called, the compiled program raises an exception.

    >>> class Scale(nn.Module):
    ...     def forward(self, x, debug: bool = False):
    ...         if debug:
    ...             self.show(x)
    ...         return 2 * x
    ...
    ...     @torch.jit.unused
    ...     def show(self, x):
    ...         print({"x": x}.__class__)
    >>> torch.jit.script(Scale())(torch.tensor([4.0]))
    tensor([8.])
    """
    return _mark(fn, FunctionModifiers.UNUSED)


def ignore(drop=False, **kwargs):
    """Do not compile this function: the compiled program calls it in Python, and cannot be saved. With `drop=True`, as
    `unused`.

    >>> class Scale(nn.Module):
    ...     def forward(self, x):
    ...         self.show(x)
    ...         return 2 * x
    ...
    ...     @torch.jit.ignore
    ...     def show(self, x) -> None:
    ...         print(type(x).__name__)
    >>> torch.jit.script(Scale())(torch.tensor([4.0]))
    Tensor
    tensor([8.])
    """
    if callable(drop):
        return _mark(drop, FunctionModifiers.IGNORE)
    if not _builtin_isinstance(drop, bool):
        raise RuntimeError(f"Argument to @torch.jit.ignore must be a bool or a function but got {drop}")
    word = FunctionModifiers.UNUSED if drop else FunctionModifiers.IGNORE
    if (on_export := kwargs.pop("drop_on_export", None)) is not None:
        warnings.warn(
            "ignore(drop_on_export=True) has been deprecated. Use torch.jit.unused instead",
            category=FutureWarning,
            stacklevel=2,
        )
        word = FunctionModifiers.UNUSED if on_export else word
    if kwargs:
        raise TypeError(f"ignore: unexpected argument {next(iter(kwargs))!r}")
    return lambda function: _mark(function, word)


def _drop(fn):
    """As unused; the function's own declaration is not looked at either."""
    return _mark(fn, FunctionModifiers._DROP)


def _copy_to_script_wrapper(fn):
    """A method that a scripted module offers in Python as it is."""
    return _mark(fn, FunctionModifiers.COPY_TO_SCRIPT_WRAPPER)


# ---- questions


def is_scripting():
    """False; compiled programs read True, so that what is behind `if not torch.jit.is_scripting()` is left out of
    them."""
    return False


def is_tracing():
    """Whether torch.jit.trace is recording."""
    return _state.tracing() is not None


# ---- values and classes


def annotate(the_type, the_value):
    """The value; a compiled program takes `the_type` for its type."""
    return the_value


class Attribute(typing.NamedTuple):
    """A value and the type that the compiler gives to the attribute that holds it."""

    value: object
    type: object


def _unwrap_optional(x):
    """The value, which must not be None."""
    assert x is not None, "Unwrapping null optional"
    return x


def interface(obj):
    """A class of which only the methods' signatures count: an attribute of this type holds any module or object that
    has them.

    >>> @torch.jit.interface
    ... class Step(nn.Module):
    ...     def forward(self, x: torch.Tensor) -> torch.Tensor:
    ...         pass
    >>> Step.__torch_script_interface__
    True
    """
    if not inspect.isclass(obj):
        raise RuntimeError("interface must be applied to a class")
    (base, *more) = obj.__bases__
    if more or (base is not object and not (base.__name__ == "Module" and is_ours(base))):
        raise RuntimeError(
            "Interface does not support inheritance yet. Please directly inherit from 'object' or 'nn.Module'."
        )
    obj.__torch_script_interface__ = True
    return obj


def is_ours(thing):
    """Whether a class or function is cresset's own; in PyTorch's place its modules carry PyTorch's names."""
    return (getattr(thing, "__module__", None) or "").startswith(("cresset.", "torch."))


# ---- several signatures for one body

_overloads = {}  # qualified name -> functions with the signatures
_overloaded_methods = {}  # (module, qualified name) -> functions with the signatures


def _qualified_name(obj, mangle_name=True):
    """The name of a class or function in a compiled program: `__torch__.package.Name`."""
    if hasattr(obj, "_jit_override_qualname"):
        return obj._jit_override_qualname
    name = obj.__name__ if obj.__name__ != "<lambda>" else "_lambda"
    module = obj.__module__
    if module == "builtins" or module is None:
        raise RuntimeError(f"Could not get qualified name for class '{name}': __module__ can't be None.")
    if "." in name:
        raise RuntimeError(f"Could not get qualified name for class '{name}': '{name}' is not a valid identifier")
    if module == "__main__":
        module = "__torch__"
    elif mangle_name:
        module = "__torch__." + module
    return f"{module}.{name}"


def _overload(func):
    """A signature of a function that has several; the body comes in the definition without this decorator."""
    _overloads.setdefault(_qualified_name(func), []).append(func)
    return func


def _get_fn_overloads(qual_name):
    return _overloads.get(qual_name)


def _overload_method(func):
    """A signature of a method that has several."""
    _overloaded_methods.setdefault((func.__module__, func.__qualname__), []).append(func)
    return func


def _get_overloaded_methods(method, mod_class):
    """The signatures that were given for a method."""
    return _overloaded_methods.get((method.__module__, f"{mod_class.__qualname__}.{method.__name__}"))


# ---- isinstance with containers

# Containers that do not say what is in them.
_BARE = {
    kind: f"Attempted to use {name} without a contained type. Please add a contained type, e.g. {name}[int]"
    for kinds, name in (
        ((typing.List, list), "List"),  # noqa: UP006
        ((typing.Tuple, tuple), "Tuple"),  # noqa: UP006
        ((typing.Optional,), "Optional"),
    )
    for kind in kinds
} | dict.fromkeys(
    (typing.Dict, dict),  # noqa: UP006
    "Attempted to use Dict without contained types. Please add contained type, e.g. Dict[int, int]",
)


def isinstance(obj, target_type):
    """Whether an object is of a type, with what is inside of containers: `torch.jit.isinstance(x,
    List[torch.Tensor])`."""
    origin = typing.get_origin(target_type)
    if _builtin_isinstance(target_type, tuple):
        return any(isinstance(obj, one) for one in target_type)
    if target_type is None:
        return obj is None
    if target_type in _BARE:
        raise RuntimeError(_BARE[target_type])
    if origin is None:
        return _builtin_isinstance(obj, target_type)
    inside = typing.get_args(target_type)
    if origin in (typing.Union, types.UnionType):
        return any(isinstance(obj, one) for one in inside)
    if origin is Final:
        return isinstance(obj, inside[0])
    if not _builtin_isinstance(obj, origin):
        return False
    if origin in (list, dict) and not obj:
        warnings.warn(
            (
                "The inner type of a container is lost when calling torch.jit.isinstance in eager mode. For example, "
                "an "
                f"empty {origin.__name__} is taken for any {target_type}."
            ),
            stacklevel=2,
        )
    if origin is list:
        return all(isinstance(one, inside[0]) for one in obj)
    if origin is dict:
        return all(isinstance(key, inside[0]) and isinstance(value, inside[1]) for key, value in obj.items())
    if origin is tuple:
        inside = () if inside == ((),) else inside
        return len(inside) == len(obj) and all(isinstance(one, type_) for one, type_ in zip(obj, inside, strict=True))
    return True


# ---- things that a compiled program does later


def fork(func, *args, **kwargs):
    """Begin a call of which the result is asked for later, with `wait`. In Python it runs at once; compiled programs
    may run it beside the rest.
    """
    future = Future()
    future.set_result(func(*args, **kwargs))
    return future


def wait(future):
    """The result of what `fork` began."""
    if future is None:
        raise RuntimeError("jit.wait: Future can't be None")
    return future.wait()


def script_if_tracing(fn):
    """Compile the function when it is first called while torch.jit.trace records, so that its loops and branches stay
    in the recording.
    """

    @functools.wraps(fn)
    def wrapper(*args, **kwargs):
        if not is_tracing():
            return fn(*args, **kwargs)
        if wrapper.__compiled is None:
            from . import script

            wrapper.__compiled = script(wrapper.__original_fn)
        return wrapper.__compiled(*args, **kwargs)

    wrapper.__compiled = None
    wrapper.__original_fn = fn
    wrapper.__script_if_tracing_wrapper = True
    return wrapper


class _IgnoreContextManager:
    """Statements that the compiled program leaves to Python: refused by this compiler, which has no place to put
    them."""

    def __init__(self, **kwargs):
        self.arguments = kwargs

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return False
