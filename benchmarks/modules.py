"""What does a module add to the functions it calls?"""

from .harness import benchmark


@benchmark(unit="ns")
def a_module_that_does_nothing(lib):
    module, x = lib.nn.Identity(), lib.ones(1)
    return lambda: module(x)


@benchmark(unit="ns")
def its_forward_alone(lib):
    module, x = lib.nn.Identity(), lib.ones(1)
    return lambda: module.forward(x)


@benchmark(unit="ns")
def a_parameter_by_name(lib):
    module = lib.nn.Linear(1, 1)
    return lambda: module.weight


@benchmark(unit="ns")
def a_small_linear_layer(lib):
    module, x = lib.nn.Linear(16, 16), lib.randn(4, 16)
    return lambda: module(x)


@benchmark(unit="ns")
def ten_small_layers(lib):
    module, x = lib.nn.Sequential(*(lib.nn.Linear(16, 16) for _ in range(10))), lib.randn(4, 16)
    return lambda: module(x)
