"""Normalization to mean zero and variance one, or to unit norm, over batches, layers, groups, instances, neighbors."""

import math

import cresset

from ...ops.autocast import autocast
from .padding import pad


@autocast(cuda="float32")
def layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-5):
    """Normalize over the trailing dimensions `normalized_shape`, then scale by `weight` and shift by `bias`.

    >>> F.layer_norm(cresset.tensor([1.0, 3.0]), (2,), eps=0.0)
    tensor([-1.,  1.])
    """
    return cresset.layer_norm(input, normalized_shape, weight, bias, eps)


def rms_norm(input, normalized_shape, weight=None, eps=None):
    """Divide by the root of the mean square over the trailing dimensions `normalized_shape`, then scale by `weight`.

    >>> F.rms_norm(cresset.tensor([3.0, 4.0, 0.0, 0.0]), (4,))
    tensor([1.2000, 1.6000, 0.0000, 0.0000])
    """
    return cresset.rms_norm(input, normalized_shape, weight, eps)


@autocast(cuda="float32")
def group_norm(input, num_groups, weight=None, bias=None, eps=1e-5):
    """Normalize each of `num_groups` groups of channels of each sample, then scale and shift each channel.

    >>> F.group_norm(cresset.tensor([[1.0, 3.0, 5.0, 9.0]]), 2, eps=0.0)
    tensor([[-1.,  1., -1.,  1.]])
    """
    if input.ndim < 2:
        raise RuntimeError(f"group_norm: Expected at least 2 dimensions for input tensor but received {input.ndim}")
    if num_groups > 0:
        _check_values_per_channel(
            list(input.shape), input.size(0) * input.size(1) // num_groups * math.prod(input.shape[2:])
        )
    return cresset.group_norm(input, num_groups, weight, bias, eps)


def _check_values_per_channel(shape, values):
    if values == 1:
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {shape}")


def batch_norm(input, running_mean, running_var, weight=None, bias=None, training=False, momentum=0.1, eps=1e-5):
    """Normalize each channel (dimension 1) over all samples and places, then scale and shift it.

    Args:
        running_mean, running_var: what is used outside of training; updated by `momentum` in training.

    >>> F.batch_norm(cresset.tensor([[1.0], [3.0]]), None, None, training=True)
    tensor([[-1.0000],
            [ 1.0000]])
    """
    if eps <= 0 if training else eps < 0:
        raise ValueError(
            f"batch_norm: eps must be {'positive during training' if training else 'non-negative'}, but got {eps}"
        )
    if training:
        shape = input.shape
        _check_values_per_channel(shape, math.prod(shape[2:], start=shape[0]) if shape else 0)
    return cresset.batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, True)


def instance_norm(
    input, running_mean=None, running_var=None, weight=None, bias=None, use_input_stats=True, momentum=0.1, eps=1e-5
):
    """Normalize each channel of each sample over its places, then scale and shift it.

    Args:
        running_mean, running_var: means over the samples; used if `use_input_stats` is false, else updated.

    >>> F.instance_norm(cresset.tensor([[[1.0, 3.0]]]), eps=0.0)
    tensor([[[-1.,  1.]]])
    """
    if (running_mean is None) != (running_var is None):
        raise ValueError("instance_norm: running_mean and running_var must either both be None or neither be None")
    if use_input_stats:
        values = 1
        for size in input.shape[2:]:
            values *= size
        if values == 1:
            raise ValueError(f"Expected more than 1 spatial element when training, got input size {input.shape}")
    elif running_mean is None or running_var is None:
        raise RuntimeError(
            "instance_norm: Expected running_mean and running_var to be defined when use_input_stats=False"
        )
    return cresset.instance_norm(input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, True)


def local_response_norm(input, size, alpha=1e-4, beta=0.75, k=1.0):
    """x / (k + alpha * m)^beta, where m is the mean of x^2 over `size` neighboring channels.

    >>> F.local_response_norm(cresset.ones(1, 2, 1), 1, alpha=3.0, beta=0.5)
    tensor([[[0.5000],
             [0.5000]]])
    """
    if input.ndim < 3:
        raise ValueError(f"Expected 3D or higher dimensionality input (got {input.ndim} dimensions)")
    if input.numel() == 0:
        return input
    around = [0, 0] * (input.ndim - 2) + [size // 2, (size - 1) // 2]
    total = pad(input * input, around).unfold(1, size, 1).sum(-1)
    mean = total / size if total.is_floating_point() or total.is_complex() else total.div(size, rounding_mode="trunc")
    return input / (mean * alpha + k) ** beta


def normalize(input, p=2.0, dim=1, eps=1e-12, out=None):
    """Divide by the p-norm along `dim`, which counts as at least `eps`.

    >>> F.normalize(cresset.tensor([[3.0, 4.0]]))
    tensor([[0.6000, 0.8000]])
    """
    length = input.norm(p, dim, keepdim=True).clamp_min(eps).expand_as(input)
    return input / length if out is None else cresset.div(input, length, out=out)
