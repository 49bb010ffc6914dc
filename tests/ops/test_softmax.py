"""Softmax: along any dimension, of extremes, and converting on the way."""

import math

import pytest

import cresset

INF = math.inf


def test_softmax_sums_to_one_along_any_dimension():
    x = cresset.arange(600.0).reshape(3, 20, 10) % 7
    for dim in (0, 1, 2, -1):
        assert x.softmax(dim).sum(dim).flatten().tolist() == pytest.approx([1.0] * (600 // x.size(dim)), rel=1e-6)
        assert x.log_softmax(dim).exp().flatten().tolist() == pytest.approx(x.softmax(dim).flatten().tolist(), rel=1e-5)


def test_softmax_of_known_values_and_of_extremes():
    assert cresset.tensor([0.0, math.log(3)]).softmax(0).tolist() == pytest.approx([0.25, 0.75])
    assert cresset.tensor([1000.0, 1000.0]).softmax(0).tolist() == [0.5, 0.5]
    assert cresset.tensor([-INF, 0.0]).softmax(0).tolist() == [0.0, 1.0]
    assert all(math.isnan(v) for v in cresset.tensor([-INF, -INF]).softmax(0).tolist())
    assert cresset.tensor([0.0, -1e6]).log_softmax(0).tolist() == [0.0, -1e6]


def test_softmax_can_convert_on_the_way():
    x = cresset.zeros(2, dtype=cresset.float16)
    assert x.softmax(0).dtype == cresset.float16 and x.softmax(0, dtype=cresset.float64).dtype == cresset.float64
    with pytest.raises(NotImplementedError, match="not implemented for 'Long'"):
        cresset.arange(3).softmax(0)


@pytest.mark.parametrize("n", [1, 3, 10, 16, 32, 33])
def test_short_rows_are_apart_from_their_neighbors(n):
    """Rows that are computed side by side: what is no number in one is in no other, and each is what it is alone."""
    x = cresset.randn(70, n)
    x[5, 0] = math.nan
    x[69] = -INF
    for function in (cresset.softmax, cresset.log_softmax):
        together = function(x, 1)
        for row in range(70):
            alone = function(x[row : row + 1], 1)
            assert cresset.equal(alone.isnan(), together[row : row + 1].isnan())
            assert alone.nan_to_num().tolist() == together[row : row + 1].nan_to_num().tolist()
        assert together.isnan().any(1).nonzero().flatten().tolist() == [5, 69]
