"""Activation functions."""

import math

from . import primitives as p
from .arithmetic import abs
from .definition import Scalar, pointwise
from .exponential import exp, sigmoid
from .selection import clamp, clamp_min, where
from .special import erf
from .trigonometric import tanh

SQRT_HALF, SQRT_2_OVER_PI = math.sqrt(0.5), math.sqrt(2 / math.pi)
SELU_ALPHA, SELU_SCALE = 1.6732632423543772, 1.0507009873554805


@pointwise(types="real", examples=[(-1.0, 0.0), (2.0, 2.0)], onnx="Relu")
def relu(x):
    """x where it is positive, else 0."""
    return where(x < 0, 0, x)


@relu.derivative(flat="output")
def _(output):
    return where(output <= 0, 0, 1)


@pointwise(types="real", method=False, examples=[(1.0, 0.5, 1.5), (1.0, -2.0, 0.0), (1.0, 2.0, 3, 7.0)])
def _add_relu(x, y, *, alpha=1):
    """relu(x + alpha * y), as the end of a residual block has it: one pass over the elements, forward and backward."""
    total = x + alpha * y
    return where(total < 0, 0, total)


@_add_relu.derivative
def _(output, alpha):
    kept = where(output <= 0, 0, 1)
    return kept, kept * alpha


@pointwise(node="HardtanhBackward0", types="real", method=False, inplace=True, examples=[(3.0, 3.0), (7.0, 6.0)])
def relu6(x):
    """x clamped to [0, 6]."""
    return clamp(x, 0, 6)


@relu6.derivative(flat="input")
def _(x):
    return where((x <= 0) | (x >= 6), 0, 1)


@pointwise(types="real", method=False, inplace=True, examples=[(0.5, 0.5), (-3.0, -1.0)])
def hardtanh(x, min_val=-1, max_val=1):
    """x clamped to [min_val, max_val]."""
    return clamp(x, min_val, max_val)


@hardtanh.derivative(flat="input")
def _(x, min_val, max_val):
    # Not by the result: a bound that half precision rounds inward is never reached.
    return where((x <= min_val) | (x >= max_val), 0, 1)


@pointwise(result="same", method=False, inplace=True, examples=[(2.0, 2.0), (-2.0, -0.02)])
def leaky_relu(x, negative_slope=0.01):
    """x where it is positive, else negative_slope * x."""
    return where(x > 0, x, x * negative_slope)


@leaky_relu.derivative(flat="input")
def _(x, negative_slope):
    return where(x > 0, 1, negative_slope)


@pointwise(node="PreluKernelBackward0", result="same", method=False, examples=[(2.0, 0.1, 2.0), (-2.0, 0.1, -0.2)])
def prelu_elementwise(x, weight):
    """x where it is positive, else weight * x, with a learned weight."""
    return where(x > 0, x, x * weight)


@prelu_elementwise.derivative(flat="input")
def _(x, weight):
    return where(x > 0, 1, weight), where(x > 0, 0, x)


@pointwise(result="same", method=False, inplace=True, examples=[(2.0, 2.0), (-1.0, math.expm1(-1))])
def elu(x, alpha=1.0, scale=1.0, input_scale=1.0):
    """scale * x where x is positive, else scale * alpha * (exp(input_scale * x) - 1)."""
    return where(x > 0, x * scale, p.expm1(x * input_scale) * (alpha * scale))


@elu.derivative
def _(x, alpha, scale, input_scale):
    slope = alpha * scale * input_scale
    return where(x < 0, exp(x * input_scale) * slope, where(x == 0, slope, scale))


@pointwise(
    node="EluBackward0",
    result="same",
    inplace=True,
    method=False,
    examples=[(1.0, SELU_SCALE), (-1.0, SELU_ALPHA * SELU_SCALE * math.expm1(-1))],
)
def selu(x):
    """elu with the constants that keep mean 0 and variance 1."""
    return elu(x, SELU_ALPHA, SELU_SCALE)


@selu.derivative
def _(x):
    slope = SELU_ALPHA * SELU_SCALE
    return where(x < 0, exp(x) * slope, where(x == 0, slope, SELU_SCALE))


@pointwise(result="same", inplace=True, method=False, examples=[(1.0, 1.0), (-2.0, 2.0, 2 * math.expm1(-1))])
def celu(x, alpha=1.0):
    """x where it is positive, else alpha * (exp(x / alpha) - 1)."""
    return where(x > 0, x, p.expm1(x * (1.0 / alpha)) * alpha)


@celu.derivative
def _(x, alpha):
    return where(x < 0, exp(x * (1.0 / alpha)), 1)


@pointwise(result="same", method=False, examples=[(0.0, 0.0), (1.0, 0.8413447460685429)])
def gelu(x):
    """x times the probability that a normal variable is below x."""
    return x * 0.5 * (1 + p.erf(x * SQRT_HALF))


@gelu.derivative
def _(x):
    return 0.5 * (1 + erf(x * SQRT_HALF)) + x * exp(x * x * -0.5) * (1 / math.sqrt(2 * math.pi))


@pointwise(result="same", method=False, node="GluBackward0", examples=[(3.0, 0.0, 1.5)])
def glu_elementwise(x, gate):
    """x * sigmoid(gate)."""
    return x * (1 / (1 + p.exp(-gate)))


@glu_elementwise.derivative
def _(x, gate):
    opened = sigmoid(gate)
    return opened, x * (opened * (1 - opened))


@pointwise(node="GeluBackward0", result="same", method=False, examples=[(0.0, 0.0), (1.0, 0.8411919906082768)])
def gelu_tanh(x):
    """gelu, with the normal probability approximated by a tanh."""
    return 0.5 * x * (1 + p.tanh(SQRT_2_OVER_PI * (x + 0.044715 * (x * x * x))))


@gelu_tanh.derivative
def _(x):
    slope = tanh(SQRT_2_OVER_PI * (x + 0.044715 * (x * x * x)))
    inner = SQRT_2_OVER_PI * (1 + 3 * 0.044715 * (x * x))
    return 0.5 * (1 + slope) + 0.5 * x * ((1 - slope * slope) * inner)


@pointwise(
    types="float complex", result="same", method=False, inplace=True, examples=[(0.0, 0.0), (1.0, 0.7310585786300049)]
)
def silu(x):
    """x * sigmoid(x)."""
    return x / (1 + p.exp(-x))


@silu.derivative
def _(x):
    s = sigmoid(x)
    return s * (1 + x * (1 - s))


@pointwise(result="same", method=False, examples=[(3.0, 0.0, 1.5), (2.0, 1.0, 1.8553410237429737)])
def silu_backward(grad_output, x):
    """grad_output times the derivative of silu: for derivatives written by hand (`torch.ops.aten.silu_backward`)."""
    s = sigmoid(x)
    return grad_output * (s * (1 + x * (1 - s)))


@silu_backward.derivative
def _(grad_output, x):
    s = sigmoid(x)
    return s * (1 + x * (1 - s)), grad_output * (s * (1 - s) * (2 + x * (1 - 2 * s)))


@pointwise(result="same", method=False, inplace=True, examples=[(0.0, 0.0), (1.0, 0.8650983882673103)])
def mish(x):
    """x * tanh(softplus(x))."""
    return x * p.tanh(softplus(x))


@mish.derivative
def _(x):
    t = tanh(softplus(x))
    return t + x * sigmoid(x) * (1 - t * t)


@pointwise(result="same", method=False, examples=[(0.0, math.log(2)), (800.0, 800.0)], autocast="float32")
def softplus(x, beta=1.0, threshold=20.0):
    """log(1 + exp(beta x)) / beta: a smooth relu, the identity above `threshold`."""
    # max(z, 0) + log1p(exp(-|z|)): the same value, but exp never overflows.
    z = x * beta
    return where(z > threshold, x, (clamp_min(z, 0) + p.log1p(p.exp(-p.absolute(z)))) / beta)


@softplus.derivative
def _(x, beta, threshold):
    z = x * beta
    return where(z > threshold, 1, sigmoid(z))


@pointwise(result="same", method=False, inplace=True, examples=[(0.0, 0.5), (4.0, 1.0), (-4.0, 0.0)])
def hardsigmoid(x):
    """A piecewise linear sigmoid: (x + 3) / 6 clamped to [0, 1]."""
    return clamp(x + 3, 0, 6) / 6


@hardsigmoid.derivative(flat="input")
def _(x):
    return where((x > -3) & (x < 3), 1 / 6, 0)


@pointwise(result="same", method=False, inplace=True, examples=[(0.0, 0.0), (4.0, 4.0), (1.0, 2 / 3)], onnx="HardSwish")
def hardswish(x):
    """x * hardsigmoid(x)."""
    return x * clamp(x + 3, 0, 6) / 6


@hardswish.derivative
def _(x):
    return where(x <= -3, 0, where(x < 3, x / 3 + 0.5, 1))


@pointwise(result="same", examples=[(0.3, 0.0), (0.7, 0.7)], inplace=False, exact="out")
def hardshrink(x, lambd=0.5):
    """x, but 0 within `lambd` of zero."""
    return where((x >= -lambd) & (x <= lambd), 0, x)


@hardshrink.derivative(flat="input")
def _(x, lambd):
    return where((x >= -lambd) & (x <= lambd), 0, 1)


@pointwise(result="same", method=False, examples=[(0.3, 0.0), (1.5, 1.0), (-1.5, -1.0)])
def softshrink(x, lambd=0.5):
    """x moved towards zero by `lambd`, and 0 within it."""
    return where(x > lambd, x - lambd, where(x < -lambd, x + lambd, x * 0))


@softshrink.derivative(flat="input")
def _(x, lambd):
    return where((x >= -lambd) & (x <= lambd), 0, 1)


@pointwise(types="float complex", method=False, examples=[(0.0, 0.0), (1.0, 1 - math.tanh(1))])
def tanhshrink(x):
    """x - tanh(x)."""
    return x - p.tanh(x)


@tanhshrink.derivative
def _(x):
    t = tanh(x)
    return t * t


@pointwise(types="real", method=False, inplace=True, examples=[(1.0, 0.5, 9.0, 1.0), (0.5, 0.5, 9.0, 9.0)])
def threshold(x, threshold: Scalar, value: Scalar):
    """x where it is above `threshold`, else `value`."""
    return where(x <= threshold, value, x)


@threshold.derivative(flat="input")
def _(x, threshold):
    return where(x <= threshold, 0, 1)


@pointwise(method=False, examples=[(1.0, 0.5), (-3.0, -0.75)], onnx="Softsign")
def softsign(x):
    """x / (1 + |x|)."""
    return x / (1 + p.absolute(x))


@softsign.derivative
def _(x):
    scale = 1 + abs(x)
    return 1 / (scale * scale)


@pointwise(node="LogSigmoidBackward0", result="same", method=False, examples=[(0.0, -math.log(2)), (-800.0, -800.0)])
def logsigmoid(x):
    """log(sigmoid(x)), without overflow on the way."""
    return where(x < 0, x, p.in_type_of(0, x)) - p.log1p(p.exp(-p.absolute(x)))


@logsigmoid.derivative
def _(x):
    return sigmoid(-x)
