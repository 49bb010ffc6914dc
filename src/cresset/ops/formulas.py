"""The formulas read with tensors: what backward of a pointwise operator is when the backward itself is recorded."""

from .. import _native

_CASTS = {"int": int, "bool": bool}

operators = _native.operators()  # those of the package
own = {}  # the pointwise operators that the program has defined itself, by the key that their native form knows


def backward(name, grad, inputs, output, attributes, needs):
    """The gradients of the pointwise operator `name`, as ordinary (and so differentiable) operations, and what the
    first of them leads to although it is constant in pieces ("input", "output" or None).

    Loaded on first use: eager training never needs it.
    """
    formula = definition(name)
    values = [_CASTS.get(a.kind, lambda v: v)(v) for a, v in zip(formula.attributes, attributes, strict=True)]
    return formula.gradients(grad, inputs, values, output), formula.flat


def definition(name):
    """The formula of a pointwise operator, ready to be called with tensors; None for another operator."""
    from .pointwise import definitions, set_tensor_operator

    set_tensor_operator(operators.__getitem__)
    return definitions.get(name) or own.get(name)


def update(name):
    """The step of an optimizer, ready to be called with tensors."""
    from .pointwise import set_tensor_operator, stepping  # noqa: F401
    from .pointwise.update import updates

    set_tensor_operator(operators.__getitem__)
    return updates[name]


_native.set_pointwise_derivative(backward)
