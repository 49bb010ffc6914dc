"""The optimizer over remote parameters."""

__all__ = ["DistributedOptimizer"]


class DistributedOptimizer:
    """PyTorch's optimizer of parameters that live in other processes (RRefs). It takes gradients from
    torch.distributed.autograd, which cresset does not have: this class says so when it is made.

    Args:
        optimizer_class: of the optimizer in each process.
        params_rref: references to the parameters.
    """

    def __init__(self, optimizer_class, params_rref, *args, **kwargs):
        raise NotImplementedError(
            f"DistributedOptimizer: {optimizer_class.__name__} over {len(list(params_rref))} remote parameters needs "
            "torch.distributed.autograd, which is not in cresset. Let each process step its own parameters, or use "
            "ZeroRedundancyOptimizer"
        )
