"""Engines of quantized operators. One implementation computes them all; the setting keeps the name of an engine for
those who ask.
"""

from .settings import Kept, make_settings

__all__ = []

_ENGINES = ["qnnpack", "onednn", "x86", "fbgemm"]


def _engine(_, value):
    if value not in (*_ENGINES, "none", "", None):
        raise RuntimeError(f"{value} is not a valid value for quantized engine")
    if value not in _ENGINES:
        raise RuntimeError("quantized engine NoQEngine is not supported")
    return value


def _fixed(*_):
    raise RuntimeError("Assignment not supported")


make_settings(__name__, engine=Kept("x86", _engine, freezes=False), supported_engines=Kept(_ENGINES, _fixed))
