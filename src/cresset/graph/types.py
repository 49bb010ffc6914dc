"""The types of a graph's values, TorchScript's: what they are called, which fits where, which one covers two.

`str(type)` is the form of a graph's text (`int[]`, `Dict(str, Tensor)`, `Tensor?`), `annotation_str` that of source
(`List[int]`). Types are values: two that say the same are equal. A class is equal to itself alone.
"""

import re

from ..ops.namespaces import split_commas, without_memory

__all__ = [
    "AnyEnumType", "AnyListType", "AnyTupleType", "AnyType", "BoolType", "CapsuleType", "ClassType", "ComplexType",
    "DeviceObjType", "DictType", "EnumType", "FloatType", "FunctionType",
    "FutureType", "GeneratorType", "IntType", "InterfaceType", "ListType", "NamedTupleType", "NoneType", "NumberType",
    "OptionalType", "PyObjectType", "RRefType", "StorageType",
    "StreamObjType", "StringType", "TensorType", "TupleType", "Type", "UnionType", "VarType", "AwaitType",
    "parse_schema_type", "substitute", "match_variables", "unify",
]  # fmt: skip


class Type:
    """A type. Subclasses say what they are made of in `_parts`, which is also what makes two of them equal."""

    __slots__ = ()
    name: str | None = None  # the same in a graph's text and in source, where there is but one name
    _parts = ()

    @classmethod
    def get(cls):
        """The type, for those that have no parameters."""
        return cls()

    def kind(self):
        """The name of the type's class, such as 'TensorType'."""
        return type(self).__name__

    @property
    def annotation_str(self):
        """The type as source says it."""
        return self.name

    def __str__(self):
        return self.name

    def str(self):
        """The type as a graph's text says it."""
        return self.__str__()

    def __repr__(self):
        return self.__str__()

    def __eq__(self, other):
        return type(self) is type(other) and self._parts == other._parts

    def __hash__(self):
        return hash((type(self).__name__, self._parts))

    def containedTypes(self):
        """The types this one is made of."""
        return [part for part in self._parts if isinstance(part, Type)]

    def isSubtypeOf(self, other):
        """Whether a value of this type may stand where `other` is asked for."""
        if self == other or isinstance(other, AnyType):
            return True
        if isinstance(other, UnionType):
            return any(self.isSubtypeOf(member) for member in other.members)
        if isinstance(other, OptionalType):
            return isinstance(self, NoneType) or self.isSubtypeOf(other.element)
        return self._fits(other)

    def _fits(self, other):
        return False


def _simple(class_name, name, doc, base=Type):
    return type(class_name, (base,), {"__slots__": (), "name": name, "__doc__": doc, "__module__": __name__})


AnyType = _simple("AnyType", "Any", "Any value at all.")
NoneType = _simple("NoneType", "NoneType", "The type of None.")
BoolType = _simple("BoolType", "bool", "True or False.")
StringType = _simple("StringType", "str", "Text.")
DeviceObjType = _simple("DeviceObjType", "Device", "A device.")
GeneratorType = _simple("GeneratorType", "Generator", "A generator of random numbers.")
StreamObjType = _simple("StreamObjType", "Stream", "A stream of a device.")
StorageType = _simple("StorageType", "Storage", "The memory of a tensor.")
CapsuleType = _simple("CapsuleType", "Capsule", "An opaque object.")
PyObjectType = _simple("PyObjectType", "PyObject", "A Python object that programs cannot look into.")
AnyListType = _simple("AnyListType", "list", "A list of anything: what isinstance(x, list) asks for.")
AnyTupleType = _simple("AnyTupleType", "tuple", "A tuple of anything: what isinstance(x, tuple) asks for.")
AnyEnumType = _simple("AnyEnumType", "AnyEnumType", "A member of any enumeration.")


class NumberType(Type):
    """An int, a float or a complex: PyTorch's Scalar."""

    __slots__ = ()
    name = "number"

    def __str__(self):
        return "Scalar"


class _Number(Type):
    __slots__ = ()

    def _fits(self, other):
        return isinstance(other, NumberType)


IntType = _simple("IntType", "int", "An integer of 64 bits.", _Number)
FloatType = _simple("FloatType", "float", "A float of 64 bits.", _Number)
ComplexType = _simple("ComplexType", "complex", "A complex number of 128 bits.", _Number)


class TensorType(Type):
    """A tensor. What a recording knows of it (dtype, sizes, ...) is told along and does not make it another type."""

    __slots__ = ("_device", "_dtype", "_requires_grad", "_sizes", "_strides")
    name = "Tensor"

    def __init__(self, dtype=None, sizes=None, strides=None, device=None, requires_grad=None):
        self._dtype, self._sizes, self._strides = dtype, sizes, strides
        self._device, self._requires_grad = device, requires_grad

    def dtype(self):
        return self._dtype

    def sizes(self):
        """The sizes, if known: numbers, or names for those that may change."""
        return None if self._sizes is None else list(self._sizes)

    def strides(self):
        return None if self._strides is None else list(self._strides)

    def device(self):
        return self._device

    def dim(self):
        return None if self._sizes is None else len(self._sizes)

    def requires_grad(self):
        return self._requires_grad

    def scalarType(self):
        """The dtype as a graph's text calls it, such as 'Float'."""
        return None if self._dtype is None else _DTYPE_NAMES.get(str(self._dtype).rpartition(".")[2])

    def __str__(self):
        if self._dtype is None:
            return "Tensor"
        known = []
        if self._sizes is not None:
            known += [str(size) for size in self._sizes]
        if self._strides is not None:
            known.append(f"strides=[{', '.join(map(str, self._strides))}]")
        if self._requires_grad is not None:
            known.append(f"requires_grad={int(self._requires_grad)}")
        if self._device is not None:
            known.append(f"device={self._device}")
        return f"{self.scalarType()}({', '.join(known)})" if known else self.scalarType()


_DTYPE_NAMES = {
    "float32": "Float", "float64": "Double", "float16": "Half", "bfloat16": "BFloat16", "int64": "Long", "int32": "Int",
    "int16": "Short", "int8": "Char", "uint8": "Byte",
    "bool": "Bool", "complex64": "ComplexFloat", "complex128": "ComplexDouble", "complex32": "ComplexHalf",
    "qint8": "QInt8", "quint8": "QUInt8", "qint32": "QInt32",
}  # fmt: skip


class _Single(Type):
    """A type around one other."""

    __slots__ = ("_parts",)

    def __init__(self, element):
        self._parts = (element,)

    @property
    def element(self):
        return self._parts[0]

    def getElementType(self):
        return self._parts[0]


class ListType(_Single):
    """A list whose items have one type."""

    __slots__ = ()

    def __str__(self):
        return f"{self.element}[]"

    @property
    def annotation_str(self):
        return f"List[{self.element.annotation_str}]"

    def _fits(self, other):
        return isinstance(other, AnyListType) or (isinstance(other, ListType) and isinstance(other.element, AnyType))

    @staticmethod
    def ofInts():
        return ListType(IntType())

    @staticmethod
    def ofTensors():
        return ListType(TensorType())


class OptionalType(_Single):
    """A value or None."""

    __slots__ = ()

    def __new__(cls, element):
        if isinstance(element, (OptionalType, NoneType, AnyType)):
            return element  # already has None
        if isinstance(element, UnionType):
            return UnionType([*element.members, NoneType()])
        made = super().__new__(cls)
        made._parts = (element,)
        return made

    def __init__(self, _element):
        pass  # __new__ did it: an Optional of an Optional is that Optional

    def __str__(self):
        return f"{self.element}?"

    @property
    def annotation_str(self):
        return f"Optional[{self.element.annotation_str}]"

    def isSubtypeOf(self, other):
        if self == other or isinstance(other, AnyType):
            return True
        return NoneType().isSubtypeOf(other) and self.element.isSubtypeOf(other)


class FutureType(_Single):
    """A value that is still being computed."""

    __slots__ = ()

    def __str__(self):
        return f"Future[{self.element}]"

    @property
    def annotation_str(self):
        return f"Future[{self.element.annotation_str}]"

    def _fits(self, other):
        return isinstance(other, FutureType) and self.element.isSubtypeOf(other.element)


class AwaitType(FutureType):
    """A value that is computed when it is asked for."""

    __slots__ = ()

    def __str__(self):
        return f"Await[{self.element}]"

    @property
    def annotation_str(self):
        return f"Await[{self.element.annotation_str}]"


class RRefType(_Single):
    """A value on another machine."""

    __slots__ = ()

    def __str__(self):
        return f"RRef({self.element})"

    @property
    def annotation_str(self):
        return f"RRef[{self.element.annotation_str}]"


class DictType(Type):
    """A dict, in the order of insertion."""

    __slots__ = ("_parts",)

    def __init__(self, key, value):
        self._parts = (key, value)

    @property
    def key(self):
        return self._parts[0]

    @property
    def value(self):
        return self._parts[1]

    def getKeyType(self):
        return self._parts[0]

    def getValueType(self):
        return self._parts[1]

    def __str__(self):
        return f"Dict({self.key}, {self.value})"

    @property
    def annotation_str(self):
        return f"Dict[{self.key.annotation_str}, {self.value.annotation_str}]"


class TupleType(Type):
    """A tuple: a type for each item."""

    __slots__ = ("_parts",)

    def __init__(self, elements):
        self._parts = tuple(elements)

    def elements(self):
        return list(self._parts)

    def __str__(self):
        return f"({', '.join(map(str, self._parts))})"

    @property
    def annotation_str(self):
        return f"Tuple[{', '.join(part.annotation_str for part in self._parts) or '()'}]"

    def _fits(self, other):
        if isinstance(other, AnyTupleType):
            return True
        if (
            not isinstance(other, TupleType)
            or isinstance(other, NamedTupleType)
            or len(self._parts) != len(other._parts)
        ):
            return False
        return all(mine.isSubtypeOf(theirs) for mine, theirs in zip(self._parts, other._parts, strict=True))


class NamedTupleType(TupleType):
    """A tuple whose items have names. `python_class` makes it in Python; `defaults` are those of the last fields.

    Without a qualified name it is what an operator gives that names its results.
    """

    __slots__ = ("defaults", "fields", "python_class", "qualified_name")

    def __init__(self, qualified_name, fields, elements, python_class=None, defaults=()):
        super().__init__(elements)
        self.qualified_name, self.fields, self.python_class = qualified_name, tuple(fields), python_class
        self.defaults = tuple(defaults)

    def __eq__(self, other):
        return type(self) is type(other) and (self.qualified_name, self.fields, self._parts) == (
            other.qualified_name,
            other.fields,
            other._parts,
        )

    def __hash__(self):
        return hash(self.qualified_name)

    def __str__(self):
        return (
            self.qualified_name
            or f"NamedTuple({', '.join(f'{f} : {t}' for f, t in zip(self.fields, self._parts, strict=True))})"
        )

    @property
    def annotation_str(self):
        return self.qualified_name or super().annotation_str


class UnionType(Type):
    """One of several types."""

    __slots__ = ("_parts",)

    def __new__(cls, members):
        members = cls._flat(members)
        plain = [member for member in members if not isinstance(member, NoneType)]
        if any(isinstance(member, AnyType) for member in members):
            return AnyType()
        if not plain:
            return NoneType()
        if len(plain) == 1:
            return OptionalType(plain[0]) if len(members) > 1 else plain[0]
        made = super().__new__(cls)
        made._parts = tuple(members)
        return made

    def __init__(self, _members):
        pass  # __new__ did it: a union of one type is that type

    @staticmethod
    def _flat(members):
        flat = []
        for member in members:
            inner = (
                member.members
                if isinstance(member, UnionType)
                else [member.element, NoneType()]
                if isinstance(member, OptionalType)
                else [member]
            )
            flat += [one for one in inner if one not in flat]
        kept = [
            one
            for one in flat
            if not any(one is not other and one != other and one.isSubtypeOf(other) for other in flat)
        ]
        return sorted(kept, key=lambda one: (min(_ORDER.get(c.__name__, 99) for c in type(one).__mro__), str(one)))

    @property
    def members(self):
        return self._parts

    def __eq__(self, other):
        return type(self) is type(other) and set(self._parts) == set(other._parts)

    def __hash__(self):
        return hash(frozenset(self._parts))

    def __str__(self):
        return f"Union({', '.join(map(str, self._parts))})"

    @property
    def annotation_str(self):
        return f"Union[{', '.join(part.annotation_str for part in self._parts)}]"

    def isSubtypeOf(self, other):
        return isinstance(other, AnyType) or all(member.isSubtypeOf(other) for member in self._parts)


# The order in which a union has its members, however it was written.
_KINDS = "Any Enum AnyEnum Tensor Storage Tuple List Dict Number Float Complex Future Await RRef Int None String Bool"
_ORDER = {f"{name}Type": place for place, name in enumerate(_KINDS.split())}


class VarType(Type):
    """A type that a schema leaves open, such as the `t` of `len(t[] a)`."""

    __slots__ = ("_parts",)

    def __init__(self, name):
        self._parts = (name,)

    def __str__(self):
        return self._parts[0]

    annotation_str = property(__str__)


class EnumType(Type):
    """An enumeration: its members by name. `value_type` is the type of their values."""

    __slots__ = ("members", "python_class", "qualified_name", "value_type")

    def __init__(self, qualified_name, value_type, members, python_class=None):
        self.qualified_name, self.value_type = qualified_name, value_type
        self.members, self.python_class = dict(members), python_class

    def __eq__(self, other):
        return type(self) is type(other) and self.qualified_name == other.qualified_name

    def __hash__(self):
        return hash(self.qualified_name)

    def __str__(self):
        return f"Enum<{self.qualified_name}>"

    @property
    def annotation_str(self):
        return self.qualified_name

    def _fits(self, other):
        return isinstance(other, AnyEnumType)


class FunctionType(Type):
    """The type of one function."""

    __slots__ = ("function",)

    def __init__(self, function=None):
        self.function = function

    def __eq__(self, other):
        return type(self) is type(other) and self.function is other.function

    def __hash__(self):
        return id(self.function)

    def __str__(self):
        return "Function"

    annotation_str = property(__str__)


class ClassType(Type):
    """A class or a module: attributes with their types, methods with their graphs.

    Args:
        qualified_name: `__torch__.package.Name`.
        is_module: whether its objects are modules, with parameters, buffers and training.
        python_class: what it was compiled from, if that is known.
    """

    __slots__ = (
        "attributes", "buffers", "constants", "failed", "forward_hooks", "forward_pre_hooks", "ignored", "is_module",
        "methods", "overloads", "parameters", "properties", "python_class",
        "qualified_name", "static_methods", "__weakref__",
    )  # fmt: skip

    def __init__(self, qualified_name, is_module=False, python_class=None):
        self.qualified_name, self.is_module, self.python_class = qualified_name, is_module, python_class
        self.attributes = {}  # name -> Type, in order; those of submodules are among them
        self.parameters, self.buffers = set(), set()  # the names of attributes that are
        self.constants = {}  # name -> value that is written into the graphs
        self.methods = {}  # name -> Function
        self.static_methods = {}  # name -> Function
        self.properties = {}  # name -> (getter Function, setter Function or None)
        self.ignored = {}  # name -> Python function that methods call outside of the graph
        self.overloads = {}  # name -> names of the compiled forms
        self.failed = {}  # name of an attribute that has no type -> why
        self.forward_hooks, self.forward_pre_hooks = [], []  # Functions, in the order they run

    @property
    def name(self):
        return self.qualified_name

    def __eq__(self, other):
        return self is other

    def __hash__(self):
        return id(self)

    def __str__(self):
        return self.qualified_name

    def _fits(self, other):
        return isinstance(other, InterfaceType) and other.missing_in(self) is None

    def hasAttribute(self, name):
        return name in self.attributes

    def getAttribute(self, name):
        return self.attributes[name]


class InterfaceType(ClassType):
    """A set of methods by name, that other classes may have. A method's Function has a schema and no graph."""

    __slots__ = ()

    def missing_in(self, other):
        """What `other` lacks to be one of these, in words; None if nothing."""
        if self.is_module and not other.is_module:
            return f"{other} is no module"
        for name, wanted in self.methods.items():
            found = other.methods.get(name)
            if found is None:
                return f"{other} has no method '{name}'"
            mine, theirs = wanted.schema, found.ensure_defined().schema
            if len(mine.arguments) != len(theirs.arguments) or any(
                a.name != b.name or not a.type.isSubtypeOf(b.type)
                for a, b in zip(mine.arguments[1:], theirs.arguments[1:], strict=True)
            ):
                return f"the arguments of '{name}' are not those of {self}: {theirs} and {mine}"
            if not theirs.returns.isSubtypeOf(mine.returns):
                return f"'{name}' gives {theirs.returns}, not {mine.returns}"
        return None


# ---- types of schemas

_NAMES = {
    "Tensor": TensorType, "int": IntType, "SymInt": IntType, "float": FloatType, "bool": BoolType, "SymBool": BoolType,
    "str": StringType, "complex": ComplexType, "Scalar": NumberType,
    "number": NumberType, "NoneType": NoneType, "None": NoneType, "Any": AnyType, "Device": DeviceObjType,
    "ScalarType": IntType, "Layout": IntType, "MemoryFormat": IntType,
    "QScheme": IntType, "Generator": GeneratorType, "Stream": StreamObjType, "Storage": StorageType,
    "AnyEnumType": AnyEnumType, "AnyListType": AnyListType, "PyObject": PyObjectType,
    "Capsule": CapsuleType, "list": AnyListType, "tuple": AnyTupleType, "AnyClassType": AnyType, "Dimname": StringType,
}  # fmt: skip


def parse_schema_type(text):
    """The type that a schema's or graph's text means: `int[2]?`, `Dict(str, t)`, `(int, Tensor)`, `Future(t)`."""
    return _parse(without_memory(text).strip(), text)


def _parse(text, whole):
    if text.endswith("?"):
        return OptionalType(_parse(text[:-1], whole))
    if match := re.fullmatch(r"(.+)\[\d*\]", text, re.S):
        return ListType(_parse(match[1], whole))
    if text.startswith("(") and text.endswith(")"):
        return TupleType(_parse(part, whole) for part in split_commas(text[1:-1]))
    if match := re.fullmatch(r"(\w+)\((.*)\)", text, re.S):
        parts = [_parse(part, whole) for part in split_commas(match[2])]
        makers = {
            "Dict": lambda k, v: DictType(k, v),
            "Future": FutureType,
            "RRef": RRefType,
            "Await": AwaitType,
            "Union": lambda *a: UnionType(a),
        }
        if match[1] in makers:
            return makers[match[1]](*parts)
    if text in _NAMES:
        return _NAMES[text]()
    if re.fullmatch(r"t\w*", text):
        return VarType(text)
    raise RuntimeError(f"parse_schema_type: {text!r} is no type, in {whole!r}")


# ---- open types, and the type that covers two


def match_variables(formal, actual, known):
    """Fill `known` (name -> type) so that `formal` becomes a type that `actual` fits. False if that cannot be."""
    if isinstance(formal, VarType):
        name = formal._parts[0]
        if name not in known:
            known[name] = actual
            return True
        covering = unify(known[name], actual)
        if covering is None:
            return False
        known[name] = covering
        return True
    if isinstance(formal, OptionalType):
        return isinstance(actual, NoneType) or match_variables(
            formal.element, actual.element if isinstance(actual, OptionalType) else actual, known
        )
    if isinstance(formal, ListType) and isinstance(actual, TupleType):
        return all(match_variables(formal.element, item, known) for item in actual.elements())
    if has_variables(formal):
        parts, others = formal.containedTypes(), actual.containedTypes()
        return (
            type(formal) is type(actual)
            and len(parts) == len(others)
            and all(map(lambda a, b: match_variables(a, b, known), parts, others))
        )
    return True


def has_variables(type_):
    return isinstance(type_, VarType) or any(map(has_variables, type_.containedTypes()))


def substitute(type_, known):
    """The type with its open parts filled in."""
    if isinstance(type_, VarType):
        return known.get(type_._parts[0])
    if not has_variables(type_):
        return type_
    parts = [substitute(part, known) for part in type_.containedTypes()]
    if any(part is None for part in parts):
        return None
    return TupleType(parts) if isinstance(type_, TupleType) else type(type_)(*parts)


def unify(first, second, to_union=False):
    """The type that covers both, or None. `to_union`: a Union where there is no better one."""
    if first == second:
        return TensorType() if isinstance(first, TensorType) else first
    if isinstance(first, TensorType) and isinstance(second, TensorType):
        return TensorType()
    if first.isSubtypeOf(second):
        return second
    if second.isSubtypeOf(first):
        return first
    if isinstance(first, NoneType) or isinstance(second, NoneType):
        return OptionalType(second if isinstance(first, NoneType) else first)
    if isinstance(first, OptionalType) or isinstance(second, OptionalType):
        inner = unify(
            first.element if isinstance(first, OptionalType) else first,
            second.element if isinstance(second, OptionalType) else second,
        )
        if inner is not None:
            return OptionalType(inner)
    if (
        isinstance(first, TupleType)
        and isinstance(second, TupleType)
        and len(first.elements()) == len(second.elements())
    ):
        parts = [unify(a, b, to_union) for a, b in zip(first.elements(), second.elements(), strict=True)]
        if all(part is not None for part in parts):
            return TupleType(parts)
    if isinstance(first, FutureType) and isinstance(second, FutureType):
        inner = unify(first.element, second.element)
        return FutureType(inner) if inner is not None else None
    return UnionType([first, second]) if to_union else None
