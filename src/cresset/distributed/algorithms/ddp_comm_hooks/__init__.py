"""Communication hooks of DistributedDataParallel: how the gradients of a bucket are exchanged. A hook takes its state
and a GradBucket and gives a Future of the result."""

import enum
import functools

from . import debugging_hooks, default_hooks, powerSGD_hook, quantization_hooks
from . import default_hooks as default  # noqa: F401  PyTorch's other name

__all__ = ["DDPCommHookType", "register_ddp_comm_hook"]


def _plain(comm_hook, model, state):
    model.register_comm_hook(state, comm_hook)


def _of_rank(comm_hook, model, state, matrix_approximation_rank):
    model.register_comm_hook(powerSGD_hook.PowerSGDState(state, matrix_approximation_rank), comm_hook)


class _Registers(functools.partial):
    """A way to register a hook. (A plain partial becomes a method of an enumeration in new versions of Python.)"""


class DDPCommHookType(enum.Enum):
    """The hooks by name; `value(model=, state=)` registers one."""

    ALLREDUCE = _Registers(_plain, comm_hook=default_hooks.allreduce_hook)
    FP16_COMPRESS = _Registers(_plain, comm_hook=default_hooks.fp16_compress_hook)
    BF16_COMPRESS = _Registers(_plain, comm_hook=default_hooks.bf16_compress_hook)
    QUANTIZE_PER_TENSOR = _Registers(_plain, comm_hook=quantization_hooks.quantization_pertensor_hook)
    QUANTIZE_PER_CHANNEL = _Registers(_plain, comm_hook=quantization_hooks.quantization_perchannel_hook)
    POWER_SGD = _Registers(_of_rank, comm_hook=powerSGD_hook.powerSGD_hook, matrix_approximation_rank=1)
    POWER_SGD_RANK2 = _Registers(_of_rank, comm_hook=powerSGD_hook.powerSGD_hook, matrix_approximation_rank=2)
    BATCHED_POWER_SGD = _Registers(_of_rank, comm_hook=powerSGD_hook.batched_powerSGD_hook, matrix_approximation_rank=1)
    BATCHED_POWER_SGD_RANK2 = _Registers(
        _of_rank, comm_hook=powerSGD_hook.batched_powerSGD_hook, matrix_approximation_rank=2
    )
    NOOP = _Registers(_plain, comm_hook=debugging_hooks.noop_hook)


def register_ddp_comm_hook(comm_hook_type, model, state=None):
    """Register a hook by its name.

    Args:
        comm_hook_type: a DDPCommHookType.
        model: a DistributedDataParallel.
        state: the group; None for that of all processes.
    """
    comm_hook_type.value(model=model, state=state)
