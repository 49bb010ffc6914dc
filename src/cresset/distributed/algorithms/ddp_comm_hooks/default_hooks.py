"""Averages of gradients, also with fewer bits on the way."""

import cresset

from ...collectives import all_reduce
from ...world import default_group

__all__ = [
    "allreduce_hook",
    "bf16_compress_hook",
    "bf16_compress_wrapper",
    "fp16_compress_hook",
    "fp16_compress_wrapper",
]


def group_or_all(group):
    """The group of a hook's state; None is that of all."""
    return default_group("communication hook") if group is None else group


def averaged(tensor, group):
    """A Future of the average of a tensor over a group, in its memory."""
    group = group_or_all(group)
    with cresset.no_grad():
        tensor.div_(group.size())
    return all_reduce(tensor, group=group, async_op=True).get_future().then(lambda done: done.value()[0])


def allreduce_hook(process_group, bucket):
    """The average: what happens without a hook."""
    return averaged(bucket.buffer(), process_group)


def _compressed(dtype, process_group, bucket):
    flat = bucket.buffer()
    return averaged(flat.to(dtype), process_group).then(lambda done: flat.copy_(done.value()))


def fp16_compress_hook(process_group, bucket):
    """The average, computed and sent as float16."""
    return _compressed(cresset.float16, process_group, bucket)


def bf16_compress_hook(process_group, bucket):
    """The average, computed and sent as bfloat16."""
    return _compressed(cresset.bfloat16, process_group, bucket)


def _wrapper(hook, dtype):
    def compressing_hook(hook_state, bucket):
        flat = bucket.buffer()
        bucket.set_buffer(flat.to(dtype))

        def back(done):
            value = done.value()
            return flat.copy_(value[0] if isinstance(value, (list, tuple)) else value)

        return hook(hook_state, bucket).then(back)

    return compressing_hook


def fp16_compress_wrapper(hook):
    """A hook that gives another one float16 gradients, and casts what it makes of them back."""
    return _wrapper(hook, cresset.float16)


def bf16_compress_wrapper(hook):
    """A hook that gives another one bfloat16 gradients, and casts what it makes of them back."""
    return _wrapper(hook, cresset.bfloat16)
