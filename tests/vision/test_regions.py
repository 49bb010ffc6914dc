"""Regions of feature maps, each against loops over pixels; and the operators that torchvision's own package asks
for."""

import math

import pytest

import cresset as torch
from cresset.standing_in import compiled_libraries
from cresset.vision import regions


@pytest.fixture
def maps():
    torch.manual_seed(0)
    return torch.randn(2, 8, 7, 9, dtype=torch.float64)


# Some leave the map, one is smaller than a pixel, one lies outside of it altogether.
ROIS = torch.tensor([[0, 0.0, 0.0, 8.0, 6.0], [1, 2.3, 1.1, 6.9, 5.2], [0, -3.0, -2.0, 4.0, 3.0],
    [1, 5.5, 4.5, 20.0, 20.0], [1, 3.2, 3.1, 3.3, 3.2], [0, 30.0, 30.0, 40.0, 40.0]], dtype=torch.float64)  # fmt: skip


def rounded(x):
    return int(math.copysign(math.floor(abs(x) + 0.5), x))


def cells_by_loops(maps, roi, scale, height, width, extra):
    """For each cell (i, j) of a region the pixels (y, x) in it."""
    index, x1, y1, x2, y2 = roi.tolist()
    x1, y1, x2, y2 = (rounded(v * scale) for v in (x1, y1, x2, y2))
    tall, wide = max(y2 - y1 + extra, 1), max(x2 - x1 + extra, 1)
    for i in range(height):
        for j in range(width):
            rows = range(
                max(math.floor(i * tall / height) + y1, 0), min(math.ceil((i + 1) * tall / height) + y1, maps.shape[2])
            )
            columns = range(
                max(math.floor(j * wide / width) + x1, 0), min(math.ceil((j + 1) * wide / width) + x1, maps.shape[3])
            )
            yield int(index), i, j, [(y, x) for y in rows for x in columns]


def test_roi_pool_is_the_largest_pixel_of_each_cell_and_says_where_it_is(maps):
    values, places = regions.roi_pool(maps, ROIS, 0.9, 2, 3)
    for k, roi in enumerate(ROIS):
        for index, i, j, pixels in cells_by_loops(maps, roi, 0.9, 2, 3, extra=1):
            for c in range(8):
                found = [(maps[index, c, y, x].item(), y * 9 + x) for y, x in pixels]
                want, where = max(found, key=lambda pair: pair[0]) if found else (0.0, -1)
                assert (values[k, c, i, j].item(), places[k, c, i, j].item()) == (want, where)


def test_ps_roi_pool_is_the_mean_of_each_cell_in_its_own_channel(maps):
    values, mapping = regions.ps_roi_pool(maps, ROIS, 0.9, 2, 2)
    for k, roi in enumerate(ROIS):
        for index, i, j, pixels in cells_by_loops(maps, roi, 0.9, 2, 2, extra=0):
            for c in range(2):
                channel = (c * 2 + i) * 2 + j
                want = sum(maps[index, channel, y, x].item() for y, x in pixels) / max(len(pixels), 1)
                assert (
                    values[k, c, i, j].item() == pytest.approx(want, abs=1e-12)
                    and mapping[k, c, i, j].item() == channel
                )


def test_ps_roi_align_reads_each_cell_in_its_own_channel(maps):
    from cresset.vision.ops import roi_align

    values, mapping = regions.ps_roi_align(maps, ROIS, 0.9, 2, 2, 2)
    everything = roi_align(maps, ROIS, 2, 0.9, 2, aligned=True)
    for c in range(2):
        for i in range(2):
            for j in range(2):
                assert torch.equal(values[:, c, i, j], everything[:, (c * 2 + i) * 2 + j, i, j])
    assert mapping[0].flatten().tolist() == list(range(8))


def test_position_sensitive_forms_need_channels_for_every_cell(maps):
    with pytest.raises(RuntimeError, match="multiple of pooling height"):
        regions.ps_roi_pool(maps, ROIS, 1.0, 3, 3)


def deformed_by_loops(x, w, offset, mask, bias, stride, padding, dilation, groups, offset_groups):
    n, channels, height, width = x.shape
    out_channels, per_group, kh, kw = w.shape
    oh, ow = offset.shape[-2:]

    def read(b, c, py, px):
        total, top, left = 0.0, math.floor(py), math.floor(px)
        for yy in (top, top + 1):
            for xx in (left, left + 1):
                if 0 <= yy < height and 0 <= xx < width:
                    total += x[b, c, yy, xx].item() * (1 - abs(py - yy)) * (1 - abs(px - xx))
        return total

    out = torch.zeros(n, out_channels, oh, ow, dtype=torch.float64)
    for b in range(n):
        for o in range(out_channels):
            for i in range(oh):
                for j in range(ow):
                    total = bias[o].item()
                    for q in range(per_group):
                        c = o // (out_channels // groups) * per_group + q
                        part = c // (channels // offset_groups)
                        for a in range(kh):
                            for e in range(kw):
                                tap = part * kh * kw + a * kw + e
                                py = i * stride[0] - padding[0] + a * dilation[0] + offset[b, 2 * tap, i, j].item()
                                px = j * stride[1] - padding[1] + e * dilation[1] + offset[b, 2 * tap + 1, i, j].item()
                                total += w[o, q, a, e].item() * mask[b, tap, i, j].item() * read(b, c, py, px)
                    out[b, o, i, j] = total
    return out


def deformable():
    torch.manual_seed(1)
    make = lambda *shape: torch.randn(*shape, dtype=torch.float64)
    # (x, weight, offset, mask, bias)
    return make(1, 4, 5, 6), make(2, 2, 3, 2), make(1, 2 * 2 * 6, 3, 3), torch.sigmoid(make(1, 2 * 6, 3, 3)), make(2)


def test_deform_conv2d_reads_where_the_offsets_say():
    x, w, offset, mask, bias = deformable()
    settings = ((2, 2), (1, 1), (1, 2), 2, 2)
    got = regions.deform_conv2d(x, w, offset, mask, bias, *settings, True)
    torch.testing.assert_close(got, deformed_by_loops(x, w, offset, mask, bias, *settings), rtol=1e-10, atol=1e-10)
    got = regions.deform_conv2d(x, w, torch.zeros_like(offset), mask, bias, *settings, False)
    torch.testing.assert_close(
        got, torch.nn.functional.conv2d(x, w, bias, (2, 2), (1, 1), (1, 2), 2), rtol=1e-10, atol=1e-10
    )


def test_deform_conv2d_can_be_differentiated():
    inputs = [t.requires_grad_() for t in deformable()]
    assert torch.autograd.gradcheck(lambda *t: regions.deform_conv2d(*t, (2, 2), (1, 1), (1, 2), 2, 2, True), inputs)


class TestOperatorsOfTorchvision:
    @pytest.fixture(autouse=True)
    def loaded(self):
        compiled_libraries.load("site-packages/torchvision/_C.so")

    @pytest.mark.parametrize(
        "name, arguments",
        [
            ("roi_align", (0.9, 2, 2, 2, True)),
            ("roi_pool", (0.9, 2, 2)),
            ("ps_roi_align", (0.9, 2, 2, 2)),
            ("ps_roi_pool", (0.9, 2, 2)),
        ],
    )
    def test_the_backward_operators_are_the_derivatives(self, maps, name, arguments):
        from cresset.vision import torchvision_operators as operators

        maps.requires_grad_()
        forward = {"roi_align": operators._roi_align}.get(name) or getattr(regions, name)
        result = forward(maps, ROIS, *arguments)
        pooled, *more = result if isinstance(result, tuple) else (result,)
        grad = torch.randn_like(pooled)
        (want,) = torch.autograd.grad(pooled, maps, grad)
        rest = {"roi_align": arguments[3:], "ps_roi_align": arguments[3:]}.get(name, ())
        settings = (
            (*arguments[:3], *maps.shape, *rest) if name != "ps_roi_align" else (*arguments[:3], *rest, *maps.shape)
        )
        got = getattr(torch.ops.torchvision, f"_{name}_backward")(grad, ROIS, *more, *settings)
        torch.testing.assert_close(got, want)
        again = getattr(torch.ops.torchvision, name)(maps.detach(), ROIS, *arguments)
        assert torch.equal(again[0] if more else again, pooled)

    def test_without_regions_the_gradient_is_zero(self, maps):
        got = torch.ops.torchvision._roi_align_backward(
            torch.ones(0, 8, 2, 2), torch.ones(0, 5), 1.0, 2, 2, *maps.shape, 2, True
        )
        assert got.shape == maps.shape and not got.any()

    def test_the_backward_of_deform_conv2d(self):
        tensors = [t.requires_grad_() for t in deformable()]
        settings = (2, 2, 1, 1, 1, 2, 2, 2, True)
        out = regions.deform_conv2d(*tensors, (2, 2), (1, 1), (1, 2), 2, 2, True)
        grad = torch.randn_like(out)
        want = torch.autograd.grad(out, tensors, grad)
        got = torch.ops.torchvision._deform_conv2d_backward(grad, *(t.detach() for t in tensors), *settings)
        torch.testing.assert_close(got, want)

    def test_an_operator_without_kernel_says_so_when_it_is_called(self):
        with pytest.raises(NotImplementedError, match="torchvision::qnms"):
            torch.ops.torchvision.qnms(torch.ones(1, 4), torch.ones(1), 0.5)

    def test_autocast_kernels_are_called_where_autocast_is_on(self):
        library = torch.library.Library("regions_test", "FRAGMENT")
        library.define("f(Tensor x) -> Tensor")
        library.impl("f", lambda x: x + 1, "CPU")
        library.impl("f", lambda x: x + 2, "AutocastCPU")
        assert torch.ops.regions_test.f(torch.zeros(1)).item() == 1.0
        with torch.autocast("cpu"):
            assert torch.ops.regions_test.f(torch.zeros(1)).item() == 2.0


def test_libraries_compiled_for_pytorch_are_refused_with_what_there_is_instead(tmp_path):
    with pytest.raises(
        OSError,
        match="compiled for PyTorch, which cresset cannot load; torch.nn.functional.scaled_dot_product_attention",
    ):
        torch.ops.load_library("/env/site-packages/flash_attn/flash_attn_2_cuda.so")
    unknown = tmp_path / "_C.so"
    unknown.write_bytes(b"whatever it is")
    with pytest.raises(OSError, match="torch.library"):
        torch.ops.load_library(unknown)
    with pytest.raises(OSError, match="there is no such file"):
        torch.ops.load_library(tmp_path / "absent.so")


def test_the_loops_of_torchaudio():
    compiled_libraries.load("torchaudio/lib/_torchaudio.abi3.so")
    assert torch.ops._torchaudio.is_align_available() is False and torch.ops._torchaudio.cuda_version() is None
    signal, out = torch.ones(1, 1, 4), torch.zeros(1, 1, 5)
    torch.ops.torchaudio._lfilter_core_loop(signal, torch.tensor([[-0.5, 1.0]]), out)
    assert out.flatten().tolist() == [0.0, 1.0, 1.5, 1.75, 1.875]
