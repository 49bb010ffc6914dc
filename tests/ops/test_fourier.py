"""Spectrograms, and the way back. `tests/test_fft.py` has the transforms of torch.fft."""

import math

import pytest

import cresset


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


def test_a_missing_window_is_told_where_the_program_calls():
    signal = cresset.ones(8)
    with pytest.warns(UserWarning, match="^A window was not provided") as told:
        spectrum = cresset.stft(signal, 4, return_complex=True)
        cresset.istft(spectrum, 4)
    assert [warning.filename for warning in told] == [__file__, __file__]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda x: cresset.stft(x, 4), RuntimeError, "requires the return_complex parameter"),
        (lambda x: cresset.stft(x, 4, hop_length=0, return_complex=True), RuntimeError, "expected hop_length > 0"),
        (lambda x: cresset.stft(x, 4, win_length=5, return_complex=True), RuntimeError, "0 < win_length <= n_fft=4"),
        (lambda x: cresset.stft(x, 99, center=False, return_complex=True), RuntimeError, "but got n_fft=99"),
        (lambda x: cresset.istft(x.reshape(1, -1), 4), RuntimeError, "requires a complex-valued input"),
    ],
)
def test_error_says_what_is_wrong(call, error, message):
    with pytest.raises(error, match=message):
        call(cresset.zeros(8))
