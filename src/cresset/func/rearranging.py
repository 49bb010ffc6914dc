"""rearrange: dimensions named in words, taken apart, exchanged and put together."""

import math
import re

import cresset


def rearrange(tensor, pattern, **axes_lengths):
    """The elements of `tensor` with dimensions as a pattern says: names on the left are its dimensions, on the right
    those of the result.

    A group in parentheses is one dimension made of several, `...` stands for any others, `1` for one of size one.

    Args:
        tensor: a tensor, or a sequence of them, which counts as stacked.
        axes_lengths: the sizes of names that the shape does not tell.

    >>> cresset.func.rearrange(cresset.arange(6), "(rows columns) -> columns rows", rows=2)
    tensor([[0, 3],
            [1, 4],
            [2, 5]])
    """
    if not isinstance(tensor, cresset.Tensor):
        tensor = cresset.stack(list(tensor))
    left, arrow, right = pattern.partition("->")
    if not arrow:
        raise ValueError(f"rearrange: the pattern {pattern!r} has no '->'")
    left, right = _groups(left, pattern), _groups(right, pattern)
    if any(group is not ... and "..." in group for group in left):
        raise ValueError(f"rearrange: an ellipsis in parentheses on the left of {pattern!r}, where it has no one size")
    count = tensor.dim() - sum(group is not ... for group in left)
    if count < 0 or (count and ... not in left):
        raise ValueError(f"rearrange: the left of {pattern!r} has {len(left)} dimensions, the tensor {tensor.dim()}")
    left, right = (_spread(side, count) for side in (left, right))
    names = [name for group in left for name in group]
    wanted = [name for group in right for name in group]
    if len(set(names)) != len(names) or sorted(names) != sorted(wanted):
        raise ValueError(
            f"rearrange: every name must be once on either side of {pattern!r}; they are {names} and {wanted}"
        )
    if unknown := set(axes_lengths) - set(names):
        raise ValueError(f"rearrange: sizes are given for {sorted(unknown)}, which {pattern!r} does not name")
    sizes = {}
    for group, size in zip(left, tensor.shape, strict=True):
        sizes.update(_sizes(group, size, axes_lengths, pattern))
    whole = tensor.reshape([sizes[name] for name in names]).permute([names.index(name) for name in wanted])
    return whole.reshape([math.prod(sizes[name] for name in group) for group in right])


def _groups(side, pattern):
    """A list of names for each dimension; `1` is an empty list, and `...` on its own the Ellipsis."""
    found = []
    for word in re.findall(r"\([^()]*\)|\.\.\.|[^\s()]+|[()]", side):
        if word == "...":
            found.append(...)
            continue
        inside = word[1:-1].split() if word.startswith("(") and word.endswith(")") else [word]
        for name in inside:
            if not (name.isidentifier() or name in ("1", "...")):
                raise ValueError(f"rearrange: {name!r} in {pattern!r} is no name of a dimension")
        found.append([name for name in inside if name != "1"])
    return found


def _spread(side, count):
    """`...` as the names of the dimensions it stands for, on its own a dimension each."""
    hidden = [f"...{i}" for i in range(count)]
    found = []
    for group in side:
        if group is ...:
            found += [[name] for name in hidden]
        else:
            found.append([part for name in group for part in (hidden if name == "..." else [name])])
    return found


def _sizes(group, size, given, pattern):
    """The sizes of the names of one dimension, of which one may be left to be told by the others."""
    known = {name: given[name] for name in group if name in given}
    missing = [name for name in group if name not in known]
    product = math.prod(known.values())
    if len(missing) > 1 or (missing and (product == 0 or size % product)) or (not missing and product != size):
        raise ValueError(
            f"rearrange: a dimension of size {size} does not fit {tuple(group)} of {pattern!r} with sizes {known}"
        )
    return {**known, **dict.fromkeys(missing, size // product)}
