"""What `repr_html` promises: true facts, pictures that decode to the values, escaped and small."""

import base64
import math
import re
import struct
import zlib

import pytest

import cresset
from cresset.show.notebook import repr_html


def decode(html):
    """Width, height and palette (or None) of the PNG in `html`, and its rows of bytes."""
    png = base64.b64decode(re.search(r"data:image/png;base64,([^\"]+)", html)[1])
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    chunks, position = {}, 8
    while position < len(png):
        (length,) = struct.unpack_from(">I", png, position)
        kind, body = png[position + 4 : position + 8], png[position + 8 : position + 8 + length]
        assert struct.unpack_from(">I", png, position + 8 + length) == (zlib.crc32(kind + body),)
        chunks[kind], position = body, position + 12 + length
    width, height = struct.unpack_from(">II", chunks[b"IHDR"])
    pixels = zlib.decompress(chunks[b"IDAT"])
    stride = len(pixels) // height
    assert all(pixels[row * stride] == 0 for row in range(height))
    return width, height, chunks.get(b"PLTE"), [pixels[row * stride + 1 : (row + 1) * stride] for row in range(height)]


def test_facts_and_range():
    html = repr_html(cresset.tensor([[1.0, 2.0], [3.0, -6.0]], requires_grad=True))
    for fact in ("2 × 2", "float32", "cpu", "requires grad", "min −6 · mean 0 · max 3"):
        assert fact in html


def test_values_that_are_not_finite_are_counted_and_left_out_of_the_range():
    html = repr_html(cresset.tensor([math.nan, 1.0, 2.0, math.inf, -math.inf]))
    assert "1 nan · 2 inf" in html
    assert "min 1 · mean 1.5 · max 2" in html


def test_a_matrix_is_a_heat_map_of_its_values():
    width, height, palette, rows = decode(repr_html(cresset.tensor([[0.0, 1.0, 2.0], [math.nan, 2.0, 0.0]])))
    assert (width, height) == (3, 2)
    assert [list(row) for row in rows] == [[0, 127, 254], [255, 254, 0]]
    assert tuple(palette[3 * 255 :]) == (255, 0, 255)


def test_zero_is_the_middle_of_signed_values():
    *_, rows = decode(repr_html(cresset.tensor([[-1.0, 0.0, 4.0]])))
    assert list(rows[0]) == [95, 127, 254]


def test_three_channels_are_an_image():
    image = cresset.zeros(3, 8, 10)
    image[0, 0, 0] = 1.0
    image[2, 7, 9] = 0.2
    width, height, palette, rows = decode(repr_html(image))
    assert (width, height, palette) == (10, 8, None)
    assert rows[0][:6] == bytes([255, 0, 0, 0, 0, 0])
    assert rows[7][-3:] == bytes([0, 0, 51])


def test_a_vector_is_a_line_with_gaps():
    html = repr_html(cresset.tensor([0.0, 1.0, math.nan, 1.0, 0.0]))
    assert re.findall('points="([^"]+)"', html) == ["4,64 79,4", "229,4 304,64"]


def test_a_long_vector_shows_its_peak():
    vector = cresset.zeros(100_001)
    vector[50_000] = 1.0
    points = re.search('points="([^"]+)"', repr_html(vector))[1].split()
    assert sum(point.endswith(",4") for point in points) == 1


@pytest.mark.parametrize(
    "make",
    [
        lambda: cresset.tensor(3.5),
        lambda: cresset.empty(0, 3),
        lambda: cresset.empty(2, 3, device="meta"),
        lambda: cresset.full((5,), math.nan),
        lambda: cresset.full((4, 4), 7),
    ],
    ids=["scalar", "empty", "meta", "all nan", "all equal"],
)
def test_where_there_is_nothing_to_draw_there_is_no_picture(make):
    html = repr_html(make())
    assert "<img" not in html
    assert "<svg" not in html
    assert "tensor(" in html


@pytest.mark.parametrize(
    "dtype", ["float64", "float16", "bfloat16", "float8_e5m2", "complex64", "uint8", "int64", "bool"]
)
def test_every_dtype_is_drawn(dtype):
    width, height, *_ = decode(repr_html(cresset.eye(5).to(getattr(cresset, dtype))))
    assert (width, height) == (5, 5)


@pytest.mark.parametrize(
    "shape", [(100_000,), (1000, 700), (3, 300, 200), (1, 500, 500), (8, 3, 64, 64), (20, 3, 3, 3, 3, 3)]
)
def test_noise_of_any_shape_stays_small(shape):
    assert len(repr_html(cresset.randn(shape)).encode()) < 30_000


def test_names_are_escaped():
    Evil = type("<script>", (cresset.Tensor,), {})
    html = repr_html(cresset.ones(2).as_subclass(Evil))
    assert "<script>" not in html
    assert "&lt;script&gt;" in html


@pytest.mark.parametrize("values", [[-1e308, 1e308], [5e-324, 0.0], [-3e38, 3e38, 0.0]])
def test_extreme_values_do_no_harm(values):
    for tensor in (cresset.tensor(values, dtype=cresset.float64), cresset.tensor([values], dtype=cresset.float64)):
        assert "nan" not in repr_html(tensor)
