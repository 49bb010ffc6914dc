"""Products over several dimensions."""

import cresset as torch
from cresset import Tensor


def tensordot(a: Tensor, b: Tensor, dims=2) -> Tensor:
    if isinstance(dims, int):
        if dims < 0:
            raise RuntimeError("tensordot: expects dims >= 0, but got dims=" + str(dims))
        if dims > min(a.dim(), b.dim()):
            raise RuntimeError("tensordot: expects dims < ndim_a or ndim_b, but got dims=" + str(dims))
        return torch.ops.aten.tensordot(a, b, list(range(a.dim() - dims, a.dim())), list(range(dims)))
    else:
        return torch.ops.aten.tensordot(a, b, dims[0], dims[1])


STANDS_FOR = {torch: {"tensordot": tensordot}}
