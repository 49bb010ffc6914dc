"""torch.jit: programs compiled from Python source (script) or recorded (trace) into a Graph, run without Python, saved
with their parameters.

The marks that source carries (`ignore`, `export`, `is_scripting`, ...) are here at once; the compiler loads when it is
first used.
"""

import importlib as _importlib

from ..futures import Future  # noqa: F401
from ..show import missing_names as _missing_names
from . import _state  # noqa: F401
from .marks import (  # noqa: F401
    Attribute,
    Final,
    _drop,
    _IgnoreContextManager,
    _overload,
    _overload_method,
    _unwrap_optional,
    annotate,
    export,
    fork,
    ignore,
    interface,
    is_scripting,
    is_tracing,
    isinstance,
    script_if_tracing,
    unused,
    wait,
)
from .settings import (  # noqa: F401
    enable_onednn_fusion,
    fuser,
    onednn_fusion_enabled,
    optimized_execution,
    set_fusion_strategy,
    strict_fusion,
)

_fork, _wait, _script_if_tracing, _isinstance, _set_fusion_strategy = (
    fork,
    wait,
    script_if_tracing,
    isinstance,
    set_fusion_strategy,
)


class ScriptWarning(Warning):
    """A warning about source that is compiled otherwise than it may seem."""


# Names of modules that load when they are first used.
_LATER = {
    **dict.fromkeys(
        (
            "ScriptFunction",
            "ScriptModule",
            "ScriptMethod",
            "RecursiveScriptModule",
            "TracedModule",
            "TopLevelTracedModule",
        ),
        "objects",
    ),
    **dict.fromkeys(("script", "script_method"), "scripting"),
    "Error": "failures",
    "CompilationUnit": "compilation_unit",
    **dict.fromkeys(("trace", "trace_module", "TracerWarning", "TracingCheckError"), "tracing"),
    **dict.fromkeys(("freeze", "optimize_for_inference", "run_frozen_optimizations"), "freezing"),
    **dict.fromkeys(("last_executed_optimized_graph", "export_opnames", "set_module"), "inquiries"),
    **dict.fromkeys(("jit_module_from_flatbuffer", "save_jit_module_to_flatbuffer"), "inquiries"),
    "_get_trace_graph": "trace_graph",
    "save": "saving",
    "load": "loading",
}

_SUBMODULES = {"frontend", "annotations", "builtins", "_recursive"}


def __getattr__(name):
    if name in _LATER:
        return getattr(_importlib.import_module("." + _LATER[name], __name__), name)
    if name in _SUBMODULES:
        return _importlib.import_module("." + name, __name__)
    raise _missing_names.MissingName(__name__, name)


def __dir__():
    return sorted({*globals(), *_LATER, *_SUBMODULES})
