"""An observed graph becomes a quantized one. Observers become pairs of quantize and dequantize; that is the reference
model, in which everything is computed in floating point. `lower.py` then puts integers in their place.
"""

import copy

import cresset
from cresset.fx import Node

from ...nn import intrinsic
from ...nn.quantized.reference import parameters_of
from . import match_utils
from .lower import is_dequantized, lower
from .prepare import _INTEGERS, is_number, is_observer
from .tracing import replace_module

__all__ = ["convert"]


def convert(model, is_reference, custom, qconfig_mapping, backend_config):
    """Convert, in place, a model that `prepare` made."""
    modules = dict(model.named_modules(remove_duplicate=False))
    graph = model.graph
    by_name = {node.name: node for node in graph.nodes}
    found = [node.meta["quantized"] for node in graph.nodes if "quantized" in node.meta]
    found = [one for one in found if not _is_left_out(one, by_name, modules, qconfig_mapping)]
    references = {
        config.pattern: config.reference_quantized_module
        for config in backend_config.configs
        if isinstance(config.pattern, type) and config.reference_quantized_module is not None
    }
    wanted = {name for one in found for name in one.nodes}
    _swap_observed(model, modules, custom)
    _dequantize_inputs(graph)
    for node in list(graph.nodes):
        if is_observer(node, modules):
            _quantize(model, node, modules[node.target], _observes(node, wanted, qconfig_mapping))
    _quantize_results(graph)
    for one in found:
        nodes = [by_name[name] for name in one.nodes]
        if is_reference or not lower(model, nodes, one, modules):
            _refer(model, nodes, one.qconfig, references, modules)
    for node in graph.nodes:
        if is_number(node):  # sizes are those of the integers
            for value in filter(is_dequantized, node.all_input_nodes):
                node.replace_input_with(value, value.args[0])
    graph.eliminate_dead_code()
    graph.lint()
    model.delete_all_unused_submodules()
    for part in model.modules():
        for name in ("qconfig", "activation_post_process"):
            if name in part.__dict__:
                del part.__dict__[name]
    model.recompile()
    return model


def _is_left_out(found, nodes, modules, mapping):
    """Whether a mapping that is given to `convert` says that a pattern stays as it is."""
    if mapping is None:
        return False
    node = nodes[found.nodes[0]]
    path = node.target if node.op == "call_module" else ""
    return mapping.find([match_utils.kind_of(node, modules)], path, None, 0) is None


def _observes(node, wanted, mapping):
    """Whether an observer still stands at something that is quantized."""
    if mapping is None:
        return True
    return any(user.name in wanted for user in node.users) or node.args[0].name in wanted


def _swap_observed(model, modules, custom):
    table = {kind: to for kinds in custom.observed_to_quantized_mapping.values() for kind, to in kinds.items()}
    for node in model.graph.nodes:
        if node.op == "call_module" and type(modules[node.target]) in table:
            made = table[type(modules[node.target])].from_observed(modules[node.target])
            modules[node.target] = made
            replace_module(model, node.target, made)


def _dequantize_inputs(graph):
    for node in list(graph.nodes):
        if node.meta.get("is_quantized"):
            with graph.inserting_after(node):
                made = graph.call_method("dequantize", (node,))
            node.replace_all_uses_with(made, lambda user, made=made: user is not made)


def _buffer(model, graph, stem, key, value):
    number = 0
    while hasattr(model, f"{stem}_{key}_{number}"):
        number += 1
    name = f"{stem}_{key}_{number}"
    model.register_buffer(name, value.detach().clone())
    return graph.get_attr(name)


def _stem(node):
    """What the scale of an observer is named by: where the value comes from, or, where that stays in floating point,
    who takes it.
    """
    path, has_qconfig = node.args[0].meta.get("place", ("", False))
    if has_qconfig:
        return path
    user = next(iter(node.users), None)
    return ("" if user is None else user.meta.get("place", ("",))[0]) + "_input"


def _quantize(model, node, observer, stays):
    """Put quantize and dequantize in the place of an observer."""
    graph, value = model.graph, node.args[0]
    dtype, is_dynamic = observer.dtype, bool(getattr(observer, "is_dynamic", False))
    if dtype not in _INTEGERS or not stays:
        node.replace_all_uses_with(value)
        graph.erase_node(node)
        return
    with graph.inserting_before(node):
        if is_dynamic:
            function = cresset.quantize_per_tensor_dynamic
            arguments = (value, dtype, cresset.backends.quantized.engine in ("fbgemm", "x86"))
        else:
            scale, zero_point = observer.calculate_qparams()
            stem = _stem(node)
            places = (
                _buffer(model, graph, stem, "scale", scale),
                _buffer(model, graph, stem, "zero_point", zero_point),
            )
            if observer.qscheme in (cresset.per_channel_affine, cresset.per_channel_symmetric):
                function, arguments = cresset.quantize_per_channel, (value, *places, observer.ch_axis, dtype)
            else:
                function, arguments = cresset.quantize_per_tensor, (value, *places, dtype)
        made = graph.call_method("dequantize", (graph.call_function(function, arguments),))
    node.replace_all_uses_with(made)
    graph.erase_node(node)


def _quantize_results(graph):
    output = next(node for node in graph.nodes if node.op == "output")
    chosen, results = output.meta.get("quantized_results", ()), output.args[0]
    if not chosen:
        return
    listed = list(results) if isinstance(results, (tuple, list)) else [results]
    for index in chosen:
        if isinstance(listed[index], Node) and listed[index].target == "dequantize":
            listed[index] = listed[index].args[0]
    output.args = (type(results)(listed) if isinstance(results, (tuple, list)) else listed[0],)


def _refer(model, nodes, qconfig, references, modules):
    """Put layers of a reference model in the place of those with a weight."""
    for node in nodes:
        if node.op == "call_module" and type(modules[node.target]) in references:
            module = modules[node.target]
            replace_module(model, node.target, _reference_of(module, qconfig, references[type(module)]))


def _reference_of(module, qconfig, kind):
    trained = getattr(module, "weight_fake_quant", None)
    plain = module.to_float() if trained is not None else module
    layer = plain[0] if isinstance(plain, intrinsic._FusedModule) else plain
    observer = qconfig.weight() if trained is None else trained
    observer(layer.weight.detach())
    made = kind.from_float(layer, parameters_of(observer))
    if layer is plain:
        return made
    plain = copy.copy(plain)
    plain._modules = {**plain._modules, "0": made}
    return plain
