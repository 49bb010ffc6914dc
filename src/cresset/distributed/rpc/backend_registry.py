"""The one way to call other processes, by PyTorch's name."""

import enum


class BackendType(enum.Enum):
    """Ways to call other processes."""

    TENSORPIPE = 0


def backend_registered(backend_name):
    """Whether a way has this name.

    >>> cresset.distributed.rpc.backend_registry.backend_registered("TENSORPIPE")
    True
    """
    return backend_name in BackendType.__members__
