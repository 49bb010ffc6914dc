"""What does a compiled program cost beside the same calls from Python, and beside PyTorch's interpreter?"""

from .harness import benchmark


def chain(x, y):
    """A hundred small operators."""
    x = ((x + y) * y - x).relu().sigmoid()
    x = ((x + y) * y - x).relu().sigmoid()
    x = ((x + y) * y - x).relu().sigmoid()
    x = ((x + y) * y - x).relu().sigmoid()
    x = ((x + y) * y - x).relu().sigmoid()
    x = ((x + y) * y - x).relu().sigmoid()
    x = ((x + y) * y - x).relu().sigmoid()
    x = ((x + y) * y - x).relu().sigmoid()
    x = ((x + y) * y - x).relu().sigmoid()
    x = ((x + y) * y - x).relu().sigmoid()
    x = ((x + y) * y - x).relu().sigmoid()
    x = ((x + y) * y - x).relu().sigmoid()
    x = ((x + y) * y - x).relu().sigmoid()
    x = ((x + y) * y - x).relu().sigmoid()
    x = ((x + y) * y - x).relu().sigmoid()
    x = ((x + y) * y - x).relu().sigmoid()
    x = ((x + y) * y - x).relu().sigmoid()
    x = ((x + y) * y - x).relu().sigmoid()
    x = ((x + y) * y - x).relu().sigmoid()
    x = ((x + y) * y - x).relu().sigmoid()
    return x


@benchmark(unit="us")
def a_chain_of_100_eager(lib):
    x, y = lib.ones(16), lib.ones(16)
    return lambda: chain(x, y)


@benchmark(unit="us")
def a_chain_of_100_scripted(lib):
    x, y = lib.ones(16), lib.ones(16)
    scripted = lib.jit.script(chain)
    for _ in range(3):  # PyTorch's first calls look at what comes
        scripted(x, y)
    return lambda: scripted(x, y)


@benchmark(unit="us")
def a_chain_of_100_traced(lib):
    x, y = lib.ones(16), lib.ones(16)
    traced = lib.jit.trace(chain, (x, y), check_trace=False)
    for _ in range(3):
        traced(x, y)
    return lambda: traced(x, y)


@benchmark(unit="us")
def a_layer_scripted(lib):
    layer, x = lib.jit.script(lib.nn.Linear(8, 8)), lib.ones(4, 8)
    for _ in range(3):
        layer(x)
    return lambda: layer(x)


def counting(n: int) -> int:
    total = 0
    for i in range(n):
        if i % 3 == 0:
            total += i
    return total


@benchmark(unit="us")
def a_loop_of_1000_over_numbers(lib):
    scripted = lib.jit.script(counting)
    scripted(10)
    return lambda: scripted(1000)
