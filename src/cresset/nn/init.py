"""Starting values for parameters. Each function fills its tensor in place, out of autograd's sight, and returns it."""

import math
import warnings

import cresset

from .._native import overridable as _overridable
from ..show import missing_names as _missing_names


def calculate_gain(nonlinearity, param=None):
    """The factor by which weights before a nonlinearity should be larger, so that the variance is kept.

    >>> nn.init.calculate_gain("relu")
    1.4142135623730951
    """
    if nonlinearity in ("linear", "sigmoid", *(f"conv{t}{d}d" for t in ("", "_transpose") for d in (1, 2, 3))):
        return 1
    if nonlinearity == "tanh":
        return 5.0 / 3
    if nonlinearity == "relu":
        return math.sqrt(2.0)
    if nonlinearity == "selu":
        return 3.0 / 4
    if nonlinearity == "leaky_relu":
        if param is None:
            slope = 0.01
        elif isinstance(param, (int, float)) and not isinstance(param, bool):
            slope = param
        else:
            raise ValueError(f"negative_slope {param} not a valid number")
        return math.sqrt(2.0 / (1 + slope**2))
    raise ValueError(f"Unsupported nonlinearity {nonlinearity}")


@cresset.no_grad()
def uniform_(tensor, a=0.0, b=1.0, generator=None):
    """Fill with numbers drawn evenly between `a` and `b`."""
    return tensor.uniform_(a, b, generator=generator)


def _no_grad_uniform_(tensor, a, b, generator=None):
    """PyTorch's name for a uniform filling that is not recorded."""
    with cresset.no_grad():
        return tensor.uniform_(a, b, generator=generator)


@cresset.no_grad()
def normal_(tensor, mean=0.0, std=1.0, generator=None):
    """Fill with normal random numbers."""
    return tensor.normal_(mean, std, generator=generator)


@cresset.no_grad()
def trunc_normal_(tensor, mean=0.0, std=1.0, a=-2.0, b=2.0, generator=None):
    """Fill with normal random numbers that are redrawn outside of [a, b]."""
    if mean < a - 2 * std or mean > b + 2 * std:
        warnings.warn(
            "mean is more than 2 std from [a, b] in nn.init.trunc_normal_. The distribution of values may be "
            "incorrect.",
            stacklevel=2,
        )

    if tensor.is_meta:
        return tensor

    def below(x):  # the probability that a standard normal variable is below x
        return (1.0 + math.erf(x / math.sqrt(2.0))) / 2.0

    if below((b - mean) / std) - below((a - mean) / std) > 0.3:
        # Most numbers fall inside: draw again those that do not.
        low, high = (tensor.new_tensor(bound, device="cpu").item() for bound in (a, b))
        tensor.normal_(mean, std, generator=generator)
        while (outside := (tensor < low) | (tensor > high)).any():
            drawn = cresset.empty_like(tensor).normal_(mean, std, generator=generator)
            tensor.copy_(cresset.where(outside, drawn, tensor))
        return tensor
    # Few do: draw evenly inside, and keep a number with the probability density it has, relative to the highest.
    highest = -0.5 * ((max(a, min(mean, b)) - mean) / std) ** 2
    pending = None
    while pending is None or pending.any():
        drawn = cresset.empty_like(tensor).uniform_(a, b, generator=generator)
        tensor.copy_(drawn if pending is None else cresset.where(pending, drawn, tensor))
        log_density = ((drawn - mean) / std) ** 2 * -0.5 - highest
        refused = cresset.empty_like(tensor).uniform_(generator=generator).log() > log_density
        pending = refused if pending is None else pending & refused
    return tensor


@cresset.no_grad()
def constant_(tensor, val):
    """Fill with `val`."""
    return tensor.fill_(val)


@cresset.no_grad()
def ones_(tensor):
    """Fill with ones."""
    return tensor.fill_(1.0)


@cresset.no_grad()
def zeros_(tensor):
    """Fill with zeros."""
    return tensor.zero_()


@cresset.no_grad()
def eye_(tensor):
    """Make a matrix the identity."""
    if tensor.ndim != 2:
        raise ValueError(f"Only tensors with 2 dimensions are supported, got {tensor.ndim}")
    return tensor.copy_(cresset.eye(*tensor.shape, dtype=tensor.dtype, device=tensor.device))


@cresset.no_grad()
def dirac_(tensor, groups=1):
    """Make a convolution's weight pass its channels on unchanged, as many as it can."""
    if tensor.ndim not in (3, 4, 5):
        raise ValueError(f"Only tensors with 3, 4, or 5 dimensions are supported, got {tensor.ndim}")
    if tensor.size(0) % groups:
        raise ValueError(f"dim 0 must be divisible by groups; they are {tensor.size(0)} and {groups}")
    per_group = tensor.size(0) // groups
    center = [size // 2 for size in tensor.shape[2:]]
    tensor.zero_()
    for group in range(groups):
        for channel in range(min(per_group, tensor.size(1))):
            tensor[(group * per_group + channel, channel, *center)] = 1
    return tensor


def _calculate_fan_in_and_fan_out(tensor):
    """How many inputs an output depends on, and how many outputs an input reaches."""
    if tensor.ndim < 2:
        raise ValueError("Fan in and fan out can not be computed for tensor with fewer than 2 dimensions")
    area = math.prod(tensor.shape[2:])
    return tensor.size(1) * area, tensor.size(0) * area


def _calculate_correct_fan(tensor, mode):
    mode = mode.lower()
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"Mode {mode} not supported, please use one of ['fan_in', 'fan_out']")
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    return fan_in if mode == "fan_in" else fan_out


def xavier_uniform_(tensor, gain=1.0, generator=None):
    """Fill evenly with variance 2 gain^2 / (fan_in + fan_out), Glorot's rule."""
    std = gain * math.sqrt(2.0 / float(sum(_calculate_fan_in_and_fan_out(tensor))))
    bound = math.sqrt(3.0) * std
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor, gain=1.0, generator=None):
    """Fill with normal random numbers of variance 2 gain^2 / (fan_in + fan_out), Glorot's rule."""
    std = gain * math.sqrt(2.0 / float(sum(_calculate_fan_in_and_fan_out(tensor))))
    return normal_(tensor, 0.0, std, generator)


def _warn_if_empty(tensor):
    if 0 in tensor.shape:
        warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=3)
        return True
    return False


def kaiming_uniform_(tensor, a=0, mode="fan_in", nonlinearity="leaky_relu", generator=None):
    """Fill evenly with variance gain^2 / fan, He's rule.

    Args:
        a: the negative slope, for leaky_relu.
        mode: "fan_in" keeps the variance forward, "fan_out" backward.
    """
    if _warn_if_empty(tensor):
        return tensor
    std = calculate_gain(nonlinearity, a) / math.sqrt(_calculate_correct_fan(tensor, mode))
    bound = math.sqrt(3.0) * std
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(tensor, a=0, mode="fan_in", nonlinearity="leaky_relu", generator=None):
    """Fill with normal random numbers of variance gain^2 / fan, He's rule.

    Args:
        a: the negative slope, for leaky_relu.
        mode: "fan_in" keeps the variance forward, "fan_out" backward.
    """
    if _warn_if_empty(tensor):
        return tensor
    std = calculate_gain(nonlinearity, a) / math.sqrt(_calculate_correct_fan(tensor, mode))
    return normal_(tensor, 0.0, std, generator)


@cresset.no_grad()
def orthogonal_(tensor, gain=1, generator=None):
    """Fill with a random orthogonal matrix; trailing dimensions count as one."""
    if tensor.ndim < 2:
        raise ValueError(f"Only tensors with 2 or more dimensions are supported, got {tensor.ndim}")
    if tensor.numel() == 0:
        return tensor
    rows = tensor.size(0)
    columns = tensor.numel() // rows
    random = tensor.new_empty((rows, columns)).normal_(0, 1, generator=generator)
    q, r = cresset.linalg.qr(random.t() if rows < columns else random)
    q = q * r.diag(0).sign()  # makes the choice uniform over the orthogonal matrices
    matrix = q.t() if rows < columns else q
    return tensor.copy_(matrix.reshape(tensor.shape)).mul_(gain)


@cresset.no_grad()
def sparse_(tensor, sparsity, std=0.01, generator=None):
    """Fill a matrix with normal random numbers, of which the part `sparsity` in each column is zero."""
    if tensor.ndim != 2:
        raise ValueError(f"Only tensors with 2 dimensions are supported, got {tensor.ndim}")
    rows, columns = tensor.shape
    zeros = int(math.ceil(sparsity * rows))
    tensor.normal_(0, std, generator=generator)
    for column in range(columns):
        tensor[cresset.randperm(rows)[:zeros], column] = 0
    return tensor


def _renamed(new):
    old = new.__name__[:-1]

    def deprecated(*args, **kwargs):
        warnings.warn(
            f"`nn.init.{old}` is now deprecated in favor of `nn.init.{new.__name__}`.", FutureWarning, stacklevel=2
        )
        return new(*args, **kwargs)

    deprecated.__name__ = deprecated.__qualname__ = old
    deprecated.__doc__ = f"The older name of `{new.__name__}`."
    return deprecated


# Other types may answer for these in PyTorch.
uniform_, normal_, constant_, kaiming_uniform_ = (
    _overridable(fill, "torch.nn.init", False) for fill in (uniform_, normal_, constant_, kaiming_uniform_)
)
uniform, normal, constant, eye, dirac = (_renamed(f) for f in (uniform_, normal_, constant_, eye_, dirac_))
xavier_uniform, xavier_normal, kaiming_uniform, kaiming_normal, orthogonal, sparse = (
    _renamed(f) for f in (xavier_uniform_, xavier_normal_, kaiming_uniform_, kaiming_normal_, orthogonal_, sparse_)
)

__getattr__ = _missing_names.of(__name__)
