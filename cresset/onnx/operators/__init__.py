"""How each operator is written as ONNX: `rules` maps the operator's name to a function of the graph and the call's arguments.

A rule asks by name for those arguments of the operator that it needs, and gives the name of its result, or a list of them. Pointwise
operators that have no rule are written by their formula.
"""

from ...ops.pointwise import definitions

rules = {}


def exports(*names):
    """Decorator: the rule for these operators."""

    def enter(rule):
        rules.update(dict.fromkeys(names, rule))
        return rule

    return enter


def names():
    """The operators that can be written."""
    return {*rules, *definitions}


from . import (  # noqa: E402, F401
    convolving,
    creating,
    indexing,
    joining,
    normalizing,
    pointwise,
    products,
    recurrence,
    reducing,
    sorting,
    viewing,
)
