"""torch.distributed.utils: models that become alike."""

import cresset

from .collectives import broadcast


def _sync_module_states(
    module, process_group, broadcast_bucket_size, src, params_and_buffers_to_ignore, broadcast_buffers=True
):
    """Make parameters and buffers of a model those of one process.

    Args:
        broadcast_bucket_size: bytes that travel together.
        src: the process, by its number in the group.
        params_and_buffers_to_ignore: names that are left alone.
        broadcast_buffers: buffers, too.
    """
    named = [*module.named_parameters(), *(module.named_buffers() if broadcast_buffers else ())]
    _sync_params_and_buffers(
        process_group,
        [tensor.detach() for name, tensor in named if name not in params_and_buffers_to_ignore],
        broadcast_bucket_size,
        src,
    )


@cresset.no_grad()
def _sync_params_and_buffers(process_group, module_states, broadcast_bucket_size, src):
    """Give one process's elements to all: tensors of a dtype travel together, up to so many bytes."""
    bucket, size = [], 0
    for tensor in sorted(module_states, key=lambda t: (str(t.dtype), str(t.device))):
        bytes_ = tensor.numel() * tensor.element_size()
        if bucket and (size + bytes_ > broadcast_bucket_size or bucket[0].dtype != tensor.dtype):
            _send(bucket, process_group, src)
            bucket, size = [], 0
        bucket.append(tensor)
        size += bytes_
    if bucket:
        _send(bucket, process_group, src)


def _send(tensors, group, src):
    flat = cresset.cat([t.reshape(-1) for t in tensors])
    broadcast(flat, group=group, group_src=src)
    for tensor, part in zip(tensors, flat.split([t.numel() for t in tensors]), strict=True):
        tensor.copy_(part.view(tensor.shape))
