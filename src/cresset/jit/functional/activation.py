"""Gated linear units."""

import cresset as torch
from cresset import Tensor
from cresset.nn import functional as F


def glu(input: Tensor, dim: int = -1) -> Tensor:
    return torch.ops.aten.glu(input, dim)


STANDS_FOR = {F: {"glu": glu}}
