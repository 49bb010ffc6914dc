"""What transforms.functional does to a tensor whose last dimensions are (channels,) height and width."""

import math

import cresset
from cresset.nn import functional as F

_GRAY = (0.2989, 0.587, 0.114)  # how bright red, green and blue look


def bound(dtype):
    """White: 1 for floating point, the largest number otherwise."""
    if dtype.is_floating_point or dtype == cresset.bool:
        return 1
    return cresset.iinfo(dtype).max


def channels_of(image):
    return 1 if image.ndim == 2 else image.shape[-3]


def _as_float_batch(image):
    """(images of shape (N, C, H, W) in floating point, the way back)."""
    shape, dtype = image.shape, image.dtype
    batch = image.reshape(-1, *shape[-3:]) if image.ndim > 2 else image[None, None]
    if dtype not in (cresset.float32, cresset.float64):
        batch = batch.to(cresset.float32)

    def back(batch):
        if not dtype.is_floating_point:
            batch = batch.round()
        return batch.to(dtype).reshape(*shape[:-2], *batch.shape[-2:])

    return batch, back


def resize(image, size, interpolation, antialias):
    if tuple(image.shape[-2:]) == tuple(size):
        return image
    mode = interpolation.value
    if mode not in ("nearest", "nearest-exact", "bilinear", "bicubic"):
        raise ValueError(f"resize: tensors are resized with nearest, nearest-exact, bilinear or bicubic, got {mode}")
    smooth = mode in ("bilinear", "bicubic")
    batch, back = _as_float_batch(image)
    made = F.interpolate(
        batch, size=list(size), mode=mode, align_corners=False if smooth else None, antialias=bool(antialias) and smooth
    )
    if mode == "bicubic" and image.dtype == cresset.uint8:
        made = made.clamp(0, 255)
    return back(made)


def crop(image, top, left, height, width):
    total_height, total_width = image.shape[-2:]
    bottom, right = top + height, left + width
    inside = image[..., max(top, 0) : max(bottom, 0), max(left, 0) : max(right, 0)]
    sides = [
        max(min(right, 0) - left, 0), max(right - max(total_width, left), 0),
        max(min(bottom, 0) - top, 0), max(bottom - max(total_height, top), 0),
    ]  # fmt: skip
    return F.pad(inside, sides, value=0) if any(sides) else inside


def horizontal_flip(image):
    return image.flip(-1)


def vertical_flip(image):
    return image.flip(-2)


def _indices(length, before, after, mode):
    """Which of `length` rows stand in each row after padding; negative padding cuts rows off."""
    period = 2 * length if mode == "symmetric" else 2 * (length - 1)
    found = []
    for index in range(-before, length + after):
        if mode == "edge":
            index = min(max(index, 0), length - 1)
        elif period:
            index %= period
            if index >= length:
                index = (period - 1 if mode == "symmetric" else period) - index
        else:
            index = 0
        found.append(index)
    return cresset.tensor(found, dtype=cresset.int64)


def pad(image, sides, fill, mode):
    left, top, right, bottom = sides
    if mode == "constant":
        if not isinstance(fill, (list, tuple)):
            return F.pad(image, [left, right, top, bottom], value=fill or 0)
        if len(fill) == 1:
            return F.pad(image, [left, right, top, bottom], value=fill[0])
        if len(fill) != channels_of(image):
            raise ValueError(f"pad: the image has {channels_of(image)} channels, fill has {len(fill)} values")
        return cresset.stack(
            [
                F.pad(image[..., channel, :, :], [left, right, top, bottom], value=value)
                for channel, value in enumerate(fill)
            ],
            -3,
        )
    height, width = image.shape[-2:]
    if mode == "reflect" and (max(left, right) >= width or max(top, bottom) >= height):
        raise RuntimeError(f"pad: reflecting by {tuple(sides)} needs an image larger than that, got {height}x{width}")
    rows = _indices(height, top, bottom, mode).to(image.device)
    columns = _indices(width, left, right, mode).to(image.device)
    return image.index_select(-2, rows).index_select(-1, columns)


def _sample(image, grid, interpolation, fill):
    """Read `image` at `grid`; what lies outside becomes `fill`."""
    mode = interpolation.value
    batch, back = _as_float_batch(image)
    grid = grid.to(batch.dtype).to(batch.device).expand(len(batch), *grid.shape[1:])
    if fill is not None:
        batch = cresset.cat([batch, cresset.ones_like(batch[:, :1])], 1)
    made = F.grid_sample(batch, grid, mode=mode, padding_mode="zeros", align_corners=False)
    if fill is not None:
        mask, made = made[:, -1:], made[:, :-1]
        values = list(fill) if isinstance(fill, (list, tuple)) else [float(fill)]
        fill = cresset.tensor(values, dtype=made.dtype, device=made.device).view(1, len(values), 1, 1)
        made = cresset.where(mask < 0.5, fill, made) if mode == "nearest" else made * mask + (1.0 - mask) * fill
    return back(made)


def _affine_grid(matrix, width, height, out_width, out_height):
    theta = cresset.tensor(matrix, dtype=cresset.float32).view(2, 3)
    x = cresset.linspace(-out_width * 0.5 + 0.5, out_width * 0.5 - 0.5, out_width)
    y = cresset.linspace(-out_height * 0.5 + 0.5, out_height * 0.5 - 0.5, out_height)
    points = cresset.stack(
        [
            x.expand(out_height, out_width),
            y[:, None].expand(out_height, out_width),
            cresset.ones(out_height, out_width),
        ],
        -1,
    )
    scaled = theta.T / cresset.tensor([0.5 * width, 0.5 * height])
    return (points.view(-1, 3) @ scaled).view(1, out_height, out_width, 2)


def affine(image, matrix, interpolation, fill):
    height, width = image.shape[-2:]
    return _sample(image, _affine_grid(matrix, width, height, width, height), interpolation, fill)


def _rotated_size(matrix, width, height):
    """The (width, height) that holds all of the turned image."""
    corners = [(x * width / 2, y * height / 2) for x in (-1, 1) for y in (-1, 1)]
    xs = [matrix[0] * x + matrix[1] * y + matrix[2] + width / 2 for x, y in corners]
    ys = [matrix[3] * x + matrix[4] * y + matrix[5] + height / 2 for x, y in corners]
    # Whole pixels, but a rounding error of less than 1e-4 does not open another one.
    span = lambda values: math.ceil(int(max(values) * 1e4) / 1e4) - math.floor(int(min(values) * 1e4) / 1e4)
    return span(xs), span(ys)


def rotate(image, matrix, interpolation, expand, fill):
    height, width = image.shape[-2:]
    out_width, out_height = _rotated_size(matrix, width, height) if expand else (width, height)
    return _sample(image, _affine_grid(matrix, width, height, out_width, out_height), interpolation, fill)


def perspective(image, coefficients, interpolation, fill):
    height, width = image.shape[-2:]
    a, b, c, d, e, f, g, h = coefficients
    x = (cresset.arange(width) + 0.5).expand(height, width)
    y = (cresset.arange(height) + 0.5)[:, None].expand(height, width)
    below = g * x + h * y + 1.0
    grid = cresset.stack(
        [(a * x + b * y + c) / below / (0.5 * width) - 1.0, (d * x + e * y + f) / below / (0.5 * height) - 1.0], -1
    )
    return _sample(image, grid[None], interpolation, fill)


# ---------------------------------------------------------------- colors


def grayscale(image, channels=1):
    if channels_of(image) not in (1, 3):
        raise TypeError(f"rgb_to_grayscale: expected 1 or 3 channels, got {channels_of(image)}")
    if channels_of(image) == 3:
        red, green, blue = image.unbind(-3)
        image = (_GRAY[0] * red + _GRAY[1] * green + _GRAY[2] * blue).to(image.dtype).unsqueeze(-3)
    elif image.ndim == 2:
        image = image[None]
    return image.expand(*image.shape[:-3], channels, *image.shape[-2:]) if channels > 1 else image.clone()


def _blend(first, second, ratio):
    ratio = float(ratio)  # bytes times an integer would stay bytes, and overflow
    return (ratio * first + (1.0 - ratio) * second).clamp(0, bound(first.dtype)).to(first.dtype)


def adjust_brightness(image, factor):
    return _blend(image, cresset.zeros_like(image), factor)


def adjust_contrast(image, factor):
    gray = grayscale(image) if channels_of(image) == 3 else image
    gray = gray if gray.dtype.is_floating_point else gray.to(cresset.float32)
    mean = gray.mean(tuple(range(-min(gray.ndim, 3), 0)), keepdim=True)
    return _blend(image, mean, factor)


def adjust_saturation(image, factor):
    return image if channels_of(image) == 1 else _blend(image, grayscale(image), factor)


def adjust_sharpness(image, factor):
    if min(image.shape[-2:]) <= 2:
        return image
    batch, back = _as_float_batch(image)
    kernel = cresset.ones(3, 3, dtype=batch.dtype)
    kernel[1, 1] = 5.0
    count = batch.shape[1]
    middle = F.conv2d(batch, (kernel / kernel.sum()).expand(count, 1, 3, 3), groups=count)
    smooth = batch.clone()
    smooth[..., 1:-1, 1:-1] = middle if image.dtype.is_floating_point else middle.round()
    return _blend(image, back(smooth), factor)


def _to_hsv(image):
    red, green, blue = image.unbind(-3)
    largest, smallest = image.amax(-3), image.amin(-3)
    gray, chroma = largest == smallest, largest - smallest
    ones = cresset.ones_like(largest)
    saturation = chroma / cresset.where(gray, ones, largest)
    divisor = cresset.where(gray, ones, chroma)
    away_red, away_green, away_blue = ((largest - color) / divisor for color in (red, green, blue))
    hue_red = (largest == red) * (away_blue - away_green)
    hue_green = ((largest == green) & (largest != red)) * (2.0 + away_red - away_blue)
    hue_blue = ((largest != green) & (largest != red)) * (4.0 + away_green - away_red)
    hue = ((hue_red + hue_green + hue_blue) / 6.0 + 1.0).fmod(1.0)
    return hue, saturation, largest


def _from_hsv(hue, saturation, value):
    sector = (hue * 6.0).floor()
    rest = hue * 6.0 - sector
    sector = sector.to(cresset.int32) % 6
    p = (value * (1.0 - saturation)).clamp(0.0, 1.0)
    q = (value * (1.0 - saturation * rest)).clamp(0.0, 1.0)
    t = (value * (1.0 - saturation * (1.0 - rest))).clamp(0.0, 1.0)
    red = cresset.stack([value, q, p, p, t, value])
    green = cresset.stack([t, value, value, q, p, p])
    blue = cresset.stack([p, p, t, value, value, q])
    chosen = sector.to(cresset.int64)[None]
    return cresset.stack([color.gather(0, chosen)[0] for color in (red, green, blue)], -3)


def adjust_hue(image, factor):
    if channels_of(image) == 1:
        return image
    if image.numel() == 0:
        return image
    dtype = image.dtype
    hue, saturation, value = _to_hsv(convert_dtype(image, cresset.float32) if not dtype.is_floating_point else image)
    return convert_dtype(_from_hsv((hue + factor) % 1.0, saturation, value), dtype)


def adjust_gamma(image, gamma, gain):
    dtype = image.dtype
    values = image if dtype.is_floating_point else convert_dtype(image, cresset.float32)
    return convert_dtype((gain * values**gamma).clamp(0, 1), dtype)


def invert(image):
    return bound(image.dtype) - image


def posterize(image, bits):
    if image.dtype != cresset.uint8:
        raise TypeError(f"posterize: expected a uint8 image, got {image.dtype}")
    return image & (256 - 2 ** (8 - bits))


def solarize(image, threshold):
    if threshold > bound(image.dtype):
        raise TypeError(f"solarize: the threshold {threshold} is above white, which is {bound(image.dtype)}")
    return cresset.where(image >= threshold, invert(image), image)


def autocontrast(image):
    white = bound(image.dtype)
    dtype = image.dtype if image.dtype.is_floating_point else cresset.float32
    low, high = image.amin((-2, -1), keepdim=True).to(dtype), image.amax((-2, -1), keepdim=True).to(dtype)
    scale = white / (high - low)
    flat = (~cresset.isfinite(scale)).expand_as(scale)
    low = cresset.where(flat, cresset.zeros_like(low), low)
    scale = cresset.where(flat, cresset.ones_like(scale), scale)
    return ((image - low) * scale).clamp(0, white).to(image.dtype)


def equalize(image):
    if image.dtype != cresset.uint8:
        raise TypeError(f"equalize: expected a uint8 image, got {image.dtype}")
    planes = image.reshape(-1, *image.shape[-2:])
    return cresset.stack([_equalize_plane(plane) for plane in planes]).reshape(image.shape) if len(planes) else image


def _equalize_plane(plane):
    counts = cresset.bincount(plane.reshape(-1).to(cresset.int64), minlength=256)
    used = counts[counts != 0]
    step = int(used[:-1].sum()) // 255
    if step == 0:
        return plane
    table = ((counts.cumsum(0) + step // 2) // step).clamp(0, 255)
    table = cresset.cat([cresset.zeros(1, dtype=table.dtype), table[:-1]])
    return table[plane.to(cresset.int64)].to(cresset.uint8)


# ---------------------------------------------------------------- filters, dtypes


def gaussian_kernel(size, sigma, dtype):
    half = (size - 1) * 0.5
    x = cresset.linspace(-half, half, size, dtype=dtype)
    weights = cresset.exp(-0.5 * (x / sigma) ** 2)
    return weights / weights.sum()


def gaussian_blur(image, kernel_size, sigma):
    batch, back = _as_float_batch(image)
    across, down = (gaussian_kernel(size, width, batch.dtype) for size, width in zip(kernel_size, sigma))
    kernel = (down[:, None] * across[None]).to(batch.device)
    count = batch.shape[1]
    side, top = kernel_size[0] // 2, kernel_size[1] // 2
    padded = F.pad(batch, [side, side, top, top], mode="reflect")
    return back(F.conv2d(padded, kernel.expand(count, 1, *kernel.shape), groups=count))


def convert_dtype(image, dtype):
    """`image` in another dtype, white staying white."""
    if image.dtype == dtype:
        return image
    if image.dtype.is_floating_point:
        if dtype.is_floating_point:
            return image.to(dtype)
        if (image.dtype == cresset.float32 and dtype in (cresset.int32, cresset.int64)) or (
            image.dtype == cresset.float64 and dtype == cresset.int64
        ):
            raise RuntimeError(
                f"convert_image_dtype: {dtype} has more digits than {image.dtype} can say; the cast is not safe"
            )
        # Slightly less than one more than white: each number gets an equally long piece of [0, 1].
        return (image * (bound(dtype) + 1.0 - 1e-3)).to(dtype)
    if dtype.is_floating_point:
        return image.to(dtype) / bound(image.dtype)
    here, there = bound(image.dtype), bound(dtype)
    if here > there:
        return image.div((here + 1) // (there + 1), rounding_mode="floor").to(dtype)
    return image.to(dtype) * ((there + 1) // (here + 1))
