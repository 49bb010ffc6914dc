"""cuSPARSELt, which this build does not have."""

__all__ = ["get_max_alg_id", "is_available", "version"]


def is_available():
    """Whether the library is here."""
    return False


def version():
    """The library's version; None without it."""
    return None


def get_max_alg_id():
    """The library's number of algorithms; None without it."""
    return None
