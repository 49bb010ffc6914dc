"""The methods that `@dataclass` makes, as source that can be compiled: Python keeps none of them."""

import ast
import builtins
import dataclasses
import inspect
import sys

from ...graph.source import Source
from .annotating import Lookup
from .errors import CompileError
from .functions import Definition

_ORDER = {"__lt__": "<", "__le__": "<=", "__gt__": ">", "__ge__": ">="}


def dataclass_methods(python):
    """{name: Definition} of what `@dataclass` has made for a class; nothing for other classes."""
    if not dataclasses.is_dataclass(python):
        return {}
    fields = dataclasses.fields(python)
    names = dict(vars(sys.modules[python.__module__])) if python.__module__ in sys.modules else {}
    made = {}
    if python.__dataclass_params__.init and not _is_written(python, "__init__"):
        made["__init__"] = _definition(python, _init(python, fields, names), names)
    for name, text in (("__eq__", _equal(fields)), *((name, _order(fields, sign)) for name, sign in _ORDER.items())):
        if vars(python).get(name) is not None and not _is_written(python, name):
            made[name] = _definition(python, f"def {name}(self, other: OwnClass) -> bool:\n{text}", names)
    return made


def _is_written(python, name):
    """Whether the class's own source defines the method."""
    try:
        inspect.getsource(vars(python)[name])
    except (OSError, TypeError, KeyError):
        return False
    return True


def _init(python, fields, names):
    parameters, lines = [], []
    for field in fields:
        if field.default_factory is not dataclasses.MISSING:
            raise CompileError(None, f"class {python.__name__}: default_factory of {field.name} is not supported")
        names[f"type_of_{field.name}"] = field.type
        if field.init:
            text = f"{field.name}: type_of_{field.name}"
            if field.default is not dataclasses.MISSING:
                if not isinstance(field.default, (bool, int, float, str, type(None))):
                    raise CompileError(
                        None,
                        f"class {python.__name__}: the default of {field.name} is a "
                        f"{type(field.default).__name__}, which is not supported",
                    )
                text += f" = {field.default!r}"
            parameters.append(("*, " if field.kw_only and not any("*" in p for p in parameters) else "") + text)
            lines.append(f"    self.{field.name} = {field.name}")
        elif field.default is not dataclasses.MISSING:
            lines.append(f"    self.{field.name} = {field.default!r}")
    if "__post_init__" in vars(python):
        lines.append("    self.__post_init__()")
    return f"def __init__(self, {', '.join(parameters)}) -> None:\n" + ("\n".join(lines) or "    pass")


def _equal(fields):
    parts = [f"self.{field.name} == other.{field.name}" for field in fields if field.compare]
    return f"    return {' and '.join(parts) or 'True'}"


def _order(fields, sign):
    """Compare the first fields that differ."""
    lines = []
    for field in fields:
        if field.compare:
            a, b = f"self.{field.name}", f"other.{field.name}"
            lines.append(f"    if {a} != {b}:\n        return {a} {sign[0]} {b}")
    return "\n".join([*lines, f"    return {'=' in sign}"])


def _definition(python, text, names):
    (tree,) = ast.parse(text).body
    scope = Lookup({**names, "OwnClass": python}, vars(builtins))
    return Definition(tree, Source(text, f"<dataclass {python.__name__}>"), scope)
