"""Hooks that step a ZeroRedundancyOptimizer while backward runs."""

import cresset

__all__ = ["hook_with_zero_step", "hook_with_zero_step_interleaved"]


def _value(done):
    value = done.value()
    return value[0] if isinstance(value, (list, tuple)) else value


def _checked(zero):
    if not zero._overlap_with_ddp:
        raise ValueError(
            "ZeroRedundancyOptimizer must be constructed with `overlap_with_ddp=True` to use this hook properly"
        )


def hook_with_zero_step(hook, ddp, zero, shard_buckets=False):
    """A hook that does what another one does, and steps the optimizer after the last bucket has left, while others are
    on their way. Every step counts, also the first.

    Args:
        hook: how gradients are exchanged.
        ddp: the model; the hook is registered with it by `register_comm_hook`.
        zero: a ZeroRedundancyOptimizer with `overlap_with_ddp=True`.
        shard_buckets: PyTorch's way to divide a bucket over processes; it is parameters that are divided here.
    """
    _checked(zero)
    waiting = []

    @cresset.no_grad()
    def exchange_then_step(state, bucket):
        future = hook(state, bucket)
        waiting.append((bucket, future))
        if not bucket.is_last():
            return future
        for before, result in waiting:
            value = result.wait()
            value = value[0] if isinstance(value, (list, tuple)) else value
            before.set_buffer(value)
            zero._step_with(before.parameters(), before.gradients())
        waiting.clear()
        zero._exchange()
        return future

    return exchange_then_step


def hook_with_zero_step_interleaved(hook, ddp, zero, shard_buckets=False):
    """A hook that does what another one does, and steps the parameters of each bucket as soon as its gradients came.

    Args:
        hook: how gradients are exchanged.
        ddp: the model; the hook is registered with it by `register_comm_hook`.
        zero: a ZeroRedundancyOptimizer with `overlap_with_ddp=True`.
        shard_buckets: PyTorch's way to divide a bucket over processes; it is parameters that are divided here.
    """
    _checked(zero)

    def exchange_and_step(state, bucket):
        def step(done):
            bucket.set_buffer(_value(done))
            with cresset.no_grad():
                zero._step_with(bucket.parameters(), bucket.gradients())
                if bucket.is_last():
                    zero._exchange()
            return bucket.buffer()

        return hook(state, bucket).then(step)

    return exchange_and_step
