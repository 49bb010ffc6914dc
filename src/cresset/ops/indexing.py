"""Reading through indices and masks: documentation and derivatives. Writing through them is in `scatter.py`."""

import cresset

from .. import _native
from .registry import batch, constant, function, onnx, operator, placement

index = operator("index", """x[i, j, ...] for tensors i, j: integers, which broadcast together, and masks; None keeps a
    dimension whole.

    The indices' own dimensions stand where the indexed dimensions stood if those are neighbors, else in front.
    """)  # fmt: skip


@index.derivative
@constant("indices")
def _(grad, input_info, indices):
    yield lambda: onto_zeros("index_put", input_info, grad, indices, grad, True)


def onto_zeros(name, info, grad, *args):
    """Zeros in the shape of an operator's argument on which `name` has collected its gradient, in place unless inside
    vmap.
    """
    inside = any(map(_native.level_of, (grad, *args))) or any(
        map(_native.level_of, args[0] if isinstance(args[0], list) else ())
    )
    return getattr(grad.new_zeros(info.shape), name if inside else name + "_")(*args)


index_select = operator("index_select", """The slices along `dim` that the vector `index` names, in its order.

    >>> cresset.index_select(cresset.tensor([[1, 2], [3, 4]]), 0, cresset.tensor([1, 1]))
    tensor([[3, 4],
            [3, 4]])
    """)  # fmt: skip


@index_select.derivative
@constant("index")
def _(grad, input_info, dim, index):
    yield lambda: onto_zeros("index_add", input_info, grad, dim, index, grad)


gather = operator("gather", """Elements picked along `dim`: result[i][j] = input[index[i][j]][j] for dim 0, and so on.

    Args:
        index: as many dimensions as `input`, and no larger than it apart from `dim`.
        sparse_grad: the gradient of `input` is a sparse tensor, with a value for each element that was picked.

    >>> cresset.gather(cresset.tensor([[1, 2], [3, 4]]), 1, cresset.tensor([[0, 0], [1, 0]]))
    tensor([[1, 1],
            [4, 3]])
    """)  # fmt: skip


@gather.derivative
@constant("index")
def _(grad, input_info, dim, index, sparse_grad):
    if sparse_grad:
        yield lambda: sparse_elements(grad, input_info.shape, dim, index)
    else:
        yield lambda: onto_zeros("scatter_add", input_info, grad, dim, index, grad)


def sparse_elements(grad, size, dim, index):
    """The gradient of gather's input as a sparse tensor: a value for each index, which may repeat."""
    from ..sparse.coo import coo

    if index.dim() == 0:  # of a vector the index is the place; a number has none
        return coo(index.reshape(1, 1)[: len(size)], grad.reshape(1), size)
    places = cresset.ones_like(index, dtype=cresset.bool).nonzero().t()
    places[dim] = index.reshape(-1)
    return coo(places, grad.reshape(-1), size)


take = operator("take", """The elements that `index` names, counted through the flattened tensor.

    >>> cresset.take(cresset.tensor([[1, 2], [3, 4]]), cresset.tensor([0, -1]))
    tensor([1, 4])
    """)  # fmt: skip


@take.derivative
@constant("index")
def _(grad, input_info, index):
    yield lambda: onto_zeros("put", input_info, grad, index, grad, True)


masked_select = operator("masked_select", """The elements where `mask` holds, as a vector.

    >>> x = cresset.tensor([1, 2, 3])
    >>> cresset.masked_select(x, x > 1)
    tensor([2, 3])
    """)  # fmt: skip


@masked_select.derivative
@constant("mask")
def _(grad, input_info, mask):
    def back():
        shape = cresset.broadcast_shapes(input_info.shape, mask.shape)
        return grad.new_zeros(shape).masked_scatter(mask, grad)

    yield back


_nonzero, _nonzero_by_dim = operator("nonzero"), operator("nonzero_numpy")


@function(method=True)
def nonzero(input, *, as_tuple=False, out=None):
    """The indices of the elements that are not zero.

    Args:
        as_tuple: one vector for each dimension, fit to index with, instead of a matrix with a row for each element.

    >>> cresset.nonzero(cresset.tensor([[0, 1], [2, 0]]))
    tensor([[0, 1],
            [1, 0]])
    """
    if not isinstance(as_tuple, bool):
        raise TypeError(f"nonzero(): argument 'as_tuple' must be bool, not {type(as_tuple).__name__}")
    if as_tuple:
        if out is not None:
            raise RuntimeError("nonzero does not support the out kwarg when as_tuple is True")
        return _nonzero_by_dim(input)
    return _nonzero(input) if out is None else _nonzero(input, out=out)


embedding = operator("embedding", """The rows of `weight` that `indices` name.

    Args:
        padding_idx: a row that gets no gradient; -1: none.
        scale_grad_by_freq: divide each row's gradient by the number of times it was taken.
        sparse: the gradient of `weight` is a sparse tensor, with a row for each index that was taken.

    >>> cresset.embedding(cresset.tensor([[1.0, 2.0], [3.0, 4.0]]), cresset.tensor([1, 0]))
    tensor([[3., 4.],
            [1., 2.]])
    """)  # fmt: skip


@embedding.derivative
@constant("indices")
def _(grad, weight_info, indices, padding_idx, scale_grad_by_freq, sparse):
    def of_weight():
        if sparse and scale_grad_by_freq:
            raise RuntimeError("embedding_backward: scale_grad_by_freq not supported with sparse gradients")
        if sparse:
            return sparse_rows(grad, indices, weight_info.shape, padding_idx)
        return embedding_backward(grad, indices, weight_info.shape[0], padding_idx, scale_grad_by_freq)

    yield of_weight


def sparse_rows(grad, indices, size, padding_idx):
    """The gradient of embedding's weight as a sparse tensor: a row for each index, which may repeat."""
    from ..sparse.coo import coo

    index = indices.reshape(1, -1).to(cresset.int64, copy=True)  # the program may change its indices later
    rows = grad.reshape(index.size(1), size[1])
    if padding_idx >= 0:
        kept = index[0] != padding_idx
        index, rows = index[:, kept], rows[kept]
    return coo(index, rows, size)


embedding_backward = operator("embedding_dense_backward", """The rows of `grad_output`, summed by index.""")


@embedding_backward.derivative
@constant("indices")
def _(grad, indices, padding_idx, scale_grad_by_freq):
    def back():
        if scale_grad_by_freq:
            raise RuntimeError("embedding: double backward is not supported with scale_grad_by_freq")
        rows = cresset.embedding(grad, indices)
        return rows.masked_fill((indices == padding_idx).unsqueeze(-1), 0) if padding_idx >= 0 else rows

    yield back


embedding_bags = operator("_embedding_bags", """The sums of the rows of `weight` that each bag of indices names, or
    with `mean` their means: each row of the matrix `indices` is a bag, or with `starts` what lies in the vector between
    two of them.

    >>> cresset._embedding_bags(cresset.tensor([[1.0, 2.0], [3.0, 4.0]]), cresset.tensor([[1, 0], [1, 1]]), None, False)
    tensor([[4., 6.],
            [6., 8.]])
    """)  # fmt: skip


@embedding_bags.derivative
@constant("indices", "starts")
def _(grad, weight_info, indices, starts, mean):
    def of_weight():
        if starts is None:
            bags, length = indices.shape
            each = (grad / length if mean else grad).unsqueeze(1).expand(bags, length, grad.size(1))
            return embedding_backward(each, indices, weight_info.shape[0], -1, False)
        lengths = starts.diff()
        share = grad / lengths.clamp_min(1).unsqueeze(1).to(grad.dtype) if mean else grad
        each = share.repeat_interleave(lengths, 0)
        return embedding_backward(each, indices[: each.shape[0]], weight_info.shape[0], -1, False)

    yield of_weight


def bags_by_rows(weight, indices, starts, mean):
    """`_embedding_bags` by operators that others know."""
    rows = cresset.embedding(weight, indices)
    if starts is None:
        return rows.mean(1) if mean else rows.sum(1)
    positions = cresset.arange(indices.shape[0], device=indices.device)
    # What lies behind the last start has a row of its own.
    bag = cresset.searchsorted(starts, positions, right=True) - 1
    total = rows.new_zeros(starts.shape[0], rows.shape[1]).index_add(0, bag, rows)[:-1]
    return total / starts.diff().clamp_min(1).unsqueeze(1).to(rows.dtype) if mean else total


# --- inside vmap ---

batch("nonzero", "nonzero_numpy", "masked_select")("dynamic")


class Indices:
    """The indices of a call: masks as numbers, those with a batch aligned to broadcast with those without.

    entries: an index or None for each dimension. first: where the indexed dimensions of a sample's result stand: at the
        place of the
    first index if the indices are neighbors, else in front. shape: what a sample's indices broadcast to.
    """

    def __init__(self, call, place):
        pairs, shapes = [], []
        for given, value, dim in zip(call.given[place], call.args[place], call.dims[place], strict=True):
            if given is not None and given.dtype in (cresset.bool, cresset.uint8):
                if dim is not None:
                    raise RuntimeError(
                        "vmap: It looks like you're attempting to index with a mask that has a value for every "
                        "sample; its result would have another shape "
                        "for each, and we do not support batching operators that can output dynamic shape. Use "
                        "torch.where instead"
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
        self.are_neighbors = len(places) == places[-1] - places[0] + 1

    def _aligned(self, value, dim):
        if dim is None:
            return value
        value = value.movedim(dim, 0)
        return value.reshape(value.shape[0], *[1] * (len(self.shape) + 1 - value.dim()), *value.shape[1:])

    def with_samples(self, size):
        """The entries for a batch with `size` samples in front; results have the samples and the indexed dimensions
        first.
        """
        return [cresset.arange(size).reshape(size, *[1] * len(self.shape)), *self.entries]


@batch("index")
def _(call):
    indices = Indices(call, 1)
    count = len(indices.shape)
    if not indices.is_batched:
        result = call.run(call.front(), [None, *indices.entries])
        return result if indices.are_neighbors else result.movedim(count, 0)
    if call.dims[0] is None:
        return call.run(call.args[0], indices.entries).movedim(indices.first, 0)
    result = call.run(call.front(), indices.with_samples(call.size))
    return (
        result.movedim(tuple(range(1, 1 + count)), tuple(range(1 + indices.first, 1 + indices.first + count)))
        if indices.first
        else result
    )


@gather.batch
def batch_along_indices(call):
    """Every tensor has the batch in front; the dimension moves by one."""
    args = list(call.args)
    for i, value in enumerate(call.given):
        if isinstance(value, cresset.Tensor):
            args[i] = call.full(i) if value.dim() else call.full(i).unsqueeze(1)
    args[1] = call.dim(args[1])
    result = call.run(*args)
    if call.in_place:
        return None
    return result if call.rank(2 if call.name == "gather" else 0) else result.squeeze(1)


@batch("index_select")
def _(call):
    input, dim, places = call.given
    at = call.dim(dim)
    if call.dims[2] is None:
        if input.dim():
            return call.front().index_select(at, places)
        return call.front().unsqueeze(1).index_select(1, places).squeeze(1)

    def selected(input, *_):
        vector = input if input.dim() else input.unsqueeze(0)
        chosen = vector[(slice(None),) * (at - 1) + (places.reshape(-1),)]
        return chosen if input.dim() else chosen.squeeze(0)

    return call.made_of(selected)


@batch("take")
def _(call):
    return call.made_of(lambda input, places: input.reshape(-1)[places])


@batch("embedding")
def _(call):
    """Rows of a table for each sample are rows of one long table."""
    weight, places, *rest = call.args
    if call.dims[0] is None:
        return call.run(weight, call.front(1), *rest)
    table = call.front(0)
    return call.run(table.flatten(0, 1), _shifted(call, 1, table.shape[1]), -1, *rest[1:])


@batch("_embedding_bags")
def _(call):
    weight, _, starts, mean = call.args
    if call.dims[0] is None:
        places = call.full(1)
    else:
        weight = call.front(0)
        places, weight = _shifted(call, 1, weight.shape[1]), weight.flatten(0, 1)
    if starts is not None:  # one vector after the other; the last start of each is the first of the next
        length = places.shape[1]
        behind = cresset.arange(call.size).unsqueeze(1) * length
        starts = cresset.cat([(call.full(2)[:, :-1] + behind).flatten(), behind[-1] + length])
    return call.run(weight, places.flatten(0, 1), starts, mean).unflatten(0, (call.size, -1))


def _shifted(call, i, rows):
    """The indices of each sample, behind the rows of the samples before."""
    places = call.full(i)
    return places + (cresset.arange(call.size, dtype=places.dtype) * rows).reshape(call.size, *[1] * call.rank(i))


@batch("embedding_dense_backward")
def _(call):
    _, _, rows, padding, by_frequency = call.args
    grad, places = call.full(0), call.full(1)
    if padding >= 0:
        grad = grad.masked_fill((places == padding).unsqueeze(-1), 0)
    return call.run(grad, _shifted(call, 1, rows), rows * call.size, -1, by_frequency).unflatten(0, (call.size, rows))


# --- as ONNX ---


@onnx("embedding")
def _(g, weight, indices):
    return g.op("Gather", weight, g.places(indices), axis=0)


@onnx("_embedding_bags")
def _(g, weight, indices, starts, mean):
    rows = g.op("Gather", weight, g.places(indices), axis=0)
    if starts is None:
        return g.reduce("ReduceMean" if mean else "ReduceSum", rows, [1], False)
    if g.opset < 16:
        raise g.unsupported("bags by offsets need opset 16")
    count, (bags, width) = indices.shape[0], g.result.shape
    first, last = g.slice(starts, 0, 0, bags), g.slice(starts, 0, 1, bags + 1)
    positions = g.op("Range", g.number(0, cresset.int64), g.squeeze(g.sizes([count]), [0]), g.number(1, cresset.int64))
    before = g.op("LessOrEqual", first, g.unsqueeze(positions, [1]))
    bag = g.op("Sub", g.reduce("ReduceSum", g.cast(before, cresset.bool, cresset.int64), [1], False), g.ints([1]))
    zeros = g.op("Expand", g.number(0, weight.dtype), g.sizes([bags, width]))
    places = g.op("Expand", g.unsqueeze(bag, [1]), g.sizes([count, width]))
    total = g.op("ScatterElements", zeros, places, rows, axis=0, reduction="add")
    if not mean:
        return total
    lengths = g.op("Max", g.op("Sub", last, first), g.ints([1]))
    return g.op("Div", total, g.cast(g.unsqueeze(lengths, [1]), cresset.int64, weight.dtype))


@onnx("index_select")
def _(g, input, dim, index):
    if not input.shape:
        return input
    return g.op("Gather", input, g.reshape(g.places(index), [-1]), axis=dim % len(input.shape))


@onnx("gather")
def _(g, input, dim, index):
    if not input.shape:
        return g.op("Expand", input, g.sizes(index.shape)) if index.shape else input
    return g.op("GatherElements", input, g.places(index), axis=dim % len(input.shape))


@onnx("take")
def _(g, input, index):
    return g.op("Gather", g.reshape(input, [-1]), g.places(index), axis=0)


@onnx("masked_select")
def _(g, input, mask):
    whole = (
        g.op("Shape", g.op("And", g.op("Cast", g.op("Equal", input, input), to=9), mask))
        if input.shape != mask.shape
        else None
    )
    x, m = (
        (g.name(input), g.name(mask)) if whole is None else (g.op("Expand", input, whole), g.op("Expand", mask, whole))
    )
    return g.op("Compress", g.reshape(x, [-1]), g.reshape(m, [-1]), axis=0)


@onnx("nonzero")
def _(g, input):
    if not input.shape:
        raise g.unsupported("a tensor without dimensions")
    return g.op("Transpose", g.op("NonZero", input), perm=[1, 0])


# How they lie on several processes: words of distributed/tensor/words.py.
placement("embedding")("embedded")
placement("gather")("gathered")
placement("index_select")("selected")
placement("index")("indexed")
