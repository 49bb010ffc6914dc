"""torch.distributed.checkpoint.state_dict_saver: the place PyTorch has them in."""

from . import AsyncCheckpointerType, AsyncSaveResponse, async_save, save, save_state_dict

__all__ = ["AsyncCheckpointerType", "AsyncSaveResponse", "async_save", "save", "save_state_dict"]
