"""How fast are matrix products, from a vector's to a large one?"""

from .harness import benchmark


def square(n):
    """A benchmark of one n by n product."""

    def body(lib):
        lib.manual_seed(0)
        a, b = lib.randn(n, n), lib.randn(n, n)
        return lambda: a @ b

    body.__name__ = f"matmul_{n}"
    return benchmark(unit="us", seconds=0.5)(body)


matmul_64, matmul_256, matmul_512, matmul_1024 = map(square, (64, 256, 512, 1024))


@benchmark(unit="us")
def matrix_times_vector_1024(lib):
    a, x = lib.ones(1024, 1024), lib.ones(1024)
    return lambda: a @ x


@benchmark(unit="us")
def dot_of_a_million(lib):
    x, y = lib.ones(2**20), lib.ones(2**20)
    return lambda: x.dot(y)


@benchmark(unit="us")
def batch_of_64_products_of_32(lib):
    a, b = lib.ones(64, 32, 32), lib.ones(64, 32, 32)
    return lambda: a @ b


@benchmark(unit="us", seconds=0.5)
def transposed_operand_512(lib):
    lib.manual_seed(0)
    a, b = lib.randn(512, 512), lib.randn(512, 512)
    return lambda: a @ b.t()


@benchmark(unit="us", seconds=0.5)
def float64_256(lib):
    lib.manual_seed(0)
    a, b = lib.randn(256, 256, dtype=lib.float64), lib.randn(256, 256, dtype=lib.float64)
    return lambda: a @ b


@benchmark(unit="us")
def integers_64(lib):
    a = lib.ones(64, 64, dtype=lib.int64)
    return lambda: a @ a
