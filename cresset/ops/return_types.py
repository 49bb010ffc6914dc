"""Named results of functions that return several tensors, seen as `torch.return_types`."""

from collections import namedtuple


def return_type(name, fields):
    """A named tuple that prints as PyTorch's do.

    >>> return_type("pair", "first second")(1, 2)
    torch.return_types.pair(
    first=1,
    second=2)
    """
    made = namedtuple(name, fields)

    def __repr__(self):
        parts = ",\n".join(f"{field}={value!r}" for field, value in zip(self._fields, self))
        return f"torch.return_types.{name}(\n{parts})"

    made.__repr__ = __repr__
    made.__module__ = __name__
    return made


histogram = return_type("histogram", "hist bin_edges")
histogramdd = return_type("histogramdd", "hist bin_edges")
