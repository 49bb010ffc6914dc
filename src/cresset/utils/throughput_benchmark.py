"""How many calls of a model several threads make in a second."""

import contextlib
import random
import threading
import time
import warnings

import cresset

__all__ = ["ExecutionStats", "ThroughputBenchmark", "format_time"]


def format_time(time_us=None, time_ms=None, time_s=None):
    """A time as text, in the unit that suits it; one of the three is given.

    >>> utils.throughput_benchmark.format_time(time_ms=1500)
    '1.500s'
    """
    given = [value * unit for value, unit in ((time_us, 1), (time_ms, 1e3), (time_s, 1e6)) if value is not None]
    if len(given) != 1:
        raise AssertionError(f"format_time: expected one of time_us, time_ms and time_s, got {len(given)}")
    for unit, name in ((1e6, "s"), (1e3, "ms")):
        if given[0] >= unit:
            return f"{given[0] / unit:.3f}{name}"
    return f"{given[0]:.3f}us"


class ExecutionStats:
    """What a benchmark found.

    Attributes: latency_avg_ms, the time of one call; num_iters, the calls of all threads.
    """

    def __init__(self, latency_avg_ms, num_iters, threads):
        self.latency_avg_ms, self.num_iters, self._threads = latency_avg_ms, num_iters, threads

    @property
    def iters_per_second(self):
        """The calls of all threads in a second."""
        return self.num_iters / self.total_time_seconds

    @property
    def total_time_seconds(self):
        """How long the benchmark took."""
        return self.num_iters * self.latency_avg_ms / 1000 / self._threads

    def __str__(self):
        return (
            f"Average latency per example: {format_time(time_ms=self.latency_avg_ms)}\n"
            f"Total number of iterations: {self.num_iters}\n"
            f"Total number of iterations per second (across all threads): {self.iters_per_second:.2f}\n"
            f"Total time: {format_time(time_s=self.total_time_seconds)}"
        )


class ThroughputBenchmark:
    """Calls a model from several threads, each time with one of the inputs that were added.

    Args:
        module: a layer or a scripted model.

    >>> bench = utils.ThroughputBenchmark(nn.Linear(2, 3))
    >>> bench.add_input(cresset.ones(4, 2))
    >>> stats = bench.benchmark(num_calling_threads=2, num_warmup_iters=1, num_iters=10)
    >>> stats.num_iters
    10
    """

    def __init__(self, module):
        self._module, self._inputs = module, []

    def run_once(self, *args, **kwargs):
        """The model's result for these arguments."""
        return self._module(*args, **kwargs)

    def add_input(self, *args, **kwargs):
        """Keep arguments for the benchmark."""
        self._inputs.append((args, kwargs))

    def benchmark(self, num_calling_threads=1, num_warmup_iters=10, num_iters=100, profiler_output_path=""):
        """Measure; gives ExecutionStats.

        Args:
            num_calling_threads: how many threads call at a time.
            num_warmup_iters: calls that each thread makes before.
            num_iters: calls of all threads together.
            profiler_output_path: a file for the trace of the calls that are measured.
        """
        if not self._inputs:
            raise RuntimeError("ThroughputBenchmark: there are no inputs; add_input() takes them")
        if num_calling_threads > 1 and not hasattr(self._module, "graph"):  # it is not scripted
            warnings.warn("ThroughputBenchmark: calls of a model in Python wait for each other (GIL)", stacklevel=2)
        profiler = cresset.autograd.profiler.profile(enabled=bool(profiler_output_path))
        begin = threading.Barrier(num_calling_threads + 1, profiler.__enter__)
        lock, left, failed = threading.Lock(), iter(range(num_iters)), []

        draw = random.SystemRandom()  # the program's own random numbers stay as they are

        def call():
            args, kwargs = draw.choice(self._inputs)
            self._module(*args, **kwargs)

        def work(modes):
            try:
                with modes():
                    for _ in range(num_warmup_iters):
                        call()
                    begin.wait()
                    while self._next(left, lock):
                        call()
            except BaseException as error:
                failed.append(error)
                begin.abort()

        modes = cresset.enable_grad if cresset.is_grad_enabled() else cresset.no_grad
        threads = [threading.Thread(target=work, args=(modes,)) for _ in range(num_calling_threads)]
        for thread in threads:
            thread.start()
        with contextlib.suppress(threading.BrokenBarrierError):  # what failed is told below
            begin.wait()
        began = time.perf_counter()
        for thread in threads:
            thread.join()
        took = time.perf_counter() - began
        if profiler.enabled and profiler.entered:
            profiler.__exit__(None, None, None)
        if failed:
            raise next((error for error in failed if not isinstance(error, threading.BrokenBarrierError)), failed[0])
        if profiler_output_path:
            profiler.export_chrome_trace(profiler_output_path)
        return ExecutionStats(took * 1000 * num_calling_threads / num_iters, num_iters, num_calling_threads)

    @staticmethod
    def _next(left, lock):
        """Whether there is one more call to make."""
        with lock:
            return next(left, None) is not None
