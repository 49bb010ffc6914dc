"""Statistics: quantiles, spread, covariance."""

import math

import pytest

import cresset

NAN = float("nan")


@pytest.mark.parametrize(
    ("interpolation", "value"), [("linear", 1.75), ("lower", 1.0), ("higher", 2.0), ("midpoint", 1.5), ("nearest", 2.0)]
)
def test_quantile_interpolates(interpolation, value):
    x = cresset.tensor([4.0, 2.0, 3.0, 1.0])
    assert x.quantile(0.25, interpolation=interpolation).item() == value


def test_quantiles_stand_in_front():
    x = cresset.arange(12.0).reshape(3, 4)
    q = cresset.tensor([0.0, 1.0])
    assert x.quantile(q, dim=1).tolist() == [[0.0, 4.0, 8.0], [3.0, 7.0, 11.0]]
    assert x.quantile(q, dim=1, keepdim=True).shape == (2, 3, 1)


def test_nan_spoils_a_quantile_unless_passed_over():
    x = cresset.tensor([1.0, NAN, 3.0])
    assert math.isnan(x.quantile(0.5).item())
    assert x.nanquantile(0.5).item() == 2.0


def test_nanmedian_is_the_lower_middle_and_says_where():
    result = cresset.tensor([[NAN, 5.0, 1.0, 3.0, 2.0], [NAN] * 5]).nanmedian(1)
    assert result.values.tolist()[0] == 2.0 and math.isnan(result.values[1].item())
    assert result.indices[0].item() == 4
    assert type(result).__name__ == "nanmedian"


def test_sums_pass_over_nan_and_give_it_no_gradient():
    x = cresset.tensor([1.0, NAN, 3.0], requires_grad=True)
    assert x.nansum().item() == 4.0
    x.nanmean().backward()
    assert x.grad.tolist() == [0.5, 0.0, 0.5]


def test_spread_and_mean_in_all_spellings():
    x = cresset.tensor([[1.0, 3.0], [5.0, 9.0]])
    assert [t.tolist() for t in cresset.var_mean(x, 1)] == [[2.0, 8.0], [2.0, 7.0]]
    assert [t.tolist() for t in cresset.var_mean(x, 1, False)] == [[1.0, 4.0], [2.0, 7.0]]
    assert [t.tolist() for t in cresset.std_mean(x, 1, correction=0)] == [[1.0, 2.0], [2.0, 7.0]]
    assert cresset.std_mean(x, False)[0].item() == pytest.approx(8.75**0.5)


def test_covariance_with_weights_counts_repeated_observations():
    x = cresset.tensor([[0.0, 1.0, 2.0], [1.0, 0.0, 5.0]])
    times = cresset.tensor([1, 2, 1])
    assert cresset.allclose(x.cov(fweights=times), x.repeat_interleave(times, 1).cov())
    assert x.corrcoef().diagonal().tolist() == pytest.approx([1.0, 1.0])


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda x: x.long().quantile(0.5), RuntimeError, "must be either float or double dtype"),
        (lambda x: x.quantile(1.5), RuntimeError, r"q must be in the range \[0, 1\] but got 1.5"),
        (lambda x: x.quantile(0.5, interpolation="cubic"), RuntimeError, "but got cubic"),
        (lambda x: x[:0].quantile(0.5), RuntimeError, "must be non-empty"),
        (lambda x: x[:0].nanmedian(0), IndexError, "Expected reduction dim 0 to have non-zero size"),
        (lambda x: x[:0].aminmax(), RuntimeError, "no identity"),
        (lambda x: cresset.std_mean(x.long()), RuntimeError, "only support floating point"),
        (lambda x: x.cov(fweights=x[0]), RuntimeError, "fweights to have integral dtype"),
        (lambda x: x.bool().cov(), RuntimeError, "bool dtype is not supported"),
        (lambda x: x.diff(-1), RuntimeError, "order must be non-negative but got -1"),
        (lambda x: x.diff(prepend=x[0]), RuntimeError, "same dimension as input"),
        (lambda x: cresset.gradient(x, edge_order=3), RuntimeError, "only supports edge_order=1 and edge_order=2"),
        (lambda x: cresset.gradient(x.byte()), RuntimeError, "does not support uint8 input"),
        (lambda x: cresset.gradient(x, spacing=[1.0]), RuntimeError, "a spacing argument of length 1"),
        (lambda x: cresset.trapezoid(x.bool()), RuntimeError, "received a bool input for `y`"),
        (lambda x: x.long().histc(), NotImplementedError, "not implemented for .int64."),
        (lambda x: x.histc(3, 5, 1), RuntimeError, "max must be larger than min"),
        (lambda x: (x * NAN).histc(3), RuntimeError, "is not finite"),
        (lambda x: x.histogram(0), RuntimeError, "bins must be > 0, but got 0"),
        (lambda x: cresset.histogramdd(x, [2]), RuntimeError, "must be equal to the innermost dimension"),
        (lambda x: (x[0].long() - 1).bincount(), RuntimeError, "1-d non-negative integral inputs"),
        (lambda x: x.bincount(), NotImplementedError, "bincount"),
        (lambda x: cresset.cdist(x, x[:, :2]), RuntimeError, "same number of columns. X1: 3 X2: 2"),
        (lambda x: cresset.cdist(x, x, -1), RuntimeError, "non-negative p"),
        (lambda x: cresset.pdist(x[0]), RuntimeError, "only supports 2D tensors, got: 1D"),
        (lambda x: x.renorm(2, 0, -1), RuntimeError, "expected maxnorm to be >= 0 but got -1"),
    ],
)
def test_error_says_what_is_wrong(call, error, message):
    with pytest.raises(error, match=message):
        call(cresset.zeros(2, 3))


@pytest.mark.parametrize("spread", ["std_mean", "var_mean"])
def test_the_mean_of_one_number_has_a_gradient_though_its_deviation_has_none(spread):
    x = cresset.tensor([2.0], requires_grad=True)
    with pytest.warns(UserWarning, match="degrees of freedom"):
        mean = getattr(cresset, spread)(x, 0)[1]
    mean.backward()
    assert x.grad.tolist() == [1.0]


@pytest.mark.parametrize("reduce", [cresset.nansum, cresset.nanmean])
@pytest.mark.parametrize("dtype", ["int64", "bool", "complex64"])
def test_sums_without_nan_are_not_summed_in_an_out_that_has_none(reduce, dtype):
    with pytest.raises(NotImplementedError, match='"nansum_cpu" not implemented for'):
        reduce(cresset.ones(2, 3), 0, out=cresset.empty(0, dtype=getattr(cresset, dtype)))


def test_means_without_nan_are_written_to_out():
    x = cresset.tensor([[1.0, float("nan")], [4.0, 2.0]])
    out = cresset.empty(0, dtype=cresset.float64)
    assert cresset.nanmean(x, 0, out=out) is out
    assert out.tolist() == [2.5, 2.0]


def test_mvlgamma_of_many_variables_ends_at_once():
    x = cresset.tensor([4.0])
    assert abs(cresset.mvlgamma(x, 3).item() - 5.40298) < 1e-4  # lgamma(4) + lgamma(3.5) + lgamma(3) + 1.5 log pi
    with pytest.raises(RuntimeError):
        cresset.mvlgamma(cresset.ones(1).expand(2**40), 2**31)  # more elements than there is memory for
