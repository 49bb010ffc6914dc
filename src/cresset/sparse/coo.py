"""The coordinate layout: for each value, its index in every sparse dimension. An index may occur several times; its
values add up.
"""

import math

import cresset
from cresset import _native

from ..tensors.interpreted import make, resize
from . import invariants
from .tensor import SparseTensor, check_masked, layout_error


class CooTensor(SparseTensor):
    """A sparse tensor of coordinates: indices of shape (sparse dims, nnz), values of shape (nnz, dense sizes)."""

    is_sparse = True
    _layout = _native.sparse_coo

    @property
    def _recorded(self):
        return self._parts[1]

    @property
    def _sparse_dim(self):
        return self._parts[0].shape[0]

    def _with(self, recorded, copy_indices=False):
        indices = self._parts[0].clone() if copy_indices else self._parts[0]
        new = coo(indices, recorded, self.shape)
        new._is_coalesced = self._is_coalesced
        return new

    def _as_gradient(self, recorded):
        """That of an element that several values add up to is the gradient of any of them."""
        if self._is_coalesced:
            return self._with(recorded)
        sizes = self.shape[: self._sparse_dim]
        places, which = flattened(self._parts[0], sizes).unique(return_inverse=True)
        one = which.new_zeros(places.numel()).scatter(0, which, cresset.arange(which.numel(), device=which.device))
        return coo(unflattened(places, sizes), recorded[one], self.shape, True)

    def _become(self, other):
        resize(self, other.shape)
        self._parts, self._is_coalesced = other._parts, other._is_coalesced

    def _indices(self):
        """The indices as they are, coalesced or not."""
        return self._parts[0]

    def _values(self):
        """The values as they are, coalesced or not, without history."""
        return self._parts[1].detach()

    def indices(self):
        """The indices of a coalesced tensor, of shape (sparse dims, nnz)."""
        if not self._is_coalesced:
            raise RuntimeError("Cannot get indices on an uncoalesced tensor, please call .coalesce() first")
        return self._parts[0].detach()

    def values(self):
        """The values of a coalesced tensor, of shape (nnz, dense sizes). They belong to the graph."""
        if not self._is_coalesced:
            raise RuntimeError("Cannot get values on an uncoalesced tensor, please call .coalesce() first")
        values = self._parts[1]
        return values.view(values.shape) if values.requires_grad else values

    def _nnz(self):
        """How many values are kept."""
        return self._parts[1].shape[0]

    def is_coalesced(self):
        """Whether every index occurs once, in order."""
        return self._is_coalesced

    def _coalesced_(self, coalesced):
        """Say that every index occurs once, in order; the caller knows."""
        self._is_coalesced = coalesced
        return self

    def coalesce(self):
        """The tensor with every index once, in order, its values added up."""
        return self if self._is_coalesced else coalesced(self)

    def to_dense(self, dtype=None, *, masked_grad=None):
        """The tensor with all its zeros. Gradients have the tensor's indices only (masked_grad=False, if they are
        recorded, is an error).
        """
        check_masked(self, masked_grad)
        return to_dense(self, dtype)

    def sparse_resize_(self, size, sparse_dim, dense_dim):
        """Change the shape in place and keep the values; sizes may not shrink while there are values."""
        if self._nnz() and (sparse_dim != self.sparse_dim() or dense_dim != self.dense_dim()):
            raise RuntimeError(
                f"changing the number of {'sparse' if sparse_dim != self.sparse_dim() else 'dense'} dimensions "
                f"(from {(self.sparse_dim(), self.dense_dim())} to {(sparse_dim, dense_dim)}) on a non-empty sparse "
                "tensor is not supported; clear it first"
            )
        if len(size) != sparse_dim + dense_dim:
            raise RuntimeError(
                f"number of dimensions must be sparse_dim ({sparse_dim}) + dense_dim ({dense_dim}), but got {len(size)}"
            )
        if self._nnz():
            for word, part in (("sparse", slice(sparse_dim)), ("dense", slice(sparse_dim, None))):
                if any(new < old for new, old in zip(size[part], self.shape[part], strict=True)):
                    raise RuntimeError(
                        f"shrinking the size of {word} dimensions (from {list(self.shape[part])} to "
                        f"{list(size[part])}) on a non-empty sparse tensor is not supported; clear it first"
                    )
        indices, values = self._parts
        grown = values.new_zeros((self._nnz(), *size[sparse_dim:]))
        grown.view(-1)[: values.numel()] = values.reshape(-1)  # one after the other, as resize_ of a dense tensor
        self._become(
            coo(indices if self._nnz() else indices.new_zeros((sparse_dim, 0)), grown, size, self._is_coalesced)
        )
        return self

    def sparse_resize_and_clear_(self, size, sparse_dim, dense_dim):
        """Change the shape in place and drop the values."""
        if len(size) != sparse_dim + dense_dim:
            raise RuntimeError(
                f"number of dimensions must be sparse_dim ({sparse_dim}) + dense_dim ({dense_dim}), but got {len(size)}"
            )
        self._become(empty_coo(size, sparse_dim, self.dtype, self.device))
        return self

    def crow_indices(self):
        """Only compressed layouts have them."""
        raise layout_error("crow_indices", "sparse row compressed", self)

    def col_indices(self):
        """Only compressed layouts have them."""
        raise layout_error("col_indices", "sparse row compressed", self)

    def ccol_indices(self):
        """Only compressed layouts have them."""
        raise layout_error("ccol_indices", "sparse column compressed", self)

    def row_indices(self):
        """Only compressed layouts have them."""
        raise layout_error("row_indices", "sparse column compressed", self)

    def __reduce_ex__(self, protocol):
        return rebuild_coo, (*self._parts, tuple(self.shape), self._is_coalesced)


def coo(indices, values, size, is_coalesced=False):
    """A coordinate tensor of parts that are known to fit."""
    new = make(CooTensor, size, values.dtype, values.device)
    new._parts, new._is_coalesced = (indices, values), bool(is_coalesced) or values.shape[0] < 2
    return new


def rebuild_coo(indices, values, size, is_coalesced):
    """The inverse of pickling; what the file says is checked."""
    indices = indices.long()
    check_parts(indices, values, size)
    if is_coalesced:
        flat = flattened(indices, size)
        is_coalesced = bool((flat[1:] > flat[:-1]).all())
    return coo(indices, values, size, is_coalesced)


def empty_coo(size, sparse_dim, dtype, device):
    """A coordinate tensor without values."""
    indices = cresset.empty((sparse_dim, 0), dtype=cresset.int64, device=device)
    return coo(indices, cresset.empty((0, *size[sparse_dim:]), dtype=dtype, device=device), size, True)


def flattened(indices, size):
    """One number for each column of indices: its place among the sparse dimensions."""
    flat = cresset.zeros(indices.shape[1], dtype=cresset.int64, device=indices.device)
    for row, n in zip(indices.unbind(0), size, strict=False):
        flat = flat * n + row
    return flat


def unflattened(flat, size):
    """The inverse of `flattened`."""
    rows = []
    for n in reversed(size):
        rows.append(flat % max(n, 1))
        flat = flat // max(n, 1)
    return cresset.stack(rows[::-1]) if rows else flat.new_empty((0, flat.numel()))


def summed_at(count, index, values):
    """The values added up by index, into `count` places."""
    return summed_into((count, *values.shape[1:]), index, values)


def summed_into(shape, index, values):
    """A tensor of this shape, with the values added up at the places of an index that counts all its sparse
    dimensions at once.
    """
    if values.dtype == cresset.bool:
        return summed_into(shape, index, values.to(cresset.uint8)) != 0
    whole = values.new_zeros(shape)
    count = math.prod(shape[: len(shape) - values.dim() + 1])
    whole.view(count, *values.shape[1:]).index_add_(0, index, values)
    return whole


def coalesced(tensor):
    """The tensor with every index once, in order."""
    indices, values = tensor._parts
    sizes = tensor.shape[: tensor.sparse_dim()]
    flat = flattened(indices, sizes)
    if bool((flat[1:] > flat[:-1]).all()):
        return coo(indices, values, tensor.shape, True)
    places, inverse = flat.unique(return_inverse=True)
    return coo(unflattened(places, sizes), summed_at(places.numel(), inverse, values), tensor.shape, True)


def to_dense(tensor, dtype=None):
    """The tensor with all its zeros."""
    indices, values = tensor._parts
    sizes = tensor.shape[: tensor.sparse_dim()]
    dense = summed_into(tuple(tensor.shape), flattened(indices, sizes), values)
    return dense if dtype is None else dense.to(dtype)


def check_parts(indices, values, size):
    """The parts fit each other and the size. Indices beyond the size would be writes beyond memory, so they are always
    looked at.
    """
    if indices.dim() != 2:
        raise RuntimeError(f"indices must be sparse_dim x nnz, but got: {list(indices.shape)}")
    if values.dim() == 0 or values.shape[0] != indices.shape[1]:
        got = values.shape[0] if values.dim() else "a 0-d tensor"
        raise RuntimeError(
            f"indices and values must have same nnz, but got nnz from indices: {indices.shape[1]}, nnz from values: "
            f"{got}"
        )
    sparse_dim, dense_dim = indices.shape[0], values.dim() - 1
    if len(size) != sparse_dim + dense_dim:
        raise RuntimeError(
            f"'len(size) == sparse_dim + dense_dim' is not satisfied: len(size) = {len(size)}, sparse_dim = "
            f"{sparse_dim}, dense_dim = {dense_dim}"
        )
    if tuple(size[sparse_dim:]) != tuple(values.shape[1:]):
        raise RuntimeError(
            f"values has incorrect size, expected {[indices.shape[1], *size[sparse_dim:]]}, got {list(values.shape)}"
        )
    if indices.numel() == 0 or indices.is_meta:
        return
    least, greatest = indices.amin(1).tolist(), indices.amax(1).tolist()
    for dim in range(sparse_dim):
        if least[dim] < 0:
            raise RuntimeError(f"found negative index {least[dim]} for dim {dim}")
        if greatest[dim] >= size[dim]:
            raise RuntimeError(
                f"size is inconsistent with indices: for dim {dim}, size is {size[dim]} but found index {greatest[dim]}"
            )


def as_index(value, device):
    """Indices as an int64 tensor."""
    index = cresset.as_tensor(value, device=device)
    if index.numel() == 0 and not isinstance(value, cresset.Tensor):
        index = index.long()
    if index.dtype.is_floating_point or index.dtype.is_complex or index.dtype == cresset.bool:
        raise TypeError(f"indices must be an int64 tensor, got {index.dtype}")
    return index.detach()


def recorded_values(values, dtype, device, requires_grad):
    """Values as the recorded part: a new leaf with requires_grad, else a result of the given ones, in their memory.

    Never the given tensor itself: requires_grad_() of the whole would be the given tensor's.
    """
    given = cresset.as_tensor(values, dtype=dtype, device=device)
    if requires_grad:
        return given.detach().requires_grad_()
    return given.view(given.shape) if given.requires_grad and cresset.is_grad_enabled() else given.detach()


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
    """See cresset.sparse_coo_tensor."""
    if isinstance(size, (bytes, bytearray)):
        raise TypeError(f"sparse_coo_tensor(): argument 'size' must be tuple of ints, not {type(size).__name__}")
    if pin_memory:
        given = {
            "dtype": dtype,
            "device": device,
            "requires_grad": False,
            "check_invariants": check_invariants,
            "is_coalesced": is_coalesced,
        }
        pinned = sparse_coo_tensor(indices, values, size, **given).pin_memory()
        return pinned.requires_grad_() if requires_grad else pinned
    if values is None:
        if indices is not None and size is not None:
            raise TypeError("sparse_coo_tensor(): expected indices and values, or a size alone")
        size = indices if size is None else size
        size = (
            (int(size),)
            if isinstance(size, int) or (isinstance(size, cresset.Tensor) and size.dim() == 0)
            else tuple(size)
        )
        new = empty_coo(size, len(size), dtype or cresset.get_default_dtype(), device)
        return new.requires_grad_() if requires_grad else new
    if isinstance(values, cresset.Tensor) and device is None:
        device = values.device
    index = cresset.as_tensor(indices, device=device).detach().long()
    values = recorded_values(values, dtype, device, requires_grad)
    if values.dim() == 0 and index.dim() == 2 and index.shape[1] == 1:
        values = values.expand(1)
    if index.dim() == 1 and index.numel() == 0:
        index = index.reshape(0, values.shape[0] if values.dim() else 0)
    if size is None:
        if index.dim() != 2:
            raise RuntimeError(f"indices must be sparse_dim x nnz, but got: {list(index.shape)}")
        if index.numel() and int(index.min()) < 0:
            raise RuntimeError(f"found negative index {int(index.min())}")
        size = (
            (*(index.amax(1) + 1).tolist(), *values.shape[1:])
            if index.shape[1]
            else (*(0,) * index.shape[0], *values.shape[1:])
        )
    check_parts(index, values, tuple(size))
    if is_coalesced and (check_invariants or (check_invariants is None and invariants.is_enabled())):
        flat = flattened(index, size)
        if not bool((flat[1:] > flat[:-1]).all()):
            raise RuntimeError("cannot set is_coalesced to true if indices correspond to uncoalesced COO tensor")
    return noted(coo(index, values, tuple(size), is_coalesced), requires_grad)


def noted(tensor, is_leaf):
    """The tensor; of a new leaf it is written down whether it specifies all elements."""
    return tensor.requires_grad_() if is_leaf else tensor


def validate_args(indices, values, size, is_coalesced=None, check_pinning=None):
    """Raise the error that `sparse_coo_tensor` of these arguments does, with its checks on."""
    check_pinned("sparse_coo_tensor", (indices, values), check_pinning)
    sparse_coo_tensor(indices, values, size, check_invariants=True, is_coalesced=is_coalesced)


def check_pinned(who, parts, wanted):
    """Refuse parts of which some are in page-locked memory and some are not."""
    if wanted and len({part.is_pinned() for part in parts}) > 1:
        raise RuntimeError(f"{who}: memory pinning of the parts must match, got {[p.is_pinned() for p in parts]}")


def dense_to_coo(tensor, sparse_dim=None):
    """The coordinate form of a dense tensor: its elements (or, with fewer sparse dimensions, its slices) that are not
    zero.
    """
    sparse_dim = tensor.dim() if sparse_dim is None else sparse_dim
    if not 0 <= sparse_dim <= tensor.dim() or (sparse_dim == 0 and tensor.dim() > 0):
        raise RuntimeError(
            f"sparse_dim argument for to_sparse must be in > 0 and <= {tensor.dim()} (the number of dimensions), got "
            f"{sparse_dim}"
        )
    with cresset.no_grad():
        mask = tensor.detach() != 0
        if sparse_dim < tensor.dim():
            mask = mask.flatten(sparse_dim).any(-1)
        indices = mask.nonzero().t().contiguous()
    if tensor.dim() == 0:
        return coo(indices, tensor.reshape(1)[: indices.shape[1]], (), True)
    return coo(indices, tensor[tuple(indices.unbind(0))], tensor.shape, True)
