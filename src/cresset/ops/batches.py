"""What functions that read values or write in place have to know of vmap, where a tensor stands for a batch."""

from .. import _native


def all_samples(tensor):
    """The values of all samples, to check them; outside vmap the tensor itself.

    >>> all_samples(cresset.ones(2))
    tensor([1., 1.])
    """
    while _native.level_of(tensor):
        tensor, _ = _native.batch_of(tensor)
    return tensor


def copy_for(source, input):
    """A copy of `input` that `source` can be written to, with the same strides: one for each sample, if `source` has
    that.

    >>> copy_for(cresset.ones(2), cresset.zeros(2))
    tensor([0., 0.])
    """
    if _native.level_of(source) <= _native.level_of(input):
        steps = [(n - 1) * s for n, s in zip(input.shape, input.stride())]
        has_gaps = input.numel() < 1 + sum(steps)
        is_expanded = any(n > 1 and step == 0 for n, step in zip(input.shape, steps))
        return (
            input.new_empty_strided(input.shape, input.stride()).copy_(input)
            if has_gaps and not is_expanded
            else input.clone()
        )
    return source.new_empty(input.shape, dtype=input.dtype).copy_(input)
