"""From annotations to types: Python's objects (`Optional[int]`), and syntax trees in which names are looked up. Nothing
is evaluated.
"""

import ast
import enum
import inspect
import sys
import types as python_types
import typing

import cresset

from ...futures import Future
from ...graph import types
from ..annotations import _BroadcastingList
from ..frontend import FrontendError
from ..marks import _BARE
from .errors import CompileError

_SIMPLE = {
    int: types.IntType, float: types.FloatType, bool: types.BoolType, str: types.StringType, complex: types.ComplexType,
    None: types.NoneType, type(None): types.NoneType,
    cresset.device: types.DeviceObjType, cresset.dtype: types.IntType, cresset.layout: types.IntType,
    cresset.memory_format: types.IntType, cresset.Generator: types.GeneratorType,
    typing.Any: types.AnyType, tuple: types.AnyTupleType,
}  # fmt: skip

# What TorchScript's own text calls types, where no name is in the way.
_WORDS = {
    "Tensor": types.TensorType, "number": types.NumberType, "Device": types.DeviceObjType, "NoneType": types.NoneType,
    "Generator": types.GeneratorType, "Any": types.AnyType,
    "AnyListType": types.AnyListType, "AnyTupleType": types.AnyTupleType, "Stream": types.StreamObjType,
    "Layout": types.IntType, "QScheme": types.IntType,
    "AnyEnumType": types.AnyEnumType, "PyObject": types.PyObjectType, "Storage": types.StorageType,
}  # fmt: skip
_MAKERS = {
    "List": types.ListType, "Optional": types.OptionalType, "Dict": types.DictType, "Future": types.FutureType,
    "RRef": types.RRefType, "Await": types.AwaitType,
    "Final": lambda inner: inner, "list": types.ListType, "dict": types.DictType,
}  # fmt: skip


def own_annotations(python):
    """The annotations of a class itself, without those of its bases. A name that is not there (yet) stays a reference:
    from Python 3.14 on annotations are evaluated when somebody asks.
    """
    if sys.version_info < (3, 14):
        return inspect.get_annotations(python)
    import annotationlib

    return annotationlib.get_annotations(python, format=annotationlib.Format.FORWARDREF)


def from_python(annotation, classes, where=None, names=None):
    """The type of an annotation that is a Python object.

    Args:
        classes: gives the type of a class (an enumeration, a named tuple, a scripted class), or None.
        where: the SourceRange for errors.
        names: a Lookup for what is written as text inside (`List["Node"]`).
    """
    read = lambda inner: from_python(inner, classes, where, names)  # noqa: E731
    if isinstance(annotation, types.Type):
        return annotation
    if isinstance(annotation, str):
        return from_text(annotation, names or {}, classes, where)
    if isinstance(annotation, typing.ForwardRef):
        return read(annotation.__forward_arg__)
    if inspect.isclass(annotation) and issubclass(annotation, cresset.Tensor):
        return types.TensorType()
    if isinstance(annotation, _BroadcastingList):
        return types.ListType(read(annotation.element))
    if _is_hashable(annotation) and annotation in _SIMPLE:
        return _SIMPLE[annotation]()
    if annotation is cresset.Size:
        return types.ListType(types.IntType())
    if annotation is Future:
        return types.FutureType(types.AnyType())
    if _is_hashable(annotation) and annotation in _BARE and annotation not in (list, tuple):
        raise CompileError(where, _BARE[annotation])
    origin, inside = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is list:
        return types.ListType(read(inside[0]))
    if origin is dict:
        return types.DictType(read(inside[0]), read(inside[1]))
    if origin is tuple:
        if len(inside) == 2 and inside[1] is Ellipsis:
            raise CompileError(where, "Unknown type annotation: a tuple of any length has no type; use List")
        return types.TupleType([] if inside == ((),) else map(read, inside))
    if origin in (typing.Union, python_types.UnionType):
        return types.UnionType(map(read, inside))
    if origin is typing.Final or (origin is not None and getattr(origin, "__name__", "") == "Annotated"):
        return read(inside[0])
    if origin is Future:
        return types.FutureType(read(inside[0]))
    if inspect.isclass(annotation):
        found = classes(annotation)
        if found is not None:
            return found
    name = annotation.__name__ if inspect.isclass(annotation) else repr(annotation)
    raise CompileError(where, f"Unknown type annotation: '{name}'")


class Lookup:
    """The names a piece of source can see, as Python objects or types. `look(name)` raises KeyError."""

    def __init__(self, *tables):
        self.tables = tables

    def meaning(self, name):
        """What a name means that is no Python object's; None here."""
        return None

    def look(self, name):
        for table in self.tables:
            if name in table:
                return table[name]
        raise KeyError(name)


def _is_hashable(annotation):
    try:
        hash(annotation)
    except TypeError:
        return False
    return True


def from_text(text, names, classes, where=None):
    """The type of an annotation in a string or comment; `names` is a dict or a Lookup."""
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except SyntaxError:
        raise CompileError(where, f"Unknown type annotation: {text!r} cannot be read") from None
    return from_tree(tree, names if isinstance(names, Lookup) else Lookup(names), classes, where)


def from_tree(tree, names, classes, where=None):
    """The type of an annotation's syntax tree."""
    read = lambda inner: from_tree(inner, names, classes, where)  # noqa: E731
    if isinstance(tree, ast.Constant):
        if tree.value is None:
            return types.NoneType()
        if isinstance(tree.value, str):
            return from_text(tree.value, names, classes, where)
    if isinstance(tree, ast.BinOp) and isinstance(tree.op, ast.BitOr):
        return types.UnionType([read(tree.left), read(tree.right)])
    if isinstance(tree, (ast.Name, ast.Attribute)):
        try:
            return from_python(_object(tree, names), classes, where)
        except KeyError:
            word = tree.attr if isinstance(tree, ast.Attribute) else tree.id
            if word in _WORDS and (isinstance(tree, ast.Name) or _dotted(tree).startswith("torch.")):
                return _WORDS[word]()
            found = classes(_dotted(tree))
            if found is not None:
                return found
            raise CompileError(where, f"Unknown type name '{_dotted(tree)}'") from None
    if isinstance(tree, ast.Subscript):
        inside = tree.slice.elts if isinstance(tree.slice, ast.Tuple) else [tree.slice]
        word = (
            tree.value.attr
            if isinstance(tree.value, ast.Attribute)
            else tree.value.id
            if isinstance(tree.value, ast.Name)
            else ""
        )
        if word not in _MAKERS and isinstance(tree.value, ast.Name):
            word = _generic_name(tree.value, names) or word
        if word in ("Tuple", "tuple"):
            return types.TupleType([] if isinstance(tree.slice, ast.Tuple) and not inside else map(read, inside))
        if word == "Union":
            return types.UnionType(map(read, inside))
        if word in _MAKERS:
            return _MAKERS[word](*map(read, inside))
        if word.startswith("BroadcastingList"):
            return types.ListType(read(inside[0]))
        if word in ("InferredType", "Annotated"):
            return read(inside[0])
    raise CompileError(where, f"Unknown type annotation: '{ast.unparse(tree)}'")


def _generic_name(tree, names):
    """What typing calls the generic type that a name stands for (`from typing import List as L`); None for others."""
    try:
        found = _object(tree, names)
    except KeyError:
        return None
    return getattr(found, "_name", None) or getattr(found, "__name__", None) if _is_of_typing(found) else None


def _is_of_typing(thing):
    return getattr(thing, "__module__", None) == "typing"


def _object(tree, names):
    """The Python object that a dotted name means; KeyError if there is none."""
    if isinstance(tree, ast.Name):
        return names.look(tree.id)
    if isinstance(tree, ast.Attribute):
        base = _object(tree.value, names)
        if not hasattr(base, tree.attr):
            raise KeyError(tree.attr)
        return getattr(base, tree.attr)
    raise KeyError(ast.unparse(tree))


def _dotted(tree):
    return ast.unparse(tree)


def broadcast_length(annotation):
    """How many a single number stands for, if the annotation is BroadcastingListN or an Optional of one; else None."""
    inside = [one for one in typing.get_args(annotation) if isinstance(one, _BroadcastingList)]
    annotation = inside[0] if inside else annotation
    return annotation.length if isinstance(annotation, _BroadcastingList) else None


def infer(value, classes):
    """The type of a Python value, or None if it has none: what an attribute of a module is."""
    if isinstance(value, cresset.Tensor):
        return types.TensorType()
    if value is None or type(value) in (bool, int, float, complex, str):
        return _SIMPLE[type(value)]()
    if isinstance(value, (cresset.dtype, cresset.layout, cresset.memory_format)):
        return types.IntType()
    if isinstance(value, cresset.device):
        return types.DeviceObjType()
    if isinstance(value, enum.Enum):
        return classes(type(value))
    if isinstance(value, Future):
        return types.FutureType(types.AnyType())
    if isinstance(value, cresset.Size):
        return types.ListType(types.IntType())
    if isinstance(value, tuple):
        named = classes(type(value)) if hasattr(value, "_fields") else None
        inside = [infer(one, classes) for one in value]
        return named or (types.TupleType(inside) if all(one is not None for one in inside) else None)
    if isinstance(value, list):
        return _covering(value, classes, types.ListType)
    if isinstance(value, dict):
        keys, items = _cover(value, classes), _cover(value.values(), classes)
        return types.DictType(keys, items) if keys is not None and items is not None else None
    if isinstance(value, cresset.Generator):
        return types.GeneratorType()
    try:
        return classes(type(value))  # compiled now, if it was not yet
    except (CompileError, FrontendError, OSError):  # what no program can hold, or a class without a source
        return None


def _cover(values, classes):
    found = None
    for value in values:
        one = infer(value, classes)
        found = one if found is None else types.unify(found, one) if one is not None else None
        if found is None:
            return None
    return found


def _covering(values, classes, maker):
    found = _cover(values, classes)
    return maker(found) if found is not None else None
