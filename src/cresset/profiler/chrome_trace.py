"""Events as a Chrome trace: the JSON that chrome://tracing, Perfetto and TensorBoard's profiler read. Each thread has a
row, and each stream of a device; an arrow leads from the call that launched a kernel to the kernel."""

import gzip
import json
import os

from .events import DeviceType

CATEGORIES = {
    "range": "user_annotation",
    "kernel": "kernel",
    "copy": "gpu_memcpy",
    "fill": "gpu_memset",
}


def trace_of(events, metadata=None, record_shapes=False, profile_memory=False, with_flops=False, with_stack=False):
    """The trace as a dictionary."""
    process, rows, threads, streams = os.getpid(), [], {}, {}
    for event in events:
        if event.device_type is DeviceType.CPU:
            threads.setdefault(event.system_thread, f"thread {event.system_thread} (python)")
            rows.append(complete(event, event.name, process, event.system_thread, arguments_of(event)))
        else:
            streams.setdefault((event.device_index, event.activity.stream))
            rows.extend(rows_of_device(event, process, threads))
    named = [named_row("process_name", process, 0, name="python")]
    named += [named_row("thread_name", process, thread, name=name) for thread, name in threads.items()]
    for device in sorted({device for device, _ in streams}):
        named.append(named_row("process_name", device, 0, name="python"))
        named.append(named_row("process_labels", device, 0, labels=f"GPU {device}"))
        named.append(named_row("process_sort_index", device, 0, sort_index=5000000 + device))
    for device, stream in streams:
        named.append(named_row("thread_name", device, stream, name=f"stream {stream}"))
    return {
        "schemaVersion": 1,
        "deviceProperties": device_properties(streams),
        "record_shapes": int(record_shapes),
        "profile_memory": int(profile_memory),
        "with_flops": int(with_flops),
        "with_stack": int(with_stack),
        "displayTimeUnit": "ms",
        **(metadata or {}),
        "traceEvents": named + rows,
    }


def named_row(what, process, thread, **arguments):
    return {"ph": "M", "name": what, "pid": process, "tid": thread, "args": arguments}


def complete(event, name, process, thread, arguments):
    """A row with a beginning and a length, in microseconds."""
    return {
        "ph": "X",
        "cat": CATEGORIES.get(event.kind, "cpu_op"),
        "name": name,
        "pid": process,
        "tid": thread,
        "ts": round(event.time_range.start, 3),
        "dur": round(event.time_range.elapsed_us(), 3),
        "args": arguments,
    }


def arguments_of(event):
    arguments = {"External id": event.id, "Ev Idx": event.id - 1}
    if event.input_shapes:
        arguments["Input Dims"] = event.input_shapes
        arguments["Input type"] = [
            str(dtype).removeprefix("torch.") if dtype is not None else "" for dtype in event.input_dtypes
        ]
    if event.cpu_memory_usage:
        arguments["Bytes"] = event.cpu_memory_usage
    if event.device_memory_usage:
        arguments["Device Bytes"] = event.device_memory_usage
    if event.flops:
        arguments["Flops"] = event.flops
    if event.stack:
        arguments["Call stack"] = ";".join(event.stack)
    return arguments


def rows_of_device(event, process, threads):
    """A kernel, copy or fill on its stream, the call that began it on its thread, and the arrow between them."""
    activity, call = event.activity, event.call
    arguments = {"device": activity.device, "stream": activity.stream, "correlation": activity.correlation}
    if event.linked_correlation_id:
        arguments["External id"] = event.linked_correlation_id
    if activity.kind == "kernel" and activity.block[0]:
        arguments |= {
            "grid": list(activity.grid),
            "block": list(activity.block),
            "shared memory": activity.shared_memory,
            "registers per thread": activity.registers,
        }
    elif activity.bytes:
        seconds = (activity.end - activity.start) / 1e9
        arguments |= {"bytes": activity.bytes} | (
            {"memory bandwidth (GB/s)": activity.bytes / seconds / 1e9} if seconds else {}
        )
    yield complete(event, event.name, activity.device, activity.stream, arguments)
    if call is None:
        return
    threads.setdefault(call.thread, f"thread {call.thread} (launches)")
    began = event.time_range.start - (activity.start - call.start) / 1000
    told = {"correlation": activity.correlation}
    if event.linked_correlation_id:
        told["External id"] = event.linked_correlation_id
    yield {
        "ph": "X", "cat": "cuda_driver", "name": call.name, "pid": process, "tid": call.thread,
        "ts": round(began, 3), "dur": round((call.end - call.start) / 1000, 3), "args": told,
    }  # fmt: skip
    arrow = {"cat": "ac2g", "name": "ac2g", "id": activity.correlation}
    yield {"ph": "s", **arrow, "pid": process, "tid": call.thread, "ts": round(began, 3)}
    yield {
        "ph": "f", "bp": "e", **arrow, "pid": activity.device, "tid": activity.stream,
        "ts": round(event.time_range.start, 3),
    }  # fmt: skip


def device_properties(streams):
    """What TensorBoard asks of the devices that took part."""
    devices = sorted({device for device, _ in streams})
    if not devices:
        return []
    from ..cuda import get_device_properties

    found = []
    for device in devices:
        facts = get_device_properties(device)
        found.append({
            "id": device, "name": facts.name, "totalGlobalMem": facts.total_memory, "computeMajor": facts.major,
            "computeMinor": facts.minor, "numSms": facts.multi_processor_count, "warpSize": facts.warp_size,
        })  # fmt: skip
    return found


def write(path, events, **options):
    """Write the trace; a name that ends in .gz gets it compressed."""
    text = json.dumps(trace_of(events, **options))
    opened = gzip.open if os.fspath(path).endswith(".gz") else open
    with opened(path, "wt") as file:
        file.write(text)
