"""Windows with PyTorch's `torch.signal.windows` signatures: M places, symmetric unless `sym` is False."""

import math

import cresset

__all__ = [
    "bartlett",
    "blackman",
    "cosine",
    "exponential",
    "gaussian",
    "general_cosine",
    "general_hamming",
    "hamming",
    "hann",
    "kaiser",
    "nuttall",
]


def _window(who, formula, M, sym, dtype, layout, device, requires_grad):
    """`formula(places, last place)` over M places; `last` belongs to the symmetric window they are part of."""
    if M < 0:
        raise ValueError(f"{who} requires non-negative window length, got M={M}")
    dtype = cresset.get_default_dtype() if dtype is None else dtype
    if layout not in (None, cresset.strided):
        raise ValueError(f"{who} is implemented for strided tensors only, got: {layout}")
    if dtype not in (cresset.float32, cresset.float64):
        raise ValueError(f"{who} expects float32 or float64 dtypes, got: {dtype}")
    if M <= 1:
        return cresset.ones(M, dtype=dtype, device=device, requires_grad=requires_grad)
    place = cresset.arange(M, dtype=dtype, device=device, requires_grad=requires_grad)
    return formula(place, M - 1 if sym else M)


def bartlett(M, *, sym=True, dtype=None, layout=None, device=None, requires_grad=False):
    """A triangle: from 0 up to 1 and down again.

    >>> cresset.signal.windows.bartlett(5)
    tensor([0.0000, 0.5000, 1.0000, 0.5000, 0.0000])
    """

    def formula(place, last):
        return 1 - (place * (2 / last) - 1).abs()

    return _window("bartlett", formula, M, sym, dtype, layout, device, requires_grad)


def cosine(M, *, sym=True, dtype=None, layout=None, device=None, requires_grad=False):
    """Half a wave of the sine, taken in the middle of each place.

    >>> cresset.signal.windows.cosine(3)
    tensor([0.5000, 1.0000, 0.5000])
    """

    def formula(place, last):
        return ((place + 0.5) * (math.pi / (last + 1))).sin()

    return _window("cosine", formula, M, sym, dtype, layout, device, requires_grad)


def exponential(M, *, center=None, tau=1.0, sym=True, dtype=None, layout=None, device=None, requires_grad=False):
    """exp(-|n - center| / tau); the center is the middle unless given, which a symmetric window does not allow.

    >>> cresset.signal.windows.exponential(3)
    tensor([0.3679, 1.0000, 0.3679])
    """
    if tau <= 0:
        raise ValueError(f"exponential: Tau must be positive, got: {tau} instead.")
    if sym and center is not None:
        raise ValueError("exponential: Center must be None for symmetric windows")

    def formula(place, last):
        middle = last / 2 if center is None else center
        return ((place - middle).abs() * (-1 / tau)).exp()

    return _window("exponential", formula, M, sym, dtype, layout, device, requires_grad)


def gaussian(M, *, std=1.0, sym=True, dtype=None, layout=None, device=None, requires_grad=False):
    """exp(-(n - middle)² / 2 std²).

    >>> cresset.signal.windows.gaussian(3)
    tensor([0.6065, 1.0000, 0.6065])
    """
    if std <= 0:
        raise ValueError(f"gaussian: Standard deviation must be positive, got: {std} instead.")

    def formula(place, last):
        distance = (place - last / 2) * (1 / (std * math.sqrt(2)))
        return (-(distance * distance)).exp()

    return _window("gaussian", formula, M, sym, dtype, layout, device, requires_grad)


def kaiser(M, *, beta=12.0, sym=True, dtype=None, layout=None, device=None, requires_grad=False):
    """I₀(beta √(1 - x²)) / I₀(beta), where x runs from -1 to 1 over the window.

    >>> cresset.signal.windows.kaiser(3, beta=3.0)
    tensor([0.2049, 1.0000, 0.2049])
    """
    if beta < 0:
        raise ValueError(f"kaiser: beta must be non-negative, got: {beta} instead.")

    def formula(place, last):
        x = place * (2 / last) - 1
        return ((1 - x * x).clamp_min(0).sqrt() * beta).i0() / x.new_full((), beta).i0()

    return _window("kaiser", formula, M, sym, dtype, layout, device, requires_grad)


def general_cosine(M, *, a, sym=True, dtype=None, layout=None, device=None, requires_grad=False):
    """a₀ - a₁ cos(2πn/N) + a₂ cos(4πn/N) - …

    >>> cresset.signal.windows.general_cosine(3, a=[0.5, 0.5])
    tensor([0., 1., 0.])
    """
    return _cosines("general_cosine", M, a, sym, dtype, layout, device, requires_grad)


def _cosines(who, M, a, sym, dtype, layout, device, requires_grad):
    if not isinstance(a, (tuple, list)):
        raise TypeError(f"{who}: Coefficients must be a list/tuple, not {type(a).__name__}")
    if not a:
        raise ValueError(f"{who}: Coefficients cannot be empty")

    def formula(place, last):
        turn = place * (2 * math.pi / last)
        return sum(((turn * k).cos() * ((-1) ** k * factor) for k, factor in enumerate(a)), start=0)

    return _window(who, formula, M, sym, dtype, layout, device, requires_grad)


def general_hamming(M, *, alpha=0.54, sym=True, dtype=None, layout=None, device=None, requires_grad=False):
    """alpha - (1 - alpha) cos(2πn/N).

    >>> cresset.signal.windows.general_hamming(3, alpha=0.5)
    tensor([0., 1., 0.])
    """
    return _cosines("general_hamming", M, [alpha, 1.0 - alpha], sym, dtype, layout, device, requires_grad)


def hamming(M, *, sym=True, dtype=None, layout=None, device=None, requires_grad=False):
    """0.54 - 0.46 cos(2πn/N).

    >>> cresset.signal.windows.hamming(3)
    tensor([0.0800, 1.0000, 0.0800])
    """
    return _cosines("hamming", M, [0.54, 0.46], sym, dtype, layout, device, requires_grad)


def hann(M, *, sym=True, dtype=None, layout=None, device=None, requires_grad=False):
    """0.5 - 0.5 cos(2πn/N).

    >>> cresset.signal.windows.hann(3)
    tensor([0., 1., 0.])
    """
    return _cosines("hann", M, [0.5, 0.5], sym, dtype, layout, device, requires_grad)


def blackman(M, *, sym=True, dtype=None, layout=None, device=None, requires_grad=False):
    """0.42 - 0.5 cos(2πn/N) + 0.08 cos(4πn/N).

    >>> cresset.signal.windows.blackman(5)[1:4]
    tensor([0.3400, 1.0000, 0.3400])
    """
    return _cosines("blackman", M, [0.42, 0.5, 0.08], sym, dtype, layout, device, requires_grad)


def nuttall(M, *, sym=True, dtype=None, layout=None, device=None, requires_grad=False):
    """Nuttall's minimum four-term window.

    >>> cresset.signal.windows.nuttall(3)
    tensor([3.6280e-04, 1.0000e+00, 3.6280e-04])
    """
    a = [0.3635819, 0.4891775, 0.1365995, 0.0106411]
    return _cosines("nuttall", M, a, sym, dtype, layout, device, requires_grad)
