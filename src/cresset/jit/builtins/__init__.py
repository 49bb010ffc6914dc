"""Operators of TorchScript that are no tensor operators: on numbers, text, lists and dicts, and questions to tensors.
By topic.

A function here takes all arguments of the operator's schema, in its order.
"""

from . import containers, numbers, strings, tensors

_plain = {**strings.builtins, **numbers.builtins, **containers.builtins, **tensors.creation}


def of_plain_values(kind):
    """What runs an operator whose inputs are no tensors, or which begins with a list, dict or text; None if nothing
    here does.
    """
    return _plain.get(kind)


def of_tensors(kind):
    """What runs an operator that gets a tensor, where it is none of the tensor operators; or None."""
    return tensors.builtins.get(kind) or _MIXED.get(kind)


# Of any values, tensors among them.
_MIXED = {
    name: _plain[name]
    for name in (
        "aten::format",
        "aten::str",
        "prim::Print",
        "prim::IfThenElse",
        "aten::_unwrap_optional",
        "aten::percentFormat",
    )
}
