"""unflatten: an exported program as modules again, one for each module that it was exported from."""

import cresset

from .program import ExportedProgram, Flatten, Unflatten, place_tensor

__all__ = ["FlatArgsAdapter", "InterpreterModule", "UnflattenedModule", "unflatten"]


class FlatArgsAdapter:
    """Says how inputs of another structure become those that a program takes; a subclass defines `adapt`."""

    def adapt(self, target_spec, input_spec, input_args, metadata=None, obj=None):
        """The leaves for `target_spec` of inputs with the structure `input_spec`."""
        raise NotImplementedError("FlatArgsAdapter.adapt: define it in a subclass")


class InterpreterModule(cresset.nn.Module):
    """A module of the tree: it holds parameters, buffers and submodules by their names. The program runs as a whole, in
    the root.
    """

    def forward(self, *args, **kwargs):
        raise NotImplementedError("unflatten: a part of an exported program does not run alone; call the whole module")


class UnflattenedModule(InterpreterModule):
    """The root of the tree."""

    def __init__(self, export_module, flat_args_adapter=None):
        super().__init__()
        signature = export_module.module_call_graph[0].signature
        for entry in export_module.module_call_graph[1:]:
            self._module_at(entry.fqn)
        for spec in export_module.graph_signature.input_specs:
            if spec.target is not None:
                place_tensor(
                    self, spec.target, export_module.tensor_of(spec), spec.kind, spec.persistent, InterpreterModule
                )
        self.graph_signature, self.range_constraints = export_module.graph_signature, export_module.range_constraints
        self.__dict__["_program"] = export_module.module(check_guards=False)
        self._flatten_inputs = Flatten(signature.in_spec, export_module._checks, export_module.range_constraints)
        self._unflatten_outputs = Unflatten(signature.out_spec)
        self.flat_args_adapter = flat_args_adapter

    def _module_at(self, path):
        module = self
        for part in path.split("."):
            if part not in module._modules:
                module.add_module(part, InterpreterModule())
            module = module._modules[part]
        return module

    def forward(self, *args, **kwargs):
        if self.flat_args_adapter is not None:
            from ..pytree import tree_flatten, tree_unflatten

            leaves, spec = tree_flatten((args, kwargs))
            wanted = self._flatten_inputs.in_spec
            if spec != wanted:
                args, kwargs = tree_unflatten(
                    self.flat_args_adapter.adapt(target_spec=wanted, input_spec=spec, input_args=leaves), wanted
                )
        self._flatten_inputs(args, kwargs)
        return self._program(*args, **kwargs)


def unflatten(module, flat_args_adapter=None):
    """The modules of an exported program: a tree with their names, parameters and buffers, whose root runs the program.

    Args:
        module: an ExportedProgram.
        flat_args_adapter: how inputs of another structure become the program's.

    >>> net = cresset.export.unflatten(cresset.export.export(nn.Sequential(nn.Linear(3, 2), nn.ReLU()), (cresset.ones(1, 3),)))
    >>> [name for name, _ in net.named_parameters()], net(cresset.ones(1, 3)).shape
    (['0.weight', '0.bias'], torch.Size([1, 2]))
    """
    if not isinstance(module, ExportedProgram):
        raise TypeError(f"unflatten: expected an ExportedProgram, got {type(module).__name__}")
    return UnflattenedModule(module, flat_args_adapter)
