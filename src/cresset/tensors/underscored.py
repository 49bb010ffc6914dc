"""Methods of Tensor that PyTorch spells with an underscore, in terms of the public ones; and some that are refused in
words.
"""

import cresset

from .. import _native


def _conj(self):
    """`conj()`."""
    return self.conj()


def _conj_physical(self):
    """`conj_physical()`."""
    return self.conj_physical()


def _is_zerotensor(self):
    """Whether the tensor is a zero that has no memory: there are none here."""
    return False


def _use_count(self):
    """How many hold the tensor: its object, views of it, and the node that gathers its gradient."""
    return _native.use_count(self)


def _fix_weakref(self):
    """Let weak references find the tensor again: they always do here."""


def _dimI(self):
    """`sparse_dim()`."""
    return self.sparse_dim()


def _dimV(self):
    """`dense_dim()`."""
    return self.dense_dim()


def _to_dense(self, dtype=None, masked_grad=None):
    """`to_dense()`."""
    return self.to_dense(dtype, masked_grad=masked_grad)


def _to_sparse(self, *args, **kwargs):
    """`to_sparse()`."""
    return self.to_sparse(*args, **kwargs)


def _to_sparse_csr(self, dense_dim=None):
    """`to_sparse_csr()`."""
    return self.to_sparse_csr(dense_dim)


def _to_sparse_csc(self, dense_dim=None):
    """`to_sparse_csc()`."""
    return self.to_sparse_csc(dense_dim)


def _to_sparse_bsr(self, blocksize, dense_dim=None):
    """`to_sparse_bsr()`."""
    return self.to_sparse_bsr(blocksize, dense_dim)


def _to_sparse_bsc(self, blocksize, dense_dim=None):
    """`to_sparse_bsc()`."""
    return self.to_sparse_bsc(blocksize, dense_dim)


def _coalesced_(self, coalesced):
    """Say that no two of a sparse tensor's indices are the same, or that some may be."""
    raise RuntimeError(f"_coalesced_: expected a tensor of the layout torch.sparse_coo, got one of {self.layout}")


def _sparse_mask_projection(self, mask, accumulate_matches=False):
    """The elements at the places of a sparse mask."""
    raise NotImplementedError("_sparse_mask_projection: not implemented; use sparse_mask()")


def resize_as_sparse_(self, the_template):
    """Give a sparse tensor the sizes of another."""
    if self.is_sparse:
        return self.resize_as_(the_template)
    raise RuntimeError(
        "resize_as_sparse_compressed_: self  expected sparse compressed tensor layout but got a tensor of "
        f"{self.layout}"
    )


def slice_inverse(self, src, dim=0, start=None, end=None, step=1):
    """The tensor that a slice was taken of, `src` long: the memory of the slice seen with the geometry of `src`."""
    return self.as_strided(src.size(), src.stride(), src.storage_offset())


def to_mkldnn(self, dtype=None):
    """A tensor in a layout of oneDNN, which is not used here (`torch.backends.mkldnn.is_available()` is False)."""
    raise RuntimeError("to_mkldnn: cresset is not built with MKLDNN (oneDNN) support")


def _autocast_to_full_precision(self, cuda_enabled, cpu_enabled):
    """As float32, if the tensor is of half precision and autocast is on for its device."""
    enabled = cuda_enabled if self.is_cuda else cpu_enabled
    return self.float() if enabled and self.dtype in (cresset.float16, cresset.bfloat16) else self


def _autocast_to_reduced_precision(self, cuda_enabled, cpu_enabled, cuda_dtype, cpu_dtype):
    """As the dtype of half precision for its device, if the tensor is float32 and autocast is on there."""
    enabled, dtype = (cuda_enabled, cuda_dtype) if self.is_cuda else (cpu_enabled, cpu_dtype)
    return self.to(dtype) if enabled and self.dtype == cresset.float32 else self


def _addmm_activation(self, mat1, mat2, *, beta=1, alpha=1, use_gelu=False):
    """relu, or gelu, of `addmm`."""
    result = self.addmm(mat1, mat2, beta=beta, alpha=alpha)
    return cresset.ops.registry.functions["gelu"](result) if use_gelu else result.relu()


def _nested_only(name):
    def method(self):
        raise RuntimeError(f"{name}: expected a nested tensor, got one of shape {tuple(self.shape)}")

    method.__name__ = name
    method.__doc__ = "Of a nested tensor."
    return method


def _philox_only(name):
    def method(self, *args, **kwargs):
        raise NotImplementedError(f"{name}: random numbers of a key of one's own are not drawn here; use a Generator")

    method.__name__ = name
    method.__doc__ = "Refused: there are generators."
    return method


METHODS = [
    _conj, _conj_physical, _is_zerotensor, _use_count, _fix_weakref, _dimI, _dimV, _to_dense, _to_sparse,
    _to_sparse_csr,
    _to_sparse_csc, _to_sparse_bsr, _to_sparse_bsc, _coalesced_, _sparse_mask_projection, resize_as_sparse_,
    slice_inverse, to_mkldnn, _autocast_to_full_precision, _autocast_to_reduced_precision, _addmm_activation,
    *map(_nested_only, ["_nested_tensor_size", "_nested_tensor_strides", "_nested_tensor_storage_offsets"]),
    *map(_philox_only, ["_philox_normal_", "_philox_uniform_"]),
]  # fmt: skip
