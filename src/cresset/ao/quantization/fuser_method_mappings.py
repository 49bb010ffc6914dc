"""What becomes of layers that follow each other: the table that `fuse_modules` reads, and its functions."""

from cresset import nn

from ..nn import intrinsic

__all__ = [
    "fuse_conv_bn",
    "fuse_conv_bn_relu",
    "fuse_convtranspose_bn",
    "fuse_linear_bn",
    "get_fuser_method",
]


def _same_mode(what, *layers):
    if len({layer.training for layer in layers}) > 1:
        raise AssertionError(f"{what} and BN both must be in the same mode (train or eval).")


def _can_train(what, layer, bn, count):
    if bn.num_features != count:
        raise AssertionError(f"{what} of {type(layer).__name__} must match num_features of {type(bn).__name__}.")
    if not bn.affine:
        raise AssertionError(f"Only support fusing {type(bn).__name__} with affine set to True")
    if not bn.track_running_stats:
        raise AssertionError(f"Only support fusing {type(bn).__name__} with tracking_running_stats set to True")


def _fused_kind(prefix, conv):
    return getattr(intrinsic, f"{prefix}{type(conv).__name__.removeprefix('Conv')}")


def fuse_conv_bn(is_qat, conv, bn):
    """A convolution with the batch norm folded in; in training (`is_qat`) both as one layer.

    >>> q = cresset.ao.quantization
    >>> type(q.fuse_conv_bn(True, nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2))).__name__
    'ConvBn2d'
    """
    _same_mode("Conv", conv, bn)
    if not is_qat:
        return nn.utils.fuse_conv_bn_eval(conv, bn)
    _can_train("Output channel", conv, bn, conv.out_channels)
    return _fused_kind("ConvBn", conv)(conv, bn)


def fuse_conv_bn_relu(is_qat, conv, bn, relu):
    """fuse_conv_bn, and a relu behind it."""
    _same_mode("Conv", conv, bn, relu)
    if not is_qat:
        return _fused_kind("ConvReLU", conv)(nn.utils.fuse_conv_bn_eval(conv, bn), relu)
    _can_train("Output channel", conv, bn, conv.out_channels)
    return _fused_kind("ConvBnReLU", conv)(conv, bn, relu)


def fuse_linear_bn(is_qat, linear, bn):
    """A linear layer with the batch norm folded in; in training (`is_qat`) both as one layer."""
    _same_mode("Linear", linear, bn)
    if not is_qat:
        return nn.utils.fuse_linear_bn_eval(linear, bn)
    _can_train("Output features", linear, bn, linear.out_features)
    return intrinsic.LinearBn1d(linear, bn)


def _linear_bn_relu(is_qat, linear, bn, relu):
    if is_qat:
        raise NotImplementedError("fuse_modules_qat: a linear layer, a batch norm and a relu are not fused in training")
    return intrinsic.LinearReLU(fuse_linear_bn(is_qat, linear, bn), relu)


def fuse_convtranspose_bn(is_qat, convt, bn):
    """A transposed convolution with the batch norm folded in, in evaluation only."""
    _same_mode("ConvTranspose", convt, bn)
    if is_qat:
        raise Exception("Fusing ConvTranspose+BatchNorm not yet supported in QAT.")  # noqa: TRY002  PyTorch's class
    return nn.utils.fuse_conv_bn_eval(convt, bn, transpose=True)


def _kept_together(kind):
    return lambda is_qat, *layers: kind(*layers)


def _methods():
    table = {
        (nn.Linear, nn.ReLU): _kept_together(intrinsic.LinearReLU),
        (nn.Linear, nn.BatchNorm1d): fuse_linear_bn,
        (nn.Linear, nn.BatchNorm1d, nn.ReLU): _linear_bn_relu,
        (nn.BatchNorm2d, nn.ReLU): _kept_together(intrinsic.BNReLU2d),
        (nn.BatchNorm3d, nn.ReLU): _kept_together(intrinsic.BNReLU3d),
    }
    for dims in (1, 2, 3):
        conv, norm = getattr(nn, f"Conv{dims}d"), getattr(nn, f"BatchNorm{dims}d")
        table[conv, norm] = fuse_conv_bn
        table[conv, norm, nn.ReLU] = fuse_conv_bn_relu
        table[conv, nn.ReLU] = _kept_together(getattr(intrinsic, f"ConvReLU{dims}d"))
        table[getattr(nn, f"ConvTranspose{dims}d"), norm] = fuse_convtranspose_bn
    return table


_DEFAULT_OP_LIST_TO_FUSER_METHOD = _methods()


def get_fuser_method(op_list, additional_fuser_method_mapping=None):
    """What fuses layers of these types (a tuple): called with `is_qat` and the layers.

    Args:
        additional_fuser_method_mapping: comes before the table.
    """
    table = {**_DEFAULT_OP_LIST_TO_FUSER_METHOD, **(additional_fuser_method_mapping or {})}
    if op_list not in table:
        raise NotImplementedError(
            f"fuse_modules: did not find fuser method for: {tuple(kind.__name__ for kind in op_list)}; cannot fuse "
            "modules of these types"
        )
    return table[op_list]
