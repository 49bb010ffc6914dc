"""Sizes that are free in a recording.

Note [Free dimensions]
A program sees sizes as plain integers, so a recorded call does not say where its integers come from. The model is
recorded several times with other sizes of the free dimensions. An integer that is the same in all recordings is a
constant. One that differs is a `Size`: the numbers it was, one a recording. Arithmetic on sizes is arithmetic on those
numbers. When a size has to be written down, `solve` looks for a formula of known dimensions (those of the inputs, or of
a tensor at hand) that gives these numbers in every recording. There are more recordings than a formula has unknowns, so
that a formula that fits by chance is found out.
"""

import itertools
import math

RECORDINGS = 4
# How far apart the recorded sizes are: all remainders of 2, 3 and 4 are among them; and closer by.
WIDE, NEAR = (0, 1, 6, 11), (0, 1, 3, 6)


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
    """A float that depends on free dimensions: `samples` has its value in each recording."""

    __slots__ = ("samples",)

    def __init__(self, samples):
        self.samples = tuple(samples)

    @staticmethod
    def of(samples):
        """The number if all recordings agree on it, else a Fraction."""
        samples = tuple(samples)
        return samples[0] if all(s == samples[0] or s != s for s in samples) else Fraction(samples)

    def solve(self, known):
        """(above, below, power): (above / below) ** power, where both are sizes or whole numbers. None if there is no
        such form.

        Args:
            known: samples of sizes that may be above or below, with 1 subtracted or not.
        """
        for power in (1.0, 0.5):
            if all(s > 0 for s in self.samples):
                values = [s ** (1 / power) for s in self.samples]
                for above, below in ((values, None), (None, [1 / v for v in values])):
                    whole = [round(v) for v in above or below]
                    if all(
                        w > 0 and math.isclose(w, v, rel_tol=1e-12) for w, v in zip(whole, above or below, strict=True)
                    ):
                        return (Size(whole), 1, power) if above else (1, Size(whole), power)
        sizes = [[s + d for s in samples] for samples in known for d in (0, -1)]
        for below in sizes:
            products = [s * b for s, b in zip(self.samples, below, strict=True)]
            whole = [round(v) for v in products]
            if not all(math.isclose(w, v, rel_tol=1e-9, abs_tol=1e-9) for w, v in zip(whole, products, strict=True)):
                continue
            above = Size.of(whole)
            if isinstance(above, int) or whole in sizes:
                return above, Size(below), 1.0
        return None


class Formula:
    """(factor * product of the dimensions + before) // divisor % modulus + after: what a Size is. No modulus is 0."""

    def __init__(self, dimensions, factor=1, before=0, divisor=1, after=0, modulus=0):
        self.dimensions, self.factor, self.before = dimensions, factor, before
        self.divisor, self.after, self.modulus = divisor, after, modulus


def solve(size, dimensions, *, rounding=False):
    """A Formula of some of `dimensions`, a list of (samples, where it is read), that gives `size`; None if there is
    none.

    Tried are a dimension, a multiple, a product of up to three, with a constant added; with `rounding` also quotients
    and remainders.
    """
    wanted = size.samples
    for samples, source in dimensions:
        if samples == wanted:
            return Formula([source])
    found = []
    for count in (1, 2, 3):
        for group in itertools.combinations(dimensions, count):
            product = [math.prod(values) for values in zip(*(samples for samples, _ in group), strict=True)]
            linear = _line(product, wanted)
            if linear is not None and linear[0] != 0:
                terms = 2 * count + 2 * (linear[1] != 0) + (linear[0] != 1)
                found.append((terms, len(found), Formula([source for _, source in group], *linear)))
    if found:
        return min(found)[2]  # the plainest
    return _quotient(wanted, dimensions) or _remainder(wanted, dimensions) if rounding else None


def _quotient(wanted, dimensions):
    """A rounded quotient of one dimension, plus a constant, or of a multiple of it."""
    found = {}
    for samples, source in dimensions:
        for divisor in range(2, 65):
            for before in (0, divisor - 1, *range(1, divisor - 1)):
                rests = {w - (s + before) // divisor for s, w in zip(samples, wanted, strict=True)}
                if len(rests) == 1 and samples not in found:
                    found[samples] = Formula([source], before=before, divisor=divisor, after=rests.pop())
        for divisor, factor in itertools.product(range(2, 11), range(2, 11)):
            for before in (0, divisor - 1):
                if samples not in found and all(
                    w == (factor * s + before) // divisor for s, w in zip(samples, wanted, strict=True)
                ):
                    found[samples] = Formula([source], factor, before, divisor)
    return _only(found)


def _remainder(wanted, dimensions):
    """A dimension, or the negative of one, modulo a constant: how much is missing to a multiple."""
    found = {}
    for samples, source in dimensions:
        for modulus, sign in itertools.product(range(max(wanted) + 1, 65), (1, -1)):
            if min(wanted) >= 0 and all(w == sign * s % modulus for s, w in zip(samples, wanted, strict=True)):
                found[samples, modulus] = Formula([source], sign, modulus=modulus)
    return _only(found)


def _only(found):
    """The only formula; where there are several, each would be a guess."""
    return next(iter(found.values())) if len(found) == 1 else None


def shifted(size, dimensions):
    """A dimension with a constant added; None if there is none."""
    exact = [d for d in dimensions if d[0] == size.samples]
    for samples, source in exact or dimensions:
        if len({w - s for s, w in zip(samples, size.samples, strict=True)}) == 1:
            return Formula([source], before=size.samples[0] - samples[0])
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

    A size of one broadcasts, and so is never recorded. Sizes are odd and even, no two symbols are equal in a recording,
    and none is a linear function of another. Models have limits (a longest sequence, a picture that is halved five
    times), so there are ways close by, smaller, in large steps, and with symbols tied together that have the same size
    in the example.
    """
    plans = []
    up, down, halved, large = (
        lambda size: 1,
        lambda size: -1 if size > 7 else 1,
        lambda size: size & -size,
        lambda size: 32,
    )
    for step, steps in ((up, WIDE), (up, NEAR), (down, WIDE), (down, NEAR), (halved, NEAR), (large, NEAR)):
        for tied in (False, True):
            chosen = {}
            for symbol in symbols:
                size = max(example[symbol], 2)
                same = next((s for s in chosen if tied and example[s] == example[symbol]), None)
                chosen[symbol] = (
                    chosen[same] if same else _apart(size, step(size), steps, [c for c in chosen.values() if c])
                )
            if None not in chosen.values() and chosen not in plans:
                plans.append(chosen)
    return plans


def _apart(size, step, steps, others):
    """RECORDINGS sizes near `size`, in steps, that are no linear function of the others, and differ from them in every
    recording.
    """
    for shift in range(0, 40, 7):
        for order in itertools.permutations(steps):
            samples = [size + step * (d + shift) for d in order]
            apart = all(a != b for other in others for a, b in zip(samples, other, strict=True))
            if min(samples) >= 2 and apart and not any(_collinear(other, samples) for other in others):
                return tuple(samples)
    return None


def _collinear(xs, ys):
    (x0, x1), (y0, y1) = xs[:2], ys[:2]
    return all((x1 - x0) * (y - y0) == (y1 - y0) * (x - x0) for x, y in zip(xs, ys, strict=True))
