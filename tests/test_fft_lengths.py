"""Fourier transforms of many lengths and arrangements of lines: each way to compute them against the definition."""

import math

import pytest

import cresset

# A product of each factor that has a pass, of several, primes (by the chirp), and lengths at which single lines become
# matrices.
LENGTHS = [
    1,
    2,
    3,
    4,
    5,
    6,
    7,
    8,
    9,
    11,
    13,
    16,
    17,
    19,
    23,
    24,
    27,
    29,
    31,
    32,
    35,
    37,
    60,
    64,
    74,
    100,
    121,
    128,
    210,
    256,
    257,
    360,
    512,
    625,
    1009,
]
TOLERANCES = {cresset.float32: 3e-6, cresset.float64: 1e-14}


def matrix(n, rows, sign):
    """exp(sign 2 pi i j k / n) for j in rows: the definition."""
    products = cresset.outer(cresset.as_tensor(rows), cresset.arange(n)) % n
    angles = products.double() * (sign * 2 * math.pi / n)
    return cresset.complex(angles.cos(), angles.sin())


def made(shape, dtype):
    cresset.manual_seed(0)
    return cresset.randn(shape, dtype=dtype), cresset.complex(
        cresset.randn(shape, dtype=dtype), cresset.randn(shape, dtype=dtype)
    )


def assert_near(result, expected, dtype):
    """The error beside the size of the whole result: small parts of a spectrum are as inexact as large ones."""
    assert result.shape == expected.shape
    assert (result - expected).abs().max() <= TOLERANCES[dtype] * expected.abs().pow(2).mean().sqrt()


@pytest.mark.parametrize("dtype", TOLERANCES, ids=str)
@pytest.mark.parametrize("n", LENGTHS)
def test_lengths(n, dtype):
    forward, backward = matrix(n, range(n), -1), matrix(n, range(n), 1)
    half = n // 2 + 1
    for lines in (1, 3, 19):
        real, numbers = made((lines, n), dtype)
        exact = numbers.to(cresset.complex128)
        assert_near(cresset.fft.fft(numbers), exact @ forward, dtype)
        assert_near(cresset.fft.ifft(numbers, norm="forward"), exact @ backward, dtype)
        spectrum = real.to(cresset.complex128) @ forward
        assert_near(cresset.fft.rfft(real), spectrum[:, :half], dtype)
        assert_near(cresset.fft.ihfft(real, norm="forward"), spectrum[:, :half].conj(), dtype)
        kept = spectrum[:, :half].to(numbers.dtype)
        assert_near(cresset.fft.irfft(kept, n), real.double(), dtype)
        assert_near(cresset.fft.hfft(kept.conj(), n) / n, real.double(), dtype)


@pytest.mark.parametrize("dtype", TOLERANCES, ids=str)
@pytest.mark.parametrize(
    "shape", [(2, 3, 2), (2, 12, 5), (3, 12, 40), (2, 15, 33), (1, 600, 3), (1, 600, 20), (1, 599, 2)]
)
def test_lines_that_do_not_follow_one_another(shape, dtype):
    real, numbers = made(shape, dtype)
    in_order = lambda function, x, *sizes: function(x.transpose(1, 2).contiguous(), *sizes).transpose(1, 2)  # noqa: E731
    for name, x, *sizes in [
        ("fft", numbers),
        ("ifft", numbers),
        ("rfft", real),
        ("irfft", numbers),
        ("irfft", numbers, 2 * shape[1] - 1),
    ]:
        function = getattr(cresset.fft, name)
        expected = in_order(function, x, *sizes)
        assert_near(function(x, *sizes, dim=1), expected, dtype)
        assert_near(
            function(x.transpose(0, 2).contiguous().transpose(0, 2), *sizes, dim=1), expected, dtype
        )  # other strides
    assert_near(cresset.fft.fft(numbers.conj(), dim=1), in_order(cresset.fft.ifft, numbers).conj() * shape[1], dtype)


@pytest.mark.parametrize("dtype", TOLERANCES, ids=str)
@pytest.mark.parametrize("n", [8192, 10000, 10007, 16380, 32769, 65536])
def test_long_lines(n, dtype):
    real, numbers = made((2, n), dtype)
    rows = [0, 1, 2, 7, n // 4, n // 3, n // 2 - 1, n // 2]
    forward = matrix(n, rows, -1).mT
    for x, transform in ((numbers, cresset.fft.fft), (real, cresset.fft.rfft)):
        exact = (x if x.is_complex() else x.to(numbers.dtype)).to(cresset.complex128) @ forward
        result = transform(x)
        assert (result[:, rows] - exact).abs().max() <= TOLERANCES[dtype] * math.sqrt(n)
        assert_near(transform(x.mT, dim=0).mT, result.to(cresset.complex128), dtype)
    assert_near(cresset.fft.ifft(cresset.fft.fft(numbers)), numbers.to(cresset.complex128), dtype)
    assert_near(cresset.fft.irfft(cresset.fft.rfft(real), n), real.double(), dtype)


def test_whole_numbers_stay_whole():
    ones = cresset.ones(1024)
    assert cresset.fft.fft(ones).tolist() == [1024] + [0] * 1023
    impulse = cresset.zeros(3, 4096)
    impulse[:, 0] = 1
    assert (cresset.fft.rfft(impulse) == 1).all()


def test_no_lines():
    assert cresset.fft.fft(cresset.empty(0, 8)).shape == (0, 8)
    assert cresset.fft.rfft2(cresset.empty(0, 6, 8)).shape == (0, 6, 5)
    assert cresset.fft.irfft(cresset.empty(0, 5, dtype=cresset.complex64)).shape == (0, 8)
