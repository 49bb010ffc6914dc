"""Products, Fourier transforms and linear algebra."""

from .cases import (
    BATCHES,
    FEWER,
    FLAT,
    HALF_SIGNALS,
    MATRICES,
    PLANES,
    ROWS,
    SIGNALS,
    SQUARE,
    C,
    D,
    H,
    N,
    W,
    X,
    case,
    index,
    of_library,
    sizes,
)

# ---- products

MATMUL = sizes([64, 512, 4096], [32, 128, 1024])
for kind, letter in (("", N), (" half", H)):
    case(f"matmul{kind}", MATMUL, lambda n, a=letter: (a(n, n), a(n, n)), of_library("matmul"))
    case(
        f"bmm{kind}",
        BATCHES,
        lambda n, m, a=letter: (a(n, m, m), a(n, m, m)),
        of_library("bmm"),
    )
    case(f"linear{kind}", MATMUL, lambda n, a=letter: (a(n, n), a(n, n), a(n)), of_library("linear"))
    case(f"mv{kind}", MATMUL, lambda n, a=letter: (a(n, n), a(n)), of_library("mv"))
case("mm", MATMUL, lambda n: (N(n, n), N(n, n)), of_library("mm"))
case("addmm", MATMUL, lambda n: (N(n), N(n, n), N(n, n)), of_library("addmm"))
case("baddbmm", BATCHES, lambda n, m: (N(n, m, m), N(n, m, m), N(n, m, m)), of_library("baddbmm"))
case("addmv", MATMUL, lambda n: (N(n), N(n, n), N(n)), of_library("addmv"))
case("addbmm", BATCHES, lambda n, m: (N(m, m), N(n, m, m), N(n, m, m)), of_library("addbmm"))
case("addr", SQUARE, lambda n, m: (N(n, m), N(n), N(m)), of_library("addr"))
case("dot", FLAT, lambda n: (N(n), N(n)), of_library("dot"))
case("vdot", FLAT, lambda n: (N(n), N(n)), of_library("vdot"))
case("outer", SQUARE, lambda n, m: (N(n), N(m)), of_library("outer"))
case(
    "kron",
    sizes([(4, 4), (32, 32), (64, 64)], [(4, 4), (16, 16), (40, 40)]),
    lambda n, m: (N(n, m), N(n, m)),
    of_library("kron"),
)
case("cross", FEWER, lambda n: (N(n, 3), N(n, 3)), lambda t, x, y: t.lib.linalg.cross(x, y))
case(
    "einsum",
    BATCHES,
    lambda n, m: (N(n, m, m), N(n, m, m)),
    lambda t, x, y: t.lib.einsum("bij,bkj->bik", x, y),
)
case(
    "tensordot",
    sizes([16, 128, 256], [16, 64, 128]),
    lambda n: (N(n, n, 8), N(8, n, n)),
    lambda t, x, y: t.lib.tensordot(x, y, ([1, 2], [1, 0])),
)
case(
    "matmul double",
    sizes([64, 512, 2048], [32, 128, 512]),
    lambda n: (N(n, n),),
    lambda t, x: (lambda d: d @ d)(x.double()),
    False,
)
case("matmul complex", sizes([64, 512, 2048], [32, 128, 512]), lambda n: (C(n, n), C(n, n)), of_library("matmul"))
case(
    "matmul integers",
    sizes([64, 512, 2048], [32, 128, 512]),
    lambda n: (index(9, n, n), index(9, n, n)),
    of_library("matmul"),
)
case("mv double", MATMUL, lambda n: (W(n, n), W(n)), of_library("mv"))
case("bmm double", BATCHES, lambda n, m: (W(n, m, m), W(n, m, m)), of_library("bmm"))
case("matmul transposed", MATMUL, lambda n: (N(n, n), N(n, n)), lambda t, x, y: x.t() @ y.t())
case("matmul thin", MATMUL, lambda n: (N(4, n), N(n, n)), of_library("matmul"))
case("linear rows", BATCHES, lambda n, m: (N(n, m, m), N(m, m), N(m)), of_library("linear"))
case("dot double", FEWER, lambda n: (W(n), W(n)), of_library("dot"))
case(
    "cdist",
    sizes([(64, 64), (512, 128), (4096, 256)], [(32, 32), (256, 64), (1024, 128)]),
    lambda n, m: (N(n, m), N(n, m)),
    of_library("cdist"),
)
case(
    "cdist 1",
    sizes([(64, 64), (512, 128), (2048, 64)], [(32, 32), (256, 64), (1024, 64)]),
    lambda n, m: (N(n, m), N(n, m)),
    of_library("cdist", 1.0),
)
case("pdist", sizes([(64, 64), (512, 128), (2048, 256)], [(32, 32), (256, 64), (1024, 128)]), N, of_library("pdist"))
case(
    "bilinear",
    sizes([(8, 16), (64, 64), (512, 128)], [(8, 16), (32, 32), (256, 64)]),
    lambda n, m: (N(n, m), N(n, m), N(m, m, m)),
    of_library("bilinear"),
)

# ---- Fourier transforms

case("fft", SIGNALS, C, lambda t, x: t.lib.fft.fft(x))
case("ifft", SIGNALS, C, lambda t, x: t.lib.fft.ifft(x))
case("rfft", SIGNALS, N, lambda t, x: t.lib.fft.rfft(x))
case("irfft", HALF_SIGNALS, C, lambda t, x: t.lib.fft.irfft(x))
case(
    "fft columns",
    sizes([(64, 64), (1024, 1024), (4096, 4096)], [(32, 32), (256, 256), (1024, 1024)]),
    C,
    lambda t, x: t.lib.fft.fft(x, dim=0),
)
case("fft2", PLANES, C, lambda t, x: t.lib.fft.fft2(x))
case("rfft2", PLANES, N, lambda t, x: t.lib.fft.rfft2(x))
case(
    "irfft2",
    sizes([(4, 16, 9), (16, 128, 65), (64, 512, 257)], [(4, 16, 9), (4, 128, 65), (8, 512, 257)]),
    C,
    lambda t, x: t.lib.fft.irfft2(x),
)
case(
    "rfftn",
    sizes([(1, 8, 8, 8), (4, 32, 32, 32), (16, 128, 128, 128)], [(1, 8, 8, 8), (2, 32, 32, 32), (2, 128, 128, 128)]),
    N,
    lambda t, x: t.lib.fft.rfftn(x, dim=(1, 2, 3)),
)
case("fftshift", ROWS, N, lambda t, x: t.lib.fft.fftshift(x))
case(
    "stft",
    sizes([(2, 1024), (8, 1 << 16), (32, 1 << 20)], [(2, 1024), (4, 1 << 14), (8, 1 << 18)]),
    N,
    lambda t, x: t.lib.stft(x, 256, 64, window=t.window(256), return_complex=True),
)

# ---- linear algebra

for name in ("cholesky", "inv", "det", "slogdet", "eigh", "matrix_exp", "inv_ex", "cholesky_ex"):
    case(name, MATRICES, D, lambda t, x, name=name: getattr(t.lib.linalg, name)(x))
for name in ("qr", "svdvals", "svd"):
    case(
        name,
        sizes([(4, 8, 8), (16, 32, 32), (1, 256, 256)], [(4, 8, 8), (16, 32, 32), (1, 256, 256)]),
        N,
        lambda t, x, name=name: getattr(t.lib.linalg, name)(x),
        False,
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
case(
    "lu_solve", MATRICES, lambda b, n, m: (D(b, n, m), N(b, n, 4)),
    lambda t, x, y: t.lib.linalg.lu_solve(*t.keep(("lu", *x.shape), lambda: t.lib.linalg.lu_factor(x.detach())), y),
    False,
)  # fmt: skip
case("pinv", MATRICES, D, lambda t, x: t.lib.linalg.pinv(x), False)
case("lstsq", MATRICES, lambda b, n, m: (D(b, n, m), N(b, n, 4)), lambda t, x, y: t.lib.linalg.lstsq(x, y)[0], False)
case("eigvalsh", MATRICES, D, lambda t, x: t.lib.linalg.eigvalsh(x), False)
case(
    "eigvals",
    sizes([(4, 8, 8), (16, 32, 32), (1, 256, 256)], [(4, 8, 8), (16, 32, 32), (1, 128, 128)]),
    N,
    lambda t, x: t.lib.linalg.eigvals(x),
    False,
)
case("matrix_norm", MATRICES, N, lambda t, x: t.lib.linalg.matrix_norm(x))

# ---- sparse products

for layout in ("coo", "csr"):
    case(
        f"mm sparse {layout}", SQUARE, lambda n, m: (X(n, m), N(m, 32)),
        lambda t, x, y, layout=layout: t.thinned(x, layout) @ y,
    )  # fmt: skip

# ---- lists of tensors

LISTS = sizes([(16, 64), (64, 1 << 14), (64, 1 << 19)], [(16, 64), (32, 2048), (32, 1 << 17)])
for name, operands in {"add": 2, "mul": 2, "addcmul": 3, "sqrt": 1, "norm": 1, "lerp": 3}.items():
    case(
        f"_foreach_{name}", LISTS, lambda n, m, k=operands: tuple(X(m) for _ in range(n * k)),
        lambda t, *x, name=name, k=operands: getattr(t.lib, f"_foreach_{name}")(*t.lists(x, k)),
    )  # fmt: skip
