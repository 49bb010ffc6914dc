"""Operators of TorchScript that are no tensor operators: on numbers, text, lists and dicts, and questions to tensors. By topic.

A function here takes all arguments of the operator's schema, in its order.
"""

from . import containers, numbers, strings, tensors

_plain = {**numbers.builtins, **containers.builtins, **tensors.creation}
for _name, _function in strings.builtins.items():
    # `count`, `index`, `len` are names of both text and lists: Python's methods tell them apart.
    _plain.setdefault(_name, _function)


def of_plain_values(kind):
    """What runs an operator that gets no tensor, or None."""
    return _plain.get(kind)


def of_tensors(kind):
    """What runs an operator that gets a tensor, where it is none of the tensor operators; or None."""
    return tensors.builtins.get(kind) or containers.builtins.get(kind)
