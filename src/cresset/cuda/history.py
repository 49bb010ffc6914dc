"""The history of device memory: who allocated what and when, recorded by the allocator, in the form of PyTorch's
snapshots.
"""

import sys

from .. import _native
from .absent import require
from .devices import device_index

_native_cuda = _native.cuda

# What was asked of each device: "state" or "all", and how many events are kept.
_recording = {}


def _record_memory_history(
    enabled="all", context="all", stacks="all", max_entries=sys.maxsize, device=None, clear_history=False,
    compile_context=False,
    global_record_annotations=False, skip_actions=None, **old,
):  # fmt: skip
    """Record every allocation from now on, with the line of the program and the module it is for.

    Args:
        enabled: "all" keeps the events, "state" only who holds what; None stops and forgets.
        context: None leaves the lines of the program out; otherwise they are recorded.
        stacks: "python" and "all" record the callers too.
        max_entries: how many events are kept, the last ones.
        device: one device; all if it is None.
        clear_history: forget what was recorded so far.
        compile_context, global_record_annotations, skip_actions: not supported: they must be left out.
    """
    require()
    if isinstance(
        enabled, bool
    ):  # the old way: (enabled, record_context, trace_alloc_max_entries, trace_alloc_record_context)
        max_entries = old.pop("trace_alloc_max_entries", 1 if max_entries == sys.maxsize else max_entries)
        (
            old.pop("record_context", None),
            old.pop("trace_alloc_record_context", None),
            old.pop("record_context_cpp", None),
        )
        enabled = "all" if enabled else None
    for name, value in (
        ("compile_context", compile_context),
        ("global_record_annotations", global_record_annotations),
        ("skip_actions", skip_actions),
    ):
        if value:
            raise NotImplementedError(f"_record_memory_history: {name}={value!r} is not supported; leave it out")
    if old:
        raise TypeError(f"_record_memory_history() got an unexpected keyword argument {next(iter(old))!r}")
    if enabled not in (None, "state", "all"):
        raise ValueError(f"expected state to be 'state', 'all', or None, got {enabled!r}")
    if context not in (None, "state", "alloc", "all"):
        raise ValueError(f"expected context to be 'state', 'alloc', 'all', or None, got {context!r}")
    if stacks not in ("python", "all"):
        raise ValueError(f"expected stacks to be 'python' or 'all', got {stacks!r}")
    if max_entries < 1:
        raise ValueError(f"_record_memory_history: max_entries is {max_entries}; at least one event is kept")
    for index in range(_native_cuda.device_count()) if device is None else [device_index(device)]:
        if clear_history or enabled is None:
            _native_cuda.record_memory_history(index, 0, False)
        _recording.pop(index, None)
        if enabled is not None:
            _native_cuda.record_memory_history(index, max_entries, context is not None)
            _recording[index] = enabled, max_entries


def frames_of(site):
    """The lines of an allocation, "file.py(12): function" each, in the form of PyTorch's snapshots; the first says its
    module too.
    """
    frames = []
    for text in site.split("\n") if site else []:
        text, _, module = text.partition(", in module ")
        file, _, rest = text.rpartition("(")
        line, _, name = rest.partition("): ")
        frame = {"filename": file, "line": int(line), "name": name}
        if module or not frames:
            frame["module"] = module
        frames.append(frame)
    return frames


def segments(mempool_id=None, include_traces=True):
    """What the allocators of all devices hold: segments with their blocks, as dictionaries."""
    found = []
    if not (_native_cuda.device_count() and _native_cuda.is_started()):
        return found
    for index in range(_native_cuda.device_count()):
        for address, size, stream, large, pool, blocks in _native_cuda.memory_snapshot(index):
            if mempool_id is not None and mempool_id[1] != pool:
                continue
            listed = [
                {
                    "address": at,
                    "size": bytes,
                    "requested_size": wanted,
                    "state": state,
                    "frames": frames_of(site) if include_traces else [],
                }
                for at, bytes, wanted, state, site in blocks
            ]
            used = [b for b in listed if b["state"] == "active_allocated"]
            found.append({
                "device": index, "address": address, "total_size": size, "allocated_size": sum(b["size"] for b in used),
                "active_size": sum(b["size"] for b in listed if b["state"] != "inactive"),
                "requested_size": sum(b["requested_size"] for b in used),
                "stream": stream, "segment_type": "large" if large else "small", "segment_pool_id": (0, pool),
                "is_expandable": False, "frames": [],
                "blocks": listed,
            })  # fmt: skip
    return found


def _trace(index):
    if _recording.get(index, ("state",))[0] != "all":
        return []
    events = []
    for action, address, size, time, stream, site in _native_cuda.memory_history(index):
        event = {
            "action": action,
            "addr": address,
            "size": size,
            "stream": stream,
            "time_us": time // 1000,
            "frames": frames_of(site),
        }
        if action == "free_completed":  # the same moment here: memory is given back in the stream's order
            events.append({**event, "action": "free_requested"})
        elif action == "oom":
            event["device_free"] = _native_cuda.memory_info(index)[0]
        events.append(event)
    return events


def _snapshot(device=None, augment_with_fx_traces=False):
    """What memory is held now and, if it was recorded, what happened: plain dictionaries that PyTorch's viewer of
    snapshots reads.

    Args:
        device: must be one of the devices; all are told of.
        augment_with_fx_traces: not supported: there are no graphs of fx to name.
    """
    require()
    device_index(device)
    if augment_with_fx_traces:
        raise NotImplementedError("_snapshot: augment_with_fx_traces=True is not supported")
    return {
        "segments": segments(),
        "device_traces": [_trace(index) for index in range(_native_cuda.device_count())],
        "allocator_settings": {
            "expandable_segments": False,
            "garbage_collection_threshold": 0.0,
            "max_split_size": -1,
            "roundup_power2_divisions": {},
        },
        "external_annotations": [],
    }


def _dump_snapshot(filename="dump_snapshot.pickle", augment_with_fx_traces=False):
    """Write `_snapshot()` to a file with pickle, for PyTorch's viewer."""
    import pickle

    found = _snapshot(augment_with_fx_traces=augment_with_fx_traces)
    with open(filename, "wb") as file:
        pickle.dump(found, file)


def timeline(path, device=None, title=None):
    """Write a page with the memory of a device over time: which module and line held how much, and what was held at the
    peak.

    Call `_record_memory_history()` before the work that is looked at. The page is one HTML file that needs nothing from
    elsewhere.

    Args:
        path: the HTML file.
        device: the current one if it is None.
        title: the page's heading; the device's name if it is None.

    Returns the path.
    """
    from .timeline import write_page

    require()
    index = device_index(device)
    kind, most = _recording.get(index, (None, 0))
    if kind != "all":
        raise RuntimeError(
            f"timeline: nothing was recorded for cuda:{index}; call torch.cuda.memory._record_memory_history() before "
            "the work"
        )
    return write_page(path, index, most, title)
