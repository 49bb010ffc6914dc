"""How functions of linalg are called: with out=, into which results are copied."""

from ..ops.registry import _with_out


def with_out(definition):
    """Give a function the keyword out=."""
    return _with_out(definition, "linalg." + definition.__name__)
