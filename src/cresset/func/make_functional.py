"""Modules taken apart into a function and its parameters, as the package functorch did before functional_call."""

import copy

import cresset

from .modules import functional_call


class FunctionalModule:
    """A module without its parameters: called with them, and then the arguments."""

    def __init__(self, module, names):
        self.stateless_model, self.param_names = module, names

    def forward(self, params, *args, **kwargs):
        """The module's result with these parameters."""
        return functional_call(self.stateless_model, dict(zip(self.param_names, params, strict=True)), args, kwargs)

    __call__ = forward


class FunctionalModuleWithBuffers(FunctionalModule):
    """A module without its parameters and buffers."""

    def __init__(self, module, names, buffer_names):
        super().__init__(module, names)
        self.buffer_names = buffer_names

    def forward(self, params, buffers, *args, **kwargs):
        """The module's result with these parameters and buffers."""
        state = dict(zip(self.param_names, params, strict=True)) | dict(zip(self.buffer_names, buffers, strict=True))
        return functional_call(self.stateless_model, state, args, kwargs)

    __call__ = forward


def _bare(module):
    """A copy of a module whose parameters are of the meta device: they are always given. What has two names keeps
    them, so that `functional_call` gives both the one tensor.
    """
    from ..nn.parameter import Parameter  # upward: what modules hold

    memo = {}
    for tensor in (*module.parameters(), *module.buffers()):
        bare = cresset.empty_like(tensor, device="meta")
        memo[id(tensor)] = Parameter(bare, tensor.requires_grad) if isinstance(tensor, Parameter) else bare
    return copy.deepcopy(module, memo)


def _taken(tensors, disable_autograd_tracking):
    return tuple(t.detach() if disable_autograd_tracking else t for t in tensors)


def make_functional(model, disable_autograd_tracking=False):
    """(a function of the parameters and the arguments, the parameters) of a module without buffers.

    Args:
        disable_autograd_tracking: give parameters that require no gradient.

    >>> layer = cresset.nn.Linear(2, 1)
    >>> function, parameters = cresset.func.make_functional(layer)
    >>> function([cresset.ones(1, 2), cresset.zeros(1)], cresset.tensor([3.0, 4.0]))
    tensor([7.])
    """
    if list(model.buffers()):
        raise RuntimeError(
            "make_functional(model): `model` has buffers. Please use make_functional_with_buffers(model) instead."
        )
    named = dict(model.named_parameters())
    return FunctionalModule(_bare(model), tuple(named)), _taken(named.values(), disable_autograd_tracking)


def make_functional_with_buffers(model, disable_autograd_tracking=False):
    """(a function of the parameters, the buffers and the arguments, the parameters, the buffers) of a module.

    >>> function, parameters, buffers = cresset.func.make_functional_with_buffers(cresset.nn.BatchNorm1d(2))
    >>> len(parameters), len(buffers)
    (2, 3)
    """
    named, others = dict(model.named_parameters()), dict(model.named_buffers())
    return (
        FunctionalModuleWithBuffers(_bare(model), tuple(named), tuple(others)),
        _taken(named.values(), disable_autograd_tracking),
        tuple(others.values()),
    )


def combine_state_for_ensemble(models):
    """(function, parameters, buffers) of modules of one kind, the state of all stacked, for vmap over them."""
    models = list(models)
    if not models:
        raise RuntimeError("combine_state_for_ensemble: Expected at least one model, got 0.")
    if not (all(m.training for m in models) or all(not m.training for m in models)):
        raise RuntimeError("combine_state_for_ensemble: Expected all models to have the same training/eval mode.")
    if any(type(m) is not type(models[0]) for m in models):
        raise RuntimeError("combine_state_for_ensemble: Expected all models to be of the same class.")
    functions, parameters, buffers = zip(*(make_functional_with_buffers(m) for m in models), strict=True)
    return (
        functions[0],
        tuple(cresset.stack(part) for part in zip(*parameters, strict=True)),
        tuple(cresset.stack(part) for part in zip(*buffers, strict=True)),
    )
