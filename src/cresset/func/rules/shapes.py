"""Views and rearrangements: the same with the batch as a further first dimension."""

import math

from ..batching import expanded, rule, run, wrap_dim

# Operators with the dimensions of one tensor among their parameters.
ONE_DIM = ("cumsum", "cumprod", "cumsum_", "cumprod_", "cummax", "cummin", "logcumsumexp", "softmax", "log_softmax", "sort", "topk", "kthvalue", "mode")
NARROWING = ("split", "split.sizes", "split_with_sizes", "chunk", "unsafe_split", "unsafe_split_with_sizes", "unsafe_chunk", "narrow", "select", "slice", "unbind", "unfold")


def with_number(call, function):
    """Run `function` on the batch, where a sample that is a single number counts as a vector of one."""
    value = call.front()
    if call.rank():
        return function(value)
    return _without_last(function(value.unsqueeze(1)))


def _without_last(result):
    if isinstance(result, (tuple, list)):
        return [_without_last(part) for part in result]
    return result.squeeze(1) if result.dim() == 2 else result


def _along(call):
    place = call.place("dim") or call.place("dimension")
    dim = wrap_dim(call.args[place], call.rank())
    return with_number(call, lambda value: call.run(value, *call.args[1:place], dim, *call.args[place + 1 :]))


rule(*ONE_DIM)(_along)


@rule(*NARROWING)
def narrow(call):
    if not call.rank() and call.name == "unfold":
        return call.front().unsqueeze(1).unfold(wrap_dim(call.args[1], 0), *call.args[2:]).select(1, 0)
    if not call.rank():
        _refuse_number(call)
    return _along(call)


def _refuse_number(call):
    raise (RuntimeError if call.name in ("unbind",) else IndexError)(f"{call.name}: Dimension specified for a tensor that has no dimensions")


@rule("diagonal")
def diagonal(call):
    offset, *dims = call.args[1:]
    return call.front().diagonal(offset, *(wrap_dim(dim, call.rank()) for dim in dims))


@rule("transpose")
def transpose(call):
    if not call.rank():
        for dim in call.args[1:]:
            wrap_dim(dim, 0)
        return run("alias", [call.front()])
    return call.front().transpose(*(wrap_dim(dim, call.rank()) for dim in call.args[1:]))


@rule("t")
def t(call):
    if call.rank() > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {call.rank()}D")
    return call.front().transpose(1, 2) if call.rank() == 2 else run("alias", [call.front()])


@rule("permute")
def permute(call):
    rank, dims = call.rank(), call.args[1]
    if len(dims) != rank:
        raise RuntimeError(f"permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired ordering of dimensions: {rank} and {len(dims)}")
    return call.front().permute(0, *(wrap_dim(dim, rank) for dim in dims))


@rule("unsqueeze")
def unsqueeze(call):
    return call.front().unsqueeze(wrap_dim(call.args[1], call.rank() + 1))


@rule("squeeze", "squeeze.dim", "squeeze.dims")
def squeeze(call):
    rank, shape = call.rank(), call.given[0].shape
    if call.name == "squeeze":
        dims = range(rank)
    else:
        dims = call.args[1] if call.name == "squeeze.dims" else [call.args[1]]
        dims = [wrap_dim(dim, rank) - 1 for dim in dims]
    return call.front().squeeze(tuple(dim + 1 for dim in dims if rank and shape[dim] == 1))


@rule("reshape", "view")
def reshape(call):
    shape, numel = list(call.args[1]), call.given[0].numel()
    if -1 in shape:
        known = math.prod(size for size in shape if size != -1)
        if known and numel % known == 0 and shape.count(-1) == 1:
            shape[shape.index(-1)] = numel // known
    if math.prod(shape) != numel or any(size < 0 for size in shape):
        raise RuntimeError(f"shape '{list(call.args[1])}' is invalid for input of size {numel}")
    return call.run(call.front(), (call.size, *shape))


@rule("expand")
def expand(call):
    size = call.args[1]
    if len(size) < call.rank():
        raise RuntimeError(f"expand: the number of sizes provided ({len(size)}) must be greater or equal to the number of dimensions in the tensor ({call.rank()})")
    return call.padded(0, len(size)).expand(call.size, *size)


@rule("repeat")
def repeat(call):
    repeats = call.args[1]
    if len(repeats) < call.rank():
        raise RuntimeError("Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor")
    return call.padded(0, len(repeats)).repeat(1, *repeats)


@rule("as_strided")
def as_strided(call):
    value, (size, stride, offset) = call.front(), call.args[1:]
    offset = value.storage_offset() if offset is None else offset
    return value.as_strided((call.size, *size), (value.stride(0), *stride), offset)


@rule("flip")
def flip(call):
    return with_number(call, lambda value: value.flip([wrap_dim(dim, call.rank()) for dim in call.args[1]]))


@rule("roll")
def roll(call):
    shifts, dims = call.args[1:]
    if not dims:
        value = call.front()
        return value.reshape(call.size, -1).roll(shifts, 1).view(value.shape)
    return with_number(call, lambda value: value.roll(shifts, [wrap_dim(dim, call.rank()) for dim in dims]))


@rule("cat", "stack")
def join(call):
    """Those without a batch are expanded, unless they are empty vectors, which cat skips."""
    values = [
        expanded(value, dim, call.size)
        for given, value, dim in zip(call.given[0], call.args[0], call.dims[0], strict=True)
        if not (call.name == "cat" and given.dim() == 1 and given.numel() == 0 and any(other.dim() > 1 for other in call.given[0]))
    ]
    rank = values[0].dim() - 1
    if call.name == "cat" and not rank:
        raise RuntimeError("zero-dimensional tensor (at position 0) cannot be concatenated")
    return call.run(values, wrap_dim(call.args[1], rank + (call.name == "stack")))


@rule("fft_complex", "fft_from_real", "fft_to_real")
def fourier(call):
    return call.run(call.front(), [wrap_dim(dim, call.rank()) for dim in call.args[1]], *call.args[2:])


@rule("_softmax_backward_data", "_log_softmax_backward_data")
def softmax_backward(call):
    grad, output = call.full(0), call.full(1)
    if call.rank():
        return call.run(grad, output, wrap_dim(call.args[2], call.rank()), call.args[3])
    return call.run(grad.unsqueeze(1), output.unsqueeze(1), 1, call.args[3]).squeeze(1)

