"""Kullback-Leibler divergences KL(p‖q) = E_p[log p - log q], one formula for each pair of distributions.

Each is written as E_p[log p], the negative entropy of p, less E_p[log q], or as a closed form of its own.
"""

import math
import warnings

import cresset

from ..nn.functional import softplus
from .bernoulli import Bernoulli
from .beta import Beta
from .binomial import Binomial
from .categorical import Categorical
from .cauchy import Cauchy
from .continuous_bernoulli import ContinuousBernoulli
from .dirichlet import Dirichlet
from .exp_family import ExponentialFamily
from .exponential import Exponential
from .gamma import Gamma
from .geometric import Geometric
from .gumbel import Gumbel
from .half_normal import HalfNormal
from .independent import Independent
from .laplace import Laplace
from .lowrank_multivariate_normal import (
    LowRankMultivariateNormal,
    _batch_lowrank_logdet,
    _batch_lowrank_mahalanobis,
)
from .multivariate_normal import MultivariateNormal, _batch_mahalanobis, _half_log_det
from .normal import Normal
from .one_hot_categorical import OneHotCategorical
from .pareto import Pareto
from .poisson import Poisson
from .transformed_distribution import TransformedDistribution
from .uniform import Uniform
from .utils import _sum_rightmost, euler_constant

__all__ = ["register_kl", "kl_divergence"]

_KL_REGISTRY = {}  # (class of p, class of q) -> function
_KL_MEMOIZE = {}  # the same for all classes that were asked for, which may be subclasses


def register_kl(type_p, type_q):
    """Decorator: use a function of p and q for the divergence between these classes and their subclasses.

    Where several match, the most specific one is taken, p first.
    """
    for kind in (type_p, type_q):
        if not isinstance(kind, type):
            raise TypeError(f"register_kl: expected classes, got {kind!r}")

    def decorator(function):
        _KL_REGISTRY[type_p, type_q] = function
        _KL_MEMOIZE.clear()
        return function

    return decorator


def _most_specific(pairs, order):
    """The pair that stands below all others when its classes are compared in the given order."""

    def is_below(one, other):
        for index in order:
            if one[index] is not other[index]:
                return issubclass(one[index], other[index])
        return True

    best = pairs[0]
    for pair in pairs[1:]:
        if is_below(pair, best):
            best = pair
    return best


def _find(type_p, type_q):
    pairs = [pair for pair in _KL_REGISTRY if issubclass(type_p, pair[0]) and issubclass(type_q, pair[1])]
    if not pairs:
        return None
    by_p, by_q = _most_specific(pairs, (0, 1)), _most_specific(pairs, (1, 0))
    if _KL_REGISTRY[by_p] is not _KL_REGISTRY[by_q]:
        warnings.warn(
            f"Ambiguous kl_divergence({type_p.__name__}, {type_q.__name__}). "
            f"Please register_kl({by_p[0].__name__}, {by_q[1].__name__})",
            RuntimeWarning,
            stacklevel=3,
        )
    return _KL_REGISTRY[by_p]


def kl_divergence(p, q):
    """KL(p‖q), for each distribution of the batch.

    >>> D = cresset.distributions
    >>> D.kl_divergence(D.Normal(0.0, 1.0), D.Normal(1.0, 1.0))
    tensor(0.5000)
    """
    kinds = type(p), type(q)
    if kinds not in _KL_MEMOIZE:
        _KL_MEMOIZE[kinds] = _find(*kinds)
    function = _KL_MEMOIZE[kinds]
    if function is None:
        raise NotImplementedError(
            f"No KL(p || q) is implemented for p type {kinds[0].__name__} and q type {kinds[1].__name__}; "
            "register_kl adds one"
        )
    return function(p, q)


def _infinite(p_kind, q_kinds, parameter):
    """Register pairs whose divergence is infinite, since p can draw what q cannot."""

    def infinity(p, q):
        return cresset.full_like(getattr(p, parameter), math.inf)

    for q_kind in q_kinds:
        register_kl(p_kind, q_kind)(infinity)


def _x_log_x(x):
    return cresset.xlogy(x, x)


def _infinite_where(result, outside):
    return result.masked_fill(outside, math.inf)


# ---------------------------------------------------------------- two of a kind


@register_kl(Bernoulli, Bernoulli)
def _(p, q):
    one = p.probs * (softplus(-q.logits) - softplus(-p.logits))
    one = one.masked_fill(q.probs == 0, math.inf).masked_fill(p.probs == 0, 0)
    zero = (1 - p.probs) * (softplus(q.logits) - softplus(p.logits))
    zero = zero.masked_fill(q.probs == 1, math.inf).masked_fill(p.probs == 1, 0)
    return one + zero


@register_kl(Beta, Beta)
def _(p, q):
    p_sum, q_sum = p.concentration1 + p.concentration0, q.concentration1 + q.concentration0
    normalizers = (
        q.concentration1.lgamma()
        + q.concentration0.lgamma()
        + p_sum.lgamma()
        - (p.concentration1.lgamma() + p.concentration0.lgamma() + q_sum.lgamma())
    )
    ones = (p.concentration1 - q.concentration1) * p.concentration1.digamma()
    zeros = (p.concentration0 - q.concentration0) * p.concentration0.digamma()
    return normalizers + ones + zeros + (q_sum - p_sum) * p_sum.digamma()


@register_kl(Binomial, Binomial)
def _(p, q):
    if (p.total_count < q.total_count).any():
        raise NotImplementedError("kl_divergence: Binomials where q has the larger total_count are not implemented")
    kl = p.total_count * (p.probs * (p.logits - q.logits) + (-p.probs).log1p() - (-q.probs).log1p())
    return _infinite_where(kl, p.total_count > q.total_count)


@register_kl(Categorical, Categorical)
def _kl_categorical(p, q):
    terms = p.probs * (p.logits - q.logits)
    return terms.masked_fill(q.probs == 0, math.inf).masked_fill(p.probs == 0, 0).sum(-1)


@register_kl(OneHotCategorical, OneHotCategorical)
def _(p, q):
    return _kl_categorical(p._categorical, q._categorical)


@register_kl(Cauchy, Cauchy)
def _(p, q):
    return ((p.scale + q.scale).pow(2) + (p.loc - q.loc).pow(2)).log() - (4 * p.scale * q.scale).log()


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def _(p, q):
    p_rest = p._cont_bern_log_norm() + (-p.probs).log1p()
    q_rest = q._cont_bern_log_norm() + (-q.probs).log1p()
    return p.mean * (p.logits - q.logits) + p_rest - q_rest


@register_kl(Dirichlet, Dirichlet)
def _(p, q):
    p_sum, q_sum = p.concentration.sum(-1), q.concentration.sum(-1)
    normalizers = p_sum.lgamma() - q_sum.lgamma() - (p.concentration.lgamma() - q.concentration.lgamma()).sum(-1)
    logs = p.concentration.digamma() - p_sum.digamma().unsqueeze(-1)
    return normalizers + ((p.concentration - q.concentration) * logs).sum(-1)


@register_kl(Exponential, Exponential)
def _(p, q):
    ratio = q.rate / p.rate
    return ratio - ratio.log() - 1


@register_kl(ExponentialFamily, ExponentialFamily)
def _(p, q):
    """F(θq) - F(θp) - (θq - θp)·∇F(θp), the Bregman divergence of the log normalizer."""
    if type(p) is not type(q):
        raise NotImplementedError(
            f"No KL(p || q) is implemented for p type {type(p).__name__} and q type {type(q).__name__}, two different "
            "exponential families"
        )
    p_parameters, normalizer, gradients = p._normalizer_and_gradients()
    q_parameters = q._natural_params
    result = q._log_normalizer(*q_parameters) - normalizer
    for p_parameter, q_parameter, gradient in zip(p_parameters, q_parameters, gradients):
        result = result - _sum_rightmost((q_parameter - p_parameter) * gradient, len(q.event_shape))
    return result


@register_kl(Gamma, Gamma)
def _(p, q):
    normalizers = q.concentration * (p.rate / q.rate).log() + q.concentration.lgamma() - p.concentration.lgamma()
    logs = (p.concentration - q.concentration) * p.concentration.digamma()
    return normalizers + logs + (q.rate - p.rate) * (p.concentration / p.rate)


@register_kl(Geometric, Geometric)
def _(p, q):
    return -p.entropy() - (-q.probs).log1p() / p.probs - q.logits


@register_kl(Gumbel, Gumbel)
def _(p, q):
    ratio, distance = p.scale / q.scale, (p.loc - q.loc) / q.scale
    return (
        distance - ratio.log() + ratio * euler_constant + ((1 + ratio).lgamma() - distance).exp() - (1 + euler_constant)
    )


@register_kl(Normal, Normal)
def _kl_normal(p, q):
    ratio = (p.scale / q.scale).pow(2)
    return 0.5 * (ratio + ((p.loc - q.loc) / q.scale).pow(2) - 1 - ratio.log())


@register_kl(HalfNormal, HalfNormal)
def _(p, q):
    return _kl_normal(p.base_dist, q.base_dist)


@register_kl(Laplace, Laplace)
def _(p, q):
    ratio, distance = p.scale / q.scale, (p.loc - q.loc).abs()
    return distance / q.scale - ratio.log() + ratio * (-distance / p.scale).exp() - 1


@register_kl(Pareto, Pareto)
def _(p, q):
    ratio = q.alpha / p.alpha
    result = q.alpha * (p.scale / q.scale).log() - ratio.log() + ratio - 1
    return _infinite_where(result, p.scale < q.scale)


@register_kl(Poisson, Poisson)
def _(p, q):
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


@register_kl(Uniform, Uniform)
def _(p, q):
    result = ((q.high - q.low) / (p.high - p.low)).log()
    return _infinite_where(result, (q.low > p.low) | (q.high < p.high))


# ---------------------------------------------------------------- distributions made of others


@register_kl(TransformedDistribution, TransformedDistribution)
def _(p, q):
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError("kl_divergence: transformed distributions need the same transforms and event shapes")
    return kl_divergence(p.base_dist, q.base_dist)


@register_kl(Independent, Independent)
def _(p, q):
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError(
            "kl_divergence: Independent distributions need the same reinterpreted_batch_ndims, "
            f"got {p.reinterpreted_batch_ndims} and {q.reinterpreted_batch_ndims}"
        )
    return _sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


# ---------------------------------------------------------------- multivariate normal distributions
# KL = ½ (log det Σq - log det Σp + trace(Σq⁻¹ Σp) + |μq - μp|² in the metric Σq⁻¹ - n), with Σ by its parts.


def _same_events(p, q):
    if p.event_shape != q.event_shape:
        raise ValueError(
            f"kl_divergence: multivariate normals of different event shapes {tuple(p.event_shape)} and "
            f"{tuple(q.event_shape)}"
        )
    return p.event_shape[0]


def _squares(matrix):
    """trace(M Mᵀ): the sum of the squared elements."""
    return matrix.pow(2).flatten(-2).sum(-1)


def _solved(factor, *matrices):
    """L⁻¹ M for each matrix, with the batches broadcast."""
    batch = cresset.broadcast_shapes(factor.shape[:-2], *(matrix.shape[:-2] for matrix in matrices))
    wide = [tensor.expand(batch + tensor.shape[-2:]) for tensor in (factor, *matrices)]
    return [cresset.linalg.solve_triangular(wide[0], matrix, upper=False) for matrix in wide[1:]]


def _lowrank(distribution):
    """Factor, diagonal, the factor of the capacitance matrix and the log determinant."""
    factor, diag = distribution._parts
    capacitance = distribution._capacitance_tril
    return factor, diag, capacitance, _batch_lowrank_logdet(factor, diag, capacitance)


@register_kl(MultivariateNormal, MultivariateNormal)
def _(p, q):
    n = _same_events(p, q)
    p_factor, q_factor = p._unbroadcasted_scale_tril, q._unbroadcasted_scale_tril
    trace = _squares(*_solved(q_factor, p_factor))
    distance = _batch_mahalanobis(q_factor, q.loc - p.loc)
    return _half_log_det(q_factor) - _half_log_det(p_factor) + 0.5 * (trace + distance - n)


@register_kl(LowRankMultivariateNormal, MultivariateNormal)
def _(p, q):
    n = _same_events(p, q)
    factor, diag, _, p_log_det = _lowrank(p)
    q_factor = q._unbroadcasted_scale_tril
    trace = sum(_squares(part) for part in _solved(q_factor, factor, diag.sqrt().diag_embed()))
    distance = _batch_mahalanobis(q_factor, q.loc - p.loc)
    return 0.5 * (2 * _half_log_det(q_factor) - p_log_det + trace + distance - n)


@register_kl(MultivariateNormal, LowRankMultivariateNormal)
def _(p, q):
    n = _same_events(p, q)
    factor, diag, capacitance, q_log_det = _lowrank(q)
    p_factor = p._unbroadcasted_scale_tril
    inside = cresset.linalg.solve_triangular(capacitance, factor.mT / diag.unsqueeze(-2), upper=False)
    trace = _squares(p_factor * diag.rsqrt().unsqueeze(-1)) - _squares(inside @ p_factor)
    distance = _batch_lowrank_mahalanobis(factor, diag, q.loc - p.loc, capacitance)
    return 0.5 * (q_log_det - 2 * _half_log_det(p_factor) + trace + distance - n)


@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
def _(p, q):
    n = _same_events(p, q)
    factor, diag, capacitance, q_log_det = _lowrank(q)
    p_factor, p_diag, _, p_log_det = _lowrank(p)
    inside = cresset.linalg.solve_triangular(capacitance, factor.mT / diag.unsqueeze(-2), upper=False)
    trace = (
        (p_diag / diag).sum(-1)
        + _squares(p_factor * diag.rsqrt().unsqueeze(-1))
        - _squares(inside * p_diag.sqrt().unsqueeze(-2))
        - _squares(inside @ p_factor)
    )
    distance = _batch_lowrank_mahalanobis(factor, diag, q.loc - p.loc, capacitance)
    return 0.5 * (q_log_det - p_log_det + trace + distance - n)


# ---------------------------------------------------------------- between different families

_infinite(Beta, [Pareto], "concentration1")
_infinite(ContinuousBernoulli, [Pareto], "probs")
_infinite(Exponential, [Beta, ContinuousBernoulli, Pareto, Uniform], "rate")
_infinite(Gamma, [Beta, ContinuousBernoulli, Pareto, Uniform], "concentration")
_infinite(Gumbel, [Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform], "loc")
_infinite(Laplace, [Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform], "loc")
_infinite(Normal, [Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform], "loc")
_infinite(Pareto, [Beta, ContinuousBernoulli, Uniform], "scale")
_infinite(Poisson, [Bernoulli, Binomial], "rate")


@register_kl(Bernoulli, Poisson)
def _(p, q):
    return -p.entropy() - (p.probs * q.rate.log() - q.rate)


@register_kl(Beta, ContinuousBernoulli)
def _(p, q):
    return -p.entropy() - p.mean * q.logits - (-q.probs).log1p() - q._cont_bern_log_norm()


@register_kl(Beta, Exponential)
def _(p, q):
    return -p.entropy() - q.rate.log() + q.rate * p.mean


@register_kl(Beta, Gamma)
def _(p, q):
    log = p.concentration1.digamma() - (p.concentration1 + p.concentration0).digamma()  # E[log x]
    normalizer = q.concentration.lgamma() - q.concentration * q.rate.log()
    return -p.entropy() + normalizer - (q.concentration - 1) * log + q.rate * p.mean


@register_kl(Beta, Normal)
def _(p, q):
    variance, mean = q.scale.pow(2), p.mean
    second = mean * (1 - mean) / (p.concentration1 + p.concentration0 + 1) + mean.pow(2)  # E[x²]
    distance = second * 0.5 - q.loc * mean + q.loc.pow(2) * 0.5
    return -p.entropy() + 0.5 * (variance * 2 * math.pi).log() + distance / variance


@register_kl(Beta, Uniform)
def _(p, q):
    return _infinite_where(-p.entropy() + (q.high - q.low).log(), (q.low > 0) | (q.high < 1))


@register_kl(ContinuousBernoulli, Exponential)
def _(p, q):
    return -p.entropy() - q.rate.log() + q.rate * p.mean


@register_kl(ContinuousBernoulli, Normal)
def _(p, q):
    normalizer = 0.5 * (math.log(2.0 * math.pi) + (q.loc / q.scale).square()) + q.scale.log()
    distance = (p.variance + p.mean.square() - 2.0 * q.loc * p.mean) / (2.0 * q.scale.square())
    return -p.entropy() + normalizer + distance


@register_kl(ContinuousBernoulli, Uniform)
def _(p, q):
    # As in PyTorch, an end of q at 0 or 1 counts as inside of (0, 1).
    return _infinite_where(-p.entropy() + (q.high - q.low).log(), (q.low >= 0) | (q.high <= 1))


@register_kl(Exponential, Gamma)
def _(p, q):
    ratio = q.rate / p.rate
    normalizer = q.concentration.lgamma() + q.concentration * euler_constant - q.concentration * ratio.log()
    return normalizer + ratio - (1 + euler_constant)


@register_kl(Exponential, Gumbel)
def _(p, q):
    product, shift = p.rate * q.scale, q.loc / q.scale
    return product.log() - 1 - shift + shift.exp() * product / (product + 1) + product.reciprocal()


@register_kl(Exponential, Normal)
def _(p, q):
    variance, rate_squared = q.scale.pow(2), p.rate.pow(2)
    distance = rate_squared.reciprocal() - q.loc / p.rate + q.loc.pow(2) * 0.5
    return 0.5 * (rate_squared * variance * 2 * math.pi).log() - 1 + distance / variance


@register_kl(Gamma, Exponential)
def _(p, q):
    return -p.entropy() - q.rate.log() + q.rate * p.concentration / p.rate


@register_kl(Gamma, Gumbel)
def _(p, q):
    product, shift = p.rate * q.scale, q.loc / q.scale
    own = (p.concentration - 1) * p.concentration.digamma() - p.concentration.lgamma() - p.concentration
    tail = shift.exp() * (1 + product.reciprocal()).pow(-p.concentration) - shift
    return own + product.log() + p.concentration / product + tail


@register_kl(Gamma, Normal)
def _(p, q):
    variance, rate_squared = q.scale.pow(2), p.rate.pow(2)
    own = (p.concentration - 1) * p.concentration.digamma() - p.concentration - p.concentration.lgamma()
    second = 0.5 * (p.concentration.pow(2) + p.concentration) / rate_squared
    distance = second - q.loc * p.concentration / p.rate + 0.5 * q.loc.pow(2)
    return own + 0.5 * (rate_squared * variance * 2 * math.pi).log() + distance / variance


@register_kl(Gumbel, Normal)
def _(p, q):
    ratio = p.scale / q.scale
    spread = (math.pi * ratio * 0.5).pow(2) / 3
    distance = ((p.loc + p.scale * euler_constant - q.loc) / q.scale).pow(2) * 0.5
    return spread + distance - (ratio / math.sqrt(2 * math.pi)).log() - (euler_constant + 1)


@register_kl(Laplace, Normal)
def _(p, q):
    variance = q.scale.pow(2)
    ratio = p.scale.pow(2) / variance
    distance = 0.5 * p.loc.pow(2) - p.loc * q.loc + 0.5 * q.loc.pow(2)
    return ratio - 0.5 * (2 * ratio / math.pi).log() + distance / variance - 1


@register_kl(Normal, Gumbel)
def _(p, q):
    distance, ratio = (p.loc - q.loc) / q.scale, (p.scale / q.scale).pow(2)
    return distance - ratio.log() * 0.5 + (0.5 * ratio - distance).exp() - 0.5 * (1 + math.log(2 * math.pi))


@register_kl(Normal, Laplace)
def _(p, q):
    distance = p.loc - q.loc
    scaled = distance / p.scale
    near = math.sqrt(2 / math.pi) * p.scale * (-0.5 * scaled.pow(2)).exp()
    far = distance * (math.sqrt(0.5) * scaled).erf()
    return (near + far) / q.scale - (p.scale / q.scale).log() - 0.5 * (1 + math.log(0.5 * math.pi))


@register_kl(Pareto, Exponential)
def _(p, q):
    product = p.scale * q.rate
    result = (p.alpha / product).log() - p.alpha.reciprocal() + p.alpha * product / (p.alpha - 1) - 1
    return _infinite_where(result, p.alpha <= 1)


@register_kl(Pareto, Gamma)
def _(p, q):
    log = p.scale.log() + p.alpha.reciprocal()  # E[log x]
    normalizer = q.concentration.lgamma() - q.concentration * q.rate.log()
    mean = p.alpha * p.scale / (p.alpha - 1)
    result = p.alpha.log() - log + normalizer + (1 - q.concentration) * log + q.rate * mean - 1
    return _infinite_where(result, p.alpha <= 1)


@register_kl(Pareto, Normal)
def _(p, q):
    share = p.scale / (p.alpha - 1)
    own = (math.sqrt(2 * math.pi) * q.scale * p.alpha / p.scale).log() - p.alpha.reciprocal()
    spread = p.alpha * share.pow(2) / (p.alpha - 2) + (p.alpha * share - q.loc).pow(2)
    return _infinite_where(own + spread / (2 * q.scale.pow(2)) - 1, p.alpha <= 2)


@register_kl(Uniform, Beta)
def _(p, q):
    width = p.high - p.low
    log_one = (_x_log_x(p.high) - _x_log_x(p.low) - width) / width  # E[log x]
    log_zero = -(_x_log_x(1 - p.high) - _x_log_x(1 - p.low) + width) / width  # E[log (1 - x)]
    normalizer = q.concentration1.lgamma() + q.concentration0.lgamma() - (q.concentration1 + q.concentration0).lgamma()
    result = normalizer - width.log() - (q.concentration1 - 1) * log_one - (q.concentration0 - 1) * log_zero
    return _infinite_where(result, (p.high > 1) | (p.low < 0))


@register_kl(Uniform, ContinuousBernoulli)
def _(p, q):
    result = -p.entropy() - p.mean * q.logits - (-q.probs).log1p() - q._cont_bern_log_norm()
    # As in PyTorch, an end of p at 0 or 1 counts as outside of the support.
    return _infinite_where(result, (p.high >= 1) | (p.low <= 0))


@register_kl(Uniform, Exponential)
def _(p, q):
    result = q.rate * (p.high + p.low) / 2 - ((p.high - p.low) * q.rate).log()
    return _infinite_where(result, p.low < 0)


@register_kl(Uniform, Gamma)
def _(p, q):
    width = p.high - p.low
    log = (_x_log_x(p.high) - _x_log_x(p.low) - width) / width  # E[log x]
    normalizer = q.concentration.lgamma() - q.concentration * q.rate.log()
    result = normalizer - width.log() + (1 - q.concentration) * log + q.rate * (p.high + p.low) / 2
    return _infinite_where(result, p.low < 0)


@register_kl(Uniform, Gumbel)
def _(p, q):
    share = q.scale / (p.high - p.low)
    high, low = (p.high - q.loc) / q.scale, (p.low - q.loc) / q.scale
    return share.log() + 0.5 * (high + low) - share * ((-high).exp() - (-low).exp())


@register_kl(Uniform, Normal)
def _(p, q):
    width = p.high - p.low
    second = width.pow(2) / 12 + ((p.high + p.low - 2 * q.loc) / 2).pow(2)
    return (math.sqrt(math.pi * 2) * q.scale / width).log() + 0.5 * second / q.scale.pow(2)


@register_kl(Uniform, Pareto)
def _(p, q):
    width = p.high - p.low
    log = (_x_log_x(p.high) - _x_log_x(p.low) - width) / width  # E[log x]
    result = log * (q.alpha + 1) - (q.alpha * q.scale.pow(q.alpha) * width).log()
    return _infinite_where(result, p.low < q.scale)
