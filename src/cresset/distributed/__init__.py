"""torch.distributed: several processes that work on one model. This build has none, as PyTorch's builds without it: `is_available()` says so,
and programs that ask go on with one process.
"""

from ..show import missing_names as _missing_names

__all__ = ["is_available"]


def is_available():
    """Whether processes can work together: not in this build.

    >>> cresset.distributed.is_available()
    False
    """
    return False


class ProcessGroup:
    """The type of a group of processes, for annotations and isinstance. There is no such group in this build."""

    def __init__(self, *args, **kwargs):
        raise RuntimeError("ProcessGroup: torch.distributed is not available in this build")


__getattr__ = _missing_names.of(__name__)
