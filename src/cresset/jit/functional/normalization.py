"""Normalization."""

from typing import List, Optional

import cresset as torch
from cresset import Tensor
from cresset.nn import functional as F

aten = torch.ops.aten


def group_norm(
    input: Tensor, num_groups: int, weight: Optional[Tensor] = None, bias: Optional[Tensor] = None, eps: float = 1e-5
) -> Tensor:
    if input.dim() < 2:
        raise RuntimeError(f"group_norm: Expected at least 2 dimensions for input tensor but received {input.dim()}")
    count = input.size(0) * input.size(1) // num_groups
    for i in range(2, input.dim()):
        count *= input.size(i)
    if count == 1:
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {input.size()}")
    return aten.group_norm(input, num_groups, weight, bias, eps)


def instance_norm(
    input: Tensor,
    running_mean: Optional[Tensor] = None,
    running_var: Optional[Tensor] = None,
    weight: Optional[Tensor] = None,
    bias: Optional[Tensor] = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    if use_input_stats:
        count = 1
        for i in range(2, input.dim()):
            count *= input.size(i)
        if count == 1:
            raise ValueError(f"Expected more than 1 spatial element when training, got input size {input.size()}")
    return aten.instance_norm(input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, True)


def batch_norm(
    input: Tensor,
    running_mean: Optional[Tensor],
    running_var: Optional[Tensor],
    weight: Optional[Tensor] = None,
    bias: Optional[Tensor] = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    if training:
        count = input.size(0)
        for i in range(2, input.dim()):
            count *= input.size(i)
        if count == 1:
            raise ValueError(f"Expected more than 1 value per channel when training, got input size {input.size()}")
    return aten.batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, True)


def layer_norm(
    input: Tensor,
    normalized_shape: List[int],
    weight: Optional[Tensor] = None,
    bias: Optional[Tensor] = None,
    eps: float = 1e-5,
) -> Tensor:
    return aten.layer_norm(input, normalized_shape, weight, bias, eps)


def rms_norm(
    input: Tensor, normalized_shape: List[int], weight: Optional[Tensor] = None, eps: Optional[float] = None
) -> Tensor:
    return aten.rms_norm(input, normalized_shape, weight, eps)


def local_response_norm(input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Tensor:
    if input.dim() < 3:
        raise ValueError(f"Expected 3D or higher dimensionality input (got {input.dim()} dimensions)")
    square = (input * input).unsqueeze(1)
    if input.dim() == 3:
        square = aten.pad(square, [0, 0, size // 2, (size - 1) // 2])
        square = aten.avg_pool2d(square, [size, 1], [1, 1]).squeeze(1)
    else:
        shape = input.size()
        square = square.view([shape[0], 1, shape[1], shape[2], -1])
        square = aten.pad(square, [0, 0, 0, 0, size // 2, (size - 1) // 2])
        square = aten.avg_pool3d(square, [size, 1, 1], [1, 1, 1]).squeeze(1).view(shape)
    return input / torch.pow(square * alpha + k, beta)


def normalize(input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Tensor:
    length = torch.norm(input, p, [dim], True)
    return input / length.clamp_min(eps).expand_as(input)


STANDS_FOR = {
    F: {
        "group_norm": group_norm,
        "instance_norm": instance_norm,
        "batch_norm": batch_norm,
        "layer_norm": layer_norm,
        "rms_norm": rms_norm,
        "local_response_norm": local_response_norm,
        "normalize": normalize,
    }
}
