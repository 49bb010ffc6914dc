"""One number for every dimension, or a number for each."""

from collections.abc import Iterable


def _repeated(n):
    def parse(value):
        return tuple(value) if isinstance(value, Iterable) else (value,) * n

    parse.__name__ = parse.__qualname__ = ("_single", "_pair", "_triple", "_quadruple")[n - 1]
    parse.__doc__ = f"`value` itself if it is a sequence, else {n} times."
    return parse


_single, _pair, _triple, _quadruple = (_repeated(n) for n in (1, 2, 3, 4))
_of_dimensions = {1: _single, 2: _pair, 3: _triple}


def _ntuple(n, name="parse"):
    """A function that repeats a number `n` times, as in PyTorch's nn.modules.utils."""
    return _repeated(n) if n <= 4 else lambda value: tuple(value) if isinstance(value, Iterable) else (value,) * n


def _reverse_repeat_tuple(values, n):
    """`values` from the last to the first, each `n` times: the order in which `pad` wants them."""
    return tuple(value for value in reversed(values) for _ in range(n))
