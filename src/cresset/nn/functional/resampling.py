"""Changing the size of signals, images and volumes: each mode is a few weighted neighbors along each dimension in
turn."""

import math
import operator
import warnings

import cresset

from ..._native import name_node, overridable
from ...ops.autocast import autocast
from ...ops.metadata import suggested_format
from ...ops.pooling import adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d
from ...ops.resampling import cubic_weights

_SPATIAL = {"linear": 1, "bilinear": 2, "bicubic": 2, "trilinear": 3, "lanczos": 2}
_REACH = {"bilinear": 1, "bicubic": 2, "lanczos": 3}  # of the filters that can be widened, in elements
_AREA = {1: adaptive_avg_pool1d, 2: adaptive_avg_pool2d, 3: adaptive_avg_pool3d}
_NUMBERS = {"nearest": 1, "nearest-exact": 2, "linear": 3, "bilinear": 3, "trilinear": 3, "bicubic": 4}  # of _resample
_WIDE = {"bilinear": 5, "bicubic": 6, "lanczos": 7}  # with antialias
_MODES = "nearest | linear | bilinear | bicubic | trilinear | area | nearest-exact | lanczos"


@autocast(cuda="float32")
def interpolate(
    input,
    size=None,
    scale_factor=None,
    mode="nearest",
    align_corners=None,
    recompute_scale_factor=None,
    antialias=False,
):
    """Change the size of the dimensions after the first two.

    Args:
        input: (N, C, L), (N, C, H, W) or (N, C, D, H, W).
        size: the new sizes, or one for all.
        scale_factor: instead of `size`: how many times larger, for each dimension or for all.
        mode: nearest, nearest-exact, area; linear (1 dimension), bilinear, bicubic and lanczos (2), trilinear (3).
        align_corners: the centers of the corner elements stay in place, instead of the outer corners.
        recompute_scale_factor: place samples by the sizes, which are whole numbers, instead of by `scale_factor`.
        antialias: widen the filter when shrinking, as image libraries do; bilinear, bicubic and lanczos, which is for
            nothing else.

    >>> F.interpolate(cresset.tensor([[[1.0, 3.0]]]), scale_factor=2, mode="linear")
    tensor([[[1.0000, 1.5000, 2.5000, 3.0000]]])
    """
    spatial = input.ndim - 2
    if mode in ("nearest", "area", "nearest-exact"):
        if align_corners is not None:
            raise ValueError(
                "align_corners option can only be set with the interpolating modes: "
                f"linear | bilinear | bicubic | trilinear; the mode is {mode}"
            )
    elif align_corners is None:
        align_corners = False
    sizes, scales = _target(input, size, scale_factor, recompute_scale_factor, mode)
    if antialias and not (mode in _REACH and input.ndim == 4):
        raise ValueError(
            "Anti-alias option is restricted to bilinear, bicubic and lanczos modes and requires a 4-D tensor as input"
        )
    if mode == "lanczos" and not antialias:
        raise ValueError("interpolate: mode lanczos needs antialias=True")
    if mode == "lanczos" and align_corners:
        raise ValueError("interpolate: mode lanczos does not support align_corners=True")
    if spatial not in (1, 2, 3) or mode not in (*_SPATIAL, "nearest", "nearest-exact", "area"):
        raise NotImplementedError(
            f"Input Error: Only 3D, 4D and 5D input Tensors supported (got {input.ndim}D) for the modes: {_MODES} "
            f"(got {mode})"
        )
    if _SPATIAL.get(mode, spatial) != spatial:
        raise NotImplementedError(f"Got {input.ndim}D input, but {mode} mode needs {_SPATIAL[mode] + 2}D input")
    if min(*input.shape[1:], *sizes) < 1:
        raise RuntimeError(
            "interpolate: Input and output sizes should be greater than 0, "
            f"but got input of shape {list(input.shape)} and output sizes {list(sizes)}"
        )
    if math.prod(input.shape[:2]) * math.prod(sizes) >= 2**63:
        raise RuntimeError(f"interpolate: Storage size calculation overflowed with sizes={[*input.shape[:2], *sizes]}")
    if mode == "area":
        return _AREA[spatial](input, sizes[0] if spatial == 1 else sizes)

    node = f"Upsample{mode.title().replace('-', '')}{spatial}D{'Aa' if antialias else ''}Backward0"
    # Half precision is interpolated as float32 and rounded once; on the CPU the weights of all modes but bilinear have
    # the precision of the input, as PyTorch's have there. Bytes are rounded after each dimension.
    dtype, between = input.dtype, not mode.startswith("nearest")
    if input.is_quantized and (not between or mode == "bilinear"):
        integers, zero_point = input._integers, input.q_zero_point()
        given = (size, scale_factor, mode, align_corners, recompute_scale_factor)
        if not between:
            return input._with(interpolate(integers, *given))
        numbers = interpolate(integers.to(cresset.float32) - zero_point, *given)
        return input._with((cresset.round(numbers) + zero_point).to(integers.dtype))
    if between and not (dtype.is_floating_point or (dtype == cresset.uint8 and mode in _REACH)):
        raise NotImplementedError(f"interpolate: mode {mode} is not implemented for {dtype}")
    precision = None
    if between and (
        dtype == cresset.uint8
        or (dtype.itemsize == 2 and mode != "bilinear" and not antialias and input.device.type == "cpu")
    ):
        precision = dtype
    if precision is None and dtype.is_floating_point and (dtype.itemsize > 1 or between):
        x = input if dtype.itemsize > 1 else input.to(cresset.float32)
        return name_node(_resize_at_once(x, sizes, scales, mode, align_corners, antialias).to(dtype), node)
    whole = precision == cresset.uint8 and input.device.type == "cpu"  # bytes stay bytes
    result = input.to(dtype if dtype == cresset.float64 else cresset.float32) if between and not whole else input
    for k in reversed(range(spatial)):
        result = _resize(result, k + 2, sizes[k], scales[k], mode, align_corners, antialias, precision)
    result = _in_format_of(input, result.to(dtype))
    return result if result is input else name_node(result, node)


interpolate = overridable(interpolate, "torch.nn.functional")  # also where other files of this package call it


def _in_format_of(input, result):
    return result.contiguous(memory_format=suggested_format(input))


def _resize_at_once(input, sizes, scales, mode, align_corners, antialias):
    """All dimensions in one operator, which keeps nothing for its gradient."""
    old = list(input.shape[2:])
    steps = [_step(o, n, s, align_corners) for o, n, s in zip(old, sizes, scales, strict=True)]
    number, stays = (_WIDE if antialias else _NUMBERS)[mode], antialias or mode.endswith("linear")
    modes = [0 if o == n and stays else number for o, n in zip(old, sizes, strict=True)]
    return cresset._resample(
        input, old, sizes, modes, bool(align_corners), False, *[1.0] * (3 - len(steps)), *map(float, steps)
    )


def _step(old, size, scale, align_corners):
    """From one new element to the next, in old ones."""
    if align_corners:
        return (old - 1) / (size - 1) if size > 1 else 0.0
    return 1.0 / scale if scale else old / size


def _target(input, size, scale_factor, recompute, mode):
    """The new sizes, and for each dimension the factor that places the samples (None: by the sizes)."""
    spatial = input.ndim - 2
    old = input.shape[2:]
    if size is not None and scale_factor is not None:
        raise ValueError("only one of size or scale_factor should be defined")
    if size is None and scale_factor is None:
        raise ValueError("either size or scale_factor should be defined")
    for name, given in (("output size", size), ("scale_factor", scale_factor)):
        if isinstance(given, (list, tuple)) and len(given) != spatial:
            raise ValueError(
                "Input and output must have the same number of spatial dimensions, but got input with spatial "
                "dimensions of "
                f"{list(old)} and {name} of {given}. Please provide input tensor in (N, C, d1, d2, ...,dK) format and "
                f"{name} in (o1, o2, ...,oK) format."
            )
    if size is not None:
        if recompute:
            raise ValueError("recompute_scale_factor is not meaningful with an explicit size.")
        sizes = list(size) if isinstance(size, (list, tuple)) else [size] * spatial
        try:
            sizes = [operator.index(s) for s in sizes]
        except (TypeError, RuntimeError):
            raise TypeError(
                "interpolate: expected size to be one of int or Tuple[int] or Tuple[int, int] or Tuple[int, int, int], "
                f"but got size with types {[type(s) for s in sizes]}"
            ) from None
        return sizes, [None] * spatial
    scales = list(scale_factor) if isinstance(scale_factor, (list, tuple)) else [scale_factor] * spatial
    if any(isinstance(scale, (str, bytes)) for scale in scales):
        raise TypeError(f"interpolate: expected scale_factor to be one float or several, got {scale_factor!r}")
    scales = [float(scale) for scale in scales]
    if not all(map(math.isfinite, scales)):
        raise RuntimeError(f"interpolate: expected a finite scale_factor, got {scale_factor}")
    sizes = [math.floor(float(n) * s) for n, s in zip(old, scales, strict=True)]
    return sizes, [None] * spatial if recompute or mode == "area" else scales


def _resize(input, dim, size, scale, mode, align_corners, antialias, precision):
    """Of what `_resize_at_once` is not for, `input` with `size` elements along `dim`. `precision` is what the weights
    are rounded to: a half dtype or uint8; None for whole numbers, of which the nearest are taken.
    """
    old, bytes_ = input.size(dim), precision == cresset.uint8
    if old == size and (antialias or bytes_ or mode.endswith("linear")):  # whatever the scale was that gave this size
        return input
    step = _step(old, size, scale, align_corners)
    dtype = cresset.float64 if bytes_ or input.dtype is cresset.float64 else cresset.float32
    if mode.startswith("nearest"):  # of whole numbers
        at = cresset.arange(size, dtype=cresset.float32, device=input.device)
        at = ((at + 0.5 if mode == "nearest-exact" else at) * step).floor()
        return input.index_select(dim, at.long().clamp(0, old - 1))
    if antialias:
        return _resize_bytes(input, dim, *_filter(old, size, step, mode, dtype, input.device))
    at = cresset.arange(size, dtype=dtype, device=input.device)
    at = at * step if align_corners else (at + 0.5) * step - 0.5
    if mode == "bicubic":
        first = at.floor()
        indices = [(first.long() + k).clamp(0, old - 1) for k in (-1, 0, 1, 2)]
        weights = cubic_weights((at - first).clamp(0, 1))
    else:
        at = at.clamp_min(0)
        first = at.long().clamp(max=old - 1)
        indices = [first, (first + 1).clamp(max=old - 1)]
        part = (at - first).clamp(0, 1)
        part = part if precision is None or bytes_ else part.to(precision)
        weights = [1 - part, part]
    if bytes_:
        places, first = cresset.stack(indices, 1), indices[0]  # weights of the same place, at an end, are added up
        merged = cresset.zeros(size, len(weights), dtype=dtype, device=input.device)
        return _resize_bytes(
            input, dim, first, merged.scatter_add(1, places - first[:, None], cresset.stack(weights, 1))
        )
    if precision is not None:
        weights = [w.to(precision).to(dtype) for w in weights]
    return _weighed(input, dim, indices, weights)


def _weighed(input, dim, indices, weights):
    shape = [-1] + [1] * (input.ndim - 1 - dim)
    return sum(input.index_select(dim, i) * w.reshape(shape) for i, w in zip(indices, weights, strict=True))


def _resize_bytes(input, dim, first, weights):
    """Bytes, on the CPU in uint8 and elsewhere held as float32: new ones of the old from `first` on, with rows of
    weights.
    """
    weights, bits = _whole_weights(weights)
    if input.dtype == cresset.uint8:
        return cresset._native.operators()["resized_bytes"](input, dim, first, weights.to(cresset.int16), bits)
    indices = [(first + k).clamp(max=input.size(dim) - 1) for k in range(weights.size(1))]
    exact = 255 * float(weights.abs().sum(1).max()) + 2 ** (bits - 1) < 2**24  # float32 holds each sum
    weights = weights.to(cresset.float32) if exact else weights
    sums = _weighed(input.to(weights.dtype), dim, indices, weights.unbind(1))
    return ((sums + 2 ** (bits - 1)) * 0.5**bits).floor().clamp(0, 255).to(cresset.float32)


def _whole_weights(weights):
    """Weights of bytes, in rows, as whole numbers, and the power of two that they were multiplied by.

    Image libraries, and PyTorch, weigh bytes by whole numbers, the largest of which has 15 bits.
    """
    top, bits = float(weights.max()), 0
    while bits < 22 and int(0.5 + top * 2 ** (bits + 1)) < 2**15:
        bits += 1
    weights = weights * 2**bits
    return (weights + 0.5 * weights.sign()).trunc(), bits


def _filter(old, size, step, mode, dtype, device):
    """Of which old element on each new one is made, and (size, taps) how much those count, with the filter as wide as
    the step.

    Pixels have their center at a half; as in PyTorch, `align_corners` changes the step alone.
    """
    reach = _REACH[mode]
    support, inverse = (reach * step, 1 / step) if step >= 1 else (float(reach), 1.0)
    middle = (cresset.arange(size, dtype=dtype, device=device)[:, None] + 0.5) * step
    first, last = (middle - support + 0.5).trunc().clamp_min(0), (middle + support + 0.5).trunc().clamp(max=old)
    place = first + cresset.arange(min(old, math.ceil(support) * 2 + 1), dtype=dtype, device=device)
    x = ((place - middle + 0.5) * inverse).abs()
    if mode == "bilinear":
        weight = (1 - x).clamp_min(0)
    elif mode == "lanczos":
        weight = cresset.where(x < reach, cresset.sinc(x) * cresset.sinc(x / reach), cresset.zeros_like(x))
    else:
        a = -0.5
        near, far = ((a + 2) * x - (a + 3)) * x * x + 1, ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
        weight = cresset.where(x < 1, near, cresset.where(x < 2, far, cresset.zeros_like(x)))
    weight = weight.masked_fill(place >= last, 0)
    return first[:, 0].long(), weight / weight.sum(1, keepdim=True)


@autocast(cuda="float32")
def upsample(input, size=None, scale_factor=None, mode="nearest", align_corners=None):
    """The older name of `interpolate`."""
    warnings.warn("`nn.functional.upsample` is deprecated. Use `nn.functional.interpolate` instead.", stacklevel=3)
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(input, size=None, scale_factor=None):
    """`interpolate` with mode="nearest"."""
    warnings.warn(
        "`nn.functional.upsample_nearest` is deprecated. Use `nn.functional.interpolate` instead.", stacklevel=2
    )
    return interpolate(input, size, scale_factor, mode="nearest")


def upsample_bilinear(input, size=None, scale_factor=None):
    """`interpolate` with mode="bilinear" and align_corners=True."""
    warnings.warn(
        "`nn.functional.upsample_bilinear` is deprecated. Use `nn.functional.interpolate` instead.", stacklevel=2
    )
    return interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)
