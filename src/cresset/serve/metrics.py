"""What is counted: requests, latencies, batches, of each version of each model; as Prometheus' text and for the status
page."""

import bisect
import collections
import os
import socket

# Seconds: two steps for each doubling, from a quarter of a millisecond to a minute.
BOUNDS = [round(0.00025 * 2 ** (step / 2), 7) for step in range(37)]
BATCH_BOUNDS = [2**step for step in range(11)]


class Histogram:
    """How many values lie at or below each bound."""

    def __init__(self, bounds):
        self.bounds, self.counts, self.total = bounds, [0] * (len(bounds) + 1), 0.0

    def add(self, value):
        self.counts[bisect.bisect_left(self.bounds, value)] += 1
        self.total += value

    @property
    def count(self):
        return sum(self.counts)

    def percentile(self, percent):
        """The bound below which so many of the values lie; None without values."""
        needed, seen = self.count * percent / 100, 0
        for bound, count in zip((*self.bounds, self.bounds[-1]), self.counts):
            seen += count
            if seen and seen >= needed:
                return bound
        return None

    def lines(self, name, labels):
        seen = 0
        for bound, count in zip((*self.bounds, "+Inf"), self.counts):
            seen += count
            yield f'{name}_bucket{{{labels},le="{bound}"}} {seen}'
        yield f"{name}_sum{{{labels}}} {self.total:.6f}"
        yield f"{name}_count{{{labels}}} {seen}"


class Measures:
    """The numbers of one version of a model."""

    def __init__(self):
        self.statuses = collections.Counter()
        self.latency, self.batch = Histogram(BOUNDS), Histogram(BATCH_BOUNDS)
        self.queued = self.computed = 0.0
        self.retried = self.restarts = 0
        self.own = collections.Counter()  # what a handler reports


HELP = {
    "ts_inference_requests_total": ("counter", "Requests to a model (TorchServe's name)."),
    "ts_inference_latency_microseconds": ("counter", "Time of all requests together (TorchServe's name)."),
    "ts_queue_latency_microseconds": ("counter", "Time of all requests in the queue together (TorchServe's name)."),
    "cresset_serve_requests_total": ("counter", "Answers by status."),
    "cresset_serve_compute_seconds_total": ("counter", "Time in which workers computed."),
    "cresset_serve_retried_total": ("counter", "Requests given to another worker after theirs died."),
    "cresset_serve_worker_restarts_total": ("counter", "Workers started in the place of others that ended."),
    "cresset_serve_queue_length": ("gauge", "Requests that wait."),
    "cresset_serve_workers": ("gauge", "Workers that are ready."),
    "cresset_serve_handler_total": ("counter", "Numbers that a handler reports."),
    "process_resident_memory_bytes": ("gauge", "Memory of the front."),
    "cresset_serve_request_seconds": ("histogram", "Latency of requests, queue included."),
    "cresset_serve_batch_size": ("histogram", "Requests computed together."),
}


def label(text):
    r"""A label's value, escaped.

    >>> label('a"b')
    'a\\"b'
    """
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def resident(pid="self"):
    """Bytes of a process that are in memory; 0 where that cannot be seen."""
    try:
        with open(f"/proc/{pid}/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError):
        return 0


def prometheus(pools):
    """The text that Prometheus reads."""
    host = label(socket.gethostname())
    found = {name: [] for name in HELP}
    found["process_resident_memory_bytes"].append(f"process_resident_memory_bytes {resident()}")
    for pool in pools:
        measures = pool.measures
        labels = f'model_name="{label(pool.settings.name)}",model_version="{label(pool.settings.version)}"'
        there = f'{labels},hostname="{host}"'
        for name, value in (
            ("ts_inference_requests_total", measures.latency.count),
            ("ts_inference_latency_microseconds", round(measures.latency.total * 1e6)),
            ("ts_queue_latency_microseconds", round(measures.queued * 1e6)),
        ):
            found[name].append(f"{name}{{{there}}} {value}")
        for name, value in (
            ("cresset_serve_compute_seconds_total", f"{measures.computed:.6f}"),
            ("cresset_serve_retried_total", measures.retried),
            ("cresset_serve_worker_restarts_total", measures.restarts),
            ("cresset_serve_queue_length", len(pool.queue)),
            ("cresset_serve_workers", pool.ready_workers),
        ):
            found[name].append(f"{name}{{{labels}}} {value}")
        for status, count in sorted(measures.statuses.items()):
            found["cresset_serve_requests_total"].append(
                f'cresset_serve_requests_total{{{labels},status="{status}"}} {count}'
            )
        for name, value in sorted(measures.own.items()):
            found["cresset_serve_handler_total"].append(
                f'cresset_serve_handler_total{{{labels},name="{label(name)}"}} {value:g}'
            )
        found["cresset_serve_request_seconds"] += measures.latency.lines("cresset_serve_request_seconds", labels)
        found["cresset_serve_batch_size"] += measures.batch.lines("cresset_serve_batch_size", labels)
    lines = []
    for name, (kind, words) in HELP.items():
        lines += [f"# HELP {name} {words}", f"# TYPE {name} {kind}", *found[name]]
    return "\n".join(lines) + "\n"
