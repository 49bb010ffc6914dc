"""Window functions: weights that fade a stretch of signal in and out.

Each is a formula over the places 0, 1, …, N - 1 of a symmetric window. A periodic window of N places is the symmetric
one of N + 1 without its last. `torch.signal.windows` (in `cresset/signal/windows.py`) has more of them.
"""

import math

import cresset
from cresset import _native

from .check import only_strided
from .dimensions import is_integer
from .registry import function


def _window(who, formula, length, periodic, dtype, layout, device, pin_memory, requires_grad):
    """`formula(places, last place)` over the window's places."""
    only_strided(who, layout)
    if not is_integer(length):
        raise TypeError(f"{who}(): argument 'window_length' must be int, not {type(length).__name__}")
    length = int(length)
    if length < 0:
        raise RuntimeError(f"{who}: requires non-negative window_length, got window_length={length}")
    dtype = cresset.get_default_dtype() if dtype is None else _native.as_dtype(dtype)
    if not (dtype.is_floating_point or dtype.is_complex):
        raise RuntimeError(f"{who}: expects floating point dtypes, got: {dtype}")
    if length <= 1:
        return cresset.ones(length, dtype=dtype, device=device, pin_memory=pin_memory, requires_grad=requires_grad)
    whole = length + 1 if periodic else length
    exact = dtype if dtype in (cresset.float32, cresset.float64) else cresset.float32
    window = formula(cresset.arange(whole, dtype=exact, device=device), whole - 1)
    window = window[:length].to(dtype).contiguous()
    return (window.pin_memory() if pin_memory else window).requires_grad_(bool(requires_grad))


@function(out="cast")
def bartlett_window(
    window_length, periodic=True, *, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False
):
    """A triangle: from 0 up to 1 and down again.

    >>> cresset.bartlett_window(4)
    tensor([0.0000, 0.5000, 1.0000, 0.5000])
    """

    def formula(place, last):
        rising = place * (2 / last)
        return cresset.where(place <= last // 2, rising, 2 - rising)

    return _window(
        "bartlett_window", formula, window_length, periodic, dtype, layout, device, pin_memory, requires_grad
    )


@function(out="cast")
def blackman_window(
    window_length, periodic=True, *, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False
):
    """0.42 - 0.5 cos(2πn/N) + 0.08 cos(4πn/N).

    >>> cresset.blackman_window(4)[1:]
    tensor([0.3400, 1.0000, 0.3400])
    """

    def formula(place, last):
        half_turn = place * (math.pi / last)
        return (half_turn * 4).cos() * 0.08 - (half_turn * 2).cos() * 0.5 + 0.42

    return _window(
        "blackman_window", formula, window_length, periodic, dtype, layout, device, pin_memory, requires_grad
    )


@function(out="cast")
def hamming_window(
    window_length,
    periodic=True,
    alpha=0.54,
    beta=0.46,
    *,
    dtype=None,
    layout=None,
    device=None,
    pin_memory=False,
    requires_grad=False,
):
    """alpha - beta cos(2πn/N).

    >>> cresset.hamming_window(4)
    tensor([0.0800, 0.5400, 1.0000, 0.5400])
    """

    def formula(place, last):
        return (place * (2 * math.pi / last)).cos() * -beta + alpha

    return _window("hamming_window", formula, window_length, periodic, dtype, layout, device, pin_memory, requires_grad)


@function(out="cast")
def hann_window(
    window_length, periodic=True, *, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False
):
    """0.5 - 0.5 cos(2πn/N).

    >>> cresset.hann_window(4)
    tensor([0.0000, 0.5000, 1.0000, 0.5000])
    """

    def formula(place, last):
        return (place * (2 * math.pi / last)).cos() * -0.5 + 0.5

    return _window("hann_window", formula, window_length, periodic, dtype, layout, device, pin_memory, requires_grad)


@function(out="cast")
def kaiser_window(
    window_length,
    periodic=True,
    beta=12.0,
    *,
    dtype=None,
    layout=None,
    device=None,
    pin_memory=False,
    requires_grad=False,
):
    """I₀(beta √(1 - x²)) / I₀(beta), where x runs from -1 to 1 over the window.

    >>> cresset.kaiser_window(4, beta=3.0)
    tensor([0.2049, 0.7269, 1.0000, 0.7269])
    """

    beta = float(beta)

    def formula(place, last):
        x = place * (2 / last) - 1
        return ((1 - x * x).clamp_min(0).sqrt() * beta).i0() / x.new_full((), beta).i0()

    return _window("kaiser_window", formula, window_length, periodic, dtype, layout, device, pin_memory, requires_grad)
