"""Finite differences and their sums."""

import cresset


def test_differences_and_their_sums():
    x = cresset.tensor([1.0, 4.0, 9.0, 16.0])
    assert x.diff().tolist() == [3.0, 5.0, 7.0]
    assert x.diff(n=2).tolist() == [2.0, 2.0]
    assert x.diff(prepend=cresset.zeros(1)).cumsum(0).tolist() == x.tolist()
    assert cresset.tensor([True, False, False]).diff().tolist() == [True, False]
    assert cresset.trapezoid(x, cresset.tensor([0.0, 1.0, 3.0, 4.0])).item() == 2.5 + 13.0 + 12.5
    assert cresset.cumulative_trapezoid(x, dx=2).tolist() == [5.0, 18.0, 43.0]


def test_gradient_is_exact_for_parabolas_on_any_grid():
    place = cresset.tensor([0.0, 1.0, 3.0, 4.0, 7.0], dtype=cresset.float64)
    (slope,) = cresset.gradient(place * place, spacing=(place,), edge_order=2)
    assert cresset.allclose(slope, 2 * place)


def test_the_ends_of_a_gradient_weigh_three_points():
    square = cresset.tensor([1.0, 4.0, 9.0, 16.0])
    # At the start (-1.5 * 1 + 2 * 4 - 0.5 * 9) / 0.5, at the end (0.5 * 4 - 2 * 9 + 1.5 * 16) / 0.5.
    assert cresset.gradient(square, spacing=0.5, edge_order=2)[0].tolist() == [4.0, 8.0, 12.0, 16.0]
    assert cresset.gradient(cresset.tensor([1, 4]))[0].tolist() == [3.0, 3.0]
