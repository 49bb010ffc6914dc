"""Every distribution, transform, constraint and divergence does in cresset what it does in PyTorch."""

import itertools
import math
import warnings

import pytest

import cresset

torch = pytest.importorskip("torch")

# name -> (what makes it from the library's distributions and its parameters, the parameters)
CASES = {
    "Bernoulli": (lambda D, p: D.Bernoulli(p), [[0.1, 0.5, 0.9]]),
    "Bernoulli logits": (lambda D, x: D.Bernoulli(logits=x), [[-1.0, 0.0, 2.0]]),
    "Beta": (lambda D, a, b: D.Beta(a, b), [[0.5, 2.0], [1.5, 3.0]]),
    "Binomial": (lambda D, p: D.Binomial(6, p), [[0.2, 0.7]]),
    "Binomial logits": (lambda D, x: D.Binomial(6, logits=x), [[-1.0, 0.5]]),
    "Categorical": (lambda D, p: D.Categorical(p), [[[0.2, 0.3, 0.5], [0.6, 0.3, 0.1]]]),
    "Categorical logits": (lambda D, x: D.Categorical(logits=x), [[0.3, -1.0, 2.0]]),
    "Cauchy": (lambda D, a, b: D.Cauchy(a, b), [[0.5, 2.0], [1.5, 3.0]]),
    "Chi2": (lambda D, a: D.Chi2(a), [[0.5, 7.0]]),
    "ContinuousBernoulli": (lambda D, p: D.ContinuousBernoulli(p), [[0.1, 0.5, 0.9]]),
    "ContinuousBernoulli logits": (lambda D, x: D.ContinuousBernoulli(logits=x), [[0.3, -2.0]]),
    "Dirichlet": (lambda D, a: D.Dirichlet(a), [[[0.5, 1.5, 4.0], [0.1, 0.2, 0.3]]]),
    "Exponential": (lambda D, a: D.Exponential(a), [[0.5, 7.0]]),
    "FisherSnedecor": (lambda D, a, b: D.FisherSnedecor(a, b), [[3.0, 1.0], [5.0, 1.5]]),
    "Gamma": (lambda D, a, b: D.Gamma(a, b), [[0.5, 5.0], [1.5, 3.0]]),
    "GeneralizedPareto": (lambda D, a, b, c: D.GeneralizedPareto(a, b, c),
        [[0.5, 0.0, 1.0], [1.0, 2.0, 0.5], [0.3, 0.0, -0.4]]),
    "Geometric": (lambda D, p: D.Geometric(p), [[0.2, 0.9]]),
    "Geometric logits": (lambda D, x: D.Geometric(logits=x), [[0.2, -0.9]]),
    "Gumbel": (lambda D, a, b: D.Gumbel(a, b), [[0.5, 2.0], [1.5, 3.0]]),
    "HalfCauchy": (lambda D, a: D.HalfCauchy(a), [[0.5, 2.0]]),
    "HalfNormal": (lambda D, a: D.HalfNormal(a), [[0.5, 2.0]]),
    "Independent": (lambda D, a, b: D.Independent(D.Normal(a, b), 1), [[[0.5, 2.0], [0.1, 0.2]], [1.5, 3.0]]),
    "Independent of none": (lambda D, p: D.Independent(D.Bernoulli(p), 0), [[0.2, 0.9]]),
    "InverseGamma": (lambda D, a, b: D.InverseGamma(a, b), [[0.5, 5.0], [1.5, 3.0]]),
    "Kumaraswamy": (lambda D, a, b: D.Kumaraswamy(a, b), [[0.5, 2.0], [1.5, 3.0]]),
    "Laplace": (lambda D, a, b: D.Laplace(a, b), [[0.5, 2.0], [1.5, 3.0]]),
    "LKJCholesky": (lambda D, a: D.LKJCholesky(3, a), [[0.5, 2.0]]),
    "LogNormal": (lambda D, a, b: D.LogNormal(a, b), [[0.5, 1.0], [0.5, 1.0]]),
    "LogisticNormal": (lambda D, a, b: D.LogisticNormal(a, b), [[[0.5, 1.0], [0.1, 0.2]], [0.5, 1.0]]),
    "LowRankMultivariateNormal": (lambda D, a, w, d: D.LowRankMultivariateNormal(a, w, d),
        [[[0.5, 1.0, 0.0], [0.1, 0.2, 0.3]], [[1.0], [2.0], [-1.0]], [1.0, 2.0, 0.5]]),
    "MixtureSameFamily": (lambda D, p, a, b: D.MixtureSameFamily(D.Categorical(p), D.Normal(a, b)),
        [[[0.2, 0.8], [0.5, 0.5]], [[0.5, 3.0], [-1.0, 0.0]], [1.0, 0.3]]),
    "MixtureSameFamily of vectors": (lambda D, p, a,
        b: D.MixtureSameFamily(D.Categorical(p), D.Independent(D.Normal(a, b), 1)),
        [[0.2, 0.8], [[0.5, 3.0], [-1.0, 0.0]], [1.0, 0.3]]),
    "Multinomial": (lambda D, p: D.Multinomial(5, p), [[[0.2, 0.3, 0.5], [0.6, 0.3, 0.1]]]),
    "Multinomial logits": (lambda D, x: D.Multinomial(5, logits=x), [[0.2, -0.3, 0.5]]),
    "MultivariateNormal": (lambda D, a, s: D.MultivariateNormal(a, s),
        [[[0.5, 1.0], [0.1, 0.2]], [[2.0, 0.5], [0.5, 1.0]]]),
    "MultivariateNormal precision": (lambda D, a, s: D.MultivariateNormal(a, precision_matrix=s),
        [[0.5, 1.0], [[[2.0, 0.5], [0.5, 1.0]], [[1.0, 0.0], [0.0, 3.0]]]]),
    "MultivariateNormal factor": (lambda D, a, s: D.MultivariateNormal(a, scale_tril=s),
        [[0.5, 1.0], [[2.0, 0.0], [0.5, 1.0]]]),
    "NegativeBinomial": (lambda D, p: D.NegativeBinomial(3, p), [[0.2, 0.7]]),
    "NegativeBinomial logits": (lambda D, n, x: D.NegativeBinomial(n, logits=x), [[2.5, 4.0], [-1.0, 0.5]]),
    "Normal": (lambda D, a, b: D.Normal(a, b), [[0.5, 2.0], [1.5, 3.0]]),
    "Normal of numbers": (lambda D: D.Normal(0.5, 2.0), []),
    "OneHotCategorical": (lambda D, p: D.OneHotCategorical(p), [[[0.2, 0.3, 0.5], [0.6, 0.3, 0.1]]]),
    "OneHotCategoricalStraightThrough": (lambda D, x: D.OneHotCategoricalStraightThrough(logits=x), [[0.2, -0.3, 0.5]]),
    "Pareto": (lambda D, a, b: D.Pareto(a, b), [[0.5, 2.0], [1.5, 3.0]]),
    "Poisson": (lambda D, a: D.Poisson(a), [[0.5, 20.0]]),
    "RelaxedBernoulli": (lambda D, t, p: D.RelaxedBernoulli(t, p), [[0.7], [0.2, 0.9]]),
    "RelaxedBernoulli logits": (lambda D, t, x: D.RelaxedBernoulli(t, logits=x), [[0.7], [0.2, -0.9]]),
    "RelaxedOneHotCategorical": (lambda D, t, p: D.RelaxedOneHotCategorical(t, p),
        [[0.7], [[0.2, 0.3, 0.5], [0.6, 0.3, 0.1]]]),
    "StudentT": (lambda D, n, a, b: D.StudentT(n, a, b), [[0.5, 1.5, 5.0], [0.0, 1.0, 2.0], [1.0, 2.0, 3.0]]),
    "TransformedDistribution": (lambda D, a,
        b: D.TransformedDistribution(D.Normal(a, b), [D.SigmoidTransform(), D.AffineTransform(-1.0, 2.0)]),
        [[0.5, 2.0], [1.5, 3.0]]),
    "TransformedDistribution falling": (lambda D, a,
        b: D.TransformedDistribution(D.Normal(a, 1.0), D.AffineTransform(0.0, -b)), [[0.5, 2.0], [1.5, 3.0]]),
    "Uniform": (lambda D, a, b: D.Uniform(a, b), [[0.5, -2.0], [1.5, 3.0]]),
    "VonMises": (lambda D, a, b: D.VonMises(a, b), [[0.5, -2.0], [0.3, 9.0]]),
    "Weibull": (lambda D, a, b: D.Weibull(a, b), [[0.5, 2.0], [1.5, 3.0]]),
    "Wishart": (lambda D, n, s: D.Wishart(n, s), [[4.0, 5.0], [[2.0, 0.5], [0.5, 1.0]]]),
    "Wishart precision": (lambda D, s: D.Wishart(5.0, precision_matrix=s), [[[2.0, 0.5], [0.5, 1.0]]]),
}  # fmt: skip
IMPLICIT = {"Beta", "Chi2", "Dirichlet", "FisherSnedecor", "Gamma", "InverseGamma", "StudentT", "Wishart"}
LIBRARIES = (cresset, torch)


def made(lib, name, dtype="float32", requires_grad=True):
    make, values = CASES[name]
    parameters = [lib.tensor(v, dtype=getattr(lib, dtype), requires_grad=requires_grad) for v in values]
    return make(lib.distributions, *parameters), parameters


def used(distribution, lib):
    """float64, but what GeneralizedPareto has."""
    return lib.float32 if type(distribution).__name__ == "GeneralizedPareto" else lib.float64


def drawn(name, shape=(4,), dtype="float64", change=lambda d: d):
    """Values that the distribution gives."""
    d = change(made(torch, name, dtype)[0])
    return plain(outcome(lambda: d.sample(shape), torch))


def plain(value):
    return value.detach().tolist() if isinstance(value, (cresset.Tensor, torch.Tensor)) else value


def outcome(function, lib):
    """The result, or the class of the exception."""
    lib.manual_seed(3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return function()
        except Exception as error:
            return type(error).__name__


def same(ours, theirs, rtol=2e-5, atol=1e-6):
    if isinstance(theirs, torch.Tensor):
        assert isinstance(ours, cresset.Tensor), ours
        assert (str(ours.dtype), tuple(ours.shape)) == (str(theirs.dtype), tuple(theirs.shape))
        expected = torch.tensor(ours.detach().tolist(), dtype=theirs.dtype).reshape(theirs.shape)
        torch.testing.assert_close(expected, theirs.detach(), rtol=rtol, atol=atol, equal_nan=True)
    else:
        assert ours == theirs


def both(name, function, dtype="float32", gradients=True):
    """Compare function(distribution, library) and the gradients of its sum."""
    if name == "GeneralizedPareto":
        dtype = "float32"  # PyTorch's has no other
    results = []
    for lib in LIBRARIES:
        distribution, parameters = made(lib, name, dtype)
        result = outcome(lambda: function(distribution, lib), lib)  # noqa: B023
        grads = []
        if gradients and not isinstance(result, (str, type(None))) and result.requires_grad:
            weights = lib.arange(1, result.numel() + 1, dtype=result.dtype).reshape(result.shape)
            total = (result * weights).sum()
            grads = outcome(lambda: lib.autograd.grad(total, parameters, allow_unused=True), lib)  # noqa: B023
        results.append((result, grads))
    (ours, our_grads), (theirs, their_grads) = results
    if isinstance(their_grads, str) or isinstance(theirs, str):
        # What PyTorch cannot do (or trips over, such as the entropy of an expanded Multinomial), cresset need not
        # refuse.
        assert type(ours).__name__ == "Tensor" or ours == theirs
        return theirs
    tolerance = {"rtol": 2e-5, "atol": 1e-6} if dtype == "float32" else {"rtol": 1e-7, "atol": 1e-9}
    same(ours, theirs, **tolerance)
    assert len(our_grads) == len(their_grads)
    for a, b in zip(our_grads, their_grads, strict=True):
        # PyTorch approximates how a gamma or Dirichlet sample moves with its concentration; cresset does not.
        implicit = name.split()[0] in IMPLICIT
        same(a, b, rtol=5e-3 if implicit else 2e-4 if dtype == "float32" else 1e-6, atol=1e-5)
    return theirs


@pytest.mark.parametrize("name", CASES)
class TestEveryDistribution:
    def test_shapes_constraints_and_text(self, name):
        def described(lib):
            d, _ = made(lib, name)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                constraints = {key: type(value).__name__ for key, value in d.arg_constraints.items()}
            return {
                "repr": repr(d),
                "shapes": (tuple(d.batch_shape), tuple(d.event_shape)),
                "has": (d.has_rsample, d.has_enumerate_support),
                "support": (type(d.support).__name__, d.support.event_dim, d.support.is_discrete),
                "constraints": constraints,
                "class": [
                    kind.__name__ for kind in type(d).__mro__ if kind.__name__ not in ("ProbsOrLogits", "Generic")
                ],
            }

        assert described(cresset) == described(torch)

    @pytest.mark.parametrize("attribute", ["mean", "mode", "variance", "stddev"])
    def test_moments(self, name, attribute):
        both(name, lambda d, lib: getattr(d, attribute), "float64")

    @pytest.mark.parametrize("method", ["entropy", "perplexity"])
    def test_entropy(self, name, method):
        both(name, lambda d, lib: getattr(d, method)(), "float64")

    @pytest.mark.parametrize("dtype", ["float32", "float64"])
    @pytest.mark.parametrize("shape", [(), (5,), (3, 11)])
    def test_the_same_seed_gives_the_same_samples(self, name, shape, dtype):
        # The last of a row of LKJCholesky is the root of what its squares leave of one: the root of a difference
        # magnifies the order of the sum, which in PyTorch depends on the processor. The squares themselves agree.
        seen = (lambda sample: sample * sample.abs()) if name == "LKJCholesky" else (lambda sample: sample)
        assert not both(name, lambda d, lib: seen(d.sample(shape)), dtype).requires_grad

    @pytest.mark.parametrize("shape", [(), (7,)])
    def test_reparametrized_samples_and_their_gradients(self, name, shape):
        both(name, lambda d, lib: d.rsample(shape), "float64")

    def test_log_prob_and_its_gradients(self, name):
        values = drawn(name)
        both(name, lambda d, lib: d.log_prob(lib.tensor(values, dtype=used(d, lib))), "float64")

    def test_cdf_and_its_inverse(self, name):
        d, _ = made(torch, name)
        values = drawn(name)
        both(name, lambda d, lib: d.cdf(lib.tensor(values, dtype=used(d, lib))), "float64")
        chances = torch.rand((4, *d.batch_shape), dtype=torch.float64).tolist()
        both(name, lambda d, lib: d.icdf(lib.tensor(chances, dtype=used(d, lib))), "float64")

    @pytest.mark.parametrize("expand", [True, False])
    def test_enumerate_support(self, name, expand):
        both(name, lambda d, lib: d.enumerate_support(expand))

    def test_expand(self, name):
        def expanded(d):
            return d.expand((2, *d.batch_shape))

        assert repr(expanded(made(cresset, name)[0])) == repr(expanded(made(torch, name)[0]))
        both(name, lambda d, lib: expanded(d).sample((3,)))
        both(name, lambda d, lib: expanded(d).mean, gradients=False)
        both(name, lambda d, lib: expanded(d).entropy(), gradients=False)
        values = drawn(name, (), change=expanded)
        both(name, lambda d, lib: expanded(d).log_prob(lib.tensor(values, dtype=used(d, lib))), "float64")

    def test_a_value_outside_of_the_support_or_of_the_wrong_shape(self, name):
        """Here the errors have to be the same, too."""
        shape = tuple(made(torch, name)[0]._extended_shape())
        for make in (
            lambda lib: lib.full(shape, -1e3),
            lambda lib: lib.full(shape, 0.5),
            lambda lib: lib.full(shape, math.nan),
            lambda lib: lib.zeros(4, 5, 7, 3),
            lambda lib: 0.5,
        ):
            ours, theirs = (outcome(lambda: made(lib, name)[0].log_prob(make(lib)), lib) for lib in LIBRARIES)  # noqa: B023
            same(ours, theirs)


WRONG = {
    "Normal": lambda D, t: D.Normal(0.0, -1.0),
    "Normal nan": lambda D, t: D.Normal(t.tensor(math.nan), 1.0),
    "Normal of a list": lambda D, t: D.Normal([0.0], 1.0),
    "Normal unchecked": lambda D, t: repr(D.Normal(0.0, -1.0, validate_args=False)),
    "Bernoulli both": lambda D, t: D.Bernoulli(0.5, 0.5),
    "Bernoulli none": lambda D, t: D.Bernoulli(),
    "Bernoulli high": lambda D, t: D.Bernoulli(1.5),
    "Binomial": lambda D, t: D.Binomial(-1, 0.5),
    "Categorical 0-d": lambda D, t: D.Categorical(t.tensor(0.5)),
    "Categorical negative": lambda D, t: D.Categorical(t.tensor([0.5, -0.5, 1.0])),
    "ContinuousBernoulli": lambda D, t: D.ContinuousBernoulli(t.tensor([2.0]), validate_args=True),
    "Dirichlet": lambda D, t: D.Dirichlet(t.tensor(1.0)),
    "Geometric": lambda D, t: D.Geometric(t.tensor([0.0])),
    "Independent": lambda D, t: D.Independent(D.Normal(0.0, 1.0), 1),
    "LKJCholesky": lambda D, t: D.LKJCholesky(1),
    "LowRank": lambda D, t: D.LowRankMultivariateNormal(t.zeros(2), t.zeros(3, 1), t.ones(2)),
    "LowRank diagonal": lambda D, t: D.LowRankMultivariateNormal(t.zeros(2), t.zeros(2, 1), t.ones(3)),
    "Mixture": lambda D, t: D.MixtureSameFamily(D.Normal(0.0, 1.0), D.Normal(t.zeros(2), 1.0)),
    "Mixture count": lambda D, t: D.MixtureSameFamily(D.Categorical(t.ones(3)), D.Normal(t.zeros(2), 1.0)),
    "Multinomial": lambda D, t: D.Multinomial(t.tensor([1, 2]), t.ones(3)),
    "MultivariateNormal": lambda D, t: D.MultivariateNormal(t.zeros(2), t.zeros(2, 2)),
    "MultivariateNormal two": lambda D, t: D.MultivariateNormal(t.zeros(2), t.eye(2), t.eye(2)),
    "MultivariateNormal 0-d": lambda D, t: D.MultivariateNormal(t.tensor(0.0), t.eye(2)),
    "Uniform": lambda D, t: D.Uniform(1.0, 1.0),
    "Wishart": lambda D, t: D.Wishart(0.5, t.eye(2)),
    "Wishart none": lambda D, t: D.Wishart(3.0),
    "Transformed": lambda D, t: D.TransformedDistribution(D.Normal(0.0, 1.0), "exp"),
    "Transformed dims": lambda D, t: D.TransformedDistribution(D.Normal(0.0, 1.0), D.StickBreakingTransform()),
    "default": lambda D, t: D.Distribution.set_default_validate_args("yes"),
    "no expand": lambda D, t: type("Mine", (D.Normal,),
        {"__init__": lambda self: D.Normal.__init__(self, 0.0, 1.0)})().expand((2,)),
    "kl": lambda D, t: D.kl_divergence(D.Normal(0.0, 1.0), D.Cauchy(0.0, 1.0)),
    "kl families": lambda D, t: D.kl_divergence(D.Poisson(1.0), D.Normal(0.0, 1.0)),
    "kl binomial": lambda D, t: D.kl_divergence(D.Binomial(2, 0.5), D.Binomial(3, 0.5)),
    "biject": lambda D, t: D.biject_to(D.constraints.boolean),
    "register": lambda D, t: D.biject_to.register("positive", repr),
    "cache": lambda D, t: D.ExpTransform(cache_size=2),
    "reshape": lambda D, t: D.ReshapeTransform((2,), (3,)),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_wrong_arguments_raise_what_pytorch_raises(name):
    ours, theirs = (outcome(lambda: WRONG[name](lib.distributions, lib), lib) for lib in LIBRARIES)  # noqa: B023
    assert ours == theirs


# ---------------------------------------------------------------- divergences


def one_of_each(lib):
    D = lib.distributions
    t = lambda *values: lib.tensor(values, dtype=lib.float64)  # noqa: E731
    matrix = lib.tensor([[2.0, 0.5], [0.5, 1.0]], dtype=lib.float64)
    normal = D.Normal(t(0.5, -0.3), t(1.0, 2.0))
    return {
        "Bernoulli": [D.Bernoulli(t(0.2, 0.7)), D.Bernoulli(t(0.0, 1.0))],
        "Beta": [D.Beta(t(0.5, 2.0), t(1.5, 3.0)), D.Beta(t(2.5, 2.0), t(1.5, 1.0))],
        "Binomial": [D.Binomial(4, t(0.2, 0.7)), D.Binomial(3, t(0.4, 0.5))],
        "Categorical": [D.Categorical(t(0.2, 0.8)), D.Categorical(t(1.0, 0.0))],
        "Cauchy": [D.Cauchy(t(0.5, 2.0), t(1.5, 3.0)), D.Cauchy(t(1.5, 2.0), t(0.5, 3.0))],
        "ContinuousBernoulli": [D.ContinuousBernoulli(t(0.2, 0.7)), D.ContinuousBernoulli(t(0.5, 0.3))],
        "Dirichlet": [D.Dirichlet(t(0.5, 2.0)), D.Dirichlet(t(1.5, 1.0))],
        "Exponential": [D.Exponential(t(0.5, 2.0)), D.Exponential(t(1.5, 1.0))],
        "Gamma": [D.Gamma(t(0.5, 2.0), t(1.5, 3.0)), D.Gamma(t(1.5, 2.0), t(0.5, 3.0))],
        "Chi2": [D.Chi2(t(0.5, 2.0)), D.Chi2(t(1.5, 3.0))],
        "Geometric": [D.Geometric(t(0.2, 0.7)), D.Geometric(t(0.4, 0.5))],
        "Gumbel": [D.Gumbel(t(0.5, 2.0), t(1.5, 3.0)), D.Gumbel(t(1.5, 2.0), t(0.5, 3.0))],
        "HalfNormal": [D.HalfNormal(t(0.5, 2.0)), D.HalfNormal(t(1.5, 1.0))],
        "Independent": [D.Independent(normal, 1), D.Independent(D.Normal(t(0.0, 0.0), t(1.0, 1.0)), 1)],
        "Laplace": [D.Laplace(t(0.5, 2.0), t(1.5, 3.0)), D.Laplace(t(1.5, 2.0), t(0.5, 3.0))],
        "LogNormal": [D.LogNormal(t(0.5, 2.0), t(1.5, 3.0)), D.LogNormal(t(1.5, 2.0), t(0.5, 3.0))],
        "LowRankMultivariateNormal": [
            D.LowRankMultivariateNormal(t(0.5, 1.0), t(1.0, 2.0).unsqueeze(-1), t(0.5, 1.0)),
            D.LowRankMultivariateNormal(t(0.0, 1.0), t(0.0, 0.5).unsqueeze(-1), t(1.5, 1.0)),
        ],
        "MultivariateNormal": [
            D.MultivariateNormal(t(0.5, 1.0), matrix),
            D.MultivariateNormal(t(0.0, 1.0), lib.stack([matrix, 2 * matrix])),
        ],
        "Normal": [normal, D.Normal(t(0.0, 0.0), t(1.0, 1.0))],
        "OneHotCategorical": [D.OneHotCategorical(t(0.2, 0.8)), D.OneHotCategorical(t(0.5, 0.5))],
        "Pareto": [D.Pareto(t(0.5, 2.0), t(1.5, 3.0)), D.Pareto(t(1.5, 1.0), t(0.5, 3.0))],
        "Poisson": [D.Poisson(t(0.5, 2.0)), D.Poisson(t(1.5, 1.0))],
        "StudentT": [D.StudentT(t(3.0, 4.0))],
        "Uniform": [D.Uniform(t(0.1, 0.2), t(0.5, 0.9)), D.Uniform(t(-1.0, 0.0), t(2.0, 1.0))],
        "VonMises": [D.VonMises(t(0.1, 0.2), t(0.5, 0.9))],
        "Wishart": [D.Wishart(lib.tensor(4.0, dtype=lib.float64), matrix),
            D.Wishart(lib.tensor(5.0, dtype=lib.float64), 2 * matrix)],
    }  # fmt: skip


KINDS = list(one_of_each(torch))


@pytest.mark.parametrize("p_kind, q_kind", list(itertools.product(KINDS, KINDS)))
def test_divergences(p_kind, q_kind):
    ours, theirs = one_of_each(cresset), one_of_each(torch)
    for our_p, their_p in zip(ours[p_kind], theirs[p_kind], strict=True):
        for our_q, their_q in zip(ours[q_kind], theirs[q_kind], strict=True):
            expected = outcome(lambda: torch.distributions.kl_divergence(their_p, their_q), torch)  # noqa: B023
            result = outcome(lambda: cresset.distributions.kl_divergence(our_p, our_q), cresset)  # noqa: B023
            same(result, expected, rtol=1e-7, atol=1e-9)


def test_the_same_pairs_have_a_divergence():
    def pairs(lib):
        return {(p.__name__, q.__name__) for p, q in lib.distributions.kl._KL_REGISTRY}

    assert pairs(cresset) == pairs(torch)


# ---------------------------------------------------------------- transforms and constraints

TRANSFORMS = {
    "Abs": lambda D, t: D.AbsTransform(),
    "Affine": lambda D, t: D.AffineTransform(1.0, -2.0),
    "Affine of tensors": lambda D, t: D.AffineTransform(t.tensor([1.0, 2.0, 3.0]), t.tensor([0.5, -1.0, 2.0]),
        event_dim=1),
    "Cat": lambda D, t: D.CatTransform([D.ExpTransform(), D.SigmoidTransform()], -1, [1, 2]),
    "Compose": lambda D, t: D.ComposeTransform([D.ExpTransform(), D.AffineTransform(1.0, 2.0), D.PowerTransform(2.0)]),
    "Compose of vectors": lambda D, t: D.ComposeTransform([D.AffineTransform(0.0, 2.0), D.StickBreakingTransform()]),
    "identity": lambda D, t: D.identity_transform,
    "CorrCholesky": lambda D, t: D.CorrCholeskyTransform(),
    "Cumulative": lambda D, t: D.CumulativeDistributionTransform(D.Normal(0.0, 2.0)),
    "Exp": lambda D, t: D.ExpTransform(),
    "Exp inverse of inverse": lambda D, t: D.ExpTransform(cache_size=1).inv.inv,
    "Independent": lambda D, t: D.IndependentTransform(D.ExpTransform(), 1),
    "Power": lambda D, t: D.ComposeTransform([D.ExpTransform(), D.PowerTransform(t.tensor([1.0, 2.0, -0.5]))]),
    "Reshape": lambda D, t: D.ReshapeTransform((3,), (3, 1)),
    "Sigmoid": lambda D, t: D.SigmoidTransform(),
    "Softplus": lambda D, t: D.SoftplusTransform(),
    "Softmax": lambda D, t: D.SoftmaxTransform(),
    "Stack": lambda D, t: D.StackTransform([D.ExpTransform(), D.SigmoidTransform(), D.TanhTransform()], -1),
    "StickBreaking": lambda D, t: D.StickBreakingTransform(),
    "Tanh": lambda D, t: D.TanhTransform(),
}  # fmt: skip


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms(name):
    found = []
    for lib in LIBRARIES:
        x = lib.tensor([[0.3, -1.0, 0.7], [2.0, 0.0, -0.4]], dtype=lib.float64, requires_grad=True)
        transform = TRANSFORMS[name](lib.distributions, lib)
        y = transform(x)
        jacobian = outcome(lambda: transform.log_abs_det_jacobian(x, y), lib)  # noqa: B023
        (grad,) = lib.autograd.grad((y * y).sum(), x)
        facts = [
            repr(transform),
            repr(transform.inv),
            outcome(lambda: type(transform.domain).__name__, lib),  # noqa: B023
            outcome(lambda: type(transform.codomain).__name__, lib),  # noqa: B023
            outcome(lambda: plain(transform.sign), lib),  # noqa: B023
            transform.bijective,
            tuple(transform.forward_shape(x.shape)),
            tuple(transform.inverse_shape(y.shape)),
            transform == transform.with_cache(0),
        ]
        found.append((facts, y, transform.inv(y), jacobian, grad))
    (our_facts, *ours), (their_facts, *theirs) = found
    assert our_facts == their_facts
    for a, b in zip(ours, theirs, strict=True):
        same(a, b, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("name", ["LowerCholeskyTransform", "PositiveDefiniteTransform"])
def test_transforms_of_matrices(name):
    x = [[0.3, 1.0], [-0.5, 0.2]]
    ours, theirs = (getattr(lib.distributions, name)()(lib.tensor(x)) for lib in LIBRARIES)
    same(ours, theirs)
    same(getattr(cresset.distributions, name)().inv(ours), getattr(torch.distributions, name)().inv(theirs), atol=1e-5)


CONSTRAINTS = [
    "boolean", "corr_cholesky", "dependent", "lower_cholesky", "lower_triangular", "nonnegative", "nonnegative_integer",
    "one_hot", "positive",
    "positive_semidefinite", "positive_definite", "positive_integer", "real", "real_vector", "simplex", "square",
    "symmetric", "unit_interval",
]  # fmt: skip
MADE = {
    "greater_than": (2,), "greater_than_eq": (2,), "less_than": (0.5,), "interval": (-1, 0.5),
    "half_open_interval": (-1, 0.5),
    "integer_interval": (0, 3), "multinomial": (3,),
}  # fmt: skip


@pytest.mark.parametrize("name", [*CONSTRAINTS, *MADE])
def test_constraints(name):
    values = [
        [[1.0, 0.0], [0.0, 1.0]], [[2.0, 0.5], [0.5, 1.0]], [[1.0, 3.0], [-1.0, 0.5]], [[0.25, 0.75], [0.5, 0.5]],
        [[math.nan, 0.0], [1.0, 2.0]],
        [[1.0, 0.0], [0.6, 0.8]],
    ]  # fmt: skip
    found = []
    for lib in LIBRARIES:
        made_one = getattr(lib.distributions.constraints, name)
        made_one = made_one(*MADE[name]) if name in MADE else made_one
        checks = [plain(outcome(lambda v=v: made_one.check(lib.tensor(v)), lib)) for v in values]  # noqa: B023
        registered = [
            outcome(lambda to=to: repr(getattr(lib.distributions, to)(made_one)), lib)  # noqa: B023
            for to in ("biject_to", "transform_to")
        ]
        described = outcome(lambda: (made_one.event_dim, made_one.is_discrete), lib)  # noqa: B023
        found.append(
            (checks, registered, described, repr(made_one), lib.distributions.constraints.is_dependent(made_one))
        )
    assert found[0] == found[1]


def test_names():
    assert set(cresset.distributions.__all__) == set(torch.distributions.__all__)
    for module in ("constraints", "transforms", "utils", "kl", "constraint_registry"):
        ours, theirs = (getattr(lib.distributions, module) for lib in LIBRARIES)
        assert set(theirs.__all__) <= set(dir(ours))
    assert torch.distributions.utils.euler_constant == cresset.distributions.utils.euler_constant


def test_triangles():
    for diag in (-1, 0, 1):
        matrix = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]]
        ours, theirs = (lib.distributions.utils.tril_matrix_to_vec(lib.tensor(matrix), diag) for lib in LIBRARIES)
        same(ours, theirs)
    for diag in (-1, 0):
        same(
            cresset.distributions.utils.vec_to_tril_matrix(cresset.arange(1.0, 7), diag),
            torch.distributions.utils.vec_to_tril_matrix(torch.arange(1.0, 7), diag),
        )
