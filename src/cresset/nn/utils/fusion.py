"""A layer and the BatchNorm after it as one layer, for evaluation."""

import copy

import cresset

from ..parameter import Parameter


def _scale_and_shift(mean, var, eps, weight, bias):
    weight = cresset.ones_like(mean) if weight is None else weight
    bias = cresset.zeros_like(mean) if bias is None else bias
    scale = weight * (var + eps).rsqrt()
    return scale, bias - mean * scale


def fuse_conv_bn_weights(conv_w, conv_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, transpose=False):
    """The weight and bias of the convolution that does what a convolution and a BatchNorm do."""
    scale, shift = _scale_and_shift(bn_rm, bn_rv, bn_eps, bn_w, bn_b)
    shape = [1, -1] if transpose else [-1, 1]
    weight = (conv_w * scale.reshape(shape + [1] * (conv_w.dim() - 2))).to(conv_w.dtype)
    bias = (shift if conv_b is None else conv_b * scale + shift).to(conv_w.dtype)
    return Parameter(weight, conv_w.requires_grad), Parameter(
        bias, conv_w.requires_grad if conv_b is None else conv_b.requires_grad
    )


def fuse_conv_bn_eval(conv, bn, transpose=False):
    """One convolution for a convolution and the BatchNorm after it, both in evaluation mode."""
    if conv.training or bn.training:
        raise AssertionError("Fusion only for eval!")
    fused = copy.deepcopy(conv)
    fused.weight, fused.bias = fuse_conv_bn_weights(
        fused.weight, fused.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias, transpose
    )
    return fused


def fuse_linear_bn_weights(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b):
    """The weight and bias of the linear layer that does what a linear layer and a BatchNorm do."""
    return fuse_conv_bn_weights(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b)


def fuse_linear_bn_eval(linear, bn):
    """One linear layer for a linear layer and the BatchNorm after it, both in evaluation mode."""
    if linear.training or bn.training:
        raise AssertionError("Fusion only for eval!")
    if linear.out_features != bn.num_features and bn.num_features != 1:
        raise AssertionError("To fuse, linear.out_features == bn.num_features or bn.num_features == 1")
    fused = copy.deepcopy(linear)
    fused.weight, fused.bias = fuse_linear_bn_weights(
        fused.weight, fused.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias
    )
    return fused
