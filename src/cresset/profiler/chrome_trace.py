"""Events as a Chrome trace: the JSON that chrome://tracing, Perfetto and TensorBoard's profiler read."""

import gzip
import json
import os

CATEGORIES = {"operation": "cpu_op", "function": "cpu_op", "node": "cpu_op", "range": "user_annotation"}


def trace_of(events, metadata=None, record_shapes=False, profile_memory=False, with_flops=False, with_stack=False):
    """The trace as a dictionary."""
    pid, rows, threads = os.getpid(), [], {}
    for event in events:
        threads.setdefault(getattr(event, "system_thread", event.thread), event.thread)
        arguments = {"External id": event.id, "Ev Idx": event.id - 1}
        if event.input_shapes:
            arguments["Input Dims"] = event.input_shapes
            arguments["Input type"] = [
                str(dtype).removeprefix("torch.") if dtype is not None else "" for dtype in event.input_dtypes
            ]
        if event.cpu_memory_usage:
            arguments["Bytes"] = event.cpu_memory_usage
        if event.flops:
            arguments["Flops"] = event.flops
        if event.stack:
            arguments["Call stack"] = ";".join(event.stack)
        rows.append(
            {
                "ph": "X",
                "cat": CATEGORIES.get(event.kind, "cpu_op"),
                "name": event.name,
                "pid": pid,
                "tid": getattr(event, "system_thread", event.thread),
                "ts": round(event.time_range.start, 3),
                "dur": round(event.cpu_time_total, 3),
                "args": arguments,
            }  # fmt: skip
        )
    named = [{"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "args": {"name": "python"}}]
    named += [
        {"ph": "M", "name": "thread_name", "pid": pid, "tid": system, "args": {"name": f"thread {system} (python)"}}
        for system in threads
    ]
    return {
        "schemaVersion": 1,
        "deviceProperties": [],
        "record_shapes": int(record_shapes),
        "profile_memory": int(profile_memory),
        "with_flops": int(with_flops),
        "with_stack": int(with_stack),
        "displayTimeUnit": "ms",
        **(metadata or {}),
        "traceEvents": named + rows,
    }


def write(path, events, **options):
    """Write the trace; a name that ends in .gz gets it compressed."""
    text = json.dumps(trace_of(events, **options))
    if os.fspath(path).endswith(".gz"):
        with gzip.open(path, "wt") as file:
            file.write(text)
    else:
        with open(path, "w") as file:
            file.write(text)
