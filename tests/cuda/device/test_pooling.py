"""Pooling on a CUDA device: values, indices and gradients as on the CPU."""

import pytest
from agreeing import agree, agree_with_gradients

import cresset as torch
from cresset.nn import functional as F


def image(*shape, dtype=torch.float32, last=False):
    torch.manual_seed(len(shape))
    x = (torch.randn(*shape) * 4).to(dtype)
    return x.to(memory_format=torch.channels_last if len(shape) == 4 else torch.channels_last_3d) if last else x


PROGRAMS = {
    "max": lambda x: F.max_pool2d(x, 3, 2, 1),
    "max dilated": lambda x: F.max_pool2d(x, 2, 1, 0, 2),
    "max ceil": lambda x: F.max_pool2d(x, (3, 2), ceil_mode=True),
    "mean": lambda x: F.avg_pool2d(x, 3, 2, 1),
    "mean without padding": lambda x: F.avg_pool2d(x, 3, 2, 1, ceil_mode=True, count_include_pad=False),
    "mean by a number": lambda x: F.avg_pool2d(x, 2, divisor_override=3),
    "adaptive mean": lambda x: F.adaptive_avg_pool2d(x, (3, 4)),
    "mean of all": lambda x: F.adaptive_avg_pool2d(x, 1),
    "adaptive max": lambda x: F.adaptive_max_pool2d(x, (3, 4)),
    "evenly": lambda x: F.adaptive_avg_pool2d(x, (11, 4)) + F.adaptive_max_pool2d(x, (1, 4)),
}


@pytest.mark.parametrize("last", [False, True], ids=["planes", "channels innermost"])
@pytest.mark.parametrize("program", PROGRAMS)
def test_images(program, last):
    for dtype, tolerance in ((torch.float32, 1e-6), (torch.bfloat16, 2e-2)):
        for width in (13, 12):  # lines of whole vectors, and others
            agree_with_gradients(PROGRAMS[program], image(2, 3, 11, width, dtype=dtype, last=last), tolerance=tolerance)


def test_signals_and_volumes():
    for program, shape in (
        (lambda x: F.max_pool1d(x, 3, 2, 1), (2, 3, 11)),
        (lambda x: F.avg_pool1d(x, 3, 2, 1), (3, 11)),
        (lambda x: F.max_pool3d(x, 3, 2, 1), (2, 3, 5, 4, 6)),
        (lambda x: F.avg_pool3d(x, 2), (2, 3, 5, 4, 6)),
    ):
        agree_with_gradients(program, image(*shape, dtype=torch.float64), tolerance=1e-12)
    agree_with_gradients(lambda x: F.max_pool3d(x, 2), image(2, 3, 5, 4, 6, last=True))


def test_indices_and_the_way_back():
    x = image(2, 3, 8, 8)
    x[0, 0, 1, 1] = float("nan")
    agree(lambda x: F.max_pool2d(x, 2, return_indices=True), x)
    agree(lambda x: F.max_pool2d(x.long(), 3, 2, return_indices=True), image(2, 3, 8, 8))
    agree(lambda x: F.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), 2), image(2, 3, 8, 8))


def test_views_are_read_where_they_lie():
    agree_with_gradients(lambda x: F.max_pool2d(x[:, ::2, 1:, ::2], 2), image(2, 4, 9, 12))
    agree(lambda x: F.avg_pool2d(x.transpose(2, 3), 2), image(2, 4, 9, 12), tolerance=1e-6)


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_one_mean_of_each_plane_and_its_gradient(rank):
    x = torch.randn(2, 3, *(9, 8, 7)[:rank], generator=torch.Generator().manual_seed(1))
    pool = getattr(torch.nn.functional, f"adaptive_avg_pool{rank}d")
    agree_with_gradients(lambda x: pool(x, 1), x, tolerance=1e-5)


@pytest.mark.parametrize(
    "window",
    [dict(kernel_size=2), dict(kernel_size=3, stride=2, padding=1), dict(kernel_size=3, stride=2, ceil_mode=True)],
)
def test_means_over_windows_with_and_without_padding(window):
    x = torch.randn(2, 3, 7, 9, generator=torch.Generator().manual_seed(1))
    agree_with_gradients(lambda x: torch.nn.functional.avg_pool2d(x, **window), x, tolerance=1e-5)


def test_lines_of_results_that_are_whole_vectors():
    for width in (16, 24):
        x = image(2, 3, 18, width)
        for program in (
            lambda x: F.avg_pool2d(x, 2),
            lambda x: F.max_pool2d(x, 2),
            lambda x: F.avg_pool2d(x, 3, 2, 1, count_include_pad=False),
            lambda x: F.max_pool2d(x, 3, 2, 1),
            lambda x: F.max_pool2d(x, (2, 5), (2, 4), (0, 2)),
            lambda x: F.interpolate(x, scale_factor=2, mode="area"),
        ):
            agree_with_gradients(program, x, tolerance=1e-6)
    agree_with_gradients(lambda x: F.max_pool3d(x, 2), image(2, 3, 4, 6, 8))
    indices = agree_indices(image(2, 3, 18, 16), 3)
    assert indices.max() < 18 * 16


def agree_indices(x, window):
    agree(lambda x: F.max_pool2d(x, window, 2, 1, return_indices=True)[1], x)
    return F.max_pool2d(x.cuda(), window, 2, 1, return_indices=True)[1]


def test_means_and_maxima_of_large_windows():
    x = image(2, 3, 48, 80)
    agree_with_gradients(lambda x: F.adaptive_avg_pool2d(x, (3, 5)), x, tolerance=1e-6)
    agree_with_gradients(lambda x: F.adaptive_avg_pool2d(x, (5, 3)), x, tolerance=1e-6)  # windows that overlap
    agree_with_gradients(lambda x: F.avg_pool2d(x, (9, 40), (7, 11), (4, 20)), x, tolerance=1e-6)
    agree_with_gradients(lambda x: F.adaptive_max_pool2d(x, (3, 5)), x)
    agree_with_gradients(lambda x: F.max_pool2d(x, 8), x)
