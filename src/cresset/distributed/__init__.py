"""torch.distributed: several processes that work together. In a process that runs alone everything imports and a group
of one works; between processes MPI carries the tensors."""

from datetime import timedelta

from ..show import missing_names as _missing_names
from .collectives import (
    P2POp,
    all_gather,
    all_gather_coalesced,
    all_gather_into_tensor,
    all_gather_single,
    all_reduce,
    all_reduce_coalesced,
    all_to_all,
    all_to_all_single,
    barrier,
    batch_isend_irecv,
    broadcast,
    gather,
    irecv,
    isend,
    monitored_barrier,
    recv,
    reduce,
    reduce_scatter,
    reduce_scatter_single,
    reduce_scatter_tensor,
    scatter,
    send,
)
from .errors import DistBackendError, DistError, DistNetworkError, DistStoreError, QueueEmptyError
from .group import DEFAULT_TIMEOUT as default_pg_timeout
from .group import ProcessGroup
from .objects import (
    all_gather_object,
    broadcast_object_list,
    gather_object,
    recv_object_list,
    scatter_object_list,
    send_object_list,
)
from .options import (
    BuiltinCommHookType,
    DebugLevel,
    get_debug_level,
    set_debug_level,
    set_debug_level_from_env,
)
from .ray import on_ray  # noqa: F401
from .reductions import ReduceOp, _make_nccl_premul_sum  # noqa: F401
from .rendezvous import register_rendezvous_handler, rendezvous
from .store import FileStore, HashStore, PrefixStore, Store, TCPStore
from .work import Work
from .world import (
    Backend,
    BackendConfig,
    GroupMember,
    destroy_process_group,
    get_backend,
    get_backend_config,
    get_default_backend_for_device,
    get_global_rank,
    get_group_rank,
    get_node_local_rank,
    get_pg_count,
    get_process_group_ranks,
    get_rank,
    get_world_size,
    group,
    init_process_group,
    is_initialized,
    new_group,
    new_subgroups,
    new_subgroups_by_enumeration,
    split_group,
)

__all__ = [
    "Backend", "BackendConfig", "BuiltinCommHookType", "DebugLevel", "DistBackendError", "DistError",
    "DistNetworkError", "DistStoreError", "FileStore",
    "GroupMember",
    "HashStore", "P2POp", "PrefixStore", "ProcessGroup", "QueueEmptyError", "ReduceOp", "Store", "TCPStore", "Work",
    "all_gather",
    "all_gather_coalesced", "all_gather_into_tensor", "all_gather_object", "all_gather_single", "all_reduce",
    "all_reduce_coalesced", "all_to_all", "all_to_all_single", "barrier", "batch_isend_irecv", "broadcast",
    "broadcast_object_list", "default_pg_timeout", "destroy_process_group", "gather", "gather_object", "get_backend",
    "get_backend_config", "get_debug_level", "get_default_backend_for_device", "get_global_rank", "get_group_rank",
    "get_node_local_rank",
    "get_pg_count", "get_process_group_ranks", "get_rank", "get_world_size", "group", "init_process_group", "irecv",
    "is_available", "is_backend_available", "is_gloo_available", "is_initialized", "is_mpi_available",
    "is_nccl_available",
    "is_torchelastic_launched", "is_ucc_available", "is_xccl_available", "isend", "monitored_barrier", "new_group",
    "new_subgroups", "new_subgroups_by_enumeration", "recv", "recv_object_list", "reduce", "reduce_op",
    "reduce_scatter",
    "reduce_scatter_single", "reduce_scatter_tensor", "register_rendezvous_handler", "rendezvous", "scatter",
    "scatter_object_list", "send", "send_object_list", "set_debug_level", "set_debug_level_from_env",
    "split_group", "supports_complex", "timedelta",
]  # fmt: skip

reduce_op = ReduceOp


def is_available():
    """Whether processes can work together.

    >>> cresset.distributed.is_available()
    True
    """
    return True


def is_gloo_available():
    """Whether "gloo" names an engine: it is MPI here, and in a group of one nothing is needed.

    >>> cresset.distributed.is_gloo_available()
    True
    """
    return True


def is_mpi_available():
    """Whether MPI can be opened."""
    from .engines import mpi

    return mpi.is_available()


def is_nccl_available():
    """Whether the engine of GPUs is there: NCCL, which `cresset[cuda]` brings, and a GPU."""
    from .engines import nccl

    return nccl.is_available()


def is_ucc_available():
    """Whether PyTorch's UCC engine is there: never here."""
    return False


def is_xccl_available():
    """Whether the engine of Intel's GPUs is there: never here."""
    return False


def is_backend_available(backend):
    """Whether an engine is there, by its name.

    >>> cresset.distributed.is_backend_available("gloo")
    True
    """
    return {"gloo": is_gloo_available, "mpi": is_mpi_available, "nccl": is_nccl_available}.get(
        backend.lower(), lambda: False
    )()


def is_torchelastic_launched():
    """Whether torchrun started this process.

    >>> cresset.distributed.is_torchelastic_launched()
    False
    """
    import os

    return "TORCHELASTIC_RUN_ID" in os.environ


def supports_complex(reduceOp):
    """Whether complex tensors can be reduced so.

    >>> cresset.distributed.supports_complex(cresset.distributed.ReduceOp.MAX)
    False
    """
    return reduceOp not in (ReduceOp.MAX, ReduceOp.MIN, ReduceOp.PRODUCT, ReduceOp.BAND, ReduceOp.BOR, ReduceOp.BXOR)


_missing = _missing_names.of(__name__)


def __getattr__(name):
    if name in (
        "algorithms",
        "autograd",
        "checkpoint",
        "config",
        "device_mesh",
        "elastic",
        "fsdp",
        "nn",
        "optim",
        "pipelining",
        "rpc",
        "tensor",
        "utils",
    ):  # imported when they are first asked for
        import importlib

        return importlib.import_module(f".{name}", __name__)
    if name in ("DeviceMesh", "init_device_mesh"):
        from . import device_mesh

        return getattr(device_mesh, name)
    if name == "GradBucket":  # of a floor that this one does not need otherwise
        from ..nn.parallel.buckets import GradBucket

        return GradBucket
    return _missing(name)
