"""How long does one small operation take when called from Python?"""

from .harness import benchmark


@benchmark(unit="ns")
def add_two_small_tensors(lib):
    a, b = lib.ones(16), lib.ones(16)
    return lambda: a + b


@benchmark(unit="ns")
def add_a_number(lib):
    a = lib.ones(16)
    return lambda: a + 1


@benchmark(unit="ns")
def add_in_place(lib):
    a, b = lib.ones(16), lib.zeros(16)
    return lambda: a.add_(b)


@benchmark(unit="ns")
def add_as_a_function(lib):
    a, b, add = lib.ones(16), lib.ones(16), lib.add
    return lambda: add(a, b)


@benchmark(unit="ns")
def add_with_broadcasting(lib):
    a, b = lib.ones(4, 1), lib.ones(4)
    return lambda: a + b


@benchmark(unit="ns")
def chain_of_five(lib):
    a, b = lib.ones(16), lib.ones(16)
    return lambda: ((a + b) * a - b).exp().relu()


@benchmark(unit="ns")
def sum_of_16(lib):
    a = lib.ones(16)
    return lambda: a.sum()


@benchmark(unit="ns")
def matmul_16(lib):
    a, b = lib.ones(16, 16), lib.ones(16, 16)
    return lambda: a @ b


@benchmark(unit="ns")
def index_with_a_number(lib):
    a = lib.ones(16, 16)
    return lambda: a[3]


@benchmark(unit="ns")
def index_with_a_slice(lib):
    a = lib.ones(16, 16)
    return lambda: a[2:5, ::2]


@benchmark(unit="ns")
def view_as_another_shape(lib):
    a = lib.ones(16, 16)
    return lambda: a.view(4, 64)


@benchmark(unit="ns")
def transpose(lib):
    a = lib.ones(16, 16)
    return lambda: a.transpose(0, 1)


@benchmark(unit="ns")
def read_one_number(lib):
    a = lib.ones(1)
    return lambda: a.item()


@benchmark(unit="ns")
def make_zeros(lib):
    zeros = lib.zeros
    return lambda: zeros(16)


@benchmark(unit="ns")
def make_from_a_list(lib):
    tensor, values = lib.tensor, [1.0, 2.0, 3.0, 4.0]
    return lambda: tensor(values)


@benchmark(unit="ns")
def ask_for_shape(lib):
    a = lib.ones(16, 16)
    return lambda: a.shape
