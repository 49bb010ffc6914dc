"""What distributions promise: shapes, checks, gradients through draws, and values that can be worked out by hand."""

import copy
import math
import pickle

import pytest

import cresset
from cresset import distributions as D


def test_shapes_are_sample_then_batch_then_event():
    normal = D.MultivariateNormal(cresset.zeros(4, 2), cresset.eye(2))
    assert (normal.batch_shape, normal.event_shape) == ((4,), (2,))
    assert normal.sample((3, 5)).shape == (3, 5, 4, 2)
    assert normal.log_prob(cresset.zeros(2)).shape == (4,)


def test_a_normal_density_at_its_mean():
    assert D.Normal(0.0, 1.0).log_prob(cresset.tensor(0.0)).item() == pytest.approx(-0.5 * math.log(2 * math.pi))


def test_draws_carry_gradients_to_the_parameters():
    loc = cresset.tensor([1.0], requires_grad=True)
    scale = cresset.tensor([2.0], requires_grad=True)
    draw = D.Normal(loc, scale).rsample()
    draw.backward()
    assert loc.grad.item() == 1.0
    assert scale.grad.item() == pytest.approx((draw.item() - 1.0) / 2.0, abs=1e-6)


def test_the_mean_of_gamma_draws_moves_with_the_concentration():
    """E[x] = concentration / rate, so the mean of dx/dconcentration is 1 / rate."""
    cresset.manual_seed(0)
    concentration = cresset.tensor(3.0, requires_grad=True)
    D.Gamma(concentration, 2.0).rsample((20000,)).mean().backward()
    assert concentration.grad.item() == pytest.approx(0.5, abs=0.01)


def test_sample_has_no_gradient():
    assert not D.Normal(cresset.tensor(0.0, requires_grad=True), 1.0).sample().requires_grad


def test_the_categories_come_as_often_as_they_should():
    cresset.manual_seed(0)
    drawn = D.Categorical(cresset.tensor([1.0, 3.0])).sample((10000,))
    assert drawn.float().mean().item() == pytest.approx(0.75, abs=0.02)


@pytest.mark.parametrize(
    "make, words",
    [
        (
            lambda: D.Normal(0.0, -1.0),
            r"Expected parameter scale .* of distribution Normal\(loc: 0.0, scale: -1.0\) to satisfy the constraint Gr",
        ),
        (lambda: D.Bernoulli(), "Bernoulli: Either `probs` or `logits` must be specified, but not both; got none"),
        (lambda: D.Bernoulli(0.5, logits=0.0), "got both"),
        (lambda: D.Normal(0.0, 1.0).log_prob(0.0), "The value argument to log_prob must be a Tensor, got a float"),
        (
            lambda: D.Exponential(1.0).log_prob(cresset.tensor(-1.0)),
            r"within the support \(GreaterThanEq.* of the distribution Exponential",
        ),
        (
            lambda: D.Normal(cresset.zeros(3), 1.0).log_prob(cresset.zeros(4)),
            r"not broadcastable with batch_shape\+event_shape: torch.Size\(\[4\]\) vs",
        ),
        (lambda: D.Uniform(1.0, 0.0), "Expected parameter low"),
        (lambda: D.LKJCholesky(1), "dim to be an integer greater than or equal to 2. Found dim=1"),
    ],
)
def test_wrong_values_are_named(make, words):
    with pytest.raises(ValueError, match=words):
        make()


def test_checks_can_be_switched_off():
    assert D.Normal(0.0, -1.0, validate_args=False).scale.item() == -1.0
    D.Distribution.set_default_validate_args(False)
    try:
        D.Normal(0.0, -1.0)
    finally:
        D.Distribution.set_default_validate_args(True)


def test_what_is_not_there_says_so():
    with pytest.raises(NotImplementedError, match="Poisson: cdf is not implemented"):
        D.Poisson(1.0).cdf(cresset.tensor(1.0))


def test_expand_takes_no_memory_and_keeps_the_class():
    wide = D.Normal(cresset.zeros(1), 1.0).expand((5, 3))
    assert type(wide) is D.Normal and wide.batch_shape == (5, 3)
    assert wide.loc.stride() == (0, 0)


def test_a_subclass_with_its_own_init_must_say_how_to_expand():
    class Unit(D.Normal):
        def __init__(self):
            super().__init__(0.0, 1.0)

    with pytest.raises(NotImplementedError, match="Unit: a subclass of Normal with its own __init__"):
        Unit().expand((2,))


def test_a_distribution_of_ones_own():
    class Coin(D.Distribution):
        arg_constraints = {}
        support = D.constraints.boolean

        def sample(self, sample_shape=()):
            return cresset.ones(self._extended_shape(sample_shape))

        def log_prob(self, value):
            self._validate_sample(value)
            return cresset.zeros_like(value)

    assert Coin().sample((2,)).tolist() == [1.0, 1.0]
    with pytest.raises(ValueError, match="Boolean"):
        Coin().log_prob(cresset.tensor(0.5))
    assert D.Independent(Coin(cresset.Size([3])), 1).log_prob(cresset.ones(3)).item() == 0.0


def test_divergences_take_the_most_specific_pair():
    class Mine(D.Normal):
        pass

    assert D.kl_divergence(Mine(0.0, 1.0), Mine(1.0, 1.0)).item() == 0.5
    before = dict(D.kl._KL_REGISTRY)
    try:
        D.register_kl(Mine, D.Normal)(lambda p, q: "mine")
        assert D.kl_divergence(Mine(0.0, 1.0), D.Normal(0.0, 1.0)) == "mine"
        assert D.kl_divergence(D.Normal(0.0, 1.0), D.Normal(0.0, 1.0)).item() == 0.0
    finally:
        D.kl._KL_REGISTRY.clear()
        D.kl._KL_REGISTRY.update(before)
        D.kl._KL_MEMOIZE.clear()


def test_ambiguous_divergences_warn():
    class A(D.Normal):
        pass

    class B(D.Normal):
        pass

    before = dict(D.kl._KL_REGISTRY)
    try:
        D.register_kl(A, D.Normal)(lambda p, q: "left")
        D.register_kl(D.Normal, B)(lambda p, q: "right")
        with pytest.warns(RuntimeWarning, match="register_kl\\(A, B\\)"):
            assert D.kl_divergence(A(0.0, 1.0), B(0.0, 1.0)) == "left"
    finally:
        D.kl._KL_REGISTRY.clear()
        D.kl._KL_REGISTRY.update(before)
        D.kl._KL_MEMOIZE.clear()


def test_a_cached_transform_gives_back_the_very_same_x():
    transform = D.ExpTransform(cache_size=1)
    x = cresset.tensor([0.3])
    assert transform.inv(transform(x)) is x


def test_the_entropy_of_an_exponential_family_follows_from_its_normalizer():
    for distribution in (D.Normal(1.0, 2.0), D.Gamma(3.0, 2.0), D.Exponential(0.5), D.Bernoulli(0.3)):
        by_family = D.ExponentialFamily.entropy(distribution)
        assert by_family.item() == pytest.approx(distribution.entropy().item(), rel=1e-5)


def test_wishart_draws_are_positive_definite_and_average_to_the_mean():
    cresset.manual_seed(0)
    wishart = D.Wishart(cresset.tensor(5.0), cresset.eye(2))
    drawn = wishart.sample((4000,))
    assert D.constraints.positive_definite.check(drawn).all()
    assert (drawn.mean(0) - wishart.mean).abs().max().item() < 0.25


def test_lazy_properties_are_computed_once():
    categorical = D.Categorical(logits=cresset.zeros(2))
    assert categorical.probs is categorical.probs
    assert categorical.probs.tolist() == [0.5, 0.5]


def test_sample_n_still_works_and_warns():
    with pytest.warns(FutureWarning, match="sample_n"):
        assert D.Normal(0.0, 1.0).sample_n(3).shape == (3,)


@pytest.mark.parametrize("make", [lambda: D.Normal(0.0, 1.0), lambda: D.Gumbel(0.0, 1.0), lambda: D.Beta(1.0, 2.0)])
def test_distributions_can_be_copied_and_pickled(make):
    distribution = make()
    value = cresset.tensor(0.5)
    for other in (copy.deepcopy(distribution), pickle.loads(pickle.dumps(distribution))):
        assert other.log_prob(value).item() == distribution.log_prob(value).item()


def test_register_kl_takes_any_class():
    class Mine:
        pass

    registered = D.kl.register_kl(Mine, Mine)(lambda p, q: 7)
    assert registered(None, None) == 7 and D.kl_divergence(Mine(), Mine()) == 7
    with pytest.raises(TypeError, match="expected classes"):
        D.kl.register_kl(Mine, 1)
