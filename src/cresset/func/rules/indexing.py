"""Reading and writing at indices, which may differ from sample to sample."""

import cresset

from ..batching import changes_first, decomposed, expanded, rule, to_front, wrap_dim


class Indices:
    """The indices of a call: masks as numbers, those with a batch aligned to broadcast with those without.

    entries: an index or None for each dimension. first: where the indexed dimensions of a sample's result stand: at the place of the
    first index if the indices are neighbours, else in front. shape: what a sample's indices broadcast to.
    """

    def __init__(self, call, place):
        pairs, shapes = [], []
        for given, value, dim in zip(call.given[place], call.args[place], call.dims[place], strict=True):
            if given is not None and given.dtype in (cresset.bool, cresset.uint8):
                if dim is not None:
                    raise RuntimeError(
                        "vmap: It looks like you're attempting to index with a mask that has a value for every sample; its result would have another shape "
                        "for each, and we do not support batching operators that can output dynamic shape. Use torch.where instead"
                    )
                pairs += [(places, None) for places in value.nonzero().unbind(1)]
                shapes += [pairs[-1][0].shape] * given.dim()
                continue
            pairs.append((value, dim))
            if given is not None:
                shapes.append(given.shape)
        self.shape = cresset.broadcast_shapes(*shapes)
        self.entries = [self._aligned(value, dim) for value, dim in pairs]
        self.is_batched = any(dim is not None for _, dim in pairs)
        places = [i for i, entry in enumerate(self.entries) if entry is not None]
        self.first = places[0] if places == list(range(places[0], places[-1] + 1)) else 0
        self.are_neighbours = len(places) == places[-1] - places[0] + 1

    def _aligned(self, value, dim):
        if dim is None:
            return value
        value = to_front(value, dim)
        return value.reshape(value.shape[0], *[1] * (len(self.shape) + 1 - value.dim()), *value.shape[1:])

    def with_samples(self, size):
        """The entries for a batch with `size` samples in front; results have the samples and the indexed dimensions first."""
        return [cresset.arange(size).reshape(size, *[1] * len(self.shape)), *self.entries]


@rule("index")
def index(call):
    indices = Indices(call, 1)
    count = len(indices.shape)
    if not indices.is_batched:
        result = call.run(call.front(), [None, *indices.entries])
        return result if indices.are_neighbours else result.movedim(count, 0)
    if call.dims[0] is None:
        return call.run(call.args[0], indices.entries).movedim(indices.first, 0)
    result = call.run(call.front(), indices.with_samples(call.size))
    return result.movedim(tuple(range(1, 1 + count)), tuple(range(1 + indices.first, 1 + indices.first + count))) if indices.first else result


@rule("index_put", "index_put_")
def index_put(call):
    indices = Indices(call, 1)
    target = call.front(0) if changes_first(call.name) else call.full(0)
    rest = [size for size, entry in zip(call.given[0].shape, indices.entries + [None] * call.rank(), strict=False) if entry is None]
    count = len(indices.shape)
    shape = (*rest[: indices.first], *indices.shape, *rest[indices.first :])
    values = call.padded(2, len(shape)).expand(call.size, *shape)
    values = values.movedim(tuple(range(1 + indices.first, 1 + indices.first + count)), tuple(range(1, 1 + count)))
    return call.run(target, indices.with_samples(call.size), values, call.args[3])


@rule(
    "gather", "scatter", "scatter.value", "scatter.reduce", "scatter.value_reduce", "scatter_", "scatter_.value", "scatter_.reduce", "scatter_.value_reduce",
    "scatter_add", "scatter_add_", "scatter_reduce", "scatter_reduce_",
)  # fmt: skip
def along(call):
    """Every tensor has the batch in front; the dimension moves by one."""
    args = list(call.args)
    for i, value in enumerate(call.given):
        if isinstance(value, cresset.Tensor):
            args[i] = call.full(i) if value.dim() else call.full(i).unsqueeze(1)
    args[1] = wrap_dim(args[1], call.rank())
    result = call.run(*args)
    if changes_first(call.name):
        return None
    return result if call.rank(2 if call.name == "gather" else 0) else result.squeeze(1)


@rule("index_select")
def index_select(call):
    input, dim, places = call.given
    at = wrap_dim(dim, input.dim())
    if call.dims[2] is None:
        if input.dim():
            return call.front().index_select(at, places)
        return call.front().unsqueeze(1).index_select(1, places).squeeze(1)

    def selected(input, *_):
        vector = input if input.dim() else input.unsqueeze(0)
        chosen = vector[(slice(None),) * (at - 1) + (places.reshape(-1),)]
        return chosen if input.dim() else chosen.squeeze(0)

    return decomposed(selected)(call)


def _put(input, dim, places, values, accumulate=False):
    """The batched form of the index_... operators: a put at the indices of one dimension."""
    at = wrap_dim(dim, input.dim()) - 1
    vector = input if input.dim() else input.unsqueeze(0)
    put = cresset.index_put(vector, [*[None] * at, places.reshape(-1)], values, accumulate)
    return put if input.dim() else put.squeeze(0)


@rule(
    "index_add", "index_add_", "index_copy", "index_copy_", "index_fill", "index_fill_", "index_fill.Tensor", "index_fill_.Tensor", "index_reduce", "index_reduce_",
)  # fmt: skip
def at_index(call):
    base = call.name.partition(".")[0].removesuffix("_")
    if call.dims[2] is None and not (base == "index_fill" and call.dims[3] is not None) and call.rank():
        args = [call.full(0), wrap_dim(call.args[1], call.rank()), *call.args[2:]]
        if base != "index_fill":
            source = call.full(3)
            args[3] = source if call.rank(3) else source.unsqueeze(1)
        return call.run(*args)
    if base == "index_reduce":
        return NotImplemented

    def changed(input, dim, places, value, alpha=1):
        if base == "index_add":
            return _put(input, dim, places, value if alpha == 1 else value * alpha, accumulate=True)
        value = value if isinstance(value, cresset.Tensor) else cresset.tensor(value, dtype=input.dtype, device=input.device)
        return _put(input, dim, places, value.to(input.dtype))

    result = decomposed(changed)(call)
    if not changes_first(call.name):
        return result
    call.front().copy_(result)
    return None


@rule("take")
def take(call):
    return decomposed(lambda input, places: input.reshape(-1)[places])(call)


@rule("embedding")
def embedding(call):
    """Rows of a table for each sample are rows of one long table."""
    weight, places, *rest = call.args
    if call.dims[0] is None:
        return call.run(weight, call.front(1), *rest)
    table = call.front(0)
    return call.run(table.flatten(0, 1), _shifted(call, 1, table.shape[1]), -1, *rest[1:])


def _shifted(call, i, rows):
    """The indices of each sample, behind the rows of the samples before."""
    places = call.full(i)
    return places + (cresset.arange(call.size, dtype=places.dtype) * rows).reshape(call.size, *[1] * call.rank(i))


@rule("embedding_dense_backward")
def embedding_backward(call):
    _, _, rows, padding, by_frequency = call.args
    grad, places = call.full(0), call.full(1)
    if padding >= 0:
        grad = grad.masked_fill((places == padding).unsqueeze(-1), 0)
    return call.run(grad, _shifted(call, 1, rows), rows * call.size, -1, by_frequency).unflatten(0, (call.size, rows))


@rule("bucketize")
def bucketize(call):
    return call.run(call.front(), *call.args[1:]) if call.dims[1] is None else NotImplemented


@rule("searchsorted")
def searchsorted(call):
    """A sorted sequence of its own for every row, which the batch may be of too."""
    sequence, input, *options, sorter = call.args
    if call.dims[0] is None and call.rank(0) == 1 and (sorter is None or call.dims[-1] is None):
        return call.run(sequence, call.front(1), *options, sorter)
    if call.rank(0) == 1 and call.rank(1) != 1:  # one sequence for a sample's numbers in any shape
        values = expanded(input, call.dims[1], call.size)
        order = sorter if sorter is None else call.full(len(call.args) - 1)
        return call.run(call.full(0), values.reshape(call.size, -1), *options, order).reshape(values.shape)
    order = sorter if sorter is None else call.full(len(call.args) - 1)
    return call.run(call.full(0), call.full(1), *options, order)
