"""Compiled regions: Python runs as it is, and pointwise calls are computed late, together.

See Note [Computing late] in native/dispatch/late.h and docs/compile.md. A region begins with the call of a compiled
function and ends with its return or its exception: then all is computed that somebody can still see.
"""

import contextlib
import functools
import os
import sys

from .. import _native
from . import stances, telling

TOPICS = ("segments", "kernels", "fusion")


def computes_late():
    """Whether this thread is inside a compiled region, and not in a function that is disabled there."""
    late = _native.compute_late(False)
    _native.compute_late(late)
    return late


def _print_group(key):
    from . import background  # most programs have no group that is worth it

    background.ask(key)


_native.set_group_printer(_print_group)


def late(function, in_stance=None):
    """`function` as a compiled region. `in_stance` is called instead while a stance is in force, with the stance, the
    arguments and the named ones.
    """
    compute_late, end_region, stance = _native.compute_late, _native.end_region, stances.in_force
    topics = log_topics()

    # What a region costs is the time of this function: the usual case comes first, and without a call between.
    @functools.wraps(function)
    def compiled(*args, **kwargs):
        if stance[0] is not None and in_stance is not None:
            return in_stance(stance[0], args, kwargs)
        if compute_late(True):  # inside of another region, which settles
            return function(*args, **kwargs)
        if topics or telling.logs is not None:
            return told(args, kwargs)
        try:
            return function(*args, **kwargs)
        finally:
            end_region()

    def told(args, kwargs):
        report = _Report(function, topics)
        try:
            return function(*args, **kwargs)
        finally:
            end_region()
            report.tell()

    return compiled


def replayed(compiled):
    """A region whose launches go to a CUDA device as graphs where they repeat themselves.

    Python runs at every call. Launches are compared with those before, byte for byte, and what was launched so before
    is launched as one graph: see Note [Replaying launches] in native/cuda/replay.h.
    """
    cuda = _native.cuda

    @functools.wraps(compiled)
    def replaying(*args, **kwargs):
        if not cuda.is_started():
            return compiled(*args, **kwargs)
        device = cuda.current_device()
        cuda.replay(device, True)
        try:
            return compiled(*args, **kwargs)
        finally:
            cuda.replay(device, False)

    return replaying


# Of native/cuda/cublas.h, Note [Measured plans].
NEVER, SAME_BITS, ANY_BITS = range(3)


def measure_products():
    """From now on plans of matrix products that a CUDA device is asked for again and again are measured; their bits
    stay as they are."""
    if _native.cuda.measure_products(SAME_BITS) == ANY_BITS:  # a region that is tuned compiles another
        _native.cuda.measure_products(ANY_BITS)


def tuned(compiled):
    """A region in which the fastest plan of a matrix product is taken, also where its bits are others."""

    @functools.wraps(compiled)
    def tuning(*args, **kwargs):
        before = _native.cuda.measure_products(ANY_BITS)
        try:
            return compiled(*args, **kwargs)
        finally:
            _native.cuda.measure_products(before)

    return tuning


def now(function, reason=None):
    """`function`, which computes at once, also inside of a region."""

    @functools.wraps(function)
    def disabled(*args, **kwargs):
        before = _native.compute_late(False)
        try:
            return function(*args, **kwargs)
        finally:
            _native.compute_late(before)

    disabled._torchdynamo_disable = True
    disabled._torchdynamo_disable_msg = reason
    disabled._torchdynamo_orig_callable = function
    return disabled


@contextlib.contextmanager
def listening():
    """Hear of the groups that this thread computes late: a function that gives them, each a dict."""
    listener = _native.LateListener()
    listener.enter()
    try:
        yield listener.groups
    finally:
        listener.leave()


# ---- the log


def log_topics():
    """What CRESSET_COMPILE_LOG asks for, words of TOPICS with commas between them."""
    topics = {word for word in os.environ.get("CRESSET_COMPILE_LOG", "").replace(" ", "").split(",") if word}
    if topics - set(TOPICS):
        raise ValueError(
            f"CRESSET_COMPILE_LOG: expected words of {', '.join(TOPICS)} with commas between them, got "
            f"{os.environ['CRESSET_COMPILE_LOG']!r}"
        )
    return topics


class _Report:
    """Hears what a region computes, and tells it: on the standard error what CRESSET_COMPILE_LOG asked for when the
    function was compiled, and by torch._logging what is asked for now.
    """

    def __init__(self, function, topics):
        self.name = getattr(function, "__qualname__", type(function).__name__)
        self.topics, self.listener = topics, _native.LateListener()
        self.listener.enter()

    def tell(self):
        groups = self.listener.groups()
        self.listener.leave()
        for line in _lines(self.name, groups, self.topics):
            print(line, file=sys.stderr)
        telling.tell("schedule", lambda: "\n".join(_lines(self.name, groups, {"segments", "kernels"})))
        telling.tell("fusion", lambda: "\n".join(_lines(self.name, groups, {"fusion"})))


def _lines(name, groups, topics):
    if "segments" in topics:
        yield f"compile: {name}: {len(groups)} groups of {sum(len(g['calls']) for g in groups)} pointwise calls"
    for number, group in enumerate(groups):
        start = f"compile: {name}: group {number}:"
        if "kernels" in topics:
            yield (
                f"{start} {len(group['calls'])} calls on {group['elements']} elements; asked for by: {group['reason']}"
            )
        if "fusion" in topics:
            yield (
                f"{start} {', '.join(group['calls'])}; reads {group['read']} and writes {group['written']} elements; "
                f"{len(group['calls']) - group['kept']} results are never written"
            )
