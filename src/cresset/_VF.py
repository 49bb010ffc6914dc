"""torch._VF: the functions of tensors that `torch.<name>` shows, and those below them, for callers that keep away from
Python's overrides."""

import cresset

from .show.missing_names import MissingName


def __getattr__(name):
    found = None if name.startswith("__") else getattr(cresset, name, None)
    if not callable(found):
        raise MissingName(__name__, name)
    return found
