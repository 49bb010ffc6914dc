"""What does recording and walking the graph cost?"""

from .harness import benchmark


@benchmark(unit="us")
def tiny_backward(lib):
    a, b = lib.ones(16, requires_grad=True), lib.ones(16, requires_grad=True)

    def step():
        a.grad = b.grad = None
        (a * b).sum().backward()

    return step


@benchmark(unit="ns")
def record_one_multiplication(lib):
    a, b = lib.ones(16, requires_grad=True), lib.ones(16)
    return lambda: a * b


@benchmark(unit="us")
def chain_of_1000(lib):
    x = lib.ones(16, requires_grad=True)

    def step():
        x.grad, y = None, x
        for _ in range(1000):
            y = y * 1.001
        y.sum().backward()

    return step


@benchmark(unit="us")
def fan_of_1000(lib):
    x = lib.ones(16, requires_grad=True)

    def step():
        x.grad, y = None, x
        for _ in range(1000):
            y = y + x
        y.sum().backward()

    return step


@benchmark(unit="us")
def second_derivative(lib):
    x = lib.ones(16, requires_grad=True)

    def step():
        (slope,) = lib.autograd.grad((x * x * x).sum(), x, create_graph=True)
        return lib.autograd.grad(slope.sum(), x)

    return step


@benchmark(unit="us")
def two_layers_forward_and_backward(lib):
    lib.manual_seed(0)
    inputs, w1, w2 = lib.randn(32, 64), lib.randn(64, 64, requires_grad=True), lib.randn(64, 10, requires_grad=True)

    def step():
        w1.grad = w2.grad = None
        ((inputs @ w1).relu() @ w2).pow(2).mean().backward()

    return step
