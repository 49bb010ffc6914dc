"""Several recordings of one model with different sizes become one list of calls, in which the integers that differ are
Sizes.
"""

import cresset

from .recording import RANDOM, Call, Value, leaves, map_tree
from .sizes import Fraction, Size

OVERWRITES = {"copy_", "fill_", "zero_"}  # what was there before does not matter


class Different(Exception):
    """Two recordings are not the same program."""


def merge(recordings, outputs, describe):
    """The calls and outputs of all recordings in one; values get shapes in which sizes may be free.

    Args:
        recordings: finished Recorders, of the same model.
        outputs: for each, the list of output Values.
        describe: what the sizes of a recording were, as words: describe(k).

    Returns: (calls, outputs). Calls that depend neither on the inputs nor on free sizes are gone: their results are
        constants.
    """
    first = recordings[0]
    front = first.front
    calls = [_merge_calls(front, group, describe) for group in zip(*(r.calls for r in recordings), strict=False)]
    counts = [len(r.calls) for r in recordings]
    if len(set(counts)) > 1:
        k = next(k for k in range(len(counts)) if counts[k] != counts[0])
        longer = recordings[0 if counts[0] > counts[k] else k].calls[min(counts[0], counts[k])]
        raise _depends_on_sizes(
            front, f"makes {counts[0]} calls when {describe(0)} and {counts[k]} when {describe(k)}", longer
        )
    made = {id(v) for call in calls for v in call.results}
    for values in zip(*(r.values for r in recordings), strict=True):
        _merge_value(front, values, id(values[0]) in made)
    kept = []
    for call in calls:
        args = call.args[1:] if call.name in OVERWRITES else call.args
        given = [leaf for leaf in leaves((args, call.kwargs)) if isinstance(leaf, (Value, Size, Fraction))]
        constant = call.name not in RANDOM and all(isinstance(v, Value) and v.data is not None for v in given)
        if not (constant and all(v.data is not None for v in call.results)):
            for value in call.results:
                value.data = None
            kept.append(call)
    if len({len(o) for o in outputs}) > 1:
        raise front.error(f"{front.name}: the number of outputs depends on the sizes: {[len(o) for o in outputs]}")
    merged = [first.values[group[0].number] for group in zip(*outputs, strict=True)]
    return kept, merged


def _depends_on_sizes(front, what, call):
    return front.error(
        f"{front.name}: the model {what}, at {call.name} ({call.place}). What is recorded cannot depend on a free "
        "dimension: "
        f"leave it out of {front.free}, or compute it without a loop or a condition on the size"
    )


def _merge_calls(front, group, describe):
    first = group[0]
    for k, call in enumerate(group):
        if call.name != first.name or len(call.results) != len(first.results):
            raise _depends_on_sizes(
                front, f"calls {first.name} when {describe(0)} and {call.name} when {describe(k)}", call
            )
    try:
        args, kwargs = _merge_trees([(call.args, call.kwargs) for call in group])
    except Different as error:
        raise _depends_on_sizes(front, f"gives {first.name} other arguments for other sizes ({error})", first) from None
    return Call(first.name, first.operator, args, kwargs, first.results, first.place)


def _merge_trees(trees):
    flat = [leaves(tree) for tree in trees]
    if len({len(f) for f in flat}) > 1:
        raise Different("their number differs")
    merged = iter([_merge_leaf(group) for group in zip(*flat, strict=True)])
    return map_tree(trees[0], lambda leaf: next(merged))


def _merge_leaf(group):
    first = group[0]
    if isinstance(first, Value):
        if any(not isinstance(v, Value) or v.number != first.number for v in group):
            raise Different("another tensor")
        return first
    if type(first) is bool or not isinstance(first, (int, float)):
        if any(type(v) is not type(first) or v is not first and v != first for v in group):
            raise Different(", ".join(map(str, group)))
        return first
    if all(type(v) is int for v in group):
        return Size.of(group)
    if not all(isinstance(v, (int, float)) and type(v) is not bool for v in group):
        raise Different(", ".join(map(str, group)))
    return Fraction.of(map(float, group))


def _merge_value(front, values, made):
    """Give the first its shape in sizes, and forget its elements where they depend on the sizes."""
    first = values[0]
    if len({(len(v.shape), v.dtype) for v in values}) > 1:
        raise front.error(
            f"{front.name}: a tensor has another dtype or number of dimensions for other sizes: "
            f"{[v.shape for v in values]}"
        )
    first.shape = tuple(Size.of(sizes) for sizes in zip(*(v.shape for v in values), strict=True))
    if first.data is None or all(v.data is first.data for v in values):
        return
    if all(v.data is not None and v.data.shape == first.data.shape and _equal(v.data, first.data) for v in values):
        return
    if not made:
        numbers = [
            v.data.flatten().tolist()
            for v in values
            if v.data is not None and v.data.numel() <= 64 and not v.data.is_floating_point()
        ]
        if len(numbers) != len(values) or first.data.ndim > 1 or len({len(n) for n in numbers}) > 1:
            raise front.error(
                f"{front.name}: a constant of shape {tuple(first.data.shape)} is another one when the inputs are "
                "others; what makes it is no recorded "
                "operator (an array of another library, or a list of numbers computed from the inputs)"
            )
        first.parameter = [
            Size.of(group) for group in zip(*numbers, strict=True)
        ]  # sizes as a tensor: torch.tensor(x.shape)
    first.data = None


def _equal(a, b):
    if a.dtype.is_floating_point or a.dtype.is_complex:
        return bool(cresset.equal(a.nan_to_num(), b.nan_to_num()))
    return bool(cresset.equal(a, b))
