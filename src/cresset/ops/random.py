"""Random tensors, random fills, and dropout: documentation, derivatives, and functions made of others.

On the CPU the numbers are PyTorch's for the same seed. `generator=` draws from another stream than the default one.
"""

import cresset

from .._native import name_node
from .registry import batch, function, onnx, operator, placement

# ---------------------------------------------------------------- new tensors

operator("rand", """Uniform random numbers from 0 up to but without 1.

    >>> _ = cresset.manual_seed(0)
    >>> cresset.rand(2)
    tensor([0.4963, 0.7682])
    """)  # fmt: skip
operator("randn", """Random numbers from the normal distribution of mean 0 and variance 1.

    >>> _ = cresset.manual_seed(0)
    >>> cresset.randn(2)
    tensor([ 1.5410, -0.2934])
    """)  # fmt: skip
operator("rand_like", """Uniform random numbers from [0, 1) in the shape of `input`.""")
operator("randn_like", """Standard normal random numbers in the shape of `input`.""")
operator("randint", """Random integers from `low` (0) up to but without `high`; int64 if no dtype is given.

    >>> _ = cresset.manual_seed(0)
    >>> cresset.randint(10, (4,))
    tensor([4, 9, 3, 0])
    """)  # fmt: skip
operator(
    "randint_like", """Random integers from `low` (0) up to but without `high`, in the shape and dtype of `input`."""
)
operator("randperm", """The numbers 0 to n - 1 in random order; int64 if no dtype is given.

    >>> _ = cresset.manual_seed(0)
    >>> cresset.randperm(4)
    tensor([0, 1, 3, 2])
    """)  # fmt: skip

# ---------------------------------------------------------------- samples that have parameters

operator("normal", """Normal random numbers; mean and standard deviation are tensors that broadcast, or numbers.

    >>> cresset.normal(10.0, 0.0, (2,))
    tensor([10., 10.])
    """)  # fmt: skip


@operator("normal.mean").derivative
def _(grad, mean_info):
    yield lambda: grad.new_zeros(mean_info.shape)


@operator("normal.std").derivative
def _(grad, std_info):
    yield lambda: grad.new_zeros(std_info.shape)


@operator("normal.tensors").derivative
def _(grad, mean_info, std_info):
    yield lambda: grad.new_zeros(mean_info.shape)
    yield lambda: grad.new_zeros(std_info.shape)


def _no_gradient(grad):
    yield lambda: cresset.zeros_like(grad)


operator("bernoulli", """Zeros and ones: one with the probability that `input` (or the number `p`) says.

    >>> cresset.bernoulli(cresset.tensor([0.0, 1.0]))
    tensor([0., 1.])
    """, casts_out=True)  # fmt: skip
operator("bernoulli.").derivative(_no_gradient)
operator("bernoulli.p").derivative(_no_gradient)
operator("poisson", """A sample of the Poisson distribution for each rate in `input`.

    >>> cresset.poisson(cresset.tensor([0.0, 0.0]))
    tensor([0., 0.])
    """).derivative(_no_gradient)  # fmt: skip


@operator("binomial", """How many of `count` trials succeed, each with probability `prob`.

    >>> cresset.binomial(cresset.tensor([3.0, 4.0]), cresset.tensor([0.0, 1.0]))
    tensor([0., 4.])
    """).derivative  # fmt: skip
def _(grad, count_info, prob_info):
    yield lambda: grad.new_zeros(count_info.shape)
    yield lambda: grad.new_zeros(prob_info.shape)


operator("multinomial", """Indices drawn from each row of weights, which need not add up to one.

    >>> cresset.multinomial(cresset.tensor([0.0, 1.0, 0.0]), 1)
    tensor([1])
    """)  # fmt: skip


@operator("_standard_gamma", """A sample of the gamma distribution with rate 1 for each shape in `input`.""").derivative
def _(grad, input, output):
    yield lambda: grad * cresset._standard_gamma_grad(input, output)


operator("_standard_gamma_grad", """How a gamma sample `output` moves with its shape parameter `input`.""")


@operator("_sample_dirichlet", """A sample of the Dirichlet distribution for each row of concentrations.""").derivative
def _(grad, input, output):
    def gradient():
        total = input.sum(-1, True).expand_as(input)
        return cresset._dirichlet_grad(output, input, total) * (grad - (output * grad).sum(-1, True))

    yield gradient


operator(
    "_dirichlet_grad", """How a component `x` of a Dirichlet sample moves with its concentration, divided by 1 - x."""
)

# ---------------------------------------------------------------- in place

_FILLS = {
    "uniform_": "Fill with uniform random numbers between `from` and `to`, in place.",
    "normal_": "Fill with normal random numbers of the given mean and standard deviation, in place.",
    "log_normal_": "Fill with numbers whose logarithms have the given mean and standard deviation, in place.",
    "cauchy_": "Fill with random numbers from the Cauchy distribution of the given median and half-width, in place.",
    "exponential_": "Fill with waiting times of the rate `lambd`, in place.",
    "geometric_": "Fill with numbers of trials up to the first success of probability `p`, in place.",
    "bernoulli_.number": "Fill with ones of probability `p`, a number or a tensor, and zeros, in place.",
    "bernoulli_.tensor": None,
    "random_": "Fill with random integers from `from` (0) up to but without `to` (all the dtype holds), in place.",
    "random_.to": None,
    "random_.range": None,
}
for _name, _doc in _FILLS.items():
    # What is overwritten has no influence on the result.
    operator(_name, _doc).derivative(_no_gradient)

# ---------------------------------------------------------------- dropout


@operator(
    "_fused_dropout",
    """`input` where a coin of probability `p` says so, divided by `p`, and zero elsewhere; with the coins.""",
).derivative
def _(grads, mask, p):
    grad = grads[0]
    yield lambda: cresset.native_dropout_backward(grad, mask, 1 / p)


@operator(
    "native_dropout",
    """Zero each element with probability `p`, scale the rest by 1 / (1 - p); also gives the mask of what was kept.""",
).derivative
def _(grads, mask, p, train):
    grad = grads[0]
    scale = 1.0 if train is False else 0.0 if p == 1 else 1 / (1 - p)
    yield lambda: cresset.native_dropout_backward(grad, mask, scale)


@operator(
    "native_dropout_backward", """`grad_output` times `scale` where the mask is true, zero elsewhere."""
).derivative
def _(grad, mask, scale):
    yield lambda: cresset.native_dropout_backward(grad, mask, scale)


def _check_probability(p):
    if not 0 <= p <= 1:
        raise RuntimeError(f"dropout probability has to be between 0 and 1, but got {p}")


def _drops(input, p, train):
    _check_probability(p)
    return train and p > 0 and input.numel() > 0


@function
def dropout(input, p, train):
    """While training, zero each element with probability `p` and divide the rest by 1 - p; otherwise `input` itself.

    >>> cresset.dropout(cresset.ones(3), 1.0, True)
    tensor([0., 0., 0.])
    """
    if not _drops(input, p, train):
        return input
    if p == 1:
        return input * input.new_zeros(())
    return cresset._fused_dropout(input, 1 - p)[0]


@function
def dropout_(input, p, train):
    """In-place form of `dropout`."""
    if not _drops(input, p, train):
        return input
    return input.mul_(input.new_zeros(())) if p == 1 else input.mul_(_noise(cresset.empty_like(input), p).div_(1 - p))


def _noise(memory, p):
    """Ones of probability 1 - p."""
    return memory.bernoulli_(1 - p)


def _channels(input):
    """Memory for one number a channel."""
    if input.ndim < 2:
        raise RuntimeError(
            f"Feature dropout requires at least 2 dimensions in the input, got shape {tuple(input.shape)}"
        )
    return input.new_empty([*input.shape[:2], *[1] * (input.ndim - 2)])


@function
def feature_dropout(input, p, train):
    """`dropout` of whole channels (dimension 1).

    >>> cresset.feature_dropout(cresset.ones(1, 2), 0.0, True)
    tensor([[1., 1.]])
    """
    if not _drops(input, p, train):
        return input
    return input * (input.new_zeros(()) if p == 1 else _noise(_channels(input), p).div_(1 - p))


@function
def feature_dropout_(input, p, train):
    """In-place form of `feature_dropout`."""
    if not _drops(input, p, train):
        return input
    return input.mul_(input.new_zeros(())) if p == 1 else input.mul_(_noise(_channels(input), p).div_(1 - p))


def _alpha_noise(noise, p):
    """Factor and shift that drop to selu's lower end and keep mean 0 and variance 1."""
    end = 1.7580993408473766
    scale = ((end * end * p + 1) * (1 - p)) ** -0.5
    shift = (noise - 1).mul_(end * scale).add_(end * scale * p)
    return noise.mul_(scale), shift


def _dropped_to_the_lower_end(input, noise, p):
    factor, shift = _alpha_noise(noise, p)
    return input * factor + shift


@function
def alpha_dropout(input, p, train):
    """Dropout for selu: what is dropped goes to selu's lower end, and mean and variance stay."""
    if not _drops(input, p, train):
        return input
    return (
        input * input.new_zeros(())
        if p == 1
        else _dropped_to_the_lower_end(input, _noise(cresset.empty_like(input), p), p)
    )


@function
def feature_alpha_dropout(input, p, train):
    """`alpha_dropout` of whole channels (dimension 1)."""
    if not _drops(input, p, train):
        return input
    return input * input.new_zeros(()) if p == 1 else _dropped_to_the_lower_end(input, _noise(_channels(input), p), p)


def _into(input, memory, p):
    factor, shift = _alpha_noise(_noise(memory, p), p)
    return input.mul_(factor).add_(shift)


@function
def alpha_dropout_(input, p, train):
    """In-place form of `alpha_dropout`."""
    if not _drops(input, p, train):
        return input
    return input.mul_(input.new_zeros(())) if p == 1 else _into(input, cresset.empty_like(input), p)


@function
def feature_alpha_dropout_(input, p, train):
    """In-place form of `feature_alpha_dropout`."""
    if not _drops(input, p, train):
        return input
    return input.mul_(input.new_zeros(())) if p == 1 else _into(input, _channels(input), p)


@function
def rrelu(input, lower=1 / 8, upper=1 / 3, training=False, generator=None):
    """`leaky_relu` whose slope is drawn between `lower` and `upper` for each element; their middle outside of training.

    >>> cresset.rrelu(cresset.tensor([-2.0, 3.0]), 0.5, 0.5, True)
    tensor([-1.,  3.])
    """
    _check_slopes("rrelu", lower, upper)
    if not training:
        return name_node(cresset.leaky_relu(input, (lower + upper) / 2), "RreluWithNoiseBackward0")
    return name_node(input * _slopes(input, lower, upper, generator), "RreluWithNoiseBackward0")


@function
def rrelu_(input, lower=1 / 8, upper=1 / 3, training=False, generator=None):
    """In-place form of `rrelu`."""
    _check_slopes("rrelu_", lower, upper)
    if not training:
        return name_node(cresset.leaky_relu_(input, (lower + upper) / 2), "RreluWithNoiseBackward1")
    return name_node(input.mul_(_slopes(input, lower, upper, generator)), "RreluWithNoiseBackward1")


def _check_slopes(name, lower, upper):
    if lower > upper:
        raise RuntimeError(
            f"{name}: Lower bound should be less than or equal to the upper bound, got {lower} and {upper}"
        )


def _slopes(input, lower, upper, generator):
    """One, or a random slope for what is not positive: only there a number is drawn."""
    with cresset.no_grad():
        drawn_for = input <= 0
        drawn = cresset.empty(int(drawn_for.sum()), dtype=cresset.float64, device=input.device)
        drawn.uniform_(lower, upper, generator=generator)
        return cresset.ones_like(input).masked_scatter_(drawn_for, drawn.to(input.dtype))


@batch("native_dropout_backward", "_standard_gamma_grad")
def _(call):
    return call.run(call.full(0), call.full(1), *call.args[2:])


# --- as ONNX ---


def _random_as_onnx(kind, **attributes):
    def rule(g):
        shape = g.result.shape
        dtype = 1 if g.result.dtype is not cresset.float64 else 11
        if any(g.is_size(s) for s in shape):
            found = g.op(
                kind + "Like", g.op("Expand", g.number(0.0, cresset.float32), g.sizes(shape)), dtype=dtype, **attributes
            )
        else:
            found = g.op(kind, shape=list(shape), dtype=dtype, **attributes)
        return g.cast(found, cresset.float64 if dtype == 11 else cresset.float32, g.result.dtype)

    return rule


onnx("rand", "rand_like")(_random_as_onnx("RandomUniform", low=0.0, high=1.0))


onnx("randn", "randn_like")(_random_as_onnx("RandomNormal", mean=0.0, scale=1.0))


@onnx("_fused_dropout")
def _(g, input, p):
    """`p` is the probability to stay. The file drops while it runs, too: that is what a model in training mode does."""
    return g.op("Dropout", input, g.number(1 - p, cresset.float32), g.number(True, cresset.bool), outputs=2)


# How they lie on several processes: words of distributed/tensor/words.py.
placement(
    "rand_like",
    "randn_like",
    "randint_like",
    "uniform_",
    "normal_",
    "random_",
    "exponential_",
    "log_normal_",
    "cauchy_",
    "geometric_",
    "bernoulli_",
)("drawn")
placement("native_dropout", "_fused_dropout")("thinned")
placement("bernoulli", "normal", "multinomial", "poisson", "binomial", "_standard_gamma", "_sample_dirichlet")("shared")
