"""Random tensors: ranges, moments, streams, gradients and errors. tests/compat compares the numbers with PyTorch's."""

import math

import pytest

import cresset

DEVICES_DO_NOT_LOOK = pytest.mark.cpu_only("a device does not look at the probabilities")


@pytest.fixture(autouse=True)
def fixed_seed():
    cresset.manual_seed(1)


def drawn(sample, **kwargs):
    return sample(cresset.empty(20000, **kwargs))


@pytest.mark.parametrize(
    "fill, mean, variance",
    [
        (lambda x: x.uniform_(-1, 3), 1.0, 16 / 12),
        (lambda x: x.normal_(2, 3), 2.0, 9.0),
        (lambda x: x.exponential_(2), 0.5, 0.25),
        (lambda x: x.bernoulli_(0.25), 0.25, 0.1875),
        (lambda x: x.geometric_(0.5), 2.0, 2.0),
        (lambda x: x.random_(0, 11), 5.0, 10.0),
        (lambda x: x.log_normal_(0, 0.5), math.exp(0.125), (math.exp(0.25) - 1) * math.exp(0.25)),
        (lambda x: cresset.poisson(x.fill_(3)), 3.0, 3.0),
        (lambda x: cresset.binomial(x.fill_(10), cresset.full_like(x, 0.3)), 3.0, 2.1),
        (lambda x: cresset._standard_gamma(x.fill_(4)), 4.0, 4.0),
    ],
    ids=[
        "uniform",
        "normal",
        "exponential",
        "bernoulli",
        "geometric",
        "random",
        "log_normal",
        "poisson",
        "binomial",
        "gamma",
    ],
)
def test_moments(fill, mean, variance):
    values = drawn(fill, dtype=cresset.float64)
    error = math.sqrt(variance / values.numel())
    assert values.mean().item() == pytest.approx(mean, abs=5 * error)
    assert values.var().item() == pytest.approx(variance, rel=0.15)


def test_cauchy_has_its_median():
    values = drawn(lambda x: x.cauchy_(1, 2), dtype=cresset.float64)
    assert values.median().item() == pytest.approx(1, abs=0.1)
    assert (values.abs() < math.inf).all()


def test_the_same_seed_gives_the_same_numbers():
    first = cresset.rand(5)
    cresset.manual_seed(1)
    assert cresset.equal(cresset.rand(5), first)
    assert not cresset.equal(cresset.rand(5), first)


def test_a_generator_is_a_stream_of_its_own():
    generator = cresset.Generator(cresset.get_default_device()).manual_seed(7)
    default = cresset.rand(3)
    cresset.manual_seed(1)
    a = cresset.rand(3, generator=generator)
    assert cresset.equal(cresset.rand(3), default)
    generator.manual_seed(7)
    assert cresset.equal(cresset.rand(3, generator=generator), a)


def test_a_state_can_be_taken_up_again():
    cresset.randn(3)
    here = cresset.random if cresset.get_default_device().type == "cpu" else cresset.cuda
    state = here.get_rng_state()
    expected = cresset.randn(3), cresset.randperm(5)
    here.set_rng_state(state)
    assert all(map(cresset.equal, (cresset.randn(3), cresset.randperm(5)), expected))


def test_fork_rng_leaves_no_trace():
    with cresset.random.fork_rng():
        inside = cresset.rand(2)
    assert cresset.equal(cresset.rand(2), inside)
    with pytest.raises(ZeroDivisionError), cresset.random.fork_rng():
        cresset.rand(2)
        1 / 0
    assert not cresset.equal(cresset.rand(2), inside)


def test_seeds():
    assert cresset.manual_seed(5).initial_seed() == cresset.initial_seed() == 5
    assert cresset.manual_seed(-1).initial_seed() == 2**64 - 1
    chosen = cresset.seed()
    assert cresset.initial_seed() == chosen
    with pytest.raises(ValueError, match="Overflow"):
        cresset.manual_seed(2**64)


def test_randint_covers_its_range_and_no_more():
    values = cresset.randint(-2, 3, (1000,))
    assert sorted(set(values.tolist())) == [-2, -1, 0, 1, 2] and values.dtype == cresset.int64
    assert set(cresset.randint(2, (100,), dtype=cresset.bool).tolist()) == {False, True}
    assert cresset.randint_like(cresset.ones(3), 7, 8).tolist() == [7.0, 7.0, 7.0]


def test_randperm_has_each_number_once():
    assert sorted(cresset.randperm(100).tolist()) == list(range(100))
    assert cresset.randperm(0).shape == (0,)
    assert sorted(cresset.randperm(5, dtype=cresset.float16).tolist()) == [0, 1, 2, 3, 4]


class TestMultinomial:
    def test_zero_weights_are_not_drawn(self):
        weights = cresset.tensor([[0.0, 3.0, 1.0], [2.0, 0.0, 0.0]])
        rows = cresset.multinomial(weights, 100, replacement=True)
        assert set(rows[0].tolist()) == {1, 2} and set(rows[1].tolist()) == {0}

    def test_without_replacement_each_index_comes_once(self):
        assert sorted(cresset.multinomial(cresset.rand(10), 10).tolist()) == list(range(10))

    @pytest.mark.parametrize(
        "weights, samples, replacement, phrase",
        [
            ([1.0, -1.0], 1, False, "element < 0"),
            ([1.0, math.nan], 1, False, "nan"),
            pytest.param([1.0, -1.0], 2, True, "entry < 0", marks=DEVICES_DO_NOT_LOOK),
            ([0.0, 0.0], 1, False, "sum of probabilities <= 0"),
            pytest.param([0.0, 0.0], 2, True, "sum of probabilities <= 0", marks=DEVICES_DO_NOT_LOOK),
            ([1.0], 2, False, "without replacement"),
            ([1.0], 0, True, "n_sample <= 0"),
            ([], 2, True, "multinomial"),
            (1.0, 1, True, "1 or 2 dim"),
        ],
    )
    def test_errors(self, weights, samples, replacement, phrase):
        with pytest.raises(RuntimeError, match=phrase):
            cresset.multinomial(cresset.tensor(weights), samples, replacement)


class TestNormal:
    def test_mean_and_std_broadcast(self):
        mean, std = cresset.tensor([[10.0], [20.0]]), cresset.zeros(3)
        assert cresset.normal(mean, std).tolist() == [[10.0] * 3, [20.0] * 3]
        assert cresset.normal(mean, 0.0).tolist() == [[10.0], [20.0]]
        assert cresset.normal(5.0, std).tolist() == [5.0] * 3
        assert cresset.normal(5.0, 0.0, size=(2,)).tolist() == [5.0, 5.0]

    def test_std_must_not_be_negative(self):
        for call in (
            lambda: cresset.normal(cresset.zeros(2), -1.0),
            lambda: cresset.normal(0.0, -cresset.ones(2)),
            lambda: cresset.normal(cresset.zeros(2), -cresset.ones(2)),
            lambda: cresset.normal(0.0, -1.0, (2,)),
            lambda: cresset.empty(2).normal_(0, -1),
        ):
            with pytest.raises(RuntimeError, match="std"):
                call()


def test_a_strided_tensor_is_filled_in_the_order_of_its_memory():
    # Each pair of rows shows the same numbers in another order of dimensions.
    cresset.manual_seed(3)
    plain = cresset.empty(4, 5).uniform_()
    cresset.manual_seed(3)
    turned = cresset.empty(5, 4).t().uniform_()
    assert cresset.equal(turned.t().reshape(-1), plain.reshape(-1))
    cresset.manual_seed(3)
    with_gaps = cresset.zeros(4, 10)
    with_gaps[:, ::2].uniform_()
    assert cresset.equal(with_gaps[:, ::2], plain) and with_gaps[:, 1::2].sum() == 0


def test_overlapping_memory_is_refused():
    for fill in ("uniform_", "normal_", "random_", "bernoulli_", "exponential_"):
        with pytest.raises(RuntimeError, match="single memory location"):
            getattr(cresset.empty(1).expand(3), fill)()


@pytest.mark.parametrize(
    "call, phrase",
    [
        (lambda: cresset.empty(2).uniform_(1, 0), r"from=1 > to=0"),
        (lambda: cresset.empty(2).uniform_(0, math.inf), "out of bounds"),
        (lambda: cresset.empty(2).bernoulli_(1.5), r"p to be in \[0, 1\], but got p=1.5"),
        (lambda: cresset.empty(2).geometric_(0), r"p to be in \(0, 1\)"),
        (lambda: cresset.empty(2).exponential_(0), "lambda > 0.0"),
        (lambda: cresset.empty(2).cauchy_(0, -1), "sigma > 0.0"),
        (lambda: cresset.empty(2).log_normal_(0, 0), "std > 0.0"),
        (lambda: cresset.empty(2).random_(5, 5), "from=5 >= to=5"),
        (lambda: cresset.randint(0, 300, (2,), dtype=cresset.uint8), "out of bounds"),
        (lambda: cresset.randperm(300, dtype=cresset.uint8), "without overflow"),
        (lambda: cresset.randperm(3000, dtype=cresset.float16), "2049"),
        pytest.param(lambda: cresset.poisson(cresset.tensor([-1.0])), "non-negative", marks=DEVICES_DO_NOT_LOOK),
        pytest.param(lambda: cresset.bernoulli(cresset.tensor([2.0])), "p_in", marks=DEVICES_DO_NOT_LOOK),
        (lambda: cresset.empty(2, dtype=cresset.int64).exponential_(), "floating point"),
        (lambda: cresset.dropout(cresset.ones(2), 1.5, True), "between 0 and 1"),
    ],
)
def test_errors_name_the_value(call, phrase):
    with pytest.raises(RuntimeError, match=phrase):
        call()


def test_dtypes_without_a_distribution():
    for call in (
        lambda: cresset.rand(2, dtype=cresset.int64),
        lambda: cresset.randn(2, dtype=cresset.int64),
        lambda: cresset.empty(2, dtype=cresset.bool).geometric_(0.5),
        lambda: cresset.poisson(cresset.tensor([1])),
    ):
        with pytest.raises(NotImplementedError, match="not implemented for"):
            call()


def test_what_is_not_a_number_does_not_hang():
    assert cresset.binomial(cresset.tensor([math.nan]), cresset.tensor([0.5])).isnan().item()
    assert cresset._standard_gamma(cresset.tensor([math.nan])).isnan().item()


class TestDropout:
    def test_keeps_or_zeroes_and_scales(self):
        y = cresset.dropout(cresset.ones(1000), 0.25, True)
        kept = y != 0
        assert cresset.allclose(y[kept], cresset.tensor(1 / 0.75)) and 650 < kept.sum().item() < 850

    def test_is_the_input_itself_when_nothing_is_dropped(self):
        x = cresset.ones(3)
        assert cresset.dropout(x, 0.5, False) is x and cresset.dropout(x, 0.0, True) is x

    def test_gradient_goes_where_values_went(self):
        x = cresset.ones(50, requires_grad=True)
        y = cresset.dropout(x, 0.5, True)
        y.sum().backward()
        assert cresset.equal(x.grad, y.detach())

    def test_gradient_of_the_gradient(self):
        x = cresset.randn(20, dtype=cresset.float64, requires_grad=True)
        y, mask = cresset.native_dropout(x, 0.5, True)
        (g,) = cresset.autograd.grad((y**3).sum(), x, create_graph=True)
        (h,) = cresset.autograd.grad(g.sum(), x)
        assert cresset.allclose(h, 6 * x.detach() * 8 * mask)

    def test_in_place_draws_the_same_mask(self):
        cresset.manual_seed(2)
        y = cresset.dropout(cresset.ones(20), 0.5, True)
        cresset.manual_seed(2)
        assert cresset.equal(cresset.dropout_(cresset.ones(20), 0.5, True), y)

    def test_features_fall_together(self):
        y = cresset.feature_dropout(cresset.ones(4, 8, 3), 0.5, True)
        assert set(y.sum(-1).flatten().tolist()) == {0.0, 6.0}
        with pytest.raises(RuntimeError, match="at least 2 dimensions"):
            cresset.feature_dropout(cresset.ones(4), 0.5, True)

    def test_alpha_dropout_keeps_mean_and_variance(self):
        y = cresset.alpha_dropout(cresset.randn(50000), 0.3, True)
        assert y.mean().item() == pytest.approx(0, abs=0.03) and y.var().item() == pytest.approx(1, abs=0.05)

    def test_half_precision_and_strides(self):
        x = cresset.ones(6, 4, dtype=cresset.bfloat16).t()
        y = cresset.dropout(x, 0.5, True)
        assert y.dtype == cresset.bfloat16 and y.stride() == x.stride() and set(y.flatten().tolist()) == {0.0, 2.0}


class TestGradients:
    @pytest.mark.parametrize(
        "fill", ["uniform_", "normal_", "bernoulli_", "random_", "exponential_", "cauchy_", "log_normal_"]
    )
    def test_what_is_overwritten_gets_zero(self, fill):
        x = cresset.ones(3, requires_grad=True)
        getattr(x.clone(), fill)().sum().backward()
        assert x.grad.tolist() == [0.0, 0.0, 0.0]

    def test_parameters_of_samples_get_zero(self):
        mean, std = cresset.zeros(2, 1, requires_grad=True), cresset.ones(3, requires_grad=True)
        cresset.normal(mean, std).sum().backward()
        assert mean.grad.tolist() == [[0.0], [0.0]] and std.grad.tolist() == [0.0] * 3

    def test_a_gamma_sample_moves_with_its_shape(self):
        # d E[x] / d shape = 1, and the gradient of a sample is an unbiased estimate of it.
        shape = cresset.full((20000,), 2.5, dtype=cresset.float64, requires_grad=True)
        cresset._standard_gamma(shape).sum().backward()
        assert shape.grad.mean().item() == pytest.approx(1, abs=0.02)

    def test_the_gradient_of_an_exponential_sample_is_known(self):
        # Gamma(1) has F = 1 - exp(-x); at the median of Gamma(a), d median / d a = 0.96804 there (finite differences).
        x = cresset.tensor([math.log(2)], dtype=cresset.float64)
        slope = cresset._standard_gamma_grad(cresset.ones(1, dtype=cresset.float64), x).item()
        assert slope == pytest.approx(0.96804483, abs=1e-7)

    def test_a_dirichlet_sample_moves_with_its_concentration(self):
        # E[x_i] = a_i / total, so d E[x_0] / d a_0 = 1/total - a_0/total^2.
        a = cresset.tensor([2.0, 1.0, 3.0], dtype=cresset.float64).repeat(20000, 1).requires_grad_()
        cresset._sample_dirichlet(a)[:, 0].sum().backward()
        assert a.grad.mean(0)[0].item() == pytest.approx(1 / 6 - 2 / 36, abs=0.003)
        assert a.grad.mean(0)[1].item() == pytest.approx(-2 / 36, abs=0.003)


def test_shares_of_draws_that_all_underflow_are_equal():
    shares = cresset._sample_dirichlet(cresset.full((50, 4), 1e-8))
    assert cresset.equal(shares, cresset.full((50, 4), 0.25))


@pytest.mark.parametrize("dtype", ["uint8", "int64", "bool", "float64"])
def test_coins_are_written_to_an_out_of_any_real_dtype(dtype):
    out = cresset.empty(0, dtype=getattr(cresset, dtype))
    assert cresset.bernoulli(cresset.tensor([0.0, 1.0, 1.0]), out=out) is out
    assert out.tolist() == [0, 1, 1]
    turned = cresset.zeros(2, 3, dtype=out.dtype).t()
    cresset.bernoulli(cresset.tensor([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]), out=turned)
    assert turned.tolist() == [[0, 1], [1, 0], [1, 1]]


def test_coins_are_not_written_to_complex_numbers():
    with pytest.raises(NotImplementedError, match="not implemented for 'ComplexFloat'"):
        cresset.bernoulli(cresset.ones(2), out=cresset.empty(0, dtype=cresset.complex64))


def test_no_normal_numbers_are_drawn_of_any_dtype():
    assert cresset.randn(0, dtype=cresset.int32).dtype is cresset.int32
    with pytest.raises(NotImplementedError, match="not implemented for 'Int'"):
        cresset.randn(1, dtype=cresset.int32)


def test_dropout_of_complex_numbers_in_half_precision_is_that_of_wider_ones():
    found = []
    for dtype in (cresset.complex32, cresset.complex64):
        cresset.manual_seed(0)
        x = cresset.arange(12).reshape(3, 4).to(dtype).t().requires_grad_()
        y = cresset.native_dropout(x, 0.5, True)[0]
        y.backward(cresset.ones_like(y))
        found.append((y.detach().to(cresset.complex64).tolist(), x.grad.to(cresset.complex64).tolist()))
    assert found[0] == found[1]
