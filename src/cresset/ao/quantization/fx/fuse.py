"""Layers that follow each other become one: what `fuse_fx` does, and `prepare_fx` first."""

from cresset import nn

from . import match_utils
from .tracing import replace_module

__all__ = ["fuse"]


def fuse(model, is_qat, backend_config):
    """Fuse, in place, what the backend says how to fuse."""
    modules = dict(model.named_modules())
    configs = [config for config in backend_config.configs if config.fuser_method is not None]
    done = set()  # layers that are called several times are fused once
    for match in match_utils.matches(model.graph, modules, configs):
        layers = [_layer(node, modules) for node in match.nodes]
        root = match.config._root_node_getter
        first = match.nodes[0] if root is None else root(match.nodes)
        if first.target not in done:
            done.add(first.target)
            fused = match.config.fuser_method(is_qat, *layers)
            replace_module(model, first.target, fused.train(layers[0].training))
        for node in match.nodes[1:]:
            node.replace_all_uses_with(first)
            model.graph.erase_node(node)
        model.graph.lint()
    model.delete_all_unused_submodules()
    model.recompile()
    return model


def _layer(node, modules):
    return modules[node.target] if node.op == "call_module" else nn.ReLU()
