"""Types at nodes, from what the functions and layers that they call say they return."""

import inspect

import cresset

from ..interpreter import Transformer

__all__ = ["AnnotateTypesWithSchema"]


class AnnotateTypesWithSchema(Transformer):
    """Makes a GraphModule in which nodes have types: calls of nn.functional, of layers of torch.nn, and attributes.

    Args:
        annotate_functionals, annotate_modules, annotate_get_attrs: which of the three.

    >>> from cresset.fx.experimental.schema_type_annotation import AnnotateTypesWithSchema
    >>> traced = cresset.fx.symbolic_trace(nn.Linear(2, 1))
    >>> [node.type.__name__ for node in AnnotateTypesWithSchema(traced).transform().graph.nodes if node.type]
    ['Tensor', 'Tensor']
    """

    def __init__(self, module, annotate_functionals=True, annotate_modules=True, annotate_get_attrs=True):
        super().__init__(module)
        self.annotate_functionals = annotate_functionals
        self.annotate_modules = annotate_modules
        self.annotate_get_attrs = annotate_get_attrs

    def call_function(self, target, args, kwargs):
        made = super().call_function(target, args, kwargs)
        home = getattr(target, "__module__", None) or ""
        if self.annotate_functionals and home.endswith("nn.functional"):
            _note(made, _returned(target))
        return made

    def call_module(self, target, args, kwargs):
        made = super().call_module(target, args, kwargs)
        kind = type(self.fetch_attr(target))
        if self.annotate_modules and getattr(cresset.nn, kind.__name__, None) is kind:
            _note(made, _returned(kind.forward))
        return made

    def get_attr(self, target, args, kwargs):
        made = super().get_attr(target, args, kwargs)
        if self.annotate_get_attrs:
            value = self.fetch_attr(target)
            _note(made, cresset.Tensor if isinstance(value, cresset.Tensor) else type(value))
        return made


def _note(made, kind):
    made.node.type = made.node.type or kind


def _returned(function):
    """What a function says it returns; None if it says nothing."""
    try:
        said = inspect.signature(inspect.unwrap(function)).return_annotation
    except (TypeError, ValueError):
        return None
    return None if said is inspect.Signature.empty or isinstance(said, str) else said
