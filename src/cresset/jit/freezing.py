"""torch.jit.freeze: a compiled module whose attributes have become constants of its graph.

With the attributes known, branches on them are decided, dropout is gone, and a batch norm that follows a convolution or
a linear layer is folded into its weights.
"""

import functools
import operator

from .. import _native
from ..graph import types as t
from ..graph.function import Argument, Function, FunctionSchema
from ..graph.graph import copy_node
from ..graph.inline import inlined
from ..ops import aten_table
from .objects import RecursiveScriptModule, ScriptModule

_PURE = {
    "aten::eq": operator.eq, "aten::ne": operator.ne, "aten::lt": operator.lt, "aten::gt": operator.gt,
    "aten::le": operator.le, "aten::ge": operator.ge, "aten::__not__": operator.not_,
    "aten::__is__": operator.is_, "aten::__isnot__": operator.is_not, "aten::__and__": operator.and_,
    "aten::__or__": operator.or_, "aten::add": operator.add, "aten::sub": operator.sub,
    "aten::mul": operator.mul, "aten::floordiv": operator.floordiv,
}  # fmt: skip
_PLAIN = (bool, int, float, str, type(None))


def freeze(mod, preserved_attrs=None, optimize_numerics=True):
    """A copy of a compiled module in eval mode with its parameters and attributes written into the graph.

    Args:
        mod: what torch.jit.script, trace or load gave.
        preserved_attrs: names of attributes and methods to keep.
        optimize_numerics: fold batch norms into the weights before them, which rounds differently.
    """
    if not isinstance(mod, ScriptModule):
        raise RuntimeError(
            "Freezing expects a ScriptModule as input. Please use torch.jit.script or torch.jit.trace to script your "
            "'nn.Module'."
        )
    if mod.training:
        raise RuntimeError(
            "Freezing is currently only implemented for modules in eval mode. Please call .eval() on your module "
            "before freezing."
        )
    kept = list(preserved_attrs or ())
    old = mod._script_type
    for name in kept:
        if name not in old.attributes and name not in old.methods:
            raise RuntimeError(
                f"freeze: {mod.original_name} has no attribute or method '{name}' that could be preserved"
            )
    new = t.ClassType(old.qualified_name, True, old.python_class)
    methods = dict.fromkeys(["forward", *(name for name in kept if name in old.methods)])
    graphs = {name: inlined(old.methods[name]) for name in methods if name in old.methods}
    changed = _changed(graphs.values(), mod)
    for graph in graphs.values():
        _write_attributes(graph, graph.inputs()[0], mod, changed, set(kept))
        _simplify(graph, optimize_numerics)
    needed = {name for name in kept if name in old.attributes}
    for graph in graphs.values():
        needed |= {
            use.user.attributes["name"]
            for use in graph.inputs()[0].uses()
            if use.user.kind() in ("prim::GetAttr", "prim::SetAttr")
        }
    made = RecursiveScriptModule(new)
    made.__dict__["training"] = False
    for name, kind in old.attributes.items():
        if name in needed:
            new.attributes[name] = kind
            new.parameters |= {name} & old.parameters
            new.buffers |= {name} & old.buffers
            _move(mod, made, name)
    for name, graph in graphs.items():
        graph.inputs()[0].setType(new)
        original = old.methods[name]
        arguments = [Argument("self", new), *original.schema.arguments[1:]]
        schema = FunctionSchema(original.schema.name, arguments, original.schema.returns)
        new.methods[name] = Function(original.qualified_name, schema, graph, new)
    return made


def freeze_face(module, preservedAttrs=(), freezeInterfaces=True, preserveParameters=False):  # noqa: N803
    """`torch._C._freeze_module`: the same of `module._c`, which gives another such object; batch norms stay.

    Args:
        module: what `_c` of a compiled module in eval mode is.
        preservedAttrs: names of attributes and methods to keep.
        freezeInterfaces: False is refused: what an interface stands for is frozen where it is known.
        preserveParameters: keep parameters as attributes.
    """
    if not freezeInterfaces:
        raise NotImplementedError("_freeze_module: freezeInterfaces=False is not supported")
    frozen = module._module
    kept = [*preservedAttrs, *(frozen._parameters if preserveParameters else ())]
    return freeze(frozen, list(dict.fromkeys(kept)), optimize_numerics=False)._c


def _move(old, new, name):
    for register in ("_parameters", "_buffers", "_modules"):
        if name in old.__dict__[register]:
            new.__dict__[register][name] = old.__dict__[register][name]
            return
    new.__dict__[name] = old.__dict__[name]


def run_frozen_optimizations(mod, optimize_numerics=True, preserved_methods=None):
    """Decide branches, drop dropout and fold batch norms in the graphs of a frozen module."""
    for name in dict.fromkeys(["forward", *(preserved_methods or ())]):
        function = mod._script_type.methods.get(name)
        if function is not None:
            _simplify(function.ensure_defined().graph, optimize_numerics)
            function.plan = None
    mod.__dict__.pop("_script_doors", None)


def optimize_for_inference(mod, other_methods=None):
    """`freeze`, for a module that only infers from now on. A module in training mode is put into eval mode first, as a
    copy.
    """
    if not isinstance(mod, ScriptModule):
        raise RuntimeError(
            "optimize_for_inference expects ScriptModule as input. Please use torch.jit.script or torch.jit.trace to "
            "script your 'nn.Module'."
        )
    if mod.training:
        import copy

        mod = copy.deepcopy(mod).eval()
    return freeze(mod, other_methods)


# ---- graphs


# What writes to a list or dict; operators that write to tensors end in "_".
_CHANGES = {
    f"aten::{name}"
    for name in (
        "append", "insert", "extend", "clear", "pop", "popitem", "remove", "reverse", "sort", "setdefault", "update",
        "_set_item", "Delete",
    )
}  # fmt: skip


def _changes(node):
    kind = node.kind()
    return kind in _CHANGES or (kind.startswith("aten::") and kind.endswith("_") and not kind.endswith("__"))


def _changed(graphs, mod):
    """The attributes that a method sets, or whose values it writes to, as (the module's id, name); and those whose
    memory they share.
    """
    found = set()
    for graph in graphs:
        for node in graph.all_nodes():
            if node.kind() == "prim::SetAttr":
                found.add((id(_module_of(node.inputsAt(0), mod)), node.attributes["name"]))
            elif _changes(node):
                found |= _sources(node.inputsAt(0), mod, set())
    modules = [module for module in mod.modules() if isinstance(module, ScriptModule)]
    tensors = [
        (id(module), name, getattr(module, name)) for module in modules for name in module._script_type.attributes
        if isinstance(getattr(module, name, None), _native.Tensor)
    ]  # fmt: skip
    written = {_native.storage_address(tensor) for owner, name, tensor in tensors if (owner, name) in found}
    return found | {(owner, name) for owner, name, tensor in tensors if _native.storage_address(tensor) in written}


def _module_of(value, mod):
    """The module that a value of a graph is."""
    node = value.node()
    if node.kind() != "prim::GetAttr":
        return mod
    return getattr(_module_of(node.inputsAt(0), mod), node.attributes["name"])


def _sources(value, mod, seen):
    """The attributes that a value may be, or be a part of."""
    node = value.node()
    if value in seen or node is None:
        return set()
    seen.add(value)
    if node.kind() == "prim::GetAttr":
        owner = _module_of(node.inputsAt(0), mod)
        return {(id(owner), node.attributes["name"])}
    if node.kind() == "prim::Param" or (node.kind().startswith("aten::") and not _gives_views(node.kind())):
        return set()
    given = [*node.inputs(), *(output for block in node.blocks() for output in block.outputs())]
    return set().union(*(_sources(value, mod, seen) for value in given))


@functools.cache
def _gives_views(kind):
    """Whether what an operator gives may be in the memory of its arguments, or an element of a list."""
    schemas = aten_table.overloads(kind)
    return any(
        not schema.returns or schema.returns[0].alias_info or not schema.returns[0].type.startswith("Tensor")
        for schema in schemas
    )


def _write_attributes(graph, value, module, changed, kept):
    """Constants in the places of what is read from a module and the modules inside of it; what is changed, or kept, is
    still read.
    """
    for use in value.uses():
        node = use.user
        name = node.attributes.get("name")
        if node.kind() != "prim::GetAttr" or (id(module), name) in changed or name in kept:
            continue
        found = getattr(module, name)
        if isinstance(found, RecursiveScriptModule):
            _write_attributes(graph, node.output(), found, changed, set())
        elif _may_be_constant(found):
            graph.setInsertPoint(node)
            constant = found.detach() if isinstance(found, _native.Tensor) else found
            node.output().replaceAllUsesWith(
                graph.insertConstant(constant, node.output().type() if found is not None else t.NoneType())
            )
    graph.setInsertPoint(graph.block())


def _may_be_constant(value):
    """Lists and dicts can be changed by whoever reads them."""
    if isinstance(value, (*_PLAIN, _native.Tensor, _native.device)):
        return True
    return isinstance(value, tuple) and type(value) is tuple and all(map(_may_be_constant, value))


def _simplify(graph, optimize_numerics):
    _decide(graph, graph.block())
    _drop_dropout(graph)
    if optimize_numerics:
        _fold_norms(graph)
    graph.eliminate_dead_code()


def _is_constant(value):
    return value.node().kind() == "prim::Constant" and "function" not in value.node().attributes


def _constant(value):
    return value.node().attributes.get("value")


def _decide(graph, block):
    """Compute what is made of plain constants, and put the branch that is taken in the place of an `if` whose condition
    is one.
    """
    for node in block.nodes():
        for inner in node.blocks():
            _decide(graph, inner)
        inputs = node.inputs()
        if node.kind() == "prim::If" and _is_constant(inputs[0]):
            taken = node.blocks()[0 if _constant(inputs[0]) else 1]
            _decide(graph, taken)
            values = {}
            for inner in taken.nodes():
                copy_node(inner, graph, values).insertBefore(node)
            for old, new in zip(node.outputs(), taken.outputs(), strict=True):
                old.replaceAllUsesWith(values.get(new, new))
            node.destroy()
        elif (
            node.kind() in _PURE
            and all(_is_constant(v) and isinstance(_constant(v), _PLAIN) for v in inputs)
            and len(inputs) <= 2
        ):
            _replace(graph, node, _PURE[node.kind()](*map(_constant, inputs)))
        elif node.kind() == "prim::unchecked_cast" and _is_constant(inputs[0]):
            node.output().replaceAllUsesWith(inputs[0])
        elif (
            node.kind() in ("aten::__is__", "aten::__isnot__")
            and _is_constant(inputs[1])
            and _constant(inputs[1]) is None
            and _is_never_none(inputs[0])
        ):
            _replace(graph, node, node.kind() == "aten::__isnot__")


def _is_never_none(value):
    return not isinstance(value.type(), (t.OptionalType, t.UnionType, t.NoneType, t.AnyType))


def _replace(graph, node, value):
    graph.setInsertPoint(node)
    node.output().replaceAllUsesWith(graph.insertConstant(value, node.output().type()))
    graph.setInsertPoint(graph.block())


_DROPOUTS = {"aten::dropout", "aten::feature_dropout", "aten::alpha_dropout", "aten::feature_alpha_dropout"}


def _drop_dropout(graph):
    for node in graph.all_nodes():
        if node.kind() in _DROPOUTS and _is_constant(node.inputsAt(2)) and _constant(node.inputsAt(2)) is False:
            node.output().replaceAllUsesWith(node.inputsAt(0))


_BEFORE_NORM = {"aten::conv1d", "aten::conv2d", "aten::conv3d", "aten::linear"}
_SHAPE = {"aten::dim", "aten::size", "aten::batch_norm", "prim::dtype", "prim::device"}


def _fold_norms(graph):
    """y = (W x + b - mean) / sqrt(var + eps) * weight + bias is one product with other numbers."""
    for norm in graph.all_nodes():
        if norm.kind() != "aten::batch_norm":
            continue
        before = norm.inputsAt(0).node()
        if before.kind() not in _BEFORE_NORM or any(use.user.kind() not in _SHAPE for use in norm.inputsAt(0).uses()):
            continue
        weight, bias, mean, variance, training, _, eps, _ = norm.inputs()[1:]
        layer_weight, layer_bias = before.inputs()[1:3]
        parts = (weight, bias, mean, variance, training, eps, layer_weight, layer_bias)
        if (
            not all(map(_is_constant, parts))
            or _constant(training)
            or _constant(mean) is None
            or before.owningBlock() is not norm.owningBlock()
        ):
            continue
        scale, shift = (_constant(variance) + _constant(eps)).rsqrt(), -_constant(mean)
        old = _constant(layer_weight)
        if _constant(layer_bias) is not None:
            shift = shift + _constant(layer_bias)
        if _constant(weight) is not None:
            scale = scale * _constant(weight)
        shift = shift * scale
        if _constant(bias) is not None:
            shift = shift + _constant(bias)
        graph.setInsertPoint(before)
        before.replaceInput(1, graph.insertConstant(old * scale.reshape(-1, *[1] * (old.dim() - 1)), t.TensorType()))
        before.replaceInput(2, graph.insertConstant(shift, t.TensorType()))
        norm.output().replaceAllUsesWith(norm.inputsAt(0))
    graph.setInsertPoint(graph.block())
