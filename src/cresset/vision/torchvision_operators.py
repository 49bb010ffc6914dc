"""The operators of torchvision's compiled library, as `torch.ops.torchvision`: what `torch.ops.load_library` finds in
the place of that library.

torchvision itself says what their derivatives are, by the operators `_..._backward` that are here, too.
"""

import cresset

from .. import library
from . import ops, regions

__all__ = ["define"]

_ROI = "Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width"
_SIZES = "SymInt batch_size, SymInt channels, SymInt height, SymInt width"
_ROI_GRAD = "float spatial_scale, SymInt pooled_height, SymInt pooled_width"
_DEFORM = (
    "Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias, SymInt stride_h, SymInt stride_w, SymInt "
    "pad_h, SymInt pad_w, "
    "SymInt dilation_h, SymInt dilation_w, SymInt groups, SymInt offset_groups, bool use_mask"
)


def _gradient(forward, shape, grad):
    """The gradient of a function that is linear, or piecewise so, in a tensor of this shape, where its result is
    `grad`.
    """
    with cresset.enable_grad():
        input = cresset.zeros(shape, dtype=grad.dtype, device=grad.device, requires_grad=True)
        result = forward(input)
    if not len(result):  # no region, nothing recorded
        return input.detach()
    return cresset.autograd.grad(result, input, grad)[0]


def _roi_align(input, rois, spatial_scale, pooled_height, pooled_width, sampling_ratio, aligned):
    return ops.roi_align(input, rois, (pooled_height, pooled_width), spatial_scale, sampling_ratio, aligned)


def _roi_align_backward(
    grad, rois, scale, pooled_height, pooled_width, batch_size, channels, height, width, ratio, aligned
):
    forward = lambda input: _roi_align(input, rois, scale, pooled_height, pooled_width, ratio, aligned)
    return _gradient(forward, (batch_size, channels, height, width), grad)


def _roi_pool_backward(grad, rois, argmax, scale, pooled_height, pooled_width, batch_size, channels, height, width):
    # A cell gives its gradient to the pixel that was its largest; empty cells have none.
    pixels = height * width
    found = argmax.flatten(2).to(cresset.int64)
    image = rois[:, 0].to(cresset.int64)[:, None, None]
    channel = cresset.arange(channels, device=grad.device)[:, None]
    places = (image * channels + channel) * pixels + found.clamp(min=0)
    values = grad.flatten(2) * (found >= 0)
    empty = cresset.zeros(batch_size * channels * pixels, dtype=grad.dtype, device=grad.device)
    return empty.index_add(0, places.flatten(), values.flatten()).view(batch_size, channels, height, width)


def _ps_roi_align_backward(
    grad, rois, mapping, scale, pooled_height, pooled_width, ratio, batch_size, channels, height, width
):
    forward = lambda input: regions.ps_roi_align(input, rois, scale, pooled_height, pooled_width, ratio)[0]
    return _gradient(forward, (batch_size, channels, height, width), grad)


def _ps_roi_pool_backward(grad, rois, mapping, scale, pooled_height, pooled_width, batch_size, channels, height, width):
    forward = lambda input: regions.ps_roi_pool(input, rois, scale, pooled_height, pooled_width)[0]
    return _gradient(forward, (batch_size, channels, height, width), grad)


def _deform_conv2d(
    input,
    weight,
    offset,
    mask,
    bias,
    stride_h,
    stride_w,
    pad_h,
    pad_w,
    dilation_h,
    dilation_w,
    groups,
    offset_groups,
    use_mask,
):
    return regions.deform_conv2d(
        input, weight, offset, mask, bias, (stride_h, stride_w), (pad_h, pad_w), (dilation_h, dilation_w), groups,
        offset_groups, use_mask
    )  # fmt: skip


def _deform_conv2d_backward(grad, input, weight, offset, mask, bias, *settings):
    with cresset.enable_grad():
        tensors = [tensor.detach().requires_grad_() for tensor in (input, weight, offset, mask, bias)]
        found = cresset.autograd.grad(_deform_conv2d(*tensors, *settings), tensors, grad, allow_unused=True)
    return tuple(
        cresset.zeros_like(tensor) if part is None else part for tensor, part in zip(tensors, found, strict=True)
    )


_OPERATORS = {
    "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor": ops.nms,
    f"roi_align({_ROI}, int sampling_ratio, bool aligned) -> Tensor": _roi_align,
    f"roi_pool({_ROI}) -> (Tensor, Tensor)": regions.roi_pool,
    f"ps_roi_align({_ROI}, int sampling_ratio) -> (Tensor, Tensor)": regions.ps_roi_align,
    f"ps_roi_pool({_ROI}) -> (Tensor, Tensor)": regions.ps_roi_pool,
    f"deform_conv2d({_DEFORM}) -> Tensor": _deform_conv2d,
    f"_roi_align_backward(Tensor grad, Tensor rois, {_ROI_GRAD}, {_SIZES}, int sampling_ratio, bool aligned) -> Tensor": _roi_align_backward,  # noqa: E501
    f"_roi_pool_backward(Tensor grad, Tensor rois, Tensor argmax, {_ROI_GRAD}, {_SIZES}) -> Tensor": _roi_pool_backward,
    (
        f"_ps_roi_align_backward(Tensor grad, Tensor rois, Tensor channel_mapping, {_ROI_GRAD}, int sampling_ratio, "
        f"{_SIZES}) -> Tensor"
    ): _ps_roi_align_backward,
    f"_ps_roi_pool_backward(Tensor grad, Tensor rois, Tensor channel_mapping, {_ROI_GRAD}, {_SIZES}) -> Tensor": _ps_roi_pool_backward,  # noqa: E501
    f"_deform_conv2d_backward(Tensor grad, {_DEFORM}) -> (Tensor, Tensor, Tensor, Tensor, Tensor)": _deform_conv2d_backward,  # noqa: E501
    "_cuda_version() -> int": lambda: -1,
}
# Operators that have no kernel here: calling one says so.
_WITHOUT_KERNEL = (
    "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qroi_align(Tensor input, Tensor rois, float input_scale, int input_zero_point, float rois_scale, int "
    "rois_zero_point, float spatial_scale, "
    "SymInt pooled_height, SymInt pooled_width, int sampling_ratio, bool aligned) -> Tensor",
    "box_iou_rotated(Tensor boxes1, Tensor boxes2) -> Tensor",
)

_library = None


def define():
    """Define the operators, once."""
    global _library
    if _library is not None:
        return
    _library = library.Library("torchvision", "FRAGMENT")
    for schema, function in _OPERATORS.items():
        _library.define(schema)
        _library.impl(schema.partition("(")[0], function, "CompositeExplicitAutograd")
    for schema in _WITHOUT_KERNEL:
        _library.define(schema)
