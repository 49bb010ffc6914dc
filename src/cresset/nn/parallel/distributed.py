"""torch.nn.parallel.distributed: one model on several processes. This build has none, so that there is nothing to make one from."""

from ..module import Module

__all__ = ["DistributedDataParallel"]


class DistributedDataParallel(Module):
    """A model whose gradients are averaged over processes; for isinstance and annotations. Making one is an error in a build without torch.distributed."""

    def __init__(self, module, *args, **kwargs):
        raise RuntimeError(
            f"DistributedDataParallel({type(module).__name__}): torch.distributed is not available in this build (see torch.distributed.is_available()); "
            "train in one process, or use nn.DataParallel for several GPUs"
        )
