"""The sizes of ragged dimensions: symbols, one for each ragged structure."""

import itertools

from ..tensors.symbolic import SymInt

_numbers = itertools.count(1)


class RaggedSize(int, SymInt):
    """The size of a ragged dimension: no number, but the same for all tensors of the same offsets. As an integer it is
    -1, "what fits".
    """

    def __new__(cls, number, factor=1):
        size = super().__new__(cls, -1)
        size.number, size.factor = number, factor
        return size

    def __init__(self, *_):
        pass

    def __repr__(self):
        return f"j{self.number}" if self.factor == 1 else f"{self.factor}*j{self.number}"

    __str__ = __repr__

    def __eq__(self, other):
        return isinstance(other, RaggedSize) and (other.number, other.factor) == (self.number, self.factor)

    def __ne__(self, other):
        return not self == other

    def __hash__(self):
        return hash(("ragged", self.number, self.factor))

    def __mul__(self, other):
        return RaggedSize(self.number, self.factor * other)

    __rmul__ = __mul__

    def __deepcopy__(self, memo):
        return self

    def __reduce__(self):
        return RaggedSize, (self.number, self.factor)


def number_of(offsets):
    """The number of a ragged dimension, kept with its offsets."""
    notes = offsets.__dict__
    if "_ragged_number" not in notes:
        notes["_ragged_number"] = next(_numbers)
    return notes["_ragged_number"]
