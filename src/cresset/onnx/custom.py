"""Rules of a program's own: how an operator that it registered, or one of the package's, becomes ONNX."""

import re

from .graph import Graph

symbolics = {}  # "namespace::name" -> {opset: function}

SUFFIX = re.compile(r"(.+)_([fist])$")


class SymbolicGraph:
    """What a symbolic function writes into, with the names of PyTorch: g.op("domain::Kind", x, alpha_f=0.5)."""

    def __init__(self, graph: Graph):
        self.graph = graph

    def op(self, opname, *raw_args, outputs=1, **kwargs):
        """Add a node. The suffix of an attribute's name is its type: float, integer, string or tensor."""
        domain, _, kind = opname.rpartition("::")
        domain = "" if domain in ("onnx", "ai.onnx") else domain
        attributes = {}
        for name, value in kwargs.items():
            match = SUFFIX.fullmatch(name)
            if match is None:
                raise TypeError(f"op: the attribute {name!r} has no type; end its name in _f, _i, _s or _t")
            attributes[match[1]] = value
        if kind == "Constant" and not domain:
            return self.graph.initializer(attributes["value"])
        self.graph.opsets.setdefault(domain, 1)
        return self.graph.op(kind, *raw_args, outputs=outputs, domain=domain, **attributes)


def register_custom_op_symbolic(symbolic_name, symbolic_fn, opset_version):
    """Say how an operator is written: `symbolic_fn(g, *args)` gets the call's arguments and gives what g.op(...) gave.

    Args:
        symbolic_name: "namespace::name" of an operator of torch.library, or "aten::name" of one of the package's.
        opset_version: the first opset that it is for.

    >>> cresset.onnx.register_custom_op_symbolic("aten::relu", lambda g, x: g.op("mine::Rectify", x, slope_f=0.0), 14)
    >>> cresset.onnx.export(nn.ReLU(), (cresset.ones(2),), input_names=["x"], verbose=True)
    output = Rectify(x)
    <ONNXProgram, opset 18: ['x'] -> ['output'], 1 nodes>
    >>> cresset.onnx.unregister_custom_op_symbolic("aten::relu", 14)
    """
    if not re.fullmatch(r"[^:]+::[^:]+", symbolic_name):
        raise ValueError(f"register_custom_op_symbolic: expected 'namespace::name', got {symbolic_name!r}")
    symbolics.setdefault(symbolic_name, {})[opset_version] = symbolic_fn


def unregister_custom_op_symbolic(symbolic_name, opset_version):
    """Forget a rule of one's own."""
    symbolics.get(symbolic_name, {}).pop(opset_version, None)
    if not symbolics.get(symbolic_name):
        symbolics.pop(symbolic_name, None)


def symbolic_for(name, opset):
    """The function registered for an operator, of the latest opset that is not above; None if there is none."""
    by_opset = symbolics.get(name if "::" in name else f"aten::{name}", {})
    versions = [version for version in by_opset if version <= opset]
    return by_opset[max(versions)] if versions else None


def registered(opset):
    """The operators that have a rule of the program's own, as recordings name them."""
    return {name.removeprefix("aten::") for name in symbolics if symbolic_for(name, opset) is not None}
