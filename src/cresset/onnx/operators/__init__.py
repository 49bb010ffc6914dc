"""How each operator is written as ONNX: `rules` maps the operator's name to a function of the graph and the call's
arguments.

A rule stands with its operator, in cresset/ops (`@cumsum.onnx`). Here are those that need the recorder's values and
sizes, and the formulas.

A rule asks by name for those arguments of the operator that it needs, and gives the name of its result, or a list of
them. Pointwise operators that have no rule are written by their formula. Functions made of operators are written
operator by operator, except those in `functions`, which ONNX has as one node.
"""

import cresset

from ...ops.pointwise import definitions
from ...ops.registry import export_rules as rules
from ...ops.registry import onnx as exports  # noqa: F401

functions = {}  # name -> whether its arguments allow one node: accepts(opset, *args, **kwargs)


def exports_function(name, accepts):
    """Decorator: the rule for a function made of operators, where `accepts` says that it can be used. It gets the
    call's arguments as they are.
    """

    def enter(rule):
        functions[name] = accepts
        rules[name] = rule
        return rule

    return enter


def shape_as_tensor(x):
    """torch.onnx.operators.shape_as_tensor: the sizes of a tensor as a tensor.

    >>> cresset.onnx.operators.shape_as_tensor(cresset.ones(2, 3))
    tensor([2, 3])
    """
    return cresset.tensor(list(x.shape), dtype=cresset.int64)


def reshape_from_tensor_shape(x, shape):
    """torch.onnx.operators.reshape_from_tensor_shape: `x` in the shape that a tensor holds."""
    return x.reshape(shape.tolist())


def names():
    """The operators that can be written."""
    return {*rules, *definitions}


from . import indexing, pointwise, resampling  # noqa: E402, F401
