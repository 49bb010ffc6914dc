"""Reductions, scans, sorts and sets."""

from .cases import (
    FEWER,
    FLAT,
    IMAGES,
    MEASURED,
    ROWS,
    SQUARE,
    WIDE,
    B,
    C,
    H,
    N,
    U,
    W,
    X,
    Y,
    case,
    index,
    of_library,
    sizes,
)

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
case("sum integers rows", ROWS, lambda n, m: (index(100, n, m),), of_library("sum", -1))
case("sum bool", ROWS, B, of_library("sum"))
case("sum bool rows", ROWS, B, of_library("sum", -1))
case("sum bytes", ROWS, Y, of_library("sum"))
case("sum double", ROWS, W, of_library("sum"))
case("sum double rows", ROWS, W, of_library("sum", -1))
case("sum complex", FEWER, C, of_library("sum"))
case("mean half", ROWS, H, of_library("mean"))
for name in ("max", "amax", "argmax", "prod"):
    case(f"{name} integers rows", ROWS, lambda n, m: (index(100, n, m),), of_library(name, -1))
case("max half", ROWS, H, of_library("max"))
case("max half rows", ROWS, H, of_library("max", -1))
case("max bytes", ROWS, Y, of_library("max"))
case("any bytes rows", ROWS, Y, of_library("any", -1))
case("var double rows", ROWS, W, of_library("var", -1))
case("sum images", IMAGES, N, lambda t, x: x.sum((0, 2, 3)))
case("mean half rows", ROWS, H, of_library("mean", -1))
case("dist", ROWS, lambda n, m: (N(n, m), N(n, m)), of_library("dist"))
case("trace", SQUARE, N, of_library("trace"))
case("equal", FLAT, lambda n: (X(n), X(n)), lambda t, x, y: t.lib.equal(x, y))
case("allclose", FLAT, lambda n: (X(n), X(n)), lambda t, x, y: t.lib.allclose(x, y))
for name in ("median", "nanmedian"):
    case(f"{name} rows", ROWS, N, of_library(name, -1))
    case(name, FLAT, N, of_library(name))
case(
    "mode rows",
    sizes([(64, 64), (256, 1024), (1024, 2048)], [(32, 32), (64, 1024), (1024, 1024)]),
    lambda n, m: (index(50, n, m),),
    of_library("mode", -1),
)
case("kthvalue rows", ROWS, N, of_library("kthvalue", 5, -1))
case("quantile rows", ROWS, N, of_library("quantile", 0.3, -1))
case("nanquantile rows", ROWS, N, of_library("nanquantile", 0.3, -1))
case("cov", MEASURED, N, of_library("cov"))
case("corrcoef", MEASURED, N, of_library("corrcoef"))
case("renorm", ROWS, N, of_library("renorm", 2, 0, 1.0))

# ---- scans, sorts, sets

for name in "cumsum cumprod cummax cummin logcumsumexp".split():
    case(f"{name} rows", ROWS, U, of_library(name, -1), name != "cumprod")
    case(f"{name} columns", ROWS, U, of_library(name, 0), name != "cumprod")
case("cumsum", FLAT, N, of_library("cumsum", 0))
case("cumsum integers", FLAT, lambda n: (index(100, n),), of_library("cumsum", 0))
case("cumsum half rows", ROWS, H, of_library("cumsum", -1))
case("sort bytes", FEWER, Y, of_library("sort"))
case("sort double", FEWER, W, of_library("sort"), False)
case("topk integers rows", ROWS, lambda n, m: (index(1 << 40, n, m),), of_library("topk", 10))
case("sort", FEWER, N, of_library("sort"))
case("sort half", FEWER, H, of_library("sort"), False)
case("sort integers", FEWER, lambda n: (index(1 << 40, n),), of_library("sort"))
case("sort rows", ROWS, N, of_library("sort", -1))
case(
    "sort short rows",
    sizes([(64, 32), (4096, 128), (65536, 256)], [(32, 32), (512, 128), (16384, 128)]),
    N,
    of_library("sort", -1),
)
case(
    "sort columns",
    sizes([(64, 64), (1024, 256), (4096, 2048)], [(32, 32), (256, 256), (2048, 1024)]),
    N,
    of_library("sort", 0),
    False,
)
case("argsort rows", ROWS, N, of_library("argsort"))
case("msort", ROWS, N, of_library("msort"), False)
case("topk rows", ROWS, N, of_library("topk", 10))
case("topk wide", WIDE, N, of_library("topk", 50))
case("topk", FLAT, N, of_library("topk", 100))
case("unique", FEWER, lambda n: (index(100000, n),), of_library("unique"))
case("unique_consecutive", FLAT, lambda n: (index(4, n),), of_library("unique_consecutive"))
case("searchsorted", FLAT, lambda n: (index(1 << 20, n), N(n)), lambda t, i, x: t.lib.searchsorted(t.sorted(), x))
case("bucketize", FLAT, N, lambda t, x: t.lib.bucketize(x, t.sorted()))
case("isin", FEWER, lambda n: (index(1 << 20, n), index(1 << 20, 1000)), of_library("isin"))
case("bincount", FLAT, lambda n: (index(1000, n),), of_library("bincount"))
case("histc", FLAT, N, of_library("histc", 100, -3, 3))
