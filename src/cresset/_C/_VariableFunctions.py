"""torch._C._VariableFunctions: the functions of tensors that `torch.<name>` shows."""

import cresset

from ..show.missing_names import MissingName

_OPERATORS = ("__and__", "__lshift__", "__or__", "__rshift__", "__xor__")  # functions of these names, too


def __getattr__(name):
    found = getattr(cresset.Tensor, name) if name in _OPERATORS else cresset.ops.registry.functions.get(name)
    if found is None:
        raise MissingName(__name__, name)
    return found


def __dir__():
    return sorted(cresset.ops.registry.functions)
