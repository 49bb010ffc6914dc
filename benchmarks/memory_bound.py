"""How fast do simple operations stream through four million numbers?"""

from .harness import benchmark

SIZE = 4 * 2**20


def over_one(name, call):
    """A benchmark of `call(lib, x)` on random numbers."""

    def body(lib):
        lib.manual_seed(0)
        x = lib.randn(SIZE)
        return lambda: call(lib, x)

    body.__name__ = name
    return benchmark(unit="us", seconds=0.5)(body)


exp_4m = over_one("exp_4m", lambda lib, x: x.exp())
tanh_4m = over_one("tanh_4m", lambda lib, x: x.tanh())
sigmoid_4m = over_one("sigmoid_4m", lambda lib, x: x.sigmoid())
relu_4m = over_one("relu_4m", lambda lib, x: x.relu())
sum_4m = over_one("sum_4m", lambda lib, x: x.sum())
max_4m = over_one("max_4m", lambda lib, x: x.max())
clone_4m = over_one("clone_4m", lambda lib, x: x.clone())
greater_than_zero_4m = over_one("greater_than_zero_4m", lambda lib, x: x > 0)
to_bfloat16_4m = over_one("to_bfloat16_4m", lambda lib, x: x.to(lib.bfloat16))
add_4m = over_one("add_4m", lambda lib, x: x + x)
softmax_rows_of_1024 = over_one("softmax_rows_of_1024", lambda lib, x: x.view(-1, 1024).softmax(-1))
sum_of_rows_of_1024 = over_one("sum_of_rows_of_1024", lambda lib, x: x.view(-1, 1024).sum(1))
sum_of_columns_of_1024 = over_one("sum_of_columns_of_1024", lambda lib, x: x.view(-1, 1024).sum(0))
transpose_and_copy_2048 = over_one("transpose_and_copy_2048", lambda lib, x: x.view(2048, 2048).t().contiguous())
cumsum_rows_of_1024 = over_one("cumsum_rows_of_1024", lambda lib, x: x.view(-1, 1024).cumsum(1))


@benchmark(unit="us", seconds=0.5)
def gelu_4m(lib):
    lib.manual_seed(0)
    x, gelu = lib.randn(SIZE), lib.nn.functional.gelu
    return lambda: gelu(x)


@benchmark(unit="us", seconds=0.5)
def add_a_row_to_every_row(lib):
    x, row = lib.ones(4096, 1024), lib.ones(1024)
    return lambda: x + row


@benchmark(unit="us", seconds=0.5)
def add_in_place_4m(lib):
    x, y = lib.ones(SIZE), lib.zeros(SIZE)
    return lambda: x.add_(y)


@benchmark(unit="us", seconds=0.5)
def randn_4m(lib):
    lib.manual_seed(0)
    return lambda: lib.randn(SIZE)
