"""torch.jit.script: functions, modules and classes to compiled programs."""

import copy
import enum
import functools
import inspect
import typing
import warnings

from .. import nn
from ..graph.types import ClassType, InterfaceType
from ..nn.parameter import is_lazy
from . import _state, containers, emit_hooks
from .compiling.unit import Unit
from .frontend import NotSupportedError
from .marks import export
from .objects import RecursiveScriptModule, ScriptFunction, as_object

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
    obj = _prepared(obj, {})
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
    if isinstance(obj, nn.Module) and hasattr(obj, "_parameters"):
        lazy = [name for name, held in (*obj.named_parameters(), *obj.named_buffers()) if is_lazy(held)]
        if lazy:
            raise RuntimeError(
                f"script: {type(obj).__name__!r} has uninitialized parameters {', '.join(lazy)}. Did you forget to run "
                "a forward pass?"
            )
    if isinstance(obj, nn.Module):
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
        _compile_class(obj)
        return obj
    if type(obj) in (list, dict):
        return containers.scripted(obj, unit.infer(obj))
    if isinstance(obj, (list, dict)):
        return obj
    if not callable(obj):
        kind = unit.class_type(type(obj))
        made = as_object(obj, kind) if isinstance(kind, ClassType) else None
        if made is None:
            raise RuntimeError(f"script: expected a function, a module or a class, got {type(obj).__name__}")
        return made
    if not hasattr(obj, "__name__"):
        raise NotSupportedError(
            None, f"script: objects of {type(obj).__name__} cannot be compiled; they can't take variable number of "
            "arguments or keep attributes; script a function, a class or a module",
        )  # fmt: skip
    if inspect.ismethod(obj):
        raise RuntimeError(
            f"script: {obj.__qualname__} is a method of an object; script the module, and mark the method with "
            "torch.jit.export"
        )
    return _script_function(obj)


def _prepared(obj, seen):
    """What an object says should be compiled in its place, by a method `__prepare_scriptable__`; of a module that has
    such a submodule, a copy in which it is exchanged. The tensors are shared.
    """
    if id(obj) in seen:
        return seen[id(obj)]
    found = obj.__prepare_scriptable__() if hasattr(type(obj), "__prepare_scriptable__") else obj
    seen[id(obj)] = found
    if not isinstance(found, nn.Module) or not hasattr(found, "_modules"):
        return found
    if not any(hasattr(type(inner), "__prepare_scriptable__") for inner in found.modules()):
        return found
    made = seen[id(obj)] = seen[id(found)] = copy.copy(found)
    made._modules = {name: _prepared(inner, seen) for name, inner in found._modules.items()}
    return made


def _compile_class(python):
    kind = unit.class_type(python)
    for method in list(getattr(kind, "methods", {}).values()):
        if not isinstance(kind, InterfaceType):
            unit.defined(method)


def _script_module(module):
    if not hasattr(module, "_parameters"):
        raise RuntimeError(f"{type(module).__qualname__} has not been initialized, did you forget to call 'super()'?")
    kind = unit.module_type(module)
    for method in list(kind.methods.values()):
        unit.defined(method)
    for hook in (*kind.forward_pre_hooks, *kind.forward_hooks):
        unit.defined(hook)
    made = RecursiveScriptModule._from(kind, module)
    emit_hooks.module_made(made)
    return made


def _script_function(function):
    known = _state._jit_caching_layer.get(function)
    if known is None:
        compiled = unit.defined(unit.function(function))
        known = ScriptFunction(compiled)
        functools.update_wrapper(known, function)
        _state._jit_caching_layer[function] = known
    return known


def script_method(fn):
    """Mark a method of a class that is derived from ScriptModule: it is compiled when a module of the class is made.

    >>> class Twice(torch.jit.ScriptModule):
    ...     @torch.jit.script_method
    ...     def forward(self, x):
    ...         return 2 * x
    >>> Twice()(torch.tensor([1.0]))
    tensor([2.])
    """
    return export(fn) if _state._enabled else fn


__all__: typing.Sequence[str] = ["script", "script_method", "unit"]
