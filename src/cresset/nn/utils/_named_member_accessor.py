"""torch.nn.utils._named_member_accessor: parameters, buffers and submodules by their dotted paths, read and put in each
other's place.
"""

from ..module import Module
from .stateless import _MISSING, _named_tensors, _owner, _swap


def set_tensor(module, name, tensor):
    """Put a tensor in the place of a parameter, a buffer or an attribute of a module itself."""
    _check_plain(name, "tensor")
    _swap(module, name, tensor)


def swap_tensor(module, name, tensor, allow_missing=False):
    """Put a tensor in the place of another, which comes back. With `allow_missing` there need be none."""
    _check_plain(name, "tensor")
    before = _swap(module, name, tensor)
    if before is _MISSING and not allow_missing:
        _swap(module, name, _MISSING)
        raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
    return before


def swap_submodule(module, name, submodule):
    """Put a module in the place of another, which comes back."""
    _check_plain(name, "submodule")
    if not isinstance(submodule, Module):
        raise TypeError(f"{submodule} is not an instance of torch.nn.Module")
    if name not in module._modules:
        raise KeyError(f"submodule {name} does not exist")
    before, module._modules[name] = module._modules[name], submodule
    return before


def _check_plain(name, what):
    if "." in name:
        raise KeyError(f'{what} name can\'t contain ".", got: {name}')
    if name == "":
        raise KeyError(f'{what} name can\'t be empty string ""')


class NamedMemberAccessor:
    """What a module holds, by dotted paths.

    >>> accessor = nn.utils._named_member_accessor.NamedMemberAccessor(nn.Sequential(nn.Linear(2, 1)))
    >>> accessor.set_tensor("0.bias", cresset.zeros(1))
    >>> accessor.get_tensor("0.bias")
    tensor([0.])
    """

    def __init__(self, module):
        self.module, self.memo = module, {"": module}

    def _place(self, path):
        above, _, name = path.rpartition(".")
        return _owner(self.memo, above), name

    def get_submodule(self, name):
        """The submodule at a path; "" is the module itself."""
        return _owner(self.memo, name)

    def swap_submodule(self, path, value):
        """Put a module in the place of the one at a path, which comes back."""
        owner, name = self._place(path)
        before = swap_submodule(owner, name, value)
        self.memo = {"": self.module}
        return before

    def get_tensor(self, name):
        """The parameter, buffer or attribute at a path."""
        owner, last = self._place(name)
        return getattr(owner, last)

    def set_tensor(self, name, value):
        """Put a tensor at a path."""
        set_tensor(*self._place(name), value)

    def del_tensor(self, name):
        """Take the tensor at a path away."""
        owner, last = self._place(name)
        if _swap(owner, last, _MISSING) is _MISSING:
            raise AttributeError(f"{owner._get_name()} has no attribute `{last}`")

    def swap_tensor(self, name, value, allow_missing=False):
        """Put a tensor in the place of the one at a path, which comes back."""
        return swap_tensor(*self._place(name), value, allow_missing)

    def get_tensors(self, names):
        """The tensors at paths."""
        return [self.get_tensor(name) for name in names]

    def set_tensors(self, names, values):
        """Put tensors at paths."""
        names, values = _pairs(names, values)
        for name, value in zip(names, values, strict=True):
            self.set_tensor(name, value)

    def set_tensors_dict(self, named_tensors):
        """Put tensors at the paths that they have as keys."""
        for name, value in named_tensors.items():
            self.set_tensor(name, value)

    def del_tensors(self, names):
        """Take the tensors at paths away."""
        for name in names:
            self.del_tensor(name)

    def swap_tensors(self, names, values, allow_missing=False):
        """Put tensors in the place of others, which come back."""
        names, values = _pairs(names, values)
        return [self.swap_tensor(name, value, allow_missing) for name, value in zip(names, values, strict=True)]

    def swap_tensors_dict(self, named_tensors, allow_missing=False):
        """Put tensors at their keys' paths: (what was there, the paths at which nothing was)."""
        before, missing = {}, []
        try:
            for name, tensor in named_tensors.items():
                old = self.swap_tensor(name, tensor, allow_missing=True)
                before[name] = old
                if old is _MISSING:
                    missing.append(name)
        except Exception:
            for name, tensor in before.items():
                self.swap_tensor(name, tensor, allow_missing=True)
            raise
        if missing and not allow_missing:
            for name, tensor in before.items():
                self.swap_tensor(name, tensor, allow_missing=True)
            raise RuntimeError(f"Missing key(s): {', '.join(map(repr, missing))}.")
        return before, missing

    def check_keys(self, keys):
        """(the paths that the module has and `keys` has not, those that `keys` has and the module has not)."""
        keys, own = set(keys), {name for name, _ in self.named_tensors(remove_duplicate=False)}
        return sorted(own - keys), sorted(keys - own)

    def named_parameters(self, remove_duplicate=True):
        """The parameters by their paths."""
        yield from self.module.named_parameters(remove_duplicate=remove_duplicate)

    def named_buffers(self, remove_duplicate=True):
        """The buffers by their paths."""
        yield from self.module.named_buffers(remove_duplicate=remove_duplicate)

    def named_tensors(self, remove_duplicate=True):
        """The parameters and buffers by their paths."""
        if remove_duplicate:
            yield from self.named_parameters()
            yield from self.named_buffers()
        else:
            yield from _named_tensors(self.module)

    def named_modules(self, remove_duplicate=True):
        """The modules by their paths."""
        yield from self.module.named_modules(remove_duplicate=remove_duplicate)


def _pairs(names, values):
    names, values = list(names), list(values)
    if len(names) != len(values):
        raise AssertionError("names and values should have the same length")
    return names, values
