"""Statistics: quantiles, covariance, means that pass over nan. Plain moments and extremes are in `reduction.py`,
histograms in `histogram.py`, distances in `distance.py`, finite differences in `difference.py`."""

import math

import cresset

from .._native import forget_base, name_node
from .batches import all_samples
from .dimensions import wrap_dim
from .registry import function


def _all_dims(dim):
    """Does `dim` stand for all dimensions? An empty list does."""
    return dim is None or dim == () or dim == []


# --- quantiles ---


@function(method=True, out=True, autocast={"cpu": "float32"})
def quantile(input, q, dim=None, keepdim=False, *, interpolation="linear"):
    """The values below which a fraction `q` of the elements lies.

    Args:
        q: a number or a vector of numbers in [0, 1]; a vector puts a dimension in front of the result.
        dim: the dimension to reduce; None reduces all.
        interpolation: between the two nearest elements: "linear", "lower", "higher", "midpoint" or "nearest".

    A slice with a nan gives nan.

    >>> cresset.quantile(cresset.tensor([1.0, 2.0, 3.0, 4.0]), 0.5)
    tensor(2.5000)
    """
    return _quantile("quantile", input, q, dim, keepdim, interpolation, skip_nan=False)


@function(method=True, out=True, autocast={"cpu": "float32"})
def nanquantile(input, q, dim=None, keepdim=False, *, interpolation="linear"):
    """`quantile` of the elements that are not nan.

    >>> cresset.nanquantile(cresset.tensor([1.0, 2.0, float("nan")]), 0.5)
    tensor(1.5000)
    """
    return _quantile("nanquantile", input, q, dim, keepdim, interpolation, skip_nan=True)


def _quantile(who, input, q, dim, keepdim, interpolation, skip_nan):
    if input.dtype not in (cresset.float32, cresset.float64):
        raise RuntimeError(f"{who}() input tensor must be either float or double dtype, got {input.dtype}")
    if not isinstance(q, cresset.Tensor):
        if not 0 <= q <= 1:
            raise RuntimeError(f"{who}() q must be in the range [0, 1] but got {q}")
        q = input.new_full((), q)
    elif q.ndim > 1:
        raise RuntimeError(f"{who}() q must be a scalar or 1D tensor, got {q.ndim}D")
    elif q.dtype != input.dtype:
        raise RuntimeError(f"{who}() q tensor must be same dtype as the input tensor: {q.dtype} and {input.dtype}")
    elif not all_samples((q >= 0) & (q <= 1)).all():
        raise RuntimeError(f"{who}() q values must be in the range [0, 1]")
    if interpolation not in ("linear", "lower", "higher", "midpoint", "nearest"):
        raise RuntimeError(
            f"{who}() interpolation must be one of linear, lower, higher, midpoint or nearest, but got {interpolation}"
        )
    if input.numel() == 0:
        raise RuntimeError(f"{who}() input tensor must be non-empty, got shape {list(input.shape)}")
    ndim = input.ndim
    if dim is None:
        rows, shape = input if ndim == 1 else input.reshape(-1), (1,) * ndim if keepdim else ()
    else:
        dim = wrap_dim(dim, ndim, who)
        shape = (*input.shape[:dim], *[1] * (keepdim and ndim > 0), *input.shape[dim + 1 :])
        is_last = dim == ndim - 1
        rows = input if is_last else input.unsqueeze(-1).transpose(dim, -1) if ndim else input.reshape(1)

    # The place of each quantile among the sorted elements, of which nan are the last: shape (..., number of q).
    length = rows.size(-1)
    ordered = rows.sort(-1).values.reshape(*shape, length)
    is_nan = ordered.isnan()
    if skip_nan:
        last = (length - 1 - is_nan.sum(-1, keepdim=True)).clamp_min(0)
        place = q.reshape(-1) * last.to(input.dtype)
    else:
        place = (q.reshape(-1) * (length - 1)).masked_fill(is_nan.any(-1, keepdim=True), length - 1)

    if interpolation == "lower":
        result = ordered.gather(-1, place.floor().long())
    elif interpolation == "higher":
        result = ordered.gather(-1, place.ceil().long())
    elif interpolation == "nearest":
        result = ordered.gather(-1, place.round().long())
    else:
        below, above = place.floor().long(), place.ceil().long()
        weight = place - below if interpolation == "linear" else cresset.full_like(place, 0.5)
        result = ordered.gather(-1, below).lerp(ordered.gather(-1, above), weight)

    if q.ndim:
        result = name_node(name_node(result.unsqueeze(0), "UnsqueezeBackward1").transpose(0, -1), "TransposeBackward1")
    return name_node(forget_base(result.squeeze(-1)), "SqueezeBackward4")


# --- covariance ---


@function(method=True)
def cov(input, *, correction=1, fweights=None, aweights=None):
    """The covariance matrix of the rows, each a variable whose columns are observations.

    Args:
        correction: the sum of products is divided by the number of observations less this.
        fweights: how often each observation was made (integers).
        aweights: the weight of each observation.

    >>> cresset.cov(cresset.tensor([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]))
    tensor([[ 1., -1.],
            [-1.,  1.]])
    """
    if input.ndim > 2:
        raise RuntimeError(
            f"cov(): expected input to have two or fewer dimensions but got an input with {input.ndim} dimensions"
        )
    if input.dtype == cresset.bool:
        raise RuntimeError("cov(): bool dtype is not supported for input")
    rows = input.unsqueeze(0) if input.ndim < 2 else input
    observations = rows.size(1) if input.ndim else 1
    rows = rows.reshape(rows.size(0), observations)

    weights = None
    if fweights is not None:
        _check_weights("fweights", fweights, observations)
        if fweights.is_floating_point() or fweights.is_complex() or fweights.dtype == cresset.bool:
            raise RuntimeError(
                f"cov(): expected fweights to have integral dtype but got fweights with {fweights.dtype} dtype"
            )
        weights = fweights
    if aweights is not None:
        _check_weights("aweights", aweights, observations)
        if not aweights.is_floating_point():
            raise RuntimeError(
                f"cov(): expected aweights to have floating point dtype but got aweights with {aweights.dtype} dtype"
            )
        weights = aweights if weights is None else weights * aweights

    if weights is None:
        count, mean = observations, rows.sum(1, keepdim=True) / observations
        norm = count - correction
        deviation = rows - mean
        weighted = deviation
    else:
        count = weights.sum()
        if observations and not all_samples(count).ne(0).all():
            raise RuntimeError("cov(): weights sum to zero, can't be normalized")
        mean = (rows * weights).sum(1, keepdim=True) / count
        norm = (
            count - correction
            if correction == 0 or aweights is None
            else (count - correction * (weights * aweights).sum() / count)
        )
        deviation = rows - mean
        weighted = deviation * weights
    norm = norm.clamp_min(0) if isinstance(norm, cresset.Tensor) else max(norm, 0)
    products = deviation.mm(weighted.to(deviation.dtype).t().conj())
    result = products / norm
    return result.squeeze() if input.ndim < 2 or rows.size(0) == 1 else result


def _check_weights(name, weights, observations):
    if weights.ndim > 1:
        raise RuntimeError(
            f"cov(): expected {name} to have one or fewer dimensions but got {name} with {weights.ndim} dimensions"
        )
    if weights.numel() != observations:
        raise RuntimeError(
            f"cov(): expected {name} to have the same numel as there are observations in the input "
            f"but got {weights.numel()} != {observations}"
        )
    if observations and (all_samples(weights) < 0).any():
        raise RuntimeError(f"cov(): {name} cannot be negative")


@function(method=True)
def corrcoef(input):
    """Pearson's correlation coefficients of the rows.

    >>> cresset.corrcoef(cresset.tensor([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]))
    tensor([[ 1., -1.],
            [-1.,  1.]])
    """
    if input.ndim > 2:
        raise RuntimeError(
            f"corrcoef(): expected input to have two or fewer dimensions but got an input with {input.ndim} dimensions"
        )
    covariance = cov(input)
    if covariance.ndim == 0:
        return covariance / covariance
    deviation = (covariance.diagonal().real if input.is_complex() else covariance.diagonal()).sqrt()
    result = covariance / deviation.unsqueeze(1) / deviation.unsqueeze(0)
    # Rounding can carry the quotient past 1.
    if result.is_complex():
        return cresset.complex(result.real.clamp(-1, 1), result.imag.clamp(-1, 1))
    return result.clamp(-1, 1)


# --- means that pass over nan, and the rest ---


@function(method=True)
def nanmean(input, dim=None, keepdim=False, *, dtype=None, out=None):
    """The mean of the elements that are not nan.

    >>> cresset.nanmean(cresset.tensor([1.0, float("nan"), 2.0]))
    tensor(1.5000)
    """
    if not input.is_floating_point():
        raise RuntimeError(f"nanmean(): expected input to have floating point or complex dtype but got {input.dtype}")
    if dtype is not None and not (dtype.is_floating_point or dtype.is_complex):
        raise RuntimeError(
            "nanmean(): could not infer output dtype. Optional dtype must be either a floating point or complex "
            f"dtype. Got: {dtype}"
        )
    count = input.isnan().logical_not().sum(None if _all_dims(dim) else dim, keepdim=keepdim)
    if out is not None:
        return cresset.nansum(input, dim, keepdim, dtype=dtype, out=out).div_(count)
    return input.nansum(dim, keepdim, dtype=dtype) / count


@function(method=True, inplace=True, out="cast")
def mvlgamma(input, p):
    """The logarithm of the gamma function of `p` variables: p(p - 1)/4 log π + Σⱼ lgamma(input - j/2), j < p.

    >>> cresset.mvlgamma(cresset.tensor([2.0]), 1)
    tensor([0.])
    """
    if p < 1:
        raise RuntimeError(f"mvlgamma: p has to be greater than or equal to 1, got {p}")
    if input.dtype == cresset.bool or input.is_complex():
        raise RuntimeError(f"mvlgamma: not implemented for {input.dtype}")
    if not input.is_floating_point():
        input = input.to(cresset.get_default_dtype())
    steps = cresset.arange(0.5 - p / 2, 0.5, 0.5, dtype=input.dtype, device=input.device)
    result = (input.unsqueeze(-1) + steps).lgamma().sum(-1) + p * (p - 1) / 4 * math.log(math.pi)
    return name_node(result, "MvlgammaBackward0")
