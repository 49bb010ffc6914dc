"""The settings of PyTorch's fusers and executors. There is one way to run a program here, so they are kept and read
back, and change nothing.
"""

import contextlib

_fusion_strategy = [("STATIC", 2), ("DYNAMIC", 10)]
_onednn_fusion = False
_optimized_execution = True


def set_fusion_strategy(strategy):
    """Keep PyTorch's strategy of specialization: pairs of 'STATIC' or 'DYNAMIC' and a depth. Gives the one before."""
    global _fusion_strategy
    for kind, depth in strategy:
        if kind not in ("STATIC", "DYNAMIC"):
            raise RuntimeError(f"set_fusion_strategy: FusionBehavior only supports 'STATIC' or 'DYNAMIC', got {kind!r}")
        int(depth)
    before, _fusion_strategy = _fusion_strategy, [(kind, int(depth)) for kind, depth in strategy]
    return before


def enable_onednn_fusion(enabled):
    """Keep whether PyTorch would fuse by oneDNN."""
    global _onednn_fusion
    _onednn_fusion = bool(enabled)


def onednn_fusion_enabled():
    """What enable_onednn_fusion was told last."""
    return _onednn_fusion


@contextlib.contextmanager
def optimized_execution(should_optimize):
    """Keep, inside of it, whether programs are optimized."""
    global _optimized_execution
    before, _optimized_execution = _optimized_execution, bool(should_optimize)
    try:
        yield
    finally:
        _optimized_execution = before


def _get_graph_executor_optimize():
    return _optimized_execution


@contextlib.contextmanager
def fuser(name):
    """Name one of PyTorch's fusers, 'fuser0' to 'fuser3' or 'off'; the program inside runs as it always does."""
    if name not in ("fuser0", "fuser1", "fuser2", "fuser3", "off"):
        raise Exception(f"unrecognized fuser option (name: {name})")
    yield


class strict_fusion:
    """A region of which PyTorch asks that all of it be fused. Here a program runs the same with and without."""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return False
