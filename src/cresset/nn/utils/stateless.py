"""Calling a module with other parameters than its own, and making one without drawing starting values."""

import inspect
import sys
import warnings

import cresset

from ..module import Module

_MISSING = object()


def functional_call(module, parameters_and_buffers, args=None, kwargs=None, *, tie_weights=True, strict=False):
    """The older name of `torch.func.functional_call`.

    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     nn.utils.stateless.functional_call(nn.Identity(), {}, (cresset.ones(2),))
    tensor([1., 1.])
    """
    warnings.warn(
        "`torch.nn.utils.stateless.functional_call` is deprecated as of PyTorch 2.0 and will be removed in a future "
        "version of PyTorch. Please use `torch.func.functional_call` instead which is a drop-in replacement.",
        FutureWarning,
        stacklevel=2,
    )
    return _functional_call(module, parameters_and_buffers, args, kwargs, tie_weights=tie_weights, strict=strict)


def _functional_call(module, parameters_and_buffers, args=None, kwargs=None, *, tie_weights=True, strict=False):
    """The result of `module` if its parameters and buffers were the given ones. What forward puts in their place is in
    the dictionary afterwards. See `func.functional_call`.
    """
    _check_stateful(module)
    args = () if args is None else args if isinstance(args, tuple) else (args,)
    new = _with_tied(module, parameters_and_buffers) if tie_weights else dict(parameters_and_buffers)
    if strict:
        _check_names(module, new)
    owners, swapped = {"": module}, []
    try:
        for path, tensor in new.items():
            above, _, name = path.rpartition(".")
            owner = _owner(owners, above)
            swapped.append((path, owner, name, _swap(owner, name, tensor)))
        return module(*args, **(kwargs or {}))
    finally:
        for path, owner, name, old in reversed(swapped):
            now = _swap(owner, name, old)
            if path in parameters_and_buffers and now is not _MISSING:
                parameters_and_buffers[path] = now


def _check_stateful(module):
    """Refuse modules that do not look up their tensors by name."""
    scripted = sys.modules.get("cresset.jit.objects")
    if scripted is not None and isinstance(module, scripted.RecursiveScriptModule):
        raise RuntimeError("The stateless API can't be used with Jitted modules")
    if isinstance(module, cresset.nn.DataParallel):
        raise RuntimeError("The stateless API can't be used with nn.DataParallel module")


def _owner(owners, path):
    """The submodule at a dotted path; `owners` has those that were found before."""
    if path not in owners:
        above, _, name = path.rpartition(".")
        owner = _owner(owners, above)
        found = owner._modules.get(name) or getattr(owner, name, _MISSING)
        if found is _MISSING:
            raise AttributeError(f"{owner._get_name()} has no attribute `{name}`")
        if not isinstance(found, Module):
            raise TypeError(f"submodule `{path}`: {found!r} is not an instance of torch.nn.Module")
        owners[path] = found
    return owners[path]


def _swap(owner, name, tensor):
    """Put a tensor in the place of a module's attribute; what was there, _MISSING if nothing was."""
    if tensor is not None and tensor is not _MISSING and not isinstance(tensor, cresset.Tensor):
        raise TypeError(f"{tensor!r} is not an instance of torch.Tensor")
    for held in (owner._parameters, owner._buffers):
        if name in held:
            old = held[name]
            if tensor is _MISSING:
                del held[name]
            else:
                held[name] = tensor
            return old
    old = getattr(owner, name, _MISSING)
    if old is not _MISSING and old is not None and not isinstance(old, cresset.Tensor):
        raise TypeError(f"attribute `{name}`: {old!r} is not an instance of torch.Tensor")
    if tensor is not _MISSING:
        setattr(owner, name, tensor)
    elif old is not _MISSING:
        delattr(owner, name)
    return old


def _named_tensors(module):
    """All parameters and buffers by their dotted paths, those that stand in several places under each."""
    for path, part in module.named_modules(remove_duplicate=False):
        for held in (part._parameters, part._buffers):
            for name, tensor in held.items():
                if tensor is not None:
                    yield (f"{path}.{name}" if path else name), tensor


def _with_tied(module, given):
    """The given tensors, also under the other names of those that the module holds under several."""
    names = {}
    for path, tensor in _named_tensors(module):
        names.setdefault(id(tensor), []).append(path)
    new = dict(given)
    for paths in names.values():
        told = [path for path in paths if path in given] if len(paths) > 1 else ()
        if not told:
            continue
        if len({id(given[path]) for path in told}) > 1:
            raise ValueError(
                f"functional_call got multiple values for keys {sorted(told)}, which are tied. Consider using "
                "tie_weights=False"
            )
        new.update(dict.fromkeys(paths, given[told[0]]))
    return new


def _check_names(module, new):
    """Refuse names that the module does not have, and the want of those that it has."""
    own = {path for path, _ in _named_tensors(module)}
    lines = []
    for words, names in (("Unexpected", new.keys() - own), ("Missing", own - new.keys())):
        if names:
            lines.append(f"{words} key(s): {', '.join(map(repr, sorted(names)))}.")
    if lines:
        listed = "\n\t".join(lines)
        raise RuntimeError(f"Error(s) in reparametrizing for {module._get_name()}:\n\t{listed}")


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
