"""Activation functions and the softmax family: PyTorch's `inplace` argument in front of the operators of the same
name."""

import math
import warnings

import cresset

from ..._native import name_node
from ...ops.autocast import autocast
from ...ops.metadata import in_plain_order
from ...ops.registry import as_it_was


def relu(input, inplace=False):
    """max(x, 0), elementwise.

    >>> F.relu(cresset.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """
    return cresset.relu_(input) if inplace else cresset.relu(input)


def relu_(input):
    """`relu` in place."""
    return cresset.relu_(input)


def relu6(input, inplace=False):
    """x clamped to [0, 6], elementwise."""
    return cresset.relu6_(input) if inplace else cresset.relu6(input)


def hardtanh(input, min_val=-1.0, max_val=1.0, inplace=False):
    """x clamped to [min_val, max_val], elementwise."""
    if min_val > max_val:
        raise ValueError(f"hardtanh: min_val cannot be greater than max_val; they are {min_val} and {max_val}")
    if (min_val < 0 or max_val < 0) and input.dtype in (cresset.uint8, cresset.uint16, cresset.uint32, cresset.uint64):
        raise RuntimeError(
            f"hardtanh: cannot do hardtanh on an unsigned type with negative limits; they are {min_val} and {max_val}"
        )
    return cresset.hardtanh_(input, min_val, max_val) if inplace else cresset.hardtanh(input, min_val, max_val)


def hardtanh_(input, min_val=-1.0, max_val=1.0):
    """`hardtanh` in place."""
    return hardtanh(input, min_val, max_val, inplace=True)


def threshold(input, threshold, value, inplace=False):
    """x where it is above `threshold`, else `value`.

    >>> F.threshold(cresset.tensor([0.5, 2.0]), 1.0, -1.0)
    tensor([-1.,  2.])
    """
    return cresset.threshold_(input, threshold, value) if inplace else cresset.threshold(input, threshold, value)


def threshold_(input, threshold, value):
    """`threshold` in place."""
    return cresset.threshold_(input, threshold, value)


def leaky_relu(input, negative_slope=0.01, inplace=False):
    """x where it is positive, else negative_slope * x."""
    return cresset.leaky_relu_(input, negative_slope) if inplace else cresset.leaky_relu(input, negative_slope)


def leaky_relu_(input, negative_slope=0.01):
    """`leaky_relu` in place."""
    return cresset.leaky_relu_(input, negative_slope)


@autocast("lower")
def prelu(input, weight):
    """x where it is positive, else weight * x, with one learned weight, or one for each channel (dimension 1).

    >>> F.prelu(cresset.tensor([-2.0, 3.0]), cresset.tensor([0.5]))
    tensor([-1.,  3.])
    """
    if input.dtype != weight.dtype:
        raise RuntimeError(f"prelu: Type promoting not supported. Got {input.dtype} and {weight.dtype}")
    if weight.ndim > 1:
        raise RuntimeError(f"prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = {weight.ndim}")
    if weight.numel() != 1:
        if input.ndim == 0:
            raise RuntimeError("prelu: Not allow zero-dim input tensor.")
        channels = input.size(1) if input.ndim > 1 else 1
        if channels != weight.numel():
            raise RuntimeError(
                "prelu: Mismatch of parameter numbers and input channel size. "
                f"Found parameter numbers = {weight.numel()} and channel size = {channels}."
            )
        weight = weight.reshape(-1, *[1] * (input.ndim - 2))
    elif weight.ndim > input.ndim:
        weight = weight.reshape(())
    return cresset.prelu_elementwise(input, weight)


def rrelu(input, lower=1.0 / 8, upper=1.0 / 3, training=False, inplace=False):
    """leaky_relu whose slope is drawn between `lower` and `upper` for each element; their middle outside of
    training."""
    for side, bound in (("lower", lower), ("upper", upper)):
        if not math.isfinite(bound):
            raise RuntimeError(f"rrelu: {side} bound must be finite, got {bound}")
    if lower > upper:
        raise RuntimeError(
            f"rrelu: Lower bound should be less than or equal to the upper bound, got {lower} and {upper}"
        )
    node = "RreluWithNoiseBackward1" if inplace else "RreluWithNoiseBackward0"
    input = input if inplace else in_plain_order(input)
    if not training:
        return name_node(leaky_relu(input, (lower + upper) / 2, inplace), node)
    with cresset.no_grad():
        drawn_for = input <= 0
        slopes = cresset.empty(int(drawn_for.sum()), dtype=cresset.float64, device=input.device).uniform_(lower, upper)
        slope = cresset.ones_like(input).masked_scatter_(drawn_for, slopes.to(input.dtype))
    return name_node(input.mul_(slope) if inplace else input * slope, node)


def rrelu_(input, lower=1.0 / 8, upper=1.0 / 3, training=False):
    """`rrelu` in place."""
    return rrelu(input, lower, upper, training, inplace=True)


def elu(input, alpha=1.0, inplace=False):
    """x where it is positive, else alpha * (exp(x) - 1)."""
    return cresset.elu_(input, alpha) if inplace else cresset.elu(input, alpha)


def elu_(input, alpha=1.0, scale=1, input_scale=1):
    """`elu` in place; `scale` multiplies what comes out, `input_scale` the exponent."""
    if scale == 1 and input_scale == 1:
        return cresset.elu_(input, alpha)
    x = as_it_was(input)
    return input.copy_(cresset.where(x > 0, x * scale, cresset.expm1(x * input_scale) * (alpha * scale)))


def celu(input, alpha=1.0, inplace=False):
    """x where it is positive, else alpha * (exp(x / alpha) - 1)."""
    return cresset.celu_(input, alpha) if inplace else cresset.celu(input, alpha)


def celu_(input, alpha=1.0):
    """`celu` in place."""
    return cresset.celu_(input, alpha)


def selu(input, inplace=False):
    """elu with the constants that keep mean 0 and variance 1."""
    return cresset.selu_(input) if inplace else cresset.selu(input)


def selu_(input):
    """`selu` in place."""
    return cresset.selu_(input)


def gelu(input, *, approximate="none", out=None):
    """x times the probability that a normal variable is below x; with approximate="tanh" by a cheaper formula.

    >>> F.gelu(cresset.tensor([0.0, 1.0]))
    tensor([0.0000, 0.8413])
    """
    if approximate == "none":
        return cresset.gelu(input, out=out)
    if approximate == "tanh":
        return cresset.gelu_tanh(input, out=out)
    raise RuntimeError(f"gelu: approximate argument must be either none or tanh, got {approximate!r}")


def silu(input, inplace=False):
    """x * sigmoid(x), elementwise."""
    return cresset.silu_(input) if inplace else cresset.silu(input)


def mish(input, inplace=False):
    """x * tanh(softplus(x)), elementwise."""
    return cresset.mish_(input) if inplace else cresset.mish(input)


@autocast(cuda="float32")
def softplus(input, beta=1.0, threshold=20.0, *, out=None):
    """log(1 + exp(beta x)) / beta: a smooth relu, the identity above `threshold`."""
    return cresset.softplus(input, beta, threshold, out=out)


def hardsigmoid(input, inplace=False):
    """(x + 3) / 6 clamped to [0, 1], elementwise."""
    return cresset.hardsigmoid_(input) if inplace else cresset.hardsigmoid(input)


def hardswish(input, inplace=False):
    """x * hardsigmoid(x), elementwise."""
    return cresset.hardswish_(input) if inplace else cresset.hardswish(input)


def hardshrink(input, lambd=0.5, *, out=None):
    """x, but 0 within `lambd` of zero."""
    return cresset.hardshrink(input, lambd, out=out)


def softshrink(input, lambd=0.5, *, out=None):
    """x moved towards zero by `lambd`, and 0 within it."""
    largest = cresset.finfo(input.dtype).max if input.is_floating_point() else math.inf
    if not 0 <= lambd <= largest:
        name = input.type().rpartition(".")[2].removesuffix("Tensor")
        raise RuntimeError(
            f"softshrink: lambda must be in range [0, {largest:g}] for the input dtype {name}, but found {lambd:g}"
        )
    return cresset.softshrink(input, lambd, out=out)


def tanhshrink(input):
    """x - tanh(x), elementwise."""
    return input - input.tanh()


def softsign(input):
    """x / (1 + |x|), elementwise."""
    return input / (input.abs() + 1)


def logsigmoid(input, *, out=None):
    """log(sigmoid(x)), elementwise, without overflow on the way. The result is contiguous."""
    return cresset.logsigmoid(in_plain_order(input), out=out)


def tanh(input):
    """tanh(x), elementwise."""
    return input.tanh()


def sigmoid(input):
    """1 / (1 + exp(-x)), elementwise."""
    return input.sigmoid()


def glu(input, dim=-1):
    """The first half of `input` along `dim` times the sigmoid of the second half.

    >>> F.glu(cresset.tensor([2.0, 4.0, 0.0, 0.0]))
    tensor([1., 2.])
    """
    if input.ndim == 0:
        raise RuntimeError("glu: glu does not support scalars because halving size must be even")
    size = input.size(dim)
    if size % 2:
        raise RuntimeError(f"glu: Halving dimension must be even, but dimension {dim} is size {size}")
    # Pieces of one split: their gradients are joined, where two narrowed tensors' would be filled with zeros and added.
    value, gate = input.split([size // 2, size // 2], dim)
    return cresset.glu_elementwise(value, gate)


def _implicit_dim(name, ndim, stacklevel):
    warnings.warn(
        f"Implicit dimension choice for {name} has been deprecated. Change the call to include dim=X as an argument.",
        stacklevel=stacklevel + 1,
    )
    return 0 if ndim in (0, 1, 3) else 1


@autocast(cuda="accumulate")
def softmax(input, dim=None, _stacklevel=3, dtype=None):
    """exp(x) divided by its sum along `dim`.

    Args:
        dim: where the results sum to one.
        dtype: convert to it first, which can spare an overflow.

    >>> F.softmax(cresset.zeros(2, 4), dim=1)[0]
    tensor([0.2500, 0.2500, 0.2500, 0.2500])
    """
    if dim is None:
        dim = _implicit_dim("softmax", input.ndim, _stacklevel)
    return input.softmax(dim) if dtype is None else input.softmax(dim, dtype=dtype)


def softmin(input, dim=None, _stacklevel=3, dtype=None):
    """softmax of -x."""
    if dim is None:
        dim = _implicit_dim("softmin", input.ndim, _stacklevel)
    return (-input).softmax(dim) if dtype is None else (-input).softmax(dim, dtype=dtype)


@autocast(cuda="accumulate")
def log_softmax(input, dim=None, _stacklevel=3, dtype=None):
    """log(softmax(x)), computed without overflow.

    >>> F.log_softmax(cresset.zeros(4), dim=0)
    tensor([-1.3863, -1.3863, -1.3863, -1.3863])
    """
    if dim is None:
        dim = _implicit_dim("log_softmax", input.ndim, _stacklevel)
    return input.log_softmax(dim) if dtype is None else input.log_softmax(dim, dtype=dtype)


def gumbel_softmax(logits, tau=1, hard=False, eps=1e-10, dim=-1):
    """A random softmax: choices by `logits`, made smooth; the lower the temperature `tau`, the closer to one-hot.

    Args:
        hard: return the one-hot choice itself, with the gradient of the smooth one.
        eps: without effect, kept for old callers.
    """
    if eps != 1e-10:
        warnings.warn("`eps` parameter is deprecated and has no effect.", stacklevel=2)
    gumbels = -cresset.empty_like(logits, memory_format=cresset.contiguous_format).exponential_().log()
    soft = ((logits + gumbels) / tau).softmax(dim)
    if not hard:
        return soft
    chosen = cresset.zeros_like(logits).scatter_(dim, soft.max(dim, keepdim=True)[1], 1.0)
    return chosen - soft.detach() + soft
