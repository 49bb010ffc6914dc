"""The calls of `operators_gpu`: for each operator its operands in three sizes, and how it is called.

A case is called with a Library `t`, whose `t.lib` is cresset or torch and `t.F` its nn.functional, and with the
tensors of its specs. Where one operator has several kernels (dimensions, layouts, dtypes) it has several cases; the
first word of a case's name is the operator.
"""

from collections import namedtuple

SIZES = ["small", "medium", "large"]
Case = namedtuple("Case", "name specs call backward")
CASES = []


def spec(kind):
    return lambda *shape, high=None: (kind, shape, high)


N, U, X, H, C, B, D = map(spec, ("normal", "unit", "fixed", "half", "complex", "bool", "definite"))
Y = spec("byte")


def index(high, *shape):
    return ("index", shape, high)


def case(name, sizes, operands, call, backward=True):
    """`operands(*size)` gives the specs of one size, for each of three sizes."""
    CASES.append(Case(name, [operands(*s) if isinstance(s, tuple) else operands(s) for s in sizes], call, backward))


FLAT = [1 << 12, 1 << 20, 1 << 25]
ROWS = [(64, 64), (1024, 1024), (8192, 4096)]
WIDE = [(4, 1024), (16, 1 << 16), (32, 1 << 20)]
SQUARE = [(64, 64), (512, 512), (4096, 4096)]
IMAGES = [(2, 8, 16, 16), (16, 64, 32, 32), (64, 64, 112, 112)]
SMALLER_IMAGES = [(2, 4, 16, 16), (8, 32, 64, 64), (32, 64, 128, 128)]
VOLUMES = [(1, 4, 8, 8, 8), (4, 16, 16, 16, 16), (8, 32, 32, 64, 64)]
MATRICES = [(4, 8, 8), (64, 32, 32), (1, 1024, 1024)]


def of_library(name, *extra, **named):
    """A call of functional.name, lib.name or lib.special.name, whichever there is."""

    def call(t, *tensors):
        owner = next(o for o in (t.F, t.lib, t.lib.special) if hasattr(o, name))
        return getattr(owner, name)(*tensors, *extra, **named)

    return call


# ---- pointwise

UNARY = """abs neg sign sgn reciprocal square sqrt rsqrt exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos
atan sinh cosh tanh asinh atanh sinc sigmoid logit erf erfc erfinv lgamma digamma i0 floor ceil trunc
round frac deg2rad rad2deg isnan isinf isfinite isneginf isposinf isreal signbit logical_not nan_to_num
angle positive conj_physical relu relu6 hardtanh leaky_relu elu celu selu gelu silu mish softplus
hardsigmoid hardswish hardshrink softshrink tanhshrink softsign logsigmoid erfcx ndtr log_ndtr ndtri entr
i0e i1 i1e bessel_j0 bessel_j1 bessel_y0 bessel_y1 modified_bessel_i0 modified_bessel_i1
modified_bessel_k0 modified_bessel_k1 scaled_modified_bessel_k0 scaled_modified_bessel_k1
spherical_bessel_j0 airy_ai rrelu""".split()
for name in UNARY:
    case(name, FLAT, U, of_library(name), name not in ("rrelu",))
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
    case(f"{name} complex", [1 << 12, 1 << 20, 1 << 24], C, of_library(name))

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
case("mul complex", [1 << 12, 1 << 20, 1 << 24], lambda n: (C(n), C(n)), of_library("mul"))
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
    "ctc_loss", [(8, 2, 16), (64, 16, 64), (256, 64, 256)], lambda s, n, c: (N(s, n, c), index(c - 1, n, s // 4)),
    lambda t, x, y: t.F.ctc_loss(
        t.F.log_softmax(x, 2), y + 1, t.lib.full((x.shape[1],), x.shape[0], device=x.device),
        t.lib.full((x.shape[1],), y.shape[1], device=x.device),
    ),
)  # fmt: skip

# ---- reductions

for name in "sum mean prod amax amin max min argmax argmin std var logsumexp nansum nanmean count_nonzero".split():
    if name != "logsumexp":
        call = of_library(name, ()) if name in ("amax", "amin") else of_library(name)
        case(name, ROWS, U, call, name != "prod")
    case(f"{name} rows", ROWS, U, of_library(name, -1))
    case(f"{name} columns", ROWS, U, of_library(name, 0))
for name in ("any", "all"):
    case(name, ROWS, B, of_library(name))
    case(f"{name} rows", ROWS, B, of_library(name, -1))
for name in ("var_mean", "std_mean"):
    case(name, ROWS, N, of_library(name, -1))
case("aminmax", ROWS, X, of_library("aminmax"))
case("norm", ROWS, N, of_library("norm"))
case("norm rows", ROWS, N, lambda t, x: t.lib.linalg.vector_norm(x, dim=-1))
case("norm rows 1", ROWS, N, lambda t, x: t.lib.linalg.vector_norm(x, 1, dim=-1))
case("sum half", ROWS, H, of_library("sum"))
case("sum half columns", ROWS, H, of_library("sum", 0))
case("sum integers", ROWS, lambda n, m: (index(100, n, m),), of_library("sum"))
case("sum images", IMAGES, N, lambda t, x: x.sum((0, 2, 3)))
case("mean half rows", ROWS, H, of_library("mean", -1))
case("dist", ROWS, lambda n, m: (N(n, m), N(n, m)), of_library("dist"))
case("trace", SQUARE, N, of_library("trace"))
case("equal", FLAT, lambda n: (X(n), X(n)), lambda t, x, y: t.lib.equal(x, y))
case("allclose", FLAT, lambda n: (X(n), X(n)), lambda t, x, y: t.lib.allclose(x, y))
for name in ("median", "nanmedian"):
    case(f"{name} rows", ROWS, N, of_library(name, -1))
    case(name, FLAT, N, of_library(name))
case("mode rows", [(64, 64), (256, 1024), (1024, 2048)], lambda n, m: (index(50, n, m),), of_library("mode", -1))
case("kthvalue rows", ROWS, N, of_library("kthvalue", 5, -1))
case("quantile rows", ROWS, N, of_library("quantile", 0.3, -1))
case("nanquantile rows", ROWS, N, of_library("nanquantile", 0.3, -1))
case("cov", [(16, 256), (256, 4096), (1024, 16384)], N, of_library("cov"))
case("corrcoef", [(16, 256), (256, 4096), (1024, 16384)], N, of_library("corrcoef"))
case("renorm", ROWS, N, of_library("renorm", 2, 0, 1.0))

# ---- scans, sorts, sets

for name in "cumsum cumprod cummax cummin logcumsumexp".split():
    case(f"{name} rows", ROWS, U, of_library(name, -1), name != "cumprod")
    case(f"{name} columns", ROWS, U, of_library(name, 0), name != "cumprod")
case("cumsum", FLAT, N, of_library("cumsum", 0))
case("sort", FLAT[:2] + [1 << 24], N, of_library("sort"))
case("sort half", FLAT[:2] + [1 << 24], H, of_library("sort"), False)
case("sort integers", FLAT[:2] + [1 << 24], lambda n: (index(1 << 40, n),), of_library("sort"))
case("sort rows", ROWS, N, of_library("sort", -1))
case("sort short rows", [(64, 32), (4096, 128), (65536, 256)], N, of_library("sort", -1))
case("sort columns", [(64, 64), (1024, 256), (4096, 2048)], N, of_library("sort", 0), False)
case("argsort rows", ROWS, N, of_library("argsort"))
case("msort", ROWS, N, of_library("msort"), False)
case("topk rows", ROWS, N, of_library("topk", 10))
case("topk wide", WIDE, N, of_library("topk", 50))
case("topk", FLAT, N, of_library("topk", 100))
case("unique", FLAT[:2] + [1 << 24], lambda n: (index(100000, n),), of_library("unique"))
case("unique_consecutive", FLAT, lambda n: (index(4, n),), of_library("unique_consecutive"))
case("searchsorted", FLAT, lambda n: (index(1 << 20, n), N(n)), lambda t, i, x: t.lib.searchsorted(t.sorted(), x))
case("bucketize", FLAT, N, lambda t, x: t.lib.bucketize(x, t.sorted()))
case("isin", FLAT[:2] + [1 << 24], lambda n: (index(1 << 20, n), index(1 << 20, 1000)), of_library("isin"))
case("bincount", FLAT, lambda n: (index(1000, n),), of_library("bincount"))
case("histc", FLAT, N, of_library("histc", 100, -3, 3))

# ---- indices

case("gather rows", ROWS, lambda n, m: (N(n, m), index(m, n, m)), lambda t, x, i: x.gather(1, i))
case("gather columns", ROWS, lambda n, m: (N(n, m), index(n, n, m)), lambda t, x, i: x.gather(0, i))
case("scatter", ROWS, lambda n, m: (N(n, m), index(m, n, m), N(n, m)), lambda t, x, i, s: x.scatter(1, i, s))
case(
    "scatter_add rows", ROWS, lambda n, m: (N(n, m), index(m, n, m), N(n, m)), lambda t, x, i, s: x.scatter_add(1, i, s)
)
case("scatter_add bins", FLAT, lambda n: (N(4096), index(4096, n), N(n)), lambda t, x, i, s: x.scatter_add(0, i, s))
case("scatter_add spread", FLAT, lambda n: (N(n), index(n, n), N(n)), lambda t, x, i, s: x.scatter_add(0, i, s))
case(
    "scatter_reduce", FLAT[:2] + [1 << 24], lambda n: (N(4096), index(4096, n), N(n)),
    lambda t, x, i, s: x.scatter_reduce(0, i, s, "amax"),
)  # fmt: skip
case(
    "index_reduce",
    ROWS,
    lambda n, m: (N(n, m), index(n, n), N(n, m)),
    lambda t, x, i, s: x.index_reduce(0, i, s, "amax"),
    False,
)
case("index_select", ROWS, lambda n, m: (N(n, m), index(n, n)), lambda t, x, i: x.index_select(0, i))
case("index_select columns", ROWS, lambda n, m: (N(n, m), index(m, m)), lambda t, x, i: x.index_select(1, i))
case("index_add", ROWS, lambda n, m: (N(n, m), index(n, n), N(n, m)), lambda t, x, i, s: x.index_add(0, i, s))
case("index_add bins", FLAT, lambda n: (N(4096), index(4096, n), N(n)), lambda t, x, i, s: x.index_add(0, i, s))
case("index_copy", ROWS, lambda n, m: (N(n, m), X(n, m)), lambda t, x, s: x.index_copy(0, t.order(x.shape[0]), s))
case("index_fill", ROWS, lambda n, m: (N(n, m), index(n, n // 2)), lambda t, x, i: x.index_fill(0, i, 1.0))
case("index", ROWS, lambda n, m: (N(n, m), index(n, n)), lambda t, x, i: x[i])
case(
    "index pairs",
    FLAT[:2] + [1 << 24],
    lambda n: (N(1024, 1024), index(1024, n), index(1024, n)),
    lambda t, x, i, j: x[i, j],
)
case("index bool", FLAT, lambda n: (N(n), B(n)), lambda t, x, m: x[m])
case(
    "index_put accumulate", FLAT[:2] + [1 << 24], lambda n: (N(4096), index(4096, n), N(n)),
    lambda t, x, i, s: x.index_put((i,), s, accumulate=True),
)  # fmt: skip
case("index_put", ROWS, lambda n, m: (N(n, m), X(n, m)), lambda t, x, s: x.index_put((t.order(x.shape[0]),), s))
case("take", FLAT, lambda n: (N(n), index(n, n)), of_library("take"))
case("take_along_dim", ROWS, lambda n, m: (N(n, m), index(m, n, m)), lambda t, x, i: t.lib.take_along_dim(x, i, 1))
case("put", FLAT, lambda n: (N(n), X(n)), lambda t, x, s: x.put(t.order(x.numel()), s))
case("masked_select", FLAT, lambda n: (N(n), B(n)), of_library("masked_select"))
case("masked_scatter", FLAT, lambda n: (N(n), B(n), N(n)), lambda t, x, m, s: x.masked_scatter(m, s))
case("nonzero", FLAT, lambda n: (B(n),), of_library("nonzero"))
case("argwhere", ROWS, lambda n, m: (B(n, m),), of_library("argwhere"))
case(
    "embedding",
    [(64, 64), (4096, 512), (65536, 1024)],
    lambda n, m: (index(32000, n), N(32000, m)),
    of_library("embedding"),
)
case(
    "embedding_bag", [(64, 64), (4096, 128), (65536, 256)], lambda n, m: (index(32000, n, 4), N(32000, m)),
    of_library("embedding_bag"),
)  # fmt: skip
case("one_hot", [64, 4096, 65536], lambda n: (index(1000, n),), lambda t, i: t.F.one_hot(i, 1000))
case("repeat_interleave", ROWS, N, lambda t, x: x.repeat_interleave(2, 0))
case(
    "repeat_interleave counts",
    FLAT[:2] + [1 << 24],
    lambda n: (N(n), index(3, n)),
    lambda t, x, r: x.repeat_interleave(r),
)

# ---- moving

case("cat rows", ROWS, lambda n, m: (N(n, m), N(n, m)), lambda t, *x: t.lib.cat(x))
case("cat columns", ROWS, lambda n, m: (N(n, m), N(n, m)), lambda t, *x: t.lib.cat(x, 1))
case("stack", ROWS, lambda n, m: (N(n, m), N(n, m)), lambda t, *x: t.lib.stack(x, -1))
case("flip", ROWS, N, of_library("flip", (0, 1)))
case("roll", ROWS, N, of_library("roll", (3, 5), (0, 1)))
case("repeat", ROWS, N, lambda t, x: x.repeat(2, 1))
case("tile", ROWS, N, of_library("tile", (1, 2)))
case("tril", ROWS, N, of_library("tril"))
case("triu", ROWS, N, of_library("triu"))
case("rot90", ROWS, N, of_library("rot90"))
case("diag_embed", [(4, 16), (64, 128), (64, 1024)], N, of_library("diag_embed"))
case("clone", FLAT, N, of_library("clone"))
case("contiguous transposed", SQUARE, N, lambda t, x: x.t().contiguous())
case("contiguous permuted", IMAGES, N, lambda t, x: x.permute(0, 2, 3, 1).contiguous())
case(
    "contiguous heads",
    [(2, 16, 4, 16), (8, 512, 8, 64), (16, 2048, 16, 64)],
    H,
    lambda t, x: x.transpose(1, 2).contiguous(),
)
case("contiguous expanded", ROWS, lambda n, m: (N(n, 1),), lambda t, x: x.expand(-1, x.shape[0]).contiguous())
case("to half", FLAT, N, lambda t, x: x.to(t.lib.bfloat16))
case("to float", FLAT, H, lambda t, x: x.float())
case("to integers", FLAT, N, lambda t, x: x.to(t.lib.int64))
case("copy_", FLAT, lambda n: (X(n), X(n)), lambda t, x, y: x.copy_(y))
case("pad", IMAGES, N, lambda t, x: t.F.pad(x, (1, 1, 1, 1)))
for mode in ("reflect", "replicate", "circular"):
    case(f"pad {mode}", IMAGES, N, lambda t, x, mode=mode: t.F.pad(x, (1, 1, 1, 1), mode=mode))
case("unfold patches", [(1, 4, 8, 8), (8, 16, 32, 32), (16, 64, 56, 56)], N, lambda t, x: t.F.unfold(x, 3, padding=1))
case(
    "fold", [(1, 36, 64), (8, 144, 1024), (16, 576, 3136)], N,
    lambda t, x: t.F.fold(x, (int(x.shape[2] ** 0.5),) * 2, 3, padding=1),
)  # fmt: skip
case("unfold rows", ROWS, N, lambda t, x: x.unfold(1, 8, 4).contiguous())
case("pixel_shuffle", IMAGES, N, of_library("pixel_shuffle", 2))
case("pixel_unshuffle", IMAGES, N, of_library("pixel_unshuffle", 2))
case("channel_shuffle", IMAGES, N, of_library("channel_shuffle", 4))
case("diff", ROWS, N, of_library("diff"))
case("trapezoid", ROWS, N, of_library("trapezoid"))
case(
    "meshgrid",
    ROWS,
    lambda n, m: (N(n), N(m)),
    lambda t, x, y: [g.contiguous() for g in t.lib.meshgrid(x, y, indexing="ij")],
    False,
)

# ---- new tensors, random numbers

for name in ("zeros", "ones", "rand", "randn", "arange", "randperm"):
    case(name, FLAT, lambda n: (X(n),), lambda t, x, name=name: getattr(t.lib, name)(x.numel(), device=x.device))
case("full", FLAT, X, lambda t, x: t.lib.full((x.numel(),), 2.0, device=x.device))
case("linspace", FLAT, X, lambda t, x: t.lib.linspace(0, 1, x.numel(), device=x.device))
case("logspace", FLAT, X, lambda t, x: t.lib.logspace(0, 1, x.numel(), device=x.device))
case("eye", SQUARE, X, lambda t, x: t.lib.eye(x.shape[0], device=x.device))
case("tril_indices", SQUARE, X, lambda t, x: t.lib.tril_indices(x.shape[0], x.shape[0], device=x.device))
case("randint", FLAT, X, lambda t, x: t.lib.randint(0, 100, (x.numel(),), device=x.device))
case("randn half", FLAT, X, lambda t, x: t.lib.randn(x.numel(), device=x.device, dtype=t.lib.bfloat16))
for name in ("zeros_like", "ones_like", "rand_like", "randn_like"):
    case(name, FLAT, X, of_library(name))
case("full_like", FLAT, X, of_library("full_like", 1.5))
case("bernoulli", FLAT, U, of_library("bernoulli"), False)
case("poisson", FLAT, U, of_library("poisson"), False)
case("multinomial", [(16, 64), (256, 4096), (1024, 16384)], U, of_library("multinomial", 4), False)
for name in "uniform_ normal_ exponential_ cauchy_ log_normal_ random_".split():
    case(name.rstrip("_"), FLAT, X, lambda t, x, name=name: getattr(x, name)())
case("geometric", FLAT, X, lambda t, x: x.geometric_(0.3))
case("fill_", FLAT, X, lambda t, x: x.fill_(1.5))
case("zero_", FLAT, X, lambda t, x: x.zero_())
case("dropout", FLAT, N, lambda t, x: t.F.dropout(x, 0.1))
case("dropout half", FLAT, H, lambda t, x: t.F.dropout(x, 0.1))
case("dropout2d", IMAGES, N, lambda t, x: t.F.dropout2d(x, 0.1))
case("alpha_dropout", FLAT, N, lambda t, x: t.F.alpha_dropout(x, 0.1, training=True))
case("standard_gamma", FLAT[:2] + [1 << 23], U, lambda t, x: t.lib._standard_gamma(x), False)

# ---- normalization

for name in ("softmax", "log_softmax"):
    case(f"{name} rows", ROWS, N, of_library(name, -1))
    case(f"{name} half rows", ROWS, H, of_library(name, -1))
    case(f"{name} columns", ROWS, N, of_library(name, 0))
    case(f"{name} wide", WIDE, N, of_library(name, -1))
    case(f"{name} short", [(64, 10), (65536, 10), (1 << 21, 16)], N, of_library(name, -1))
case("softmax channels", IMAGES, N, of_library("softmax", 1))
for kind, letter in (("", N), (" half", H)):
    case(
        f"layer_norm{kind}",
        ROWS,
        lambda n, m, a=letter: (a(n, m), a(m), a(m)),
        lambda t, x, w, b: t.F.layer_norm(x, w.shape, w, b),
    )
    case(f"rms_norm{kind}", ROWS, lambda n, m, a=letter: (a(n, m), a(m)), lambda t, x, w: t.F.rms_norm(x, w.shape, w))
    case(
        f"group_norm{kind}",
        IMAGES,
        lambda n, c, h, w, a=letter: (a(n, c, h, w), a(c), a(c)),
        lambda t, x, w, b: t.F.group_norm(x, 4, w, b),
    )
    case(f"instance_norm{kind}", IMAGES, letter, of_library("instance_norm"))
case(
    "batch_norm",
    IMAGES,
    lambda n, c, h, w: (N(n, c, h, w), N(c), N(c)),
    lambda t, x, w, b: t.F.batch_norm(x, None, None, w, b, True),
)
case(
    "batch_norm half",
    IMAGES,
    lambda n, c, h, w: (H(n, c, h, w), N(c), N(c)),
    lambda t, x, w, b: t.F.batch_norm(x, None, None, w, b, True),
)
case(
    "batch_norm rows",
    ROWS,
    lambda n, m: (N(n, m), N(m), N(m)),
    lambda t, x, w, b: t.F.batch_norm(x, None, None, w, b, True),
)
case("local_response_norm", IMAGES, N, of_library("local_response_norm", 5))
case("normalize", ROWS, N, of_library("normalize"))

# ---- products

MATMUL = [64, 512, 4096]
for kind, letter in (("", N), (" half", H)):
    case(f"matmul{kind}", MATMUL, lambda n, a=letter: (a(n, n), a(n, n)), of_library("matmul"))
    case(
        f"bmm{kind}",
        [(4, 16), (16, 128), (64, 512)],
        lambda n, m, a=letter: (a(n, m, m), a(n, m, m)),
        of_library("bmm"),
    )
    case(f"linear{kind}", MATMUL, lambda n, a=letter: (a(n, n), a(n, n), a(n)), of_library("linear"))
    case(f"mv{kind}", MATMUL, lambda n, a=letter: (a(n, n), a(n)), of_library("mv"))
case("mm", MATMUL, lambda n: (N(n, n), N(n, n)), of_library("mm"))
case("addmm", MATMUL, lambda n: (N(n), N(n, n), N(n, n)), of_library("addmm"))
case(
    "baddbmm", [(4, 16), (16, 128), (64, 512)], lambda n, m: (N(n, m, m), N(n, m, m), N(n, m, m)), of_library("baddbmm")
)
case("addmv", MATMUL, lambda n: (N(n), N(n, n), N(n)), of_library("addmv"))
case("addbmm", [(4, 16), (16, 128), (64, 512)], lambda n, m: (N(m, m), N(n, m, m), N(n, m, m)), of_library("addbmm"))
case("addr", SQUARE, lambda n, m: (N(n, m), N(n), N(m)), of_library("addr"))
case("dot", FLAT, lambda n: (N(n), N(n)), of_library("dot"))
case("vdot", FLAT, lambda n: (N(n), N(n)), of_library("vdot"))
case("outer", SQUARE, lambda n, m: (N(n), N(m)), of_library("outer"))
case("kron", [(4, 4), (32, 32), (64, 64)], lambda n, m: (N(n, m), N(n, m)), of_library("kron"))
case("cross", FLAT[:2] + [1 << 23], lambda n: (N(n, 3), N(n, 3)), lambda t, x, y: t.lib.linalg.cross(x, y))
case(
    "einsum",
    [(4, 16), (16, 128), (64, 512)],
    lambda n, m: (N(n, m, m), N(n, m, m)),
    lambda t, x, y: t.lib.einsum("bij,bkj->bik", x, y),
)
case(
    "tensordot",
    [16, 128, 256],
    lambda n: (N(n, n, 8), N(8, n, n)),
    lambda t, x, y: t.lib.tensordot(x, y, ([1, 2], [1, 0])),
)
case("matmul double", MATMUL[:2] + [2048], lambda n: (N(n, n),), lambda t, x: (lambda d: d @ d)(x.double()), False)
case("matmul complex", MATMUL[:2] + [2048], lambda n: (C(n, n), C(n, n)), of_library("matmul"))
case("cdist", [(64, 64), (512, 128), (4096, 256)], lambda n, m: (N(n, m), N(n, m)), of_library("cdist"))
case("cdist 1", [(64, 64), (512, 128), (2048, 64)], lambda n, m: (N(n, m), N(n, m)), of_library("cdist", 1.0))
case("pdist", [(64, 64), (512, 128), (2048, 256)], N, of_library("pdist"))
case("bilinear", [(8, 16), (64, 64), (512, 128)], lambda n, m: (N(n, m), N(n, m), N(m, m, m)), of_library("bilinear"))

# ---- convolution and pooling

for kind, letter in (("", N), (" half", H)):
    case(
        f"conv2d{kind}", [(2, 8, 16), (16, 64, 32), (64, 128, 56)],
        lambda n, c, s, a=letter: (a(n, c, s, s), a(c, c, 3, 3)),
        lambda t, x, w: t.F.conv2d(x, w, padding=1),
    )  # fmt: skip
    case(
        f"conv2d channels_last{kind}", [(2, 8, 16), (16, 64, 32), (64, 128, 56)],
        lambda n, c, s, a=letter: (a(n, s, s, c), a(c, 3, 3, c)),
        lambda t, x, w: t.F.conv2d(x.permute(0, 3, 1, 2), w.permute(0, 3, 1, 2), padding=1),
    )  # fmt: skip
case(
    "conv2d depthwise",
    [(2, 8, 16), (16, 64, 32), (64, 128, 56)],
    lambda n, c, s: (N(n, c, s, s), N(c, 1, 3, 3)),
    lambda t, x, w: t.F.conv2d(x, w, padding=1, groups=w.shape[0]),
)
case(
    "conv2d strided",
    [(2, 8, 16), (16, 64, 32), (64, 128, 56)],
    lambda n, c, s: (N(n, c, s, s), N(c, c, 3, 3)),
    lambda t, x, w: t.F.conv2d(x, w, stride=2, padding=1),
)
case(
    "conv1d",
    [(2, 8, 64), (16, 64, 1024), (32, 128, 16384)],
    lambda n, c, s: (N(n, c, s), N(c, c, 3)),
    lambda t, x, w: t.F.conv1d(x, w, padding=1),
)
case(
    "conv3d",
    [(1, 4, 8), (2, 16, 16), (4, 32, 32)],
    lambda n, c, s: (N(n, c, s, s, s), N(c, c, 3, 3, 3)),
    lambda t, x, w: t.F.conv3d(x, w, padding=1),
)
case(
    "conv_transpose2d",
    [(2, 8, 8), (16, 64, 16), (32, 64, 56)],
    lambda n, c, s: (N(n, c, s, s), N(c, c, 4, 4)),
    lambda t, x, w: t.F.conv_transpose2d(x, w, stride=2, padding=1),
)
for kind, letter in (("", N), (" half", H)):
    case(f"max_pool2d{kind}", IMAGES, letter, of_library("max_pool2d", 2))
    case(f"avg_pool2d{kind}", IMAGES, letter, of_library("avg_pool2d", 2))
case("max_pool2d 3", IMAGES, N, lambda t, x: t.F.max_pool2d(x, 3, 2, 1))
case("avg_pool2d 3", IMAGES, N, lambda t, x: t.F.avg_pool2d(x, 3, 2, 1))
case("max_pool2d channels_last", IMAGES, N, lambda t, x: t.F.max_pool2d(x.permute(0, 3, 1, 2), 2))
case("max_pool1d", ROWS, N, lambda t, x: t.F.max_pool1d(x.unsqueeze(0), 3, 2))
case("avg_pool1d", ROWS, N, lambda t, x: t.F.avg_pool1d(x.unsqueeze(0), 3, 2))
case("max_pool3d", VOLUMES, N, of_library("max_pool3d", 2))
case("avg_pool3d", VOLUMES, N, of_library("avg_pool3d", 2))
case("adaptive_avg_pool2d", IMAGES, N, of_library("adaptive_avg_pool2d", 7))
case("adaptive_avg_pool2d 1", IMAGES, N, of_library("adaptive_avg_pool2d", 1))
case("adaptive_max_pool2d", IMAGES, N, of_library("adaptive_max_pool2d", 7))
case("lp_pool2d", IMAGES, N, lambda t, x: t.F.lp_pool2d(x, 2, 2))
case("max_unpool2d", IMAGES, N, lambda t, x: t.F.max_unpool2d(*t.F.max_pool2d(x, 2, return_indices=True), 2))

# ---- resampling

for mode in ("nearest", "nearest-exact", "bilinear", "bicubic", "area"):
    case(
        f"interpolate {mode}", SMALLER_IMAGES, N, lambda t, x, mode=mode: t.F.interpolate(x, scale_factor=2, mode=mode)
    )
case("interpolate bilinear half", SMALLER_IMAGES, H, lambda t, x: t.F.interpolate(x, scale_factor=2, mode="bilinear"))
case(
    "interpolate bilinear corners",
    SMALLER_IMAGES,
    N,
    lambda t, x: t.F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=True),
)
case("interpolate bilinear down", IMAGES, N, lambda t, x: t.F.interpolate(x, scale_factor=0.5, mode="bilinear"))
case(
    "interpolate antialias",
    IMAGES,
    N,
    lambda t, x: t.F.interpolate(x, scale_factor=0.5, mode="bilinear", antialias=True),
)
case("interpolate linear", ROWS, N, lambda t, x: t.F.interpolate(x.unsqueeze(0), scale_factor=2, mode="linear"))
case("interpolate trilinear", VOLUMES, N, lambda t, x: t.F.interpolate(x, scale_factor=2, mode="trilinear"))
for mode in ("bilinear", "nearest", "bicubic"):
    case(
        f"grid_sample {mode}", SMALLER_IMAGES, lambda n, c, h, w: (N(n, c, h, w), U(n, h, w, 2)),
        lambda t, x, g, mode=mode: t.F.grid_sample(x, g * 2 - 1, mode=mode, align_corners=False),
    )  # fmt: skip
case(
    "grid_sample border",
    SMALLER_IMAGES,
    lambda n, c, h, w: (N(n, c, h, w), N(n, h, w, 2)),
    lambda t, x, g: t.F.grid_sample(x, g, padding_mode="border", align_corners=False),
)
case(
    "grid_sample volumes",
    VOLUMES,
    lambda n, c, d, h, w: (N(n, c, d, h, w), U(n, d, h, w, 3)),
    lambda t, x, g: t.F.grid_sample(x, g, align_corners=False),
)
case(
    "affine_grid",
    [(2, 16), (16, 64), (64, 256)],
    lambda n, s: (N(n, 2, 3), X(s)),
    lambda t, a, s: t.F.affine_grid(a, (a.shape[0], 1, s.shape[0], s.shape[0]), align_corners=False),
)

# ---- attention and recurrence

HEADS = [(2, 4, 64, 32), (4, 8, 512, 64), (4, 16, 2048, 64)]
for kind, letter in (("", N), (" half", H)):
    case(
        f"attention{kind}",
        HEADS,
        lambda b, h, s, d, a=letter: (a(b, h, s, d), a(b, h, s, d), a(b, h, s, d)),
        of_library("scaled_dot_product_attention"),
    )
    case(
        f"attention causal{kind}",
        HEADS,
        lambda b, h, s, d, a=letter: (a(b, h, s, d), a(b, h, s, d), a(b, h, s, d)),
        lambda t, *x: t.F.scaled_dot_product_attention(*x, is_causal=True),
    )
    case(
        f"attention mask{kind}", HEADS,
        lambda b, h, s, d, a=letter: (a(b, h, s, d), a(b, h, s, d), a(b, h, s, d), X(s, s)),
        lambda t, q, k, v, m: t.F.scaled_dot_product_attention(q, k, v, attn_mask=m.to(q.dtype)),
    )  # fmt: skip
    case(
        f"attention bools{kind}", HEADS,
        lambda b, h, s, d, a=letter: (a(b, h, s, d), a(b, h, s, d), a(b, h, s, d), B(s, s)),
        lambda t, q, k, v, m: t.F.scaled_dot_product_attention(q, k, v, attn_mask=m),
    )  # fmt: skip
case(
    "attention wide",
    [(2, 4, 64, 128), (4, 8, 512, 128), (4, 16, 2048, 128)],
    lambda b, h, s, d: (H(b, h, s, d), H(b, h, s, d), H(b, h, s, d)),
    of_library("scaled_dot_product_attention"),
)
for layer in ("LSTM", "GRU"):
    case(
        layer.lower(), [(8, 2, 16), (64, 16, 256), (128, 64, 1024)], N,
        lambda t, x, layer=layer: t.module(layer, x.shape[2], x.shape[2])(x)[0],
    )  # fmt: skip

# ---- Fourier transforms

case("fft", [(16, 64), (256, 4096), (1024, 16384)], C, lambda t, x: t.lib.fft.fft(x))
case("ifft", [(16, 64), (256, 4096), (1024, 16384)], C, lambda t, x: t.lib.fft.ifft(x))
case("rfft", [(16, 64), (256, 4096), (1024, 16384)], N, lambda t, x: t.lib.fft.rfft(x))
case("irfft", [(16, 65), (256, 2049), (1024, 8193)], C, lambda t, x: t.lib.fft.irfft(x))
case("fft columns", [(64, 64), (1024, 1024), (4096, 4096)], C, lambda t, x: t.lib.fft.fft(x, dim=0))
case("fft2", [(4, 16, 16), (16, 128, 128), (64, 512, 512)], C, lambda t, x: t.lib.fft.fft2(x))
case("rfft2", [(4, 16, 16), (16, 128, 128), (64, 512, 512)], N, lambda t, x: t.lib.fft.rfft2(x))
case("irfft2", [(4, 16, 9), (16, 128, 65), (64, 512, 257)], C, lambda t, x: t.lib.fft.irfft2(x))
case("rfftn", [(1, 8, 8, 8), (4, 32, 32, 32), (16, 128, 128, 128)], N, lambda t, x: t.lib.fft.rfftn(x, dim=(1, 2, 3)))
case("fftshift", ROWS, N, lambda t, x: t.lib.fft.fftshift(x))
case(
    "stft",
    [(2, 1024), (8, 1 << 16), (32, 1 << 20)],
    N,
    lambda t, x: t.lib.stft(x, 256, 64, window=t.window(256), return_complex=True),
)

# ---- linear algebra

for name in ("cholesky", "inv", "det", "slogdet", "eigh", "matrix_exp", "inv_ex", "cholesky_ex"):
    case(name, MATRICES, D, lambda t, x, name=name: getattr(t.lib.linalg, name)(x))
for name in ("qr", "svdvals", "svd"):
    case(
        name, [(4, 8, 8), (16, 32, 32), (1, 256, 256)], N, lambda t, x, name=name: getattr(t.lib.linalg, name)(x), False
    )
case("solve", MATRICES, lambda b, n, m: (D(b, n, m), N(b, n, 4)), lambda t, x, y: t.lib.linalg.solve(x, y))
case(
    "solve_triangular",
    MATRICES,
    lambda b, n, m: (D(b, n, m), N(b, n, 4)),
    lambda t, x, y: t.lib.linalg.solve_triangular(x, y, upper=False),
)
case("lu_factor", MATRICES, D, lambda t, x: t.lib.linalg.lu_factor(x), False)
case("matrix_power", MATRICES, D, lambda t, x: t.lib.linalg.matrix_power(x, 5))
case("cholesky_solve", MATRICES, lambda b, n, m: (N(b, n, 4), D(b, n, m)), of_library("cholesky_solve"), False)

# Operators of the table that have no work of their own on the device (views, shapes, sizes), or that another case calls
# under the name that programs use.
NOT_TIMED = set(
    """alias as_strided chunk detach diagonal expand imag narrow permute real reshape select slice split
    split_with_sizes squeeze t transpose unbind unfold unsafe_chunk unsafe_split unsafe_split_with_sizes
    unsqueeze view view_as_complex view_as_real empty empty_like empty_strided new_empty new_empty_strided
    new_zeros new_ones new_full scalar_tensor resize set contiguous to to_dtype cpu fill zero copy range
    triu_indices native_layer_norm native_batch_norm native_group_norm native_dropout native_dropout_backward
    embedding_dense_backward convolution fft_complex fft_from_real fft_to_real linalg_vector_norm
    nonzero_numpy repeat_positions binomial silu_backward cube normal bernoulli random bfloat16 byte cdouble
    cfloat chalf char int long double float half bool short binary_cross_entropy_elementwise
    binary_cross_entropy_with_logits_elementwise weighted_binary_cross_entropy_with_logits_elementwise
    huber_elementwise kl_div_elementwise l1_elementwise mse_elementwise poisson_nll_elementwise
    polygamma_elementwise prelu_elementwise smooth_l1_elementwise soft_margin_elementwise div_floor div_trunc
    gamma_density gelu_tanh imaginary_part real_part linalg_cross randint_like trigamma""".split()
)
