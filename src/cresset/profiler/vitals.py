"""Facts that parts of a program note about themselves, for who looks at many programs: only where TORCH_VITAL is
set."""

import os

__all__ = ["read_vitals", "set_vital", "vitals_enabled"]

_noted: dict[tuple[str, str], str] = {}


def vitals_enabled():
    """Whether facts are kept."""
    return bool(os.environ.get("TORCH_VITAL"))


def set_vital(vital, attr, value):
    """Keep that `attr` of the part `vital` has this value; whether it was kept."""
    if vitals_enabled():
        _noted[vital, attr] = str(value)
    return vitals_enabled()


def read_vitals():
    """What was kept, a line each."""
    return "".join(f"[TORCH_VITAL] {vital}.{attr}\t\t {value}\n" for (vital, attr), value in _noted.items())
