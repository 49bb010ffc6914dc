"""Schemas from type hints."""

import inspect
import types
import typing
from collections.abc import Sequence

import cresset

from .._native import Tensor
from ..ops.tags import Tag


def _hint_text(hint):
    """The schema's type for a type hint; None if there is none."""
    simple = {
        Tensor: "Tensor", int: "SymInt", float: "float", bool: "bool", str: "str", cresset.dtype: "ScalarType",
        cresset.device: "Device", complex: "Scalar",
    }  # fmt: skip
    if hint in simple:
        return simple[hint]
    origin, inside = typing.get_origin(hint), typing.get_args(hint)
    is_union = origin in (typing.Union, types.UnionType)
    if is_union and {int, float} <= set(inside) <= {int, float, bool, complex}:
        return "Scalar"
    if is_union and type(None) in inside:
        rest = [part for part in inside if part is not type(None)]
        text = _hint_text(rest[0] if len(rest) == 1 else typing.Union[tuple(rest)])  # noqa: UP007 (the parts are not known here)
        return None if text is None else text + "?"
    if origin in (list, Sequence, tuple) and (origin is not tuple or (len(inside) == 2 and inside[1] is ...)):
        text = _hint_text(inside[0])
        is_known = text is not None and (not text.endswith("?") or text == "Tensor?")  # only tensors may be missing
        return text + "[]" if is_known else None
    return None


# What a result and a parameter may be, for who asks for the list.
SUPPORTED_RETURN_TYPES = {Tensor: "Tensor", list[Tensor]: "Tensor[]", int: "SymInt", float: "float", bool: "bool"}
_SINGLE = (Tensor, int, float, bool, str, int | float | bool, cresset.dtype, cresset.device)


def _maybe(hint):
    """Optional[hint]: who reads the list asks for typing.Union, which `hint | None` is not."""
    return typing.Union[hint, None]  # noqa: UP007


SUPPORTED_PARAM_TYPES = {
    hint: _hint_text(hint)
    for single in _SINGLE
    for hint in (
        *(single, _maybe(single), Sequence[single], list[single]),  # type: ignore[valid-type]
        *(_maybe(Sequence[single]), _maybe(list[single])),  # type: ignore[valid-type]
        *((Sequence[_maybe(single)], list[_maybe(single)]) if single is Tensor else ()),  # type: ignore[valid-type,misc]
    )
}


def infer_schema(prototype_function, /, *, mutates_args, op_name=None, tags=()):
    """The schema that a function's type hints say.

    >>> def f(x: cresset.Tensor, n: int = 1) -> cresset.Tensor: ...
    >>> cresset.library.infer_schema(f, mutates_args=())
    '(Tensor x, SymInt n=1) -> Tensor'
    """
    signature = inspect.signature(prototype_function)
    who = "infer_schema(func): "
    hints = _hints_of(prototype_function, who)
    parts, keyword_only, seen = [], False, []
    for number, (name, parameter) in enumerate(signature.parameters.items()):
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise ValueError(
                who
                + f"We do not support positional-only args, varargs, or varkwargs. Got func with signature {signature})"
            )
        if parameter.kind is parameter.KEYWORD_ONLY and not keyword_only:
            keyword_only = True
            parts.append("*")
        if name not in hints:
            raise ValueError(
                who + f"Parameter {name} must have a type annotation. Got func with signature {signature})"
            )
        text = _hint_text(hints[name])
        if text is None:
            raise ValueError(
                who + f"Parameter {name} has unsupported type {hints[name]}. {_hint_for(hints[name])}"
                f"Got func with signature {signature})"
            )
        seen.append(name)
        if mutates_args == "unknown" or name in mutates_args:
            if not text.startswith("Tensor"):
                if mutates_args != "unknown":
                    raise ValueError(
                        who + f"Parameter {name} is in mutable_args but only Tensors or collections of Tensors can "
                        "be mutated"
                    )
            else:
                text = f"Tensor(a{number}!)" + text[6:]
        default = ""
        if parameter.default is not parameter.empty:
            value = parameter.default
            if not (value is None or isinstance(value, (int, float, bool, str, cresset.dtype, cresset.device))):
                raise ValueError(
                    who + f"Parameter {name} has an unsupported default value type {type(value)}. Got func with "
                    f"signature {signature})"
                )
            default = f"={value}" if not isinstance(value, (str, cresset.device)) else f'="{value}"'
            default = default.replace("=torch.", "=")
        parts.append(f"{text} {name}{default}")
    if mutates_args != "unknown" and (unknown := set(mutates_args) - set(seen)):
        raise ValueError(
            who + f"{unknown} in mutates_args were not found in the function's arguments. mutates_args should "
            "contain the names of all args that the custom op mutates"
        )
    _check_tagged_signature(signature, hints, mutates_args, tags, who)
    returned = _tagged_result(parts, tags) or _result_text(hints, signature, who)
    return f"{op_name or ''}({', '.join(parts)}) -> {returned}"


def _hints_of(function, who):
    try:
        return typing.get_type_hints(function)
    except NameError as error:
        raise ValueError(
            who + f"Unsupported type annotation: {error}. It is not a type. Got func with signature "
            f"{inspect.signature(function)})"
        ) from None


def _hint_for(hint):
    """What to write instead of a tuple, which stands for a list in schemas."""
    listed = tuple_to_list(hint) if hint is tuple or typing.get_origin(hint) is tuple else None
    return "" if listed is None else f"For example, {listed} would be supported instead. "


def tuple_to_list(tuple_type):
    """The list type that stands for a tuple type: `tuple[int, int]` is `list[int]`.

    >>> from cresset._library.infer_schema import tuple_to_list
    >>> tuple_to_list(tuple[int, int])
    list[int]
    """
    args = typing.get_args(tuple_type)
    if not args:
        return list
    if len(args) == 2 and args[1] is ...:
        return list[args[0]]
    if len(set(args)) == 1:
        return list[args[0]]
    return list[typing.Union[tuple(args)]]  # noqa: UP007 (the parts are not known here)


def _check_tagged_signature(signature, hints, mutates_args, tags, who):
    """Whether a function's hints are what the tags inplace and out promise."""
    parameters = list(signature.parameters.values())
    if Tag.inplace in tags:
        first = parameters[0] if parameters else None
        if first is None or first.kind is first.KEYWORD_ONLY:
            raise ValueError(who + f"torch.Tag.inplace asks for a positional argument. Got {signature}")
        if hints.get(first.name) is not Tensor:
            raise ValueError(
                who + f"torch.Tag.inplace: the first positional argument must be a Tensor. Got {signature}"
            )
        if set(mutates_args) != {first.name}:
            raise ValueError(
                who + f"torch.Tag.inplace: mutates_args must be the first argument, {first.name!r}, got {mutates_args}"
            )
        if hints.get("return") is not Tensor:
            raise ValueError(who + f"torch.Tag.inplace: the return annotation must be Tensor. Got {signature}")
    if Tag.out in tags:
        places = [p for p in parameters if p.name in mutates_args]
        if any(p.kind is not p.KEYWORD_ONLY for p in places):
            raise ValueError(who + f"torch.Tag.out: what it writes to must be keyword-only. Got {signature}")
        if not places:
            raise ValueError(
                who + f"torch.Tag.out: at least one keyword-only argument must be written to. Got {signature}"
            )
        if any(hints.get(p.name) is not Tensor for p in places):
            raise ValueError(who + f"torch.Tag.out only supports Tensor as what it writes to. Got {signature}")
        expected = Tensor if len(places) == 1 else tuple[(Tensor,) * len(places)]
        if hints.get("return") != expected and typing.get_args(hints.get("return")) != (Tensor,) * len(places) * (
            len(places) > 1
        ):
            raise ValueError(
                who
                + f"torch.Tag.out: the return annotation must name a Tensor for each written argument. Got {signature}"
            )


def _tagged_result(parts, tags):
    """The result of an operator that gives back what it writes to."""
    if Tag.inplace not in tags and Tag.out not in tags:
        return None
    marked = [part.partition(" ")[0] for part in parts if "!" in part]
    return marked[0] if len(marked) == 1 else f"({', '.join(marked)})"


def _result_text(hints, signature, who):
    if "return" not in hints:
        raise ValueError(
            who + f"No return type annotation was provided. Please add one. Got func with signature {signature})"
        )
    hint = hints["return"]
    if hint in (None, type(None)):
        return "()"
    if typing.get_origin(hint) is tuple and ... not in typing.get_args(hint):
        parts = [_hint_text(part) for part in typing.get_args(hint)]
        if None not in parts:
            return f"({', '.join(parts)})"
    text = _hint_text(hint)
    if text is None:
        raise ValueError(who + f"Return has unsupported type {hint}. Got func with signature {signature})")
    return text
