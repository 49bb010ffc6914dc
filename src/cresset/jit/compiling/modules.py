"""Types of modules: attributes with their types, constants, submodules, and methods that are compiled when they are
first called.

Modules that say the same of themselves (class, attributes, constants, submodules) share a type, so that twenty equal
layers are compiled once.
"""

import inspect
import typing
import warnings

import cresset
from cresset import nn

from ...graph import types
from ...graph.function import Function
from ...graph.scalar_types import number_of
from ..marks import (
    Attribute,
    FunctionModifiers,
    _get_overloaded_methods,
    _qualified_name,
    get_torchscript_modifier,
    is_ignored_fn,
    is_ours,
    should_drop,
)
from . import annotating, sugar
from .builtins import definition_of, kind_of, method_definition
from .errors import CompileError
from .functions import compile_into, names_of, read, signature, unwrapped

_CONTAINERS = (nn.ModuleList, nn.Sequential, nn.ModuleDict, nn.ParameterList, nn.ParameterDict)


class Modules:
    """The part of Unit that knows modules."""

    def module_type(self, module):
        """The ClassType of a module."""
        ready = module.__dict__.get("_script_type")
        if isinstance(ready, types.ClassType):
            return ready
        python = type(module)
        made = types.ClassType("", True, python)
        hints = self._hints(module)
        for name, parameter in module._parameters.items():
            made.attributes[name] = hints.get(name) or (
                types.TensorType() if parameter is not None else types.NoneType()
            )
            if parameter is not None:
                made.parameters.add(name)
        for name, buffer in module._buffers.items():
            made.attributes[name] = hints.get(name) or (types.TensorType() if buffer is not None else types.NoneType())
            if buffer is not None:
                made.buffers.add(name)
        for name, child in module._modules.items():
            wanted = hints.get(name)
            if child is None:
                made.attributes[name] = types.NoneType()
            elif isinstance(wanted, types.InterfaceType):
                made.attributes[name] = wanted
                self._check_interface(name, wanted, self.module_type(child))
            else:
                made.attributes[name] = self.module_type(child)
        self._constants(module, made)
        self._plain(module, made, hints)
        key = self._key(module, made)
        if key not in self.module_types:
            made.qualified_name = self.free_name(_qualified_name(python))
            self.module_types[key] = made
            self._methods(module, made)
        return self.module_types[key]

    def _check_interface(self, name, wanted, given):
        for method in wanted.methods:
            if method not in given.methods:
                self.declare_method(given, method)
            if method in given.methods:
                self.defined(given.methods[method])
        why = wanted.missing_in(given)
        if why is not None:
            raise CompileError(
                None,
                (
                    f"Could not cast attribute '{name}' to type {wanted}: object of type {given} is not compatible "
                    "with "
                    f"interface {wanted}: {why}"
                ),
            )

    def _hints(self, module):
        """The types that the class gives to attributes."""
        found = {}
        for one in reversed(type(module).__mro__):
            scope = None
            for name, hint in annotating.own_annotations(one).items():
                if _is_final(hint) or (
                    name not in module.__dict__
                    and name not in module._parameters
                    and name not in module._buffers
                    and name not in module._modules
                ):
                    continue
                try:
                    if isinstance(hint, str):
                        scope = scope or _scope(one)
                        if "Final" in hint:
                            continue
                        found[name] = annotating.from_text(hint, scope, self.class_type)
                    else:
                        found[name] = annotating.from_python(hint, self.class_type)
                except CompileError:
                    continue  # a class of modules, or what no program can hold
        return found

    def _constants(self, module, made):
        names = dict.fromkeys(getattr(module, "__constants__", ()))
        for one in type(module).__mro__:
            names |= {name: None for name, hint in annotating.own_annotations(one).items() if _is_final(hint)}
        for name in names:
            if name in module._modules or name in module._parameters or name in module._buffers:
                continue
            if not hasattr(module, name):
                continue
            value = getattr(module, name)
            if isinstance(value, (cresset.Tensor, nn.Module)):
                continue
            if self.infer(value) is None and value != [] and value != ():
                warnings.warn(
                    (
                        f"'{name}' was found in ScriptModule constants, but its type '{type(value).__name__}' is not "
                        "one "
                        "that a constant may have. Consider removing it."
                    ),
                    stacklevel=2,
                )
                continue
            made.constants[name] = value

    def _plain(self, module, made, hints):
        ours = is_ours(type(module))  # settings of our own layers do not change
        skipped = set(getattr(module, "__jit_ignored_attributes__", ()))
        made.attributes["training"] = types.BoolType()
        for name, value in module.__dict__.items():
            if name in _OWN or name in made.constants or name in made.attributes or name in skipped:
                continue
            if ours and name not in hints and _is_setting(value):
                made.constants[name] = value
            elif isinstance(value, Attribute):
                made.attributes[name] = annotating.from_python(value.type, self.class_type)
            elif name in hints:
                made.attributes[name] = hints[name]
            elif (
                callable(value)
                and (
                    inspect.isfunction(unwrapped(value))
                    or kind_of(value) is not None
                    or definition_of(value) is not None
                    or self.as_function(value) is not None
                )
                or number_of(value) is not value
            ):
                made.constants[name] = value
            else:
                found = self.infer(value)
                if found is not None:
                    made.attributes[name] = found
                elif isinstance(value, (list, tuple, dict)) and not value:
                    made.failed[name] = (
                        f"an empty {type(value).__name__} has no type; annotate the attribute in the class"
                    )
                else:
                    made.failed[name] = (
                        "(This attribute exists on the Python module, but we failed to convert Python type: "
                        f"'{type(value).__name__}' to a TorchScript type.)"
                    )

    def _key(self, module, made):
        """What tells one module type from another."""
        hooks = tuple(
            id(hook) for table in (module._forward_hooks, module._forward_pre_hooks) for hook in table.values()
        )
        constants = tuple(
            (name, type(value).__name__, value if _hashable(value) else repr(value))
            for name, value in sorted(made.constants.items())
        )
        attributes = tuple(
            (name, id(one) if isinstance(one, types.ClassType) else str(one)) for name, one in made.attributes.items()
        )
        return (
            made.python_class,
            attributes,
            constants,
            tuple(sorted(made.failed)),
            frozenset(made.parameters),
            frozenset(made.buffers),
            hooks,
            getattr(module, "_jit_override_qualname", None),
        )

    # ---- methods

    def _methods(self, module, made):
        python = made.python_class
        if not issubclass(python, _CONTAINERS) or issubclass(python, nn.Sequential) or "forward" in python.__dict__:
            forward = getattr(python, "forward", None)
            if (
                inspect.isfunction(forward)
                and forward.__qualname__ != "Module.forward"
                and not forward.__name__.startswith("_forward_unimplemented")
                and not issubclass(python, cresset.jit.ScriptModule)  # there only what is marked is compiled
            ):
                self.declare_method(made, "forward")
        for name in dir(python):
            thing = inspect.getattr_static(python, name)
            if inspect.isfunction(thing) and get_torchscript_modifier(thing) == FunctionModifiers.EXPORT:
                self.declare_method(made, name)
        for table, into in (
            (module._forward_pre_hooks, made.forward_pre_hooks),
            (module._forward_hooks, made.forward_hooks),
        ):
            for hook in table.values():
                if is_ignored_fn(hook):
                    continue
                into.append(self._known_hook(made, hook) or self._hook(made, hook))

    def _known_hook(self, made, hook):
        """The Function of a hook that is there already. Names are the class's own: another of one name is refused."""
        name = getattr(hook, "__name__", "hook")
        for known in (*made.forward_pre_hooks, *made.forward_hooks):
            if known.original is hook:
                return known
            if getattr(known.original, "__name__", "hook") == name:
                break
        else:
            if name not in made.methods:
                return None
        raise RuntimeError(
            f"Can't define hook: {name} on class: {made.qualified_name} because a method or hook with that name "
            "already exists."
        )

    def _hook(self, made, hook):
        def compile(function):
            compile_into(self, function, read(hook), self_type=made)

        return Function(
            self.free_name(f"{made.qualified_name}.{getattr(hook, '__name__', 'hook')}"),
            owner=made,
            compile=compile,
            original=hook,
        )

    def declare_method(self, made, name):
        """Let the type have the method, compiled later. Gives whether there is such a method."""
        python = made.python_class
        if issubclass(python, nn.Sequential) and name == "forward" and python.forward is nn.Sequential.forward:
            made.methods[name] = self._sequential(made)
            return True
        function = method_definition(python, name) or inspect.getattr_static(python, name, None)
        if isinstance(function, staticmethod):
            made.static_methods[name] = self.function(function.__func__)
            return True
        if not inspect.isfunction(function):
            return False
        overloads = _get_overloaded_methods(function, python)
        if overloads:
            made.overloads[name] = self._overloaded_methods(made, name, function, overloads)
            return True
        self.add_method(made, name, function)
        return True

    def add_method(self, made, name, function):
        ours = is_ours(function)
        defined_in = next(
            (one for one in (made.python_class or object).__mro__ if function in one.__dict__.values()),
            made.python_class,
        )

        def compile(compiled):
            compile_into(self, compiled, read(function), self_type=made, loose=ours, defined_in=defined_in)

        made.methods[name] = Function(f"{made.qualified_name}.{name}", owner=made, compile=compile, original=function)

    def _overloaded_methods(self, made, name, function, overloads):
        names = []
        for number, overload in enumerate(overloads):
            arguments, _ = signature(self, read(overload), made)
            mangled = f"{name}__{number}"

            def compile(compiled, arguments=arguments):
                definition = read(function)
                definition.function = None
                for argument in definition.tree.args.args:
                    argument.annotation = None
                definition.tree.returns = None
                definition.tree.args.defaults = []
                compile_into(self, compiled, definition, self_type=made, given={a.name: a.type for a in arguments})

            made.methods[mangled] = Function(
                f"{made.qualified_name}.{mangled}", owner=made, compile=compile, original=function
            )
            names.append(mangled)
        return names

    def _sequential(self, made):
        """forward of a Sequential: each layer on what the one before gave. Its parameter has the type that the first
        layer's has.
        """

        def compile(function):
            definition = read(method_definition(nn.Sequential, "forward"))
            first = next(
                (one for one in made.attributes.values() if isinstance(one, types.ClassType) and one.is_module), None
            )
            given = {}
            if first is not None and "forward" in first.methods:
                arguments = self.defined(first.methods["forward"], definition.place).schema.arguments
                if len(arguments) > 1:
                    given[definition.tree.args.args[1].arg] = arguments[1].type
            compile_into(self, function, definition, self_type=made, given=given, loose=True)

        return Function(f"{made.qualified_name}.forward", owner=made, compile=compile, original=nn.Sequential.forward)

    def late_member(self, value, name, emitter, place):
        """A member of a module that was not looked at before: a method, a property, what containers know."""
        made = value.type()
        if isinstance(made, types.InterfaceType):
            return None
        known = emitter.container_method(value, name, place) if made.is_module else None
        if known is not None:
            return known
        python = made.python_class
        if python is None:
            return None
        thing = inspect.getattr_static(python, name, None)
        if isinstance(thing, property):
            return self._property(value, name, thing, emitter, place)
        if thing is not None and not inspect.isfunction(thing) and is_ours(python):
            return sugar.Py(getattr(python, name), constant=True)
        function = thing.__func__ if isinstance(thing, (staticmethod, classmethod)) else thing
        if not inspect.isfunction(function):
            return None
        if should_drop(function):
            return sugar.Special(
                lambda args, kwargs, tree: emitter.dropped_call(self.ignored(function, made).schema, tree)
            )
        if is_ignored_fn(function):
            made.ignored[name] = function
            left = self.ignored(function, made)
            return sugar.Special(lambda args, kwargs, tree: emitter.call_function(left, [value, *args], kwargs, tree))
        if made.is_module and self.declare_method(made, name):
            return emitter.member(value, name, place)
        return None

    def _property(self, value, name, thing, emitter, place):
        made = value.type()
        if is_ignored_fn(thing.fget) or name in getattr(made.python_class, "__jit_unused_properties__", ()):
            raise CompileError(
                place,
                f"property '{name}' of {made.python_class.__name__} is not compiled (it is marked unused or ignored)",
            )
        self.add_method(made, f"{name}_getter", thing.fget)
        if thing.fset is not None:
            self.add_method(made, f"{name}_setter", thing.fset)
        made.properties[name] = (made.methods[f"{name}_getter"], made.methods.get(f"{name}_setter"))
        return emitter.member(value, name, place)


_OWN = set(nn.Module().__dict__)


def _is_final(hint):
    return (
        hint is typing.Final
        or typing.get_origin(hint) is typing.Final
        or (isinstance(hint, str) and "Final" in hint.partition("[")[0])
    )


def _scope(python):
    import sys

    for thing in vars(python).values():
        if inspect.isfunction(thing):
            return names_of(thing)
    return annotating.Lookup(vars(sys.modules[python.__module__]) if python.__module__ in sys.modules else {})


def _is_setting(value):
    """A number, text, None, or a tuple of such."""
    if isinstance(value, tuple):
        return all(map(_is_setting, value))
    return value is None or type(value) in (bool, int, float, str)


def _hashable(value):
    try:
        hash(value)
    except TypeError:
        return False
    return True
