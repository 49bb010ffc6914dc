"""Reductions: documentation and derivatives of sums, products, extremes, logic, moments and norms."""

import math

import cresset

from .batches import all_samples
from .indexing import onto_zeros
from .registry import batch, onnx, operator, placement


def _with_dims(grad, info, dim, keepdim):
    """The gradient of a reduction with the reduced dimensions put back, of size one, so that it broadcasts with the
    input.
    """
    ndim = len(info.shape)
    if keepdim or ndim == 0 or dim is None or dim == ():
        return grad
    for d in sorted(d % ndim for d in ((dim,) if isinstance(dim, int) else dim)):
        grad = grad.unsqueeze(d)
    return grad


def _count(info, dim):
    """How many elements went into one result."""
    if not info.shape:
        return 1
    if dim is None or dim == ():
        return math.prod(info.shape)
    return math.prod(info.shape[d] for d in ((dim,) if isinstance(dim, int) else dim))


# --- sums ---

sum = operator("sum", """The sum of all elements, or along `dim`. Integers and bool are summed in int64.

    Args:
        dim: a dimension or several; None or none at all reduces all.
        keepdim: keep the reduced dimensions, with size one.
        dtype: convert the elements first.

    >>> cresset.sum(cresset.tensor([[1, 2], [3, 4]]), dim=0)
    tensor([4, 6])
    """, autocast={"cuda": "accumulate"}, casts_out=True)  # fmt: skip


@operator("sum.all").derivative
def _(grad, input_info):
    yield lambda: grad.expand(input_info.shape)


@sum.derivative
def _(grad, input_info, dim, keepdim):
    yield lambda: _with_dims(grad, input_info, dim, keepdim).expand(input_info.shape)


nansum = operator("nansum", """The sum of the elements that are not nan; arguments as in `sum`.

    >>> cresset.nansum(cresset.tensor([1.0, float("nan"), 2.0]))
    tensor(3.)
    """, casts_out=True)  # fmt: skip


@nansum.derivative
def _(grad, input, dim, keepdim):
    yield lambda: _with_dims(grad, input, dim, keepdim) * input.isnan().logical_not()


mean = operator("mean", """The mean of all elements, or along `dim`; arguments as in `sum`.

    >>> cresset.mean(cresset.tensor([1.0, 2.0, 6.0]))
    tensor(3.)
    """, casts_out=True)  # fmt: skip


@operator("mean.all").derivative
def _(grad, input_info):
    yield lambda: (grad / _count(input_info, None)).expand(input_info.shape)


@mean.derivative
def _(grad, input_info, dim, keepdim):
    yield lambda: (_with_dims(grad, input_info, dim, keepdim) / _count(input_info, dim)).expand(input_info.shape)


# --- products ---

prod = operator("prod", """The product of all elements, or along one dimension `dim`.

    >>> cresset.prod(cresset.tensor([1.0, 2.0, 3.0]))
    tensor(6.)
    """, autocast={"cpu": "float32", "cuda": "accumulate"}, casts_out=True)  # fmt: skip


def _product_of_others(x, dim):
    """For each element the product of all others along `dim`, without a division: those before times those after."""
    ones = cresset.ones_like(x.narrow(dim, 0, 1))
    size = x.size(dim)
    before = cresset.cat([ones, x.narrow(dim, 0, size - 1)], dim).cumprod(dim)
    after = cresset.cat([ones, x.narrow(dim, 1, size - 1).flip(dim)], dim).cumprod(dim).flip(dim)
    return before * after


@prod.derivative
def _(grad, input, output):
    def gradient():
        if input.ndim == 0:
            return grad
        if not (all_samples(input) == 0).any():
            return grad * (output / input).conj()
        others = _product_of_others(input.reshape(-1), 0)
        return grad * others.reshape(input.shape).conj()

    yield gradient


@operator("prod.dim").derivative
def _(grad, input, output, dim, keepdim):
    def gradient():
        if input.ndim == 0:
            return grad
        whole, result = _with_dims(grad, input, dim, keepdim), _with_dims(output, input, dim, keepdim)
        if not (all_samples(input) == 0).any():
            return whole * (result / input).conj()
        return whole * _product_of_others(input, dim).conj()

    yield gradient


# --- extremes ---


def _shared(grad, input, result, dim, keepdim):
    """The gradient of an extreme value goes in equal shares to all elements that have it."""
    grad, result = _with_dims(grad, input, dim, keepdim), _with_dims(result, input, dim, keepdim)
    hit = input == result if dim is not None else (input == result) | (input.isnan() & result.isnan())
    count = hit.sum() if dim is None or dim == () else hit.sum(dim, keepdim=True)
    return cresset.where(hit, grad / count, 0) if dim is None else grad / count * hit


amax = operator("amax", """The largest element, of all or along `dim` (one or several). The gradient is shared among
    equal elements.

    >>> cresset.amax(cresset.tensor([[1, 5], [7, 2]]), dim=1)
    tensor([5, 7])
    """)  # fmt: skip

amin = operator("amin", """The smallest element, of all or along `dim` (one or several). The gradient is shared among
    equal elements.

    >>> cresset.amin(cresset.tensor([[1, 5], [7, 2]]), dim=1)
    tensor([1, 2])
    """)  # fmt: skip


@amax.derivative
def _(grad, input, output, dim, keepdim):
    yield lambda: _shared(grad, input, output, dim, keepdim)


@amin.derivative
def _(grad, input, output, dim, keepdim):
    yield lambda: _shared(grad, input, output, dim, keepdim)


aminmax = operator("aminmax", """The smallest and the largest element, of all or along `dim`.

    >>> low, high = cresset.aminmax(cresset.tensor([3, 1, 2]))
    >>> low, high
    (tensor(1), tensor(3))
    """)  # fmt: skip


@aminmax.derivative
def _(grads, input, outputs, dim, keepdim):
    dims = () if dim is None else dim
    yield (
        lambda: (
            _shared(grads[0], input, outputs[0], dims, keepdim) + _shared(grads[1], input, outputs[1], dims, keepdim)
        )
    )


max = operator("max", """The largest element; with `dim` the largest along it and its index; with another tensor the
    elementwise maximum.

    >>> cresset.max(cresset.tensor([1, 5, 2]))
    tensor(5)
    >>> values, indices = cresset.max(cresset.tensor([[1, 5], [7, 2]]), dim=1)
    >>> values, indices
    (tensor([5, 7]), tensor([1, 0]))
    """)  # fmt: skip

min = operator("min", """The smallest element; with `dim` the smallest along it and its index; with another tensor the
    elementwise minimum.

    >>> cresset.min(cresset.tensor([1, 5, 2]))
    tensor(1)
    >>> values, indices = cresset.min(cresset.tensor([[1, 5], [7, 2]]), dim=1)
    >>> values, indices
    (tensor([1, 2]), tensor([0, 1]))
    """)  # fmt: skip


@max.derivative
def _(grad, input, output):
    yield lambda: _shared(grad, input, output, None, False)


@min.derivative
def _(grad, input, output):
    yield lambda: _shared(grad, input, output, None, False)


def at_indices(grad, info, dim, keepdim, indices):
    """A gradient for the elements that were picked along `dim`, zero for the others."""
    if not info.shape:
        return grad
    if not keepdim:
        grad, indices = grad.unsqueeze(dim), indices.unsqueeze(dim)
    return onto_zeros("scatter", info, grad, dim, indices, grad)


@operator("max.dim").derivative
def _(grad, input_info, dim, keepdim, indices):
    yield lambda: at_indices(grad, input_info, dim, keepdim, indices) if input_info.shape else grad.clone()


@operator("min.dim").derivative
def _(grad, input_info, dim, keepdim, indices):
    yield lambda: at_indices(grad, input_info, dim, keepdim, indices) if input_info.shape else grad.clone()


operator("argmax", """The index of the largest element, of all (counted in row-major order) or along `dim`; the first
    of equal ones.

    >>> cresset.argmax(cresset.tensor([1, 5, 5]))
    tensor(1)
    """)  # fmt: skip

operator("argmin", """The index of the smallest element, of all (counted in row-major order) or along `dim`; the first
    of equal ones.

    >>> cresset.argmin(cresset.tensor([3, 1, 1]))
    tensor(1)
    """)  # fmt: skip

# --- logic and counting ---

operator("any", """Is any element true (not zero), of all or along `dim`?

    >>> cresset.any(cresset.tensor([[0, 0], [0, 1]]), dim=1)
    tensor([False,  True])
    """)  # fmt: skip

operator("all", """Are all elements true (not zero), of all or along `dim`?

    >>> cresset.all(cresset.tensor([[1, 1], [0, 1]]), dim=1)
    tensor([ True, False])
    """)  # fmt: skip

operator("count_nonzero", """The number of elements that are not zero, of all or along `dim`.

    >>> cresset.count_nonzero(cresset.tensor([[0, 1], [2, 3]]), dim=0)
    tensor([1, 2])
    """)  # fmt: skip

# --- log of a sum of exponentials ---

logsumexp = operator("logsumexp", """log(sum(exp(x))) along `dim`, computed without overflow.

    >>> cresset.logsumexp(cresset.tensor([1000.0, 1000.0]), dim=0)
    tensor(1000.6932)
    """, autocast={"cuda": "float32"}, casts_out=True)  # fmt: skip


@logsumexp.derivative
def _(grad, input, output, dim, keepdim):
    def gradient():
        result = _with_dims(output, input, dim, keepdim)
        return _with_dims(grad, input, dim, keepdim) * (input - result).exp().conj()

    yield gradient


# --- variance ---

_SPREAD_ARGUMENTS = """

    Args:
        dim: a dimension or several; None reduces all.
        correction: the sum of squared distances from the mean is divided by n - correction; 1 if None.
        unbiased: the older way to say `correction`: 1 if True, 0 if False.
        keepdim: keep the reduced dimensions, with size one.
    """

var = operator("var", """The variance, of all elements or along `dim`.""" + _SPREAD_ARGUMENTS + """
    >>> cresset.var(cresset.tensor([1.0, 2.0, 3.0]))
    tensor(1.)
    """, casts_out=True)  # fmt: skip

std = operator("std", """The standard deviation, of all elements or along `dim`.""" + _SPREAD_ARGUMENTS + """
    >>> cresset.std(cresset.tensor([1.0, 2.0, 3.0]))
    tensor(1.)
    """, casts_out=True)  # fmt: skip

var_mean = operator("var_mean", """The variance and the mean, of all elements or along `dim`.""" + _SPREAD_ARGUMENTS +
    """
    >>> cresset.var_mean(cresset.tensor([1.0, 2.0, 3.0]))
    (tensor(1.), tensor(2.))
    """)  # fmt: skip

std_mean = operator("std_mean", """The standard deviation and the mean, of all elements or along `dim`.""" +
    _SPREAD_ARGUMENTS + """
    >>> cresset.std_mean(cresset.tensor([1.0, 2.0, 3.0]))
    (tensor(1.), tensor(2.))
    """)  # fmt: skip


def _var_backward(grad, input, dim, correction, keepdim):
    """d var / dx = 2 (x - mean) / (n - correction)"""
    freedom = _count(input, dim) - (1 if correction is None else correction)
    scale = 2 / freedom if freedom > 0 else math.inf
    center = input.mean(dim or None, keepdim=True) if dim else input.mean()
    return _with_dims(grad, input, dim, keepdim) * scale * (input - center)


def _std_backward(grad, input, result, dim, correction, keepdim):
    """d std / dx = d var / dx / (2 std); where the deviation is zero so is the gradient."""
    halved = (grad / (result * 2)).masked_fill(result == 0, 0)
    return _var_backward(halved, input, dim, correction, keepdim)


def _spread_and_mean(arrived, spread, mean):
    """The gradient through the spread and through the mean, of those that arrived: of one number that of the spread is
    nan, also where nobody asked for it.
    """
    parts = [part() for part, there in zip((spread, mean), arrived, strict=True) if there]
    if len(parts) == 2:
        return parts[0] + parts[1]
    return parts[0] if parts else None


def _mean_backward(grad, input, dim, keepdim):
    return (_with_dims(grad, input, dim, keepdim) / _count(input, dim)).expand(input.shape)


def _as_dims(dim):
    return dim if dim is None or isinstance(dim, tuple) else (dim,)


@var.derivative
def _(grad, input, dim, correction, keepdim):
    yield lambda: _var_backward(grad, input, _as_dims(dim), correction, keepdim)


@operator("var.dim").derivative
def _(grad, input, dim, unbiased, keepdim):
    yield lambda: _var_backward(grad, input, _as_dims(dim), int(unbiased), keepdim)


@operator("var.unbiased").derivative
def _(grad, input, unbiased):
    yield lambda: _var_backward(grad, input, None, int(unbiased), False)


@std.derivative
def _(grad, input, output, dim, correction, keepdim):
    yield lambda: _std_backward(grad, input, output, _as_dims(dim), correction, keepdim)


@operator("std.dim").derivative
def _(grad, input, output, dim, unbiased, keepdim):
    yield lambda: _std_backward(grad, input, output, _as_dims(dim), int(unbiased), keepdim)


@operator("std.unbiased").derivative
def _(grad, input, output, unbiased):
    yield lambda: _std_backward(grad, input, output, None, int(unbiased), False)


@var_mean.derivative
def _(grads, arrived, input, dim, correction, keepdim):
    dim = _as_dims(dim)
    yield lambda: _spread_and_mean(
        arrived,
        lambda: _var_backward(grads[0], input, dim, correction, keepdim),
        lambda: _mean_backward(grads[1], input, dim, keepdim),
    )


@operator("var_mean.dim").derivative
def _(grads, arrived, input, dim, unbiased, keepdim):
    dim = _as_dims(dim)
    yield lambda: _spread_and_mean(
        arrived,
        lambda: _var_backward(grads[0], input, dim, int(unbiased), keepdim),
        lambda: _mean_backward(grads[1], input, dim, keepdim),
    )


@operator("var_mean.unbiased").derivative
def _(grads, arrived, input, unbiased):
    yield lambda: _spread_and_mean(
        arrived,
        lambda: _var_backward(grads[0], input, None, int(unbiased), False),
        lambda: _mean_backward(grads[1], input, None, False),
    )


@std_mean.derivative
def _(grads, arrived, input, output, dim, correction, keepdim):
    dim = _as_dims(dim)
    yield lambda: _spread_and_mean(
        arrived,
        lambda: _std_backward(grads[0], input, output, dim, correction, keepdim),
        lambda: _mean_backward(grads[1], input, dim, keepdim),
    )


@operator("std_mean.dim").derivative
def _(grads, arrived, input, output, dim, unbiased, keepdim):
    dim = _as_dims(dim)
    yield lambda: _spread_and_mean(
        arrived,
        lambda: _std_backward(grads[0], input, output, dim, int(unbiased), keepdim),
        lambda: _mean_backward(grads[1], input, dim, keepdim),
    )


@operator("std_mean.unbiased").derivative
def _(grads, arrived, input, output, unbiased):
    yield lambda: _spread_and_mean(
        arrived,
        lambda: _std_backward(grads[0], input, output, None, int(unbiased), False),
        lambda: _mean_backward(grads[1], input, None, False),
    )


# --- norms ---

linalg_vector_norm = operator("linalg_vector_norm", """The norm of order `ord` of all elements, or along `dim`: see
    `linalg.vector_norm`.

    >>> cresset.linalg_vector_norm(cresset.tensor([3.0, 4.0]))
    tensor(5.)
    """, autocast={"cuda": "accumulate"})  # fmt: skip


def _norm_backward(grad, x, norm, p, dim, keepdim):
    """d (sum |x|^p)^(1/p) / dx = sgn(x) |x|^(p-1) / norm^(p-1); zero where the norm is zero."""
    grad, norm = _with_dims(grad, x, dim, keepdim), _with_dims(norm, x, dim, keepdim)
    if p == 0:
        return None  # a count
    if p == 1:
        return x.sgn() * grad
    if p == 2:
        return grad * (x / norm).masked_fill(norm == 0, 0)
    if math.isinf(p):
        size = x.abs()
        hit = (size == norm) | (size.isnan() & norm.isnan())
        count = hit.sum(dim, keepdim=True) if dim else hit.sum()
        return x.sgn() * (grad / count * hit)
    if p < 1:
        scaled = x.sgn() * x.abs().pow(p - 1).masked_fill(x == 0, 0)
        return scaled * (grad * norm.pow(1 - p))
    scaled = x.sgn() * x.abs().pow(p - 1) if p < 2 else x * x.abs().pow(p - 2)
    return scaled * (grad / norm.pow(p - 1)).masked_fill(norm == 0, 0)


@linalg_vector_norm.derivative
def _(grad, input, output, ord, dim, keepdim, dtype):
    def gradient():
        x = input if dtype is None else input.to(dtype)
        return _norm_backward(grad, x, output, ord, dim, keepdim)

    yield gradient


# --- inside vmap ---


# Over some dimensions (or all), with keepdim.
_OVER_DIMS = (
    "sum", "mean", "nansum", "amax", "amin", "all.dim", "any.dim", "count_nonzero", "logsumexp", "linalg_vector_norm",
    "std", "std.dim", "var", "var.dim", "std_mean", "std_mean.dim",
    "var_mean", "var_mean.dim", "aminmax", "argmax", "argmin", "max.dim", "min.dim", "median.dim", "nanmedian.dim",
    "prod.dim",
)  # fmt: skip


# Over all of it: the name of the form with `dim`.
_OVER_ALL = {
    "sum.all": "sum", "mean.all": "mean", "prod": "prod.dim", "max": "max.dim", "min": "min.dim",
    "median": "median.dim", "nanmedian": "nanmedian.dim", "all": "all.dim",
    "any": "any.dim",
}  # fmt: skip


_ONE_DIM = {"argmax", "argmin", "prod.dim", "max.dim", "min.dim", "median.dim", "nanmedian.dim", "aminmax"}


def _flat(call):
    """The samples as vectors."""
    value = call.front()
    return value.flatten(1) if call.rank() else value.unsqueeze(1)


@batch(*_OVER_DIMS)
def _(call):
    place, keepdim = call.place("dim"), call.place("keepdim")
    args, dims, rank = list(call.args), call.args[place], call.rank()
    one = call.name in _ONE_DIM
    if dims is None or (not one and not dims):
        args[place] = 1 if one else (1,)
        result = call.run(_flat(call), *args[1:])
        if keepdim is None or not args[keepdim]:
            return result
        return _each(result, lambda r: r.reshape(call.size, *[1] * rank))
    args[place] = call.dim(dims) if one else tuple(call.dim(dim) for dim in dims)
    if rank:
        return call.run(call.front(), *args[1:])
    return _each(call.run(call.front().unsqueeze(1), *args[1:]), lambda r: r.reshape(call.size))


def _each(result, function):
    return [function(part) for part in result] if isinstance(result, (tuple, list)) else function(result)


@batch(*_OVER_ALL)
def _(call):
    name = _OVER_ALL[call.name]
    extra = dict(zip(("dtype",), call.args[1:], strict=False))
    value = _flat(call)
    result = call.function(value, 1, **{key: item for key, item in extra.items() if item is not None})
    return result[0] if isinstance(result, tuple) and name.endswith(".dim") else result


@batch("std.unbiased", "var.unbiased", "std_mean.unbiased", "var_mean.unbiased")
def _(call):
    return call.function(_flat(call), 1, correction=int(call.args[1]))


# --- as ONNX ---


@onnx("sum")
def _(g, input, dim=None, keepdim=False):
    return g.reduced("ReduceSum", input, dim, keepdim)


@onnx("mean")
def _(g, input, dim=None, keepdim=False):
    return g.reduced("ReduceMean", input, dim, keepdim)


@onnx("prod")
def _(g, input, dim=None, keepdim=False):
    return g.reduced("ReduceProd", input, dim, keepdim)


@onnx("amax")
def _(g, input, dim, keepdim):
    return g.reduced("ReduceMax", input, dim, keepdim)


@onnx("amin")
def _(g, input, dim, keepdim):
    return g.reduced("ReduceMin", input, dim, keepdim)


@onnx("aminmax")
def _(g, input, dim, keepdim):
    return [g.reduced(kind, input, dim, keepdim) for kind in ("ReduceMin", "ReduceMax")]


@onnx("max", "min")
def _(g, input, dim=None, keepdim=False, other=None):
    kind = "Max" if g.call.name == "max" else "Min"
    if other is not None:
        return g.of_two(kind, input, other)
    if dim is None:
        return g.reduced("Reduce" + kind, input, None, False)
    if not input.shape:
        return [input, g.number(0, cresset.int64)]
    return [g.reduced("Reduce" + kind, input, dim, keepdim), _place(g, "Arg" + kind, input, dim, keepdim)]


def _place(g, kind, input, dim, keepdim):
    dtype = (
        input.dtype
        if input.dtype in (cresset.float32, cresset.float64, cresset.int32, cresset.int64)
        else cresset.float32
    )
    return g.op(kind, g.cast(input, input.dtype, dtype), axis=dim % len(input.shape), keepdims=int(keepdim))


@onnx("argmax", "argmin")
def _(g, input, dim, keepdim):
    kind = "ArgMax" if g.call.name == "argmax" else "ArgMin"
    if not input.shape:
        return g.number(0, cresset.int64)
    if dim is None:
        flat = g.reshape(g.cast(input, input.dtype, cresset.float32) if input.dtype is cresset.bool else input, [-1])
        found = g.op(kind, flat, axis=0, keepdims=0)
        return g.reshape(found, [1] * len(input.shape)) if keepdim else found
    return _place(g, kind, input, dim, keepdim)


@onnx("all", "any")
def _(g, input, dim=None, keepdim=False):
    counted = g.cast(g.cast(input, input.dtype, cresset.bool), cresset.bool, cresset.int32)
    axes = g.axes(input, dim)
    if axes:
        counted = g.reduce("ReduceMin" if g.call.name == "all" else "ReduceMax", counted, axes, keepdim)
    return g.cast(counted, cresset.int32, g.result.dtype)


@onnx("count_nonzero")
def _(g, input, dim):
    ones = g.cast(g.cast(input, input.dtype, cresset.bool), cresset.bool, cresset.int64)
    return g.reduce("ReduceSum", ones, g.axes(input, dim), False) if input.shape else ones


@onnx("logsumexp")
def _(g, input, dim, keepdim):
    return g.reduced("ReduceLogSumExp", input, dim, keepdim)


@onnx("nansum")
def _(g, input, dim, keepdim):
    if not input.dtype.is_floating_point:
        return g.reduced("ReduceSum", input, dim, keepdim)
    clean = g.op("Where", g.op("IsNaN", input), g.number(0.0, input.dtype), input)
    return g.reduce("ReduceSum", clean, g.axes(input, dim), keepdim) if input.shape else clean


@onnx("linalg_vector_norm")
def _(g, input, ord, dim, keepdim):
    dtype = g.result.dtype
    axes = g.axes(input, dim)
    x = g.cast(input, input.dtype, dtype)
    if not axes:
        return g.op("Abs", x) if ord != 0 else g.op("Sign", g.op("Abs", x))
    if ord in (1, 2):
        return g.reduce("ReduceL1" if ord == 1 else "ReduceL2", x, axes, keepdim)
    size = g.op("Abs", x)
    if ord in (math.inf, -math.inf):
        return g.reduce("ReduceMax" if ord > 0 else "ReduceMin", size, axes, keepdim)
    if ord == 0:
        return g.reduce("ReduceSum", g.op("Sign", size), axes, keepdim)
    total = g.reduce("ReduceSum", g.op("Pow", size, g.number(float(ord), dtype)), axes, keepdim)
    return g.op("Pow", total, g.number(1 / float(ord), dtype))


@onnx("var", "std", "var_mean", "std_mean")
def _(g, input, dim=None, correction=None, unbiased=True, keepdim=False):
    axes = g.axes(input, dim)
    correction = (1 if unbiased else 0) if correction is None else correction
    variance, center, _ = g.moments(input, axes, correction, keepdim)
    found = g.op("Sqrt", variance) if g.call.name.startswith("std") else variance
    return [found, center] if g.call.name.endswith("_mean") else found


# How they lie on several processes: words of distributed/tensor/words.py.
placement("sum", "nansum")("summed")
placement("mean")("averaged")
placement("all", "any", "argmax", "argmin", "logsumexp")("reduced")
placement("amax")("largest")
placement("amin")("smallest")
placement("prod")("multiplied")
placement("max", "min")("extreme")
placement("count_nonzero")("counted")
placement("std", "var", "std_mean", "var_mean")("spread")
placement("linalg_vector_norm")("norm")
