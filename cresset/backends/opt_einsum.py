"""opt_einsum: a package that finds the order of einsum's products. This library's einsum does not use it."""

from .settings import make_flags

__all__ = ["flags", "get_opt_einsum", "is_available", "set_flags"]

enabled = False
strategy = None

set_flags, flags = make_flags(__name__, enabled=None, strategy=None)


def is_available():
    """Whether einsum uses the package."""
    return False


def get_opt_einsum():
    """The package, if einsum uses it."""
    return None
