"""`torch.ops.<namespace>.<name>.<overload>`: operators by their schemas, those defined by programs (torch.library) and,
under `aten`, ours.

A schema is text such as `mylib::scale(Tensor x, float by=1.0, *, Tensor(a!) out) -> Tensor`; `(a!)` marks an argument
that is written to.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from numbers import Integral, Number, Real
from typing import NamedTuple

from .. import _native

NAMESPACES = {}  # name -> OpNamespace


# ---- schemas


class AliasInfo(NamedTuple):
    """Which memory a parameter or result of a schema is in, and whether it is written to."""

    before_set: frozenset
    after_set: frozenset
    is_write: bool


_SIZED = re.compile(r"\w+\[(\d+)\]")


@dataclass
class Argument:
    """A parameter or result of a schema."""

    name: str
    type: str
    default: object = None
    has_default: bool = False
    keyword_only: bool = False
    is_written: bool = False
    text: str = field(default="", repr=False)

    def __str__(self):
        return self.text

    # What PyTorch calls these.

    @property
    def alias_info(self):
        """Which memory it is in, by the letters of the schema; None where it says nothing."""
        found = _ALIAS.search(self.text.partition("=")[0])
        if found is None:
            return None
        before, _, after = found[0][1:-1].replace("!", "").replace(" ", "").partition("->")
        before_set = frozenset(f"alias::{letter}" for letter in before.split("|"))
        return AliasInfo(
            before_set,
            frozenset(f"alias::{letter}" for letter in after.split("|")) if after else before_set,
            self.is_written,
        )

    @property
    def filled(self):
        """What a call gets that leaves it out."""
        if isinstance(self.default, str) and self.type.startswith("ScalarType"):
            return getattr(_native, self.default)
        if isinstance(self.default, str) and self.type.startswith("Device"):
            return _native.device(self.default)
        return self.default

    @property
    def kwarg_only(self):
        """Whether it has to be named."""
        return self.keyword_only

    @property
    def is_out(self):
        """Whether it is a place for a result."""
        return self.keyword_only and self.is_written

    @property
    def default_value(self):
        """The default; of a dtype its number, of a list of so many numbers (`int[2] padding=0`) all of them."""
        if "ScalarType" not in self.type:
            sized = _SIZED.match(self.text)
            alone = sized is not None and isinstance(self.default, (bool, int, float))
            return [self.default] * int(sized[1]) if alone else self.default
        from ..graph.scalar_types import NUMBERS  # upward: who reads a schema as PyTorch's does asks for numbers

        return NUMBERS.get(self.default, self.default)

    def has_default_value(self):
        """Whether it may be left out."""
        return self.has_default


class Schema:
    """The parsed form of a schema's text."""

    def __init__(self, text):
        match = re.fullmatch(r"\s*(?:(\w+)::)?(\w+)(?:\.(\w+))?\s*\((.*)\)\s*->\s*(.+?)\s*", text, re.S)
        if match is None:
            raise RuntimeError(f"a schema reads `name(Type argument, ...) -> Type`, got {text!r}")
        self.namespace, self.op, self.overload_name = match[1], match[2], match[3] or ""
        self.arguments, keyword_only = [], False
        for piece in split_commas(match[4]):
            if piece == "*":
                keyword_only = True
            else:
                self.arguments.append(_argument(piece, keyword_only))
        results = match[5]
        inside = results[1:-1] if results.startswith("(") and results.endswith(")") else results
        self.returns = [_result(piece) for piece in split_commas(inside)] if inside.strip() else []

    @property
    def name(self):
        return f"{self.namespace}::{self.op}" if self.namespace else self.op

    @property
    def is_mutable(self):
        """Whether an argument is written to."""
        return any(argument.is_written for argument in self.arguments)

    def __str__(self):
        arguments, before = [], False
        for argument in self.arguments:
            if argument.keyword_only and not before:
                arguments.append("*")
            before = argument.keyword_only
            arguments.append(argument.text)
        results = ", ".join(result.text for result in self.returns)
        results = results if len(self.returns) == 1 and not results.startswith("(") else f"({results})"
        return (
            f"{self.name}{'.' + self.overload_name if self.overload_name else ''}({', '.join(arguments)}) -> {results}"
        )

    __repr__ = __str__

    def __eq__(self, other):
        return self is other or (isinstance(other, Schema) and str(self) == str(other))

    def __hash__(self):
        return hash((self.namespace, self.op, self.overload_name))

    def bind(self, args, kwargs):
        """The arguments in order, defaults filled in."""
        positional = [argument for argument in self.arguments if not argument.keyword_only]
        if len(args) > len(positional):
            raise RuntimeError(
                f"{self.name}() expected at most {len(positional)} argument(s) but received {len(args)} argument(s). "
                f"Declaration: {self}"
            )
        given = dict(zip((argument.name for argument in positional), args, strict=False))
        for name, value in kwargs.items():
            if name in given or all(name != argument.name for argument in self.arguments):
                raise RuntimeError(
                    f"{self.name}() got an unexpected or repeated argument '{name}'. Declaration: {self}"
                )
            given[name] = value
        values = []
        for argument in self.arguments:
            if argument.name in given:
                values.append(_checked(self, argument, given[argument.name]))
            elif argument.has_default:
                values.append(argument.filled)
            else:
                raise RuntimeError(
                    f"{self.name}() is missing value for argument '{argument.name}'. Declaration: {self}"
                )
        return values


def split_commas(text):
    """The parts between commas, brackets kept whole."""
    depth, part, parts = 0, "", []
    for character in text + ",":
        depth += (character in "([") - (character in ")]")
        if character == "," and depth == 0:
            parts.append(part.strip())
            part = ""
        else:
            part += character
    return [part for part in parts if part]


# A type: a word, or one of parts such as Dict(str, t), and after it which memory it shares, and whether it is a list of
# these or optional.
_TYPE = r"([\w.]+(?:\((?:[^()]|\([^()]*\))*\))?[\w\[\]?()!|*>\- ]*?|\((?:[^()]|\([^()]*\))*\)(?:\([^()]*\))?[\[\]?]*)"
_ALIAS = re.compile(
    r"(?<!Future)(?<!RRef)(?<!Await)\((?:[a-z]\d*!?|(?:[a-z]\d*|\*)!?(?:\|[a-z]\d*)*(?: ?-> ?[*a-z|\d]+)?)\)"
)  # (a), (a!), (a -> *), (b|a): which memory


def without_memory(type_text):
    """A type of a schema without the marks of which memory it is in: `Tensor(a!)` is `Tensor`."""
    return _ALIAS.sub("", type_text)


def _argument(piece, keyword_only):
    if piece == "...":
        return Argument("", "...", text=piece)
    match = re.fullmatch(_TYPE + r"\s+(\w+)\s*(?:=\s*(.*))?", piece, re.S)
    if match is None:
        raise RuntimeError(f"a parameter of a schema reads `Type name` or `Type name=default`, got {piece!r}")
    type_text, name, default = match.groups()
    return Argument(
        name, without_memory(type_text), _default(default), default is not None, keyword_only, "!" in type_text, piece
    )


def _result(piece):
    match = re.fullmatch(_TYPE + r"(?:\s+(\w+))?", piece, re.S)
    if piece != "..." and match is None:
        raise RuntimeError(f"a result of a schema reads `Type` or `Type name`, got {piece!r}")
    type_text, name = match.groups() if match else ("...", None)
    return Argument(name or "", without_memory(type_text), is_written="!" in type_text, text=piece)


_ESCAPES = {"n": "\n", "t": "\t", "f": "\f", "v": "\v", "r": "\r"}


def _default(text):
    if text is None:
        return None
    words = {"None": None, "True": True, "False": False, "true": True, "false": False}
    if text in words:
        return words[text]
    if text[0] in "\"'":
        return re.sub(r"\\(.)", lambda found: _ESCAPES.get(found[1], found[1]), text[1:-1])
    if text.startswith("["):
        return [_default(part) for part in split_commas(text[1:-1])]
    for kind in (int, float, complex):
        try:
            return kind(text)
        except ValueError:
            continue
    return text  # a dtype, a layout or the like, by name


_CHECKS = {
    "Tensor": _native.Tensor, "int": int, "SymInt": int, "float": (int, float), "bool": bool, "str": str,
    "Scalar": (int, float, complex), "ScalarType": _native.dtype,
    "Device": (_native.device, str), "Layout": _native.layout, "MemoryFormat": _native.memory_format,
    "Generator": _native.Generator,
}  # fmt: skip


# The classes of numbers that a NumPy number may be of: numpy.float32 is no float.
_OF_NUMPY = {"int": Integral, "SymInt": Integral, "float": Real, "Scalar": Number}

# Operators of aten that take a number in the place of a tensor, as PyTorch's do.
TAKE_NUMBERS = {
    "add", "sub", "subtract", "mul", "multiply", "div", "divide", "true_divide", "floor_divide", "copy",
}  # fmt: skip


def _checked(schema, argument, value):
    """The value, if it is of the argument's type."""
    kind = argument.type
    if kind.endswith("?"):
        if value is None:
            return None
        kind = kind[:-1]
    match = re.fullmatch(r"(.+)\[\d*\]", kind)
    if kind in ("float", "int", "SymInt") and isinstance(value, _native.Tensor) and value.numel() == 1:
        value = float(value) if kind == "float" else int(value)
    if kind in _OF_NUMPY and isinstance(value, _OF_NUMPY[kind]) and type(value).__module__ == "numpy":
        value = value.item()
    if match:
        if isinstance(value, Sequence) and not isinstance(value, (list, tuple, str, bytes)):
            value = list(value)
        items = value if isinstance(value, (list, tuple)) else [value]
        element = match[1].removesuffix("?")
        fits = all(
            isinstance(item, _CHECKS.get(element, object)) or (item is None and match[1].endswith("?"))
            for item in items
        )
        fits = fits and (isinstance(value, (list, tuple)) or not isinstance(value, _native.Tensor))
    else:
        fits = isinstance(value, _CHECKS.get(kind, object)) and not (
            kind in ("int", "SymInt", "float") and isinstance(value, bool) and kind == "float"
        )
        takes_number = kind == "Tensor" and schema.namespace == "aten" and schema.op.removesuffix("_") in TAKE_NUMBERS
        fits = fits or (takes_number and isinstance(value, (int, float, complex)))
    if not fits and not hasattr(type(value), "__torch_function__"):
        raise RuntimeError(
            f"{schema.name}() Expected a value of type '{argument.type}' for argument '{argument.name}' but instead "
            f"found type '{type(value).__name__}'. Declaration: {schema}"
        )
    return list(value) if match and isinstance(value, tuple) and kind.startswith("Tensor") else value


# ---- namespaces


class OpNamespace:
    """`torch.ops.<name>`: the operators of a namespace."""

    def __init__(self, name):
        self.name, self._packets = name, {}

    def __getattr__(self, name):
        if not name.startswith("__") and "_packets" in self.__dict__:
            packet = self._packets.get(name)
            if packet is None and self.name == "aten":
                from . import aten_table

                packet = aten_table.packet(name)
                if packet is not None:
                    self._packets[name] = packet
            elif packet is None and self.name == "quantized":
                from ..ao.operators import packets  # upward: quantized layers are made of these

                packet = packets().get(name)
            elif packet is None and self.name in ("_c10d_functional", "c10d_functional", "c10d"):
                from ..distributed import operators  # noqa: F401  # upward: made when a program names one

                packet = self._packets.get(name)
            elif packet is None and self.name == "profiler":
                from ..profiler.operators import PACKETS  # upward: a range is theirs

                packet = PACKETS.get(name)
            if packet is not None:
                return packet
        hint = "; module 'cresset' has no operator of that name" if self.name == "aten" else ""
        raise AttributeError(f"'_OpNamespace' '{self.name}' object has no attribute '{name}'{hint}")

    def __dir__(self):
        from . import aten_table

        if self.name == "quantized":
            from ..ao.operators import packets  # upward: quantized layers are made of these

            return sorted({*self._packets, *packets()})
        return sorted({*self._packets, *(aten_table.names() if self.name == "aten" else ())})

    def __reduce__(self):
        return namespace, (self.name,)

    def __repr__(self):
        return f"<module 'torch.ops.{self.name}'>"


class OpOverload:
    """One operator with one schema: `torch.ops.<namespace>.<name>.<overload>`. What it runs, its kinds say."""

    _defined_in_python = False

    def __init__(self, schema, tags=()):
        self._schema, self.tags = schema, list(tags)
        self._overloadname = schema.overload_name or "default"
        self._opname = schema.op
        self.__name__ = f"{schema.op}.{self._overloadname}"
        self.__module__ = f"torch.ops.{schema.namespace}"

    @property
    def namespace(self):
        return self._schema.namespace

    @property
    def _name(self):
        return self.name()

    @property
    def _overloadpacket(self):
        return self.overloadpacket

    @property
    def is_view(self):
        """Whether a result shares the memory of an argument that is not written to."""
        return any(r.alias_info is not None and not r.is_written for r in self._schema.returns)

    def __hash__(self):
        return object.__hash__(self)

    def __eq__(self, other):
        return self is other

    def name(self):
        """The name with its namespace: 'mylib::scaled'."""
        return self._schema.name + (f".{self._schema.overload_name}" if self._schema.overload_name else "")

    def __reduce__(self):
        return overload_named, (self._schema.namespace, self._opname, self._overloadname)

    def schema_of_call(self, args, kwargs):
        return self._schema.bind(args, kwargs)

    def __str__(self):
        return f"{self._schema.namespace}.{self.__name__}"

    def __repr__(self):
        return f"<OpOverload(op='{self._schema.namespace}.{self._schema.op}', overload='{self._overloadname}')>"


class PythonOverload(OpOverload):
    """An overload that is a Python function of the arguments in the schema's order."""

    def __init__(self, packet, schema, run):
        super().__init__(schema)
        self.overloadpacket, self._run = packet, run

    def __call__(self, /, *args, **kwargs):
        return self._run(*self._schema.bind(args, kwargs))


class OpOverloadPacket:
    """`torch.ops.<namespace>.<name>`: the overloads of an operator, of which a call takes the first that fits."""

    def __init__(self, qualname):
        self._qualified_op_name = qualname
        self.__name__ = qualname.partition("::")[2]
        self.__module__ = "torch.ops." + qualname.partition("::")[0]
        self._overloads = {}

    def overloads(self):
        """The names of the overloads."""
        return list(self._overloads)

    def __getattr__(self, name):
        found = None if name.startswith("__") else self.__dict__.get("_overloads", {}).get(name)
        if found is None:
            raise AttributeError(f"The underlying op of '{self}' has no overload name '{name}'")
        return found

    def __call__(self, *args, **kwargs):
        from ..overrides import handle_torch_function, has_torch_function

        asked = (*args, *kwargs.values())
        if has_torch_function(asked):
            return handle_torch_function(self, asked, *args, **kwargs)
        return self.call_overload(*args, **kwargs)

    def overload_of(self, args, kwargs):
        """The first overload that takes the arguments."""
        problems = []
        for overload in self._overloads.values():
            try:
                overload.schema_of_call(args, kwargs)
            except RuntimeError as error:
                problems.append(error)
            else:
                return overload
        raise problems[-1]

    def call_overload(self, *args, **kwargs):
        """Call the first overload that takes the arguments, which are not asked."""
        return self.overload_of(args, kwargs)(*args, **kwargs)

    def __str__(self):
        return self._qualified_op_name.replace("::", ".")

    def __repr__(self):
        return f"<OpOverloadPacket(op='{self}')>"

    def __reduce__(self):
        return packet_named, tuple(self._qualified_op_name.split("::"))


def packet_named(space, name):
    """`torch.ops.<space>.<name>`: what copies and pickles of it are."""
    return getattr(namespace(space), name)


def overload_named(space, name, overload):
    """`torch.ops.<space>.<name>.<overload>`, likewise."""
    return getattr(packet_named(space, name), overload)


def namespace(name):
    """The namespace of this name, made when first asked for."""
    if name not in NAMESPACES:
        NAMESPACES[name] = OpNamespace(name)
    return NAMESPACES[name]


def load_library(path):
    """The operators of a compiled library. Those of some packages are known and stood in for; others are compiled for
    PyTorch and cannot be loaded.
    """
    from ..standing_in import (
        compiled_libraries,  # upward: a library of another package is asked for by its path, when a program names it
    )

    compiled_libraries.load(path)
