"""Passes over graphs: shapes, checks, splitting, compiled regions, drawing. Each loads when it is first used."""

import importlib

from ...show import missing_names as _missing_names

_PASSES = {"graph_drawer", "regional_inductor", "runtime_assert", "shape_prop", "split_module"}
_missing = _missing_names.of(__name__)


def __getattr__(name):
    return importlib.import_module("." + name, __name__) if name in _PASSES else _missing(name)


def __dir__():
    return sorted({*globals(), *_PASSES})
