"""Products on CUDA: what the CPU gives, for every kind of factor that cuBLASLt can and cannot take as it lies."""

import pytest

import cresset

DTYPES = ["float32", "float64", "float16", "bfloat16", "complex64", "complex128"]
TOLERANCE = {"float16": 4e-3, "bfloat16": 3e-2, "float64": 1e-12, "complex128": 1e-12}


def made(*shape, dtype="float32", seed=0):
    generator = cresset.Generator().manual_seed(seed + sum(shape))
    dtype = getattr(cresset, dtype)
    wide = cresset.float64 if not dtype.is_complex else cresset.complex128
    return cresset.randn(shape, dtype=wide, generator=generator).to(dtype)


def agrees(function, *tensors, dtype="float32", **arguments):
    """The function of the tensors on CUDA and on the CPU; views are made on the device."""
    expected = function(*tensors, **arguments)
    result = function(*[t.cuda() for t in tensors], **arguments)
    assert result.device.type == "cuda"
    assert result.dtype == expected.dtype
    assert result.shape == expected.shape
    tolerance = TOLERANCE.get(dtype, 1e-5)
    cresset.testing.assert_close(result.cpu(), expected, atol=tolerance * 4, rtol=tolerance)


@pytest.mark.parametrize("dtype", DTYPES)
class TestEveryDtype:
    def test_matrices(self, dtype):
        agrees(cresset.mm, made(5, 7, dtype=dtype), made(7, 3, dtype=dtype), dtype=dtype)

    def test_batches(self, dtype):
        agrees(cresset.bmm, made(4, 5, 7, dtype=dtype), made(4, 7, 3, dtype=dtype), dtype=dtype)

    def test_vectors(self, dtype):
        agrees(cresset.dot, made(33, dtype=dtype), made(33, dtype=dtype, seed=1), dtype=dtype)
        agrees(cresset.mv, made(5, 7, dtype=dtype), made(7, dtype=dtype), dtype=dtype)
        agrees(cresset.outer, made(5, dtype=dtype), made(7, dtype=dtype), dtype=dtype)

    def test_linear_adds_a_bias(self, dtype):
        agrees(
            cresset.nn.functional.linear,
            made(2, 3, 8, dtype=dtype),
            made(5, 8, dtype=dtype),
            made(5, dtype=dtype),
            dtype=dtype,
        )

    def test_addmm_scales_both(self, dtype):
        agrees(
            cresset.addmm,
            made(4, 6, dtype=dtype),
            made(4, 5, dtype=dtype),
            made(5, 6, dtype=dtype),
            beta=0.5,
            alpha=2,
            dtype=dtype,
        )

    def test_baddbmm_broadcasts_its_input(self, dtype):
        agrees(
            cresset.baddbmm,
            made(4, 1, dtype=dtype),
            made(3, 4, 5, dtype=dtype),
            made(3, 5, 6, dtype=dtype),
            beta=2,
            dtype=dtype,
        )


def inside(t, *shape_and_window):
    """The elements of t in a window of a larger tensor."""
    *shape, window = shape_and_window
    view = t.new_zeros(*shape)[window]
    return view.copy_(t)


# How a 2-D factor of 6 x 8 may lie.
LIES = {
    "rows": lambda t: t,
    "columns": lambda t: t.t().contiguous().t(),
    "a window": lambda t: inside(t, 8, 11, (slice(1, -1), slice(1, -2))),
    "every second column": lambda t: inside(t, 6, 16, (slice(None), slice(None, None, 2))),
    "every second row": lambda t: inside(t, 12, 8, slice(None, None, 2)),
    "one row seen often": lambda t: t[:1].expand(6, 8),
    "one column seen often": lambda t: t[:, :1].expand(6, 8),
}


@pytest.mark.parametrize("second", LIES)
@pytest.mark.parametrize("first", LIES)
def test_factors_are_read_where_they_lie(first, second):
    a, b = made(6, 8), made(6, 8, seed=1)
    agrees(lambda a, b: LIES[first](a) @ LIES[second](b).t(), a, b)
    agrees(lambda a, b: LIES[first](a).t() @ LIES[second](b), a, b)


@pytest.mark.parametrize(
    "first, second",
    [
        ((3,), (3,)), ((3,), (3, 4)), ((4, 3), (3,)), ((2, 4, 3), (3,)), ((3,), (2, 3, 4)), ((2, 4, 3), (3, 5)),
        ((4, 3), (2, 3, 5)),
        ((2, 1, 4, 3), (1, 5, 3, 2)), ((7, 1, 4, 3), (1, 9, 3, 2)), ((2, 3, 4, 5), (2, 3, 5, 1)), ((1, 1), (1, 1)),
        ((1, 5), (5, 1)), ((5, 1), (1, 5)), ((2, 1, 1), (2, 1, 4)),
        ((0, 3), (3, 4)), ((2, 0), (0, 4)), ((2, 3), (3, 0)), ((0, 2, 3), (0, 3, 4)), ((0,), (0,)),
    ],
)  # fmt: skip
def test_matmul_of_all_shapes(first, second):
    agrees(cresset.matmul, made(*first), made(*second, seed=1))


@pytest.mark.parametrize("heads", [2, 11])
def test_batches_of_two_dimensions_that_do_not_merge(heads):
    def scores(q, k):
        return q.transpose(1, 2) @ k.transpose(1, 2).transpose(2, 3)

    agrees(scores, made(7, 3, heads, 4), made(7, 5, heads, 4))


@pytest.mark.parametrize("shape", [(4, 6), (6,), (1, 6), (4, 1), (1,), ()])
@pytest.mark.parametrize("beta", [0, 1, 3])
def test_the_input_of_addmm_broadcasts(shape, beta):
    agrees(cresset.addmm, made(*shape), made(4, 5), made(5, 6), beta=beta)
    agrees(
        lambda i, a, b: cresset.addmm(i.expand(4, 6).t().contiguous().t(), a, b, beta=beta),
        made(*shape),
        made(4, 5),
        made(5, 6),
    )


def test_the_input_of_addmm_is_not_read_when_beta_is_zero():
    nothing = cresset.full((2, 2), float("nan"), device="cuda")
    assert cresset.addmm(
        nothing, cresset.ones(2, 3, device="cuda"), cresset.ones(3, 2, device="cuda"), beta=0
    ).tolist() == [[3, 3], [3, 3]]


def test_products_in_place_and_into_out():
    a, b = cresset.ones(2, 3, device="cuda"), cresset.ones(3, 2, device="cuda")
    total = cresset.ones(2, 2, device="cuda")
    total.addmm_(a, b, beta=2, alpha=10)
    assert total.tolist() == [[32, 32], [32, 32]]
    target = cresset.zeros(4, 2, device="cuda")
    cresset.mm(a, b, out=target[::2])
    assert target.tolist() == [[3, 3], [0, 0], [3, 3], [0, 0]]


def test_unaligned_factors():
    base = made(2 * 31 + 1)
    agrees(lambda t: t[1:].view(2, 31) @ t[:-1].view(2, 31).t(), base)
    agrees(lambda t: t[1:].view(2, 31) @ t[:-1].view(2, 31).t(), base.half(), dtype="float16")
    agrees(lambda t, bias: cresset.nn.functional.linear(t[1:].view(2, 31), t[:-1].view(2, 31), bias[1:]), base, made(3))


@pytest.mark.parametrize("shape", [(5, 8), (2, 3, 8), (8,)])
def test_gradients_of_linear(shape):
    tensors = made(*shape), made(4, 8)

    def gradients(device):
        input, weight = (t.detach().to(device).requires_grad_() for t in tensors)
        result = cresset.nn.functional.linear(input, weight)
        result.backward(made(*result.shape, seed=3).to(device))
        return [t.grad.cpu() for t in (input, weight)]

    cresset.testing.assert_close(gradients("cuda"), gradients("cpu"), atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("m, n, k", [(1, 7, 3), (16, 16, 32), (33, 17, 200), (32, 10, 256), (5, 40, 33), (17, 3, 1)])
def test_small_matrices_have_a_kernel_of_their_own(m, n, k):
    first, second, bias = made(m, k), made(k, n, seed=1), made(n, seed=2)
    along_k = [(a, b) for a in (first, made(k, m).t()) for b in (second, made(n, k, seed=1).t())]
    for a, b in along_k:
        agrees(cresset.mm, a, b)
        agrees(lambda bias, a, b: cresset.addmm(bias, a, b, alpha=-0.5), bias, a, b)
    agrees(cresset.bmm, made(3, m, k), made(3, k, n))
    agrees(lambda a, b: cresset.matmul(a[1:, :-1], b[:-1, 1:]), made(m + 1, k + 1), made(k + 1, n + 1))


def test_rows_of_a_linear_input_that_cannot_be_walked_in_one_step():
    agrees(lambda t, w: cresset.nn.functional.linear(t.transpose(0, 1), w), made(3, 2, 8), made(4, 8))


def test_tf32_is_used_only_when_it_is_allowed():
    settings = cresset.backends.cuda.matmul
    before = settings.fp32_precision
    # TF32 has ten bits after the point: the last bit of 1 + 2^-12 is not seen. Small matrices are never multiplied so.
    matrix, small = (cresset.full((n, 64), 1 + 2**-12, device="cuda") for n in (256, 64))
    try:
        assert (matrix @ matrix.t())[0, 0].item() == pytest.approx(64 * (1 + 2**-12) ** 2, rel=1e-7)
        cresset.set_float32_matmul_precision("high")
        assert settings.allow_tf32
        assert (matrix @ matrix.t())[0, 0].item() == 64
        assert (small @ small.t())[0, 0].item() > 64
        settings.allow_tf32 = False
        assert settings.fp32_precision == "ieee"
        assert (matrix @ matrix.t())[0, 0].item() > 64
    finally:
        cresset.set_float32_matmul_precision("highest")
        settings.fp32_precision = before


def test_products_of_integers_are_the_cpus(recwarn):
    cresset._native.cuda.refuse_host(False)
    a = cresset.arange(6).view(2, 3)
    assert (a.cuda() @ a.cuda().t()).tolist() == [[5, 14], [14, 50]]


def test_more_shapes_than_plans_are_kept():
    vector = cresset.ones(9000, device="cuda")
    for length in range(1, 9000, 1):
        last = cresset.dot(vector[:length], vector[:length])
    assert last.item() == 8999
    assert cresset.dot(vector[:2], vector[:2]).item() == 2


class TestBytes:
    """Products of int8 and of 8-bit floats, on tensor cores where the sizes fit and otherwise."""

    @pytest.mark.parametrize("m, k, n", [(5, 8, 12), (3, 7, 5), (1, 4, 4), (4, 0, 3)])
    def test_integers_are_summed_exactly(self, m, k, n):
        a = cresset.arange(m * k, dtype=cresset.int32).reshape(m, k).mul(37).remainder(255).sub(127).to(cresset.int8)
        b = cresset.arange(k * n, dtype=cresset.int32).reshape(k, n).mul(91).remainder(255).sub(127).to(cresset.int8)
        expected = cresset._int_mm(a, b)
        for left in (a.cuda(), a.cuda().t().contiguous().t()):
            for right in (b.cuda(), b.cuda().t().contiguous().t()):
                result = cresset._int_mm(left, right)
                assert result.dtype == cresset.int32 and result.cpu().equal(expected)

    @pytest.mark.parametrize("sizes", [(5, 32, 16), (4, 6, 3)])
    @pytest.mark.parametrize("types", [("float8_e4m3fn", "float8_e4m3fn"), ("float8_e5m2", "float8_e4m3fn")])
    @pytest.mark.parametrize("out", ["bfloat16", "float32", "float8_e4m3fn"])
    def test_floats_with_scales(self, sizes, types, out):
        m, k, n = sizes
        a = cresset.randn(m, k).to(getattr(cresset, types[0]))
        b = cresset.randn(n, k).to(getattr(cresset, types[1])).t()
        for scales in ((cresset.tensor(0.5), cresset.tensor(3.0)), (cresset.rand(m, 1), cresset.rand(1, n))):
            expected = a.double() @ b.double() * scales[0] * scales[1]
            there = [t.cuda() for t in scales]
            result = cresset._scaled_mm(a.cuda(), b.cuda(), *there, out_dtype=getattr(cresset, out))
            assert result.dtype == getattr(cresset, out) and result.shape == (m, n)
            # Tensor cores keep about 14 bits of a sum of 8-bit floats.
            bound = {"float32": 1e-3, "bfloat16": 1e-2, "float8_e4m3fn": 0.13}[out]
            error = (result.cpu().double() - expected).abs().max().item()
            assert error <= bound * max(expected.abs().max().item(), 1)

    def test_floats_with_a_bias(self):
        a = cresset.randn(3, 32).to(cresset.float8_e4m3fn)
        b = cresset.randn(16, 32).to(cresset.float8_e4m3fn).t()
        one, bias = cresset.tensor(1.0), cresset.arange(16.0).bfloat16()
        expected = cresset._scaled_mm(a, b, one, one, bias, out_dtype=cresset.bfloat16)
        there = (t.cuda() for t in (a, b, one, one, bias))
        result = cresset._scaled_mm(*there, out_dtype=cresset.bfloat16, use_fast_accum=True)
        assert (result.cpu().float() - expected.float()).abs().max().item() <= 0.1


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("rows, k", [(64, 8), (67, 264), (131, 2056), (8193, 40)])
def test_a_matrix_times_one_vector(dtype, rows, k):
    """The kernel that reads a matrix by rows: with and without a bias, the vector on either side."""
    weight, x, bias = made(rows, k, dtype=dtype), made(1, k, dtype=dtype, seed=1), made(rows, dtype=dtype, seed=2)
    for given in (None, bias):
        result = cresset.nn.functional.linear(x.cuda(), weight.cuda(), None if given is None else given.cuda())
        expected = cresset.nn.functional.linear(x.double(), weight.double(), None if given is None else given.double())
        scale = (x.double().abs() @ weight.double().abs().mT).max().item()
        assert (result.cpu().double() - expected).abs().max().item() <= TOLERANCE.get(dtype, 1e-5) * scale
    turned = cresset.mv(weight.cuda(), x[0].cuda())
    assert cresset.equal(turned, cresset.nn.functional.linear(x.cuda(), weight.cuda())[0])
    part = weight.cuda()[:, : k - k % 8 - 8] if k > 16 else weight.cuda()
    inside = cresset.mv(part, x[0, : part.shape[1]].cuda())
    assert cresset.equal(inside, cresset.mv(part.contiguous(), x[0, : part.shape[1]].cuda()))


@pytest.fixture
def measured():
    """Products of every size are measured; gives how many were so far."""
    native = cresset._native.cuda
    least, level = native.measure_products_from(1.0), native.measure_products(1)
    yield lambda: native.products_measured()[0]
    native.measure_products(level)
    native.measure_products_from(least)


def test_a_measured_product_keeps_its_bits(measured):
    a, b = (made(*shape, dtype="float16").cuda() for shape in ((272, 80), (80, 144)))
    before, first = measured(), a @ b
    others = [a @ b for _ in range(30)]
    assert measured() == before + 1
    assert all(cresset.equal(first, other) for other in others)


def test_products_that_say_nothing_of_their_order_are_not_changed(measured):
    """Zeros have the same bits in any order."""
    changed = cresset._native.cuda.products_measured()[1]
    a, b = (cresset.zeros(*shape, dtype=cresset.float16, device="cuda") for shape in ((288, 80), (80, 176)))
    before = measured()
    for _ in range(30):
        a @ b
    assert measured() == before + 1
    assert cresset._native.cuda.products_measured()[1] == changed
