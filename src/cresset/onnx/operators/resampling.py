"""Padding and resizing, which ONNX has as one node each."""

import cresset

from . import exports_function

PAD_MODES = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}
RESIZE_MODES = {
    "nearest": "nearest",
    "nearest-exact": "nearest",
    "linear": "linear",
    "bilinear": "linear",
    "trilinear": "linear",
    "bicubic": "cubic",
}


def _can_pad(opset, input, pad, mode="constant", value=None):
    return mode == "constant" or mode in PAD_MODES and min(pad, default=0) >= 0 and (mode != "circular" or opset >= 19)


@exports_function("pad", _can_pad)
def pad(g, input, pad, mode="constant", value=None):
    rank = len(input.shape)
    before, after = [0] * rank, [0] * rank
    for k in range(len(pad) // 2):
        before[rank - 1 - k], after[rank - 1 - k] = pad[2 * k], pad[2 * k + 1]
    filler = g.number(0 if value is None else value, input.dtype) if mode == "constant" else None
    return g.op("Pad", input, g.sizes([*before, *after]), filler, mode=PAD_MODES[mode])


def _can_resize(
    opset,
    input,
    size=None,
    scale_factor=None,
    mode="nearest",
    align_corners=None,
    recompute_scale_factor=None,
    antialias=False,
):
    can = not antialias or (opset >= 18 and mode in ("bilinear", "bicubic"))
    return can and mode in RESIZE_MODES and input.dtype in (cresset.float32, cresset.float16)


@exports_function("interpolate", _can_resize)
def interpolate(
    g,
    input,
    size=None,
    scale_factor=None,
    mode="nearest",
    align_corners=None,
    recompute_scale_factor=None,
    antialias=False,
):
    """By factors if they place the samples, else to sizes."""
    settings = {
        "mode": RESIZE_MODES[mode],
        "coordinate_transformation_mode": "align_corners" if align_corners else "half_pixel",
    }
    if mode == "nearest":
        settings |= {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    elif mode == "nearest-exact":
        settings["nearest_mode"] = "round_prefer_ceil"
    elif mode == "bicubic":
        settings["cubic_coeff_a"] = -0.5 if antialias else -0.75
    if antialias:
        settings |= {"antialias": 1, "exclude_outside": 1}
    rank = len(input.shape)
    if scale_factor is not None and not recompute_scale_factor:
        factors = list(scale_factor) if isinstance(scale_factor, (tuple, list)) else [scale_factor] * (rank - 2)
        scales = g.initializer(cresset.tensor([1.0, 1.0, *map(float, factors)], dtype=cresset.float32))
        return g.op("Resize", input, None, scales, **settings)
    return g.op("Resize", input, None, None, g.sizes(g.result.shape), **settings)
