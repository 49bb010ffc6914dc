"""Masks: their canonical form, what takes the place of an element that is masked out, and the mask of a result."""

import cresset

REDUCTIONS = frozenset(
    ["sum", "prod", "amax", "amin", "argmax", "argmin", "mean", "median", "norm", "var", "std", "logsumexp"]
)
NORMALIZATIONS = frozenset(["softmax", "log_softmax", "softmin", "normalize", "cumsum", "cumprod"])
_LAYOUTS = (cresset.strided, cresset.sparse_coo, cresset.sparse_csr)


def _canonical_dim(dim, ndim):
    """Dimensions as a tuple of numbers from 0, in order; None and () mean all."""
    if dim is None or (not isinstance(dim, int) and len(dim) == 0):
        return tuple(range(ndim))
    ndim = max(ndim, 1)
    found = []
    for each in (dim,) if isinstance(dim, int) else dim:
        if not -ndim <= each < ndim:
            raise IndexError(
                f"Dimension out of range (expected to be in range of [{-ndim}, {ndim - 1}], but got {each})"
            )
        if each % ndim in found:
            raise RuntimeError(f"dim={each} appears multiple times in the list of dims")
        found.append(each % ndim)
    return tuple(sorted(found))


def _input_mask(input, *args, **kwargs):
    """`mask` as a bool tensor of the input's shape and layout."""
    mask = kwargs.get("mask")
    if input.layout not in _LAYOUTS:
        raise ValueError(f"_input_mask expects strided or sparse COO or sparse CSR tensor but got {input.layout}")
    if mask is None:
        raise ValueError("_input_mask requires explicit mask")
    if mask.ndim > input.ndim:
        raise IndexError(
            "_input_mask expected broadcastable mask (got mask dimensionality higher than of the input): the mask has "
            f"shape {tuple(mask.shape)}, the input {tuple(input.shape)}"
        )
    if mask.shape != input.shape:  # broadcast as a dense tensor: that of a sparse one is as large in the end
        mask = (mask if mask.layout is cresset.strided else mask.to_dense()).broadcast_to(input.shape)
    if mask.layout != input.layout:
        if input.layout is cresset.strided:
            mask = mask.to_dense()
        elif input.layout is cresset.sparse_coo:
            mask = mask.to_sparse(input.sparse_dim()) if mask.layout is cresset.strided else mask.to_sparse()
        else:
            mask = mask.to_sparse_csr()
    if mask.layout is cresset.sparse_coo:
        mask = mask.coalesce()
    return mask if mask.dtype == cresset.bool else mask.to(cresset.bool)


def _where(mask, input, fill_value):
    """The input's elements under a True, `fill_value` elsewhere. A sparse result specifies what is under a True, and
    nothing else; with dense dimensions, the rows that the mask specifies.
    """
    if mask.layout is cresset.strided:
        return cresset.where(mask, input, fill_value)
    if mask.layout not in _LAYOUTS:
        raise ValueError(f"_where expects strided or sparse COO or sparse CSR tensor but got {mask.layout}")
    if mask.dense_dim():
        found = input.sparse_mask(mask)
        return found._with(cresset.where(mask.values(), found._recorded, fill_value))
    return input.sparse_mask(specified(mask))


def specified(mask):
    """A sparse mask without its explicit False elements."""
    kept = mask.values().nonzero().squeeze(1)
    if kept.numel() == mask._nnz():
        return mask
    places = mask.to_sparse_coo()
    found = cresset.sparse_coo_tensor(
        places.indices()[:, kept], mask.values()[kept], mask.shape, is_coalesced=True, check_invariants=False
    )
    return found if mask.layout is cresset.sparse_coo else found.to_sparse_csr()


def least(dtype):
    """The smallest number of a dtype."""
    if dtype == cresset.bool:
        return False
    return float("-inf") if dtype.is_floating_point or dtype.is_complex else cresset.iinfo(dtype).min


def greatest(dtype):
    """The largest number of a dtype."""
    if dtype == cresset.bool:
        return True
    return float("inf") if dtype.is_floating_point else cresset.iinfo(dtype).max


def identity(whole_name, dtype, *args):
    """The number that an operation may meet without changing its result."""
    name = whole_name.rpartition(".")[2]
    if name in ("sum", "cumsum"):
        return 0
    if name in ("prod", "cumprod"):
        return 1
    if name in ("amax", "argmax", "logsumexp", "logaddexp", "softmax", "log_softmax"):
        return least(dtype)
    if name in ("amin", "argmin", "softmin"):
        return greatest(dtype)
    if name in ("norm", "normalize"):
        return float("inf") if args and args[0] is not None and args[0] < 0 else 0
    if name == "median":
        return float("nan")
    raise NotImplementedError(f"identity of {whole_name} on {dtype} input")


def _reduction_identity(op_name, input, *args):
    """The identity of a reduction as a 0-d tensor of the input's dtype; None for mean, var and std, which have none.
    The name may have its module before it: masked.sum.
    """
    if op_name.rpartition(".")[2] in ("mean", "var", "std"):
        return None
    return cresset.tensor(identity(op_name, input.dtype, *args), dtype=input.dtype, device=input.device)


def _combine_input_and_mask(op, input, mask, *args):
    """The input with the identity of `op` where the mask is False."""
    if not callable(op):
        raise ValueError(f"_combine_input_and_mask expected masked operation (got {type(op).__name__} object)")
    return filled(input, mask, identity(op.__name__, input.dtype, *args))


def filled(input, mask, value):
    """`input` with `value` where the mask is False."""
    if mask is None:
        return input
    mask = _input_mask(input, mask=mask)
    return input.masked_fill(~mask, value) if mask.layout is cresset.strided else _where(mask, input, value)


def any_of(mask, dim, keepdim):
    """Whether a mask has a True along the dimensions."""
    if mask.layout is not cresset.strided:
        mask = mask.to_dense()
    return mask.any(list(dim), keepdim) if dim else mask


def _output_mask(op, input, *args, **kwargs):
    """The mask of what a masked operation gives: where it had an element to take."""
    if not callable(op):
        raise ValueError(f"_output_mask expected masked operation (got {type(op).__name__} object)")
    name = op.__name__
    if name not in REDUCTIONS | NORMALIZATIONS:
        raise ValueError(f"_output_mask expected masked operation (got callable {op.__module__}.{name})")
    mask = _input_mask(input, *args, **kwargs)
    if name in NORMALIZATIONS:
        return mask
    if name == "norm":
        args = args[1:]
    dim = _canonical_dim(args[0] if args else kwargs.get("dim"), input.ndim)
    return any_of(mask, dim, bool(kwargs.get("keepdim", False)))
