"""Calls: of operators, functions, methods, modules, classes, and of Python's own functions that the compiler knows."""

import ast
import inspect

from ...graph import types
from ...ops import aten_table
from ..frontend import NotSupportedError
from . import sugar
from .builtins import manager_of, packed_definition
from .known import CONDITIONS, KNOWN, READS_TREE
from .matching import match_function, match_operator
from .sugar import Py, Several, is_value


class Calls:
    """The part of Emitter that writes calls."""

    def expression_Call(self, tree, wanted=None):
        if isinstance(tree.func, ast.Name) and tree.func.id == "super" and "super" not in self.variables:
            return self._super(tree)
        callee = self.emit(tree.func)
        if isinstance(callee, Py):
            reader = READS_TREE.get(_key(callee.object))
            if reader is not None:
                return reader(self, tree, wanted)
        if isinstance(callee, sugar.Method) and callee.name == "tolist" and not tree.args and not tree.keywords:
            return self._tolist(callee.value, tree, wanted)
        args, kwargs = self.arguments(tree)
        self.place(tree)
        return self.call(callee, args, kwargs, tree)

    def _tolist(self, value, tree, wanted):
        """The elements of a tensor as nested lists, whose depth and kind of number an annotation has to say."""
        if not isinstance(value.type(), types.TensorType):
            raise self.error(tree, f"'{value.type().annotation_str}' object has no attribute or method 'tolist'")
        if wanted is None:
            raise self.error(tree, "Expected type hint for result of tolist()")
        depth, inside = 0, wanted
        while isinstance(inside, types.ListType):
            depth, inside = depth + 1, inside.element
        kinds = (types.IntType, types.FloatType, types.BoolType, types.ComplexType)
        if type(inside) not in kinds:
            raise self.error(
                tree,
                f"{inside.annotation_str} is not one of the supported element types for tolist: int, float, "
                "complex, bool",
            )
        self.place(tree)
        numbers = [self.constant(depth), self.constant(kinds.index(type(inside)))]
        return self.graph.insert("prim::tolist", [value, *numbers], [wanted]).output()

    def emit_manager(self, tree):
        """The object of a with statement. Some calls are something else outside of one."""
        if isinstance(tree, ast.Call):
            callee = self.emit(tree.func)
            manager = manager_of(callee.object) if isinstance(callee, Py) else None
            if manager is not None:
                return self.make_object(self.unit.class_type(manager), *self.arguments(tree), tree)
        return self.emit(tree)

    def arguments(self, tree):
        """The meanings of a call's arguments."""
        args, kwargs = [], {}
        for argument in tree.args:
            if isinstance(argument, ast.Starred):
                args += self.unpack(self.emit(argument.value), argument)
            else:
                args.append(self.emit(argument))
        for keyword in tree.keywords:
            if keyword.arg is None:
                raise NotSupportedError(self.source.range_of(tree), "keyword-arg expansion is not supported")
            kwargs[keyword.arg] = self.emit(keyword.value)
        return args, kwargs

    def values(self, args, kwargs, tree):
        return [self.value(one, tree) for one in args], {name: self.value(one, tree) for name, one in kwargs.items()}

    def call(self, callee, args, kwargs, tree):
        """Call a meaning."""
        if isinstance(callee, sugar.Special):
            return callee.write(args, kwargs, tree)
        if isinstance(callee, Py):
            return self.call_python(callee, args, kwargs, tree)
        if isinstance(callee, sugar.Operator):
            args, kwargs = self.values(args, kwargs, tree)
            return match_operator(
                self, callee.kind, [*callee.first, *args], {**callee.named, **kwargs}, self.place(tree)
            )
        if isinstance(callee, sugar.Compiled):
            return self.call_function(callee.function, args, kwargs, tree)
        if isinstance(callee, sugar.ClassMaker):
            return self.make_object(callee.type, args, kwargs, tree)
        if isinstance(callee, sugar.Method):
            return self._call_method(callee, args, kwargs, tree)
        if is_value(callee):
            type = callee.type()
            if isinstance(type, types.ClassType):
                return self._call_object(callee, args, kwargs, tree)
            if isinstance(type, types.FunctionType) and type.function is not None:
                return self.call_function(type.function, args, kwargs, tree)
            raise self.error(tree, f"'{type.annotation_str}' object is not callable")
        raise self.error(tree, f"{callee.what} cannot be called")

    def _call_method(self, method, args, kwargs, tree):
        value, name = method.value, method.name
        type = value.type()
        if isinstance(type, types.ClassType):
            args, kwargs = self.values(args, kwargs, tree)
            return self.call_method(value, name, args, kwargs, tree)
        if isinstance(type, types.TensorType):
            return self.tensor_method(value, name, args, kwargs, tree)
        args, kwargs = self.values(args, kwargs, tree)
        place = self.place(tree)
        if isinstance(type, types.FutureType) and name in ("wait", "value"):
            return self.wait(value, tree)
        if isinstance(type, types.DictType) and name == "update" and kwargs:
            raise NotSupportedError(self.source.range_of(tree), "dict.update with keywords isn't supported")
        if isinstance(type, types.TupleType) and name in ("index", "count", "_asdict", "_replace"):
            raise self.error(tree, f"'{type.annotation_str}' object has no attribute or method '{name}'")
        kind = {"__len__": "aten::len"}.get(name, f"aten::{name}")
        if not aten_table.overloads(kind):
            raise self.error(tree, f"'{type.annotation_str}' object has no attribute or method '{name}'")
        return match_operator(self, kind, [value, *args], kwargs, place)

    def _call_object(self, value, args, kwargs, tree):
        type = value.type()
        args, kwargs = self.values(args, kwargs, tree)
        if not type.is_module:
            return self.call_method(value, "__call__", args, kwargs, tree)
        if type.forward_pre_hooks or type.forward_hooks:
            return self._call_with_hooks(value, args, kwargs, tree)
        if args and isinstance(args[0].type(), types.NamedTupleType) and type.python_class is not None:
            packed = packed_definition(type.python_class)
            if packed is not None:
                if "forward__packed" not in type.methods:
                    self.unit.add_method(type, "forward__packed", packed)
                return self.call_method(value, "forward__packed", args, kwargs, tree)
        return self.call_method(value, "forward", args, kwargs, tree)

    def _call_with_hooks(self, value, args, kwargs, tree):
        """What calling a module does: hooks before, forward, hooks behind."""
        type = value.type()
        if kwargs:
            raise NotSupportedError(
                self.source.range_of(tree), "keyword arguments to a module with hooks aren't supported"
            )
        self.place(tree)
        for hook in type.forward_pre_hooks:
            packed = self.value(Several(args), tree)
            given = self.call_function(hook, [value, packed], {}, tree)
            if isinstance(given.type(), types.NoneType):
                continue
            args = self.unpack(given, tree) if isinstance(given.type(), types.TupleType) else [given]
        result = self.call_method(value, "forward", args, {}, tree)
        for hook in type.forward_hooks:
            given = self.call_function(hook, [value, self.value(Several(args), tree), result], {}, tree)
            if not isinstance(given.type(), types.NoneType):
                result = given
        return result

    def call_function(self, function, args, kwargs, tree, convert=True):
        """The call of a compiled function."""
        args, kwargs = self.values(args, kwargs, tree)
        place = self.place(tree)
        if function.python is not None:
            return self._leave_graph(function, match_function(self, function.schema, args, kwargs, place), tree)
        function = self.unit.defined(function, place)
        inputs = match_function(self, function.schema, args, kwargs, place, convert=convert)
        self.graph.place = place
        constant = self.graph.insert(
            "prim::Constant", (), [types.FunctionType(function)], name=function.name, function=function
        ).output()
        return self.graph.insert("prim::CallFunction", [constant, *inputs], [function.schema.returns]).output()

    def _leave_graph(self, function, inputs, tree):
        """The call of a function that is left to Python."""
        self.place(tree)
        return self.graph.insert(
            "prim::PythonOp", inputs, [function.schema.returns], name=function.name, function=function.python
        ).output()

    def dropped_call(self, schema, tree):
        """What is there instead of a call of an unused function: an exception."""
        self.place(tree)
        message = self.constant(f"the function {schema.name} is marked unused, and was called")
        self.graph.insert("prim::RaiseException", [message, self.constant(None)], 0)
        if isinstance(schema.returns, types.NoneType):
            return self.constant(None)
        return self.graph.insert("prim::Uninitialized", (), [schema.returns]).output()

    def make_object(self, type, args, kwargs, tree):
        args, kwargs = self.values(args, kwargs, tree)
        place = self.place(tree)
        if isinstance(type, types.NamedTupleType):
            inputs = match_function(self, self.unit.tuple_schema(type), args, kwargs, place)
            return self.graph.insert("prim::TupleConstruct", inputs, [type]).output()
        if isinstance(type, types.EnumType):
            raise self.error(tree, f"{type.annotation_str} cannot be called; use its members by name")
        if isinstance(type, types.InterfaceType):
            raise self.error(tree, f"{type.annotation_str} is an interface and has no objects of its own")
        if type.is_module:
            raise self.error(
                tree,
                (
                    f"Class {type.annotation_str} does not have an __init__ function defined that could be called "
                    "here: "
                    "modules are made in Python"
                ),
            )
        if "__init__" not in type.methods:
            name = type.annotation_str.rpartition(".")[2]
            raise self.error(tree, f"Class {name} does not have an __init__ function defined")
        made = self.graph.insert("prim::CreateObject", (), [type]).output()
        self.call_method(made, "__init__", args, kwargs, tree)
        return made

    def call_python(self, callee, args, kwargs, tree):
        """The call of a Python object."""
        thing = callee.object
        writer = KNOWN.get(_key(thing))
        if writer is not None:
            return writer(self, args, kwargs, tree)
        if inspect.isclass(thing) and issubclass(thing, BaseException):
            return self._exception(thing, args, tree)
        meaning = self.unit.callable_meaning(thing, self, args, kwargs, tree)
        if meaning is not None:
            return meaning
        raise self.error(
            tree,
            f"Python builtin {thing!r} is currently not supported in Torchscript"
            if inspect.isbuiltin(thing)
            else f"{_describe(thing)} cannot be called in a compiled program",
        )

    def _exception(self, thing, args, tree):
        if len(args) > 1:
            values = [self.value(one, tree) for one in args]
            text = "(" + ", ".join(["{}"] * len(values)) + ")"
            message = self.operator("aten::format", [self.constant(text), *values], tree)
        elif args:
            message = self.value(args[0], tree)
            if not isinstance(message.type(), types.StringType):
                message = self.operator("aten::str", [message], tree)
        else:
            message = self.constant("")
        name = thing.__qualname__.rpartition("<locals>.")[2]
        return sugar.Raised(f"{thing.__module__}.{name}", message)

    def _super(self, tree):
        python_class = self.owner.python_class if self.owner is not None else None
        defined_in = getattr(self, "defined_in", None) or python_class
        if "self" not in self.variables or defined_in is None:
            raise self.error(tree, "super() can only be used in a method")
        return sugar.Super(self.variables["self"].meaning, defined_in)

    # ---- what is known of calls before the program runs

    def known_call(self, tree):
        """A condition that is a call: (value or bool, refinements) if it tells something, else None."""
        try:
            callee = self.emit(tree.func) if isinstance(tree.func, (ast.Name, ast.Attribute)) else None
        except Exception:
            return None
        if not isinstance(callee, Py):
            return None
        reader = CONDITIONS.get(_key(callee.object))
        return reader(self, tree) if reader is not None else None

    def wait(self, future, tree):
        """The result of a future."""
        self.place(tree)
        schema = next(iter(aten_table.overloads("aten::wait")), None)
        return self.graph.insert("aten::wait", [future], [future.type().element], schema=schema).output()


def _key(thing):
    return id(thing)


def _describe(thing):
    name = getattr(thing, "__qualname__", None) or getattr(thing, "__name__", None)
    return f"'{name}' of {getattr(thing, '__module__', '?')}" if name else f"an object of type '{type(thing).__name__}'"
