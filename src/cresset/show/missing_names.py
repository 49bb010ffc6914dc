"""What a module says to a name it does not have: AttributeError, with the nearest name that is there if the two differ
by a slip of the hand.

`__getattr__ = missing_names.of(__name__)` is all that a module needs. The words are made when they are read, so that
`hasattr` costs nothing. On a tensor, Python itself adds "Did you mean" to the error it prints.
"""

import sys


class MissingName(AttributeError):
    """An AttributeError that looks for the nearest name when it is printed."""

    def __init__(self, module, name):
        super().__init__(module, name)
        self.module, self.missing = module, name

    def __str__(self):
        module = sys.modules[self.module]
        text = f"module {module.__name__!r} has no attribute {self.missing!r}"
        near = nearest(self.missing, [known for known in dir(module) if not known.startswith("_")])
        if near is not None:
            return f"{text}; did you mean {near!r}?"
        return f"{text}: it is not in cresset; docs/compatibility.md in its sources lists what differs from PyTorch"


MissingName.__name__ = MissingName.__qualname__ = "AttributeError"  # what a traceback shows
MissingName.__module__ = "builtins"


def nearest(name, known):
    """The known name that `name` was meant to be: one slip away, two in a long name. None if there is none.

    A short name is no slip for another of its length: `jit` is not meant to be `int`, nor `conv4d` `conv2d`.
    """
    slips = 2 if len(name) > 5 else 1
    best = min(known, key=lambda other: (distance(name, other, slips), other), default=None)
    if best is None or (found := distance(name, best, slips)) > slips:
        return None
    if (len(name) == len(best) and found * 4 > len(name)) or digits(name) != digits(best):
        return None
    return best


def digits(text):
    return [letter for letter in text if letter.isdigit()]


def distance(a, b, limit):
    """How many letters must be added, left out, changed or swapped with their neighbor to make `b` of `a`; `limit` + 1
    if more than `limit`.
    """
    if abs(len(a) - len(b)) > limit:
        return limit + 1
    before, last = [], list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        row = [i]
        for j, y in enumerate(b, 1):
            cost = min(last[j] + 1, row[-1] + 1, last[j - 1] + (x != y))
            if i > 1 and j > 1 and x == b[j - 2] and a[i - 2] == y:
                cost = min(cost, before[j - 2] + 1)
            row.append(cost)
        before, last = last, row
    return min(last[-1], limit + 1)


def of(module):
    """A module's `__getattr__`."""

    def __getattr__(name):
        raise MissingName(module, name)

    return __getattr__
