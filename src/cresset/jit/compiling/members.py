"""Attributes and methods: of tensors, modules, classes, tuples with names, enumerations, and Python's own modules."""

import enum
import inspect
import itertools
import types as python_types

import cresset
from cresset import nn

from ...graph import types
from ...graph.scalar_types import number_of
from ...ops import aten_table
from . import sugar
from .errors import CompileError
from .matching import Mismatch, carry_out, convert_plan, match_function
from .sugar import Method, Operator, Py, is_value

# Attributes of tensors that are operators.
_TENSOR = {
    "dtype": "prim::dtype", "device": "prim::device", "grad": "prim::grad", "data": "prim::data", "shape": "aten::size",
    "is_cuda": "prim::is_cuda", "is_cpu": "prim::is_cpu",
    "is_xla": "prim::is_xla", "is_sparse": "prim::is_sparse", "is_sparse_csr": "prim::is_sparse_csr",
    "is_mkldnn": "prim::is_mkldnn", "is_quantized": "prim::is_quantized", "is_meta": "prim::is_meta",
    "is_nested": "prim::is_nested", "is_mps": "prim::is_mps", "is_xpu": "prim::is_xpu",
    "requires_grad": "prim::requires_grad", "layout": "prim::layout", "T": "aten::numpy_T", "H": "aten::matrix_H",
    "mT": "aten::mT", "mH": "aten::mH", "is_leaf": "aten::is_leaf", "ndim": "aten::dim", "real": "aten::real",
    "imag": "aten::imag", "retains_grad": "aten::retains_grad",
    "is_vulkan": "prim::is_vulkan", "is_mtia": "prim::is_mtia", "is_ipu": "prim::is_ipu", "name": "prim::name",
    "itemsize": "prim::itemsize", "nbytes": "prim::nbytes",
}  # fmt: skip
# Methods of tensors whose operator has another name.
_TENSOR_METHODS = {
    "is_inference": "aten::is_inference",
    "storage": "aten::storage",
    "new_tensor": "aten::new_tensor",
    "numel": "aten::numel",
    "nelement": "aten::numel",
    "ndimension": "aten::dim",
}


class Members:
    """The part of Emitter that reads and writes `x.name`."""

    def member(self, base, name, tree):
        """What `base.name` means."""
        if isinstance(base, Py):
            return self._python_member(base, name, tree)
        special = None if is_value(base) else self.unit.special_member(base, name, self, tree)
        if special is not None:
            return special
        if isinstance(base, sugar.Super):
            return self._super_member(base, name, tree)
        if isinstance(base, sugar.ClassMaker):
            return self._class_member(base.type, name, tree)
        if not is_value(base):
            base = self.value(base, tree)
        type = base.type()
        place = self.place(tree)
        if isinstance(type, types.TensorType):
            if name in _TENSOR and aten_table.overloads(_TENSOR[name]):
                return self.operator(_TENSOR[name], [base], place)
            return Method(base, name)
        if isinstance(type, types.ClassType):
            return self._object_member(base, name, tree)
        if isinstance(type, types.NamedTupleType) and name in type.fields:
            return self.tuple_part(base, type.fields.index(name))
        if isinstance(type, types.EnumType) and name in ("name", "value"):
            result = types.StringType() if name == "name" else type.value_type
            return self.graph.insert(f"prim::Enum{name.capitalize()}", [base], [result]).output()
        if isinstance(type, types.DeviceObjType) and name in ("type", "index"):
            return self.operator(f"prim::{name}", [base], place)
        if isinstance(
            type,
            (
                types.ListType,
                types.DictType,
                types.StringType,
                types.FutureType,
                types.GeneratorType,
                types.TupleType,
            ),
        ):
            return Method(base, name)
        if isinstance(type, types.OptionalType):
            raise self.error(
                tree,
                (
                    f"'{type.annotation_str}' object has no attribute or method '{name}'. Refine it first, for example "
                    "with `if x is not None:` on a variable (attributes of self are not refined)"
                ),
            )
        raise self.error(tree, f"'{type.annotation_str}' object has no attribute or method '{name}'")

    # ---- Python's objects

    def _python_member(self, base, name, tree):
        if isinstance(base.object, type) and issubclass(base.object, enum.Enum) and name in base.object.__members__:
            return self.constant(base.object[name], self.unit.class_type(base.object))
        if isinstance(base.object, types.Type):
            raise self.error(tree, f"{base.object.annotation_str} has no attribute {name}")
        if isinstance(base.object, type) and issubclass(base.object, enum.Enum):
            raise self.error(tree, f"enumeration '{base.object.__name__}' has no attribute '{name}'")
        try:
            return Py(getattr(base.object, name), constant=True)
        except AttributeError:
            what = (
                f"module '{base.object.__name__}'"
                if isinstance(base.object, python_types.ModuleType)
                else f"'{type(base.object).__name__}' object"
            )
            raise self.error(tree, f"{what} has no attribute or method '{name}'") from None

    def python_value(self, meaning, tree):
        """A Python object as a value, if it is a constant that the program may read."""
        thing = meaning.object
        number = number_of(thing)
        if number is not thing or isinstance(thing, cresset.device):
            return self.constant(number)
        if thing is None or thing is NotImplemented:
            return self.constant(None)
        simple = isinstance(thing, (bool, int, float, complex, str)) and not isinstance(thing, enum.Enum)
        if simple and (meaning.constant or self.loose):
            return self.constant(thing)
        if isinstance(thing, enum.Enum):
            return self.constant(thing, self.unit.class_type(type(thing)))
        if isinstance(thing, type) and issubclass(thing, enum.Enum):  # its members, in order
            thing, meaning = list(thing), Py(list(thing), constant=True)
        if isinstance(thing, (tuple, list)) and (meaning.constant or self.loose):
            parts = [self.python_value(Py(item, True), tree) for item in thing]
            if isinstance(thing, list):
                return self.graph.insert(
                    "prim::ListConstruct", parts, [types.ListType(parts[0].type() if parts else types.TensorType())]
                ).output()
            return self.graph.insert(
                "prim::TupleConstruct", parts, [types.TupleType(part.type() for part in parts)]
            ).output()
        if isinstance(thing, cresset.Tensor) and meaning.constant:
            return self.constant(thing, types.TensorType())
        function = self.unit.as_function(thing)
        if function is not None:
            return self.graph.insert(
                "prim::Constant", (), [types.FunctionType(function)], name=function.name, function=function
            ).output()
        raise self.error(
            tree,
            f"python value of type '{type(thing).__name__}' cannot be used as a value. Perhaps it is a closed over "
            "global variable? "
            "If so, please consider passing it in as an argument or use a local variable instead.",
        )

    # ---- objects of classes, modules

    def _object_member(self, base, name, tree):
        type = base.type()
        place = self.place(tree)
        if name in type.constants:
            return self._constant_member(type, name, tree)
        if name in type.attributes:
            return self.graph.insert("prim::GetAttr", [base], [type.attributes[name]], name=name).output()
        if name in type.properties:
            return self.call_method(base, type.properties[name][0].name, [], {}, tree)
        if name in type.methods or name in type.overloads:
            return Method(base, name)
        if name in type.static_methods:
            return sugar.Compiled(type.static_methods[name])
        found = self.unit.late_member(base, name, self, place)
        if found is not None:
            return found
        if name in type.failed:
            raise self.error(tree, f"Module '{_short(type)}' has no attribute '{name}' ({type.failed[name]})")
        if type.is_module and not isinstance(type, types.InterfaceType):
            raise self.error(tree, f"Module '{_short(type)}' has no attribute '{name}'")
        in_class = type.python_class is not None and name in vars(type.python_class)
        raise self.error(
            tree,
            f"'{type.annotation_str}' object has no attribute or method '{name}'. "
            + (
                f"'{name}' is defined as a class attribute, which is not supported. Make it an attribute of the object"
                if in_class
                else "Did you forget to initialize an attribute in __init__()?"
            ),
        )

    def _constant_member(self, type, name, tree):
        value = type.constants[name]
        if isinstance(value, (bool, int, float, complex, str, type_none)) or number_of(value) is not value:
            return self.constant(value)
        if isinstance(value, enum.Enum):
            return self.constant(value, self.unit.class_type(value.__class__))
        return (
            self.literal(value, self.unit.infer(value))
            if self.unit.infer(value) is not None
            else Py(value, constant=True)
        )

    def set_member(self, target, value, tree):
        base = self.emit_value(target.value)
        type, name = base.type(), target.attr
        place = self.place(tree)
        if isinstance(type, types.TensorType):
            return self._set_tensor_member(base, name, value, tree)
        if not isinstance(type, types.ClassType):
            raise self.error(tree, f"Tried to set an attribute: {name} on a non-class: {type.annotation_str}")
        if name in type.properties:
            setter = type.properties[name][1]
            if setter is None:
                raise self.error(tree, f"Tried to set read-only attribute: {name}")
            self.call_method(base, setter.name, [value], {}, tree)
            return
        if name in type.constants:
            raise self.error(tree, f"Assigning to a constant, '{name}' of {_short(type)}")
        if name not in type.attributes:
            if self.owner is type and not type.is_module and self.in_init:
                if self.graph.insertPoint() is not self.graph.block():
                    raise self.error(
                        tree,
                        "First assignment cannot be in a control-flow block. Initialize the field at the top level "
                        "first",
                    )
                type.attributes[name] = value.type()
            else:
                raise self.error(
                    tree, f"Tried to set nonexistent attribute: {name}. Did you forget to initialize it in __init__()?"
                )
        wanted = type.attributes[name]
        if not value.type().isSubtypeOf(wanted):
            value = self._fit(value, wanted, name, tree)
        self.graph.place = place
        self.graph.insert("prim::SetAttr", [base, value], 0, name=name)

    def _fit(self, value, wanted, name, tree):
        try:
            return carry_out(self, convert_plan(value, wanted, None, {}, False))
        except Mismatch:
            raise self.error(
                tree,
                (
                    f"Wrong type for attribute assignment '{name}'. Expected {wanted.annotation_str} but got "
                    f"{value.type().annotation_str}"
                ),
            ) from None

    def _set_tensor_member(self, base, name, value, tree):
        if name == "data":
            self.operator("aten::set_data", [base, value], tree)
        elif name == "requires_grad":
            self.operator("aten::requires_grad_", [base, value], tree)
        else:
            raise self.error(tree, f"Tried to set the attribute {name} of a tensor")

    def _class_member(self, type, name, tree):
        if isinstance(type, types.EnumType) and name in type.members:
            return self.graph.insertConstant(type.members[name], type)
        if name == "__new__":
            return sugar.Special(
                lambda args, kwargs, tree: self.graph.insert("prim::CreateObject", (), [type]).output()
            )
        if name in getattr(type, "static_methods", {}):
            return sugar.Compiled(type.static_methods[name])
        raise self.error(tree, f"class {type.annotation_str} has no attribute '{name}'")

    def _super_member(self, base, name, tree):
        """`super().name`: the method of the class above, compiled as one more method of this type."""
        function = getattr(super(base.python_class, base.python_class), name, None)
        if function is None or not inspect.isfunction(function):
            raise self.error(tree, f"super() has no method '{name}'")
        mangled = f"__super_{function.__qualname__.replace('.', '_')}"
        type = base.value.type()
        if mangled not in type.methods:
            self.unit.add_method(type, mangled, function)
        return Method(base.value, mangled)

    # ---- containers of modules

    def module_names(self, value):
        """The names of the submodules, in order."""
        type = value.type()
        return [name for name, one in type.attributes.items() if isinstance(one, types.ClassType) and one.is_module]

    def submodule(self, value, name, tree):
        self.place(tree)
        return self.graph.insert("prim::GetAttr", [value], [value.type().attributes[name]], name=name).output()

    def module_items(self, value, tree, values=False):
        """What a loop over a container of modules goes through."""
        kind = value.type().python_class
        if kind is None or not issubclass(
            kind, (nn.ModuleList, nn.Sequential, nn.ModuleDict, nn.ParameterList, nn.ParameterDict)
        ):
            raise self.error(
                tree,
                (
                    "Only constant Sequential, ModuleList, ModuleDict, or ParameterList can be used as an iterable, "
                    "got "
                    f"{_short(value.type())}"
                ),
            )
        if issubclass(kind, (nn.ParameterList, nn.ParameterDict)):
            names = list(value.type().attributes)
            names = [name for name in names if name in value.type().parameters]
            items = [
                self.graph.insert("prim::GetAttr", [value], [value.type().attributes[name]], name=name).output()
                for name in names
            ]
            return sugar.Static(
                [self.constant(name) for name in names] if issubclass(kind, nn.ParameterDict) and not values else items
            )
        names = self.module_names(value)
        if issubclass(kind, nn.ModuleDict) and not values:
            return sugar.Static([self.constant(name) for name in names])
        return sugar.Static([self.submodule(value, name, tree) for name in names])

    def container_method(self, value, name, tree):
        """A method of a container of modules that the compiler knows, as a Special; None if there is none of that
        name."""
        kind = value.type().python_class
        if kind is None or not issubclass(kind, nn.Module):
            return None
        if name == "_flat_weights" and issubclass(kind, nn.RNNBase):
            weights = [
                self.graph.insert("prim::GetAttr", [value], [types.TensorType()], name=one).output()
                for one in value.type().attributes
                if one in value.type().parameters
            ]
            return self.graph.insert("prim::ListConstruct", weights, [types.ListType(types.TensorType())]).output()
        names = self.module_names(value)
        modules = lambda: [self.submodule(value, one, tree) for one in names]  # noqa: E731
        known = {
            "__len__": lambda a, k, t: self.constant(len(names)),
            "named_children": lambda a, k, t: sugar.Static(
                [sugar.Several([self.constant(one), self.submodule(value, one, t)]) for one in names]
            ),
            "children": lambda a, k, t: sugar.Static(modules()),
        }
        if issubclass(kind, nn.ModuleDict):
            known |= {
                "items": known["named_children"],
                "keys": lambda a, k, t: sugar.Static([self.constant(one) for one in names]),
                "values": known["children"],
            }
        if issubclass(kind, (nn.ModuleList, nn.Sequential, nn.ModuleDict)):
            known["__contains__"] = lambda a, k, t: self.constant(self.constant_text(a[0], t) in names)
        return sugar.Special(known[name]) if name in known else None

    # ---- methods

    def method_result(self, type, name, place):
        """The type of a method's result; it is compiled, if it was not yet."""
        function = self.unit.defined(type.methods[name], place)
        return function.schema.returns

    def call_method(self, value, name, args, kwargs, tree, convert=True):
        """The call of a compiled method."""
        type = value.type()
        place = self.place(tree)
        if name in type.overloads:
            return self._overloaded(value, type.overloads[name], args, kwargs, tree)
        if name not in type.methods:
            raise self.error(
                tree, f"Tried to access nonexistent attribute or method '{name}' of type '{type.annotation_str}'."
            )
        function = self.unit.defined(type.methods[name], place)
        inputs = match_function(self, function.schema, args, kwargs, place, skip_self=True, convert=convert)
        self.graph.place = place
        return self.graph.insert("prim::CallMethod", [value, *inputs], [function.schema.returns], name=name).output()

    def _overloaded(self, value, names, args, kwargs, tree):
        problems = []
        for convert, name in itertools.product((False, True), names):
            try:
                return self.call_method(value, name, args, kwargs, tree, convert)
            except CompileError as problem:
                problems.append(problem.message)
        raise self.error(tree, "no signature fits:\n" + "\n".join(problems))

    def tensor_method(self, value, name, args, kwargs, tree):
        """A method of a tensor: the operator of that name."""
        kind = _TENSOR_METHODS.get(name, f"aten::{name}")
        if name in ("__len__", "__contains__"):
            kind = f"aten::{name.strip('_')}" if name == "__len__" else kind
        if name in _CASTS and not args and not kwargs:
            return self.operator("aten::to", [value, self.constant(getattr(cresset, _CASTS[name]))], tree)
        if not aten_table.overloads(kind):
            kind = f"prim::{name}" if aten_table.overloads(f"prim::{name}") else kind
        if not aten_table.overloads(kind):
            defined = self.unit.tensor_function(name)
            if defined is not None:
                return self.call(defined, [value, *args], kwargs, tree)
            raise self.error(tree, f"'Tensor' object has no attribute or method '{name}'")
        return self.call(Operator(kind), [value, *args], kwargs, tree)


type_none = type(None)
# Methods that cast, with the dtypes.
_CASTS = {
    "float": "float32", "double": "float64", "half": "float16", "bfloat16": "bfloat16", "int": "int32", "long": "int64",
    "short": "int16", "char": "int8", "byte": "uint8", "bool": "bool",
    "cfloat": "complex64", "cdouble": "complex128",
}  # fmt: skip


def _short(type):
    return type.qualified_name.rpartition(".")[2]
