"""Products beside PyTorch: small integers, the rounding of half precision, and every layout and number of rows."""

import itertools

import numpy as np
import pytest

import cresset

torch = pytest.importorskip("torch")


@pytest.mark.parametrize(
    "m, k, n", [(1, 1, 1), (3, 70, 5), (32, 512, 48), (1, 300, 17), (0, 4, 3), (4, 0, 3), (130, 65, 131)]
)
@pytest.mark.parametrize("transposed", [(False, False), (False, True), (True, False), (True, True)])
def test_int_mm(m, k, n, transposed):
    rng = np.random.default_rng(0)
    a, b = rng.integers(-128, 128, (m, k), dtype=np.int8), rng.integers(-128, 128, (k, n), dtype=np.int8)

    def run(library):
        left, right = library.tensor(a.tolist(), dtype=library.int8), library.tensor(b.tolist(), dtype=library.int8)
        left, right = left.view(m, k), right.view(k, n)
        if transposed[0]:
            left = left.t().contiguous().t()
        if transposed[1]:
            right = right.t().contiguous().t()
        return library._int_mm(left, right)

    ours, theirs = run(cresset), run(torch)
    assert ours.dtype is cresset.int32
    assert ours.tolist() == theirs.tolist()
    strided = cresset.tensor(np.repeat(np.repeat(a, 2, 0), 3, 1).tolist(), dtype=cresset.int8).view(2 * m, 3 * k)[
        ::2, ::3
    ]
    assert (
        cresset._int_mm(strided, cresset.tensor(b.tolist(), dtype=cresset.int8).view(k, n)).tolist() == theirs.tolist()
    )


def test_int_mm_refuses_what_pytorch_refuses():
    for library in (cresset, torch):
        a = library.zeros(2, 3, dtype=library.int8)
        for left, right in ((a, a), (a[0], a.t()), (a, a.t()[0]), (a.float(), a.t())):
            with pytest.raises((RuntimeError, IndexError)):
                library._int_mm(left, right)


def halves(shape, seed):
    array = np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
    return cresset.tensor(array).bfloat16(), torch.tensor(array).bfloat16()


@pytest.mark.parametrize("beta, alpha", [(1, 1), (0.5, 0.7), (0, 2)])
def test_halves_are_rounded_where_pytorch_rounds_them(beta, alpha):
    matrix, left, right = halves((50, 40), 0), halves(50, 1), halves(40, 2)
    ours, theirs = (
        library.addr(*args, beta=beta, alpha=alpha)
        for library, args in zip((cresset, torch), zip(matrix, left, right), strict=True)
    )
    assert ours.float().tolist() == theirs.float().tolist()
    matrix, left, right = halves((6, 8), 3), halves((5, 6, 7), 4), halves((5, 7, 8), 5)
    ours, theirs = (
        library.addbmm(*args, beta=beta, alpha=alpha)
        for library, args in zip((cresset, torch), zip(matrix, left, right), strict=True)
    )
    assert ours.float().tolist() == theirs.float().tolist()


def test_bilinear_of_halves_is_rounded_twice():
    x, y, w = halves((10, 5), 6), halves((10, 6), 7), halves((4, 5, 6), 8)
    ours, theirs = (
        library.nn.functional.bilinear(*args) for library, args in zip((cresset, torch), zip(x, y, w), strict=True)
    )
    assert ours.float().tolist() == theirs.float().tolist()


@pytest.mark.parametrize("rows", [1, 2, 4, 5, 7, 8, 9, 12, 15, 16, 17, 33])
def test_any_number_of_rows_and_any_layout(rows):
    rng = np.random.default_rng(rows)
    for k, n in ((256, 64), (300, 65), (768, 100), (40, 70)):
        a, b = rng.standard_normal((rows, k)).astype(np.float32), rng.standard_normal((k, n)).astype(np.float32)
        expected = a.astype(np.float64) @ b.astype(np.float64)
        for first, second in itertools.product((False, True), repeat=2):
            left = cresset.tensor(a).t().contiguous().t() if first else cresset.tensor(a)
            right = cresset.tensor(b).t().contiguous().t() if second else cresset.tensor(b)
            np.testing.assert_allclose((left @ right).numpy(), expected, atol=2e-4)
            np.testing.assert_allclose((right.t() @ left.t()).numpy(), expected.T, atol=2e-4)
            out = cresset.addmm(cresset.ones(n), left, right, beta=0.5, alpha=2)
            np.testing.assert_allclose(out.numpy(), 0.5 + 2 * expected, atol=4e-4)
