"""Ways to make graphs, and symbols for sizes, that PyTorch calls experimental. Each loads when it is first used."""

import importlib as _importlib

from ...show import missing_names as _missing_names

_PARTS = {
    "const_fold", "merge_matmul", "normalize", "optimization", "proxy_tensor", "rewriter", "schema_type_annotation",
    "sym_node", "symbolic_shapes",
}  # fmt: skip
_missing = _missing_names.of(__name__)


def __getattr__(name):
    return _importlib.import_module("." + name, __name__) if name in _PARTS else _missing(name)
