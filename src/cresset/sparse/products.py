"""Products with sparse matrices. Those with dense ones go to native code by rows; that of two sparse ones is made of
their pairs.
"""

import math

import cresset

from ..ops.sparse import product, row_of_each, sampled_product
from .arithmetic import add, like
from .compressed import CompressedTensor, batch_items, batched, compressed
from .converting import rows_of, to_coo
from .coo import CooTensor, coo, unflattened
from .tensor import LAYOUT_NAMES, SparseTensor, dtype_word, rule


def check_matrices(name, a, b):
    if a.dim() != 2 or b.dim() != 2 or a.shape[1] != b.shape[0]:
        first, second = ("x".join(map(str, t.shape)) for t in (a, b))
        raise RuntimeError(
            f"{name}: mat1 and mat2 shapes cannot be multiplied ({first} and {second}); expected matrices with the "
            "same inner size"
        )


def one_dtype(name, a, b):
    if a.dtype != b.dtype:
        words = [dtype_word(t.dtype) for t in (a, b)]
        raise RuntimeError(f"{name}: mat1 dtype {words[0]} does not match mat2 dtype {words[1]}")


@rule("mm")
def mm(input, mat2):
    """The product of two matrices, one or both of them sparse."""
    check_matrices("mm", input, mat2)
    one_dtype("mm", input, mat2)
    if isinstance(input, SparseTensor) and isinstance(mat2, SparseTensor):
        return like(sparse_times_sparse(to_coo(input), to_coo(mat2)), input)
    if isinstance(input, SparseTensor):
        return product(*rows_of(input), mat2)
    return product(*rows_of(mat2.t()), input.t()).t()


def sparse_times_sparse(a, b):
    """Each value of a meets the values of the row of b that its column names; the products add up by their places."""
    begin, columns, right = rows_of(b)
    (rows, middle), left, device = a._indices().unbind(0), a._recorded, a.device
    begin = begin.long()
    counts = (begin[1:] - begin[:-1])[middle]
    pairs = cresset.arange(left.shape[0], device=device).repeat_interleave(counts)
    within = cresset.arange(pairs.numel(), device=device) - (counts.cumsum(0) - counts)[pairs]
    second = begin[:-1][middle][pairs] + within
    values = left[pairs] * right[second]
    places = rows[pairs] * b.shape[1] + columns.long()[second]
    size = (a.shape[0], b.shape[1])
    return coo(unflattened(places, size), values, size).coalesce()


def reduced_product(matrix, dense, reduce):
    """The product of a CSR matrix and a dense one with the terms of each element reduced otherwise than by their
    sum."""
    check_matrices("sparse.mm", matrix, dense)
    reduce = {"max": "amax", "min": "amin"}.get(reduce, reduce)
    if reduce not in ("sum", "mean", "amax", "amin"):
        raise RuntimeError(f"sparse.mm: reduce must be 'sum', 'mean', 'amax' or 'amin', got {reduce!r}")
    if (
        not isinstance(matrix, CompressedTensor)
        or matrix.layout != cresset.sparse_csr
        or isinstance(dense, SparseTensor)
    ):
        raise RuntimeError(
            f"sparse.mm: with reduce={reduce!r} expected a SparseCsr and a strided matrix, got {matrix.layout} and "
            f"{dense.layout}"
        )
    crow, col, values = matrix._parts
    terms = values.unsqueeze(1) * dense[col.long()]
    index = row_of_each(crow).unsqueeze(1).expand(terms.shape)
    return terms.new_zeros((matrix.shape[0], dense.shape[1])).scatter_reduce(
        0, index, terms, reduce, include_self=False
    )


@rule("mv")
def mv(input, vec):
    """A matrix times a vector."""
    if input.dim() != 2 or vec.dim() != 1:
        raise RuntimeError(
            f"mv: two tensor dim should be 2 and 1, but got {input.dim()} and {vec.dim()} of shapes "
            f"{list(input.shape)} and {list(vec.shape)}"
        )
    if input.shape[1] != vec.shape[0]:
        raise RuntimeError(
            "mv: expected self.size(-1) == vec.size(-1) of a matrix and a vector, got shapes "
            f"{list(input.shape)} and {list(vec.shape)}"
        )
    result = mm(input, vec.to_dense().unsqueeze(1))
    return result.squeeze(1)


@rule("dot", "vdot")
def dot(input, other):
    """The sum of the products of two vectors."""
    if input.dim() != 1 or other.shape != input.shape:
        raise RuntimeError(f"dot: expected two vectors of one size, got {list(input.shape)} and {list(other.shape)}")
    return (input * other).sum()


@rule("bmm")
def bmm(input, mat2):
    """A batch of products."""
    if input.dim() != 3 or mat2.dim() != 3 or input.shape[0] != mat2.shape[0]:
        raise RuntimeError(
            f"bmm: expected two batches of matrices of one length, got {list(input.shape)} and {list(mat2.shape)}"
        )
    results = [mm(a, b) for a, b in zip(matrices(input), matrices(mat2), strict=True)]
    return cresset.stack(results)


def matrices(tensor):
    """The matrices of a batch, one by one."""
    if isinstance(tensor, CompressedTensor):
        return batch_items(tensor)
    return list(tensor.unbind(0))


@rule("matmul")
def matmul(input, other):
    """`input @ other`, by the dimensions of both."""
    dims = (input.dim(), other.dim())
    if dims == (2, 2):
        return mm(input, other)
    if dims == (2, 1):
        return mv(input, other)
    if dims == (1, 2):
        return mm(input.unsqueeze(0), other).to_dense().squeeze(0)
    if dims == (1, 1):
        return dot(input, other)
    if dims == (3, 3):
        return bmm(input, other)
    if isinstance(input, CompressedTensor) and input.batch_dim and not isinstance(other, SparseTensor) and dims[1] >= 2:
        batch = cresset.broadcast_shapes(input.shape[:-2], other.shape[:-2])
        if tuple(batch) == tuple(input.shape[:-2]):
            right = other.expand(*batch, *other.shape[-2:]).reshape(math.prod(batch), *other.shape[-2:])
            return cresset.stack([mm(a, b) for a, b in zip(batch_items(input), right, strict=True)]).reshape(
                *batch, input.shape[-2], other.shape[-1]
            )
    if isinstance(input, SparseTensor) and dims[0] == 2 and not isinstance(other, SparseTensor):
        # one sparse matrix for all: the batch goes into the columns
        batch = other.shape[:-2]
        columns = other.reshape(-1, *other.shape[-2:]).permute(1, 0, 2).reshape(other.shape[-2], -1)
        return (
            mm(input, columns)
            .reshape(input.shape[0], -1, other.shape[-1])
            .permute(1, 0, 2)
            .reshape(*batch, input.shape[0], other.shape[-1])
        )
    if dims[1] == 2 and not isinstance(input, SparseTensor):
        return mm(input.reshape(-1, input.shape[-1]), other).reshape(*input.shape[:-1], other.shape[-1])
    raise RuntimeError(
        f"matmul: not implemented for sparse tensors of shapes {list(input.shape)} and {list(other.shape)}; call "
        "to_dense() first"
    )


@rule("addmm")
def addmm(input, mat1, mat2, *, beta=1, alpha=1):
    """beta * input + alpha * mat1 @ mat2."""
    result = mm(mat1, mat2)
    result = result if alpha == 1 else result * alpha
    if isinstance(input, SparseTensor) and not isinstance(result, SparseTensor):
        raise RuntimeError(
            "addmm: a sparse input and a dense product have no common layout; call to_dense() on the input"
        )
    if beta == 0:
        return result
    scaled = input if beta == 1 else input * beta
    return scaled.expand(result.shape) + result if not isinstance(scaled, SparseTensor) else add(scaled, result)


@rule("addmv")
def addmv(input, mat, vec, *, beta=1, alpha=1):
    """beta * input + alpha * mat @ vec."""
    return beta * input + alpha * mv(mat, vec)


@rule("linear")
def linear(input, weight, bias=None):
    """input @ weight.T + bias."""
    result = (
        matmul(input, weight.t())
        if isinstance(input, SparseTensor)
        else mm(weight, input.reshape(-1, input.shape[-1]).t()).t()
    )
    result = result.reshape(*input.shape[:-1], weight.shape[0])
    return result if bias is None else result + bias


# ---- the names of torch


def smm(input, mat):
    """A sparse times a dense matrix, as a sparse one."""
    return sspaddmm(coo_zeros((input.shape[0], mat.shape[1]), input), input, mat)


def coo_zeros(size, like_tensor):
    from .coo import empty_coo

    return empty_coo(size, 2, like_tensor.dtype, like_tensor.device)


def sspaddmm(input, mat1, mat2, *, beta=1, alpha=1):
    """beta * input + alpha * mat1 @ mat2 with a sparse input, a sparse and a dense matrix; the result is sparse."""
    for name, tensor, sparse in (("self", input, True), ("mat1", mat1, True), ("mat2", mat2, False)):
        if isinstance(tensor, CooTensor if sparse else SparseTensor) is not sparse:
            raise RuntimeError(
                f"sspaddmm: expected '{name}' to have {'sparse' if sparse else 'strided'} layout, got '{name}' with "
                f"layout {LAYOUT_NAMES[str(tensor.layout)]}"
            )
    check_matrices("sspaddmm", mat1, mat2)
    dense = mm(mat1, mat2) * alpha
    used = mat1._indices()[0].unique()
    columns = dense.shape[1]
    rows = used.repeat_interleave(columns)
    all_columns = cresset.arange(columns, device=dense.device).repeat(used.numel())
    result = coo(cresset.stack([rows, all_columns]), dense[used].reshape(-1), dense.shape)
    return add(input * beta, result) if input._nnz() else result


def hspmm(mat1, mat2):
    """A sparse times a dense matrix, as a sparse one whose rows are dense."""
    check_matrices("hspmm", mat1, mat2)
    used = mat1._indices()[0].unique()
    return coo(used.unsqueeze(0), mm(mat1, mat2)[used], (mat1.shape[0], mat2.shape[1]))


def sampled_addmm(input, mat1, mat2, *, beta=1.0, alpha=1.0):
    """beta * input + alpha * (mat1 @ mat2) at the places of a CSR tensor alone."""
    if not isinstance(input, CompressedTensor) or input.layout != cresset.sparse_csr:
        raise RuntimeError(f"sampled_addmm: Expected self to be a SparseCsr tensor, but got {input.layout}")
    if isinstance(mat1, SparseTensor) or isinstance(mat2, SparseTensor):
        raise RuntimeError("sampled_addmm: Expected mat1 and mat2 to be strided tensors")
    if input.dim() == 2 < mat1.dim():  # one pattern for all
        batch = mat1.shape[:-2]
        parts = (part.expand(*batch, *part.shape) for part in input._parts)
        input = compressed(*parts, (*batch, *input.shape), input.layout)
    if mat1.dim() != input.dim() or mat2.dim() != input.dim() or mat1.shape[-1] != mat2.shape[-2]:
        raise RuntimeError(
            f"sampled_addmm: mat1 and mat2 shapes cannot be multiplied ({list(mat1.shape)} and {list(mat2.shape)})"
        )
    if (*mat1.shape[:-1], mat2.shape[-1]) != tuple(input.shape):
        raise RuntimeError(
            f"sampled_addmm: self has shape {list(input.shape)}, mat1 @ mat2 {[*mat1.shape[:-1], mat2.shape[-1]]}"
        )
    if input.batch_dim:
        count = math.prod(input.shape[:-2])
        left, right = mat1.reshape(count, *mat1.shape[-2:]), mat2.reshape(count, *mat2.shape[-2:])
        items = [
            sampled_addmm(s, a, b, beta=beta, alpha=alpha)
            for s, a, b in zip(batch_items(input), left, right, strict=True)
        ]
        return batched(items, input.shape[:-2])
    crow, col, values = input._parts
    found = sampled_product(crow, col, mat1, mat2.mT)
    found = found if alpha == 1 else found * alpha
    return input._with(found if beta == 0 else values * beta + found)
