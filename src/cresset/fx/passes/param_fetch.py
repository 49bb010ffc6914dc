"""What a compiler for another device asks of the layers a graph calls: their weights and settings, at the nodes."""

from ... import nn
from ...nn.modules import name_of
from ..graph_module import GraphModule

__all__ = ["default_matching", "extract_attrs_for_lowering", "lift_lowering_attrs_to_nodes"]


def default_matching(name, target_version):
    """An attribute has the same name in every version of a layer."""
    return name


# A layer's class: the newest version of it that is known, its attributes, and their names in a version.
module_fetch_book = {
    nn.Linear: (1, ["weight", "bias"], default_matching),
    nn.Conv2d: (
        1,
        ["weight", "bias", "kernel_size", "stride", "padding", "dilation", "groups", "padding_mode"],
        default_matching,
    ),
    nn.BatchNorm2d: (2, ["weight", "bias", "running_mean", "running_var", "eps"], default_matching),
    nn.AdaptiveAvgPool2d: (1, [], default_matching),
    nn.MaxPool2d: (
        1,
        ["kernel_size", "stride", "padding", "dilation", "return_indices", "ceil_mode"],
        default_matching,
    ),
    nn.ReLU: (1, ["inplace"], default_matching),
}


def extract_attrs_for_lowering(mod):
    """A layer's `name` (its type) and its attributes, as module_fetch_book lists them for it.

    >>> sorted(cresset.fx.passes.param_fetch.extract_attrs_for_lowering(nn.Linear(2, 1)))
    ['bias', 'name', 'weight']
    """
    name = name_of(type(mod))
    if type(mod) not in module_fetch_book:
        raise RuntimeError(f"{name} is not in the module_fetch_book yet, please add it to the module_fetch_book")
    version, wanted, matching = module_fetch_book[type(mod)]
    if version < mod._version:
        raise RuntimeError(f"Fetcher version {version} try to fetch {name} version {mod._version}")
    return {"name": name, **{attr: getattr(mod, matching(attr, mod._version)) for attr in wanted}}


def lift_lowering_attrs_to_nodes(fx_module):
    """Note at each node that calls a layer, as `node.attrs_for_lowering`, what the layer has; modules that are graphs
    are entered.
    """
    for node in fx_module.graph.nodes:
        if node.op == "call_module":
            module = fx_module.get_submodule(node.target)
            if isinstance(module, GraphModule):
                lift_lowering_attrs_to_nodes(module)
            else:
                node.attrs_for_lowering = extract_attrs_for_lowering(module)
