"""The von Mises distribution, the normal distribution of angles."""

import math

import cresset

from . import constraints
from .distribution import Distribution
from .utils import broadcast_all, lazy_property

__all__ = ["VonMises"]

# Polynomials for the modified Bessel functions I0 and I1 (Abramowitz and Stegun 9.8.1 to 9.8.4), lowest power first:
# below 3.75 in (x / 3.75)², above in 3.75 / x.
_SMALL = [
    (1.0, 3.5156229, 3.0899424, 1.2067492, 0.2659732, 0.360768e-1, 0.45813e-2),
    (0.5, 0.87890594, 0.51498869, 0.15084934, 0.2658733e-1, 0.301532e-2, 0.32411e-3),
]
_LARGE = [
    (0.39894228, 0.1328592e-1, 0.225319e-2, -0.157565e-2, 0.916281e-2, -0.2057706e-1, 0.2635537e-1, -0.1647633e-1,
        0.392377e-2),
    (0.39894228, -0.3988024e-1, -0.362018e-2, 0.163801e-2, -0.1031555e-1, 0.2282967e-1, -0.2895312e-1, 0.1787654e-1,
        -0.420059e-2),
]  # fmt: skip


def _polynomial(x, coefficients):
    result = coefficients[-1]
    for coefficient in reversed(coefficients[:-1]):
        result = coefficient + x * result
    return result


def _log_modified_bessel_fn(x, order=0):
    """log of the modified Bessel function of the first kind of order 0 or 1, for positive x."""
    if order not in (0, 1):
        raise AssertionError(f"order must be 0 or 1, got {order}")
    small = _polynomial((x / 3.75) ** 2, _SMALL[order])
    small = (x.abs() * small if order == 1 else small).log()
    large = x - 0.5 * x.log() + _polynomial(3.75 / x, _LARGE[order]).log()
    return cresset.where(x < 3.75, small, large)


class VonMises(Distribution):
    """Angles in radians around `loc` with a density proportional to exp(concentration cos(angle - loc)).

    >>> cresset.distributions.VonMises(cresset.tensor([1.0]), cresset.tensor([4.0])).mean
    tensor([1.])
    """

    arg_constraints = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real

    def __init__(self, loc, concentration, validate_args=None):
        self.loc, self.concentration = broadcast_all(loc, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        return self._expanded(VonMises, batch_shape, _instance)

    @property
    def mean(self):
        """The mean direction."""
        return self.loc

    @property
    def mode(self):
        return self.loc

    @lazy_property
    def variance(self):
        """One minus the mean resultant length."""
        return 1 - (_log_modified_bessel_fn(self.concentration, 1) - _log_modified_bessel_fn(self.concentration)).exp()

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        unscaled = self.concentration * (value - self.loc).cos()
        return unscaled - math.log(2 * math.pi) - _log_modified_bessel_fn(self.concentration)

    @cresset.no_grad()
    def sample(self, sample_shape=cresset.Size()):  # noqa: B008
        """Draws by rejection from a wrapped Cauchy distribution (Best and Fisher 1979), in double precision."""
        loc, kappa = self.loc.double(), self.concentration.double()
        tau = 1 + (1 + 4 * kappa**2).sqrt()
        rho = (tau - (2 * tau).sqrt()) / (2 * kappa)
        r = cresset.where(kappa < 1e-5, 1 / kappa + kappa, (1 + rho**2) / (2 * rho))

        shape = self._extended_shape(sample_shape)
        angle = loc.new_zeros(shape)
        done = cresset.zeros(shape, dtype=cresset.bool, device=loc.device)
        while not done.all():
            first, second, third = cresset.rand((3, *shape), dtype=loc.dtype, device=loc.device).unbind()
            z = (math.pi * first).cos()
            f = (1 + r * z) / (r + z)
            c = kappa * (r - f)
            accepted = (c * (2 - c) - second > 0) | ((c / second).log() + 1 - c >= 0)
            angle = cresset.where(accepted, (third - 0.5).sign() * f.acos(), angle)
            done = done | accepted
        return ((angle + math.pi + loc) % (2 * math.pi) - math.pi).to(self.loc.dtype)
