"""Writing through indices and masks: documentation and derivatives. Each operator has an in-place form, name_."""

import cresset

from .histogram import _without_derivative
from .indexing import Indices, batch_along_indices
from .registry import batch, constant, kept_for, onnx, operator, placement


class Writer:
    """An operator that changes part of a copy of its first argument, and its in-place form: they have one
    derivative."""

    def __init__(self, name, doc=None, **facts):
        name, dot, overload = name.partition(".")
        self.forms = operator(name + dot + overload, doc, **facts), operator(f"{name}_{dot}{overload}")
        if doc is not None:
            self.forms[1].operator.__doc__ = f"In-place form of `{name}`."

    def derivative(self, function):
        constant("index", "indices", "mask")(function)
        for form in self.forms:
            form.derivative(function)
        return function


# --- single elements along a dimension ---

scatter = Writer("scatter", """`input` with elements of `src` (or the number `value`) written along `dim`.

    The reverse of `gather`: result[index[i][j]][j] = src[i][j] for dim 0, and so on. The last of several writes to an
    element counts.

    Args:
        index: as many dimensions as `input`; no larger than it apart from `dim`, and no larger than `src`.
        reduce: "add" or "multiply" instead of overwriting; `scatter_reduce` can do more.

    >>> cresset.zeros(2, 2).scatter(1, cresset.tensor([[1], [0]]), 5.0)
    tensor([[0., 5.],
            [5., 0.]])
    """)  # fmt: skip
scatter_value = Writer("scatter.value")


@scatter.derivative
def _(grad, dim, index, src_info):
    yield lambda: grad.scatter(dim, index, 0)
    yield lambda: _as_source(grad.gather(dim, index), src_info)


@scatter_value.derivative
def _(grad, dim, index):
    yield lambda: grad.scatter(dim, index, 0)


def _as_source(grad, info):
    """A gradient for the elements that the index has reached, with zeros for the rest of the source."""
    if tuple(grad.shape) == tuple(info.shape):
        return grad
    whole = grad.new_zeros(info.shape)
    whole[tuple(slice(size) for size in grad.shape)].copy_(grad)
    return whole


scatter_add = Writer("scatter_add", """`input` with elements of `src` added along `dim`; see `scatter`.

    >>> cresset.zeros(2).scatter_add(0, cresset.tensor([0, 0, 1]), cresset.tensor([1.0, 2.0, 3.0]))
    tensor([3., 3.])
    """, autocast={"cuda": "promote"})  # fmt: skip


@scatter_add.derivative
@kept_for(index="src")
def _(grad, dim, index, src_info):
    yield lambda: grad
    yield lambda: _as_source(grad.gather(dim, index), src_info)


scatter_reduce = Writer("scatter_reduce", """`input` reduced with the elements of `src` that land on each of its
    elements along `dim`; see `scatter`.

    Args:
        reduce: "sum", "prod", "mean", "amax" or "amin".
        include_self: whether the elements of `input` that are met count themselves.

    >>> x, index = cresset.tensor([1.0, 2.0, 5.0]), cresset.tensor([0, 0, 1])
    >>> cresset.zeros(2).scatter_reduce(0, index, x, "mean", include_self=False)
    tensor([1.5000, 5.0000])
    """)  # fmt: skip


@scatter_reduce.derivative
def _(grad, input, dim, index, src, reduce, include_self, output):
    parts = _Reduction(grad, input, dim, index, src, reduce, include_self, output)
    yield parts.grad_of_input
    yield parts.grad_of_source


class _Reduction:
    """The gradients of scatter_reduce. What lands on an element shares its gradient according to the reduction."""

    def __init__(self, grad, input, dim, index, source, reduce, include_self, output):
        self.grad, self.input, self.dim, self.index, self.include_self = grad, input, dim, index, include_self
        self.whole_source, self.reduce, self.output = source, reduce, output
        self.source = source[tuple(slice(size) for size in index.shape)] if index.shape != source.shape else source

    def grad_of_input(self):
        grad = getattr(self, "_input_" + self.reduce)()
        return grad if self.include_self else grad.scatter(self.dim, self.index, 0)

    def grad_of_source(self):
        return _as_source(getattr(self, "_source_" + self.reduce)(), self.whole_source)

    def _spread(self, tensor):
        """What each element of the source finds where it lands."""
        return tensor.gather(self.dim, self.index)

    def _input_sum(self):
        return self.grad

    def _source_sum(self):
        return self._spread(self.grad)

    def _share(self):
        """The gradient, divided by the number of elements of each mean."""
        count = cresset.ones_like(self.grad) if self.include_self else cresset.zeros_like(self.grad)
        count = count.scatter_add(self.dim, self.index, cresset.ones_like(self.source))
        return self.grad / count.masked_fill(count == 0, 1)

    def _input_mean(self):
        return self._share()

    def _source_mean(self):
        return self._spread(self._share())

    def _input_prod(self):
        # The product of the source's elements: that of an input of ones.
        ones = cresset.ones_like(self.input)
        return self.grad * ones.scatter_reduce(self.dim, self.index, self.source, "prod")

    def _source_prod(self):
        # The product of all others: the result divided by the element. A single zero is left out of the product
        # instead; where there are more zeros, all derivatives are zero.
        zero = self.source == 0
        zeros = cresset.zeros_like(self.input).scatter_add(self.dim, self.index, zero.to(self.input.dtype))
        single = zero & (self._spread(zeros) == 1)
        others = self.input.scatter_reduce(
            self.dim, self.index, self.source.masked_fill(single, 1), "prod", include_self=self.include_self
        )
        by_division = self._spread(self.grad * self.output) / self.source.masked_fill(zero, 1)
        result = cresset.where(single, self._spread(self.grad * others), by_division)
        if result.requires_grad and (zeros > 1).any():
            # Their product has second derivatives, which the zeros of the first do not show.
            sources = [t for t in (self.grad, self.input, self.source) if t.requires_grad]
            result = _without_derivative(
                result,
                sources,
                "Double backward is unsupported for src of scatter_reduce and index_reduce with prod, when more than "
                "one of its zeros lands on the same element",
            )
        return result

    def _winners(self):
        """Where input and source have the extreme value, and the gradient for each of those that share it."""
        input_wins = self.input == self.output
        if not self.include_self:
            input_wins = input_wins.scatter(self.dim, self.index, False)
        source_wins = self.source == self._spread(self.output)
        dtype = self.grad.dtype
        count = input_wins.to(dtype).scatter_add(self.dim, self.index, source_wins.to(dtype))
        return input_wins, source_wins, self.grad / count.masked_fill(count == 0, 1)

    def _input_amax(self):
        input_wins, _, share = self._winners()
        # Elements that nothing lands on are their own result.
        return share * input_wins

    def _source_amax(self):
        _, source_wins, share = self._winners()
        return self._spread(share) * source_wins

    _input_amin, _source_amin = _input_amax, _source_amax


# --- whole slices ---

index_add = Writer("index_add", """`input` with alpha times the slices of `source` added to the slices along `dim` that
    `index` names.

    >>> cresset.zeros(3).index_add(0, cresset.tensor([0, 2, 0]), cresset.tensor([1.0, 2.0, 3.0]))
    tensor([4., 0., 2.])
    """)  # fmt: skip


@index_add.derivative
@kept_for(index="source")
def _(grad, dim, index, source_info, alpha):
    def back():
        slices = grad.index_select(dim, index).reshape(source_info.shape)
        return slices if alpha == 1 else slices * alpha

    yield lambda: grad
    yield back


index_copy = Writer("index_copy", """`input` with the slices of `source` in place of those along `dim` that `index`
    names.

    >>> cresset.zeros(3).index_copy(0, cresset.tensor([2, 0]), cresset.tensor([1.0, 2.0]))
    tensor([2., 0., 1.])
    """)  # fmt: skip


@index_copy.derivative
def _(grad, dim, index, source_info):
    yield lambda: grad.index_fill(dim, index, 0)
    yield lambda: grad.index_select(dim, index).reshape(source_info.shape)


index_fill = Writer("index_fill", """`input` with `value` in the slices along `dim` that `index` names.

    >>> cresset.zeros(3).index_fill(0, cresset.tensor([0, 2]), 5.0)
    tensor([5., 0., 5.])
    """)  # fmt: skip
index_fill_tensor = Writer("index_fill.Tensor")


@index_fill.derivative
def _(grad, dim, index):
    yield lambda: grad.index_fill(dim, index, 0)


@index_fill_tensor.derivative
def _(grad, dim, index):
    yield lambda: grad.index_fill(dim, index, 0)
    yield lambda: grad.index_select(dim, index.unique()).sum()


index_reduce = Writer("index_reduce", """`input` with the slices along `dim` that `index` names reduced with those of
    `source`.

    Args:
        reduce: "prod", "mean", "amax" or "amin".
        include_self: whether the slices of `input` that are met count themselves.

    >>> cresset.ones(2).index_reduce(0, cresset.tensor([1, 1]), cresset.tensor([2.0, 3.0]), "prod")
    tensor([1., 6.])
    """)  # fmt: skip


@index_reduce.derivative
def _(grad, input, dim, index, source, reduce, include_self, output):
    # The same as a scatter_reduce with the index repeated for every element of a slice.
    whole = index
    if source.ndim:
        whole = index.reshape([-1 if d == dim % source.ndim else 1 for d in range(source.ndim)]).expand(source.shape)
    parts = _Reduction(grad, input, dim, whole.reshape(source.shape), source, reduce, include_self, output)
    yield parts.grad_of_input
    yield parts.grad_of_source


# --- masks ---

masked_fill = Writer("masked_fill", """`input` with `value` where `mask` holds.

    >>> cresset.masked_fill(cresset.tensor([1, 2, 3]), cresset.tensor([True, False, True]), 0)
    tensor([0, 2, 0])
    """)  # fmt: skip
masked_fill_tensor = Writer("masked_fill.Tensor")


@masked_fill.derivative
def _(grad, mask):
    yield lambda: grad.masked_fill(mask, 0)


@masked_fill_tensor.derivative
def _(grad, mask):
    yield lambda: grad.masked_fill(mask, 0)
    yield lambda: cresset.where(mask, grad, 0).sum()


masked_scatter = Writer("masked_scatter", """`input` with the elements of `source`, one after the other, where `mask`
    holds.

    >>> mask = cresset.tensor([True, False, True])
    >>> cresset.masked_scatter(cresset.zeros(3), mask, cresset.tensor([5.0, 6.0, 7.0]))
    tensor([5., 0., 6.])
    """)  # fmt: skip


@masked_scatter.derivative
def _(grad, mask, source_info):
    def back():
        used = grad.masked_select(mask)
        rest = source_info.numel() - used.numel()
        return (
            cresset.cat([used, used.new_zeros(rest)]).reshape(source_info.shape)
            if rest
            else used.reshape(source_info.shape)
        )

    yield lambda: grad.masked_fill(mask, 0)
    yield back


# --- anywhere ---

put = Writer("put", """`input` with elements of `source` at the places that `index` names, counted through the
    flattened tensor.

    Args:
        accumulate: add instead of overwriting.

    >>> cresset.put(cresset.zeros(2, 2), cresset.tensor([1, -1]), cresset.tensor([5.0, 6.0]))
    tensor([[0., 5.],
            [0., 6.]])
    """)  # fmt: skip


@put.derivative
def _(grad, index, source_info, accumulate):
    yield lambda: grad if accumulate else grad.put(index, grad.new_zeros(index.shape))
    yield lambda: grad.take(index).reshape(source_info.shape)


index_put = Writer("index_put", """`input` with `values` at input[indices], which they broadcast to.

    Args:
        indices: a tuple of tensors: integers, which broadcast together, and masks.
        accumulate: add instead of overwriting; an element that is named twice gets both.

    >>> cresset.zeros(3).index_put((cresset.tensor([0, 2]),), cresset.tensor(5.0))
    tensor([5., 0., 5.])
    """, autocast={"cuda": "promote"})  # fmt: skip

_index = operator("index")


@index_put.derivative
def _(grad, indices, accumulate):
    yield lambda: grad if accumulate else grad.index_put(indices, grad.new_zeros(()))
    yield lambda: _index(grad, indices)


# --- inside vmap ---

batch("masked_fill", "masked_fill_")("pointwise")
batch(
    "scatter", "scatter.value", "scatter.reduce", "scatter.value_reduce", "scatter_", "scatter_.value",
    "scatter_.reduce", "scatter_.value_reduce", "scatter_add",
    "scatter_add_", "scatter_reduce", "scatter_reduce_",
)(batch_along_indices)  # fmt: skip


@batch("masked_fill.Tensor", "masked_fill_.Tensor")
def _(call):
    """With a value for each sample, it is a choice between two tensors."""
    if call.dims[2] is None:
        return call.pointwise()
    input, mask, value = call.given
    chosen = call.made_of(lambda *_: cresset.where(mask, value.to(input.dtype), input))
    if not call.in_place:
        return chosen
    call.front().copy_(chosen)
    return None


@batch("index_put", "index_put_")
def _(call):
    indices = Indices(call, 1)
    target = call.front(0) if call.in_place else call.full(0)
    rest = [
        size
        for size, entry in zip(call.given[0].shape, indices.entries + [None] * call.rank(), strict=False)
        if entry is None
    ]
    count = len(indices.shape)
    shape = (*rest[: indices.first], *indices.shape, *rest[indices.first :])
    values = call.padded(2, len(shape)).expand(call.size, *shape)
    values = values.movedim(tuple(range(1 + indices.first, 1 + indices.first + count)), tuple(range(1, 1 + count)))
    return call.run(target, indices.with_samples(call.size), values, call.args[3])


def _put(input, dim, places, values, accumulate=False):
    """The batched form of the index_... operators: a put at the indices of one dimension, given from the front."""
    vector = input if input.dim() else input.unsqueeze(0)
    put = cresset.index_put(vector, [*[None] * dim, places.reshape(-1)], values, accumulate)
    return put if input.dim() else put.squeeze(0)


@batch(
    "index_add", "index_add_", "index_copy", "index_copy_", "index_fill", "index_fill_", "index_fill.Tensor",
    "index_fill_.Tensor", "index_reduce", "index_reduce_",
)  # fmt: skip
def _(call):
    base = call.name.partition(".")[0].removesuffix("_")
    if call.dims[2] is None and not (base == "index_fill" and call.dims[3] is not None) and call.rank():
        args = [call.full(0), call.dim(call.args[1]), *call.args[2:]]
        if base != "index_fill":
            source = call.full(3)
            args[3] = source if call.rank(3) else source.unsqueeze(1)
        return call.run(*args)
    if base == "index_reduce":
        return NotImplemented

    dim = call.dim(call.args[1]) - 1

    def changed(input, _, places, value, alpha=1):
        if base == "index_add":
            return _put(input, dim, places, value if alpha == 1 else value * alpha, accumulate=True)
        value = (
            value
            if isinstance(value, cresset.Tensor)
            else cresset.tensor(value, dtype=input.dtype, device=input.device)
        )
        return _put(input, dim, places, value.to(input.dtype))

    result = call.made_of(changed)
    if not call.in_place:
        return result
    call.front().copy_(result)
    return None


# --- as ONNX ---


@onnx("index_put")
def _(g, input, indices, values, accumulate):
    tensors = [i for i in indices if i is not None]
    if len(tensors) != len(indices) or any(t.dtype is cresset.bool for t in tensors):
        raise g.unsupported("indices that leave a dimension out, or are masks")
    if accumulate and g.opset < 16:
        raise g.unsupported("adding to places needs opset 16")
    value = values[0] if isinstance(values, tuple) else g.cast(values, values.dtype, input.dtype)
    rank = max(len(t.shape) for t in tensors)
    whole = g.name(tensors[0])
    for t in tensors[1:]:
        whole = g.op("Add", whole, t)
    common = g.op("Shape", whole)
    columns = [g.unsqueeze(g.op("Expand", g.places(t), common), [rank]) for t in tensors]
    places = columns[0] if len(columns) == 1 else g.op("Concat", *columns, axis=rank)
    rest = input.shape[len(tensors) :]
    wanted = g.op("Concat", common, g.sizes(rest), axis=0) if rest else common
    return g.op(
        "ScatterND",
        input,
        g.cast(places, cresset.int64, cresset.int64),
        g.op("Expand", value, wanted),
        reduction="add" if accumulate else None,
    )


@onnx("scatter")
def _(g, input, dim, index, src=None, value=None, reduce=None):
    kinds = {None: None, "add": "add", "multiply": "mul"}
    if src is None:
        updates = g.op("Expand", g.number(value, input.dtype), g.sizes(index.shape))
    else:
        updates = _cut(g, g.name(src), src.shape, index.shape)
    return _scatter(g, input, dim, g.places(index), updates, kinds[reduce])


@onnx("scatter_add")
def _(g, input, dim, index, src):
    return _scatter(g, input, dim, g.places(index), _cut(g, g.name(src), src.shape, index.shape), "add")


@onnx("scatter_reduce")
def _(g, input, dim, index, src, reduce, include_self):
    kinds = {"sum": "add", "prod": "mul", "amax": "max", "amin": "min"}
    if reduce not in kinds or not include_self:
        raise g.unsupported(f"reduce={reduce!r}, include_self={include_self}")
    return _scatter(g, input, dim, g.places(index), _cut(g, g.name(src), src.shape, index.shape), kinds[reduce])


def _cut(g, src, shape, wanted):
    """The part of src that the index covers."""
    for axis, (size, size_wanted) in enumerate(zip(shape, wanted, strict=True)):
        if size != size_wanted:
            src = g.slice(src, axis, 0, size_wanted)
    return src


def _scatter(g, input, dim, places, updates, reduction):
    if not input.shape:
        raise g.unsupported("a tensor without dimensions")
    needed = {None: 11, "add": 16, "mul": 16, "max": 18, "min": 18}[reduction]
    if g.opset < needed:
        raise g.unsupported(f"combining with what is there ({reduction}) needs opset {needed}")
    return g.op("ScatterElements", input, places, updates, axis=dim % len(input.shape), reduction=reduction)


@onnx("index_add", "index_copy", "index_fill")
def _(g, input, dim, index, source=None, value=None, alpha=1):
    if not input.shape:
        raise g.unsupported("a tensor without dimensions")
    axis = dim % len(input.shape)
    reduction = "add" if g.call.name == "index_add" else None
    shape = [*input.shape[:axis], index.shape[0], *input.shape[axis + 1 :]]
    if source is None:
        updates = g.op("Expand", g.number(value, input.dtype), g.sizes(shape))
    else:
        updates = g.name(source) if alpha == 1 else g.op("Mul", source, g.number(alpha, input.dtype))
    others = [k for k in range(len(shape)) if k != axis]
    places = g.op("Expand", g.unsqueeze(g.places(index), others), g.sizes(shape))
    return _scatter(g, input, dim, places, updates, reduction)


@onnx("masked_scatter")
def _(g, input, mask, source):
    places = g.op("Transpose", g.op("NonZero", g.op("Expand", mask, g.sizes(g.result.shape))), perm=[1, 0])
    count = g.op("Gather", g.op("Shape", places), g.ints([0]), axis=0)
    values = g.op("Slice", g.reshape(source, [-1]), g.ints([0]), count)
    return g.op("ScatterND", g.op("Expand", input, g.sizes(g.result.shape)), places, values)


@onnx("masked_fill")
def _(g, input, mask, value):
    value = g.number(value, input.dtype)
    return g.choose(mask, value, input) if input.dtype is cresset.bool else g.op("Where", mask, value, input)


# How they lie on several processes: words of distributed/tensor/words.py.
placement("masked_fill", "masked_fill_")("pointwise")
placement("scatter", "scatter_add", "scatter_reduce")("scattered")
placement("index_fill")("selected")
placement("index_add", "index_copy")("added_at")
