"""How long does a pointwise operator take on a million numbers?"""

from .harness import benchmark

SIZE = 1_000_000


def inputs(lib):
    """Numbers of both signs, between 0 and 1, from 0.1 to 5.1, and up to 30 from 0."""
    lib.manual_seed(0)
    return lib.randn(SIZE), lib.rand(SIZE), 5 * lib.rand(SIZE) + 0.1, 10 * lib.randn(SIZE)


def over(name, call):
    """A benchmark of `call(lib, normal, unit, positive, wide)`."""

    def body(lib):
        given = inputs(lib)
        return lambda: call(lib, *given)

    body.__name__ = name
    return benchmark(unit="us", seconds=0.05)(body)


# Plain functions, by the numbers that they are defined on.
OF_ANY = """abs neg exp exp2 expm1 sin cos tan atan sinh cosh tanh asinh erf erfc sigmoid floor ceil round trunc frac
sign square relu isnan isfinite deg2rad sinc""".split()
OF_UNIT = "log log2 log10 log1p sqrt rsqrt reciprocal asin acos atanh erfinv logit".split()
OF_TWO = """add sub mul div atan2 hypot fmod remainder floor_divide maximum minimum fmax copysign logaddexp nextafter
heaviside""".split()
SPECIAL = "airy_ai bessel_j0 bessel_j1 i0 i0e i1 i1e spherical_bessel_j0 erfcx log_ndtr".split()
SPECIAL_OF_POSITIVE = """bessel_y0 bessel_y1 modified_bessel_k0 modified_bessel_k1 gammaln digamma""".split()
POLYNOMIALS = """chebyshev_polynomial_t chebyshev_polynomial_u hermite_polynomial_h hermite_polynomial_he
laguerre_polynomial_l legendre_polynomial_p""".split()

for name in OF_ANY:
    globals()[name] = over(name, lambda lib, x, unit, positive, wide, name=name: getattr(lib, name)(x))
for name in OF_UNIT:
    globals()[name] = over(name, lambda lib, x, unit, positive, wide, name=name: getattr(lib, name)(unit))
for name in OF_TWO:
    globals()[name] = over(name, lambda lib, x, unit, positive, wide, name=name: getattr(lib, name)(x, positive))
for name in SPECIAL:
    globals()[name] = over(name, lambda lib, x, unit, positive, wide, name=name: getattr(lib.special, name)(x))
    wide_name = f"{name}_wide"
    globals()[wide_name] = over(
        wide_name, lambda lib, x, unit, positive, wide, name=name: getattr(lib.special, name)(wide)
    )
for name in SPECIAL_OF_POSITIVE:
    globals()[name] = over(name, lambda lib, x, unit, positive, wide, name=name: getattr(lib.special, name)(positive))
for name in POLYNOMIALS:
    globals()[name] = over(name, lambda lib, x, unit, positive, wide, name=name: getattr(lib.special, name)(x, 5))

lgamma_of_both_signs = over("lgamma_of_both_signs", lambda lib, x, unit, positive, wide: lib.lgamma(wide))
digamma_of_both_signs = over("digamma_of_both_signs", lambda lib, x, unit, positive, wide: lib.digamma(wide))
trigamma = over("trigamma", lambda lib, x, unit, positive, wide: lib.polygamma(1, positive))
mvlgamma = over("mvlgamma", lambda lib, x, unit, positive, wide: lib.mvlgamma(positive + 2, 2))
igamma = over("igamma", lambda lib, x, unit, positive, wide: lib.igamma(positive, unit * 5))
igammac = over("igammac", lambda lib, x, unit, positive, wide: lib.igammac(positive, unit * 5))
pow = over("pow", lambda lib, x, unit, positive, wide: lib.pow(unit, x))
float_power = over("float_power", lambda lib, x, unit, positive, wide: lib.float_power(unit, 2.5))
clamp = over("clamp", lambda lib, x, unit, positive, wide: x.clamp(-0.5, 0.5))
round_to_two_digits = over("round_to_two_digits", lambda lib, x, unit, positive, wide: lib.round(x, decimals=2))
lerp = over("lerp", lambda lib, x, unit, positive, wide: lib.lerp(x, wide, 0.3))
where = over("where", lambda lib, x, unit, positive, wide: lib.where(x > 0, x, wide))
gelu = over("gelu", lambda lib, x, unit, positive, wide: lib.nn.functional.gelu(x))
silu = over("silu", lambda lib, x, unit, positive, wide: lib.nn.functional.silu(x))
softplus = over("softplus", lambda lib, x, unit, positive, wide: lib.nn.functional.softplus(x))
to_float16 = over("to_float16", lambda lib, x, unit, positive, wide: x.to(lib.float16))
to_bfloat16 = over("to_bfloat16", lambda lib, x, unit, positive, wide: x.to(lib.bfloat16))
to_float64 = over("to_float64", lambda lib, x, unit, positive, wide: x.to(lib.float64))
