"""Models become graphs in which the layers that can be quantized are single calls."""

from cresset.fx import Tracer

from ...nn import intrinsic

__all__ = ["QuantizationTracer", "replace_module", "trace"]


class QuantizationTracer(Tracer):
    """A tracer that does not enter fused layers, nor modules that are named to it or are of types that are."""

    def __init__(self, skipped_module_names, skipped_module_classes):
        super().__init__()
        self.skipped_module_names = list(skipped_module_names)
        self.skipped_module_classes = tuple(skipped_module_classes)

    def is_leaf_module(self, m, module_qualified_name):
        """Whether a module is one call."""
        return (
            (super().is_leaf_module(m, module_qualified_name))
            or module_qualified_name in self.skipped_module_names
            or type(m) in self.skipped_module_classes
            or isinstance(m, intrinsic._FusedModule)
        )


def trace(model, config):
    """The graph of a model, and for the name of each node the module it is in: (name, type)."""
    tracer = QuantizationTracer(
        [*config.non_traceable_module_names, *config.standalone_module_names],
        [*config.non_traceable_module_classes, *config.standalone_module_classes,
         *(kind for kinds in config.float_to_observed_mapping.values() for kind in kinds)],
    )  # fmt: skip
    graph = tracer.trace(model)
    return graph, dict(tracer.node_name_to_scope)


def replace_module(model, name, module):
    """Put a module in the place of another."""
    parent, _, last = name.rpartition(".")
    setattr(model.get_submodule(parent) if parent else model, last, module)
