"""Sparse tensors: PyTorch's torch.sparse. The layouts, one file each, and the rules by which operators take them.

A sparse tensor is an interpreted one: see Note [Interpreted tensors] in cresset/tensors/interpreted.py.
"""

import cresset

from . import arithmetic, creating, products, reducing, shaping  # noqa: F401  they enter their rules
from .coo import sparse_coo_tensor
from .invariants import check_sparse_tensor_invariants
from .products import sampled_addmm as _sampled_addmm
from .reducing import softmax as _softmax
from .reducing import spdiags
from .semi_structured import (
    SparseSemiStructuredTensor,
    SparseSemiStructuredTensorCUSPARSELT,
    SparseSemiStructuredTensorCUTLASS,
    to_sparse_semi_structured,
)
from .tensor import SparseTensor

__all__ = [
    "SparseSemiStructuredTensor", "SparseSemiStructuredTensorCUSPARSELT", "SparseSemiStructuredTensorCUTLASS", "addmm",
    "as_sparse_gradcheck", "check_sparse_tensor_invariants", "log_softmax", "mm", "sampled_addmm", "softmax", "solve",
    "spdiags", "spsolve", "sum", "to_sparse_semi_structured",
]  # fmt: skip


def _need_sparse(name, *tensors):
    if not any(isinstance(t, SparseTensor) for t in tensors):
        raise RuntimeError(f"sparse.{name}: expected a sparse tensor, got {', '.join(str(t.layout) for t in tensors)}")


def mm(mat1, mat2, reduce="sum"):
    """The product of a sparse matrix with a dense or sparse one.

    Args:
        reduce: how the terms of an element are combined: "sum", or of a CSR matrix "mean", "amax" or "amin" of the
            terms it has.

    >>> a = cresset.tensor([[1.0, 0.0], [0.0, 2.0]]).to_sparse()
    >>> cresset.sparse.mm(a, cresset.ones(2, 3))
    tensor([[1., 1., 1.],
            [2., 2., 2.]])
    """
    return cresset.mm(mat1, mat2) if reduce == "sum" else products.reduced_product(mat1, mat2, reduce)


def addmm(input, mat1, mat2, *, beta=1.0, alpha=1.0):
    """beta * input + alpha * mat1 @ mat2 with a sparse mat1.

    >>> a = cresset.tensor([[1.0, 0.0], [0.0, 2.0]]).to_sparse()
    >>> cresset.sparse.addmm(cresset.ones(2, 2), a, cresset.ones(2, 2))
    tensor([[2., 2.],
            [3., 3.]])
    """
    return cresset.addmm(input, mat1, mat2, beta=beta, alpha=alpha)


def sum(input, dim=None, dtype=None):
    """The sum of the elements, or along `dim`: sparse as long as a sparse dimension remains.

    >>> cresset.sparse.sum(cresset.tensor([[1.0, 0.0], [2.0, 2.0]]).to_sparse(), 0).to_dense()
    tensor([3., 2.])
    """
    _need_sparse("sum", input)
    return input.sum(dtype=dtype) if dim is None else input.sum(dim, dtype=dtype)


def softmax(input, dim, *, dtype=None):
    """Softmax along `dim` over the values that are kept; the others count as minus infinity.

    >>> cresset.sparse.softmax(cresset.tensor([[1.0, 0.0], [2.0, 2.0]]).to_sparse(), 1).to_dense()
    tensor([[1.0000, 0.0000],
            [0.5000, 0.5000]])
    """
    return _softmax(input, dim, dtype)


def log_softmax(input, dim, *, dtype=None):
    """The logarithm of `softmax`.

    >>> cresset.sparse.log_softmax(cresset.tensor([[1.0, 0.0]]).to_sparse(), 1)._values()
    tensor([0.])
    """
    return _softmax(input, dim, dtype, log=True)


def sampled_addmm(input, mat1, mat2, *, beta=1.0, alpha=1.0, out=None):
    """beta * input + alpha * (mat1 @ mat2) at the places of the CSR tensor `input` alone.

    >>> places = cresset.eye(2).to_sparse_csr()
    >>> cresset.sparse.sampled_addmm(places, cresset.ones(2, 3), cresset.ones(3, 2), beta=0.0).values()
    tensor([3., 3.])
    """
    result = _sampled_addmm(input, mat1, mat2, beta=beta, alpha=alpha)
    if out is None:
        return result
    out._become(result)
    return out


def spsolve(A, b, *, left=True):
    """Refused, as PyTorch does without its solver for CUDA: solve densely.

    >>> cresset.linalg.solve(cresset.eye(2).to_sparse_csr().to_dense(), cresset.ones(2))
    tensor([1., 1.])
    """
    raise RuntimeError("sparse.spsolve: there is no sparse solver here; use linalg.solve on A.to_dense()")


solve = spsolve


def as_sparse_gradcheck(gradcheck):
    """A gradcheck that takes functions of sparse tensors: they are checked as functions of the values.

    >>> check = cresset.sparse.as_sparse_gradcheck(cresset.autograd.gradcheck)
    >>> x = cresset.eye(2, dtype=cresset.float64).to_sparse().requires_grad_()
    >>> check(lambda s: (s * s).to_dense(), (x,))
    True
    """

    def check(function, inputs, **kwargs):
        inputs = inputs if isinstance(inputs, (tuple, list)) else (inputs,)
        kwargs.pop("masked", None)

        def of_values(*parts):
            return function(
                *(
                    given._with(part) if isinstance(given, SparseTensor) else part
                    for given, part in zip(inputs, parts, strict=True)
                )
            )

        def dense(*parts):
            result = of_values(*parts)
            results = result if isinstance(result, (tuple, list)) else (result,)
            return tuple(r.to_dense() if isinstance(r, SparseTensor) else r for r in results)

        parts = tuple(
            t._recorded.detach().requires_grad_(t.requires_grad) if isinstance(t, SparseTensor) else t for t in inputs
        )
        return gradcheck(dense, parts, **kwargs)

    return check


def _legacy(word, dtype):
    """torch.sparse.FloatTensor and the like: the old names of sparse_coo_tensor with a dtype."""

    class Named:
        def __new__(cls, *args, device=None):
            if not args or isinstance(args[0], int):
                return sparse_coo_tensor(args or (0,), dtype=dtype, device=device)
            return sparse_coo_tensor(*args, dtype=dtype, device=device)

    Named.__name__ = Named.__qualname__ = word + "Tensor"
    Named.dtype, Named.layout, Named.is_sparse = dtype, cresset.sparse_coo, True
    return Named


for _word, _dtype in (("Float", "float32"), ("Double", "float64"), ("Half", "float16"), ("BFloat16", "bfloat16"),
    ("Long", "int64"),
                      ("Int", "int32"), ("Short", "int16"), ("Char", "int8"), ("Byte", "uint8")):  # fmt: skip
    globals()[_word + "Tensor"] = _legacy(_word, getattr(cresset, _dtype))
