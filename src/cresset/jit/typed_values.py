"""Python values and TorchScript's types: which fit, what they become at the door of a compiled program, and what comes
back.
"""

import operator

import cresset

from .. import _native
from ..futures import Future
from ..graph import types as t
from .numbering import number_of

_NUMBERED = (_native.dtype, _native.layout, _native.memory_format)  # objects that are ints inside a program


class Mismatch(Exception):
    """A value is not of the type."""


# ---- into a program


def accept(type_):
    """A function that gives the value as the program takes it, or raises Mismatch. Lists and dicts are copied, as a
    program may change them.
    """
    maker = _ACCEPT.get(type(type_))
    return maker(type_) if maker is not None else _anything


def _anything(value):
    if isinstance(value, _NUMBERED):
        return number_of(value)
    if isinstance(value, list):
        return [_anything(item) for item in value]
    return dict(value) if type(value) is dict else value


def _of_class(*classes):
    def check(value):
        if isinstance(value, classes):
            return value
        raise Mismatch

    return check


def _accept_int(_):
    def check(value):
        if type(value) is int:
            return value
        if isinstance(value, _NUMBERED):
            return number_of(value)
        try:
            return operator.index(value)
        except (TypeError, ValueError, RuntimeError):
            raise Mismatch from None

    return check


def _accept_float(_):
    def check(value):
        if type(value) is float:
            return value
        if isinstance(value, (str, bytes, list, tuple)) or value is None:
            raise Mismatch
        try:
            return float(value)
        except (TypeError, ValueError, RuntimeError):
            raise Mismatch from None

    return check


def _accept_bool(_):
    def check(value):
        if isinstance(value, (bool, int, float, _native.Tensor)):
            return bool(value)
        raise Mismatch

    return check


def _accept_complex(_):
    def check(value):
        if isinstance(value, (complex, float, int)):
            return complex(value)
        raise Mismatch

    return check


def _accept_number(_):
    def check(value):
        if isinstance(value, (int, float, complex)):
            return value
        if isinstance(value, _native.Tensor) and value.dim() == 0:
            return value.item()
        raise Mismatch

    return check


def _accept_device(_):
    def check(value):
        if isinstance(value, _native.device):
            return value
        if isinstance(value, str):
            return _native.device(value)
        raise Mismatch

    return check


def _accept_none(_):
    def check(value):
        if value is None:
            return None
        raise Mismatch

    return check


def _accept_optional(type_):
    inner = accept(type_.element)
    return lambda value: None if value is None else inner(value)


def _accept_list(type_):
    inner = accept(type_.element)

    def check(value):
        # Of its class: `list` itself has an __iter__, for its instances.
        if isinstance(value, (str, bytes, dict, _native.Tensor)) or not hasattr(type(value), "__iter__"):
            raise Mismatch
        if getattr(value, "_script_type", None) == type_:
            return value  # a list of jit/containers.py, which is handed over
        return [inner(item) for item in value]

    return check


def _accept_dict(type_):
    key, inner = accept(type_.key), accept(type_.value)

    def check(value):
        if not isinstance(value, dict):
            raise Mismatch
        if getattr(value, "_script_type", None) == type_:
            return value
        return {key(name): inner(item) for name, item in value.items()}

    return check


def _accept_tuple(type_):
    inner = [accept(element) for element in type_.elements()]

    def check(value):
        if not isinstance(value, (tuple, list)) or len(value) != len(inner):
            raise Mismatch
        return tuple(one(item) for one, item in zip(inner, value, strict=True))

    return check


def _accept_named_tuple(type_):
    plain, made = _accept_tuple(type_), named_tuple_class(type_)
    return lambda value: made(*plain(value))


def _accept_union(type_):
    # A number is taken as what it is before it is taken as what it could be turned into.
    exact = [(IsInstance([member]), accept(member)) for member in type_.members]

    def check(value):
        for fits, one in exact:
            if fits(value):
                return one(value)
        for _, one in exact:
            try:
                return one(value)
            except Mismatch:
                continue
        raise Mismatch

    return check


def _accept_enum(type_):
    def check(value):
        if type_.python_class is not None and isinstance(value, type_.python_class):
            return value
        if getattr(type(value), "__torch_type__", None) == type_:
            return value
        raise Mismatch

    return check


def _accept_object(type_):
    from .objects import as_object

    def check(value):
        found = as_object(value, type_)
        if found is None:
            raise Mismatch
        return found

    return check


_ACCEPT = {
    t.TensorType: lambda _: _of_class(_native.Tensor),
    t.IntType: _accept_int,
    t.FloatType: _accept_float,
    t.BoolType: _accept_bool,
    t.ComplexType: _accept_complex,
    t.NumberType: _accept_number,
    t.StringType: lambda _: _of_class(str),
    t.NoneType: _accept_none,
    t.DeviceObjType: _accept_device,
    t.GeneratorType: lambda _: _of_class(_native.Generator),
    t.OptionalType: _accept_optional,
    t.ListType: _accept_list,
    t.DictType: _accept_dict,
    t.TupleType: _accept_tuple,
    t.NamedTupleType: _accept_named_tuple,
    t.UnionType: _accept_union,
    t.FutureType: lambda _: _of_class(Future),
    t.EnumType: _accept_enum,
    t.ClassType: _accept_object,
    t.InterfaceType: _accept_object,
}


# ---- out of a program


def give(type_):
    """A function that gives the program's value to Python, or None where the value is given as it is. Lists and dicts
    are copied: the program may keep them.
    """
    if isinstance(type_, t.OptionalType):
        inner = give(type_.element)
        return None if inner is None else lambda value: None if value is None else inner(value)
    if isinstance(type_, t.ListType):
        inner = give(type_.element)
        return list if inner is None else lambda value: [inner(item) for item in value]
    if isinstance(type_, t.DictType):
        inner = give(type_.value)
        return dict if inner is None else lambda value: {key: inner(item) for key, item in value.items()}
    if isinstance(type_, t.TupleType):
        parts = [give(element) for element in type_.elements()]
        if all(part is None for part in parts):
            return None
        made = (lambda items: named_tuple_class(type_)(*items)) if isinstance(type_, t.NamedTupleType) else tuple
        return lambda value: made(
            [item if part is None else part(item) for part, item in zip(parts, value, strict=True)]
        )
    return None


# ---- classes

_named_tuples = {}


def named_tuple_class(type_):
    """The Python class of a named tuple: the program's own, or one made from the names of its fields."""
    if type_.python_class is not None:
        return type_.python_class
    key = (type_.qualified_name, type_.fields, type_.defaults)
    if key not in _named_tuples:
        _named_tuples[key] = _new_named_tuple(type_)
    return _named_tuples[key]


def _new_named_tuple(type_):
    """What collections.namedtuple makes, without the source that it has Python run: the names come from a file."""
    fields, defaults = type_.fields, type_.defaults
    name = type_.qualified_name.rpartition(".")[2] if type_.qualified_name else "NamedTuple"

    def new(cls, *args, **kwargs):
        values = list(args)
        for field, default in zip(fields[len(args) :], _last(defaults, fields)[len(args) :], strict=True):
            values.append(kwargs.pop(field) if field in kwargs else default)
        if kwargs or len(values) != len(fields) or any(value is _ABSENT for value in values):
            raise TypeError(f"{name}() takes the fields {', '.join(fields)}")
        return tuple.__new__(cls, values)

    def represent(self):
        return f"{name}({', '.join(f'{field}={value!r}' for field, value in zip(fields, self, strict=True))})"

    members = {field: property(operator.itemgetter(place)) for place, field in enumerate(fields)}
    members |= {
        "__slots__": (),
        "_fields": fields,
        "__new__": new,
        "__repr__": represent,
        "_asdict": lambda self: dict(zip(fields, self, strict=True)),
        "_replace": lambda self, **changed: type(self)(**{**self._asdict(), **changed}),
        "__module__": "torch.jit",
    }
    return type(name, (tuple,), members)


_ABSENT = object()


def _last(defaults, fields):
    return [_ABSENT] * (len(fields) - len(defaults)) + list(defaults)


class IsInstance:
    """`prim::isinstance`: whether a value has one of the types."""

    def __init__(self, types):
        self.checks = [_membership(type_) for type_ in types]

    def __call__(self, value):
        return any(check(value) for check in self.checks)


def _exactly(*classes):
    return lambda value: type(value) in classes


def _membership(type_):
    simple = {
        t.IntType: _exactly(int),
        t.FloatType: _exactly(float),
        t.BoolType: _exactly(bool),
        t.ComplexType: _exactly(complex),
        t.StringType: _exactly(str),
        t.NoneType: lambda value: value is None,
        t.TensorType: lambda value: isinstance(value, _native.Tensor),
        t.NumberType: lambda value: isinstance(value, (int, float, complex)) and not isinstance(value, bool),
        t.AnyType: lambda value: True,
        t.AnyListType: lambda value: isinstance(value, list),
        t.AnyTupleType: lambda value: isinstance(value, tuple),
        t.DeviceObjType: lambda value: isinstance(value, _native.device),
        t.FutureType: lambda value: isinstance(value, Future),
    }
    if type(type_) in simple:
        return simple[type(type_)]
    inner = [_membership(part) for part in type_.containedTypes()]
    if isinstance(type_, t.OptionalType):
        return lambda value: value is None or inner[0](value)
    if isinstance(type_, t.UnionType):
        return lambda value: any(check(value) for check in inner)
    if isinstance(type_, t.ListType):
        return lambda value: isinstance(value, list) and all(map(inner[0], value))
    if isinstance(type_, t.DictType):
        return lambda value: (
            isinstance(value, dict) and all(map(inner[0], value)) and all(map(inner[1], value.values()))
        )
    if isinstance(type_, t.TupleType):
        return lambda value: (
            isinstance(value, tuple)
            and len(value) == len(inner)
            and all(check(item) for check, item in zip(inner, value, strict=True))
        )
    if isinstance(type_, t.ClassType):
        from .objects import class_of

        return lambda value: (found := class_of(value)) is not None and found.isSubtypeOf(type_)
    if isinstance(type_, t.EnumType):
        return lambda value: type(value) is type_.python_class
    return lambda value: False


class PythonCall:
    """A call of a Python function from a program; what it returns must have the declared type."""

    def __init__(self, function, type_):
        self.function, self.type, self.check = function, type_, accept(type_)
        self.name = getattr(function, "__name__", "a Python function")

    def __call__(self, *args):
        value = self.function(*args)
        try:
            return self.check(value)
        except Mismatch:
            raise RuntimeError(
                f"{self.name}: a Python function that a program calls was declared to return "
                f"{self.type.annotation_str}, and returned a value of type {type(value).__name__}"
            ) from None


class ToList:
    """`tolist()` of a tensor, where the program has said what comes out.

    Args:
        depth: how many lists are around the numbers.
        kind: 0 for int, 1 for float, 2 for bool, 3 for complex.
    """

    NAMES = ("Long", "Float", "Bool", "ComplexFloat")

    def __init__(self, depth, kind):
        self.depth, self.kind = depth, kind

    def __call__(self, tensor):
        if tensor.dim() != self.depth:
            raise RuntimeError(
                f"tolist: the program says {self.depth} dimensions, and the tensor has {tensor.dim()} (Output "
                "annotation list dimension and runtime tensor dimension must match for tolist())"
            )
        found = (
            3 if tensor.is_complex() else 1 if tensor.is_floating_point() else 2 if tensor.dtype == cresset.bool else 0
        )
        if found != self.kind:
            raise RuntimeError(
                f"tolist: the program says {self.NAMES[self.kind]}, and the tensor has {tensor.dtype} (Output "
                "annotation element type and runtime tensor element type must match for tolist())"
            )
        return tensor.tolist()
