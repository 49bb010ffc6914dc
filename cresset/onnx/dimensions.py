"""Sizes that are free in the exported file.

Note [Free dimensions]
A program sees sizes as plain integers, so a recorded call does not say where its integers come from. The model is recorded several
times with other sizes of the free dimensions. An integer that is the same in all recordings is a constant. One that differs is a
`Size`: the numbers it was, one a recording. Arithmetic on sizes is arithmetic on those numbers. When a size has to be written into
the file, `solve` looks for a formula of known dimensions (those of the inputs, or of a tensor at hand) that gives these numbers in
every recording. There are more recordings than a formula has unknowns, so that a formula that fits by chance is found out.
"""

import itertools
import math

RECORDINGS = 4
STEPS = (0, 1, 3, 6)
ROTATED = [STEPS[k:] + STEPS[:k] for k in range(RECORDINGS)]  # no row is a linear function of another


class Size:
    """An integer that depends on free dimensions: `samples` has its value in each recording."""

    __slots__ = ("samples",)

    def __init__(self, samples):
        self.samples = tuple(samples)

    @staticmethod
    def of(samples):
        """The integer if all recordings agree on it, else a Size."""
        samples = tuple(samples)
        return samples[0] if all(s == samples[0] for s in samples) else Size(samples)

    def _with(self, other, function):
        others = other.samples if isinstance(other, Size) else (other,) * len(self.samples)
        return Size.of(map(function, self.samples, others))

    def __add__(self, other):
        return self._with(other, lambda a, b: a + b)

    def __sub__(self, other):
        return self._with(other, lambda a, b: a - b)

    def __rsub__(self, other):
        return self._with(other, lambda a, b: b - a)

    def __mul__(self, other):
        return self._with(other, lambda a, b: a * b)

    def __floordiv__(self, other):
        return self._with(other, lambda a, b: a // b)

    def __neg__(self):
        return Size(-s for s in self.samples)

    __radd__, __rmul__ = __add__, __mul__

    def __eq__(self, other):
        return isinstance(other, Size) and self.samples == other.samples

    def __hash__(self):
        return hash(self.samples)

    def __repr__(self):
        return f"Size{self.samples}"


class Fraction:
    """A float that depends on free dimensions: `size` to the power of 1, -1, 1/2 or -1/2."""

    __slots__ = ("power", "size")

    def __init__(self, size, power):
        self.size, self.power = size, power

    @staticmethod
    def of(samples):
        """The number if all recordings agree on it, a Fraction if it is a power of a whole number, else None."""
        samples = tuple(samples)
        if all(s == samples[0] or s != s for s in samples):
            return samples[0]
        for power in (1.0, -1.0, 0.5, -0.5):
            if all(s > 0 for s in samples):
                bases = [round(s ** (1 / power)) for s in samples]
                if all(b > 0 and math.isclose(b**power, s, rel_tol=1e-12) for b, s in zip(bases, samples, strict=True)):
                    return Fraction(Size(bases), power)
        return None


class Formula:
    """(factor * product of the dimensions + before) // divisor + after: what a Size is in the file."""

    def __init__(self, dimensions, factor=1, before=0, divisor=1, after=0):
        self.dimensions, self.factor, self.before, self.divisor, self.after = dimensions, factor, before, divisor, after


def solve(size, dimensions, *, rounding=False):
    """A Formula of some of `dimensions`, a list of (samples, where it is read), that gives `size`; None if there is none.

    Tried are a dimension, a multiple, a product of up to three, with a constant added; with `rounding` also quotients.
    """
    wanted = size.samples
    for samples, source in dimensions:
        if samples == wanted:
            return Formula([source])
    for count in (1, 2, 3):
        for group in itertools.combinations(dimensions, count):
            product = [math.prod(values) for values in zip(*(samples for samples, _ in group), strict=True)]
            linear = _line(product, wanted)
            if linear is not None and linear[0] != 0:
                return Formula([source for _, source in group], linear[0], linear[1])
    if rounding:
        for samples, source in dimensions:
            for divisor in range(2, 65):
                for before in (0, divisor - 1, *range(1, divisor - 1)):
                    rests = {w - (s + before) // divisor for s, w in zip(samples, wanted, strict=True)}
                    if len(rests) == 1:
                        return Formula([source], before=before, divisor=divisor, after=rests.pop())
    return None


def _line(xs, ys):
    """Whole a and b with a * x + b == y everywhere; None if there are none."""
    pairs = sorted(set(zip(xs, ys, strict=True)))
    if len({x for x, _ in pairs}) != len(pairs) or len(pairs) < 2:
        return None
    (x0, y0), (x1, y1) = pairs[:2]
    if (y1 - y0) % (x1 - x0):
        return None
    a = (y1 - y0) // (x1 - x0)
    b = y0 - a * x0
    return (a, b) if all(a * x + b == y for x, y in pairs) else None


def sizes_to_try(example, symbols):
    """Ways to choose a size for each symbol and recording, the best first: dicts from symbol to RECORDINGS sizes.

    Args:
        example: the size of each symbol in the example inputs.
        symbols: their order.

    A size of one broadcasts, and so is never recorded. Sizes are odd and even, no two symbols are equal in a recording, and none is a
    linear function of another. Models have limits (a longest sequence, a picture that is halved five times), so there are ways close
    by, smaller, in large steps, and with symbols tied together that have the same size in the example.
    """
    plans = []
    for step in (lambda size: 1, lambda size: -1, lambda size: size & -size, lambda size: 32):
        for tied in (False, True):
            chosen = {}
            for symbol in symbols:
                size = max(example[symbol], 2)
                same = next((s for s in chosen if tied and example[s] == example[symbol]), None)
                chosen[symbol] = chosen[same] if same else _apart(size, step(size), chosen.values())
            if None not in chosen.values() and chosen not in plans:
                plans.append(chosen)
    return plans


def _apart(size, step, others):
    """RECORDINGS sizes near `size`, in steps, that differ from the others in every recording."""
    for shift in range(0, 40, 7):
        for rotation in range(RECORDINGS):
            samples = [size + step * (d + shift) for d in ROTATED[rotation]]
            if min(samples) >= 2 and all(a != b for other in others for a, b in zip(samples, other, strict=True)):
                return tuple(samples)
    return None
