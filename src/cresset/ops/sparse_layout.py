"""Between dense tensors and those of other layouts: sparse_coo_tensor, to_sparse, to_dense and their variants.

The layouts themselves are in cresset/sparse, which loads at the first call.
"""

import cresset

from .registry import function

_LAYOUT_WORDS = {"torch.strided": "Strided", "torch.sparse_coo": "Sparse"}


@function
def sparse_coo_tensor(
    indices=None,
    values=None,
    size=None,
    *,
    dtype=None,
    device=None,
    pin_memory=False,
    requires_grad=False,
    check_invariants=None,
    is_coalesced=None,
):
    """A sparse tensor of coordinates: `values` at `indices`, zero elsewhere. Values at one index add up.

    Args:
        indices: of shape (sparse dims, nnz). A size alone gives a tensor without values.
        values: of shape (nnz, dense sizes).
        size: by default the least that holds all indices.
        check_invariants: also check that `is_coalesced` is true. Indices are always checked against the size.
        is_coalesced: promise that every index occurs once, in order.

    >>> cresset.sparse_coo_tensor([[0, 1], [2, 0]], [3.0, 4.0], (2, 3)).to_dense()
    tensor([[0., 0., 3.],
            [4., 0., 0.]])
    """
    from ..sparse.coo import sparse_coo_tensor as make

    return make(
        indices, values, size, dtype=dtype, device=device, pin_memory=pin_memory, requires_grad=requires_grad,
        check_invariants=check_invariants, is_coalesced=is_coalesced,
    )  # fmt: skip


@function
def sparse_compressed_tensor(
    compressed_indices,
    plain_indices,
    values,
    size=None,
    *,
    dtype=None,
    layout=None,
    device=None,
    pin_memory=False,
    requires_grad=False,
    check_invariants=None,
):
    """A sparse tensor of one of the compressed layouts: CSR, CSC, BSR or BSC.

    Args:
        compressed_indices: where each row (or column) begins among the values, and where the last ends.
        plain_indices: the column (or row) of each value.
        values: of shape (nnz,), or (nnz, height, width) for the layouts of blocks.
        layout: torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr or torch.sparse_bsc.

    >>> cresset.sparse_compressed_tensor([0, 1, 2], [1, 0], [5.0, 6.0], layout=cresset.sparse_csr).to_dense()
    tensor([[0., 5.],
            [6., 0.]])
    """
    from ..sparse.compressed import sparse_compressed_tensor as make

    return make(
        compressed_indices, plain_indices, values, size, dtype=dtype, layout=layout, device=device,
        pin_memory=pin_memory,
        requires_grad=requires_grad, check_invariants=check_invariants,
    )  # fmt: skip


def _compressed(layout, first, second, values, size, kwargs):
    given = kwargs.pop("layout", None)
    wanted = getattr(cresset, layout)
    if given is not None and given != wanted:
        raise RuntimeError(f"{layout}_tensor: expected layout {wanted}, got {given}")
    return sparse_compressed_tensor(first, second, values, size, layout=wanted, **kwargs)


@function
def sparse_csr_tensor(crow_indices, col_indices, values, size=None, **kwargs):
    """A sparse tensor whose rows are compressed; see `sparse_compressed_tensor`.

    >>> cresset.sparse_csr_tensor([0, 2, 2], [0, 1], [1.0, 2.0]).to_dense()
    tensor([[1., 2.],
            [0., 0.]])
    """
    return _compressed("sparse_csr", crow_indices, col_indices, values, size, kwargs)


@function
def sparse_csc_tensor(ccol_indices, row_indices, values, size=None, **kwargs):
    """A sparse tensor whose columns are compressed; see `sparse_compressed_tensor`.

    >>> cresset.sparse_csc_tensor([0, 2, 2], [0, 1], [1.0, 2.0]).to_dense()
    tensor([[1., 0.],
            [2., 0.]])
    """
    return _compressed("sparse_csc", ccol_indices, row_indices, values, size, kwargs)


@function
def sparse_bsr_tensor(crow_indices, col_indices, values, size=None, **kwargs):
    """A sparse tensor of dense blocks, its rows of blocks compressed; see `sparse_compressed_tensor`.

    >>> cresset.sparse_bsr_tensor([0, 1], [1], [[[1.0, 2.0]]]).to_dense()
    tensor([[0., 0., 1., 2.]])
    """
    return _compressed("sparse_bsr", crow_indices, col_indices, values, size, kwargs)


@function
def sparse_bsc_tensor(ccol_indices, row_indices, values, size=None, **kwargs):
    """A sparse tensor of dense blocks, its columns of blocks compressed; see `sparse_compressed_tensor`.

    >>> cresset.sparse_bsc_tensor([0, 1], [1], [[[1.0], [2.0]]]).to_dense()
    tensor([[0.],
            [0.],
            [1.],
            [2.]])
    """
    return _compressed("sparse_bsc", ccol_indices, row_indices, values, size, kwargs)


# ---- methods


def _is_strided(tensor):
    return tensor.layout == cresset.strided


@function(method="only")
def to_sparse(self, sparse_dim=None, *, layout=None, blocksize=None, dense_dim=None):
    """The tensor in a sparse layout: coordinates unless `layout` says otherwise.

    Args:
        sparse_dim: how many leading dimensions are sparse; all by default. The rest lie dense in the values.
        blocksize: of the layouts of blocks.

    >>> cresset.tensor([[0.0, 3.0], [0.0, 0.0]]).to_sparse()
    tensor(indices=tensor([[0],
                           [1]]),
           values=tensor([3.]),
           size=(2, 2), nnz=1, layout=torch.sparse_coo)
    """
    from ..sparse.converting import to_layout
    from ..sparse.coo import dense_to_coo

    if isinstance(sparse_dim, cresset.layout):
        sparse_dim, layout = None, sparse_dim
    if sparse_dim is None:
        return to_layout(self, layout or cresset.sparse_coo, blocksize, dense_dim)
    if layout is not None:
        raise RuntimeError("to_sparse: sparse_dim goes with the coordinate layout alone; leave out layout=")
    if not _is_strided(self):
        if sparse_dim == self.sparse_dim():
            return to_layout(self, cresset.sparse_coo)
        raise RuntimeError(
            "to_sparse: conversion from Sparse to Sparse with sparse_dim argument !=self.sparse_dim() is not "
            f"supported: there are {self.sparse_dim()} sparse dimensions; to_dense() it first to have {sparse_dim}"
        )
    return dense_to_coo(self, sparse_dim)


@function(method="only")
def to_sparse_coo(self):
    """The tensor in the coordinate layout.

    >>> cresset.eye(2).to_sparse_coo().layout
    torch.sparse_coo
    """
    return self.to_sparse()


@function(method="only")
def to_sparse_csr(self, dense_dim=None):
    """The tensor with compressed rows.

    >>> cresset.eye(2).to_sparse_csr().crow_indices()
    tensor([0, 1, 2])
    """
    return self.to_sparse(layout=cresset.sparse_csr, dense_dim=dense_dim)


@function(method="only")
def to_sparse_csc(self, dense_dim=None):
    """The tensor with compressed columns.

    >>> cresset.eye(2).to_sparse_csc().ccol_indices()
    tensor([0, 1, 2])
    """
    return self.to_sparse(layout=cresset.sparse_csc, dense_dim=dense_dim)


@function(method="only")
def to_sparse_bsr(self, blocksize, dense_dim=None):
    """The tensor as dense blocks, their rows compressed.

    >>> cresset.ones(2, 2).to_sparse_bsr((2, 1)).values().shape
    torch.Size([2, 2, 1])
    """
    return self.to_sparse(layout=cresset.sparse_bsr, blocksize=blocksize, dense_dim=dense_dim)


@function(method="only")
def to_sparse_bsc(self, blocksize, dense_dim=None):
    """The tensor as dense blocks, their columns compressed.

    >>> cresset.ones(2, 2).to_sparse_bsc((2, 1)).values().shape
    torch.Size([2, 2, 1])
    """
    return self.to_sparse(layout=cresset.sparse_bsc, blocksize=blocksize, dense_dim=dense_dim)


@function(method="only")
def to_dense(self, dtype=None, *, masked_grad=None):
    """The tensor with all its elements in memory; a dense tensor itself.

    >>> cresset.ones(2).to_dense()
    tensor([1., 1.])
    """
    if not _is_strided(self):
        return type(self).to_dense(self, dtype, masked_grad=masked_grad)
    return self if dtype is None else self.to(dtype)


@function(method="only")
def sparse_mask(self, mask):
    """The elements at the places of a sparse tensor, in its layout.

    >>> cresset.full((2, 2), 3.0).sparse_mask(cresset.eye(2).to_sparse()).to_dense()
    tensor([[3., 0.],
            [0., 3.]])
    """
    from ..sparse.shaping import sparse_mask as at_places

    return at_places(self, mask)


@function(method="only")
def sparse_dim(self):
    """How many dimensions are sparse: 0 of a dense tensor.

    >>> cresset.eye(2).sparse_dim(), cresset.eye(2).to_sparse().sparse_dim()
    (0, 2)
    """
    return 0 if _is_strided(self) else type(self).sparse_dim(self)


@function(method="only")
def dense_dim(self):
    """How many dimensions are dense: all of a dense tensor.

    >>> cresset.eye(2).dense_dim()
    2
    """
    return self.dim() if _is_strided(self) else type(self).dense_dim(self)


def _only_for(name, wanted):
    def refuse(self, *args, **kwargs):
        own = getattr(type(self), name)  # torch.Tensor.values(x), the method of the base, is that of x's class, too
        if own is not getattr(cresset.Tensor, name):
            return own(self, *args, **kwargs)
        raise RuntimeError(
            f"{name} expected {wanted} tensor layout but got {_LAYOUT_WORDS.get(str(self.layout), self.layout)}; call "
            "to_sparse() first"
        )

    refuse.__name__ = refuse.__qualname__ = name
    refuse.__doc__ = f"Of {wanted} tensors alone; see torch.sparse."
    return function(refuse, method="only")


for _name in ("coalesce", "is_coalesced", "indices", "_indices", "_nnz", "sparse_resize_", "sparse_resize_and_clear_"):
    _only_for(_name, "sparse coordinate")
for _name in ("crow_indices", "col_indices"):
    _only_for(_name, "sparse row compressed")
for _name in ("ccol_indices", "row_indices"):
    _only_for(_name, "sparse column compressed")
_only_for("to_padded_tensor", "nested")
for _name in ("values", "_values"):
    _only_for(_name, "sparse")


# ---- products of sparse matrices


@function
def spmm(input, mat2, *, out=None):
    """A sparse times a dense matrix, as a dense one: `mm` under the name that graph networks call it by.

    >>> neighbors = cresset.tensor([[0.0, 1.0], [1.0, 0.0]]).to_sparse()
    >>> cresset.spmm(neighbors, cresset.tensor([[1.0, 2.0], [3.0, 4.0]]))
    tensor([[3., 4.],
            [1., 2.]])
    """
    return cresset.mm(input, mat2, out=out)


@function(method=True)
def smm(input, mat2):
    """A sparse times a dense matrix, as a sparse one.

    >>> cresset.smm(cresset.eye(2).to_sparse(), cresset.ones(2, 1)).to_dense()
    tensor([[1.],
            [1.]])
    """
    from ..sparse.products import smm as product

    return product(input, mat2)


@function(method=True)
def sspaddmm(input, mat1, mat2, *, beta=1, alpha=1):
    """beta * input + alpha * mat1 @ mat2 with sparse `input` and `mat1`, as a sparse tensor.

    >>> eye = cresset.eye(2).to_sparse()
    >>> cresset.sspaddmm(eye, eye, cresset.ones(2, 2)).to_dense()
    tensor([[2., 1.],
            [1., 2.]])
    """
    from ..sparse.products import sspaddmm as product

    return product(input, mat1, mat2, beta=beta, alpha=alpha)


@function
def dsmm(input, mat2):
    """`mm`: a name that PyTorch has for products with a sparse matrix.

    >>> cresset.dsmm(cresset.eye(2).to_sparse(), cresset.ones(2, 1)).tolist()
    [[1.0], [1.0]]
    """
    return cresset.mm(input, mat2)


@function
def hsmm(input, mat2):
    """`mm`, likewise.

    >>> cresset.hsmm(cresset.eye(2).to_sparse(), cresset.ones(2, 1)).tolist()
    [[1.0], [1.0]]
    """
    return cresset.mm(input, mat2)


@function
def saddmm(input, mat1, mat2, *, beta=1, alpha=1):
    """`sspaddmm`, likewise: all but the last are sparse.

    >>> eye = cresset.eye(2).to_sparse()
    >>> cresset.saddmm(eye, eye, cresset.ones(2, 2)).to_dense().tolist()
    [[2.0, 1.0], [1.0, 2.0]]
    """
    return sspaddmm(input, mat1, mat2, beta=beta, alpha=alpha)


@function
def _validate_sparse_coo_tensor_args(indices, values, size, is_coalesced=None, check_pinning=None):
    """Raise what `sparse_coo_tensor` of these arguments raises with `check_invariants=True`.

    >>> cresset._validate_sparse_coo_tensor_args(cresset.tensor([[0, 1]]), cresset.ones(2), (2,))
    """
    from ..sparse.coo import validate_args

    validate_args(indices, values, size, is_coalesced, check_pinning)


@function
def _validate_sparse_compressed_tensor_args(
    compressed_indices, plain_indices, values, size, layout, check_pinning=None
):
    """Raise what `sparse_compressed_tensor` of these arguments raises with `check_invariants=True`.

    >>> first, second = cresset.tensor([0, 1]), cresset.tensor([0])
    >>> cresset._validate_sparse_compressed_tensor_args(first, second, cresset.ones(1), (1, 1), cresset.sparse_csr)
    """
    from ..sparse.compressed import validate_args

    validate_args(compressed_indices, plain_indices, values, size, layout, check_pinning)


@function
def _sparse_compressed_tensor_with_dims(
    nnz, dense_dim, size, blocksize, index_dtype, *, dtype=None, layout=None, device=None, pin_memory=False
):
    """A tensor of a compressed layout with room for `nnz` values, which are zero.

    >>> sizes = (2, 0, (2, 3), (), cresset.int64)
    >>> cresset._sparse_compressed_tensor_with_dims(*sizes, layout=cresset.sparse_csr).values()
    tensor([0., 0.])
    """
    from ..sparse.creating import compressed_with_dims

    made = compressed_with_dims(nnz, dense_dim, size, blocksize, index_dtype, dtype, layout, device)
    return made.pin_memory() if pin_memory else made


@function
def _convert_indices_from_csr_to_coo(crow_indices, col_indices, *, out_int32=False, transpose=False):
    """The row and column of each value of a CSR matrix.

    >>> cresset._convert_indices_from_csr_to_coo(cresset.tensor([0, 1, 3]), cresset.tensor([2, 0, 1]))
    tensor([[0, 1, 1],
            [2, 0, 1]])
    """
    from .sparse import row_of_each

    dtype = cresset.int32 if out_int32 else cresset.int64
    both = [row_of_each(crow_indices).to(dtype), col_indices.to(dtype)]
    return cresset.stack(both[::-1] if transpose else both)


@function
def _convert_indices_from_coo_to_csr(input, size, *, out_int32=False):
    """Where each of `size` rows begins, from the rows of values that are in order.

    >>> cresset._convert_indices_from_coo_to_csr(cresset.tensor([0, 1, 1]), 3)
    tensor([0, 1, 3, 3])
    """
    counts = cresset.bincount(input, minlength=size).cumsum(0)
    return cresset.cat([counts.new_zeros(1), counts]).to(cresset.int32 if out_int32 else cresset.int64)


@function
def _validate_compressed_sparse_indices(is_crow, compressed_idx, plain_idx, cdim, dim, nnz):
    """Raise what a compressed tensor of these indices would: of `cdim` rows (or columns) of size `dim`.

    >>> cresset._validate_compressed_sparse_indices(True, cresset.tensor([0, 1]), cresset.tensor([0]), 1, 1, 1)
    """
    from ..sparse.compressed import check_indices

    layout = cresset.sparse_csr if is_crow else cresset.sparse_csc
    check_indices(compressed_idx, plain_idx, layout, cdim, dim, nnz, True)


def _validating(layout, first, second):
    def validate(compressed_indices, plain_indices, values, size, check_pinning=None):
        _validate_sparse_compressed_tensor_args(
            compressed_indices, plain_indices, values, size, getattr(cresset, layout), check_pinning
        )

    validate.__name__ = validate.__qualname__ = f"_validate_{layout}_tensor_args"
    validate.__doc__ = f"""Raise what `{layout}_tensor` of these arguments raises with `check_invariants=True`.

    >>> {first}, {second} = cresset.tensor([0, 0]), cresset.empty(0, dtype=cresset.int64)
    >>> cresset._validate_{layout}_tensor_args(
    ...     {first}, {second}, cresset.empty({"0, 1, 1" if "bs" in layout else "0"}), (1, 1))
    """
    return function(validate)


for _layout_name, _parts in (
    ("sparse_csr", ("crow_indices", "col_indices")),
    ("sparse_csc", ("ccol_indices", "row_indices")),
    ("sparse_bsr", ("crow_indices", "col_indices")),
    ("sparse_bsc", ("ccol_indices", "row_indices")),
):
    _validating(_layout_name, *_parts)


@function
def _sparse_broadcast_to(input, size):
    """A sparse tensor with each value at all places that it stands for in a larger shape.

    >>> cresset._sparse_broadcast_to(cresset.tensor([[0.0, 3.0]]).to_sparse(), (2, 2)).to_dense()
    tensor([[0., 3.],
            [0., 3.]])
    """
    from ..sparse.arithmetic import broadcast_to as broadcast

    return broadcast(input, tuple(size))


@function
def hspmm(mat1, mat2):
    """A sparse times a dense matrix, as a sparse one whose rows are dense.

    >>> cresset.hspmm(cresset.eye(2).to_sparse(), cresset.ones(2, 2)).sparse_dim()
    1
    """
    from ..sparse.products import hspmm as product

    return product(mat1, mat2)
