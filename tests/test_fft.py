"""Fourier transforms of real signals and to real ones: values from the definition, derivatives, batches of vmap."""

import cmath

import pytest

import cresset
from cresset.autograd import gradcheck, gradgradcheck


def made(*shape, dtype=cresset.float64):
    cresset.manual_seed(0)
    return cresset.randn(shape, dtype=dtype)


def by_definition(signal, sign=-1):
    n = len(signal)
    return [sum(x * cmath.exp(sign * 2j * cmath.pi * j * k / n) for j, x in enumerate(signal)) for k in range(n)]


@pytest.mark.parametrize("n", [1, 2, 5, 8])
def test_real_signals(n):
    signal = made(n)
    spectrum = by_definition(signal.tolist())
    half = cresset.tensor(spectrum[: n // 2 + 1], dtype=cresset.complex128)
    cresset.testing.assert_close(cresset.fft.rfft(signal), half)
    assert cresset.fft.rfft(signal).is_contiguous()
    cresset.testing.assert_close(cresset.fft.ihfft(signal), half.conj().resolve_conj() / n)
    cresset.testing.assert_close(cresset.fft.irfft(half, n), signal)
    cresset.testing.assert_close(cresset.fft.hfft(half, n) / n, cresset.fft.irfft(half.conj(), n))


@pytest.mark.parametrize("dim", [(0, 1), (1, 0), (0, 2, 1), (2,)])
def test_several_dimensions(dim):
    signal = made(3, 4, 5)
    spectrum = cresset.fft.fftn(signal, dim=dim)
    kept = spectrum.shape[dim[-1]] // 2 + 1
    cresset.testing.assert_close(cresset.fft.rfftn(signal, dim=dim), spectrum.narrow(dim[-1], 0, kept))
    sizes = [signal.shape[d] for d in dim]
    cresset.testing.assert_close(cresset.fft.irfftn(cresset.fft.rfftn(signal, dim=dim), sizes, dim=dim), signal)


def test_parts_that_contradict_a_real_signal_are_not_read():
    half = made(3, dtype=cresset.complex128)
    real = half.clone()
    real[0] = real[0].real
    real[2] = real[2].real
    cresset.testing.assert_close(cresset.fft.irfft(half, 4), cresset.fft.irfft(real, 4))


@pytest.mark.parametrize("n", [4, 5])
def test_derivatives(n):
    signal, half = made(2, n).requires_grad_(), made(2, 3, dtype=cresset.complex128).requires_grad_()
    for check in (gradcheck, gradgradcheck):
        for name in ("rfft", "ihfft", "rfft2", "ihfft2"):
            assert check(getattr(cresset.fft, name), (signal,))
        for name in ("irfft", "hfft"):
            assert check(lambda x: getattr(cresset.fft, name)(x, n), (half,))  # noqa: B023
        assert check(lambda x: cresset.fft.irfft2(x, (3, n)), (half,))
        assert check(lambda x: cresset.fft.irfft2(x, (n, 2), dim=(1, 0)), (half,))


def test_nodes_have_their_names():
    signal = made(4).requires_grad_()
    assert cresset.fft.rfft(signal).grad_fn.name() == "FftR2CBackward0"
    assert cresset.fft.irfft(cresset.fft.rfft(signal)).grad_fn.name() == "FftC2RBackward0"


def test_batches():
    signal = made(3, 4, 5)
    for function in (
        cresset.fft.rfft,
        lambda x: cresset.fft.rfft(x, dim=0),
        lambda x: cresset.fft.irfft(cresset.fft.rfft(x), 5),
    ):
        cresset.testing.assert_close(cresset.func.vmap(function)(signal), cresset.stack([function(x) for x in signal]))
        cresset.testing.assert_close(
            cresset.func.vmap(function, in_dims=1)(signal), cresset.stack([function(x) for x in signal.unbind(1)])
        )


def test_sizes_that_do_not_fit():
    with pytest.raises(RuntimeError, match="has a spectrum of 3, got 4"):
        cresset.fft_to_real(made(4, dtype=cresset.complex64), [0], 4, False, 1.0)
    with pytest.raises(RuntimeError, match="at least one"):
        cresset.fft_from_real(made(4), [], True, 1.0)
    with pytest.raises(RuntimeError, match="float32 or float64"):
        cresset.fft_from_real(made(4, dtype=cresset.complex64), [0], True, 1.0)


def test_a_number_has_no_dimension_to_transform():
    for transform in (cresset.fft.fft, cresset.fft.rfft2, cresset.fft.irfft2):
        with pytest.raises(IndexError, match="but tensor has no dimensions"):
            transform(cresset.tensor(1.0))


@pytest.mark.parametrize(
    ("call", "dtype"),
    [
        (lambda out: cresset.fft.fft(cresset.ones(4), out=out), cresset.complex64),
        (lambda out: cresset.linalg.inv(cresset.eye(3), out=out), cresset.float32),
    ],
    ids=["fft", "inv"],
)
def test_a_result_that_resizes_what_holds_something_warns(call, dtype):
    with pytest.warns(UserWarning, match="^An output with one or more elements was resized"):
        out = call(cresset.empty(2, dtype=dtype))
    assert out.numel() > 2
    assert call(cresset.empty(0, dtype=dtype)).numel() > 2  # without a word
