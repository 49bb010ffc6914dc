"""Special functions where their usual sums fail."""

import math

import pytest

import cresset


class TestIncompleteGammaFunctionsOfLargeParameters:
    """At x = a the part below is 1/2 + 1 / (3 sqrt(2 pi a)) + ..., and moves by the normal distribution around it."""

    @pytest.mark.parametrize("a", [1e6, 1e8, 1e10, 1e15, 1e20, 1e30, 1e300])
    def test_half_lies_below_the_parameter(self, a):
        x = cresset.tensor(a, dtype=cresset.float64)
        below = 0.5 + 1 / (3 * math.sqrt(2 * math.pi * a))
        assert cresset.special.gammainc(x, x).item() == pytest.approx(below, rel=1e-12)
        assert cresset.special.gammaincc(x, x).item() == pytest.approx(1 - below, rel=1e-12)

    @pytest.mark.parametrize("a", [1e10, 1e15])
    def test_one_deviation_from_it(self, a):
        at = cresset.tensor(a - math.sqrt(a), dtype=cresset.float64)
        below = cresset.special.gammainc(cresset.tensor(a, dtype=cresset.float64), at).item()
        assert below == pytest.approx(math.erfc(math.sqrt(0.5)) / 2, rel=10 / math.sqrt(a))

    def test_far_from_it_nothing_or_all_lies_below(self):
        a = cresset.tensor([1e8, 1e30, 1e37])
        assert cresset.igamma(a, a / 2).tolist() == [0, 0, 0] and cresset.igammac(a, a / 2).tolist() == [1, 1, 1]
        assert cresset.igamma(a, a * 2).tolist() == [1, 1, 1] and cresset.igamma(a, a * 1e-37).tolist() == [0, 0, 0]

    @pytest.mark.parametrize("a", [100.0, 1e6, 1e30])
    def test_the_slope_is_the_density(self, a):
        x = cresset.tensor(a, dtype=cresset.float64, requires_grad=True)
        cresset.special.gammainc(x.detach(), x).backward()
        assert x.grad.item() == pytest.approx((1 - 1 / (12 * a)) / math.sqrt(2 * math.pi * a), rel=1e-5)

    def test_slopes_of_slopes(self):
        a = cresset.tensor([0.5, 3.0, 40.0], dtype=cresset.float64)
        x = cresset.tensor([0.7, 2.0, 45.0], dtype=cresset.float64, requires_grad=True)
        for function in (cresset.special.gammainc, cresset.special.gammaincc):
            assert cresset.autograd.gradgradcheck(lambda x: function(a, x), (x,))  # noqa: B023
