"""Reading at the places of a grid: the kernel, and its gradients, agree with the same made of ordinary operators."""

import os
import subprocess
import sys

import pytest

import cresset
from cresset.ops.grid import MODES, PADDINGS, sampled


@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize("padding", PADDINGS)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("sizes", [(7, 9), (4, 6, 5)])
def test_the_kernel_agrees_with_ordinary_operators(sizes, mode, padding, align_corners):
    if mode == "bicubic" and len(sizes) == 3:
        return  # bicubic is for images
    x = cresset.randn(2, 3, *sizes, dtype=cresset.float64, requires_grad=True)
    places = (8, 10) if len(sizes) == 2 else (5, 6, 7)  # more than one block of places
    grid = (cresset.randn(2, *places, len(sizes), dtype=cresset.float64) * 0.8).requires_grad_()
    seed = cresset.randn(2, 3, *places, dtype=cresset.float64)
    ours = cresset.nn.functional.grid_sample(x, grid, mode, padding, align_corners)
    expected = sampled(x, grid, mode, padding, align_corners)
    assert cresset.allclose(ours, expected)
    wanted = [x] if mode == "nearest" else [x, grid]
    found, known = (cresset.autograd.grad(y, wanted, seed) for y in (ours, expected))
    for a, b in zip(found, known, strict=True):
        assert cresset.allclose(a, b)


def test_what_is_outside_adds_nothing_even_where_no_number_stands():
    x = cresset.full((1, 1, 2, 2), float("nan"))
    far = cresset.full((1, 1, 3, 2), 5.0)
    assert cresset.nn.functional.grid_sample(x, far, align_corners=False).tolist() == [[[[0.0, 0.0, 0.0]]]]


@pytest.mark.parametrize("channels, places", [(0, 4), (3, 0), (0, 0)])
def test_nothing_read_gives_gradients_of_zero(channels, places):
    x = cresset.ones(2, channels, 5, 6, requires_grad=True)
    grid = cresset.ones(2, 3, places, 2, requires_grad=True)
    out = cresset.nn.functional.grid_sample(x, grid, align_corners=False)
    assert out.shape == (2, channels, 3, places)
    out.sum().backward()
    assert x.grad.equal(cresset.zeros(2, channels, 5, 6)) and grid.grad.equal(cresset.zeros(2, 3, places, 2))


@pytest.mark.parametrize("mode", MODES)
def test_inside_vmap_a_batch_is_more_samples(mode):
    def gradients(x, grid):
        return cresset.func.grad(
            lambda a, b: cresset.nn.functional.grid_sample(a, b, mode, align_corners=False).sin().sum(), argnums=(0, 1)
        )(x, grid)

    x = cresset.randn(3, 2, 2, 5, 5, dtype=cresset.float64)
    grid = cresset.randn(3, 2, 4, 4, 2, dtype=cresset.float64) * 0.5
    together = cresset.func.vmap(gradients)(x, grid)
    for k in range(3):
        for a, b in zip(together, gradients(x[k], grid[k]), strict=True):
            assert cresset.allclose(a[k], b)


PROGRAM = """
import cresset
for dtype in (cresset.float32, cresset.float64):
    x = cresset.zeros(1, 1, 2, 2, dtype=dtype, requires_grad=True)
    grid = cresset.tensor([[[[0.0, 0.0], [-0.5, -0.5]]]], dtype=dtype)
    cresset.nn.functional.grid_sample(x, grid, align_corners=False).sum().backward()
    print(x.grad.flatten().tolist())
"""


@pytest.mark.parametrize("level", ["baseline", "avx2", "avx512"])
def test_gradients_of_images_at_every_level(level):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env={**os.environ, "CRESSET_ISA": level}, capture_output=True, text=True
    )
    # The middle of four elements, and the first of them.
    assert done.stdout.splitlines() == ["[1.25, 0.25, 0.25, 0.25]"] * 2, done.stderr
