"""What programs ask of compiled modules beside running them."""

import re

from ..graph.types import ClassType
from .lowering import last_lowered

_MANGLE = re.compile(r"\.___torch_mangle_\d+")  # what keeps classes of one name apart


def last_executed_optimized_graph():
    """The graph of the program that was made last: there is one plan for a graph here."""
    graph = last_lowered()
    if graph is None:
        raise RuntimeError("last_executed_optimized_graph: no program has been made yet")
    return graph


def export_opnames(m):
    """The names of the operators that a compiled module calls.

    >>> cresset.jit.export_opnames(cresset.jit.trace(cresset.nn.ReLU(), cresset.ones(1)))
    ['aten::relu']
    """
    found, pending, seen = set(), list(m._script_type.methods.values()), set()
    while pending:
        function = pending.pop().ensure_defined()
        if function in seen or function.graph is None:
            continue
        seen.add(function)
        for node in function.graph.all_nodes():
            if node.kind() == "prim::CallMethod":
                called = node.inputsAt(0).type().methods.get(node.attributes["name"])
                pending += [called] if called is not None else []
            elif node.kind() == "prim::CallFunction":
                pending.append(node.inputsAt(0).node().attributes["function"])
            elif node.schema is not None:
                overload = node.schema.overload_name
                found.add(f"{node.kind()}.{overload}" if overload else node.kind())
    return sorted(found)


def values_have_equal_types(a, b):
    """Whether the attributes of two modules are of the same types, whatever their classes are called."""
    return _equal_types(a._type(), b._type(), set())


def _equal_types(a, b, seen):
    if not isinstance(a, ClassType) or not isinstance(b, ClassType):
        return _MANGLE.sub("", str(a)) == _MANGLE.sub("", str(b))
    if (a, b) in seen:
        return True
    seen.add((a, b))
    return list(a.attributes) == list(b.attributes) and all(
        _equal_types(kind, b.attributes[name], seen) for name, kind in a.attributes.items()
    )


def set_module(obj, mod):
    """Say of which module an object is."""
    if not isinstance(mod, str):
        raise TypeError("The mod argument should be a string")
    obj.__module__ = mod


_NO_FLATBUFFERS = (
    "PyTorch's flatbuffer files, for its mobile interpreter, are not read or written; torch.jit.save writes archives"
)


def jit_module_from_flatbuffer(f):
    """Refused: the format of PyTorch's mobile interpreter is not read."""
    raise RuntimeError(f"jit_module_from_flatbuffer: {f!r:.100}: {_NO_FLATBUFFERS}")


def save_jit_module_to_flatbuffer(m, f, _extra_files=None):
    """Refused: the format of PyTorch's mobile interpreter is not written."""
    raise RuntimeError(f"save_jit_module_to_flatbuffer: {type(m).__name__} to {f!r:.100}: {_NO_FLATBUFFERS}")
