"""Products of vectors and matrices, convolutions."""

import cresset

from ..batching import decomposed, rule


@rule("matmul", "mm", "bmm", "mv")
def matmul(call):
    """The batch joins the leading dimensions. A factor without one stays as it is, so that it is one large product where that can be."""
    a, b = call.front(0), call.front(1)
    a_rank, b_rank = call.rank(0), call.rank(1)
    _check_sizes(call)
    if call.dims[1] is None:
        if a_rank == 1 and b_rank > 2:
            return (a.reshape(call.size, *[1] * (b_rank - 1), -1) @ b).squeeze(-2)
        return (call.padded(0, b_rank) if b_rank > 2 else a) @ b
    if call.dims[0] is None:
        if b_rank == 1:
            if a_rank <= 2:
                return b @ (a if a_rank == 1 else a.mT)
            return (a @ b.reshape(call.size, *[1] * (a_rank - 2), -1, 1)).squeeze(-1)
        return (a @ (call.padded(1, a_rank) if a_rank > 2 else b)) if a_rank > 1 else (a.unsqueeze(0) @ b).squeeze(-2)
    a = a.unsqueeze(-2) if a_rank == 1 else a
    b = b.unsqueeze(-1) if b_rank == 1 else b
    rank = max(a.dim(), b.dim())
    a, b = (x.reshape(x.shape[0], *[1] * (rank - x.dim()), *x.shape[1:]) for x in (a, b))
    product = a @ b
    if b_rank == 1:
        product = product.squeeze(-1)
    return product.squeeze(-2 if b_rank > 1 else -1) if a_rank == 1 else product


def _check_sizes(call):
    """Names the sizes of a sample, before those of the batch are named."""
    a, b = call.given[:2]
    if not a.dim() or not b.dim():
        raise RuntimeError(f"{call.name}: both arguments need to be at least 1D, but they are {a.dim()}D and {b.dim()}D")
    if a.shape[-1] != b.shape[-1 if b.dim() == 1 else -2]:
        raise RuntimeError(f"{call.name}: mat1 and mat2 shapes cannot be multiplied: a sample has {tuple(a.shape)} and {tuple(b.shape)}")


@rule("addmm", "baddbmm")
def add_product(call):
    def added(input, a, b, beta, alpha):
        product = a @ b
        product = product if alpha == 1 else product * alpha
        return product if beta == 0 else (input if beta == 1 else input * beta) + product

    return decomposed(added)(call)


@rule("addmm_", "baddbmm_")
def add_product_in_place(call):
    call.front().copy_(add_product(call))


@rule("linear")
def linear(call):
    if call.dims[1] is None and call.dims[2] is None:
        return call.run(call.front(), *call.args[1:])

    def applied(input, weight, bias):
        product = input @ (weight.mT if weight.dim() > 1 else weight)
        return product if bias is None else product + bias

    return decomposed(applied)(call)


# ---- convolutions: the batch is a part of the images' batch, or of the channels, in groups


def _in_images(value):
    """(B, N, C, ...) as (B N, C, ...)."""
    return value.flatten(0, 1)


def _in_channels(value, at=1):
    """(B, N, C, ...) as (N, B C, ...); with at=0, (B, O, ...) as (B O, ...)."""
    return value.flatten(0, 1) if at == 0 else value.movedim(0, 1).flatten(1, 2)


def _out_of_channels(value, size):
    """(N, B C, ...) as (B, N, C, ...)."""
    return value.unflatten(1, (size, -1)).movedim(1, 0)


@rule("convolution")
def convolution(call):
    if call.rank(0) < call.rank(1):  # a single image

        def of_one(input, *others):
            return cresset.convolution(input.unsqueeze(0), *others).squeeze(0)

        return decomposed(of_one)(call)
    input, weight, bias, *rest = call.args
    transposed, groups = rest[3], rest[5]
    if call.dims[0] is None and call.dims[1] is None:
        result = call.run(input, weight, None, *rest)
    elif call.dims[1] is None:
        result = call.run(_in_images(call.front(0)), weight, bias if call.dims[2] is None else None, *rest).unflatten(0, (call.size, -1))
    else:
        if call.dims[0] is None and groups == 1 and not transposed:
            result = call.run(input, _in_channels(call.front(1), 0), None, *rest)
        else:
            result = call.run(_in_channels(call.full(0)), _in_channels(call.front(1), 0), None, *rest[:5], groups * call.size)
        result = _out_of_channels(result, call.size)
    if bias is None or (call.dims[1] is None and call.dims[2] is None):
        return result
    spatial = [1] * (call.rank(1) - 2)
    return result + call.front(2).reshape((-1, *spatial) if call.dims[2] is None else (call.size, 1, -1, *spatial))


@rule("_convolution_input_gradient")
def input_gradient(call):
    grad, weight, (images, channels, *spatial), *rest, groups = call.args
    if call.dims[1] is None:
        return call.run(_in_images(call.front(0)), weight, (images * call.size, channels, *spatial), *rest, groups).unflatten(0, (call.size, -1))
    size = (images, channels * call.size, *spatial)
    result = call.run(_in_channels(call.full(0)), _in_channels(call.front(1), 0), size, *rest, groups * call.size)
    return _out_of_channels(result, call.size)


@rule("_convolution_weight_gradient")
def weight_gradient(call):
    _, _, (out, *others), *rest, groups = call.args
    result = call.run(_in_channels(call.full(0)), _in_channels(call.full(1)), (out * call.size, *others), *rest, groups * call.size)
    return result.unflatten(0, (call.size, -1))



@rule("_attention", "_attention_backward")
def attention(call):
    """Leading dimensions are free; a mask broadcasts."""
    mask = call.place("attn_mask")
    args = list(call.args)
    for i in range(mask):
        args[i] = call.full(i)
    if args[mask] is not None:
        args[mask] = call.padded(mask, call.rank(call.place("query")))
    return call.run(*args)


@rule("_convolution_bias_gradient")
def bias_gradient(call):
    """The sum over all but the channels, which are those of all samples."""
    return call.run(_in_channels(call.front())).unflatten(0, (call.size, -1))
