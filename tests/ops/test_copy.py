"""Copies of views, copies in which a view is replaced, copies in another dtype."""

import math
import struct

import pytest

import cresset


@pytest.mark.parametrize(
    ("scatter", "src_shape"),
    [
        (lambda x, src: cresset.diagonal_scatter(x, src, 1), (2,)),
        (lambda x, src: cresset.select_scatter(x, src, 1, -1), (2,)),
        (lambda x, src: cresset.slice_scatter(x, src, 1, 0, 3, 2), (2, 2)),
        (lambda x, src: cresset.as_strided_scatter(x, src, (2,), (2,), 1), (2,)),
    ],
)
class TestEveryScatter:
    """A copy of the whole in which a view is replaced."""

    def test_input_is_not_changed(self, scatter, src_shape):
        x = cresset.zeros(2, 3)
        result = scatter(x, cresset.ones(src_shape))
        assert x.sum().item() == 0
        assert result.sum().item() == cresset.ones(src_shape).numel()

    def test_gradient_goes_to_the_source_where_it_stands(self, scatter, src_shape):
        x, src = cresset.zeros(2, 3, requires_grad=True), cresset.ones(src_shape, requires_grad=True)
        result = scatter(x, src)
        result.sum().backward()
        assert cresset.equal(x.grad, 1 - result.detach())
        assert cresset.equal(src.grad, cresset.ones(src_shape))

    def test_source_must_have_the_shape_of_the_view(self, scatter, src_shape):
        with pytest.raises(RuntimeError, match="expected src to have a size equal to the slice of self"):
            scatter(cresset.zeros(2, 3), cresset.zeros(5))


COPIES = [
    ("as_strided", ((2,), (1,))),
    ("diagonal", ()),
    ("expand", ((4, 2, 3),)),
    ("narrow", (1, 0, 2)),
    ("permute", ((1, 0),)),
    ("select", (0, 1)),
    ("squeeze", ()),
    ("t", ()),
    ("transpose", (0, 1)),
    ("unfold", (1, 2, 1)),
    ("unsqueeze", (0,)),
    ("view", ((3, 2),)),
]


@pytest.mark.parametrize(("name", "arguments"), COPIES, ids=[name for name, _ in COPIES])
def test_copy_has_the_elements_of_the_view_in_memory_of_its_own(name, arguments):
    x = cresset.arange(6).reshape(2, 3)
    view, copy = getattr(x, name)(*arguments), getattr(cresset, name + "_copy")(x, *arguments)
    assert cresset.equal(view, copy)
    assert copy.data_ptr() != view.data_ptr()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: cresset.diag(x.unsqueeze(0)), "Supports 1D or 2D tensors. Got 3D"),
        (lambda x: cresset.diag_embed(x, 0, 1, 1), "diagonal dimensions cannot be identical 1, 1"),
        (lambda x: cresset.trace(x[0]), "expected a matrix, but got tensor with dim 1"),
        (lambda x: x[0].fill_diagonal_(1), "dimensions must larger than 1"),
        (lambda x: x.reshape(1, 2, 3).fill_diagonal_(1), "must be of equal length"),
    ],
)
def test_error_says_what_is_wrong(call, message):
    with pytest.raises(RuntimeError, match=message):
        call(cresset.zeros(2, 3))


def test_float16_is_rounded_as_ieee_says():
    """By the values that struct packs; the last few are too small, too large, or no numbers."""
    values = [math.sinh(k / 50) * (-1) ** k for k in range(590)] + [k * 2.0**-26 for k in range(200)]
    values += [1 + k * 2.0**-12 for k in range(100)] + [65519.99, -65504.0, 2.0**-25, 2.0**-25 * 1.0001, 0.0, -0.0]
    numbers = [struct.unpack("f", struct.pack("f", v))[0] for v in values if abs(v) < 65520]
    numbers = [v for v in numbers if abs(v) < 65520]
    got = cresset.tensor(numbers).to(cresset.float16).view(cresset.int16).tolist()
    assert got == [struct.unpack("h", struct.pack("e", v))[0] for v in numbers]
    special = cresset.tensor([65520.0, -1e30, math.inf, -math.inf] * 4).to(cresset.float16)
    assert special.tolist() == [math.inf, -math.inf, math.inf, -math.inf] * 4


def test_every_nan_becomes_the_same_float16():
    bits = cresset.tensor([0x7FC00000, 0x7FC12345, 0x7F800001, -0x400000, -0x7FFFFF] * 3, dtype=cresset.int32)
    halves = bits.view(cresset.float32).to(cresset.float16).view(cresset.int16)
    assert halves.tolist() == [0x7E00, 0x7E00, 0x7E00, 0xFE00 - 0x10000, 0xFE00 - 0x10000] * 3


@pytest.mark.parametrize("offset", [0, 1, 7, 16, 30])
@pytest.mark.parametrize("dtype", [cresset.float32, cresset.float64])
def test_large_results_are_written_whole_wherever_they_begin(offset, dtype):
    """They are streamed past the cache by whole lines, and what lies before the first and after the last line is
    not."""
    count = 6_000_003  # more than most caches hold of two operands and a result
    x = cresset.arange(count, dtype=dtype)
    memory = cresset.full((count + 64,), -1, dtype=dtype)
    cresset.add(x, x, out=memory[offset : offset + count])
    assert memory[offset : offset + count].equal(2 * x) and memory[offset + count - 1].item() == 2 * (count - 1)
    assert (memory[:offset] == -1).all() and (memory[offset + count :] == -1).all()
    cresset.add(x, cresset.ones(1, dtype=cresset.float16), out=memory[offset : offset + count])
    assert memory[offset : offset + count].equal(cresset.arange(1, count + 1, dtype=dtype))
    assert (memory[:offset] == -1).all() and (memory[offset + count :] == -1).all()


WIDTHS = [cresset.uint8, cresset.int16, cresset.float32, cresset.float64, cresset.complex128]


@pytest.mark.parametrize("dtype", WIDTHS, ids=str)
@pytest.mark.parametrize("length", [1, 2, 3, 4, 8, 16, 32, 64, 130])
def test_rows_of_a_view_are_copied_in_its_order(dtype, length):
    numbers = [[[(35 * i + 7 * j + k) % 251 for k in range(length)] for j in range(5)] for i in range(4)]
    x = cresset.tensor(numbers, dtype=dtype)
    assert x.transpose(0, 1).contiguous().tolist() == [[numbers[i][j] for i in range(4)] for j in range(5)]
    back = cresset.empty(5, 4, length, dtype=dtype).transpose(0, 1)
    assert back.copy_(x).tolist() == numbers


@pytest.mark.parametrize("dtype", WIDTHS, ids=str)
def test_elements_some_steps_apart_are_copied_in_their_order(dtype):
    numbers = [[(50 * i + k) % 251 for k in range(50)] for i in range(3)]
    x = cresset.tensor(numbers, dtype=dtype)
    for step in (2, 3):
        assert x[:, ::step].contiguous().tolist() == [row[::step] for row in numbers]
    assert x.flip(1).tolist() == [row[::-1] for row in numbers]
    assert x[:, ::2].flip(1).tolist() == [row[::2][::-1] for row in numbers]


@pytest.mark.parametrize("dtype", [cresset.float16, cresset.bfloat16], ids=str)
def test_halves_are_broadcast_by_rows_as_floats_are(dtype):
    cresset.manual_seed(0)
    x, row, column = (cresset.randn(shape, dtype=dtype) for shape in ((5, 1500), (1500,), (5, 1)))
    for a, b in ((x, row), (row, x), (x, column), (column, row), (x[:, :700], row[:700])):
        assert cresset.equal(a + b, (a.float() + b.float()).to(dtype))
        assert cresset.equal(a * b, (a.float() * b.float()).to(dtype))
    out = cresset.zeros(5, 1600, dtype=dtype)
    cresset.add(x, row, out=out[:, 50:1550])
    assert cresset.equal(out[:, 50:1550], x + row) and out[:, :50].any().item() is out[:, 1550:].any().item() is False
