"""Images in another size and read at the places of a grid, on CUDA: what the CPU gives, gradients too, the same bits on
every run."""

import pytest
from agreeing import agree, agree_with_gradients

import cresset as torch
from cresset.nn import functional


def noise(*shape, dtype=torch.float32, seed=1):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize(
    "mode, shape, sizes",
    [
        ("linear", (2, 3, 7), [(14,), (5,), (1,), (7,)]),
        ("bilinear", (2, 9, 5, 7), [(10, 14), (3, 4), (1, 1), (5, 9), (13, 2)]),
        ("bicubic", (1, 3, 6, 5), [(12, 10), (4, 3), (6, 5), (1, 11)]),
        ("trilinear", (1, 2, 3, 4, 5), [(6, 8, 10), (2, 2, 2), (3, 1, 9)]),
    ],
)
def test_every_size_between_others_is_made_and_taken_back(mode, shape, sizes, align_corners):
    for size in sizes:
        agree_with_gradients(
            lambda x, size=size: functional.interpolate(x, size=size, mode=mode, align_corners=align_corners),
            noise(*shape),
            tolerance=2e-5,
        )


@pytest.mark.parametrize("mode", ["bilinear", "bicubic", "lanczos"])
def test_filters_as_wide_as_the_step_are_those_of_the_cpu(mode):
    for size in ((3, 4), (1, 1), (11, 5), (6, 3), (2, 20)):
        agree_with_gradients(
            lambda x, size=size: functional.interpolate(x, size=size, mode=mode, antialias=True),
            noise(2, 9, 6, 13),
            tolerance=2e-5,
        )
    agree_with_gradients(
        lambda x: functional.interpolate(x, scale_factor=0.4, mode=mode, antialias=True),
        noise(1, 2, 9, 8, dtype=torch.float64),
        tolerance=1e-12,
    )


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact"])
def test_the_nearest_elements_are_those_of_the_cpu(mode):
    for shape, factor in (((2, 3, 7), 2.3), ((2, 11, 6, 5), (0.4, 1.7)), ((1, 2, 3, 4, 5), 2)):
        agree_with_gradients(lambda x, f=factor: functional.interpolate(x, scale_factor=f, mode=mode), noise(*shape))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_other_precisions_are_resized_too(dtype):
    tolerance = 1e-12 if dtype is torch.float64 else 1e-2
    agree(
        lambda x: functional.interpolate(x, scale_factor=1.5, mode="bilinear"),
        noise(2, 3, 6, 8, dtype=dtype),
        tolerance=tolerance,
    )


def test_a_resized_image_keeps_its_layout():
    x = noise(2, 4, 6, 6).to(memory_format=torch.channels_last)
    agree(lambda x: functional.interpolate(x, scale_factor=2, mode="bilinear"), x, tolerance=1e-5)
    assert functional.interpolate(x.cuda(), scale_factor=2, mode="bilinear").is_contiguous(
        memory_format=torch.channels_last
    )


def test_resizing_has_derivatives_of_every_order_and_samples():
    x = noise(2, 2, 3, 4).cuda().requires_grad_()
    y = functional.interpolate(x, scale_factor=2, mode="bicubic")
    (slope,) = torch.autograd.grad((y * y).sum(), x, create_graph=True)
    (bend,) = torch.autograd.grad(slope.sum(), x)
    once = functional.interpolate(torch.ones_like(x), scale_factor=2, mode="bicubic")
    (expected,) = torch.autograd.grad(functional.interpolate(x, scale_factor=2, mode="bicubic"), x, 2 * once)
    torch.testing.assert_close(bend, expected, rtol=1e-4, atol=1e-4)
    whole = functional.interpolate(x, scale_factor=2, mode="bilinear")
    batched = torch.func.vmap(lambda x: functional.interpolate(x[None], scale_factor=2, mode="bilinear")[0])(x)
    assert torch.equal(batched, whole)


def read_and_compared(image, grid, *how):
    """With the gradients of both; nearest elements do not change with the grid."""
    if how[0] != "nearest":
        agree_with_gradients(lambda x, g: functional.grid_sample(x, g, *how), image, grid, tolerance=1e-4)
        return
    agree_with_gradients(lambda x: functional.grid_sample(x, grid.to(x.device), *how), image, tolerance=1e-4)
    there = grid.cuda().requires_grad_()
    functional.grid_sample(image.cuda(), there, *how).sum().backward()
    assert not there.grad.any()


@pytest.mark.parametrize("padding_mode", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
@pytest.mark.parametrize("align_corners", [False, True])
def test_images_are_read_at_a_grid(mode, padding_mode, align_corners):
    image, grid = noise(2, 11, 6, 5), noise(2, 4, 7, 2, seed=2) * 0.8
    read_and_compared(image, grid, mode, padding_mode, align_corners)


@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
@pytest.mark.parametrize("padding_mode", ["zeros", "border", "reflection"])
def test_volumes_are_read_at_a_grid(mode, padding_mode):
    volume, grid = noise(2, 3, 4, 5, 6), noise(2, 3, 2, 4, 3, seed=2) * 0.8
    read_and_compared(volume, grid, mode, padding_mode, False)


def test_what_is_no_place_reads_zeros():
    image = noise(1, 2, 4, 4)
    grid = torch.tensor([[[[float("nan"), 0.0], [float("inf"), 0.0], [1e30, -1e30], [5.0, 0.0]]]])
    agree(lambda x, g: functional.grid_sample(x, g, align_corners=False), image, grid)
    agree(lambda x, g: functional.grid_sample(x, g, "nearest", "border", False), image, grid)


def test_the_gradient_of_a_crowded_image_has_the_same_bits_on_every_run():
    image, grid = noise(1, 5, 8, 8).cuda().requires_grad_(), (noise(1, 50, 40, 2, seed=2) * 0.2).cuda().requires_grad_()
    grad = noise(1, 5, 50, 40, seed=3).cuda()
    runs = [
        torch.autograd.grad(functional.grid_sample(image, grid, align_corners=False), (image, grid), grad)
        for _ in range(3)
    ]
    for again in runs[1:]:
        assert torch.equal(again[0], runs[0][0]) and torch.equal(again[1], runs[0][1])


def test_reading_at_a_grid_has_second_derivatives():
    def bends(device):
        image = noise(1, 2, 4, 4, dtype=torch.float64).to(device).requires_grad_()
        grid = (noise(1, 3, 3, 2, dtype=torch.float64, seed=2) * 0.4).to(device).requires_grad_()
        y = functional.grid_sample(image, grid, align_corners=False)
        slopes = torch.autograd.grad((y * y).sum(), (image, grid), create_graph=True)
        return torch.autograd.grad(sum((s * s).sum() for s in slopes), (image, grid))

    for got, expected in zip(bends("cuda"), bends("cpu"), strict=True):
        torch.testing.assert_close(got.cpu(), expected, rtol=1e-9, atol=1e-9)


def test_samples_of_vmap_are_read_at_their_own_grids():
    images, grids = noise(3, 2, 2, 4, 4).cuda(), (noise(3, 2, 3, 3, 2, seed=2) * 0.5).cuda()

    def read(image, grid):
        return functional.grid_sample(image, grid, align_corners=False)

    expected = torch.stack([read(i, g) for i, g in zip(images, grids, strict=True)])
    assert torch.equal(torch.func.vmap(read)(images, grids), expected)
