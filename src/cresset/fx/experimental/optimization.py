"""`torch.fx.experimental.optimization`: models made lighter for evaluation, as graphs."""

import copy

from ... import nn
from ...nn.utils.fusion import fuse_conv_bn_eval, fuse_linear_bn_eval
from .. import GraphModule, Tracer

_FUSED = {
    (nn.Conv1d, nn.BatchNorm1d): fuse_conv_bn_eval,
    (nn.Conv2d, nn.BatchNorm2d): fuse_conv_bn_eval,
    (nn.Conv3d, nn.BatchNorm3d): fuse_conv_bn_eval,
    (nn.Linear, nn.BatchNorm1d): fuse_linear_bn_eval,
}
_DROPOUTS = (nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.AlphaDropout, nn.FeatureAlphaDropout)


def matches_module_pattern(pattern, node, modules):
    """Whether a node calls a module of the pattern's last class, on what a module of the class before gives."""
    if not node.args or not hasattr(node.args[0], "op"):
        return False
    return all(
        one.op == "call_module" and isinstance(one.target, str) and type(modules.get(one.target)) is wanted
        for wanted, one in zip(pattern, (node.args[0], node), strict=True)
    )


def replace_node_module(node, modules, new_module):
    """Let the node's name stand for another module."""
    parent, _, name = node.target.rpartition(".")
    modules[node.target] = new_module
    setattr(modules[parent], name, new_module)


def fuse(model, inplace=False, no_trace=False):
    """The model with its batch normalizations computed inside of the convolutions and linear layers before them.

    Args:
        model: in evaluation mode; a GraphModule if `no_trace`.
        inplace: change the model's own layers rather than those of a copy.
        no_trace: the model is a graph already.
    """
    model = model if inplace else copy.deepcopy(model)
    if no_trace and not isinstance(model, GraphModule):
        raise TypeError(f"fuse: no_trace needs a GraphModule, got {type(model).__name__}")
    graph, root = (model.graph, model) if no_trace else _traced(model)
    modules = dict(root.named_modules())
    for pattern, fused in _FUSED.items():
        for node in list(graph.nodes):
            if not matches_module_pattern(pattern, node, modules):
                continue
            first, norm = node.args[0], modules[node.target]
            if len(first.users) > 1 or not norm.track_running_stats:
                continue  # somebody else reads it, or the statistics are the batch's own
            replace_node_module(first, modules, fused(modules[first.target], norm))
            node.replace_all_uses_with(first)
            graph.erase_node(node)
    return GraphModule(root, graph)


def remove_dropout(model):
    """The model as a graph without its layers of dropout."""
    graph, root = _traced(model)
    modules = dict(root.named_modules())
    for node in list(graph.nodes):
        if node.op == "call_module" and isinstance(modules[node.target], _DROPOUTS):
            node.replace_all_uses_with(node.args[0])
            graph.erase_node(node)
    return GraphModule(root, graph)


def _traced(model):
    tracer = Tracer()
    return tracer.trace(model), tracer.root
