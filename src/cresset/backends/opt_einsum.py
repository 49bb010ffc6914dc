"""opt_einsum: a package that finds the order of einsum's products. This library's einsum does not use it."""

from .settings import Kept, make_flags, make_settings

__all__ = ["flags", "get_opt_einsum", "is_available", "set_flags"]


def _refuse(name, value):
    if value:
        raise ValueError(
            f"opt_einsum is not available, so setting `{name}` to {value} would not change how einsum works: it finds "
            "the order by itself"
        )
    return value


make_settings(__name__, enabled=Kept(False, _refuse), strategy=Kept(None, _refuse))
set_flags, flags = make_flags(__name__, enabled=None, strategy=None)


def is_available():
    """Whether einsum uses the package."""
    return False


def get_opt_einsum():
    """The package, if einsum uses it."""
    return None
