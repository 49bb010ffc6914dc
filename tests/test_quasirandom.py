"""SobolEngine: the first points, balance, and the same points however they are asked for."""

import doctest

import pytest

import cresset
from cresset.quasirandom import SobolEngine


def test_every_power_of_two_is_balanced():
    """Of 2**m points, each of the 2**m equal intervals of each dimension holds one."""
    for engine in (SobolEngine(50), SobolEngine(50, scramble=True, seed=3)):
        cells = (engine.draw(64) * 64).long()
        assert all(column.sort().values.tolist() == list(range(64)) for column in cells.T)


def test_points_do_not_depend_on_the_pieces_they_are_drawn_in():
    whole = SobolEngine(4, scramble=True, seed=0).draw(10)
    pieces = SobolEngine(4, scramble=True, seed=0)
    assert cresset.cat([pieces.draw(n) for n in (1, 2, 3, 4)]).equal(whole)
    assert SobolEngine(4, scramble=True, seed=0).fast_forward(6).draw(4).equal(whole[6:])
    assert pieces.reset().draw(10).equal(whole)


def test_the_largest_dimension_works():
    assert SobolEngine(SobolEngine.MAXDIM).draw(2)[1].eq(0.5).all()


def test_errors():
    with pytest.raises(ValueError, match="between 1 and 21201, got 0"):
        SobolEngine(0)
    engine = SobolEngine(1)
    engine.draw(1)
    with pytest.raises(ValueError, match="their number 3 is not a power of 2"):
        engine.draw_base2(1)


def test_examples():
    results = doctest.testmod(cresset.quasirandom, extraglobs={"cresset": cresset})
    assert results.attempted > 0 and results.failed == 0
