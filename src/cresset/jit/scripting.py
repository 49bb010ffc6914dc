"""torch.jit.script: functions, modules and classes to compiled programs."""

import enum
import functools
import inspect
import typing
import warnings

from .. import nn
from ..nn.parameter import is_lazy
from . import _state
from .compiling.unit import Unit
from .marks import export
from .objects import RecursiveScriptModule, ScriptFunction

unit = Unit()  # all that Python sources of this process are compiled to


def script(obj, optimize=None, _frames_up=0, _rcb=None, example_inputs=None):
    """Compile a function, a module (its forward and what is marked with `export`), or a class.

    Args:
        obj: a function, module or class. Of a module a new one is made, which shares its parameters and buffers.
        optimize: has no effect, as in PyTorch, which warns of it.
        _frames_up, _rcb: private to PyTorch; a name is looked up where the function was defined.
        example_inputs: refused: types come from annotations.

    >>> @torch.jit.script
    ... def twice(x: torch.Tensor, times: int) -> torch.Tensor:
    ...     return x * times
    >>> twice(torch.ones(2), 3)
    tensor([3., 3.])
    """
    if not _state._enabled:
        return obj
    if optimize is not None:
        warnings.warn(
            "`optimize` is deprecated and has no effect. Use `with torch.jit.optimized_execution()` instead",
            FutureWarning,
            stacklevel=2,
        )
    if example_inputs is not None:
        raise NotImplementedError(
            "script: example_inputs asks to find out types by running the program, which is not supported; annotate "
            "the parameters"
        )
    if isinstance(obj, (RecursiveScriptModule, ScriptFunction)):
        return obj
    if isinstance(obj, nn.Module):
        lazy = [name for name, held in (*obj.named_parameters(), *obj.named_buffers()) if is_lazy(held)]
        if lazy:
            raise RuntimeError(
                f"script: {type(obj).__name__!r} has uninitialized parameters {', '.join(lazy)}. Did you forget to run "
                "a forward pass?"
            )
        return _script_module(obj)
    if inspect.isclass(obj):
        if issubclass(obj, nn.Module):
            raise RuntimeError(
                f"Type '{obj}' cannot be compiled since it inherits from nn.Module, consider passing an instance "
                "instead"
            )
        if (
            len(obj.__mro__) > 2
            and not issubclass(obj, (enum.Enum, tuple))
            and not hasattr(obj, "__torch_script_interface__")
        ):
            raise RuntimeError(
                f"script: {obj.__name__} inherits from {obj.__mro__[1].__name__}, which TorchScript takes from "
                "classes that programs use, not here (TorchScript classes does not support inheritance yet. Please "
                "directly inherit from 'object'.)"
            )
        obj.__torch_script_class__ = True
        unit.class_type(obj)
        return obj
    if isinstance(obj, (list, dict)):
        return obj
    if not callable(obj):
        raise RuntimeError(f"script: expected a function, a module or a class, got {type(obj).__name__}")
    if inspect.ismethod(obj):
        raise RuntimeError(
            f"script: {obj.__qualname__} is a method of an object; script the module, and mark the method with "
            "torch.jit.export"
        )
    return _script_function(obj)


def _script_module(module):
    type = unit.module_type(module)
    for method in list(type.methods.values()):
        unit.defined(method)
    for hook in (*type.forward_pre_hooks, *type.forward_hooks):
        unit.defined(hook)
    return RecursiveScriptModule._from(type, module)


def _script_function(function):
    known = _state._jit_caching_layer.get(function)
    if known is None:
        compiled = unit.defined(unit.function(function))
        known = ScriptFunction(compiled)
        functools.update_wrapper(known, function)
        _state._jit_caching_layer[function] = known
    return known


def script_method(fn):
    """Mark a method of a class that is derived from ScriptModule: it is compiled when a module of the class is made."""
    return export(fn) if _state._enabled else fn


__all__: typing.Sequence[str] = ["script", "script_method", "unit"]
