"""What `script`, `trace` and `load` give: functions and modules that run as programs.

A RecursiveScriptModule is an nn.Module: its parameters, buffers and submodules are registered as in any other, so that
    everything that is done to modules can be done to
it. What it computes is its ClassType: methods with graphs. Plain attributes live in its `__dict__`, and have the types
    that the ClassType says.
"""

import copy
import pickle
from collections import OrderedDict

from .._native import Tensor
from ..graph.types import ClassType, InterfaceType
from ..nn import Module
from ..nn.module import _indented
from . import (
    _state,
    emit_hooks,
    failures,  # noqa: F401  -- names the lines of programs in exceptions
)
from .calling import Door
from .lowering import program
from .marks import Attribute
from .typed_values import Mismatch, accept


def class_of(value):
    """The ClassType of a module or object of a program, else None."""
    return getattr(value, "__dict__", {}).get("_script_type")


class _Callable:
    """What functions and methods share: their graph, as text and as source."""

    _function = None

    @property
    def name(self):
        return self._function.name

    @property
    def qualified_name(self):
        return self._function.qualified_name

    @property
    def schema(self):
        """Parameters and result with their types."""
        return self._function.ensure_defined().schema

    @property
    def graph(self):
        """The graph that runs."""
        return self._function.ensure_defined().graph

    @property
    def inlined_graph(self):
        """The graph with those of all functions and methods that it calls put in their places."""
        from ..graph.inline import inlined

        return inlined(self._function.ensure_defined())

    @property
    def code(self):
        """The graph as TorchScript source."""
        from .code import function_code

        return function_code(self._function.ensure_defined())[0]

    @property
    def code_with_constants(self):
        """The source, and the constants that it calls CONSTANTS.c0 and so on."""
        from .code import ConstMap, function_code

        text, constants = function_code(self._function.ensure_defined())
        return text, ConstMap(constants)

    def graph_for(self, *args, **kwargs):
        """The graph that runs for these arguments: always the same one."""
        return self.graph


class ScriptFunction(_Callable):
    """A compiled function."""

    __module__ = "torch.jit"

    def __init__(self, function):
        self._function, self._door = function, None
        self.__name__ = function.name
        self.__doc__ = function.docstring
        if function.original is not None:
            self._torchdynamo_inline = self.__wrapped__ = function.original

    def __call__(self, *args, **kwargs):
        door = self._door
        if door is None:
            door = self._door = Door(self._function)
        if len(args) == door.tensors and not kwargs:
            for value in args:
                if type(value) is not Tensor:
                    break
            else:
                return door.program(*args)
        return door(args, kwargs)

    def save(self, filename, _extra_files=None):
        """Write the function to a file that torch.jit.load reads."""
        from .saving import save

        save(self, filename, _extra_files)

    def save_to_buffer(self, _extra_files=None):
        """The bytes of such a file."""
        from .saving import to_bytes

        return to_bytes(self, _extra_files)

    def __deepcopy__(self, memo):
        return self  # a function has no state

    def __reduce__(self):
        raise pickle.PickleError(
            "ScriptFunction cannot be pickled; write it with its save() and read it with torch.jit.load"
        )


class ScriptMethod(_Callable):
    """A method of a compiled module or object."""

    __module__ = "torch"

    def __init__(self, owner, function, door):
        self.owner, self._function, self._door = owner, function, door
        self.__name__ = function.name

    def __call__(self, *args, **kwargs):
        return self._door((self.owner, *args), kwargs)


class _Methods:
    """Objects whose methods are those of a ClassType."""

    def _script_method(self, name):
        type_ = self.__dict__["_script_type"]
        function = type_.methods[name]
        doors = self.__dict__.setdefault("_script_doors", {})
        if name not in doors:
            doors[name] = Door(function)
        return ScriptMethod(self, function, doors[name])


class ScriptObject(_Methods):
    """An object of a class that a program defines."""

    __module__ = "torch"

    def __init__(self, class_type):
        self.__dict__["_script_type"] = class_type

    def __getattr__(self, name):
        type_ = self.__dict__.get("_script_type")
        if type_ is not None and name in type_.methods:
            return self._script_method(name)
        if type_ is not None and name in type_.properties:
            return self._script_method_of(type_.properties[name][0])()
        raise AttributeError(f"'{type_}' object has no attribute '{name}'")

    def _script_method_of(self, function):
        return ScriptMethod(self, function, Door(function))

    def _type(self):
        return self._script_type

    def __enter__(self):
        return program(self._script_type.methods["__enter__"])(self)

    def __exit__(self, *exception):
        return program(self._script_type.methods["__exit__"])(self, *exception)

    def __repr__(self):
        return f"<torch.ScriptObject of {self._script_type.qualified_name}>"

    def __deepcopy__(self, memo):
        made = memo[id(self)] = ScriptObject(self._script_type)
        made.__dict__.update(
            {
                name: copy.deepcopy(self.__dict__[name], memo)
                for name in self._script_type.attributes
                if name in self.__dict__
            }
        )
        return made

    def __reduce__(self):
        raise pickle.PickleError(
            "an object of a TorchScript class cannot be pickled; save the module that holds it with torch.jit.save"
        )


def _asked_of_methods(name):
    """What Python does for an operator on an object: the program's method, if it has one."""

    def ask(self, *args):
        if name in self._script_type.methods:
            return self._script_method(name)(*args)
        if hasattr(object, name):
            return getattr(object, name)(self, *args)
        if name == "__bool__":
            return bool(len(self)) if "__len__" in self._script_type.methods else True
        if name in _BINARY:
            return NotImplemented
        raise TypeError(f"object of the class {self._script_type.qualified_name} has no {name}")

    return ask


_BINARY = {
    f"__{name}__" for name in "add sub mul truediv floordiv mod pow matmul and or xor lt gt le ge eq ne".split()
}  # fmt: skip
for _name in (*_BINARY, *(f"__{name}__" for name in "neg len bool contains getitem setitem delitem int float".split())):
    setattr(ScriptObject, _name, _asked_of_methods(_name))
ScriptObject.__hash__ = object.__hash__  # type: ignore[method-assign]


def new_object(class_type):
    """`prim::CreateObject`: an object whose attributes are still to be set."""
    return ScriptObject(class_type)


def as_object(value, type_):
    """The value as an object of this class, or None if it is none. An object of the Python class that was compiled is
    taken over.
    """
    found = class_of(value)
    if found is not None:
        return value if found.isSubtypeOf(type_) else None
    if isinstance(type_, InterfaceType) and not type_.is_module:
        from .scripting import unit

        own = unit.class_type(type(value))
        return as_object(value, own) if isinstance(own, ClassType) and type_.missing_in(own) is None else None
    if not type_.is_module and type_.python_class is not None and isinstance(value, type_.python_class):
        made = ScriptObject(type_)
        for name, kind in type_.attributes.items():
            if not hasattr(value, name):
                raise Mismatch
            made.__dict__[name] = accept(kind)(getattr(value, name))
        return made
    return None


# ---- modules


class _Compiled(type(Module)):  # type: ignore[misc]
    """Making a module of a class that is derived from ScriptModule compiles its methods, once `__init__` is done."""

    def __call__(cls, *args, **kwargs):
        made = super().__call__(*args, **kwargs)
        if not _state._enabled or cls is ScriptModule or issubclass(cls, RecursiveScriptModule):
            return made
        from .scripting import unit

        kind = unit.module_type(made)
        for method in list(kind.methods.values()):
            unit.defined(method)
        compiled = cls._with_programs(kind)._from(kind, made)
        emit_hooks.module_made(compiled)
        return compiled


class ScriptModule(Module, metaclass=_Compiled):
    """A module that runs as a program: what torch.jit.script, trace and load give.

    A class may derive from it: methods that are marked with `script_method` are compiled when a module of the class is
    made; the others stay Python's.

    >>> class Scaled(torch.jit.ScriptModule):
    ...     __constants__ = ["factor"]
    ...
    ...     def __init__(self, factor):
    ...         super().__init__()
    ...         self.factor = factor
    ...
    ...     @torch.jit.script_method
    ...     def forward(self, x):
    ...         return x * self.factor if bool(x.sum() > 0) else x
    >>> Scaled(3)(torch.ones(2))
    tensor([3., 3.])
    """

    __module__ = "torch.jit"

    @classmethod
    def _with_programs(cls, kind):
        """The class of its modules after they are compiled: a program in the place of each method that became one."""

        def run(name):
            return property(lambda self: self._script_method(name))

        members = {name: run(name) for name in kind.methods}
        if "forward" not in members:
            members["forward"] = cls.forward
        made = type(cls)(cls.__name__, (RecursiveScriptModule, cls), {**members, "__module__": cls.__module__})
        made.__qualname__ = cls.__qualname__
        return made

    def _replicate_for_data_parallel(self):
        return self._copied({}, lambda tensor: tensor)


_CONTAINERS = ("ModuleList", "ModuleDict", "Sequential", "ParameterList", "ParameterDict")


class RecursiveScriptModule(ScriptModule, _Methods):
    """A compiled module and its compiled submodules."""

    __module__ = "torch.jit"

    def __init__(self, class_type):
        Module.__init__(self)  # not that of a class that was compiled
        self.__dict__["_script_type"] = class_type

    @classmethod
    def _from(cls, class_type, module, memo=None):
        """Wrap a Python module: its tensors are shared, its plain attributes copied, its submodules wrapped. A
        submodule that has two names is wrapped once.
        """
        memo = {} if memo is None else memo
        if id(module) in memo:
            return memo[id(module)]
        if isinstance(module, RecursiveScriptModule):
            memo[id(module)] = module
            return module
        made = memo[id(module)] = cls(class_type)
        fields = made.__dict__
        for name in [*module._parameters, *module._buffers, *module._modules]:
            made._take(name, module, memo)
        for name, kind in class_type.attributes.items():
            if name not in made._parameters and name not in made._buffers and name not in made._modules:
                value = getattr(module, name)
                fields[name] = _typed(name, kind, value.value if isinstance(value, Attribute) else value)
        for name, value in module.__dict__.items():  # what programs cannot see stays for Python
            if name not in fields and name not in class_type.constants:
                fields[name] = value
        fields["_script_python"] = type(module)
        fields["training"] = module.training
        made._hook(class_type)
        return made

    def _take(self, name, module, memo):
        class_type = self._script_type
        if name in module._parameters:
            self._parameters[name] = module._parameters[name]
        elif name in module._buffers:
            self._buffers[name] = module._buffers[name]
        else:
            inner, kind = module._modules[name], class_type.attributes.get(name)
            if inner is None:
                self._modules[name] = None
            elif isinstance(kind, InterfaceType):
                from .scripting import unit

                self._modules[name] = RecursiveScriptModule._from(unit.module_type(inner), inner, memo)
            elif isinstance(kind, ClassType):
                self._modules[name] = RecursiveScriptModule._from(kind, inner, memo)

    def _hook(self, class_type):
        """Hooks that were compiled with the module run around forward, as those of any module do."""
        for function in class_type.forward_pre_hooks:
            self.register_forward_pre_hook(program(function))
        for function in class_type.forward_hooks:
            self.register_forward_hook(program(function))

    # ---- attributes

    @property
    def forward(self):
        return self._script_method("forward")

    @property
    def original_name(self):
        """The name of the module's class."""
        return self._script_type.qualified_name.rpartition(".")[2]

    def __getattr__(self, name):
        fields = self.__dict__
        for register in ("_parameters", "_buffers", "_modules"):
            if register in fields and name in fields[register]:
                return fields[register][name]
        type_ = fields.get("_script_type")
        if type_ is not None:
            if name in type_.methods:
                return self._script_method(name)
            if name in type_.properties:
                getter = type_.properties[name][0]
                return ScriptMethod(self, getter, Door(getter))()
            if name in type_.constants:
                return type_.constants[name]
        python = fields.get("_script_python")
        found = getattr(python, name, None) if python is not None else None
        if found is not None and hasattr(found, "__get__"):  # a method that Python keeps (@ignore, @unused)
            return found.__get__(self)
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __setattr__(self, name, value):
        type_ = self.__dict__.get("_script_type")
        if type_ is None or name == "_c":
            super().__setattr__(name, value)
            return
        if name in type_.constants:
            raise AttributeError(
                f"Cannot mutate TorchScript constant value: '{name}'. Value: '{type_.constants[name]}'"
            )
        kind = type_.attributes.get(name)
        if isinstance(value, Module) and isinstance(kind, ClassType) and name in self._modules:
            _check_swap(name, kind, value)
        registered = name in self._parameters or name in self._buffers or name in self._modules
        if kind is not None and not registered and not isinstance(value, Module):
            self.__dict__[name] = _typed(name, kind, value)
        else:
            super().__setattr__(name, value)

    def __dir__(self):
        type_ = self._script_type
        return sorted({*super().__dir__(), *type_.methods, *type_.constants})

    # ---- what it computes

    @property
    def graph(self):
        return self.forward.graph

    @property
    def inlined_graph(self):
        return self.forward.inlined_graph

    @property
    def code(self):
        return self.forward.code

    @property
    def code_with_constants(self):
        return self.forward.code_with_constants

    def graph_for(self, *args, **kwargs):
        return self.graph

    def get_debug_state(self, *args, **kwargs):
        raise NotImplementedError("get_debug_state: a program here has one plan, which graph shows")

    @property
    def _c(self):
        return ModuleFace(self)

    @_c.setter
    def _c(self, other):
        """Become another module: what `torch._C._freeze_module` made of this one."""
        self.__dict__.clear()
        self.__dict__.update(other._module.__dict__)

    # ---- files

    def save(self, f, _extra_files=None):
        """Write the module to a file, or a file object, that torch.jit.load reads, in PyTorch too."""
        from .saving import save

        save(self, f, _extra_files)

    def save_to_buffer(self, _extra_files=None):
        """The bytes of such a file."""
        from .saving import to_bytes

        return to_bytes(self, _extra_files)

    # ---- copies

    def __copy__(self):
        return self._copied({}, lambda value: value)

    def __deepcopy__(self, memo):
        return self._copied(memo, lambda value: copy.deepcopy(value, memo))

    def copy(self):
        return copy.copy(self)

    def copy_instance(self):
        return copy.copy(self)

    def _copied(self, memo, copy_of):
        if id(self) in memo:
            return memo[id(self)]
        made = memo[id(self)] = type(self)(self._script_type)
        shared = {"_script_type", "_script_python"}
        registers = {"_parameters", "_buffers", "_modules", "_script_doors"}
        for name, value in self.__dict__.items():
            if name not in registers:
                made.__dict__[name] = value if name in shared else copy_of(value)
        made._parameters.update((name, copy_of(value)) for name, value in self._parameters.items())
        made._buffers.update((name, copy_of(value)) for name, value in self._buffers.items())
        for name, inner in self._modules.items():
            made._modules[name] = (
                inner._copied(memo, copy_of) if isinstance(inner, RecursiveScriptModule) else copy_of(inner)
            )
        return made

    def __getstate__(self):
        raise pickle.PickleError(
            "ScriptModules cannot be saved using torch.save. Mixed serialization of script and non-script modules is "
            "not supported. "
            "For purely script modules use my_script_module.save(<filename>) instead."
        )

    # ---- containers

    def _items(self, what):
        if not self._is_container():
            raise NotImplementedError(f"{self.original_name}: it has no {what}")
        return list(self._modules.values())

    def _is_container(self):
        python = self.__dict__.get("_script_python")
        names = [base.__name__ for base in python.__mro__] if python is not None else [self.original_name]
        return any(name in _CONTAINERS for name in names)

    def __len__(self):
        if "__len__" in self._script_type.methods:
            return self._script_method("__len__")()
        return len(self._items("__len__"))

    def __iter__(self):
        if self._is_container() and "Dict" in self.original_name:
            return iter(self._modules)
        return iter(self._items("__iter__"))

    def __getitem__(self, index):
        if "__getitem__" in self._script_type.methods:
            return self._script_method("__getitem__")(index)
        items = self._items("__getitem__")
        return self._modules[index] if isinstance(index, str) else items[index]

    def __contains__(self, key):
        if "__contains__" in self._script_type.methods:
            return self._script_method("__contains__")(key)
        self._items("__contains__")
        return key in self._modules

    def __bool__(self):
        return True

    def extra_repr(self):
        return f"original_name={self.original_name}"

    def __repr__(self):
        lines = [f"({name}): {_indented(repr(inner))}" for name, inner in self._modules.items()]
        if not lines:
            return f"{self._get_name()}({self.extra_repr()})"
        return f"{self._get_name()}(\n  {self.extra_repr()}\n  " + "\n  ".join(lines) + "\n)"

    def _get_name(self):
        return type(self).__name__


class TracedModule(RecursiveScriptModule):
    """A module that was recorded, as programs ask for it by isinstance."""

    __module__ = "torch.jit"


class TopLevelTracedModule(TracedModule):
    """The module that torch.jit.trace gives."""

    __module__ = "torch.jit"


def _check_swap(name, kind, module):
    """Refuse a submodule whose methods are not those that the program was compiled for."""
    given = class_of(module)
    if given is None:
        raise RuntimeError(
            "Cannot re-assign modules in a ScriptModule with non-scripted module, tried to replace existing module "
            f"'{name}' by {type(module).__name__}; script it first"
        )
    if isinstance(kind, InterfaceType):
        why = kind.missing_in(given)
        if why is not None:
            raise RuntimeError(f"{given} is not compatible with interface {kind}, the type of '{name}': {why}")
    elif given is not kind:
        raise RuntimeError(f"Expected a value of type '{kind}' for field '{name}', but found '{given}'")


def _typed(name, kind, value):
    """The value as an attribute of this type."""
    try:
        return accept(kind)(value)
    except Mismatch:
        raise RuntimeError(
            f"Expected a value of type '{kind.annotation_str}' for attribute '{name}' but instead found type "
            f"'{type(value).__name__}'"
        ) from None


class ModuleFace:
    """`module._c`: the names that programs use on PyTorch's C++ object of a module."""

    def __init__(self, module):
        self._module = module

    @property
    def qualified_name(self):
        return self._module._script_type.qualified_name

    @property
    def name(self):
        return self._module.original_name

    def _type(self):
        return self._module._script_type

    def _get_method(self, name):
        if not self._has_method(name):
            raise AttributeError(f"Method '{name}' is not defined.")
        return self._module._script_method(name)

    def _has_method(self, name):
        return name in self._module._script_type.methods

    def _method_names(self):
        return list(self._module._script_type.methods)

    def getattr(self, name):
        return getattr(self._module, name)

    def hasattr(self, name):
        return name in self._module._script_type.attributes

    def setattr(self, name, value):
        setattr(self._module, name, value)

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        found = getattr(self._module, name)
        return found._c if isinstance(found, RecursiveScriptModule) else found

    @property
    def code(self):
        return "".join(self._module._script_method(name).code for name in self._method_names())

    def save(self, filename, _extra_files=None):
        self._module.save(filename, _extra_files)

    def save_to_buffer(self, _extra_files=None):
        return self._module.save_to_buffer(_extra_files)

    def __eq__(self, other):
        return isinstance(other, ModuleFace) and self._module is other._module

    def __hash__(self):
        return id(self._module)


def attributes_of(value):
    """The attributes of a module or object, in the order of its ClassType: name -> value."""
    return OrderedDict((name, getattr(value, name)) for name in value._script_type.attributes)
