"""Joining, rearranging, transposing and making tensors on a CUDA device: what the CPU gives."""

import pytest
from agreeing import agree, agree_with_gradients

import cresset as torch
from cresset.nn import functional as F

WIDTHS = [torch.int8, torch.float16, torch.float32, torch.float64, torch.complex128]  # 1, 2, 4, 8 and 16 bytes


def table(*shape, dtype=torch.float32):
    torch.manual_seed(len(shape))
    return (torch.randn(*shape) * 9).to(dtype)


class TestJoining:
    @pytest.mark.parametrize("dtype", WIDTHS)
    def test_along_every_dimension(self, dtype):
        a, b = table(3, 4, 5, dtype=dtype), table(3, 4, 5, dtype=dtype) * 2
        agree(lambda a, b: [torch.cat([a, b], d) for d in range(3)] + [torch.stack([a, b], d) for d in range(4)], a, b)

    def test_pieces_of_all_kinds(self):
        a = table(4, 8, 4)
        agree(lambda a: torch.cat([-a[..., 2:4], a[..., :2]], -1), a)
        agree(lambda a: torch.cat([a[:, 1:3], a, a[:, :0]], 1), a)
        agree(lambda a: torch.cat([a.transpose(0, 1), a.transpose(0, 1)], -1), a)
        agree(lambda a: torch.cat([a, a.long(), a > 0]), a)
        agree(lambda a: torch.cat([torch.empty(0, device=a.device), a]), a)
        agree(lambda a: torch.cat([a[i : i + 1, :, 1:] for i in range(4)] * 12), a)
        agree(lambda a: torch.stack([a[0, 0, 0], a[1, 1, 1]]), a)
        agree(lambda a: torch.cat([a, a], 1).contiguous(), table(2, 3, 4, 5).to(memory_format=torch.channels_last))
        agree(lambda a: torch.cat([a[0].expand(3, 8, 4), a]), a)

    def test_gradient(self):
        agree_with_gradients(lambda a, b: torch.cat([a, b], 1), table(2, 3), table(2, 4))


class TestTransposing:
    @pytest.mark.parametrize("dtype", WIDTHS)
    def test_tiles(self, dtype):
        x = table(3, 40, 70, dtype=dtype)
        agree(lambda x: [x.permute(p).contiguous() for p in ((0, 2, 1), (2, 1, 0), (1, 0, 2), (1, 2, 0))], x)
        agree(
            lambda x: [
                x[0].t().contiguous(),
                x[:, 3:38, 5:].transpose(1, 2).contiguous(),
                x[:, ::2, ::3].transpose(1, 2).contiguous(),
            ],
            x,
        )

    def test_many_dimensions(self):
        x = table(2, 3, 9, 33, 10)
        agree(lambda x: [x.permute(p).contiguous() for p in ((0, 3, 2, 4, 1), (4, 3, 2, 1, 0), (0, 3, 2, 1, 4))], x)

    def test_pairs_of_halves(self):
        x = table(2, 3, 70, 90, dtype=torch.bfloat16)
        agree(
            lambda x: [
                x.transpose(2, 3).contiguous(),
                x.permute(0, 2, 3, 1).contiguous(),
                x[..., 1:].transpose(2, 3).contiguous(),
                x[..., :65].transpose(2, 3).contiguous(),
            ],
            x,
        )

    def test_with_conversion(self):
        agree(lambda x: x.t().to(torch.float16).contiguous(), table(20, 30))


class TestRearranging:
    @pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.bool, torch.complex128])
    @pytest.mark.parametrize("shape", [(5, 7), (3, 8, 16), (2, 1, 4)])
    def test_triangles(self, dtype, shape):
        agree(
            lambda x: (
                [f(x, k) for k in (-2, 0, 1, 9) for f in (torch.tril, torch.triu)] + [x.mT.tril(), x.clone().triu_(1)]
            ),
            table(*shape, dtype=dtype),
        )

    def test_flip_roll_repeat(self):
        x = table(3, 8, 16)
        agree(
            lambda x: [
                x.flip(0),
                x.flip(0, -1),
                x.roll(2, -1),
                x.roll(3),
                x.roll((1, -2), (0, 2)),
                x.repeat(2, 1, 1, 3),
                x[0, 0, 0].flip(()),
            ],
            x,
        )
        agree_with_gradients(lambda x: x.flip(1).roll(1, 0).repeat(1, 2, 1), x)

    @pytest.mark.parametrize("mode", ["constant", "reflect", "replicate", "circular"])
    def test_padding(self, mode):
        agree_with_gradients(lambda x: F.pad(x, (2, 1, 0, 3), mode=mode), table(2, 3, 5, 6))

    def test_patches(self):
        agree_with_gradients(lambda x: F.unfold(x, 2, padding=1, stride=2), table(2, 3, 5, 6))
        agree_with_gradients(lambda x: F.fold(x, (5, 6), 2, padding=1), table(2, 12, 42), tolerance=1e-5)
        agree(lambda x: F.one_hot(x, 7), torch.arange(6).reshape(2, 3))

    def test_resampling(self):
        x = table(2, 3, 5, 6)
        agree_with_gradients(lambda x: F.interpolate(x, scale_factor=2), x, tolerance=1e-5)
        agree_with_gradients(lambda x: F.interpolate(x, size=(7, 4), mode="bilinear"), x, tolerance=1e-5)
        grid = torch.linspace(-1.2, 1.2, 2 * 3 * 4 * 2).reshape(2, 3, 4, 2)
        for padding in ("zeros", "border"):
            agree_with_gradients(
                lambda x, g, p=padding: F.grid_sample(x, g, padding_mode=p, align_corners=False),
                x,
                grid,
                tolerance=1e-3,
            )


def made(program):
    expected, got = program("cpu"), program("cuda")
    assert got.is_cuda and got.dtype == expected.dtype and torch.equal(got.cpu(), expected)


class TestMaking:
    @pytest.mark.parametrize(
        "dtype", [torch.int64, torch.int32, torch.uint8, torch.float32, torch.float64, torch.float16, torch.bfloat16]
    )
    def test_ranges(self, dtype):
        made(lambda d: torch.arange(11, dtype=dtype, device=d))
        made(lambda d: torch.arange(9, 1, -2, dtype=dtype, device=d))
        made(lambda d: torch.arange(0, 0, dtype=dtype, device=d))
        for steps in (0, 1, 2, 13):
            made(lambda d, n=steps: torch.linspace(2, 9, n, dtype=dtype, device=d))
        made(lambda d: torch.eye(3, 5, dtype=dtype, device=d))

    def test_spaces(self):
        made(lambda d: torch.arange(-1, 2, 0.25, device=d))
        made(lambda d: torch.linspace(-2 + 1j, 9, 13, dtype=torch.complex64, device=d))
        torch.testing.assert_close(torch.logspace(-2, 2, 9, device="cuda").cpu(), torch.logspace(-2, 2, 9))

    def test_pairs_of_triangles(self):
        for rows, columns in ((0, 3), (1, 1), (3, 5), (5, 3), (4, 4)):
            for offset in (-6, -2, 0, 1, 3, 9):
                made(lambda d, s=(rows, columns, offset): torch.tril_indices(*s, device=d))
                made(lambda d, s=(rows, columns, offset): torch.triu_indices(*s, dtype=torch.int32, device=d))


MODES = ["constant", "reflect", "replicate", "circular"]


class TestPadding:
    @pytest.mark.parametrize("dtype", WIDTHS)
    @pytest.mark.parametrize("mode", MODES)
    def test_of_every_width(self, mode, dtype):
        agree(lambda x: F.pad(x, (2, 1, 0, 3), mode=mode), table(2, 3, 5, 4, dtype=dtype))

    @pytest.mark.parametrize("mode", MODES)
    def test_amounts_of_all_kinds(self, mode):
        x = table(2, 4, 5, 6, 7)
        for pad in [(6, 6), (-2, 3, 4, -1), (1, 2, 3, 4, 3, 0), (0, 0, 0, 0, 2, 2), (-3, -3, -2, 5)]:
            drop = 3 - len(pad) // 2
            part = x.flatten(0, drop) if drop else x
            agree_with_gradients(lambda x, pad=pad: F.pad(x, pad, mode=mode), part, tolerance=1e-6)

    @pytest.mark.parametrize("mode", MODES)
    def test_images_whose_channels_lie_last(self, mode):
        for channels in (1, 3, 8):
            x = table(2, channels, 5, 4).to(memory_format=torch.channels_last)
            agree_with_gradients(lambda x: F.pad(x, (2, 1, 3, 0), mode=mode), x, tolerance=1e-6)

    def test_a_constant_in_dimensions_far_apart(self):
        agree(lambda x: F.pad(x, (1, 0, 0, 0, 0, 0, 2, 1, 0, 0, 0, 3), value=7), table(2, 3, 2, 3, 2, 3))
