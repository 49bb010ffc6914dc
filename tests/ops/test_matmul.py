"""Products of matrices and vectors."""

import pytest

import cresset
from cresset.autograd import gradcheck, gradgradcheck


def matrix(rows, columns, dtype=cresset.float64):
    """The numbers 1, 2, 3, …, row by row, with signs that alternate by column."""
    numbers = cresset.arange(1.0, rows * columns + 1, dtype=dtype).reshape(rows, columns)
    return numbers * cresset.tensor([1.0, -1.0] * columns, dtype=dtype)[:columns]


def slow_product(a, b):
    return (a.unsqueeze(-1) * b.unsqueeze(-3)).sum(-2)


@pytest.mark.parametrize(
    "sizes", [(1, 1, 1), (2, 3, 4), (7, 5, 3), (16, 16, 16), (37, 53, 71), (130, 50, 200), (3, 5, 1000)]
)
@pytest.mark.parametrize("transposed", [(False, False), (True, False), (False, True), (True, True)])
def test_products_of_whole_numbers_are_exact_in_every_layout(sizes, transposed):
    m, n, k = sizes
    a = cresset.arange(m * k, dtype=cresset.float64).reshape(m, k) % 7 - 3
    b = cresset.arange(k * n, dtype=cresset.float64).reshape(k, n) % 5 - 2
    expected = slow_product(a, b)
    if transposed[0]:
        a = a.mT.contiguous().mT
    if transposed[1]:
        b = b.mT.contiguous().mT
    for dtype in (cresset.float64, cresset.float32, cresset.int64, cresset.int32, cresset.complex64):
        assert ((a.to(dtype) @ b.to(dtype)) == expected.to(dtype)).all()


class TestHalfPrecision:
    """Sums of small whole numbers, which bfloat16 and float16 have exactly whatever the order; some processors multiply
    pairs.
    """

    @pytest.mark.parametrize("dtype", [cresset.bfloat16, cresset.float16])
    @pytest.mark.parametrize(
        "sizes",
        [(1, 1, 2), (3, 4, 5), (1, 70, 64), (64, 1, 66), (5, 9, 600), (37, 53, 72), (130, 50, 202)]
        + [(17, 34, 514), (32, 64, 512), (33, 31, 1030)],
    )
    def test_products_in_every_layout(self, sizes, dtype):
        m, n, k = sizes
        a = (cresset.arange(m * k, dtype=cresset.float64).reshape(m, k) * 5 % 7 % 3 - 1) * (cresset.arange(k) % 4 != 3)
        b = cresset.arange(k * n, dtype=cresset.float64).reshape(k, n) * 3 % 11 % 3 - 1
        expected = a @ b
        assert expected.abs().max() <= 256
        layouts = [
            lambda t: t,
            lambda t: t.mT.contiguous().mT,
            lambda t: cresset.nn.functional.pad(t, (1, 2, 1, 0))[1:, 1:-2],
        ]
        for left in layouts:
            for right in layouts:
                x, y = left(a.to(dtype)), right(b.to(dtype))
                assert (x @ y).equal(expected.to(dtype))
                assert cresset.nn.functional.linear(x, y.mT, y.new_ones(n)).equal((expected + 1).to(dtype))
                assert cresset.addmm(y.new_ones(m, 1), x, y, beta=2, alpha=-1).equal((2 - expected).to(dtype))
        assert (a[0].to(dtype) @ b.to(dtype)).equal(expected[0].to(dtype))
        assert (a.to(dtype) @ b[:, 0].to(dtype)).equal(expected[:, 0].to(dtype))
        batch = cresset.stack([a, -a, a.flip(0)]).to(dtype)
        assert (batch @ b.to(dtype)).equal(cresset.stack([expected, -expected, expected.flip(0)]).to(dtype))
        assert cresset.bmm(batch, b.to(dtype).expand(3, k, n)).equal(batch @ b.to(dtype))

    def test_infinities_and_nan_stay(self):
        a = cresset.tensor([[float("inf"), 1.0], [float("nan"), 1.0], [1.0, -float("inf")]], dtype=cresset.bfloat16)
        first, second, third = (a @ cresset.ones(2, 1, dtype=cresset.bfloat16)).flatten().tolist()
        assert first == float("inf") and second != second and third == -float("inf")


@pytest.mark.cpu_only("threads")
@pytest.mark.parametrize("batch", [(), (5,), (2,)])
@pytest.mark.parametrize("dtype", [cresset.float32, cresset.bfloat16])
def test_results_do_not_depend_on_the_number_of_threads(batch, dtype):
    a, b = cresset.randn(*batch, 200, 1200).to(dtype), cresset.randn(*batch, 1200, 201).to(dtype)
    weight, bias = cresset.randn(201, 1200).to(dtype), cresset.randn(201).to(dtype)
    before, results = cresset.get_num_threads(), []
    try:
        for threads in (1, 2, 3):
            cresset.set_num_threads(threads)
            results.append(cresset.stack([a @ b, cresset.nn.functional.linear(a, weight, bias)]))
    finally:
        cresset.set_num_threads(before)
    assert (results[0] == results[1]).all() and (results[0] == results[2]).all()


@pytest.mark.parametrize("sizes", [(64, 128, 96), (24, 192, 144), (9, 500, 50), (130, 70, 97)])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("dtype", [cresset.float32, cresset.bfloat16])
def test_a_product_of_a_batch_is_the_product_alone(sizes, transposed, dtype):
    m, k, n = sizes
    a, b = cresset.randn(7, m, k).to(dtype), cresset.randn(7, k, n).to(dtype)
    if transposed:
        a, b = a.mT.contiguous().mT, b.mT.contiguous().mT
    for together in (a @ b, cresset.bmm(a, b)):
        for i in range(7):
            assert together[i].equal(a[i] @ b[i])
    shared = a @ b[0]
    assert all(shared[i].equal(a[i] @ b[0]) for i in range(7))


# Around the tiles of 8 rows by 48 columns, the sums of 384, the strips of columns and the levels of the cache.
@pytest.mark.parametrize("m", [7, 8, 9, 33, 300])
@pytest.mark.parametrize("n", [47, 48, 65, 500, 1100])
@pytest.mark.parametrize("k", [191, 384, 385, 800])
def test_products_of_float32_are_exact_at_the_edges_of_blocks(m, n, k):
    a = (cresset.arange(m * k) % 7 - 3).float().reshape(m, k)
    b = (cresset.arange(k * n) % 5 - 2).float().reshape(k, n)
    expected = (a.double() @ b.double()).float()
    assert expected.equal(a @ b)
    assert expected.equal(a.mT.contiguous().mT @ b.mT.contiguous().mT)
    wider = cresset.zeros(k, n + 3)
    wider[:, 1 : n + 1] = b
    assert expected.equal(a @ wider[:, 1 : n + 1])  # rows that begin anywhere


def test_batches_broadcast():
    a, b = cresset.ones(2, 1, 3, 4), cresset.ones(5, 4, 6)
    assert (a @ b).shape == (2, 5, 3, 6)
    assert ((a @ b) == 4).all()


def test_a_vector_is_a_row_on_the_left_and_a_column_on_the_right():
    m = cresset.tensor([[1.0, 2.0], [3.0, 4.0]])
    v = cresset.tensor([1.0, 10.0])
    assert (m @ v).tolist() == [21.0, 43.0]
    assert (v @ m).tolist() == [31.0, 42.0]
    assert (v @ v).item() == 101.0


def test_a_product_over_nothing_is_zero():
    assert (cresset.ones(2, 0) @ cresset.ones(0, 3)).tolist() == [[0.0] * 3] * 2
    assert cresset.addmm(cresset.ones(3), cresset.ones(2, 0), cresset.ones(0, 3), beta=2).tolist() == [[2.0] * 3] * 2


def test_with_beta_zero_the_input_is_not_read():
    nan = cresset.full((2, 2), float("nan"))
    assert cresset.addmm(nan, cresset.eye(2), cresset.eye(2), beta=0).tolist() == [[1.0, 0.0], [0.0, 1.0]]


def test_linear_adds_its_bias_to_every_row():
    x, w, b = cresset.ones(2, 3, 4), cresset.ones(5, 4), cresset.arange(5.0)
    assert (cresset.nn.functional.linear(x, w, b) == b + 4).all()


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: cresset.ones(2, 3) @ cresset.ones(4, 2), r"shapes cannot be multiplied \(2x3 and 4x2\)"),
        (lambda: cresset.ones(2, 3) @ cresset.ones(3, 2).double(), "to have the same dtype, but got: float != double"),
        (
            lambda: cresset.nn.Linear(3, 2)(cresset.ones(4, 3).half()),
            "linear: mat1 and mat2 must have the same dtype, but got Half and Float",
        ),
        (
            lambda: cresset.addmm(cresset.ones(2).double(), cresset.ones(2, 3), cresset.ones(3, 2).double()),
            "addmm: mat1 and mat2 must have the same dtype, but got Float and Double",
        ),
        (lambda: cresset.dot(cresset.ones(2), cresset.ones(3)), r"expected tensor \[2\] and src \[3\]"),
        (lambda: cresset.bmm(cresset.ones(2, 3), cresset.ones(2, 3)), "batch1 must be a 3D tensor"),
        (lambda: cresset.tensor(1.0) @ cresset.ones(2), "both arguments to matmul need to be at least 1D"),
        (lambda: cresset.mv(cresset.ones(2, 3), cresset.ones(4)), "size mismatch"),
    ],
)
def test_what_does_not_fit_is_an_error_that_says_why(call, message):
    with pytest.raises(RuntimeError, match=message):
        call()


@pytest.mark.parametrize(
    "shapes",
    [
        ((2, 3), (3, 4)),
        ((3,), (3,)),
        ((2, 3), (3,)),
        ((3,), (3, 2)),
        ((3,), (2, 3, 2)),
        ((2, 1, 2, 3), (2, 3, 1)),
        ((2, 2, 3), (3, 2)),
        ((2, 3), (2, 3, 2)),
    ],
)
@pytest.mark.parametrize("dtype", [cresset.float64, cresset.complex128])
def test_matmul_has_derivatives_of_every_order(shapes, dtype):
    a, b = (cresset.randn(*shape, dtype=dtype, requires_grad=True) for shape in shapes)
    assert gradcheck(cresset.matmul, (a, b))
    assert gradgradcheck(cresset.matmul, (a, b))


def test_addmm_and_linear_have_derivatives_of_every_order():
    bias, a, b = (cresset.randn(*s, dtype=cresset.float64, requires_grad=True) for s in [(4,), (2, 3), (3, 4)])
    assert gradcheck(lambda c, x, y: cresset.addmm(c, x, y, beta=0.5, alpha=2), (bias, a, b))
    x, w = (cresset.randn(*s, dtype=cresset.float64, requires_grad=True) for s in [(2, 5, 3), (4, 3)])
    assert gradgradcheck(cresset.nn.functional.linear, (x, w, bias))


def test_products_of_int8_are_summed_in_int32():
    a = cresset.full((2, 300), 127, dtype=cresset.int8)
    b = cresset.full((300, 3), -128, dtype=cresset.int8)
    assert cresset._int_mm(a, b).tolist() == [[-127 * 128 * 300] * 3] * 2
    with pytest.raises(RuntimeError, match="int8"):
        cresset._int_mm(a.int(), b)
    with pytest.raises(RuntimeError, match="needs to match"):
        cresset._int_mm(a, a)


def test_products_of_uint8_and_int8_are_summed_in_int32():
    a = cresset.full((2, 1500), 255, dtype=cresset.uint8)
    b = cresset.full((1500, 3), -127, dtype=cresset.int8)
    assert cresset._int_mm(a, b).tolist() == [[-255 * 127 * 1500] * 3] * 2
    with pytest.raises(RuntimeError, match="mat2 dtype"):
        cresset._int_mm(b.t(), a.t())


@pytest.mark.parametrize("rows", [5, 8, 11, 16])
def test_a_few_long_rows_are_products_with_each_row(rows):
    cresset.manual_seed(0)
    x, w, b = cresset.randn(rows, 400).double(), cresset.randn(70, 400).double(), cresset.randn(70).double()
    out = cresset.nn.functional.linear(x, w, b)
    for i in range(rows):
        assert cresset.allclose(out[i], (x[i] * w).sum(1) + b)


@pytest.mark.parametrize("dtype", [cresset.float32, cresset.float64, cresset.int64, cresset.bfloat16])
@pytest.mark.parametrize("width", [33, 1000])
def test_a_column_times_a_row_is_each_product(dtype, width):
    column, row = (cresset.arange(n).remainder(7).sub(3).to(dtype) for n in (40, width))
    start = cresset.arange(40 * width).remainder(5).reshape(40, width).to(dtype)
    products = [[x * y for y in row.tolist()] for x in column.tolist()]
    assert (column[:, None] @ row[None]).tolist() == products
    found = cresset.addmm(start, column[:, None], row[None], beta=2, alpha=3)
    expected = [[2 * s + 3 * p for s, p in zip(*rows)] for rows in zip(start.tolist(), products, strict=True)]
    assert found.tolist() == expected
    assert cresset.addmm(start[0], column[:, None], row[None])[3].tolist() == (start[0] + column[3] * row).tolist()
    pairs = column.repeat(2).reshape(2, 40).t() @ row.repeat(2).reshape(2, width)
    assert pairs.tolist() == [[2 * x for x in line] for line in products]
