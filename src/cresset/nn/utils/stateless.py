"""Calling a module with other parameters than its own, and making one without drawing starting values."""

import inspect

import cresset

from ..module import Module


def functional_call(module, parameters_and_buffers, args=None, kwargs=None, *, tie_weights=True, strict=False):
    """The result of `module` if its parameters and buffers were the given ones.

    Args:
        parameters_and_buffers: tensors by their dotted paths, or several such dictionaries.
        args: the arguments; one that is not a tuple stands for itself.
        tie_weights: a tensor that the module holds under several names is replaced under all of them.
        strict: refuse missing and unexpected names.

    >>> layer = nn.Linear(2, 1)
    >>> new = {"weight": cresset.ones(1, 2), "bias": cresset.zeros(1)}
    >>> nn.utils.functional_call(layer, new, cresset.tensor([3.0, 4.0]))
    tensor([7.])
    """
    if isinstance(parameters_and_buffers, (list, tuple)):
        merged = {}
        for part in parameters_and_buffers:
            for name in part:
                if name in merged:
                    raise ValueError(
                        f"{name} appears in multiple dictionaries; behavior of functional call is ambiguous"
                    )
            merged.update(part)
        parameters_and_buffers = merged
    args = () if args is None else args if isinstance(args, tuple) else (args,)
    places = {}  # dotted path -> (module, kind, name)
    for path, part in module.named_modules(remove_duplicate=False):
        for kind in ("_parameters", "_buffers"):
            for name, tensor in part.__dict__[kind].items():
                if tensor is not None:
                    places[f"{path}.{name}" if path else name] = (part, kind, name)
    new = dict(parameters_and_buffers)
    if strict:
        missing, unexpected = [k for k in places if k not in new], [k for k in new if k not in places]
        if missing or unexpected:
            raise RuntimeError(f"Error(s) in functional_call: missing keys {missing}, unexpected keys {unexpected}")
    if tie_weights:
        groups = {}
        for path, (part, kind, name) in places.items():
            groups.setdefault(id(part.__dict__[kind][name]), []).append(path)
        for paths in groups.values():
            given = [path for path in paths if path in new]
            if given and len({id(new[path]) for path in given}) > 1:
                raise ValueError(f"functional_call got multiple values for keys {sorted(given)}, which are tied.")
            if given:
                new.update(dict.fromkeys(paths, new[given[0]]))
    saved = []
    try:
        for path, tensor in new.items():
            if path in places:
                part, kind, name = places[path]
                saved.append((part.__dict__[kind], name, part.__dict__[kind][name], tensor, path))
                part.__dict__[kind][name] = tensor
        return module(*args, **(kwargs or {}))
    finally:
        for holder, name, old, _, _ in reversed(saved):
            holder[name] = old


def skip_init(module_cls, *args, **kwargs):
    """A module whose parameters are allocated but not set: for values that are loaded next.

    >>> nn.utils.skip_init(nn.Linear, 3, 2).weight.shape
    torch.Size([2, 3])
    """
    if not issubclass(module_cls, Module):
        raise RuntimeError(f"Expected a Module; got {module_cls}")
    if "device" not in inspect.signature(module_cls).parameters:
        raise RuntimeError("Module must support a 'device' arg to skip initialization")
    device = kwargs.pop("device", "cpu")
    return module_cls(*args, device="meta", **kwargs).to_empty(device=cresset.device(device))
