"""A Unit: what was compiled, by which names, and what to compile when a program calls a Python object."""

import ast
import functools
import inspect
import itertools

from cresset import nn

from ...graph import types
from ...graph.function import Function, FunctionSchema
from ...ops import aten_table, namespaces
from .. import emit_hooks
from ..frontend import FrontendError
from ..marks import _get_fn_overloads, _qualified_name, is_ignored_fn, is_ours, should_drop
from . import annotating, sugar
from .builtins import definition_of, kind_of, tensor_definition
from .classes import Classes
from .errors import CompileError
from .functions import compile_into, read, signature, unwrapped
from .modules import Modules


class Unit(Classes, Modules):
    """Compiles and remembers."""

    def __init__(self):
        self.taken = {}  # qualified name -> how often it was asked for
        self.functions = {}  # (Python function, types of its parameters) -> Function
        self.classes = {}  # Python class -> type
        self.module_types = {}  # what tells module types apart -> ClassType
        self.compiling = []  # the Functions in work

    def forget(self):
        """Let go of all that was compiled. Programs that hold some of it keep it; what is compiled later gets new
        names.
        """
        for table in (self.functions, self.classes, self.module_types):
            table.clear()

    def free_name(self, name):
        """The qualified name, with a mark in it where it is taken."""
        count = self.taken.get(name, 0)
        self.taken[name] = count + 1
        if not count:
            return name
        base, _, last = name.rpartition(".")
        return self.free_name(f"{base}.___torch_mangle_{count - 1}.{last}")

    def infer(self, value):
        """The type of a Python value, or None."""
        return annotating.infer(value, self.class_type)

    # ---- functions

    def function(self, python, given=None):
        """The Function of a Python function, compiled when it is first needed. `given`: the types of parameters without
        annotations.
        """
        original = unwrapped(python)
        key = (original, None if given is None else tuple(sorted((name, str(type)) for name, type in given.items())))
        if key not in self.functions:
            ours = is_ours(original)

            def compile(function):
                definition = read(original)
                try:
                    compile_into(self, function, definition, given=given, loose=ours)
                except Exception:
                    self.functions.pop(key, None)
                    raise

            self.functions[key] = Function(
                self.free_name(_qualified_name(original)), compile=compile, original=original
            )
        return self.functions[key]

    def defined(self, function, place=None):
        """The function, compiled. Errors inside say who asked for it."""
        if function._compile is None:
            if function.schema is None:
                raise CompileError(
                    place, f"function '{function.name}' is called recursively. Recursive calls are not supported"
                )
            return function
        caller = self.compiling[-1] if self.compiling else None
        self.compiling.append(function)
        try:
            function.ensure_defined()
        except CompileError as problem:
            if place is not None:
                problem.called_from(_short_name(function), _short_name(caller) if caller else place.filename, place)
            raise
        finally:
            self.compiling.pop()
        if function.owner is None:
            emit_hooks.function_made(function)
        return function

    def ignored(self, python, self_type=None):
        """The Function of one that is left to Python: its signature, and it."""
        definition = read(python)
        try:
            arguments, result = signature(self, definition, self_type)
        except Exception:
            if not should_drop(python):
                raise
            arguments, result = [], self._declared_result(definition)
        schema = FunctionSchema(definition.name, arguments, result or types.TensorType())
        return Function(_qualified_name(unwrapped(python)), schema, python=python)

    def _declared_result(self, definition):
        """What a function says it gives, where its parameters have no types; anything where that has none either."""
        if definition.tree.returns is None:
            return types.AnyType()
        try:
            return annotating.from_tree(definition.tree.returns, definition.names, self.class_type)
        except CompileError:
            return types.AnyType()

    def as_function(self, thing):
        """The Function behind a scripted function, else None."""
        found = getattr(thing, "_function", None)
        return found if isinstance(found, Function) else None

    def tensor_function(self, name):
        """What a method of tensors is, where it is no operator."""
        found = tensor_definition(name)
        return sugar.Py(found) if found is not None else None

    def special_member(self, base, name, emitter, tree):
        """A member of a meaning that only this kind of source has; None here."""
        return None

    def default_literal(self, tree, source):
        """The value of a parameter's default in source that has no Python function."""
        return ast.literal_eval(tree)

    # ---- calls of Python objects

    def callable_meaning(self, thing, emitter, args, kwargs, tree):
        """Write the call of a Python object. None if it cannot be called."""
        operator = self._operator(thing)
        if operator is not None:
            return emitter.call(operator, args, kwargs, tree)
        compiled = self.as_function(thing)
        if compiled is not None:
            return emitter.call_function(compiled, args, kwargs, tree)
        if hasattr(thing, "_boolean_dispatch"):
            return self._dispatched(thing._boolean_dispatch, emitter, args, kwargs, tree)
        written = definition_of(thing)
        if hasattr(written, "_boolean_dispatch"):
            return self._dispatched(written._boolean_dispatch, emitter, args, kwargs, tree)
        if written is not None:
            if inspect.isclass(written):
                return emitter.make_object(self.class_type(written), args, kwargs, tree)
            return self._call_definition(written, emitter, args, kwargs, tree)
        kind = kind_of(thing)
        if kind is not None:
            return emitter.call(sugar.Operator(kind), args, kwargs, tree)
        if isinstance(thing, functools.partial):
            given = {name: sugar.Py(value, constant=True) for name, value in thing.keywords.items()}
            args = [*(sugar.Py(value, constant=True) for value in thing.args), *args]
            return emitter.call_python(sugar.Py(thing.func), args, given | kwargs, tree)
        if isinstance(thing, types.Type):
            return emitter.make_object(thing, args, kwargs, tree)
        if inspect.isclass(thing):
            if is_ignored_fn(thing):
                raise FrontendError(
                    emitter.source.range_of(tree), f"Cannot instantiate class '{thing.__name__}' in a script function"
                )
            found = self.class_type(thing)
            return emitter.make_object(found, args, kwargs, tree) if found is not None else None
        if isinstance(thing, nn.Module):
            raise emitter.error(
                tree,
                (
                    f"a module ({type(thing).__name__}) that is no attribute of the module being compiled cannot be "
                    "called; assign it to an attribute in __init__"
                ),
            )
        if not inspect.isfunction(unwrapped(thing)):
            return None
        return self._call_python_function(thing, emitter, args, kwargs, tree)

    def _call_python_function(self, thing, emitter, args, kwargs, tree):
        if should_drop(thing):
            return emitter.dropped_call(self.ignored(thing).schema, tree)
        if is_ignored_fn(thing):
            return emitter.call_function(self.ignored(thing), args, kwargs, tree)
        original = unwrapped(thing)
        overloads = _get_fn_overloads(_qualified_name(original)) if hasattr(original, "__name__") else None
        if overloads:
            return self._overloaded(original, overloads, emitter, args, kwargs, tree)
        if is_ours(original):
            return self._call_definition(original, emitter, args, kwargs, tree)
        return emitter.call_function(self.function(thing), args, kwargs, tree)

    def _call_definition(self, original, emitter, args, kwargs, tree):
        """The call of a function of our own: parameters without annotations take the types of the arguments."""
        args, kwargs = emitter.values(args, kwargs, tree)
        try:
            bound = inspect.signature(original).bind(*args, **kwargs)
        except TypeError as problem:
            raise emitter.error(tree, f"{original.__name__}() {problem}") from None
        given = {
            name: value.type()
            for name, value in bound.arguments.items()
            if name not in original.__annotations__ and hasattr(value, "type")
        }
        return emitter.call_function(self.function(original, given), args, kwargs, tree)

    def _overloaded(self, original, overloads, emitter, args, kwargs, tree):
        """The first of several signatures that fits, without conversions if one does; the body is the same."""
        found, problems = [], []
        for overload in overloads:
            arguments, result = signature(self, read(overload))
            key = (original, "overload", str([a.type for a in arguments]))
            if key not in self.functions:
                given = {a.name: a.type for a in arguments}

                def compile(function, given=given, result=result):
                    definition = read(original)
                    definition.tree.returns = None
                    for argument in definition.tree.args.args:
                        argument.annotation = None
                    body = inspect.unwrap(original)
                    definition.function = _without_hints(body)
                    compile_into(self, function, definition, given=given)

                self.functions[key] = Function(
                    self.free_name(_qualified_name(original)), compile=compile, original=original
                )
            found.append(self.functions[key])
        for convert, function in itertools.product((False, True), found):
            try:
                return emitter.call_function(function, args, kwargs, tree, convert)
            except CompileError as problem:
                problems.append(problem.message)
        raise emitter.error(tree, "no signature fits:\n" + "\n".join(problems))

    def _dispatched(self, dispatch, emitter, args, kwargs, tree):
        index, name = dispatch["index"], dispatch["arg_name"]
        flag = args[index] if index < len(args) else kwargs.get(name)
        if flag is None:
            value = dispatch["default"]
        else:
            value = emitter.constant_text(flag, tree)
        return self.callable_meaning(dispatch["if_true" if value else "if_false"], emitter, args, kwargs, tree)

    @staticmethod
    def _operator(thing):
        """The operator behind `torch.ops.<namespace>.<name>`."""
        if isinstance(thing, (aten_table.AtenPacket, namespaces.OpOverloadPacket)):
            return sugar.Operator(thing._qualified_op_name)
        if isinstance(thing, namespaces.OpOverload):
            return sugar.Operator(f"{thing._schema.namespace}::{thing._schema.op}")
        return None


def _without_hints(function):
    """The function's defaults without its annotations."""

    class Plain:
        __defaults__, __kwdefaults__, __annotations__ = function.__defaults__, function.__kwdefaults__, {}

    return Plain


def _short_name(function):
    """`name` of a function, `Class.name` of a method."""
    owner = function.owner
    return f"{owner.qualified_name.rpartition('.')[2]}.{function.name}" if owner is not None else function.name
