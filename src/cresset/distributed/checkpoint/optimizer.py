"""torch.distributed.checkpoint.optimizer: the place PyTorch has it in."""

from . import load_sharded_optimizer_state_dict

__all__ = ["load_sharded_optimizer_state_dict"]
