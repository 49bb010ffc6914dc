"""torch.export: a module as a graph of aten operators with its parameters, to look at, to change, to save, and to write
as C.

>>> program = cresset.export.export(nn.Sequential(nn.Linear(4, 2), nn.ReLU()), (cresset.ones(1, 4),))
>>> [str(node.target) for node in program.graph.nodes if node.op == "call_function"]
['aten.linear.default', 'aten.relu.default']
"""

import importlib as _importlib

from ..show import missing_names as _missing_names
from . import dynamic_shapes, graph_signature
from .dynamic_shapes import AdditionalInputs, Constraint, Dim, ShapesCollection, dims
from .graph_signature import ExportBackwardSignature, ExportGraphSignature

__all__ = [
    "AdditionalInputs", "Constraint", "CustomDecompTable", "Dim", "ExportBackwardSignature", "ExportGraphSignature",
    "ExportedProgram",
    "ModuleCallEntry", "ModuleCallSignature",
    "ShapesCollection", "default_decompositions", "dims", "dynamic_shapes", "export", "graph_signature", "load",
    "register_dataclass", "save",
    "to_c", "unflatten", "UnflattenedModule", "FlatArgsAdapter",
]  # fmt: skip

_LATER = {
    "ExportedProgram": "program", "ModuleCallEntry": "program", "ModuleCallSignature": "program", "export": "exporting",
    "register_dataclass": "containers", "to_c": "c", "save": "archive", "load": "archive", "unflatten": "unflattening",
    "UnflattenedModule": "unflattening", "FlatArgsAdapter": "unflattening",
    "CustomDecompTable": "decomposing", "default_decompositions": "decomposing",
}  # fmt: skip


def __getattr__(name):
    if name in _LATER:
        return getattr(_importlib.import_module("." + _LATER[name], __name__), name)
    raise _missing_names.MissingName(__name__, name)


def __dir__():
    return sorted({*globals(), *_LATER})
