"""Sums, extremes, norms and the like: over dimensions of a sample, or over all of it."""

from ..batching import rule, wrap_dim

# Over some dimensions (or all), with keepdim.
MANY = (
    "sum", "mean", "nansum", "amax", "amin", "all.dim", "any.dim", "count_nonzero", "logsumexp", "linalg_vector_norm", "std", "std.dim", "var", "var.dim", "std_mean", "std_mean.dim",
    "var_mean", "var_mean.dim", "aminmax", "argmax", "argmin", "max.dim", "min.dim", "median.dim", "nanmedian.dim", "prod.dim",
)  # fmt: skip
# Over all of it: the name of the form with `dim`.
ALL = {
    "sum.all": "sum", "mean.all": "mean", "prod": "prod.dim", "max": "max.dim", "min": "min.dim", "median": "median.dim", "nanmedian": "nanmedian.dim", "all": "all.dim",
    "any": "any.dim",
}  # fmt: skip
ONE_DIM = {"argmax", "argmin", "prod.dim", "max.dim", "min.dim", "median.dim", "nanmedian.dim", "aminmax"}


def _flat(call):
    """The samples as vectors."""
    value = call.front()
    return value.flatten(1) if call.rank() else value.unsqueeze(1)


@rule(*MANY)
def over_dims(call):
    place, keepdim = call.place("dim"), call.place("keepdim")
    args, dims, rank = list(call.args), call.args[place], call.rank()
    one = call.name in ONE_DIM
    if dims is None or (not one and not dims):
        args[place] = 1 if one else (1,)
        result = call.run(_flat(call), *args[1:])
        if keepdim is None or not args[keepdim]:
            return result
        return _each(result, lambda r: r.reshape(call.size, *[1] * rank))
    args[place] = wrap_dim(dims, rank) if one else tuple(wrap_dim(dim, rank) for dim in dims)
    if rank:
        return call.run(call.front(), *args[1:])
    return _each(call.run(call.front().unsqueeze(1), *args[1:]), lambda r: r.reshape(call.size))


def _each(result, function):
    return [function(part) for part in result] if isinstance(result, (tuple, list)) else function(result)


@rule(*ALL)
def over_all(call):
    name = ALL[call.name]
    extra = dict(zip(("dtype",), call.args[1:], strict=False))
    value = _flat(call)
    result = call.function(value, 1, **{key: item for key, item in extra.items() if item is not None})
    return result[0] if isinstance(result, tuple) and name.endswith(".dim") else result


@rule("std.unbiased", "var.unbiased", "std_mean.unbiased", "var_mean.unbiased")
def moments(call):
    return call.function(_flat(call), 1, correction=int(call.args[1]))


@rule("dot")
def dot(call):
    a, b = call.front(0), call.front(1)
    if call.dims[0] is None:
        return b @ a
    if call.dims[1] is None:
        return a @ b
    return (a.unsqueeze(1) @ b.unsqueeze(2)).reshape(call.size)
