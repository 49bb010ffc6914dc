"""Elementwise operators as formulas. Each family is a file; `definitions` has all operators by name, in a fixed order.

Importing this package needs neither the native module nor the rest of cresset: the build reads the formulas from here.
"""

from . import (
    activation,
    arithmetic,
    comparison,
    exponential,
    logic,
    loss,
    polynomial,
    rounding,
    selection,
    special,
    trigonometric,
)
from .definition import Pointwise, definitions, pointwise, set_tensor_operator
from .expression import Expression

FAMILIES = (
    comparison, logic, selection, rounding, arithmetic, exponential, trigonometric, special, polynomial, activation,
    loss,
)  # fmt: skip

__all__ = ["FAMILIES", "Expression", "Pointwise", "definitions", "family_operators", "pointwise", "set_tensor_operator"]


def __getattr__(name):
    """The operators by name, for formulas elsewhere: `from cresset.ops.pointwise import exp, pointwise, where`."""
    if name in definitions:
        return definitions[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def family_operators(family):
    """The operators that a family file defines, in its order."""
    name = family.__name__.rpartition(".")[2]
    return [operator for operator in definitions.values() if operator.family == name]
