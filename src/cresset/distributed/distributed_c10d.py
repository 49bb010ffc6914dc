"""torch.distributed.distributed_c10d: where PyTorch keeps the functions of torch.distributed."""

from .. import distributed as _distributed

globals().update({name: getattr(_distributed, name) for name in _distributed.__all__})
__all__ = list(_distributed.__all__)
