"""Nested state as one level of names, and back."""

from collections.abc import Mapping

from ... import Tensor


def _is_nested(value):
    """Whether a list is taken apart: if there are tensors or containers in it."""
    return isinstance(value, (list, tuple)) and any(isinstance(v, (Tensor, Mapping, list, tuple)) for v in value)


def walk(value, path=()):
    """Yields (path, leaf) for each leaf."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from walk(item, (*path, key))
    elif _is_nested(value):
        for index, item in enumerate(value):
            yield from walk(item, (*path, index))
    else:
        yield path, value


def flatten(state_dict):
    """({"model.weight": leaf, ...}, {"model.weight": ("model", "weight"), ...}).

    >>> flatten({"model": {"bias": 1}})
    ({'model.bias': 1}, {'model.bias': ('model', 'bias')})
    """
    flat, paths = {}, {}
    for path, leaf in walk(state_dict):
        name = ".".join(map(str, path))
        if name in flat:
            raise ValueError(f"save: two entries of the state_dict are called {name!r}")
        flat[name], paths[name] = leaf, path
    return flat, paths


def put(state_dict, path, value):
    """Replace a leaf."""
    holder = state_dict
    for key in path[:-1]:
        holder = holder[key]
    if isinstance(holder, tuple):
        raise ValueError(f"load: {'.'.join(map(str, path))} is in a tuple, which cannot be changed")
    holder[path[-1]] = value


def grow(state_dict, path, value):
    """Put a leaf where no containers may be yet: dictionaries for names, lists for numbers from 0 on."""
    holder = state_dict
    for key, following in zip(path, [*path[1:], None], strict=True):
        inner = value if following is None else [] if following == 0 and isinstance(following, int) else {}
        if isinstance(holder, list) and key == len(holder):
            holder.append(inner)
        elif isinstance(holder, dict):
            inner = holder.setdefault(key, inner)
        holder = holder[key] if isinstance(holder, list) else inner
