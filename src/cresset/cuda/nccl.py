"""NVIDIA's library for communication between devices; torch.distributed exchanges by it."""

from .. import _native

__all__ = ["is_available", "version"]


def is_available(tensors):
    """Whether NCCL can be used on these tensors: contiguous ones on GPUs, each on another."""
    if _native.distributed.nccl_problem():
        return False
    places = [tensor.device for tensor in tensors]
    return all(t.is_cuda and t.is_contiguous() and not t.is_sparse for t in tensors) and len(set(places)) == len(places)


def version():
    """NCCL's version, as a tuple."""
    if problem := _native.distributed.nccl_problem():
        raise RuntimeError(f"nccl.version: NCCL is not here: {problem}")
    number = _native.distributed.nccl_version()
    return number // 10000, number // 100 % 100, number % 100
