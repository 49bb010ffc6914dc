"""The arguments of a recorded call by the names that the operator's signature gives them."""

import functools
import inspect
import re

import cresset

from ..graph.recording import Value
from ..graph.sizes import Fraction, Size
from ..ops.pointwise import definitions

NUMBERS = (int, float, complex, Size, Fraction)


class Parameter:
    """One parameter of an operator, read from its signature."""

    def __init__(self, text, keyword_only):
        declared, _, default = text.partition("=")
        self.type, _, self.name = declared.rpartition(" ")
        self.keyword_only = keyword_only
        self.required = "=" not in text
        self.default = (
            _DEFAULTS.get(default, default)
            if not re.fullmatch(r"-?[\d.e+-]+", default)
            else float(default)
            if "." in default or "e" in default
            else int(default)
        )

    def fits(self, value, numbers):
        """Whether a value may be given; `numbers`: a number may stand for a tensor, too."""
        kind = self.type.rstrip("?")
        if value is None:
            return self.type.endswith("?") or "?" in self.type
        if kind.startswith("Tensor") and kind.endswith("]"):
            return isinstance(value, (tuple, list)) and all(v is None or isinstance(v, Value) for v in value)
        if kind == "Tensor":
            return isinstance(value, (Value, *NUMBERS) if numbers else Value)
        if kind == "Operand":
            return isinstance(value, (Value, *NUMBERS))
        if kind.startswith("int["):
            return isinstance(value, (tuple, list)) or (
                kind != "int[]" and isinstance(value, (int, Size)) and not isinstance(value, bool)
            )
        if kind in ("int", "bool"):
            return isinstance(value, (int, Size)) and (kind == "bool") == isinstance(value, bool)
        if kind in ("Scalar", "float"):
            return isinstance(value, NUMBERS) or isinstance(value, Value) and value.shape == ()
        if kind == "ScalarType":
            return isinstance(value, cresset.dtype)
        if kind == "str":
            return isinstance(value, str)
        return not isinstance(value, (Value, tuple, list))


_DEFAULTS = {"None": None, "True": True, "False": False, "[]": (), "": None}


@functools.cache
def parameters(signature):
    """The parameters of one overload."""
    text = signature[signature.index("(") + 1 : signature.rindex(") -> ")]
    found, keyword_only = [], False
    for part in re.split(r",\s*(?![^\[]*\])", text):
        if part == "*":
            keyword_only = True
        elif part:
            found.append(Parameter(part, keyword_only))
    return found


def bind(operator, args, kwargs):
    """A dict of all arguments, those left out among them. None: no overload fits."""
    numbers = operator.__name__.rstrip("_") in definitions
    for signature in operator.signatures:
        bound = _bind(parameters(signature), args, kwargs, numbers)
        if bound is not None:
            return bound
    return None


def _bind(declared, args, kwargs, numbers):
    places = [p for p in declared if not p.keyword_only]
    bound, kwargs = {}, dict(kwargs)
    for older, newer in (("self", "input"), ("axis", "dim"), ("keepdims", "keepdim"), ("x", "input"), ("x2", "other")):
        if older in kwargs and any(p.name == newer for p in declared):
            kwargs[newer] = kwargs.pop(older)
    for k, value in enumerate(args):
        if k >= len(places):
            return None
        if places[k].type.endswith("[...]") and isinstance(value, (int, Size)) and not isinstance(value, bool):
            bound[places[k].name] = tuple(args[k:])
            break
        bound[places[k].name] = value
    if any(name in bound for name in kwargs) or any(not any(p.name == name for p in declared) for name in kwargs):
        return None
    bound.update(kwargs)
    for parameter in declared:
        if parameter.name not in bound:
            if parameter.required:
                return None
            bound[parameter.name] = parameter.default
        elif not parameter.fits(bound[parameter.name], numbers):
            return None
    return bound


@functools.cache
def wanted(rule):
    """The names of the parameters of a rule, after the graph."""
    return list(inspect.signature(rule).parameters)[1:]
