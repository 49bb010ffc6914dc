"""Batching rules that operators name by a word, `batch="along"`, and that of random operators.

Random operators do as vmap's `randomness` says: they are refused, give the same numbers for all samples, or others for
each.
"""

import cresset
from cresset._native import Tensor
from cresset.ops.registry import signature_parts

from .batching import Unbatched, changes_first, closed_from, pointwise


def is_random(name):
    """Whether an operator draws numbers."""
    return name == "native_dropout" or any(part.name == "generator" for part in signature_parts(name))


def draw(call):
    frame = call.frame
    if frame.randomness == "error":
        raise RuntimeError(
            "vmap: called random operation while in randomness error mode. Please either use the 'same' or 'different' "
            f"randomness flags on vmap or perform the randomness operation out of vmap: {call.name}"
        )
    tensors = [i for i, value in enumerate(call.given) if isinstance(value, Tensor)]
    with closed_from(frame):
        if frame.randomness == "same":
            return _same(call)
        return _different(call, tensors)


def _same(call):
    if not call.is_batched:
        return Unbatched(call.run(*call.args))
    if call.name in ("native_dropout", "_fused_dropout"):
        if call.name == "native_dropout" and call.args[2] is False:
            return call.run(call.front(), *call.args[1:])
        kept = cresset.native_dropout(_sample(call), call.args[1], True)[1]
        scale = 0.0 if call.args[1] == 1 else 1 / (1 - call.args[1])
        return [call.front() * kept * scale, Unbatched(kept)]
    if call.name.partition(".")[0].endswith("_like"):
        return Unbatched(call.run(_sample(call), *call.args[1:]))
    raise RuntimeError(
        f"vmap: {call.name}: same randomness for all samples is not supported with an input that has a value for "
        "every sample"
    )


def _sample(call):
    """A tensor of ones with the shape of a sample."""
    given = call.given[0]
    return cresset.ones(given.shape, dtype=given.dtype, device=given.device)


def _different(call, tensors):
    args = list(call.args)
    if changes_first(call.name):
        if call.dims[0] is None:
            raise RuntimeError(
                f"vmap: {call.name}: different random numbers for each sample cannot be written to a tensor that is "
                "the same for all; "
                "make it from a batched one, for example with x.new_empty(...)"
            )
        args[0] = call.front(0)
        for i in tensors[1:]:
            args[i] = call.padded(i, call.rank(0))
        call.run(*args)
        return None
    if call.name == "randperm":
        return cresset.stack([call.run(*args) for _ in range(call.size)])
    if not tensors:
        place = call.place("size")
        args[place] = (call.size, *args[place])
        return call.run(*args)
    if call.name == "multinomial":
        value = call.full(0)
        result = call.run(value.flatten(0, -2), *args[1:])
        return result.unflatten(0, value.shape[:-1])
    rank = max(call.rank(i) for i in tensors)
    for i in tensors:
        args[i] = call.full(i) if i == tensors[0] else args[i]
        if call.dims[i] is not None or i == tensors[0]:
            for _ in range(rank - call.rank(i)):
                args[i] = args[i].unsqueeze(1)
    return call.run(*args)


draw.is_random = True  # type: ignore[attr-defined]


def along(call):
    """Operators with a dimension of one tensor among their parameters: the same, one dimension further."""
    place = call.place("dim") or call.place("dimension")
    dim = call.dim(call.args[place])
    return call.with_number(lambda value: call.run(value, *call.args[1:place], dim, *call.args[place + 1 :]))


def leading(call):
    """Operators that treat leading dimensions as they should."""
    return call.run(call.front(), *call.args[1:])


def dynamic(call):
    """Operators whose result may have another shape for every sample."""
    raise RuntimeError(
        "vmap: We do not support batching operators that can output dynamic shape. Attempted to vmap over "
        f"{call.name}, whose result may have another "
        "shape for every sample"
    )


def refused(call):
    """Operators that change where a tensor lies in memory."""
    raise RuntimeError(f"vmap: {call.name} is not possible inside vmap, where a tensor has no memory of its own")


RULES = {"pointwise": pointwise, "along": along, "leading": leading, "dynamic": dynamic, "refused": refused}
