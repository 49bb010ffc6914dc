"""The compressed layouts: CSR and CSC keep where each row (column) begins, BSR and BSC the same for dense blocks.

Leading batch dimensions are allowed; every matrix of a batch has the same number of values.
"""

import math

import cresset
from cresset import _native

from ..tensors.interpreted import make, resize
from . import invariants
from .coo import as_index, check_pinned, noted, recorded_values
from .tensor import SparseTensor, check_masked, dtype_word, layout_error

BY_ROW = (_native.sparse_csr, _native.sparse_bsr)
BLOCKED = (_native.sparse_bsr, _native.sparse_bsc)
LAYOUTS = (_native.sparse_csr, _native.sparse_csc, *BLOCKED)


class CompressedTensor(SparseTensor):
    """A sparse tensor whose rows (or columns) are compressed: where each begins, the columns (rows) of the values, the
    values.
    """

    is_sparse = False
    _sparse_dim = 2

    @property
    def is_sparse_csr(self):
        return self._layout is _native.sparse_csr

    @property
    def _recorded(self):
        return self._parts[2]

    @property
    def by_row(self):
        return self._layout in BY_ROW

    @property
    def block(self):
        """The size of a block; (1, 1) for layouts without."""
        n = self.batch_dim + 1
        return tuple(self._parts[2].shape[n : n + 2]) if self._layout in BLOCKED else (1, 1)

    @property
    def batch_dim(self):
        return self._parts[0].dim() - 1

    def dense_dim(self):
        """How many trailing dimensions are dense, in the values."""
        return self.dim() - 2 - self.batch_dim

    def _with(self, recorded, copy_indices=False):
        first, second, _ = self._parts
        if copy_indices:
            first, second = first.clone(), second.clone()
        return compressed(first, second, recorded, self.shape, self._layout)

    def _become(self, other):
        resize(self, other.shape)
        self._parts, self._layout = other._parts, other._layout

    def stride(self, dim=None):
        """Refused: the elements have no place in memory."""
        raise RuntimeError(f"Sparse {self.kind[7:].upper()} tensors do not have strides")

    def is_contiguous(self, memory_format=None):
        """Refused: the elements have no place in memory."""
        raise RuntimeError(f"Sparse {self.kind[7:].upper()} tensors do not have is_contiguous")

    def untyped_storage(self):
        """Refused: the elements have no place in memory."""
        raise NotImplementedError("Cannot access storage of SparseCsrTensorImpl: its parts have one")

    storage = untyped_storage

    def values(self):
        """The values: of shape (batch, nnz, block, dense sizes). They belong to the graph."""
        values = self._parts[2]
        return values.view(values.shape) if values.requires_grad else values

    def _values(self):
        """The values without history."""
        return self._parts[2].detach()

    def _nnz(self):
        """How many values (or blocks) each matrix keeps."""
        return self._parts[1].shape[-1]

    def _part(self, name, place, by_row):
        if self.by_row != by_row:
            raise layout_error(name, f"sparse {'row' if by_row else 'column'} compressed", self)
        return self._parts[place]

    def crow_indices(self):
        """Where each row begins among the values, and where the last ends."""
        return self._part("crow_indices", 0, True)

    def col_indices(self):
        """The column of each value."""
        return self._part("col_indices", 1, True)

    def ccol_indices(self):
        """Where each column begins among the values, and where the last ends."""
        return self._part("ccol_indices", 0, False)

    def row_indices(self):
        """The row of each value."""
        return self._part("row_indices", 1, False)

    def _refuse(self, name):
        raise layout_error(name, "sparse coordinate", self)

    def indices(self):
        """Only the coordinate layout has them."""
        self._refuse("indices")

    def _indices(self):
        self._refuse("_indices")

    def coalesce(self):
        """Only the coordinate layout can be uncoalesced."""
        self._refuse("coalesce")

    def is_coalesced(self):
        """Only the coordinate layout can be uncoalesced."""
        self._refuse("is_coalesced")

    def to_dense(self, dtype=None, *, masked_grad=None):
        """The tensor with all its zeros. Gradients have the tensor's indices only (masked_grad=False, if they are
        recorded, is an error).
        """
        from .converting import compressed_to_dense

        check_masked(self, masked_grad)

        dense = compressed_to_dense(self)
        return dense if dtype is None else dense.to(dtype)

    def __reduce_ex__(self, protocol):
        return rebuild_compressed, (*self._parts, tuple(self.shape), self._layout)


def compressed(first, second, values, size, layout):
    """A compressed tensor of parts that are known to fit."""
    new = make(CompressedTensor, size, values.dtype, values.device)
    new._parts, new._layout = (first, second, values), layout
    return new


def rebuild_compressed(first, second, values, size, layout):
    """The inverse of pickling; what the file says is checked."""
    check_parts(first, second, values, size, layout, True)
    return compressed(first, second, values, size, layout)


def empty_compressed(size, layout, dtype, device, block=(1, 1), index_dtype=cresset.int64, dense_dim=0):
    """A compressed tensor without values."""
    if len(size) < 2 + dense_dim:
        raise RuntimeError(
            f"torch.empty: Only batched sparse compressed (non-block) tensors are supported, but got size {list(size)}"
        )
    *batch, rows, columns = size[: len(size) - dense_dim]
    count = rows // block[0] if layout in BY_ROW else columns // block[1]
    first = cresset.zeros((*batch, count + 1), dtype=index_dtype, device=device)
    second = cresset.empty((*batch, 0), dtype=index_dtype, device=device)
    each = (*(block if layout in BLOCKED else ()), *size[len(size) - dense_dim :])
    values = cresset.empty((*batch, 0, *each), dtype=dtype, device=device)
    return compressed(first, second, values, size, layout)


def names_of(layout):
    """What messages call the indices of a layout, and what they run over."""
    if layout in BY_ROW:
        return "crow_indices", "col_indices", "row", "nrows", "ncols"
    return "ccol_indices", "row_indices", "column", "ncols", "nrows"


def check_dimensions(first, second, values, layout):
    """The parts have numbers of dimensions that fit each other."""
    begins, places, *_ = names_of(layout)
    blocks = 2 * (layout in BLOCKED)
    if first.dim() < 1:
        raise RuntimeError(f"{begins} must have dimensionality >= 1 but got {first.dim()}")
    if second.dim() != first.dim():
        raise RuntimeError(
            f"{begins} and {places} dimensionalities must be equal but got {first.dim()} and {second.dim()}, "
            "respectively"
        )
    if values.dim() <= first.dim() - 1 + blocks:
        raise RuntimeError(
            "values must have dimensionality > sum of batch and block dimensionalities "
            f"(={first.dim() - 1} + {blocks}) but got {values.dim()}"
        )


def check_parts(first, second, values, size, layout, order):
    """The parts fit each other and the size; with `order`, indices are also unique and in order within each row."""
    begins, places, word, _, _ = names_of(layout)
    for name, part in ((begins, first), (places, second)) if order else ():
        if part.dim() and part.numel() > 1 and part.shape[-1] > 1 and part.stride(-1) != 1:
            raise RuntimeError(f"expected {name} to be a contiguous tensor per batch")
    check_dimensions(first, second, values, layout)
    batch, blocked = first.dim() - 1, layout in BLOCKED
    dense = values.dim() - 1 - batch - 2 * blocked
    if len(size) != batch + 2 + dense:
        raise RuntimeError(
            f"tensor dimensionality must be sum of batch, base, and dense dimensionalities (={batch} + 2 + {dense}) "
            f"but got {len(size)}"
        )
    batches = [list(part.shape[:batch]) for part in (first, second, values)]
    if any(found != list(size[:batch]) for found in batches):
        raise RuntimeError(
            f"all batch dimensions of {begins} (={batches[0]}), {places} (={batches[1]}), and values (={batches[2]}) "
            f"must be equal to tensor batch dimensions (={list(size[:batch])})"
        )
    if tuple(size[batch + 2 :]) != tuple(values.shape[values.dim() - dense :]):
        raise RuntimeError(f"values has incorrect dense sizes: {list(values.shape)} for size {list(size)}")
    block = values.shape[batch + 1 : batch + 3] if blocked else (1, 1)
    counts = []
    for at, n in enumerate(size[batch : batch + 2]):
        if n % block[at]:
            raise RuntimeError(
                f"tensor shape[{batch + at}] (={n}) must be divisible with blocksize[{at}] (={block[at]}) as defined "
                "by values shape"
            )
        counts.append(n // block[at])
    along, across = counts if layout in BY_ROW else counts[::-1]
    if first.shape[-1] != along + 1:
        raise RuntimeError(
            f"{begins}.shape[-1] must be equal to the number of {word}{' block' * blocked}s + 1 (={along + 1}), but "
            f"got {first.shape[-1]}"
        )
    nnz = values.shape[batch]
    if second.shape[-1] != nnz:
        raise RuntimeError(
            f"{places}.shape[-1] must be equal to nnz (={nnz}) as defined by values.shape[{batch}], but got "
            f"{second.shape[-1]}"
        )
    if first.dtype != second.dtype:
        raise RuntimeError(
            f"{begins} and {places} must have the same dtype, bot got {dtype_word(first.dtype)} and "
            f"{dtype_word(second.dtype)}, respectively"
        )
    if first.dtype not in (cresset.int32, cresset.int64):
        raise RuntimeError(f"{begins} and {places} dtype must be Int or Long, but got {dtype_word(first.dtype)}")
    if not first.is_meta:
        check_indices(first, second, layout, along, across, nnz, order)


def check_indices(first, second, layout, along, across, nnz, order):
    """`along` rows begin and end within `nnz` values, whose columns are below `across`; with `order`, they are unique
    and in order within each row.
    """
    begins, places, _, rows, columns = names_of(layout)
    if bool((first[..., 0] != 0).any()):
        raise RuntimeError(f"`{begins}[..., 0] == 0` is not satisfied.")
    if bool((first[..., -1] != nnz).any()):
        raise RuntimeError(f"`{begins}[..., -1] == nnz` is not satisfied.")
    steps = first[..., 1:] - first[..., :-1]
    if steps.numel() and (int(steps.min()) < 0 or int(steps.max()) > max(across, 0)):
        raise RuntimeError(f"`0 <= {begins}[..., 1:] - {begins}[..., :-1] <= {columns}` is not satisfied.")
    if second.numel() and (int(second.min()) < 0 or int(second.max()) >= across):
        raise RuntimeError(f"`0 <= {places} < {columns}` is not satisfied.")
    if order and second.numel():
        for begin, index in zip(first.reshape(-1, along + 1), second.reshape(-1, nnz), strict=True):
            starts = cresset.zeros(nnz + 1, dtype=cresset.bool)
            starts[begin.long()] = True
            if bool(((index[1:] <= index[:-1]) & ~starts[1:-1]).any()):
                raise RuntimeError(
                    f"`{places}[..., {begins}[..., i - 1]:{begins}[..., i]] for all i = 1, ..., {rows} are sorted and "
                    "distinct along the last dimension values` is not satisfied."
                )


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
    """See cresset.sparse_compressed_tensor."""
    if pin_memory:
        given = {"dtype": dtype, "layout": layout, "device": device, "check_invariants": check_invariants}
        pinned = sparse_compressed_tensor(compressed_indices, plain_indices, values, size, **given).pin_memory()
        return pinned.requires_grad_() if requires_grad else pinned
    if layout not in LAYOUTS:
        raise RuntimeError(
            "sparse_compressed_tensor: expected layout to be SparseCsr, SparseCsc, SparseBsr or SparseBsc, got "
            f"{layout}"
        )
    if isinstance(values, cresset.Tensor) and device is None:
        device = values.device
    first, second = as_index(compressed_indices, device), as_index(plain_indices, device)
    values = recorded_values(values, dtype, device, requires_grad)
    batch = first.dim() - 1
    if size is None:
        check_dimensions(first, second, values, layout)
        blocked = layout in BLOCKED
        block = values.shape[batch + 1 : batch + 3] if blocked else (1, 1)
        by_row = layout in BY_ROW
        across = (int(second.max()) + 1 if second.numel() else 0) * block[1 if by_row else 0]
        along = (first.shape[-1] - 1) * block[0 if by_row else 1]
        matrix = (along, across) if by_row else (across, along)
        size = (*first.shape[:-1], *matrix, *values.shape[batch + 1 + 2 * blocked :])
    checks = check_invariants or (check_invariants is None and invariants.is_enabled())
    check_parts(first, second, values, tuple(size), layout, checks)
    return noted(compressed(first, second, values, tuple(size), layout), requires_grad)


def validate_args(compressed_indices, plain_indices, values, size, layout, check_pinning=None):
    """Raise the error that `sparse_compressed_tensor` of these arguments does, with its checks on."""
    check_pinned("sparse_compressed_tensor", (compressed_indices, plain_indices, values), check_pinning)
    sparse_compressed_tensor(compressed_indices, plain_indices, values, size, layout=layout, check_invariants=True)


def batch_items(tensor):
    """The matrices of a batch, one by one, as compressed tensors without batch dimensions."""
    first, second, values = tensor._parts
    n = tensor.batch_dim
    matrix = tensor.shape[n:]
    count = math.prod(tensor.shape[:n])
    parts = zip(
        first.reshape(count, -1), second.reshape(count, -1), values.reshape(count, *values.shape[n:]), strict=True
    )
    return [compressed(a, b, v, matrix, tensor._layout) for a, b, v in parts]


def batched(items, batch):
    """The inverse of `batch_items`; all have the same number of values."""
    counts = {item._nnz() for item in items}
    if len(counts) > 1:
        raise RuntimeError(f"Expect the same number of specified elements per batch, got {sorted(counts)}")
    parts = [cresset.stack(list(part)) for part in zip(*(item._parts for item in items), strict=True)]
    parts = [part.reshape((*batch, *part.shape[1:])) for part in parts]
    return compressed(*parts, (*batch, *items[0].shape), items[0]._layout)
