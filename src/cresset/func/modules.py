"""Modules as functions of their parameters, and the parameters of several modules as one."""

import cresset


def functional_call(module, parameter_and_buffer_dicts, args=None, kwargs=None, *, tie_weights=True, strict=False):
    """The result of `module` if its parameters and buffers were the given ones.

    Args:
        parameter_and_buffer_dicts: tensors by their dotted paths, or several such dictionaries.
        args: the arguments; one that is not a tuple stands for itself.
        tie_weights: a tensor that the module holds under several names is replaced under all of them.
        strict: refuse missing and unexpected names.

    >>> layer = cresset.nn.Linear(2, 1)
    >>> new = {"weight": cresset.ones(1, 2), "bias": cresset.zeros(1)}
    >>> cresset.func.functional_call(layer, new, cresset.tensor([3.0, 4.0]))
    tensor([7.])
    """
    from ..nn.utils.stateless import _functional_call  # upward: what it calls is a module

    given = parameter_and_buffer_dicts
    if isinstance(given, (list, tuple)):
        if not all(isinstance(part, dict) for part in given):
            raise ValueError("Expected all elements of parameter_and_buffer_dicts to be dictionaries")
        names = [name for part in given for name in part]
        repeated = sorted({name for name in names if names.count(name) > 1}) if len(set(names)) < len(names) else []
        if repeated:
            raise ValueError(f"{repeated} appeared in multiple dictionaries; behavior of functional call is ambiguous")
        given = {name: tensor for part in given for name, tensor in part.items()}
    elif not isinstance(given, dict):
        raise ValueError(
            f"Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of dicts, but got {type(given)}"
        )
    return _functional_call(module, given, args, kwargs, tie_weights=tie_weights, strict=strict)


def stack_module_state(models):
    """The parameters and the buffers of modules of one kind, stacked: two dictionaries, for vmap over an ensemble.

    >>> models = [cresset.nn.Linear(2, 1) for _ in range(3)]
    >>> parameters, buffers = cresset.func.stack_module_state(models)
    >>> parameters["weight"].shape
    torch.Size([3, 1, 2])
    """
    models = list(models)
    if not models:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if not (all(model.training for model in models) or all(not model.training for model in models)):
        raise RuntimeError("stack_module_state: Expected all models to have the same training/eval mode.")
    if any(type(model) is not type(models[0]) for model in models):
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")
    return tuple(_stacked([dict(state(model)) for model in models]) for state in (_parameters, _buffers))


def _parameters(model):
    return model.named_parameters()


def _buffers(model):
    return model.named_buffers()


def _stacked(states):
    """Leaves, so that they can be trained."""
    for name, first in states[0].items():
        if any(state[name].requires_grad != first.requires_grad for state in states):
            raise RuntimeError(f"stack_module_state: Expected {name} from each model to have the same .requires_grad")
    return {
        name: cresset.stack([state[name].detach() for state in states]).requires_grad_(first.requires_grad)
        for name, first in states[0].items()
    }


def replace_all_batch_norm_modules_(root):
    """Let no BatchNorm in a module keep running statistics, which vmap could not update. In place.

    >>> model = cresset.nn.Sequential(cresset.nn.BatchNorm1d(3))
    >>> cresset.func.replace_all_batch_norm_modules_(model)[0].running_mean is None
    True
    """
    from ..nn.norm import _BatchNorm  # upward: the modules it looks for

    for module in root.modules():
        if isinstance(module, _BatchNorm):
            module.running_mean = module.running_var = module.num_batches_tracked = None
            module.track_running_stats = False
    return root
