"""The words that all stubs share: types by their builtin names (which methods and dtypes of the same name would hide),
and the text of types that operators' signatures and Python values stand for."""

import builtins
import keyword

# The types by their builtin names, and what else a stub may use of other modules. Each stub says what it uses alone:
# there are a thousand of them, and they travel in the wheel.
ALIASES = {
    "_bool": "builtins.bool",
    "_int": "builtins.int",
    "_float": "builtins.float",
    "_str": "builtins.str",
    "_type": "builtins.type[Any]",
    "_Number": "builtins.bool | builtins.int | builtins.float | builtins.complex",
}
IMPORTS = {
    "collections.abc": ["Callable", "Iterable", "Iterator", "Sequence"],
    "contextlib": ["AbstractContextManager"],
    "typing": ["Any", "NamedTuple", "Self", "SupportsIndex", "TypeAlias", "TypeVar", "overload"],
    "cresset._native": [f"{kind} as _{kind}" for kind in ("Tensor", "device", "dtype", "layout", "memory_format")],
}

# What a signature's type is in Python. Numbers may stand where pointwise operators take tensors (schemas.py).
OF_SCHEMAS = {
    "Tensor": "Tensor",
    "Operand": "Tensor | _Number",
    "Scalar": "_Number | Tensor",
    "int": "_int",
    "SymInt": "_int",
    "float": "_float",
    "bool": "_bool",
    "str": "_str",
    "ScalarType": "_dtype | _type",
    "Device": "_device | _str | _int",
    "Layout": "_layout",
    "MemoryFormat": "_memory_format",
    "Generator": "Generator",
}

# What a default says of a parameter nobody annotated. Integers, strings and None say too little: 1 may stand for a
# pair.
OF_DEFAULTS = {bool: "_bool", float: "_float"}
OF_CONSTANTS = {bool: "_bool", float: "_float", int: "_int", str: "_str"}


def is_usable(name):
    return name.isidentifier() and not keyword.iskeyword(name)


def is_public(name):
    return is_usable(name) and (not name.startswith("_") or (name.startswith("__") and name.endswith("__")))


def safe(name):
    """A parameter's name; `from` cannot be one in Python's source."""
    return name + "_" if keyword.iskeyword(name) else name


def is_builtin(name):
    return hasattr(builtins, name)
