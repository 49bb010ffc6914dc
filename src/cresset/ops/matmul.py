"""Products of matrices and vectors: what they are and their derivatives.

With C = A B, the gradients are dA = dC Bᴴ and dB = Aᴴ dC, where ᴴ transposes and conjugates.
"""

import cresset

from .registry import batch, function, kept_for, onnx, operator, placement


def _adjoint(matrix):
    """The transpose of a matrix (or of a batch of them), conjugated when it is complex."""
    return matrix.mH if matrix.is_complex() else matrix.mT


def _conjugate(tensor):
    return tensor.conj() if tensor.is_complex() else tensor


def _scaled(tensor, factor):
    """tensor * conj(factor), without the product when it changes nothing."""
    if isinstance(factor, complex):
        factor = factor.conjugate()
    return tensor if factor == 1 else tensor * factor


matmul = operator(
    "matmul",
    """The product of two matrices, of two vectors, or of a matrix and a vector; batches of matrices broadcast.

    A vector on the left counts as a row, one on the right as a column; the dimension it lacks is not in the result.
    The operator `@`.

    >>> cresset.matmul(cresset.tensor([[1.0, 2.0], [3.0, 4.0]]), cresset.tensor([10.0, 1.0]))
    tensor([12., 34.])
    """,
    autocast="lower",
)


@matmul.derivative
@kept_for(input="other", other="input")
def _(grad, input, other):
    if input.ndim == 2 and other.ndim == 2:
        yield lambda: grad @ _adjoint(other)
        yield lambda: _adjoint(input) @ grad
    elif input.ndim == 1 and other.ndim == 1:
        yield lambda: grad * _conjugate(other)
        yield lambda: grad * _conjugate(input)
    elif input.ndim == 1:
        # A row: (n) times (..., n, p) is (..., p).
        yield lambda: _row_gradient(grad, other)
        yield lambda: _conjugate(input).unsqueeze(-1) * grad.unsqueeze(-2)
    elif other.ndim == 1:
        # A column: (..., m, n) times (n) is (..., m).
        yield lambda: grad.unsqueeze(-1) * _conjugate(other)
        yield lambda: _adjoint(input.flatten(0, -2)) @ grad.reshape(-1)
    elif other.ndim == 2:
        # One matrix for the whole batch: rows of all of them are rows of one.
        yield lambda: grad @ _adjoint(other)
        yield lambda: _adjoint(input.flatten(0, -2)) @ grad.flatten(0, -2)
    else:
        yield lambda: grad @ _adjoint(other)
        yield lambda: _adjoint(input) @ grad


def _row_gradient(grad, other):
    """The gradient of the vector in vector @ batch of matrices: a sum over the batch."""
    if other.ndim == 2:
        return _conjugate(other) @ grad
    rows = _conjugate(other).movedim(-2, 0).reshape(other.shape[-2], -1)
    return rows @ grad.reshape(-1)


mm = operator(
    "mm",
    """The product of two matrices. Does not broadcast: see `matmul`.

    >>> cresset.mm(cresset.tensor([[1.0, 2.0]]), cresset.tensor([[3.0], [4.0]]))
    tensor([[11.]])
    """,
    autocast="lower",
)


@mm.derivative
@kept_for(input="mat2", mat2="input")
def _(grad, input, mat2):
    yield lambda: grad @ _adjoint(mat2)
    yield lambda: _adjoint(input) @ grad


bmm = operator(
    "bmm",
    """The products of two batches of matrices, (b, n, k) and (b, k, m). Does not broadcast: see `matmul`.

    >>> cresset.bmm(cresset.ones(2, 1, 3), cresset.ones(2, 3, 1)).flatten()
    tensor([3., 3.])
    """,
    autocast="lower",
)


@bmm.derivative
@kept_for(input="mat2", mat2="input")
def _(grad, input, mat2):
    yield lambda: grad.bmm(_adjoint(mat2))
    yield lambda: _adjoint(input).bmm(grad)


mv = operator(
    "mv",
    """The product of a matrix and a vector.

    >>> cresset.mv(cresset.tensor([[1.0, 2.0], [3.0, 4.0]]), cresset.tensor([10.0, 1.0]))
    tensor([12., 34.])
    """,
    autocast={"cuda": "lower"},
)


@mv.derivative
@kept_for(input="vec", vec="input")
def _(grad, input, vec):
    yield lambda: grad.unsqueeze(1) * _conjugate(vec)
    yield lambda: _adjoint(input).mv(grad)


dot = operator(
    "dot",
    """The sum of the products of two vectors' elements. Nothing is conjugated: see `vdot`.

    >>> cresset.dot(cresset.tensor([2, 3]), cresset.tensor([2, 1]))
    tensor(7)
    """,
    autocast={"cuda": "promote"},
)


@dot.derivative
@kept_for(input="tensor", tensor="input")
def _(grad, input, tensor):
    yield lambda: grad * _conjugate(tensor)
    yield lambda: grad * _conjugate(input)


addmm = operator(
    "addmm",
    """beta * input + alpha * (mat1 @ mat2). With beta=0, input is not read, not even its nans.

    >>> cresset.addmm(cresset.tensor([1.0, 2.0]), cresset.ones(1, 3), cresset.ones(3, 2))
    tensor([[4., 5.]])
    """,
    autocast="lower",
)


@addmm.derivative
@kept_for(mat1="mat2", mat2="mat1")
def _(grad, mat1, mat2, beta, alpha):
    yield lambda: _scaled(grad, beta)
    yield lambda: _scaled(grad @ _adjoint(mat2), alpha)
    yield lambda: _scaled(_adjoint(mat1) @ grad, alpha)


baddbmm = operator(
    "baddbmm",
    """beta * input + alpha * bmm(batch1, batch2). With beta=0, input is not read, not even its nans.

    >>> cresset.baddbmm(cresset.tensor(0.5), cresset.ones(2, 1, 3), cresset.ones(2, 3, 1)).flatten()
    tensor([3.5000, 3.5000])
    """,
    autocast="lower",
)


@baddbmm.derivative
@kept_for(batch1="batch2", batch2="batch1")
def _(grad, batch1, batch2, beta, alpha):
    yield lambda: _scaled(grad, beta)
    yield lambda: _scaled(grad.bmm(_adjoint(batch2)), alpha)
    yield lambda: _scaled(_adjoint(batch1).bmm(grad), alpha)


linear = operator(
    "linear",
    """input @ weight.T + bias, over the last dimension of input.

    Args:
        weight: (out_features, in_features), or (in_features) for a single output that has no dimension of its own.
        bias: (out_features), or None.

    >>> cresset.nn.functional.linear(cresset.tensor([1.0, 2.0]), cresset.tensor([[10.0, 1.0]]), cresset.tensor([0.5]))
    tensor([12.5000])
    """,
    autocast="lower",
)


@linear.derivative
@kept_for(input="weight", weight="input")
def _(grad, input, weight):
    def rows(tensor):
        return tensor if tensor.ndim == 2 else tensor.flatten(0, -2) if tensor.ndim > 2 else tensor.unsqueeze(0)

    if input.ndim == weight.ndim == 2 and not weight.is_complex():  # the common case, without a look at every shape
        yield lambda: grad @ weight
        yield lambda: grad.t() @ input
        yield lambda: grad.sum(0)
        return
    if weight.ndim == 1:
        yield lambda: grad.unsqueeze(-1) * _conjugate(weight)
        yield lambda: _adjoint(rows(input)).mv(grad.reshape(-1))
        return
    yield lambda: grad @ _conjugate(weight)
    yield lambda: rows(grad).mT @ _conjugate(rows(input))
    yield lambda: rows(grad).sum(0)


operator(
    "_int_mm",
    """The product of two matrices of int8, summed exactly in int32; the first may be of uint8.

    >>> cresset._int_mm(cresset.full((1, 3), 100, dtype=cresset.int8), cresset.full((3, 1), -100, dtype=cresset.int8))
    tensor([[-30000]], dtype=torch.int32)
    """,
)


operator(
    "_scaled_mm",
    """The product of two matrices of 8-bit floats: `input @ mat2 * scale_a * scale_b + bias`, summed in float32.

    A scale has one element, or there is one for each row of `input` and each column of `mat2`. On CUDA the product
    runs on the tensor cores of cards that have it; sizes and layouts that they do not take are computed in float32.

    >>> x = cresset.tensor([[1.0, 2.0]]).to(cresset.float8_e4m3fn)
    >>> half = cresset.tensor(0.5)
    >>> cresset._scaled_mm(x, x.t(), half, half, out_dtype=cresset.float32)
    tensor([[1.2500]])
    """,
)


@function(out=True)
def _scaled_mm_v2(
    input,
    mat2,
    scale_a,
    recipe_a,
    swizzle_a,
    scale_b,
    recipe_b,
    swizzle_b,
    bias,
    out_dtype,
    contraction_dim=(),
    use_fast_accum=False,
):
    """`_scaled_mm` with lists of scales and of how each is laid out: 0 for one of the whole matrix, 1 for one of each
    row.

    >>> x = cresset.tensor([[1.0, 2.0]]).to(cresset.float8_e4m3fn)
    >>> half = cresset.tensor(0.5)
    >>> cresset._scaled_mm_v2(x, x.t(), [half], [0], [0], [half], [0], [0], None, cresset.float32)
    tensor([[1.2500]])
    """
    recipes, scales = [*recipe_a, *recipe_b], [*scale_a, *scale_b]
    counts = {0: [1, 1], 1: [input.size(0), mat2.size(-1)]}
    if len(set(recipes)) != 1 or [scale.numel() for scale in scales] != counts.get(recipes[0]):
        raise ValueError(
            "_scaled_mm_v2: Invalid scaling configuration. Both recipes must be 0 (one scale for the matrix) or both "
            "1 (one for "
            f"each row and column), with one tensor each; got recipes {recipes} and scales of "
            f"{[list(s.shape) for s in scales]}"
        )
    if any(swizzle_a) or any(swizzle_b):
        raise ValueError(f"_scaled_mm_v2: does not support swizzle; got {list(swizzle_a)} and {list(swizzle_b)}")
    if contraction_dim and [dim % 2 for dim in contraction_dim] != [1, 0]:
        raise ValueError(
            "_scaled_mm_v2: contraction_dim must have exactly 2 elements, the columns of input and the rows of mat2: "
            "(1, 0); "
            f"got {tuple(contraction_dim)}"
        )
    return cresset._scaled_mm(input, mat2, *scales, bias, None, out_dtype, use_fast_accum)


# --- inside vmap ---


@batch("matmul", "mm", "bmm", "mv")
def _(call):
    """The batch joins the leading dimensions. A factor without one stays as it is, so that it is one large product
    where that can be.
    """
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
    ranks = {"mm": (2, 2), "bmm": (3, 3), "mv": (2, 1)}.get(call.name)
    if ranks is not None and (a.dim(), b.dim()) != ranks:
        raise RuntimeError(
            f"{call.name}: Shape mismatch: expected {ranks[0]}D and {ranks[1]}D arguments, but a sample has "
            f"{tuple(a.shape)} and {tuple(b.shape)}"
        )
    if not a.dim() or not b.dim():
        raise RuntimeError(
            f"{call.name}: both arguments need to be at least 1D, but they are {a.dim()}D and {b.dim()}D"
        )
    if a.shape[-1] != b.shape[-1 if b.dim() == 1 else -2]:
        raise RuntimeError(
            f"{call.name}: mat1 and mat2 shapes cannot be multiplied: a sample has {tuple(a.shape)} and "
            f"{tuple(b.shape)}"
        )


@batch("addmm", "baddbmm")
def _add_product(call):
    def added(input, a, b, beta, alpha):
        product = a @ b
        product = product if alpha == 1 else product * alpha
        return product if beta == 0 else (input if beta == 1 else input * beta) + product

    return call.made_of(added)


@batch("addmm_", "baddbmm_")
def _(call):
    call.front().copy_(_add_product(call))


@batch("linear")
def _(call):
    if call.dims[1] is None and call.dims[2] is None:
        return call.run(call.front(), *call.args[1:])

    def applied(input, weight, bias):
        product = input @ (weight.mT if weight.dim() > 1 else weight)
        return product if bias is None else product + bias

    return call.made_of(applied)


@batch("dot")
def _(call):
    a, b = call.front(0), call.front(1)
    if call.dims[0] is None:
        return b @ a
    if call.dims[1] is None:
        return a @ b
    return (a.unsqueeze(1) @ b.unsqueeze(2)).reshape(call.size)


# --- as ONNX ---


@onnx("linear")
def _(g, input, weight, bias):
    dtype = g.result.dtype
    x, w = g.cast(input, input.dtype, dtype), g.cast(weight, weight.dtype, dtype)
    b = None if bias is None else g.cast(bias, bias.dtype, dtype)
    if len(input.shape) == 2 and len(weight.shape) == 2 and dtype.is_floating_point:
        return g.op("Gemm", x, w, b, transB=1)
    product = g.op("MatMul", x, g.transpose(w, list(range(len(weight.shape)))[::-1]))
    return product if b is None else g.op("Add", product, b)


@onnx("matmul", "mm", "bmm", "mv", "dot")
def _(g, input, other=None, mat2=None, vec=None, tensor=None):
    right = next(t for t in (other, mat2, vec, tensor) if t is not None)
    dtype = g.result.dtype
    return g.op("MatMul", g.cast(input, input.dtype, dtype), g.cast(right, right.dtype, dtype))


@onnx("addmm")
def _(g, input, mat1, mat2, beta, alpha):
    dtype = g.result.dtype
    if not dtype.is_floating_point or any(g.is_size(v) for v in (beta, alpha)):
        return _added(g, input, mat1, mat2, beta, alpha)
    operands = [g.cast(t, t.dtype, dtype) for t in (mat1, mat2, input)]
    return g.op("Gemm", *operands, alpha=float(alpha), beta=float(beta))


@onnx("baddbmm")
def _(g, input, batch1, batch2, beta, alpha):
    return _added(g, input, batch1, batch2, beta, alpha)


def _added(g, input, left, right, beta, alpha):
    dtype = g.result.dtype
    product = g.op("MatMul", g.cast(left, left.dtype, dtype), g.cast(right, right.dtype, dtype))
    if alpha != 1:
        product = g.op("Mul", product, g.number(alpha, dtype))
    if beta == 0:
        return product
    x = g.cast(input, input.dtype, dtype)
    return g.op("Add", product, x if beta == 1 else g.op("Mul", x, g.number(beta, dtype)))


# How they lie on several processes: words of distributed/tensor/words.py.
placement("matmul", "mm", "bmm", "mv", "dot")("product")
placement("addmm", "baddbmm")("added_product")
placement("linear")("linear")
