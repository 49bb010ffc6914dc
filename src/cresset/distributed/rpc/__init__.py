"""torch.distributed.rpc: functions that run in other processes. What travels is data: a function goes by its name and
is looked up where it runs, arguments and results are what torch.load(weights_only=True) reads."""

from . import api, backend_registry, constants, functions, options
from .agent import WorkerInfo
from .api import (
    get_worker_info,
    init_rpc,
    remote,
    rpc_async,
    rpc_sync,
    shutdown,
)
from .backend_registry import BackendType
from .options import RpcBackendOptions, TensorPipeRpcBackendOptions
from .rref import RRef

__all__ = [
    "BackendType", "RRef", "RpcBackendOptions", "TensorPipeRpcBackendOptions", "WorkerInfo", "api", "backend_registry",
    "constants", "functions", "get_worker_info", "init_rpc", "is_available", "options", "remote", "rpc_async",
    "rpc_sync", "shutdown",
]  # fmt: skip


def is_available():
    """Whether functions can run in other processes.

    >>> cresset.distributed.rpc.is_available()
    True
    """
    return True
