"""torch.distributed.autograd: gradients through functions in other processes. cresset does not have it, and says so
where it is asked for: values that torch.distributed.rpc brings begin new graphs."""

__all__ = ["backward", "context", "get_gradients", "is_available"]


def is_available():
    """Whether gradients travel through rpc; they do not."""
    return False


def _refuse(what):
    raise NotImplementedError(
        f"torch.distributed.autograd.{what}: gradients do not travel through rpc in cresset. Send gradients "
        "as values, or use DistributedDataParallel or torch.distributed.pipelining"
    )


class context:
    """PyTorch's context in which rpc records; refused."""

    def __init__(self):
        _refuse("context")


def backward(context_id, roots, retain_graph=False):
    """PyTorch's backward over several processes; refused."""
    _refuse(f"backward(context_id={context_id}, {len(roots)} roots, retain_graph={retain_graph})")


def get_gradients(context_id):
    """PyTorch's gradients of a context; refused."""
    _refuse(f"get_gradients(context_id={context_id})")
