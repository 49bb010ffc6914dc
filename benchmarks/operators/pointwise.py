"""Elementwise operators and losses."""

from .cases import FEWER, FLAT, IMAGES, ROWS, SQUARE, B, C, H, N, U, W, X, Y, case, index, of_library, sizes

# ---- pointwise

UNARY = """abs neg sign sgn reciprocal square sqrt rsqrt exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos
atan sinh cosh tanh asinh atanh sinc sigmoid logit erf erfc erfinv lgamma digamma i0 floor ceil trunc
round frac deg2rad rad2deg isnan isinf isfinite isneginf isposinf isreal signbit logical_not nan_to_num
angle positive conj_physical erfcx ndtr log_ndtr ndtri entr i0e i1 i1e bessel_j0 bessel_j1 bessel_y0 bessel_y1
modified_bessel_i0 modified_bessel_i1
modified_bessel_k0 modified_bessel_k1 scaled_modified_bessel_k0 scaled_modified_bessel_k1
spherical_bessel_j0 airy_ai""".split()
for name in UNARY:
    case(name, FLAT, U, of_library(name))
# Of both signs, as in a network: where all are positive, elu and its kin have nothing to compute.
ACTIVATIONS = """relu relu6 hardtanh leaky_relu elu celu selu gelu silu mish softplus hardsigmoid hardswish hardshrink
softshrink tanhshrink softsign logsigmoid rrelu""".split()
for name in ACTIVATIONS:
    case(name, FLAT, N, of_library(name), name != "rrelu")
case("acosh", FLAT, U, lambda t, x: t.lib.acosh(x + 1))
case("polygamma", FLAT, U, lambda t, x: t.lib.polygamma(1, x))
case("mvlgamma", FLAT, U, lambda t, x: t.lib.mvlgamma(x + 1, 2))
case("threshold", FLAT, U, of_library("threshold", 0.5, 0.0))
case("clamp", FLAT, N, of_library("clamp", -0.5, 0.5))
case("clamp_min", FLAT, N, of_library("clamp_min", -0.5))
case("clamp_max", FLAT, N, of_library("clamp_max", 0.5))
case("gelu tanh", FLAT, N, lambda t, x: t.F.gelu(x, approximate="tanh"))
case("glu", ROWS, N, lambda t, x: t.F.glu(x))
case("prelu", IMAGES, lambda n, c, h, w: (N(n, c, h, w), N(c)), of_library("prelu"))
for name in ("gelu", "silu", "exp", "tanh", "sigmoid", "relu"):
    case(f"{name} half", FLAT, H, of_library(name))
for name in ("exp", "sin", "tanh", "sqrt", "abs", "log", "sigmoid"):
    case(f"{name} complex", FEWER, C, of_library(name))

BINARY = """add sub mul div maximum minimum fmax fmin atan2 hypot copysign pow fmod remainder floor_divide logaddexp
logaddexp2 eq ne lt le gt ge logical_and logical_or logical_xor nextafter heaviside xlogy xlog1py igamma igammac zeta
float_power isclose""".split()
for name in BINARY:
    case(
        name,
        FLAT,
        lambda n: (U(n), U(n)),
        of_library(name),
        name not in ("igamma", "igammac", "zeta", "heaviside", "floor_divide", "nextafter"),
    )
case("mul complex", FEWER, lambda n: (C(n), C(n)), of_library("mul"))
case("complex", FLAT, lambda n: (N(n), N(n)), of_library("complex"))
case("polar", FLAT, lambda n: (U(n), U(n)), of_library("polar"))
case("ldexp", FLAT, lambda n: (N(n), index(8, n)), of_library("ldexp"))
case("rsub", FLAT, N, lambda t, x: t.lib.rsub(x, 2.0))
case("add number", FLAT, N, lambda t, x: x + 2.0)
case("pow number", FLAT, U, lambda t, x: x**2.5)
case("add rows and columns", ROWS, lambda n, m: (N(n, 1), N(1, m)), of_library("add"))
case("add row", ROWS, lambda n, m: (N(n, m), N(m)), of_library("add"))
case("add transposed", SQUARE, lambda n, m: (N(n, m), N(m, n)), lambda t, x, y: x + y.t())
case("add in place", FLAT, lambda n: (X(n), X(n)), lambda t, x, y: x.add_(y))
for name in ("addcmul", "addcdiv", "lerp"):
    case(name, FLAT, lambda n: (U(n), U(n), U(n)), of_library(name))
case("where", FLAT, lambda n: (B(n), N(n), N(n)), of_library("where"))
case("masked_fill", FLAT, lambda n: (N(n), B(n)), lambda t, x, m: x.masked_fill(m, 0.5))
for name in ("bitwise_and", "bitwise_or", "bitwise_xor", "gcd", "lcm"):
    case(name, FLAT, lambda n: (index(1000, n), index(1000, n)), of_library(name))
for name in ("bitwise_left_shift", "bitwise_right_shift"):
    case(name, FLAT, lambda n: (index(1000, n), index(10, n)), of_library(name))
for name in ("exp", "tanh", "gelu", "sigmoid", "log", "sin"):
    case(f"{name} double", FEWER, W, of_library(name))
case("add double", FEWER, lambda n: (W(n), W(n)), of_library("add"))
for name in ("mul", "floor_divide", "remainder", "maximum", "eq"):
    case(
        f"{name} integers",
        FLAT,
        lambda n: (index(1000, n), index(1000, n)),
        lambda t, x, y, name=name: getattr(t.lib, name)(x, y + 1),
    )
case("add bytes", FLAT, lambda n: (Y(n), Y(n)), of_library("add"))
case("add mixed", FLAT, lambda n: (N(n), index(9, n)), of_library("add"))
case("add half", FLAT, lambda n: (H(n), H(n)), of_library("add"))
case("mul half", FLAT, lambda n: (H(n), H(n)), of_library("mul"))
case("add strided", SQUARE, lambda n, m: (N(n, m), N(n, m)), lambda t, x, y: x[:, ::2] + y[:, ::2])
case("bitwise_not", FLAT, lambda n: (index(1000, n),), of_library("bitwise_not"))
case("add integers", FLAT, lambda n: (index(1000, n), index(1000, n)), of_library("add"))
case("frexp", FLAT, N, of_library("frexp"))
POLYNOMIALS = """chebyshev_polynomial_t chebyshev_polynomial_u chebyshev_polynomial_v chebyshev_polynomial_w
hermite_polynomial_h hermite_polynomial_he laguerre_polynomial_l legendre_polynomial_p shifted_chebyshev_polynomial_t
shifted_chebyshev_polynomial_u shifted_chebyshev_polynomial_v shifted_chebyshev_polynomial_w""".split()
for name in POLYNOMIALS:
    case(name, FLAT, U, of_library(name, 4), False)

# ---- losses

for name in "mse_loss l1_loss smooth_l1_loss huber_loss binary_cross_entropy_with_logits soft_margin_loss".split():
    case(name, FLAT, lambda n: (N(n), X(n)), of_library(name))
case("binary_cross_entropy", FLAT, lambda n: (U(n), U(n)), lambda t, x, y: t.F.binary_cross_entropy(x, y.detach()))
case("kl_div", ROWS, lambda n, m: (U(n, m), U(n, m)), lambda t, x, y: t.F.kl_div(x, y, reduction="batchmean"))
case("poisson_nll_loss", FLAT, lambda n: (N(n), X(n)), of_library("poisson_nll_loss"))
case("gaussian_nll_loss", FLAT, lambda n: (N(n), X(n), U(n)), of_library("gaussian_nll_loss"))
case("cross_entropy", ROWS, lambda n, m: (N(n, m), index(m, n)), of_library("cross_entropy"))
case("cross_entropy half", ROWS, lambda n, m: (H(n, m), index(m, n)), of_library("cross_entropy"))
case("nll_loss", ROWS, lambda n, m: (N(n, m), index(m, n)), of_library("nll_loss"))
case("multi_margin_loss", ROWS, lambda n, m: (N(n, m), index(m, n)), of_library("multi_margin_loss"))
case("cosine_similarity", ROWS, lambda n, m: (N(n, m), N(n, m)), of_library("cosine_similarity"))
case("pairwise_distance", ROWS, lambda n, m: (N(n, m), N(n, m)), of_library("pairwise_distance"))
case("triplet_margin_loss", ROWS, lambda n, m: (N(n, m), N(n, m), N(n, m)), of_library("triplet_margin_loss"))
case("margin_ranking_loss", FLAT, lambda n: (N(n), N(n), X(n)), of_library("margin_ranking_loss"))
case("hinge_embedding_loss", FLAT, lambda n: (N(n), X(n)), lambda t, x, y: t.F.hinge_embedding_loss(x, y.sign()))
case("multilabel_soft_margin_loss", ROWS, lambda n, m: (N(n, m), X(n, m)), of_library("multilabel_soft_margin_loss"))
case(
    "ctc_loss", sizes([(8, 2, 16), (64, 16, 64), (256, 64, 256)], [(8, 2, 16), (32, 8, 64), (128, 32, 128)]),
    lambda s, n, c: (N(s, n, c), index(c - 1, n, s // 4)),
    lambda t, x, y: t.F.ctc_loss(
        t.F.log_softmax(x, 2), y + 1, t.lib.full((x.shape[1],), x.shape[0], device=x.device),
        t.lib.full((x.shape[1],), y.shape[1], device=x.device),
    ),
)  # fmt: skip
