"""What is told as a warning begins as in PyTorch."""

import warnings

import pytest

import cresset

torch = pytest.importorskip("torch")


@pytest.mark.parametrize(
    "program",
    [
        lambda t: t.add(t.ones(2), 1, out=t.empty(3)),
        lambda t: t.fft.fft(t.ones(4), out=t.empty(3, dtype=t.complex64)),
        lambda t: t.ones(2)[t.tensor([1, 0], dtype=t.uint8)],
        lambda t: t.stft(t.ones(8), 4, return_complex=True),
    ],
)
def test_a_warning_begins_with_the_words_that_programs_filter_by(program):
    def beginning(t):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            program(t)
        return [(warning.category, " ".join(str(warning.message).split()[:5])) for warning in told]

    assert beginning(cresset) == beginning(torch)
