"""Ranges that a user names: record_function, and the calls with which other profilers would be told."""

import functools

from .. import _native


class record_function:
    """Name what runs inside: a context manager and a decorator. It costs next to nothing while nobody records.

    >>> with cresset.profiler.profile() as prof:
    ...     with cresset.profiler.record_function("my range"):
    ...         _ = cresset.ones(2) + 1
    >>> [event.count for event in prof.key_averages() if event.key == "my range"]
    [1]
    """

    def __init__(self, name, args=None):
        self.name, self.args = name, args
        self._recorded = []

    def __enter__(self):
        self._recorded.append(_native.profile_enter(self.name))
        return self

    def __exit__(self, *exception):
        if self._recorded.pop():
            _native.profile_leave()

    def __call__(self, function):
        @functools.wraps(function)
        def named(*args, **kwargs):
            with record_function(self.name, self.args):
                return function(*args, **kwargs)

        return named


class _ForAnotherProfiler:
    """Says ranges to a profiler of a device that is not here: the code inside runs as it would without."""

    def __init__(self, enabled=True, record_shapes=False):
        self.enabled, self.entered, self.record_shapes = enabled, False, record_shapes

    def __enter__(self):
        if self.entered:
            raise RuntimeError(f"{type(self).__name__} annotation context manager is not reentrant")
        self.entered = self.enabled
        return self

    def __exit__(self, *exception):
        return False


class emit_nvtx(_ForAnotherProfiler):
    """For NVIDIA's profilers. There is no NVTX without CUDA: nothing is emitted."""


class emit_itt(_ForAnotherProfiler):
    """For Intel's VTune. It is not linked: nothing is emitted."""
