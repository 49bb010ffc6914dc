"""Types of Python's classes: enumerations, named tuples, interfaces, and classes whose methods are compiled."""

import builtins
import copy
import enum
import inspect
import sys

import cresset
from cresset import nn

from ...graph import types
from ...graph.function import Argument, Function, FunctionSchema
from ..marks import _qualified_name, is_ignored_fn, should_drop
from . import annotating
from .dataclass_methods import dataclass_methods
from .errors import CompileError
from .functions import Definition, compile_into, names_of, read, signature

# Functions of a class that programs do not call: its picture, what copies a dataclass (from Python 3.13 on) and what
# gives annotations (from 3.14 on).
NO_METHODS = ("__repr__", "__replace__", "__annotate__", "__annotate_func__")


class Classes:
    """The part of Unit that knows classes."""

    def class_type(self, python):
        """The type of a Python class, or None if it has none. A name (from TorchScript's text) has none here."""
        if isinstance(python, str):
            return None
        if python in self.classes:
            return self.classes[python]
        if issubclass(python, enum.Enum):
            return self._enum(python)
        if issubclass(python, tuple) and hasattr(python, "_fields"):
            return self._named_tuple(python)
        if getattr(python, "__torch_script_interface__", False):
            return self._interface(python)
        if (
            issubclass(python, (nn.Module, cresset.Tensor, BaseException))
            or python.__module__ in ("builtins", "typing")
            or not _has_source(python)
        ):
            return None
        return self.script_class(python)

    def _enum(self, python):
        inside = None
        for member in python:
            one = self.infer(member.value)
            inside = one if inside is None else types.unify(inside, one) if one is not None else None
            if inside is None:
                raise CompileError(None, f"the members of {python.__name__} are not of one type that programs know")
        self.classes[python] = types.EnumType(
            self.free_name(_qualified_name(python)), inside, {m.name: m for m in python}, python
        )
        return self.classes[python]

    def _named_tuple(self, python):
        hints = getattr(python, "__annotations__", {})
        defaults = getattr(python, "_field_defaults", {})
        module = sys.modules.get(python.__module__)
        scope = annotating.Lookup(vars(module) if module is not None else {}, vars(builtins))
        made = [
            annotating.from_python(hints.get(field, cresset.Tensor), self.class_type, names=scope)
            for field in python._fields
        ]
        name = self.free_name(_qualified_name(python))
        self.classes[python] = types.NamedTupleType(
            name, python._fields, made, python, [defaults[f] for f in python._fields if f in defaults]
        )
        return self.classes[python]

    def tuple_schema(self, type):
        """The parameters that make a named tuple."""
        first_default = len(type.fields) - len(type.defaults)
        arguments = [
            Argument(
                name,
                one,
                type.defaults[number - first_default] if number >= first_default else None,
                number >= first_default,
            )
            for number, (name, one) in enumerate(zip(type.fields, type.elements(), strict=True))
        ]
        return FunctionSchema(type.qualified_name or "tuple", arguments, type)

    def _class_method(self, python, function):
        """A method of the class: a function that sees the class under the name of its first parameter."""
        read_once = read(function)
        tree = copy.deepcopy(read_once.tree)
        own = tree.args.args.pop(0).arg
        names = annotating.Lookup({own: python}, *read_once.names.tables)
        definition = Definition(tree, read_once.source, names)
        return Function(
            self.free_name(_qualified_name(function)), compile=lambda made: compile_into(self, made, definition)
        )

    def _interface(self, python):
        made = types.InterfaceType(self.free_name(_qualified_name(python)), issubclass(python, nn.Module), python)
        self.classes[python] = made
        for name, function in vars(python).items():
            if inspect.isfunction(function) and not (name.startswith("__") and name.endswith("__")):
                arguments, result = signature(self, read(function), made)
                made.methods[name] = Function(
                    f"{made.qualified_name}.{name}",
                    FunctionSchema(name, arguments, result or types.TensorType()),
                    owner=made,
                )
        return made

    def script_class(self, python):
        """The ClassType of a Python class, with its methods compiled when they are first called; __init__ at once,
        which says what the attributes are.
        """
        if python in self.classes:
            return self.classes[python]
        made = types.ClassType(self.free_name(_qualified_name(python)), python_class=python)
        self.classes[python] = made
        try:
            self._fill_class(made, python)
        except Exception:
            del self.classes[python]
            raise
        return made

    def _fill_class(self, made, python):
        names, written = None, dataclass_methods(python)
        for name, thing in inherited(python).items():
            if name in written:
                made.methods[name] = self._method(made, name, thing, written[name])
                continue
            if inspect.isfunction(thing) and name not in NO_METHODS:
                names = names or names_of(thing)
                if should_drop(thing) or is_ignored_fn(thing):
                    made.ignored[name] = thing
                else:
                    made.methods[name] = self._method(made, name, thing)
            elif isinstance(thing, staticmethod):
                made.static_methods[name] = self.function(thing.__func__)
            elif isinstance(thing, classmethod):
                made.static_methods[name] = self._class_method(python, thing.__func__)
            elif isinstance(thing, property) and not is_ignored_fn(thing.fget):
                getter = self._method(made, f"{name}_getter", thing.fget)
                made.methods[getter.name] = getter
                setter = self._method(made, f"{name}_setter", thing.fset) if thing.fset is not None else None
                if setter is not None:
                    made.methods[setter.name] = setter
                made.properties[name] = (getter, setter)
        hints = {n: h for base in reversed(python.__mro__) for n, h in annotating.own_annotations(base).items()}
        for name, hint in hints.items():
            made.attributes[name] = (
                annotating.from_text(hint, names or {}, self.class_type)
                if isinstance(hint, str)
                else annotating.from_python(hint, self.class_type)
            )
        if "__init__" in made.methods:
            self.defined(made.methods["__init__"])

    def _method(self, owner, name, python, definition=None):
        def compile(function):
            own = next((base for base in owner.python_class.__mro__ if vars(base).get(name) is python), None)
            found = definition or read(python)
            # The class's own name, which is not there yet where the class is compiled by its decorator.
            found.names.tables = (*found.names.tables, {owner.python_class.__name__: owner.python_class})
            compile_into(self, function, found, self_type=owner, defined_in=own or owner.python_class)

        return Function(f"{owner.qualified_name}.{name}", owner=owner, compile=compile, original=python)


def inherited(python):
    """What a class and the classes above it define, by name."""
    found = {}
    for base in reversed(python.__mro__[:-1]):
        if base.__name__ not in ("Generic", "Protocol"):
            found.update(vars(base))
    return found


def _has_source(python):
    try:
        return inspect.getsourcefile(python) is not None
    except TypeError:
        return False
