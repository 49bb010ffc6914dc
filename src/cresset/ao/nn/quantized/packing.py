"""Weights as integers, and the linear map by integers that both static and dynamic layers use."""

import cresset


def quantized_weight(weight, observer, precomputed=False):
    """A weight as a quantized tensor, with the scale that the observer finds, or has found before."""
    if not precomputed:
        observer(weight.detach())
    scale, zero_point = observer.calculate_qparams()
    weight = weight.detach().float()
    if observer.qscheme in (cresset.per_channel_affine, cresset.per_channel_symmetric):
        return cresset.quantize_per_channel(weight, scale, zero_point, getattr(observer, "ch_axis", 0), cresset.qint8)
    return cresset.quantize_per_tensor(weight, float(scale), int(zero_point), cresset.qint8)


def integer_linear(integers, scale, zero_point, weight, bias):
    """input @ weight.T + bias, with both as integers and the sums in int32.

    sum (x - x0) sx (w - w0) sw = sx sw (sum (x - x0) w - w0 sum (x - x0)); a weight's zero point w0 is 0 as a rule.
    """
    rows = integers.reshape(-1, integers.shape[-1])
    product = _product(rows, weight.int_repr(), zero_point).float()
    per_channel = weight.qscheme() is cresset.per_channel_affine
    weight_scale = weight.q_per_channel_scales().float() if per_channel else weight.q_scale()
    weight_zero = weight.q_per_channel_zero_points() if per_channel else weight.q_zero_point()
    if bool((weight_zero != 0).any()) if per_channel else weight_zero != 0:
        product = product - (rows.int() - zero_point).sum(1, keepdim=True).float() * weight_zero
    result = product * (scale * weight_scale)
    result = result if bias is None else result + bias
    return result.reshape(*integers.shape[:-1], weight.shape[0])


def _product(rows, weight, zero_point):
    return cresset._native.operators()["quantized_product"](rows, weight, zero_point)
