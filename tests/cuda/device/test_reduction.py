"""Reductions on CUDA give what the CPU gives: over rows, columns, many dims, few elements and many, in every dtype."""

import math

import pytest
from agreeing import agree

import cresset

TOLERANCE = {"float32": 2e-5, "float64": 1e-12, "float16": 4e-3, "bfloat16": 3e-2}

# Shapes and the dims to reduce: rows, columns, both sides, a middle one, all; sizes that leave rests of vectors, blocks
# and splits.
PLACES = [
    ((), None), ((1,), 0), ((7,), None), ((5, 7), 1), ((5, 7), 0), ((3, 4, 6), (0, 2)), ((3, 4, 6), 1),
    ((2, 3, 4, 8), (0, 2, 3)),
    ((3, 1030), 1), ((600, 24), 0), ((2, 20000), 1), ((20000, 3), 0), ((40000,), None),
]  # fmt: skip


def numbers(shape, dtype="float32", seed=0):
    g = cresset.Generator().manual_seed(seed)
    dtype = getattr(cresset, dtype)
    if dtype == cresset.bool:
        return cresset.rand(shape, generator=g) < 0.7
    x = cresset.randn(shape, generator=g)
    return x.to(dtype) if dtype.is_floating_point or dtype.is_complex else (5 * x).to(dtype)


def check(program, x, tolerance=0.0):
    agree(program, x, tolerance=tolerance)


class TestSums:
    @pytest.mark.parametrize(("shape", "dim"), PLACES)
    def test_sum_of_any_dims(self, shape, dim):
        check(lambda x: x.sum(dim), numbers(shape), 1e-4)

    @pytest.mark.parametrize("dtype", ["float64", "float16", "bfloat16", "int32", "bool", "complex64"])
    def test_every_dtype(self, dtype):
        x, tolerance = numbers((33, 40), dtype), TOLERANCE.get(dtype, 1e-5)
        check(lambda x: x.sum(1), x, 5 * tolerance)
        check(lambda x: x.sum(0), x, 5 * tolerance)

    def test_the_dtype_that_is_asked_for(self):
        check(lambda x: x.sum(dtype=cresset.float64), numbers((50,), "float16"))
        check(lambda x: x.sum(0, dtype=cresset.int32), numbers((9, 3)))
        check(lambda x: x.mean(1, dtype=cresset.float32), numbers((9, 3), "int64"), 1e-6)

    def test_small_terms_are_not_lost_beside_a_large_sum(self):
        assert cresset.full((300000,), 0.1, device="cuda").sum().item() == pytest.approx(30000, rel=1e-6)

    def test_strided_and_expanded(self):
        x = numbers((6, 5, 8, 9))
        for view in (
            lambda t: t.permute(2, 0, 3, 1)[:, ::2],
            lambda t: t[:, :1].expand(6, 5, 8, 9),
            lambda t: t[1:, 1:, 1:, 1:],
        ):
            for dim in (0, 1, (0, 3), (1, 2), None):
                check(lambda t, d=dim, v=view: v(t).sum(d), x, 1e-4)

    def test_few_rows_of_many_columns(self):
        for shape, dim in (((2, 3, 4096), 0), ((5, 3, 1028), 1), ((15, 1001), 0), ((2, 2, 2, 514), (0, 2))):
            check(lambda x, dim=dim: [x.sum(dim), x.mean(dim), x.amax(dim)], numbers(shape), 1e-5)

    def test_memory_that_begins_between_vectors(self):
        for dtype in ("float32", "bfloat16", "uint8"):
            x = numbers((1 + 40 * 64,), dtype)
            check(lambda t: (t[1:].view(40, 64).sum(1), t[1:].view(40, 64).sum(0), t[1:].amax()), x, 5e-2)

    def test_many_dims_that_cannot_be_merged(self):
        x = numbers((2,) * 15).permute(*range(14, -1, -1))
        check(lambda t: t.sum((0, 2, 4, 6, 8, 10, 12, 14)), x, 1e-4)

    def test_of_nothing(self):
        x = cresset.zeros(3, 0, device="cuda")
        assert x.sum(1).tolist() == [0, 0, 0] and x.prod().item() == 1 and x.sum(0).shape == (0,)
        assert math.isnan(x.mean().item()) and x.any().item() is False and x.all().item() is True

    def test_nansum_mean_prod(self):
        x = numbers((31, 20))
        x[3, 4] = math.nan
        check(lambda t: t.nansum(0), x, 1e-5)
        check(lambda t: t.nansum(dtype=cresset.int64), x)
        check(lambda t: t.mean(1), x, 1e-6)
        check(lambda t: t.prod(1), x, 1e-5)
        check(lambda t: t.prod(0), numbers((4, 5), "int64"))
        check(lambda t: t.prod(), numbers((4, 5), "complex64"), 1e-5)
        check(lambda t: t.prod(dtype=cresset.bool), numbers((4, 5)) / 100)

    def test_a_gradient_is_summed_to_its_inputs_shape(self):
        def bias_gradient(x):
            bias = cresset.zeros(24, device=x.device, requires_grad=True)
            (x + bias).mul(x).sum().backward()
            return bias.grad

        check(bias_gradient, numbers((400, 24)), 1e-3)


class TestExtremes:
    def test_values_and_first_places(self):
        x = (2 * numbers((37, 50))).round()  # with ties
        check(lambda t: (*t.max(0), *t.max(1), *t.min(0), *t.min(1), t.argmax(0), t.argmin(1), t.amin(0), t.amax(1)), x)
        check(lambda t: (t.max(), t.min(), t.argmax(), t.argmin(), *t.aminmax()), x)

    @pytest.mark.parametrize("dtype", ["float64", "bfloat16", "int64", "uint8"])
    def test_every_dtype(self, dtype):
        check(lambda t: (*t.max(1), t.amin(0)), numbers((37, 50), dtype))

    def test_the_first_nan_wins(self):
        x = numbers((3, 700))
        x[1, 600] = x[1, 3] = x[2, 699] = math.nan
        check(lambda t: (*t.max(1), *t.min(1), t.amax(1), t.amin(0), t.argmax(), t.max()), x)

    def test_infinities_and_long_rows(self):
        x = cresset.full((2, 30000), -math.inf)
        check(lambda t: (*t.max(1), t.argmax()), x)
        x[1, 29999] = x[1, 17] = 4
        check(lambda t: (*t.max(1), t.argmax(), *t.max(0)), x)

    def test_a_transposed_tensor_counts_its_own_places(self):
        check(lambda t: (t.mT.argmax(), t.mT.argmin(0), *t.mT.max(1)), numbers((40, 30)))


class TestLogic:
    @pytest.mark.parametrize("dtype", ["bool", "float32"])
    def test_any_all_count(self, dtype):
        x = numbers((23, 40), dtype)
        x[:, 3] = 0
        check(lambda t: (t.any(), t.all(), t.any(0), t.all(1), t.any((0, 1)), t.count_nonzero(), t.count_nonzero(0)), x)

    def test_an_empty_list_of_dims_means_none(self):
        check(lambda t: t.any([]), numbers((4, 5)))


class TestMoments:
    @pytest.mark.parametrize(
        ("shape", "dim", "dtype"),
        [((5, 7), 1, "float32"), ((50, 24), 0, "bfloat16"), ((50, 24), 0, "float64"), ((4000,), None, "float32")],
    )
    def test_variance_and_mean(self, shape, dim, dtype):
        x, tolerance = numbers(shape, dtype), TOLERANCE[dtype]
        check(
            lambda t: (
                t.var(dim),
                t.std(dim, correction=0),
                *cresset.var_mean(t, dim),
                *cresset.std_mean(t, dim, keepdim=True),
            ),
            x,
            tolerance,
        )

    def test_far_from_zero(self):
        check(lambda t: t.var(0), numbers((3000, 2)) + 1000, 1e-4)
        x = numbers((5000,))
        x[0] = 1e4  # an outlier
        check(lambda t: t.var(), x, 1e-4)

    @pytest.mark.parametrize("order", [0.0, 1.0, 2.0, 3.0, 0.5, math.inf, -math.inf])
    def test_norms(self, order):
        check(lambda t: cresset.linalg.vector_norm(t, order), numbers((31, 12)), 1e-4)
        check(
            lambda t: cresset.linalg.vector_norm(t, order, dim=0),
            numbers((31, 12), "complex64" if order == 2 else "float32"),
            1e-4,
        )

    def test_logsumexp(self):
        x = 50 * numbers((40, 33))
        x[3], x[4, 5], x[5, 6] = -math.inf, math.inf, math.nan
        check(lambda t: (t.logsumexp(1), t.logsumexp(0), t.logsumexp((0, 1))), x, 1e-5)
