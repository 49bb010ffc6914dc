"""How tensors look in a notebook: `repr_html` gives shape, dtype, device, range and a small picture.

A vector becomes a line, a matrix a heat map, a tensor of 1 or 3 channels an image; of more dimensions the first part is
drawn. The HTML is self-contained, takes the page's own colors (dark or light) and stays below 30 KB.
"""

import math

from . import printing

__all__ = ["repr_html"]

PICTURE_BYTES = 17_500  # of one PNG before base64, which makes 4 characters of 3 bytes
TEXT_CHARACTERS = 3_000
BLOCK = 2**20  # elements that are converted at once
LINE_POINTS = 240  # how many points, or ranges where there are more elements, a line has
MAX_SIDE = 128  # pixels of a picture
DISPLAY_SIDE = 192  # to which its longer side is magnified on the page,
DISPLAY_CELL = 16  # unless its pixels would be larger than this;
THIN_SIDE = 16  # to which a thin side is widened
IMAGE_SIDE = 8  # a tensor of 1 or 3 channels is an image if its sides are at least this

# Colors between which a heat map interpolates: dark to bright, and for signed values blue, gray (zero), red.
SEQUENTIAL = [(68, 1, 84), (59, 82, 139), (33, 145, 140), (94, 201, 98), (253, 231, 37)]
DIVERGING = [(5, 48, 120), (67, 147, 214), (225, 225, 225), (230, 120, 90), (140, 10, 40)]
GRAY = [(0, 0, 0), (255, 255, 255)]
NOT_FINITE = (255, 0, 255)

LEVELS = 255  # colors of a heat map; the palette's last entry is NOT_FINITE


def repr_html(tensor):
    """The HTML by which notebooks show a tensor.

    >>> "2 × 3" in repr_html(cresset.ones(2, 3))
    True
    """
    rows = [_headline(tensor)]
    if not tensor.is_meta and tensor.numel() > 0 and tensor.layout == _cresset().strided:
        low, high, lines = _range(tensor.detach())
        rows += lines
        rows += _picture(tensor.detach(), low, high)
    rows.append(_text(tensor))
    return '<div style="font:13px/1.5 system-ui,sans-serif;color:inherit;max-width:60em">' + "".join(rows) + "</div>"


def _cresset():
    import cresset

    return cresset


# --- Words -----------------------------------------------------------------------------------------------------------


def _escape(text):
    import html

    return html.escape(str(text))


def _headline(tensor):
    shape = " × ".join(map(str, tensor.shape)) or "scalar"
    facts = [str(tensor.dtype).removeprefix("torch."), tensor.device]
    if (name := printing.grad_fn_name(tensor)) is not None:
        facts.append(name)
    elif tensor.requires_grad:
        facts.append("requires grad")
    faint = "".join(f'<span style="opacity:.65;margin-left:.9em">{_escape(fact)}</span>' for fact in facts)
    return f"<div>{_escape(type(tensor).__name__)} <b>{shape}</b>{faint}</div>"


def _number(number):
    """Whole numbers in full while they are short, others to four digits, with a true minus sign."""
    if abs(number) < 1e7 and number == int(number):
        return str(int(number)).replace("-", "−")
    return f"{number:.4g}".replace("-", "−")


def _text(tensor):
    """The repr, cut to size and folded away."""
    with printing.printoptions(threshold=200, edgeitems=2):
        text = printing.tensor_repr(tensor)
    if len(text) > TEXT_CHARACTERS:
        text = text[:TEXT_CHARACTERS] + " …"
    is_short = tensor.is_meta or tensor.numel() <= 10
    return (
        f'<details{" open" if is_short else ""}><summary style="cursor:pointer;opacity:.65">values</summary>'
        f'<pre style="margin:.3em 0;color:inherit;background:none">{_escape(text)}</pre></details>'
    )


# --- The range -------------------------------------------------------------------------------------------------------


def _real_values(tensor):
    """The elements as float32 or float64, on which all arithmetic works; of a complex number its absolute value."""
    cresset = _cresset()
    if tensor.dtype == getattr(cresset, "float4_e2m1fn_x2", None):
        tensor = tensor.view(cresset.uint8)
    if tensor.dtype.is_complex:
        return tensor.to(cresset.complex128 if tensor.dtype == cresset.complex128 else cresset.complex64).abs()
    if tensor.dtype.is_floating_point and tensor.dtype != cresset.float64:
        return tensor.to(cresset.float32)
    return tensor.to(cresset.float64)


def _range(tensor):
    """The least and greatest finite value (None if there is none), and the lines that tell about them.

    Goes through the tensor in blocks, so that a large one is not converted as a whole.
    """
    low, high, total, nans, count = math.inf, -math.inf, 0.0, 0, 0
    for block in tensor.reshape(-1).split(BLOCK):
        values = _real_values(block)
        nans += values.isnan().sum().item()
        is_finite = values.isfinite()
        if not is_finite.all():
            values = values[is_finite]
        if values.numel() > 0:
            count += values.numel()
            low, high = min(low, values.min().item()), max(high, values.max().item())
            total += values.sum(dtype=_cresset().float64).item()
    rows = []
    if count > 0:
        of = "absolute value: " if tensor.dtype.is_complex else ""
        rows.append(f"<div>{of}min {_number(low)} · mean {_number(total / count)} · max {_number(high)}</div>")
    if count < tensor.numel():
        infinite = tensor.numel() - count - nans
        counts = " · ".join(f"{n} {name}" for n, name in ((nans, "nan"), (infinite, "inf")) if n)
        rows.append(f'<div><span style="color:rgb{NOT_FINITE}">■</span> <b>{counts}</b></div>')
    return (low, high, rows) if count > 0 else (None, None, rows)


# --- The picture -----------------------------------------------------------------------------------------------------


def _picture(tensor, low, high):
    """The lines of HTML that hold the picture, none if all elements are the same or too large to be measured."""
    if low == high or math.isinf(2 * max(abs(low), abs(high))):
        return []
    channels = tensor.shape[-3] if tensor.dim() >= 3 else None
    is_image = channels in (1, 3) and min(tensor.shape[-2:]) >= IMAGE_SIDE
    drawn_dims = 3 if is_image else min(tensor.dim(), 2)
    first = tensor.dim() - drawn_dims
    part = tensor[(0,) * first] if first else tensor
    notes = [f"the part [{', '.join('0' * first)}]"] if math.prod(tensor.shape[:first]) > 1 else []
    if drawn_dims == 1:
        return [_line(part, low, high)]
    if is_image and channels == 3:
        return _image(part, low, high, notes)
    return _heat_map(part[0] if is_image else part, low, high, notes, GRAY if is_image else None)


def _line(vector, low, high):
    """A vector as an SVG line. Many elements share a point: it then spans their range. Gaps are not finite."""
    points = []
    for block in vector.split(math.ceil(vector.numel() / LINE_POINTS)):
        values = _real_values(block)
        points.append((values.min().item(), values.max().item()))
    scale = high - low
    step = 300 / max(len(points) - 1, 1)
    runs = [[]]
    for position, (least, greatest) in enumerate(points):
        if not (math.isfinite(least) and math.isfinite(greatest)):
            runs.append([])
            continue
        for number in (least, greatest) if least != greatest else (least,):
            runs[-1].append(f"{4 + position * step:.5g},{64 - 60 * (number - low) / scale:.4g}")
    # A point alone is drawn by the round cap of a line of no length.
    lines = "".join(f'<polyline points="{" ".join(run if len(run) > 1 else run * 2)}"/>' for run in runs if run)
    zero = f'<path opacity=".35" stroke-width=".7" d="M4 {64 + 60 * low / scale:.4g}h300"/>' if low < 0 < high else ""
    return (
        '<svg width="308" height="68" viewBox="0 0 308 68" role="img" style="display:block;margin:.3em 0" fill="none" '
        f'stroke="currentColor" stroke-width="1.5" stroke-linecap="round" stroke-linejoin="round">{zero}{lines}</svg>'
    )


def _heat_map(matrix, low, high, notes, colors=None):
    """A matrix as a picture of its values with the scale of colors below it."""
    if colors is None:
        colors = DIVERGING if low < 0 < high else SEQUENTIAL
    if colors is DIVERGING:  # zero in the middle
        high = max(-low, high)
        low = -high
    palette = [_between(colors, level / (LEVELS - 1)) for level in range(LEVELS)] + [NOT_FINITE]

    def encode(rows_step, columns_step):
        numbers = _as_levels(matrix[::rows_step, ::columns_step], low, high, LEVELS - 1, not_finite=LEVELS)
        return _png([bytes(row) for row in numbers], palette)

    stops = ",".join(f"rgb{color}" for color in colors)
    scale = (
        f'<div style="display:flex;align-items:center;gap:.5em;font-size:11px"><span>{_number(low)}</span>'
        f'<span style="width:7em;height:.6em;background:linear-gradient(90deg,{stops})"></span>'
        f"<span>{_number(high)}</span></div>"
    )
    return [*_fitting_picture(matrix.shape, encode, notes), scale]


def _image(image, low, high, notes):
    """Three channels as red, green and blue. Values within 0 and 1, or 0 and 255, are taken as such."""
    if low >= 0 and high <= 255:
        low, high = 0, 1 if high <= 1 else 255
    else:
        notes = [*notes, f"black is {_number(low)}, white {_number(high)}"]

    def encode(rows_step, columns_step):
        red, green, blue = _as_levels(image[:, ::rows_step, ::columns_step], low, high, 255, not_finite=0)
        rows = zip(red, green, blue, strict=True)
        return _png([bytes(byte for pixel in zip(*row, strict=True) for byte in pixel) for row in rows], palette=None)

    return _fitting_picture(image.shape[1:], encode, notes)


def _fitting_picture(shape, encode, notes):
    """The finest picture that is small enough; `encode` draws one row and one column of so many."""
    import base64

    height, width = shape
    steps = [math.ceil(height / MAX_SIDE), math.ceil(width / MAX_SIDE)]
    while len(png := encode(*steps)) > PICTURE_BYTES:
        steps = [step + math.ceil(step / 4) for step in steps]
    notes = [*notes, *(f"1 {name} of {step}" for step, name in zip(steps, ("row", "column"), strict=True) if step > 1)]
    data = base64.b64encode(png).decode()
    cell = min(DISPLAY_CELL, DISPLAY_SIDE / max(shape))
    picture = (
        f'<img alt="the values as colors" width="{max(round(width * cell), THIN_SIDE)}" '
        f'height="{max(round(height * cell), THIN_SIDE)}" src="data:image/png;base64,{data}" '
        'style="display:block;margin:.3em 0;image-rendering:pixelated">'
    )
    caption = f'<div style="opacity:.65;font-size:11px">{_escape("; ".join(notes))}</div>' if notes else ""
    return [picture, caption]


def _as_levels(tensor, low, high, top, not_finite):
    """Nested lists of whole numbers from 0 for `low` to `top` for `high`."""
    values = _real_values(tensor).to(_cresset().float64)  # the difference of two float32 can be too large for one
    levels = ((values - low) / (high - low) * top).round().clamp(0, top)
    levels[~values.isfinite()] = not_finite
    return levels.to(_cresset().int64).tolist()


def _between(colors, share):
    """The color at `share` of the way along `colors`."""
    position = share * (len(colors) - 1)
    index = min(int(position), len(colors) - 2)
    rest = position - index
    return tuple(round(a + (b - a) * rest) for a, b in zip(colors[index], colors[index + 1], strict=True))


def _png(rows, palette):
    """A PNG file: rows of palette entries, or of red, green and blue bytes where there is no palette."""
    import struct
    import zlib

    def chunk(kind, body):
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    color_type, width = (3, len(rows[0])) if palette else (2, len(rows[0]) // 3)
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, len(rows), 8, color_type, 0, 0, 0))
    colors = chunk(b"PLTE", bytes(part for color in palette for part in color)) if palette else b""
    pixels = chunk(b"IDAT", zlib.compress(b"".join(b"\0" + row for row in rows), 9))
    return b"\x89PNG\r\n\x1a\n" + header + colors + pixels + chunk(b"IEND", b"")
