"""Arguments of calls by the signatures of what is called."""

import inspect
import operator
from collections import namedtuple

import cresset

from .. import _native
from ..ops import registry

__all__ = ["ArgsKwargsPair", "get_signature_for_torch_op", "normalize_function", "normalize_module"]

ArgsKwargsPair = namedtuple("ArgsKwargsPair", "args kwargs")


def get_signature_for_torch_op(op, return_schemas=False):
    """The signatures of an operator, or None for what is none."""
    if not isinstance(op, _native.Operator):
        return (None, None) if return_schemas else None
    signatures = [registry.signature_of(text) for text in op.signatures if ".older" not in text.partition("(")[0]]
    return (signatures, list(op.signatures)) if return_schemas else signatures


def normalize_function(target, args, kwargs=None, arg_types=None, kwarg_types=None, normalize_to_only_use_kwargs=False):
    """The arguments of a call by name (those that must be given by place stay there unless all go by name); None where
    no signature fits.
    """
    kwargs = kwargs or {}
    if not callable(target):
        raise AssertionError(f"normalize_function: expected a callable, got {type(target)}")
    if getattr(operator, getattr(target, "__name__", ""), None) is target:
        target = getattr(cresset, target.__name__.strip("_"), None)
        if target is None:
            return None
    signatures = get_signature_for_torch_op(target)
    if signatures is None:
        try:
            signatures = [inspect.signature(inspect.unwrap(target))]
        except (TypeError, ValueError):
            return None
    for signature in signatures:
        if _types_fit(signature, arg_types, kwarg_types):
            normal = _bound(signature, args, kwargs, normalize_to_only_use_kwargs)
            if normal is not None:
                return normal
    return None


def _types_fit(signature, arg_types, kwarg_types):
    """Whether a form of an operator takes arguments of these types, where types are given."""
    try:
        bound = (
            signature.bind(*(arg_types or ()), **(kwarg_types or {}))
            if arg_types
            else signature.bind_partial(**(kwarg_types or {}))
        )
    except TypeError:
        return False
    for name, kind in bound.arguments.items():
        wanted = str(signature.parameters[name].annotation)
        if (
            wanted.startswith("Tensor")
            and isinstance(kind, type)
            and not issubclass(kind, (cresset.Tensor, int, float))
        ):
            return False
        if wanted in ("int", "bool", "float") and isinstance(kind, type) and issubclass(kind, cresset.Tensor):
            return False
    return True


def normalize_module(root, target, args, kwargs=None, normalize_to_only_use_kwargs=False):
    """normalize_function for the forward of a submodule."""
    try:
        module = root.get_submodule(target)
    except AttributeError:
        raise RuntimeError(
            f"Tried to normalize arguments for module target {target} but root did not have that target!"
        ) from None
    return _bound(inspect.signature(module.forward), args, kwargs or {}, normalize_to_only_use_kwargs)


def _bound(signature, args, kwargs, only_names):
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError:
        return None
    bound.apply_defaults()
    places, names = [], {}
    for parameter in signature.parameters.values():
        value = bound.arguments[parameter.name]
        if parameter.kind is parameter.VAR_POSITIONAL:
            if only_names and value:
                return None
            places += value
        elif parameter.kind is parameter.VAR_KEYWORD:
            names.update(value)
        elif only_names or parameter.kind is parameter.KEYWORD_ONLY or parameter.default is not parameter.empty:
            names[parameter.name] = value
        else:
            places.append(value)
    if names.get("out") is None:
        names.pop("out", None)
    return ArgsKwargsPair(tuple(places), names)
