"""torch.distributed.checkpoint.quantized_hf_storage: safetensors checkpoints of weights in blocks with a scale each."""

import cresset

from .hf_storage import HuggingFaceStorageReader
from .metadata import Metadata

__all__ = ["QuantizedHuggingFaceStorageReader"]

SCALE = "_scale_inv"


class QuantizedHuggingFaceStorageReader(HuggingFaceStorageReader):
    """Reads weights that were saved in few bits: beside `weight` there is `weight_scale_inv`, one factor a block.

    Args:
        path: the folder, with whole tensors.
        thread_count: how many threads PyTorch reads with.
        target_dtype: what weights become.
        block_size: rows and columns of a block.
    """

    def __init__(self, path, thread_count=1, target_dtype=cresset.float32, block_size=128):
        super().__init__(path, thread_count)
        self.target_dtype, self.block_size, self.scales = target_dtype, block_size, {}

    def read_metadata(self, *args, **kwargs):
        """What the files say of their tensors, without the scales."""
        metadata = super().read_metadata()
        weights = [name for name in metadata.state_dict_metadata if name + SCALE in metadata.state_dict_metadata]
        places = {index.fqn: info for index, info in metadata.storage_data.items()}
        self.scales = {name: places[name + SCALE] for name in weights}
        for name in weights:
            metadata.state_dict_metadata[name].properties.dtype = self.target_dtype
        hidden = {name + SCALE for name in weights}
        described = {name: about for name, about in metadata.state_dict_metadata.items() if name not in hidden}
        storage = {index: info for index, info in metadata.storage_data.items() if index.fqn not in hidden}
        return Metadata(described, None, storage)

    def read_tensor(self, info):
        """A tensor of a file, with its scales."""
        tensor = super().read_tensor(info)
        if info.name not in self.scales:
            return tensor
        scale, size = super().read_tensor(self.scales[info.name]).to(self.target_dtype), self.block_size
        if tensor.dim() != 2 or list(scale.shape) != [-(-n // size) for n in tensor.shape]:
            raise ValueError(
                f"load: {info.name} of shape {list(tensor.shape)} has scales of shape {list(scale.shape)}, which are "
                f"not those of blocks of {size}"
            )
        rows = scale.repeat_interleave(size, 0)[: tensor.shape[0]]
        return tensor.to(self.target_dtype) * rows.repeat_interleave(size, 1)[:, : tensor.shape[1]]
