"""What does `compile` gain? Each program as it is and compiled, on memory that does not fit the cache."""

from .harness import benchmark


def chain(x, y):
    for _ in range(6):
        x = (x * y + 1).abs() - y * 0.5
    return x


@benchmark(unit="ms")
def a_chain_of_thirty_cheap_operators(lib):
    x, y = lib.rand(4_000_000), lib.rand(4_000_000)
    return lambda: chain(x, y)


@benchmark(unit="ms")
def the_same_chain_compiled(lib):
    x, y, compiled = lib.rand(4_000_000), lib.rand(4_000_000), lib.compile(chain)
    return lambda: compiled(x, y)
