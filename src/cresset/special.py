"""torch.special: special functions, and further names of functions found elsewhere."""

from ._native import face as _face
from .ops.registry import _operators as _native_operators
from .ops.registry import functions as _functions
from .show import missing_names as _missing_names

# Operators that PyTorch offers here only.
_HERE = """
    airy_ai bessel_j0 bessel_j1 bessel_y0 bessel_y1 chebyshev_polynomial_t chebyshev_polynomial_u chebyshev_polynomial_v
    chebyshev_polynomial_w entr erfcx hermite_polynomial_h hermite_polynomial_he i0e i1 i1e laguerre_polynomial_l
    legendre_polynomial_p log_ndtr modified_bessel_i0 modified_bessel_i1 modified_bessel_k0 modified_bessel_k1 ndtr
    ndtri scaled_modified_bessel_k0 scaled_modified_bessel_k1 shifted_chebyshev_polynomial_t
    shifted_chebyshev_polynomial_u shifted_chebyshev_polynomial_v shifted_chebyshev_polynomial_w spherical_bessel_j0
    xlog1py zeta""".split()
# Names here for functions of the main namespace.
_ELSEWHERE = {
    "digamma": "digamma", "erf": "erf", "erfc": "erfc", "erfinv": "erfinv", "exp2": "exp2", "expit": "sigmoid",
    "expm1": "expm1", "gammainc": "igamma", "gammaincc": "igammac",
    "gammaln": "lgamma", "i0": "i0", "log1p": "log1p", "logit": "logit", "logsumexp": "logsumexp",
    "multigammaln": "mvlgamma", "polygamma": "polygamma", "psi": "digamma",
    "round": "round", "sinc": "sinc", "softmax": "softmax", "log_softmax": "log_softmax", "xlogy": "xlogy",
}  # fmt: skip

__all__ = sorted([*_HERE, *_ELSEWHERE])

_found = {name: _native_operators[name] for name in _HERE}
_found |= {name: _functions[other] for name, other in _ELSEWHERE.items()}
globals().update({name: _face(found, f"special_{name}", "torch._C._special") for name, found in _found.items()})

__getattr__ = _missing_names.of(__name__)
