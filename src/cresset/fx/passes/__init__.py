"""Passes over graphs: shapes, checks, splitting, compiled regions, drawing. Each loads when it is first used."""

import importlib

from ...show import missing_names as _missing_names

_PASSES = {
    "annotate_getitem_nodes", "fake_tensor_prop", "graph_drawer", "graph_manipulation", "infra", "operator_support",
    "param_fetch", "pass_manager", "regional_inductor", "runtime_assert", "shape_prop", "split_module", "split_utils",
    "tools_common", "utils",
}  # fmt: skip
_missing = _missing_names.of(__name__)


def __getattr__(name):
    return importlib.import_module("." + name, __name__) if name in _PASSES else _missing(name)


def __dir__():
    return sorted({*globals(), *_PASSES})
