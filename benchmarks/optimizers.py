"""How long does a step of an optimizer take, for a small layer and for a million elements?"""

from .harness import benchmark


def _stepped(lib, name, shapes, **settings):
    params = [lib.nn.Parameter(lib.randn(shape)) for shape in shapes]
    for p in params:
        p.grad = lib.randn(p.shape)
    return getattr(lib.optim, name)(params, **settings).step


SMALL, LARGE = [(16, 16), (16,)], [(256, 256)] * 16


@benchmark(unit="us")
def sgd_of_a_small_layer(lib):
    return _stepped(lib, "SGD", SMALL, lr=1e-3, momentum=0.9)


@benchmark(unit="us")
def adam_of_a_small_layer(lib):
    return _stepped(lib, "Adam", SMALL)


@benchmark(unit="us")
def sgd_of_a_million(lib):
    return _stepped(lib, "SGD", LARGE, lr=1e-3, momentum=0.9)


@benchmark(unit="us")
def adamw_of_a_million(lib):
    return _stepped(lib, "AdamW", LARGE)


@benchmark(unit="us")
def adam_with_amsgrad_of_a_million(lib):
    return _stepped(lib, "Adam", LARGE, amsgrad=True)


@benchmark(unit="us")
def rmsprop_of_a_million(lib):
    return _stepped(lib, "RMSprop", LARGE)


@benchmark(unit="us")
def adagrad_of_a_million(lib):
    return _stepped(lib, "Adagrad", LARGE)


@benchmark(unit="us")
def nadam_of_a_million(lib):
    return _stepped(lib, "NAdam", LARGE)


@benchmark(unit="us")
def forgetting_gradients_of_a_small_layer(lib):
    params = [lib.nn.Parameter(lib.randn(shape)) for shape in SMALL]
    return lib.optim.SGD(params, lr=1e-3).zero_grad
