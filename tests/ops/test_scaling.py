"""What a GradScaler is made of, on the CPU."""

import math

import pytest

import cresset


def test_unscaling_finds_what_is_not_finite():
    grads, found = [cresset.tensor([2.0, 4.0]), cresset.tensor([6.0], dtype=cresset.float64)], cresset.tensor(0.0)
    assert cresset._amp_foreach_non_finite_check_and_unscale_(grads, found, cresset.tensor(0.5)) is None
    assert [g.tolist() for g in grads] == [[1, 2], [3]]
    assert found.item() == 0
    grads[1].fill_(math.nan)
    cresset._amp_foreach_non_finite_check_and_unscale_(grads, found, cresset.tensor(0.5))
    assert found.item() == 1


@pytest.mark.parametrize(
    ("scale", "good", "found", "expected"),
    [(4.0, 0, 0.0, (4.0, 1)), (4.0, 1, 0.0, (8.0, 0)), (4.0, 1, 1.0, (2.0, 0)), (2.0**127, 1, 0.0, (2.0**127, 0))],
)
def test_the_scale_follows_the_good_steps(scale, good, found, expected):
    scale, tracker = cresset.tensor(scale), cresset.tensor(good, dtype=cresset.int32)
    assert cresset._amp_update_scale_(scale, tracker, cresset.tensor(found), 2.0, 0.5, 2) is scale
    assert (scale.item(), tracker.item()) == expected
