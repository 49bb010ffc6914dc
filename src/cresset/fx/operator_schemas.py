"""Arguments of calls by the signatures of what is called."""

import inspect
import numbers
import operator
import types
import typing
import warnings
from collections import namedtuple

import cresset

from .. import _native
from .._ops import OpOverload, OpOverloadPacket
from ..ops import registry

__all__ = [
    "ArgsKwargsPair",
    "create_type_hint",
    "get_signature_for_torch_op",
    "normalize_function",
    "normalize_module",
    "type_matches",
]

ArgsKwargsPair = namedtuple("ArgsKwargsPair", "args kwargs")


def get_signature_for_torch_op(op, return_schemas=False):
    """The signatures of an operator, or None for what is none."""
    if isinstance(op, (OpOverload, OpOverloadPacket)):
        schemas = [op._schema] if isinstance(op, OpOverload) else [getattr(op, name)._schema for name in op.overloads()]
        signatures = [_signature_of(schema) for schema in schemas]
        return (signatures, schemas) if return_schemas else signatures
    if not isinstance(op, _native.Operator):
        return (None, None) if return_schemas else None
    signatures = [registry.signature_of(text) for text in op.signatures if ".older" not in text.partition("(")[0]]
    return (signatures, list(op.signatures)) if return_schemas else signatures


def _signature_of(schema):
    """The signature of an operator of aten; its first tensor goes by the name that torch's functions give it."""
    return inspect.Signature(
        [
            inspect.Parameter(
                "input" if argument.name == "self" else argument.name,
                inspect.Parameter.KEYWORD_ONLY if argument.kwarg_only else inspect.Parameter.POSITIONAL_OR_KEYWORD,
                default=argument.default_value if argument.has_default_value() else inspect.Parameter.empty,
                annotation=str(argument.type),
            )
            for argument in schema.arguments
            if argument.name != "from"
        ]
    )


def create_type_hint(x):
    """For a list or tuple of types, the type of such a list or tuple; anything else as it is.

    >>> cresset.fx.operator_schemas.create_type_hint([int, bool])
    list[int]
    """
    if not isinstance(x, (list, tuple)):
        return x
    try:
        widest = typing.Any if not x else x[0]
        for kind in x[1:]:
            if issubclass(widest, kind):
                widest = kind
            elif not issubclass(kind, widest):
                widest = typing.Any
                break
    except TypeError:
        warnings.warn(f"We were not able to successfully create type hint from the type {x}", stacklevel=2)
        return x
    return list[widest] if isinstance(x, list) else tuple[widest, ...]


def type_matches(signature_type, argument_type):
    """Whether an argument of one type can be given where a signature says another.

    >>> cresset.fx.operator_schemas.type_matches(list[int], int)  # as kernel_size=3 is
    True
    """
    if signature_type is argument_type:
        return True
    origin, inside = typing.get_origin(signature_type), typing.get_args(signature_type)
    if origin in (typing.Union, types.UnionType):
        return signature_type == argument_type or any(type_matches(one, argument_type) for one in inside)
    if origin is list:
        return _list_takes(inside[0], argument_type)
    if signature_type is int and argument_type is cresset.dtype:  # which a schema writes as an integer
        return True
    if signature_type is numbers.Number and argument_type in (int, float):
        return True
    classes = inspect.isclass(argument_type) and inspect.isclass(signature_type)
    return classes and issubclass(argument_type, signature_type)


def _list_takes(part, argument_type):
    if argument_type is int and part is int:
        return True
    if not inspect.isclass(part) or typing.get_origin(part):
        warnings.warn(f"Does not support nested parametric types, got list[{part}]. Please file a bug.", stacklevel=3)
        return False
    origin, inside = typing.get_origin(argument_type), typing.get_args(argument_type)
    if origin is list:
        return issubclass(inside[0], part)
    return origin is tuple and all(one is ... or issubclass(one, part) for one in inside if one != ())


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
