"""The page with the memory of a device over time, from the history that the allocator recorded."""

from collections import Counter

from .. import _native
from ..show.memory_page import BEFORE, UNKNOWN, Timeline, page
from .devices import get_device_name
from .history import frames_of


def from_history(history, segments):
    """The events of a device's history, and what its segments hold."""
    events, reserved, failures = [], [], []
    before, known = Counter(), {}
    for action, address, size, time, _stream, site in history:
        if action == "alloc":
            known[address] = holder_of(site, UNKNOWN)
            events.append((time, size, known[address]))
        elif action == "free_completed":
            holder = known.pop(address, None)
            if holder is None:
                holder = holder_of(site, BEFORE)
                before[holder] += size
            events.append((time, -size, holder))
        elif action == "oom":
            failures.append((time, len(events), size))
        else:
            reserved.append((time, len(events), size if action == "segment_alloc" else -size))
    held = [block for segment in segments for block in segment[5] if block[3] == "active_allocated"]
    for address, size, _requested, _state, site in held:
        if address not in known:
            before[holder_of(site, BEFORE)] += size
    reserved_before = sum(segment[1] for segment in segments) - sum(size for _, _, size in reserved)
    return Timeline(events, before, reserved, reserved_before, failures)


def holder_of(site, otherwise):
    frames = frames_of(site)
    return (frames[0]["module"], frames[0]["filename"], frames[0]["line"], frames[0]["name"]) if frames else otherwise


def write_page(path, index, most_events, title=None):
    """Write the page of device `index` and give its path back."""
    history = _native.cuda.memory_history(index)
    found = from_history(history, _native.cuda.memory_snapshot(index))
    name = get_device_name(index)
    text = page(found, title or f"Memory of cuda:{index}, {name}", name, truncated=len(history) >= most_events)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path
