"""torch._C._VariableFunctions: the functions of tensors that `torch.<name>` shows."""

import cresset

from ..show.missing_names import MissingName


def __getattr__(name):
    found = cresset._ops.functions.get(name)
    if found is None:
        raise MissingName(__name__, name)
    return found


def __dir__():
    return sorted(cresset._ops.functions)
