"""The words that all stubs share: types by their builtin names (which methods and dtypes of the same name would hide),
and the text of types that operators' signatures and Python values stand for."""

import builtins
import keyword

HEADER = '''\
"""Printed by the build from the package itself (tools/stubs); do not edit."""

import builtins
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, TypeAlias, overload

_bool: TypeAlias = builtins.bool
_int: TypeAlias = builtins.int
_float: TypeAlias = builtins.float
_str: TypeAlias = builtins.str
_type: TypeAlias = builtins.type[Any]
_Number: TypeAlias = builtins.bool | builtins.int | builtins.float | builtins.complex
'''

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
