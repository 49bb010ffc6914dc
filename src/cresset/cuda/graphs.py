"""CUDA graphs: recorded work that is sent to the device at once."""

import collections
import gc

from .. import _native
from .absent import require, require_for
from .devices import current_device, synchronize
from .memory import empty_cache
from .streams import Stream, StreamContext

__all__ = ["CUDAGraph", "graph", "graph_pool_handle", "is_current_stream_capturing", "make_graphed_callables"]

_native_cuda = _native.cuda
_MODES = {"global": 0, "thread_local": 1, "relaxed": 2}
_users = collections.Counter()  # (device, pool): how many graphs have memory there


def graph_pool_handle():
    """A memory pool that several graphs can share."""
    require()
    return 0, _native_cuda.new_pool()


def is_current_stream_capturing():
    """Whether work is being recorded. Without a device it never is."""
    if _native_cuda.device_count() == 0 or not _native_cuda.is_started():
        return False
    index = current_device()
    return _native_cuda.stream_is_capturing(index, _native_cuda.current_stream(index))


class CUDAGraph:
    """Work that was recorded once and can be done again and again, with the memory it was recorded with.

    Args:
        keep_graph: keep what was recorded after it was made ready, for debug_dump.
    """

    def __new__(cls, keep_graph=False):
        require_for("CUDAGraph")
        self = super().__new__(cls)
        self._graph = self._ready = self._pool = 0
        self._index, self._stream, self._keep = None, None, keep_graph
        self._random, self._random_words = (
            0,
            0,
        )  # where a replay finds its start in the random numbers, and how many it uses
        return self

    def capture_begin(self, pool=None, capture_error_mode="global", check_input_liveness=False):
        """Start recording the current stream, which must not be the default one. That inputs stay alive cannot be
        checked.
        """
        if check_input_liveness:
            raise NotImplementedError("capture_begin: check_input_liveness=True is not supported")
        if capture_error_mode not in _MODES:
            raise RuntimeError(
                f"Unknown capture error mode. Expected `global`, `thread_local`, or `relaxed`, got {capture_error_mode}"
            )
        if self._ready or self._stream:
            raise RuntimeError(
                "This CUDAGraph instance already owns a captured graph. To capture a new graph, create a new instance."
            )
        self._index = current_device()
        stream = _native_cuda.current_stream(self._index)
        if stream == 0:
            raise RuntimeError(
                "CUDA graphs must be captured on a non-default stream: use `with torch.cuda.graph(g):` or `with "
                "torch.cuda.stream(s):`"
            )
        self._pool = _native_cuda.new_pool() if pool is None else pool[1]
        _users[self._index, self._pool] += 1
        self._stream = stream
        self._random = _native_cuda.allocate(self._index, 16, stream)
        _native_cuda.capture_begin(self._index, stream, self._pool, _MODES[capture_error_mode])
        _native_cuda.begin_random_capture(self._index, self._random)

    def capture_end(self):
        """End recording and make the work ready."""
        if self._stream is None:
            raise RuntimeError("capture_end: capture_begin was not called")
        stream, self._stream = self._stream, None
        self._random_words = _native_cuda.end_random_capture(self._index)
        self._graph = _native_cuda.capture_end(self._index, stream, self._pool)
        self._ready = _native_cuda.graph_instantiate(self._index, self._graph)

    def instantiate(self):
        """Make the work ready; capture_end has done it."""

    def replay(self):
        """Do the recorded work again, in the current stream."""
        if not self._ready:
            raise RuntimeError("Called CUDAGraph::replay without a preceding successful capture.")
        _native_cuda.start_random_replay(self._index, self._random, self._random_words)
        _native_cuda.graph_launch(self._index, self._ready, _native_cuda.current_stream(self._index))

    def reset(self):
        """Forget the recorded work and its memory."""
        if self._pool:
            key = self._index, self._pool
            _users[key] -= 1
            _native_cuda.graph_destroy(self._index, self._graph, self._ready, 0 if _users[key] else self._pool)
        if self._random:
            _native_cuda.free(self._index, self._random)
        self._graph = self._ready = self._pool = self._random = 0

    def raw_cuda_graph(self):
        """The driver's handle of what was recorded, as a number."""
        return self._graph

    def raw_cuda_graph_exec(self):
        """The driver's handle of the work that replay sends, as a number."""
        return self._ready

    def pool(self):
        """The memory pool, for other graphs to share."""
        return 0, self._pool

    def enable_debug_mode(self):
        """Keep what was recorded for debug_dump."""

    def debug_dump(self, debug_path):
        """Write what was recorded in Graphviz's format."""
        if not self._graph:
            raise RuntimeError("debug_dump: nothing was captured")
        _native_cuda.graph_draw(self._index, self._graph, str(debug_path))

    def __del__(self):
        if getattr(self, "_index", None) is not None:
            self.reset()


class graph:
    """Inside, work is recorded in a CUDAGraph instead of being done.

    Args:
        cuda_graph: the CUDAGraph.
        pool: memory to share with other graphs, from graph_pool_handle or CUDAGraph.pool.
        stream: the stream to record; one of its own if it is None.
        capture_error_mode: "global", "thread_local" or "relaxed": which other threads may not wait for the device
            meanwhile.
        enable_annotations, check_input_liveness: not supported: they must be False.
    """

    default_capture_stream = None

    def __init__(
        self,
        cuda_graph,
        pool=None,
        stream=None,
        capture_error_mode="global",
        enable_annotations=False,
        check_input_liveness=False,
    ):
        require_for("graph")
        if enable_annotations or check_input_liveness:
            raise NotImplementedError(
                "torch.cuda.graph: enable_annotations=True and check_input_liveness=True are not supported"
            )
        if stream is None:
            if graph.default_capture_stream is None:
                graph.default_capture_stream = Stream()
            stream = graph.default_capture_stream
        self.cuda_graph, self.pool, self.capture_stream, self.capture_error_mode = (
            cuda_graph,
            pool,
            stream,
            capture_error_mode,
        )
        self.stream_ctx = StreamContext(stream)

    def __enter__(self):
        synchronize()
        gc.collect()
        empty_cache()
        self.stream_ctx.__enter__()
        self.cuda_graph.capture_begin(self.pool, self.capture_error_mode)

    def __exit__(self, kind, value, trace):
        try:
            self.cuda_graph.capture_end()
        except RuntimeError:
            if kind is None:  # what happened inside says more
                raise
        finally:
            self.stream_ctx.__exit__(kind, value, trace)


def make_graphed_callables(callables, sample_args, num_warmup_iters=3, allow_unused_input=False, pool=None):
    """Functions or modules whose forward and backward are recorded once and then replayed; see cresset/cuda/graphed.py.

    Args:
        callables: a function or module, or a tuple of them in the order in which they will be called.
        sample_args: a tuple of tensors on 'cuda' for each callable, with the shapes, dtypes and requires_grad of the
            real arguments.
        num_warmup_iters: calls before recording; kernels are compiled in them.
        allow_unused_input: whether an input may have no influence on the results.
        pool: memory to share with other graphs, from graph_pool_handle.

    Returns the callables' replacements; a module is given back itself, with a forward that replays while it is in the
    mode it was recorded in.
    """
    require()
    from .graphed import make_graphed_callables as make

    return make(callables, sample_args, num_warmup_iters, allow_unused_input, pool)
