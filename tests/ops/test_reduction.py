"""Reductions: sums, products, extremes, logic, moments, norms."""

import hashlib
import math
import os
import subprocess
import sys

import pytest

import cresset
from cresset.autograd import gradcheck, gradgradcheck

NAN, INF = float("nan"), float("inf")


def test_sum_takes_all_one_or_several_dimensions():
    x = cresset.arange(24).reshape(2, 3, 4)
    assert x.sum().item() == 276
    assert x.sum(0).tolist() == [[12, 14, 16, 18], [20, 22, 24, 26], [28, 30, 32, 34]]
    assert x.sum((0, -1)).tolist() == [60, 92, 124]
    assert x.sum(1, keepdim=True).shape == (2, 1, 4)
    assert x.sum(()).item() == 276


def test_sum_of_every_layout():
    x = cresset.arange(60.0).reshape(3, 4, 5)
    views = [x, x.permute(2, 0, 1), x[:, ::2], x.transpose(0, 1)[1:], x[:1].expand(7, 4, 5)]
    for view in views:
        for dim in range(3):
            assert view.sum(dim).tolist() == view.contiguous().sum(dim).tolist()


def test_sums_of_integers_and_bool_are_int64():
    assert cresset.tensor([100, 100, 100], dtype=cresset.int8).sum().item() == 300
    assert cresset.tensor([True, True]).sum().dtype == cresset.int64
    assert cresset.tensor([1.7, 1.7]).sum(dtype=cresset.int64).item() == 2


@pytest.mark.parametrize("dtype", [cresset.float32, cresset.float16, cresset.bfloat16])
def test_a_long_sum_keeps_its_digits(dtype):
    x = cresset.ones(20_000_000 if dtype == cresset.float32 else 100_000, dtype=dtype)
    assert x.sum(dtype=cresset.float32).item() == x.numel()
    assert x.mean().item() == 1.0


def test_columns_keep_their_digits_too():
    x = cresset.full((100_000, 3), 0.1)
    assert x.sum(0).tolist() == pytest.approx([10000.0] * 3, rel=1e-6)


def test_mean_of_integers_is_refused():
    with pytest.raises(RuntimeError, match="could not infer output dtype.*Got: Long"):
        cresset.arange(3).mean()


def test_prod_and_its_gradient_with_zeros():
    x = cresset.tensor([2.0, 0.0, 3.0], requires_grad=True)
    x.prod().backward()
    assert x.grad.tolist() == [0.0, 6.0, 0.0]
    assert cresset.tensor([[1, 2], [3, 4]]).prod(0).tolist() == [3, 8]


def test_extremes_and_where_they_are():
    x = cresset.tensor([[1, 5, 5], [7, 2, 0]])
    values, indices = x.max(1)
    assert values.tolist() == [5, 7] and indices.tolist() == [1, 0]
    assert x.min(dim=0).indices.tolist() == [0, 1, 1]
    assert x.argmax().item() == 3 and x.argmin(1).tolist() == [0, 2]
    assert x.amax((0, 1)).item() == 7
    assert [t.item() for t in x.aminmax()] == [0, 7]
    assert cresset.max(x, cresset.tensor([3])).tolist() == [[3, 5, 5], [7, 3, 3]]


def test_the_first_of_equal_elements_is_found_anywhere():
    for n in (3, 70, 5000):
        x = cresset.zeros(n)
        x[n - 1] = 1
        assert x.argmax().item() == n - 1
        x[n // 2] = 1
        assert x.argmax().item() == n // 2
        columns = x.unsqueeze(1).repeat(1, 3)
        assert columns.argmax(0).tolist() == [n // 2] * 3


@pytest.mark.parametrize("slope", [NAN, INF])
def test_the_gradient_of_an_extreme_of_all_reaches_nothing_else(slope):
    for data, at in (([1.0, 2.0, 0.0], 1), ([1.0, NAN, 2.0], 1)):
        x = cresset.tensor(data, requires_grad=True)
        (x.max() * slope).backward()
        assert x.grad[[0, 2]].tolist() == [0.0, 0.0] and str(x.grad[at].item()) == str(slope)


def test_nan_is_the_extreme_of_all():
    x = cresset.tensor([1.0, NAN, 3.0, NAN])
    assert math.isnan(x.max().item()) and math.isnan(x.amin().item())
    assert x.max(0).indices.item() == 1 and x.argmin().item() == 1


def test_equal_extremes_share_the_gradient():
    x = cresset.tensor([1.0, 3.0, 3.0], requires_grad=True)
    x.amax().backward()
    assert x.grad.tolist() == [0.0, 0.5, 0.5]
    y = cresset.tensor([1.0, 3.0, 3.0], requires_grad=True)
    y.max(0).values.backward()
    assert y.grad.tolist() == [0.0, 1.0, 0.0]


def test_any_all_count():
    x = cresset.tensor([[0.0, 1.0], [2.0, NAN]])
    assert x.any(1).tolist() == [True, True] and x.all(1).tolist() == [False, True]
    assert x.count_nonzero().item() == 3 and x.count_nonzero(0).tolist() == [1, 2]
    assert cresset.zeros(0).all().item() and not cresset.zeros(0).any().item()
    assert cresset.tensor([1], dtype=cresset.uint8).any().dtype == cresset.uint8
    assert x.any(dim=()).tolist() == [[False, True], [True, True]]


def test_logsumexp_does_not_overflow():
    x = cresset.tensor([[1000.0, 1000.0], [-INF, -INF], [INF, 0.0]])
    assert x.logsumexp(1).tolist() == pytest.approx([1000 + math.log(2), -INF, INF])
    many = cresset.full((10000,), -1000.0)
    assert many.logsumexp(0).item() == pytest.approx(-1000 + math.log(10000))


def test_variance_in_its_three_spellings():
    x = cresset.tensor([[1.0, 3.0], [2.0, 6.0]])
    assert x.var(1).tolist() == [2.0, 8.0]
    assert x.var(1, False).tolist() == [1.0, 4.0]
    assert x.var(1, correction=0).tolist() == [1.0, 4.0]
    assert x.var(False).item() == 3.5
    assert x.std(1).tolist() == pytest.approx([2**0.5, 8**0.5])
    assert x.std(1, unbiased=True, keepdim=True).shape == (2, 1)
    assert [t.tolist() for t in cresset.var_mean(x, 1)] == [[2.0, 8.0], [2.0, 4.0]]
    assert cresset.tensor([1 + 1j, -1 - 1j]).var().item() == 4.0


def test_the_mean_beside_a_deviation_that_is_none_has_derivatives_of_its_own():
    for spread_and_mean in (cresset.std_mean, cresset.var_mean):
        for call in (
            lambda x, f=spread_and_mean: f(x),
            lambda x, f=spread_and_mean: f(x, -1),
            lambda x, f=spread_and_mean: f(x, -1, True),
            lambda x, f=spread_and_mean: f(x, True),
        ):
            x = cresset.tensor([3.0], requires_grad=True)
            with pytest.warns(UserWarning, match="degrees of freedom"):
                mean = call(x)[1]
            (slope,) = cresset.autograd.grad(mean.sum() ** 2, x, create_graph=True)
            assert slope.item() == 6.0
            assert cresset.autograd.grad(slope, x)[0].item() == 2.0


def test_results_in_an_out_of_more_digits_have_them():
    x, wide = cresset.tensor([1.0, 1.0, 2.0]), cresset.zeros((), dtype=cresset.float64)
    assert cresset.mean(x, 0, out=wide).item() == 4 / 3
    assert cresset.var(x, 0, out=wide).item() == pytest.approx(1 / 3, rel=1e-15)
    assert cresset.std(x * 1j, 0, out=wide).item() == pytest.approx(3**-0.5, rel=1e-15)
    assert cresset.logsumexp(x * 0, 0, out=wide).item() == pytest.approx(math.log(3), rel=1e-15)


def test_variance_far_from_zero_keeps_its_digits():
    x = cresset.arange(10000.0) % 2 + 10000
    assert x.var(correction=0).item() == pytest.approx(0.25, rel=1e-5)
    assert x.reshape(100, 100).t().var(0, correction=0).tolist() == pytest.approx([0.25] * 100, rel=1e-5)


@pytest.mark.parametrize("exponent", [-40, -25, -20, 0, 18, 20, 30])
@pytest.mark.parametrize("laid_out", [lambda x: x, lambda x: x.t().contiguous().t(), lambda x: x.expand(40, 3)])
def test_the_spread_of_very_small_and_very_large_numbers(exponent, laid_out):
    scale = 10.0**exponent
    x = laid_out(cresset.tensor([[1.0, 2.0, 6.0]]) * scale)
    assert (x.std(1) / scale).tolist() == pytest.approx([7**0.5] * len(x), rel=1e-4)
    assert cresset.std_mean(x, 1)[1].tolist() == pytest.approx([3 * scale] * len(x), rel=1e-4)
    variance = 7 * scale**2 if 7 * scale**2 < 3.4e38 else INF
    assert x.var(1).tolist() == pytest.approx([variance] * len(x), rel=1e-4, abs=1e-44)
    assert x.var(0, correction=0).tolist() == pytest.approx([0.0] * 3, abs=1e-12 * scale**2)


def test_the_spread_of_numbers_whose_sum_overflows():
    for dtype, largest in ((cresset.float32, 3e38), (cresset.bfloat16, 3e38), (cresset.float64, 1.5e308)):
        x = cresset.full((5,), largest, dtype=dtype)
        spread, mean = cresset.var_mean(x)
        assert spread.item() == 0 and mean.item() == x[0].item()
    assert cresset.tensor([1e200, 2e200, 5e200], dtype=cresset.float64).var().item() == INF
    assert cresset.std_mean(cresset.tensor([3e38, 3e38, -3e38]))[0].item() == INF
    assert math.isnan(cresset.tensor([1.0, INF]).std().item()) and math.isnan(
        cresset.tensor([1.0, math.nan]).var().item()
    )


def test_equal_numbers_have_no_spread():
    for value in (0.1, 1 / 3, 1e-30, 7e20, 0.0):
        x = cresset.full((257, 3), value)
        for spread in (x.std(), x.std(0).amax(), x.std(1).amax()):
            assert 0 <= spread.item() <= 1e-6 * value


def test_too_few_elements_for_a_variance_are_named():
    with pytest.warns(UserWarning, match="degrees of freedom is <= 0"):
        assert math.isnan(cresset.tensor([1.0]).var().item())


@pytest.mark.parametrize(
    ("p", "value"),
    [(0, 2.0), (1, 7.0), (2, 5.0), (3, 91 ** (1 / 3)), (INF, 4.0), (-INF, 0.0), (0.5, 7 + 2 * 12**0.5), ("fro", 5.0)],
)
def test_norms(p, value):
    assert cresset.tensor([3.0, -4.0, 0.0]).norm(p).item() == pytest.approx(value)
    assert cresset.tensor([3j, -4.0, 0.0]).norm(p).item() == pytest.approx(value)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda x: x.sum(2), IndexError, "Dimension out of range"),
        (lambda x: x.sum((0, -2)), RuntimeError, "dim 0 appears multiple times"),
        (lambda x: x[:0].max(), RuntimeError, r"max\(\): Expected reduction dim to be specified"),
        (lambda x: x[:0].amax(0), IndexError, r"amax\(\): Expected reduction dim 0 to have non-zero size"),
        (lambda x: x[:0].argmin(), IndexError, r"argmin\(\): Expected reduction dim to be specified"),
        (lambda x: x.to(cresset.complex64).max(0), RuntimeError, "does not support complex input"),
        (lambda x: x.long().var(), RuntimeError, "std and var only support floating point and complex dtypes"),
        (
            lambda x: cresset.linalg_vector_norm(x.long()),
            RuntimeError,
            "Expected a floating point or complex tensor as input. Got Long",
        ),
        (lambda x: x[:0].norm(INF), RuntimeError, "does not have an identity"),
    ],
)
def test_errors_name_what_is_wrong(call, error, message):
    with pytest.raises(error, match=message):
        call(cresset.ones(2, 3))


FUNCTIONS = {
    "sum": lambda x: x.sum((0, 2)),
    "mean": lambda x: x.mean(1),
    "prod": lambda x: x.prod(1),
    "amax": lambda x: x.amax(2),
    "max": lambda x: x.max(1, keepdim=True).values,
    "logsumexp": lambda x: x.logsumexp((0, 2)),
    "var": lambda x: x.var(1),
    "std": lambda x: x.std((0, 2), correction=0),
    "var_mean": lambda x: cresset.var_mean(x, 0),
    "norm 2": lambda x: x.norm(2, 1),
    "norm 3": lambda x: x.norm(3),
    "nansum": lambda x: x.nansum(0),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives_agree_with_finite_differences(name):
    x = (cresset.arange(24, dtype=cresset.float64).reshape(2, 3, 4) * 7 % 23 / 5 - 2.05).requires_grad_()
    assert gradcheck(FUNCTIONS[name], (x,))
    assert gradgradcheck(FUNCTIONS[name], (x,))


def test_shapes_alone_go_through_on_meta():
    x = cresset.empty(2, 3, device="meta")
    assert x.sum(0).shape == (3,) and x.max(1).values.is_meta and x.softmax(0).shape == (2, 3)


def test_out_takes_the_result_in_place():
    x, out = cresset.arange(6.0).reshape(2, 3), cresset.empty(3)
    assert cresset.sum(x, 0, out=out) is out and out.tolist() == [3.0, 5.0, 7.0]
    column = cresset.zeros(2, 2)
    cresset.sum(x, 1, out=column[:, 0])
    assert column.tolist() == [[3.0, 0.0], [12.0, 0.0]]


def _digest():
    """The bits of many reductions of the same numbers."""
    x = (cresset.arange(600_000, dtype=cresset.float32) * 7919 % 10007 / 5003 - 1).reshape(600, 1000)
    results = [
        x.sum(),
        x.sum(0),
        x.sum(1),
        x.t().mean(0),
        x.var(),
        x.var(0),
        x.norm(3),
        x.logsumexp(0),
        x.softmax(1),
        x.softmax(0),
        x.cumsum(0),
    ]
    results += [
        x.double().sum(1),
        x.prod(1),
        x.amax(0),
        cresset.layer_norm(x, (1000,)),
        cresset.batch_norm(x, None, None, None, None, True, 0.1, 1e-5, False),
    ]
    return hashlib.sha256(b"".join(r.numpy().tobytes() for r in results)).hexdigest()


@pytest.mark.cpu_only("threads")
def test_results_do_not_depend_on_the_number_of_threads():
    pytest.importorskip("numpy")
    before = cresset.get_num_threads()
    try:
        digests = set()
        for threads in (1, 2, 3):
            cresset.set_num_threads(threads)
            digests.add(_digest())
    finally:
        cresset.set_num_threads(before)
    assert len(digests) == 1


@pytest.mark.cpu_only("instruction sets")
@pytest.mark.parametrize("level", ["baseline", "avx2"])
def test_results_do_not_depend_on_the_instruction_set(level):
    pytest.importorskip("numpy")
    program = (
        f"import importlib.util as u; s = u.spec_from_file_location('t', {__file__!r}); m = "
        "u.module_from_spec(s); s.loader.exec_module(m); print(m._digest())"
    )
    run = subprocess.run(
        [sys.executable, "-P", "-c", program],
        env={**os.environ, "CRESSET_ISA": level},
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout.split()[-1] == _digest()


@pytest.mark.parametrize("name", ["sum", "prod", "mean", "cumsum", "cumprod"])
def test_a_dtype_and_an_out_that_differ_are_refused(name):
    x, reduce = cresset.ones(2, 3), getattr(cresset, name)
    with pytest.raises(RuntimeError, match="Expected out tensor to have dtype float64, but got float32 instead"):
        reduce(x, 0, dtype=cresset.float64, out=cresset.empty(0))
    out = reduce(x, 0, dtype=cresset.float64, out=cresset.empty(0, dtype=cresset.float64))
    assert out.dtype is cresset.float64


def test_the_dtype_of_an_out_is_told_in_both_languages_and_by_the_name_of_the_result():
    places = cresset.empty(0, dtype=cresset.int64)
    with pytest.raises(RuntimeError, match="expected scalar type Float but got Int for values"):
        cresset.max(cresset.ones(2, 3), 0, out=(cresset.empty(0, dtype=cresset.int32), places))
    with pytest.raises(RuntimeError, match="expected scalar_type Long but found Float"):
        cresset.nonzero(cresset.ones(2), out=cresset.empty(0))


def test_the_histogram_of_the_largest_numbers_has_them_at_its_end():
    most = cresset.finfo(cresset.float32).max
    assert cresset.histc(cresset.tensor([most, most]), 4).tolist() == [0.0, 0.0, 0.0, 2.0]
    assert cresset.histc(cresset.tensor([-most, -most]), 4).tolist() == [2.0, 0.0, 0.0, 0.0]


def test_nonzero_as_a_tuple_takes_no_out():
    with pytest.raises(RuntimeError, match="does not support the out kwarg when as_tuple is True"):
        cresset.nonzero(cresset.ones(2), as_tuple=True, out=cresset.empty(0, dtype=cresset.int64))


def test_complex_halves_have_a_spread():
    x = cresset.view_as_complex(cresset.tensor([[1.0, 0.0], [3.0, 2.0], [5.0, 4.0]], dtype=cresset.float16))
    assert x.var(0).dtype == cresset.float16 and x.var(0).item() == 8.0  # four of each part
    assert x.std(correction=0).item() == pytest.approx((16 / 3) ** 0.5, rel=1e-3)
    spread, mean = cresset.var_mean(x, 0)
    assert spread.item() == 8.0 and mean.dtype == cresset.complex32 and mean.to(cresset.complex64).item() == 3 + 2j


@pytest.mark.parametrize("name", ["max", "min"])
def test_gradients_of_a_number_and_of_its_extreme_are_two_tensors(name):
    x = cresset.tensor(2.0, requires_grad=True)
    y = getattr(cresset, name)(x, 0).values
    first, second = cresset.autograd.grad(y * y, [x, y])
    assert first.add_(1).item() == 5.0 and second.item() == 4.0
