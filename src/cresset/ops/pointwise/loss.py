"""The elementwise part of loss functions, of the input `x` and the `target`. A loss is one of these and a reduction."""

from . import primitives as p
from .activation import logsigmoid
from .arithmetic import sign
from .definition import Flag, pointwise
from .exponential import exp, log, log1p, sigmoid, xlogy
from .selection import clamp_min, where

# Below this x (1 - x) the derivative of the cross entropy grows no further: PyTorch's 1e-12 in single precision.
SMALLEST_VARIANCE = 9.999999960041972e-13


@pointwise(node="MseLossBackward0", types="float complex", result="same", method=False, examples=[(3.0, 1.0, 4.0)])
def mse_elementwise(x, target):
    """(x - target)^2."""
    difference = x - target
    return difference * difference


@mse_elementwise.derivative
def _(x, target):
    slope = 2 * (x - target)
    return slope, -slope


@pointwise(node="AbsBackward0", result="same", method=False, examples=[(1.0, 3.0, 2.0)])
def l1_elementwise(x, target):
    """|x - target|."""
    return p.absolute(x - target)


@l1_elementwise.derivative
def _(x, target):
    slope = sign(x - target)
    return slope, -slope


@pointwise(node="SmoothL1LossBackward0", result="same", method=False, examples=[(1.5, 1.0, 0.125), (3.0, 1.0, 1.5)])
def smooth_l1_elementwise(x, target, beta=1.0):
    """|x - target| - beta / 2, but a parabola where the difference is below `beta`."""
    distance = p.absolute(x - target)
    return where(distance < beta, 0.5 * distance * distance / beta, distance - 0.5 * beta)


@smooth_l1_elementwise.derivative
def _(x, target, beta):
    difference = x - target
    slope = where(difference <= -beta, -1, where(difference >= beta, 1, difference / beta))
    return slope, -slope


@pointwise(node="HuberLossBackward0", result="same", method=False, examples=[(1.5, 1.0, 0.125), (3.0, 1.0, 1.5)])
def huber_elementwise(x, target, delta=1.0):
    """A parabola where the difference is at most `delta`, continued by straight lines."""
    distance = p.absolute(x - target)
    return where(distance <= delta, 0.5 * distance * distance, delta * (distance - 0.5 * delta))


@huber_elementwise.derivative
def _(x, target, delta):
    difference = x - target
    slope = where(difference <= -delta, -delta, where(difference >= delta, delta, difference))
    return slope, -slope


@pointwise(
    node="BinaryCrossEntropyBackward0",
    result="same",
    method=False,
    examples=[(0.5, 1.0, 0.6931471805599453), (1.0, 0.0, 100.0)],
)
def binary_cross_entropy_elementwise(x, target):
    """-(target log(x) + (1 - target) log(1 - x)), with the logarithms at least -100."""
    return (target - 1) * clamp_min(p.log1p(-x), -100) - target * clamp_min(p.log(x), -100)


@binary_cross_entropy_elementwise.derivative
def _(x, target):
    return (x - target) / clamp_min(x * (1 - x), SMALLEST_VARIANCE), clamp_min(log1p(-x), -100) - clamp_min(
        log(x), -100
    )


@pointwise(
    node="BinaryCrossEntropyWithLogitsBackward0",
    result="same",
    method=False,
    examples=[(0.0, 1.0, 0.6931471805599453), (-800.0, 1.0, 800.0)],
)
def binary_cross_entropy_with_logits_elementwise(x, target):
    """The binary cross entropy of sigmoid(x), without overflow on the way."""
    return (1 - target) * x + _softplus(-x)


@binary_cross_entropy_with_logits_elementwise.derivative
def _(x, target):
    return sigmoid(x) - target, -x


@pointwise(
    node="BinaryCrossEntropyWithLogitsBackward0",
    result="same",
    method=False,
    examples=[(0.0, 1.0, 2.0, 1.3862943611198906)],
)
def weighted_binary_cross_entropy_with_logits_elementwise(x, target, pos_weight):
    """The binary cross entropy of sigmoid(x), in which the positive examples count `pos_weight` times."""
    return (1 - target) * x + (1 + (pos_weight - 1) * target) * _softplus(-x)


@weighted_binary_cross_entropy_with_logits_elementwise.derivative
def _(x, target, pos_weight):
    weight = 1 + (pos_weight - 1) * target
    penalty = -logsigmoid(x)
    return (1 - target) - weight * sigmoid(-x), (pos_weight - 1) * penalty - x, target * penalty


@pointwise(result="same", method=False, examples=[(0.0, 1.0, 0.0), (-1.0, 0.0, 0.0)])
def kl_div_elementwise(x, target, log_target: Flag = False):
    """target * (log(target) - x), where x is a log-probability; with `log_target` the target is one, too."""
    return where(log_target, p.exp(target) * (target - x), xlogy(target, target) - target * x)


@kl_div_elementwise.gradient
def _(grad, x, target, log_target):
    probability = where(log_target, exp(target), target)
    by_target = grad * (probability * (target - x + 1))
    return -grad * probability, where(log_target, by_target, xlogy(grad, target) + grad * (target / target - x))


@pointwise(node="SoftMarginLossBackward0", result="same", method=False, examples=[(0.0, 1.0, 0.6931471805599453)])
def soft_margin_elementwise(x, target):
    """log(1 + exp(-target x))."""
    return p.log1p(p.exp(-target * x))


@soft_margin_elementwise.derivative
def _(x, target):
    slope = sigmoid(-target * x)
    return -target * slope, -x * slope


@pointwise(
    node="SubBackward0",
    result="same",
    method=False,
    examples=[(0.0, 1.0, 1.0), (2.0, 1.0, False, 1e-8, 2.0 - 0.6931471855599453)],
)
def poisson_nll_elementwise(x, target, log_input: Flag = True, eps: float = 1e-8):
    """exp(x) - target x for the logarithm x of a rate; x - target log(x + eps) for the rate itself."""
    return where(log_input, p.exp(x) - target * x, x - target * p.log(x + eps))


@poisson_nll_elementwise.derivative
def _(x, target, log_input, eps):
    return where(log_input, exp(x) - target, 1 - target / (x + eps)), where(log_input, -x, -log(x + eps))


def _softplus(x):
    return clamp_min(x, 0) + p.log1p(p.exp(-p.absolute(x)))
