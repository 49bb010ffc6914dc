"""Windows: the same from both ends, one in the middle, and refused when they cannot be."""

import pytest

import cresset

WINDOWS = ["bartlett_window", "blackman_window", "hamming_window", "hann_window", "kaiser_window"]


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


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: cresset.signal.windows.gaussian(5, std=0), "must be positive, got: 0"),
        (lambda: cresset.signal.windows.hann(-1), "got M=-1"),
        (lambda: cresset.signal.windows.general_cosine(5, a=[]), "cannot be empty"),
    ],
)
def test_error_says_what_is_wrong(call, message):
    with pytest.raises(ValueError, match=message):
        call()
