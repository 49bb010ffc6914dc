"""Products of groups of matrices: grouped_mm, as mixtures of experts need them."""

import cresset

_DTYPES = (cresset.float32, cresset.bfloat16, cresset.float16)


def grouped_mm(mat_a, mat_b, *, offs=None, bias=None, out_dtype=None):
    """Multiply group by group; where a matrix is 2-D, `offs` says where each group ends.

    | mat_a | mat_b | groups are | result |
    |---|---|---|---|
    | (G, M, K) | (G, K, N) | the matrices | (G, M, N) |
    | (M, K) | (G, K, N) | rows of mat_a | (M, N) |
    | (G, M, K) | (K, N) | columns of mat_b | (M, N) |
    | (M, K) | (K, N) | columns of mat_a with rows of mat_b | (G, M, N) |

    Args:
        offs: int32, one end for each group, ascending. Rows or columns after the last one come out as zeros.
        bias: not supported, in PyTorch neither.
        out_dtype: the dtype of the matrices is the only one.

    >>> tokens, experts = cresset.ones(3, 8), cresset.stack([cresset.ones(8, 4), 2 * cresset.ones(8, 4)])
    >>> F.grouped_mm(tokens, experts, offs=cresset.tensor([1, 3], dtype=cresset.int32))[:, 0]
    tensor([ 8., 16., 16.])
    """
    _check(mat_a, mat_b, offs, bias, out_dtype)
    if offs is None:
        return mat_a @ mat_b
    ends = offs.tolist()
    groups = list(enumerate(zip([0, *ends], ends, strict=False)))  # number, (start, end)
    if mat_a.dim() == 2 and mat_b.dim() == 2:
        return cresset.stack([mat_a[:, start:end] @ mat_b[start:end] for _, (start, end) in groups])
    if mat_a.dim() == 2:
        parts, dim, whole = [mat_a[start:end] @ mat_b[i] for i, (start, end) in groups], 0, mat_a.size(0)
    else:
        parts, dim, whole = [mat_a[i] @ mat_b[:, start:end] for i, (start, end) in groups], 1, mat_b.size(1)
    result = cresset.cat(parts, dim)
    missing = whole - result.size(dim)
    if missing > 0:
        sizes = list(result.shape)
        sizes[dim] = missing
        result = cresset.cat([result, result.new_zeros(sizes)], dim)
    return result


def _check(mat_a, mat_b, offs, bias, out_dtype):
    for name, matrix in (("mat_a", mat_a), ("mat_b", mat_b)):
        if matrix.dtype not in _DTYPES:
            raise RuntimeError(
                f"grouped_mm: Expected {name} to be Float32, BFloat16 or Float16 matrix, got {matrix.dtype}"
            )
        if matrix.dim() not in (2, 3):
            raise RuntimeError(f"grouped_mm: {name} has to be 2 or 3d, got shape {tuple(matrix.shape)}")
    if mat_a.dtype != mat_b.dtype:
        raise RuntimeError(
            f"grouped_mm: expected mat_a and mat_b to have the same dtype, but got: {mat_a.dtype} != {mat_b.dtype}"
        )
    both_3d = mat_a.dim() == 3 and mat_b.dim() == 3
    shapes = f"{tuple(mat_a.shape)} and {tuple(mat_b.shape)}"
    if both_3d != (offs is None):
        raise RuntimeError(
            "grouped_mm: Have to provide offsets if there is a 2d matrix, or no offset if both matrices are 3d; the "
            f"shapes are {shapes}"
        )
    if mat_a.size(-1) != mat_b.size(-2):
        raise RuntimeError(f"grouped_mm: contraction dimension of mat_a and mat_b must match, the shapes are {shapes}")
    if both_3d and mat_a.size(0) != mat_b.size(0):
        raise RuntimeError(f"grouped_mm: batched dimension has to match, the shapes are {shapes}")
    if bias is not None:
        raise RuntimeError("grouped_mm: Bias not supported yet")
    if out_dtype not in (None, mat_a.dtype):
        raise RuntimeError(
            f"grouped_mm: Grouped gemm output dtype must match `mat_a` dtype, {mat_a.dtype}, got {out_dtype}"
        )
    if offs is not None:
        if offs.dim() != 1:
            raise RuntimeError(f"grouped_mm: offs has to be 1D, got shape {tuple(offs.shape)}")
        if offs.dtype != cresset.int32:
            raise RuntimeError(f"grouped_mm: Offsets have to be int32, got {offs.dtype}")
        experts = mat_a if mat_a.dim() == 3 else mat_b if mat_b.dim() == 3 else None
        if experts is not None and experts.size(0) != offs.size(0):
            raise RuntimeError(
                f"grouped_mm: matrix batch sizes have to match: {experts.size(0)} matrices and {offs.size(0)} offsets"
            )
