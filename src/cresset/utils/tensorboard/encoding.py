"""What a scalar, a histogram, an image, a text … is in an event file: the bytes of TensorFlow's Summary message. The
numbers of tensors are in tensors.py.
"""

import bisect
import io
import math
import struct
import wave
import zlib

import cresset

from ..protobuf import double, doubles, integer, message, single, singles


def as_tensor(values):
    """A tensor on the CPU, without history, of a tensor, an array or numbers."""
    return values.detach().cpu() if isinstance(values, cresset.Tensor) else cresset.as_tensor(values)


def entry(tag, *fields):
    return message(1, message(1, tag), *fields)


def metadata(plugin, content=b"", name=None, description=None):
    inner = [message(1, message(1, plugin), message(2, content))]
    if name:
        inner.append(message(2, name))
    if description:
        inner.append(message(3, description))
    return message(9, *inner)


def shape(*sizes):
    return message(2, *(message(2, integer(1, size)) for size in sizes))


def scalar(tag, value, new_style=False, double_precision=False):
    """One number."""
    tensor = as_tensor(value)
    if tensor.numel() != 1:
        raise AssertionError(f"scalar should be 0D, got a tensor of shape {tuple(tensor.shape)} for {tag!r}")
    number = float(tensor)
    if double_precision:
        return entry(tag, message(8, integer(1, 2), doubles(6, [number])), metadata("scalars"))
    if new_style:
        return entry(tag, message(8, integer(1, 1), singles(5, [number])), metadata("scalars"))
    return entry(tag, single(2, number))


def _default_edges():
    edges, edge = [], 1e-12
    while edge < 1e20:
        edges.append(edge)
        edge *= 1.1
    return [-e for e in reversed(edges)] + [0.0] + edges


def histogram(name, values, bins, max_bins=None):
    """How often the values lie between the edges `bins`: a list, "tensorflow" (edges that grow by a tenth), or a word
    that NumPy knows.
    """
    if isinstance(values, (list, tuple)):
        raise NotImplementedError(
            f"histogram: expected the values of {name!r} as a tensor or an array, got a {type(values).__name__}; use "
            "torch.tensor(values)"
        )
    values = as_tensor(values).to(cresset.float64).flatten()
    if values.numel() == 0:
        raise ValueError(f"histogram: {name!r} has no values")
    finite = values.isfinite()
    if not bool(finite.all()):
        raise ValueError(f"histogram: {name!r} has {int((~finite).sum())} values that are not finite")
    if isinstance(bins, str) and bins == "tensorflow":
        edges = _default_edges()
    elif isinstance(bins, str):
        import numpy

        edges = numpy.histogram_bin_edges(values.numpy(), bins).tolist()
    else:
        edges = sorted(float(edge) for edge in bins)
    if max_bins is not None and len(edges) - 1 > max_bins:
        step = (len(edges) - 1) // max_bins
        edges = edges[:-1:step] + edges[-1:]
    counts = [0] * (len(edges) - 1)
    for value in values.tolist():
        place = min(bisect.bisect_right(edges, value), len(edges) - 1) - 1 if value <= edges[-1] else -1
        if place >= 0:
            counts[place] += 1
    seen = [i for i, count in enumerate(counts) if count]
    if not seen:
        raise ValueError(f"histogram: none of the values of {name!r} lies between the edges")
    first, last = seen[0], seen[-1]
    total, squares = float(values.sum()), float((values * values).sum())
    return histogram_raw(
        name,
        float(values.min()),
        float(values.max()),
        values.numel(),
        total,
        squares,
        edges[first : last + 2],
        [0, *counts[first : last + 1]],
    )


def histogram_raw(name, min, max, num, sum, sum_squares, bucket_limits, bucket_counts):
    """A histogram that is counted already."""
    return entry(
        name,
        message(
            5, double(1, float(min)), double(2, float(max)), double(3, float(num)), double(4, float(sum)),
            double(5, float(sum_squares)),
            doubles(6, [float(x) for x in bucket_limits]), doubles(7, [float(x) for x in bucket_counts]),
        ),
    )  # fmt: skip


# ---- images


def colors_last(tensor, dataformats, columns=8):
    """Height, width and three or four colors, of any order of the letters N, H, W and C; several images become one
    grid.
    """
    letters = dataformats.upper()
    if len(letters) != tensor.dim() or set(letters) - set("NHWC") or len(set(letters)) != len(letters):
        raise AssertionError(
            f"image: tensor of shape {tuple(tensor.shape)} and dataformats {dataformats!r} do not fit together"
        )
    if "N" in letters:
        images = tensor.permute([letters.index(c) for c in "NCHW"])
        if images.shape[1] == 1:
            images = images.expand(-1, 3, -1, -1)
        count, channels, height, width = images.shape
        columns = min(count, columns)
        rows = math.ceil(count / columns)
        grid = cresset.zeros(channels, rows * height, columns * width, dtype=images.dtype)
        for i in range(count):
            y, x = i // columns * height, i % columns * width
            grid[:, y : y + height, x : x + width] = images[i]
        return grid.permute(1, 2, 0)
    if "C" not in letters:
        tensor, letters = tensor.unsqueeze(-1), letters + "C"
    tensor = tensor.permute([letters.index(c) for c in "HWC"])
    return tensor.expand(-1, -1, 3) if tensor.shape[2] == 1 else tensor


def png(pixels):
    """A PNG file of a uint8 tensor (height, width, colors)."""
    height, width, channels = pixels.shape
    kind = {1: 0, 2: 4, 3: 2, 4: 6}.get(channels)
    if kind is None:
        raise ValueError(f"png: an image has 1 to 4 channels, got {channels}")
    data, stride = bytes(memoryview(pixels.contiguous().flatten())), width * channels
    rows = b"".join(b"\0" + data[y * stride : (y + 1) * stride] for y in range(height))

    def chunk(name, body):
        return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))

    header = struct.pack(">IIBBBBB", width, height, 8, kind, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def scale_of(tensor):
    """What makes numbers from 0 to 255 of a picture's: bytes are that already, others go from 0 to 1."""
    return 1 if str(tensor.dtype).endswith("uint8") else 255


def _pixels(tensor, dataformats):
    tensor = as_tensor(tensor)
    pixels = colors_last(tensor, dataformats).to(cresset.float32) * scale_of(tensor)
    return pixels.clamp(0, 255).to(cresset.uint8)


def image(tag, tensor, rescale=1, dataformats="NCHW"):
    """An image, or several as one: bytes, or floats from 0 to 1. A `rescale` other than 1 changes its size and needs
    Pillow.
    """
    pixels = _pixels(tensor, dataformats)
    height, width, channels = pixels.shape
    if rescale != 1:
        return _picture(tag, _in_pillow(pixels), rescale, channels)
    return entry(tag, message(4, integer(1, height), integer(2, width), integer(3, channels), message(4, png(pixels))))


def _in_pillow(pixels):
    from PIL import Image

    height, width, channels = pixels.shape
    data = bytes(memoryview(pixels.contiguous().flatten()))
    return Image.frombytes({1: "L", 2: "LA", 3: "RGB", 4: "RGBA"}[channels], (width, height), data)


def _picture(tag, picture, rescale, channels):
    """A picture of Pillow's, `rescale` times as large."""
    from PIL import Image

    width, height = (int(size * rescale) for size in picture.size)
    file = io.BytesIO()
    picture.resize((width, height), Image.Resampling.LANCZOS).save(file, "PNG")
    sizes = integer(1, height), integer(2, width), integer(3, channels)
    return entry(tag, message(4, *sizes, message(4, file.getvalue())))


def image_boxes(tag, tensor_image, tensor_boxes, rescale=1, dataformats="CHW", labels=None):
    """An image with boxes drawn into it: rows (left, top, right, bottom), each with a label if there are `labels`.
    Needs Pillow.
    """
    from PIL import ImageDraw, ImageFont

    pixels = _pixels(tensor_image, dataformats)
    picture = _in_pillow(pixels)
    draw, font = ImageDraw.Draw(picture), ImageFont.load_default()
    for place, (left, top, right, bottom) in enumerate(as_tensor(tensor_boxes).tolist()):
        around = [(left, top), (left, bottom), (right, bottom), (right, top), (left, top)]
        draw.line(around, width=2, fill="Red")
        label = labels[place] if labels else None
        if label:
            x0, y0, x1, y1 = font.getbbox(label)
            margin = math.ceil((y1 - y0) / 20)
            above = bottom - (y1 - y0) - 2 * margin
            draw.rectangle([(left, above), (left + x1 - x0, bottom)], fill="Red")
            draw.text((left + margin, above + margin), label, fill="black", font=font)
    return _picture(tag, picture, rescale, pixels.shape[2])


def figure_pixels(figure, close=True):
    """The picture of a Matplotlib figure (or of a list of them), as (colors, height, width)."""
    if isinstance(figure, (list, tuple)):
        return cresset.stack([figure_pixels(one, close) for one in figure])
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    width, height = canvas.get_width_height()
    pixels = (
        cresset.frombuffer(bytearray(canvas.buffer_rgba()), dtype=cresset.uint8)
        .reshape(height, width, 4)[:, :, :3]
        .permute(2, 0, 1)
    )
    if close:
        import matplotlib.pyplot

        matplotlib.pyplot.close(figure)
    return pixels


def video(tag, tensor, fps=4):
    """Videos (batch, time, colors, height, width), side by side, as a GIF. Needs Pillow."""
    from PIL import Image

    tensor = as_tensor(tensor)
    if tensor.dim() != 5:
        raise AssertionError(f"video: expected (batch, time, colors, height, width), got shape {tuple(tensor.shape)}")
    if tensor.dtype != cresset.uint8:
        tensor = (tensor.to(cresset.float32) * 255).clamp(0, 255).to(cresset.uint8)
    frames = [colors_last(tensor[:, t], "NCHW").contiguous() for t in range(tensor.shape[1])]
    height, width, channels = frames[0].shape
    pictures = [Image.frombytes("RGB", (width, height), bytes(memoryview(frame.flatten()))) for frame in frames]
    file = io.BytesIO()
    pictures[0].save(file, "GIF", save_all=True, append_images=pictures[1:], duration=int(1000 / fps), loop=0)
    return entry(
        tag, message(4, integer(1, height), integer(2, width), integer(3, channels), message(4, file.getvalue()))
    )


def audio(tag, tensor, sample_rate=44100):
    """A sound: numbers from -1 to 1."""
    samples = as_tensor(tensor).to(cresset.float32).squeeze()
    if samples.dim() != 1:
        raise AssertionError(f"audio: expected one channel of samples, got shape {tuple(samples.shape)}")
    numbers = (samples.clamp(-1, 1) * 32767).to(cresset.int16).tolist()
    file = io.BytesIO()
    with wave.open(file, "wb") as out:
        out.setparams((1, 2, sample_rate, len(numbers), "NONE", ""))
        out.writeframes(struct.pack(f"<{len(numbers)}h", *numbers))
    fields = (
        single(1, sample_rate),
        integer(2, 1),
        integer(3, len(numbers)),
        message(4, file.getvalue()),
        message(5, "audio/wav"),
    )
    return entry(tag, message(6, *fields))


def text(tag, text):
    """A text, in Markdown."""
    return entry(tag + "/text_summary", message(8, integer(1, 7), shape(1), message(8, text)), metadata("text"))


def pr_curve(tag, labels, predictions, num_thresholds=127, weights=None):
    """Precision and recall over thresholds from 0 to 1."""
    num_thresholds = min(num_thresholds, 127)
    labels, predictions = (
        as_tensor(labels).flatten().tolist(),
        as_tensor(predictions).to(cresset.float64).flatten().tolist(),
    )
    weights = [1.0] * len(labels) if weights is None else as_tensor(weights).flatten().tolist()
    right, wrong = [0.0] * num_thresholds, [0.0] * num_thresholds
    for label, prediction, weight in zip(labels, predictions, weights, strict=True):
        place = min(int(math.floor(prediction * (num_thresholds - 1))), num_thresholds - 1)
        (right if label else wrong)[place] += weight
    for i in range(num_thresholds - 2, -1, -1):
        right[i] += right[i + 1]
        wrong[i] += wrong[i + 1]
    rows = right, wrong, [wrong[0] - x for x in wrong], [right[0] - x for x in right]
    return pr_curve_raw(
        tag,
        *rows,
        [t / max(t + f, 1e-7) for t, f in zip(right, wrong)],
        [t / max(right[0], 1e-7) for t in right],
        num_thresholds,
    )


def pr_curve_raw(tag, tp, fp, tn, fn, precision, recall, num_thresholds=127, weights=None):
    """A curve that is computed already: six rows of one number a threshold."""
    rows = [as_tensor(row).flatten().tolist() for row in (tp, fp, tn, fn, precision, recall)]
    flat = [float(x) for row in rows for x in row]
    tensor = message(8, integer(1, 1), shape(6, len(rows[0])), singles(5, flat))
    return entry(tag, metadata("pr_curves", integer(1, 0) + integer(2, len(rows[0]))), tensor)


# ---- hyperparameters


def _plain(value):
    return value.item() if isinstance(value, cresset.Tensor) and value.numel() == 1 else value


def _number_or_text(name, value):
    """google.protobuf.Value, and its type in TensorBoard's list."""
    value = _plain(value)
    if isinstance(value, bool):
        return integer(4, value), 2
    if isinstance(value, (int, float)):
        return double(2, float(value)), 3
    if isinstance(value, str):
        return message(3, value), 1
    raise ValueError(
        "add_hparams: a value should be an int, a float, a string, a bool or a tensor of one element, got "
        f"{type(value).__name__} for {name!r}"
    )


def hparams(hparam_dict, metric_dict, hparam_domain_discrete=None):
    """The three summaries that say what the experiment varied and measured: experiment, session start, session end."""
    if not isinstance(hparam_dict, dict) or not isinstance(metric_dict, dict):
        raise TypeError(
            f"add_hparams: hparam_dict and metric_dict should be dictionaries, got {type(hparam_dict).__name__} and "
            f"{type(metric_dict).__name__}"
        )
    domains = hparam_domain_discrete or {}
    infos, started = [], []
    for name, value in hparam_dict.items():
        if value is None:
            continue
        encoded, kind = _number_or_text(name, value)
        domain = (
            [message(5, *(message(1, _number_or_text(name, v)[0]) for v in domains[name]))] if name in domains else []
        )
        infos.append(message(4, message(1, name), integer(4, kind), *domain))
        started.append(message(1, message(1, name), message(2, encoded)))
    metrics = [message(5, message(1, message(2, name))) for name in metric_dict]
    parts = {
        "_hparams_/experiment": message(2, *infos, *metrics),
        "_hparams_/session_start_info": message(3, *started),
        "_hparams_/session_end_info": message(4, integer(1, 1)),
    }
    return tuple(entry(tag, metadata("hparams", integer(1, 0) + content)) for tag, content in parts.items())
