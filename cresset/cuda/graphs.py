"""CUDA graphs: recorded work that is sent to the device at once."""

from .absent import Absent, require

__all__ = ["CUDAGraph", "graph", "graph_pool_handle", "is_current_stream_capturing", "make_graphed_callables"]


def graph_pool_handle():
    """A memory pool that several graphs can share."""
    require()


def is_current_stream_capturing():
    """Whether work is being recorded. Without a device it never is."""
    return False


class CUDAGraph(Absent):
    """Recorded work."""

    def capture_begin(self, pool=None, capture_error_mode="global"):
        """Start recording."""
        require()

    def capture_end(self):
        """End recording."""
        require()

    def replay(self):
        """Do the recorded work again."""
        require()

    def reset(self):
        """Forget the recorded work."""
        require()

    def pool(self):
        """The memory pool."""
        require()


class graph:
    """Inside, work is recorded in a CUDAGraph."""

    def __init__(self, cuda_graph, pool=None, stream=None, capture_error_mode="global"):
        raise RuntimeError("torch.cuda.graph requires CUDA support, which this build does not have")


def make_graphed_callables(callables, sample_args, num_warmup_iters=3, allow_unused_input=False, pool=None):
    """Functions or modules whose calls are graphs."""
    require()
