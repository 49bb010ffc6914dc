"""torch.distributed.checkpoint.state_dict_loader: the place PyTorch has them in."""

from . import load, load_state_dict

__all__ = ["load", "load_state_dict"]
