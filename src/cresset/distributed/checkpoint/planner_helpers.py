"""torch.distributed.checkpoint.planner_helpers: the items that an entry of the state needs."""

import math

import cresset

from ..tensor.dtensor import DTensor
from .metadata import (
    BytesStorageMetadata,
    ChunkStorageMetadata,
    MetadataIndex,
    TensorProperties,
    TensorStorageMetadata,
)
from .parts import overlap, part_of, written_here
from .planner import BytesIOWriteData, LoadItemType, ReadItem, TensorWriteData, WriteItem, WriteItemType

__all__ = ["create_read_items_for_chunk_list"]


def _create_write_items(fqn, object):
    """What this process writes of an entry: of a distributed tensor its part; a plain one as a whole, as all do."""
    if not isinstance(object, cresset.Tensor):
        return [WriteItem(MetadataIndex(fqn), WriteItemType.BYTE_IO, BytesIOWriteData(nbytes=0))]
    distributed = isinstance(object, DTensor)
    part = part_of(object)
    if distributed and not written_here(object):
        return []
    properties = TensorProperties(part.local.dtype, part.local.layout, part.local.requires_grad)
    data = TensorWriteData(_chunk(part), properties, cresset.Size(part.shape))
    kind = WriteItemType.SHARD if distributed else WriteItemType.TENSOR
    return [WriteItem(MetadataIndex(fqn, data.chunk.offsets), kind, tensor_data=data)]


def _chunk(part):
    return ChunkStorageMetadata(cresset.Size(part.offset), cresset.Size(part.sizes))


def create_read_items_for_chunk_list(fqn, checkpoint_md, local_chunks):
    """The items that fill parts of a tensor from those that were saved, however both are cut.

    Args:
        fqn: the entry's name.
        checkpoint_md: the TensorStorageMetadata of what was saved.
        local_chunks: a ChunkStorageMetadata for each part here.
    """
    found = []
    for number, here in enumerate(local_chunks):
        for other, saved in enumerate(checkpoint_md.chunks):
            meets = overlap(here.offsets, here.sizes, saved.offsets, saved.sizes)
            if meets is None:
                continue
            places, starts, lengths = zip(*meets) if meets else ((), (), ())
            found.append(
                ReadItem(
                    LoadItemType.TENSOR,
                    MetadataIndex(fqn, here.offsets, number),
                    cresset.Size(places),
                    MetadataIndex(fqn, saved.offsets, other),
                    cresset.Size(starts),
                    cresset.Size(lengths),
                )
            )
    return found


def _create_read_items(fqn, md, obj):
    """What this process reads of an entry."""
    if isinstance(md, TensorStorageMetadata) != isinstance(obj, cresset.Tensor):
        raise ValueError(
            f"load: {fqn} is {'a tensor' if isinstance(obj, cresset.Tensor) else 'no tensor'}, unlike in the checkpoint"
        )
    if isinstance(md, BytesStorageMetadata):
        index, nothing = MetadataIndex(fqn), cresset.Size((0,))
        return [ReadItem(LoadItemType.BYTE_IO, index, nothing, index, nothing, nothing)]
    part = part_of(obj)
    items = create_read_items_for_chunk_list(fqn, md, [_chunk(part)])
    filled = sum(math.prod(item.lengths) for item in items)
    if filled < math.prod(part.sizes):
        raise RuntimeError(f"load: parts of {fqn} are missing: {filled} of {math.prod(part.sizes)} elements are there")
    return items
