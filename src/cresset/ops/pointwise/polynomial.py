"""Orthogonal polynomials of degree n in x; a fraction of n is dropped, a negative n gives 0.

They are computed in double precision whatever the type; CUDA has low degrees of single precision in its arithmetic.
"""

from . import primitives as p
from .definition import pointwise
from .selection import where


def _polynomial(name, words, first=None, shifted=False):
    """Defines a polynomial; `first`, of Chebyshev ones, gives that of degree 1."""
    kind = name.removeprefix("shifted_").replace("polynomial_", "")
    primitive, low = getattr(p, kind), getattr(p, "low_chebyshev" if first else f"low_{kind}")

    def at(x):
        return 2 * x - 1 if shifted else x

    def formula(x, n):
        return p.in_type_of(primitive(at(p.in_double(x)), p.in_double(n)), x)

    formula.__name__ = formula.__qualname__ = name
    formula.__doc__ = f"The {words} polynomial of degree n at {'2 x - 1' if shifted else 'x'}."
    operator = pointwise(method=False)(formula)

    @operator.single
    def _(x, n):
        few = low(first(at(x)), at(x), n) if first else low(at(x), n)
        return where((n >= 2) & (n < 8) & (p.absolute(x) < 1000), few, formula(x, n))  # beyond, sums may overflow

    return operator


for _kind, _words, _first in (
    ("t", "first", lambda x: x),
    ("u", "second", lambda x: 2 * x),
    ("v", "third", lambda x: 2 * x - 1),
    ("w", "fourth", lambda x: 2 * x + 1),
):
    _polynomial(f"chebyshev_polynomial_{_kind}", f"Chebyshev, {_words} kind,", _first)
    _polynomial(f"shifted_chebyshev_polynomial_{_kind}", f"Chebyshev, {_words} kind,", _first, shifted=True)
_polynomial("hermite_polynomial_h", "(physicist's) Hermite")
_polynomial("hermite_polynomial_he", "(probabilist's) Hermite")
_polynomial("laguerre_polynomial_l", "Laguerre")
_polynomial("legendre_polynomial_p", "Legendre")
