"""Operators that move elements or make them: indices, layouts, new tensors, random numbers."""

from .cases import FEWER, FLAT, IMAGES, ROWS, SIGNALS, SQUARE, B, H, N, U, X, Y, case, index, of_library, sizes

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
    "scatter_reduce", FEWER, lambda n: (N(4096), index(4096, n), N(n)),
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
    FEWER,
    lambda n: (N(1024, 1024), index(1024, n), index(1024, n)),
    lambda t, x, i, j: x[i, j],
)
case("index bool", FLAT, lambda n: (N(n), B(n)), lambda t, x, m: x[m])
case(
    "index_put accumulate", FEWER, lambda n: (N(4096), index(4096, n), N(n)),
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
    sizes([(64, 64), (4096, 512), (65536, 1024)], [(16, 64), (512, 128), (16384, 256)]),
    lambda n, m: (index(32000, n), N(32000, m)),
    of_library("embedding"),
)
case(
    "embedding_bag", sizes([(64, 64), (4096, 128), (65536, 256)], [(16, 64), (512, 128), (16384, 128)]),
    lambda n, m: (index(32000, n, 4), N(32000, m)),
    of_library("embedding_bag"),
)  # fmt: skip
case(
    "one_hot", sizes([64, 4096, 65536], [16, 256, 4096]), lambda n: (index(1000, n),), lambda t, i: t.F.one_hot(i, 1000)
)
case("repeat_interleave", ROWS, N, lambda t, x: x.repeat_interleave(2, 0))
case(
    "repeat_interleave counts",
    FEWER,
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
case("diag_embed", sizes([(4, 16), (64, 128), (64, 1024)], [(4, 16), (16, 64), (16, 512)]), N, of_library("diag_embed"))
case("clone", FLAT, N, of_library("clone"))
case("contiguous transposed", SQUARE, N, lambda t, x: x.t().contiguous())
case("contiguous permuted", IMAGES, N, lambda t, x: x.permute(0, 2, 3, 1).contiguous())
case(
    "contiguous heads",
    sizes([(2, 16, 4, 16), (8, 512, 8, 64), (16, 2048, 16, 64)], [(1, 16, 4, 16), (2, 128, 4, 64), (8, 1024, 8, 64)]),
    H,
    lambda t, x: x.transpose(1, 2).contiguous(),
)
case("contiguous expanded", ROWS, lambda n, m: (N(n, 1),), lambda t, x: x.expand(-1, x.shape[0]).contiguous())
case("to half", FLAT, N, lambda t, x: x.to(t.lib.bfloat16))
case("to float", FLAT, H, lambda t, x: x.float())
case("to integers", FLAT, N, lambda t, x: x.to(t.lib.int64))
case("to double", FLAT, N, lambda t, x: x.double())
case("to bytes", FLAT, U, lambda t, x: (x * 255).to(t.lib.uint8))
case("to bool", FLAT, N, lambda t, x: x.bool())
case("to float of bytes", FLAT, Y, lambda t, x: x.float())
case("to float of integers", FLAT, lambda n: (index(100, n),), lambda t, x: x.float())
case("copy_ transposed", SQUARE, lambda n, m: (X(n, m), X(m, n)), lambda t, x, y: x.copy_(y.t()))
case("copy_ half", FLAT, lambda n: (H(n), X(n)), lambda t, x, y: x.detach().copy_(y))
case("contiguous permuted bytes", IMAGES, Y, lambda t, x: x.permute(0, 2, 3, 1).contiguous())
case("contiguous sliced", SQUARE, N, lambda t, x: x[:, ::2].contiguous())
case("copy_", FLAT, lambda n: (X(n), X(n)), lambda t, x, y: x.copy_(y))
case("pad", IMAGES, N, lambda t, x: t.F.pad(x, (1, 1, 1, 1)))
for mode in ("reflect", "replicate", "circular"):
    case(f"pad {mode}", IMAGES, N, lambda t, x, mode=mode: t.F.pad(x, (1, 1, 1, 1), mode=mode))
case(
    "unfold patches",
    sizes([(1, 4, 8, 8), (8, 16, 32, 32), (16, 64, 56, 56)], [(1, 4, 8, 8), (4, 16, 16, 16), (4, 32, 56, 56)]),
    N,
    lambda t, x: t.F.unfold(x, 3, padding=1),
)
case(
    "fold", sizes([(1, 36, 64), (8, 144, 1024), (16, 576, 3136)], [(1, 36, 64), (4, 144, 256), (4, 288, 3136)]), N,
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
case("multinomial", SIGNALS, U, of_library("multinomial", 4), False)
for name in "uniform_ normal_ exponential_ cauchy_ log_normal_ random_".split():
    case(name.rstrip("_"), FLAT, X, lambda t, x, name=name: getattr(x, name)())
case("geometric", FLAT, X, lambda t, x: x.geometric_(0.3))
case("fill_", FLAT, X, lambda t, x: x.fill_(1.5))
case("zero_", FLAT, X, lambda t, x: x.zero_())
case("dropout", FLAT, N, lambda t, x: t.F.dropout(x, 0.1))
case("dropout half", FLAT, H, lambda t, x: t.F.dropout(x, 0.1))
case("dropout2d", IMAGES, N, lambda t, x: t.F.dropout2d(x, 0.1))
case("alpha_dropout", FLAT, N, lambda t, x: t.F.alpha_dropout(x, 0.1, training=True))
case("standard_gamma", FEWER, U, lambda t, x: t.lib._standard_gamma(x), False)
