"""New tensors made by other functions, windows, and spectrograms of them."""

import math

import pytest

import cresset

WINDOWS = ["bartlett_window", "blackman_window", "hamming_window", "hann_window", "kaiser_window"]


def test_complex_numbers_from_parts():
    real, imag = cresset.tensor([3.0, 0.0]), cresset.tensor([4.0])
    assert cresset.complex(real, imag).tolist() == [3 + 4j, 4j]
    z = cresset.polar(cresset.tensor([5.0]), cresset.tensor([math.pi / 2]))
    assert z.tolist() == [pytest.approx(5j, abs=1e-6)]


def test_gradient_reaches_both_parts():
    real, imag = cresset.ones(1, requires_grad=True), cresset.ones(1, requires_grad=True)
    z = cresset.complex(real, imag)
    (z.real * 2 + z.imag * 3).sum().backward()
    assert (real.grad.item(), imag.grad.item()) == (2.0, 3.0)


def test_scalar_tensor_has_the_default_dtype():
    assert cresset.scalar_tensor(3).dtype == cresset.float32
    assert cresset.scalar_tensor(3, dtype=cresset.int64).dtype == cresset.int64


@pytest.mark.parametrize("offset", [-2, 0, 1])
@pytest.mark.parametrize("part", ["tril", "triu"])
def test_indices_of_a_triangle_point_at_it(part, offset):
    whole = cresset.ones(3, 4)
    rows, columns = getattr(cresset, part + "_indices")(3, 4, offset)
    marked = cresset.zeros(3, 4)
    marked[rows, columns] = 1
    assert cresset.equal(marked, getattr(cresset, part)(whole, offset))


def test_vander_counts_powers_down_or_up():
    x = cresset.tensor([2, 3], dtype=cresset.int32)
    assert cresset.vander(x, 3).tolist() == [[4, 2, 1], [9, 3, 1]]
    assert cresset.vander(x, 3, increasing=True).tolist() == [[1, 2, 4], [1, 3, 9]]
    assert cresset.vander(x).dtype == cresset.int64


def test_range_has_its_end():
    with pytest.warns(UserWarning, match="deprecated"):
        assert cresset.range(1, 3).tolist() == [1.0, 2.0, 3.0]
        assert cresset.range(3, 1, -1, dtype=cresset.int64).tolist() == [3, 2, 1]


def test_empty_permuted_lies_in_memory_as_asked():
    x = cresset.empty_permuted((2, 3, 4), (0, 2, 1), dtype=cresset.int64)
    assert x.shape == (2, 3, 4) and x.stride() == (12, 1, 3) and x.dtype == cresset.int64


@pytest.mark.parametrize("name", WINDOWS)
class TestEveryWindow:
    """What all windows have in common."""

    def test_symmetric_window_reads_the_same_backwards(self, name):
        window = getattr(cresset, name)(9, periodic=False, dtype=cresset.float64)
        assert cresset.allclose(window, window.flip(0))
        assert window[4].item() == pytest.approx(1.0)

    def test_periodic_window_is_a_symmetric_one_without_its_last(self, name):
        window = getattr(cresset, name)
        assert cresset.equal(window(8), window(9, periodic=False)[:8])

    def test_short_windows_are_ones(self, name):
        assert getattr(cresset, name)(0).shape == (0,)
        assert getattr(cresset, name)(1).tolist() == [1.0]

    def test_length_and_dtype_are_checked(self, name):
        with pytest.raises(RuntimeError, match="non-negative window_length, got window_length=-1"):
            getattr(cresset, name)(-1)
        with pytest.raises(RuntimeError, match="expects floating point dtypes"):
            getattr(cresset, name)(4, dtype=cresset.int64)


@pytest.mark.parametrize(
    "name", ["bartlett", "blackman", "cosine", "exponential", "gaussian", "hann", "kaiser", "nuttall"]
)
def test_signal_windows_are_symmetric_around_one(name):
    window = getattr(cresset.signal.windows, name)(7, dtype=cresset.float64)
    assert cresset.allclose(window, window.flip(0))
    assert window[3].item() == pytest.approx(1.0)


def test_spectrogram_of_a_wave_has_one_line():
    time = cresset.arange(64.0)
    wave = (2 * math.pi * 3 / 16 * time).cos()
    spectrum = cresset.stft(wave, 16, window=cresset.hann_window(16), return_complex=True).abs()
    assert spectrum.shape == (9, 17)
    assert spectrum[:, 8].argmax().item() == 3


@pytest.mark.parametrize("options", [{}, {"hop_length": 3}, {"win_length": 10}, {"normalized": True}])
def test_signal_comes_back_from_its_spectrogram(options):
    signal = cresset.arange(60, dtype=cresset.float64).sin().reshape(2, 30)
    options = {"window": cresset.hamming_window(options.get("win_length", 16), dtype=cresset.float64), **options}
    spectrum = cresset.stft(signal, 16, return_complex=True, **options)
    assert cresset.allclose(cresset.istft(spectrum, 16, length=30, **options), signal)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda x: cresset.complex(x, x.double()), RuntimeError, "Expected object of scalar type"),
        (lambda x: cresset.complex(x.long(), x.long()), RuntimeError, "Half, Float or Double"),
        (lambda x: cresset.complex(x, 1), TypeError, r"argument 'imag' \(position 2\) must be Tensor, not int"),
        (lambda x: cresset.tril_indices(-1, 2), RuntimeError, "row must be non-negative, got -1"),
        (lambda x: cresset.vander(x.reshape(1, -1)), RuntimeError, "one-dimensional"),
        (lambda x: cresset.range(1, 0), RuntimeError, "inconsistent with step sign"),
        (lambda x: cresset.range(0, 1, 0), RuntimeError, "step must be nonzero"),
        (lambda x: cresset.empty_permuted((2, 3), (1, 1)), RuntimeError, "Duplicate dim not allowed"),
        (lambda x: cresset.empty_permuted((2, 3), (1,)), RuntimeError, r"len\(physical_layout\) = 1"),
        (lambda x: cresset.stft(x, 4), RuntimeError, "requires the return_complex parameter"),
        (lambda x: cresset.stft(x, 4, hop_length=0, return_complex=True), RuntimeError, "expected hop_length > 0"),
        (lambda x: cresset.stft(x, 4, win_length=5, return_complex=True), RuntimeError, "0 < win_length <= n_fft=4"),
        (lambda x: cresset.stft(x, 99, center=False, return_complex=True), RuntimeError, "but got n_fft=99"),
        (lambda x: cresset.istft(x.reshape(1, -1), 4), RuntimeError, "requires a complex-valued input"),
        (lambda x: cresset.signal.windows.gaussian(5, std=0), ValueError, "must be positive, got: 0"),
        (lambda x: cresset.signal.windows.hann(-1), ValueError, "got M=-1"),
        (lambda x: cresset.signal.windows.general_cosine(5, a=[]), ValueError, "cannot be empty"),
    ],
)
def test_error_says_what_is_wrong(call, error, message):
    with pytest.raises(error, match=message):
        call(cresset.zeros(8))
