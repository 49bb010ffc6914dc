"""What memory was for, over time: export_memory_timeline of the profiler.

What a piece of memory was for is what the recorder saw: the engine wrote a gradient into it, a node kept it for a
backward pass, an optimizer has it as its state. What nobody saw is "unknown".
"""

import enum
import gc
import gzip
import json
import os

from .. import _native
from ..show.memory_page import BEFORE, Timeline, page
from .events import ancestors
from .stacks import is_ours


class Category(enum.Enum):
    """What memory was for, with PyTorch's names."""

    INPUT = 1
    TEMPORARY = 2
    ACTIVATION = 3
    GRADIENT = 4
    AUTOGRAD_DETAIL = 5
    PARAMETER = 6
    OPTIMIZER_STATE = 7


class Action(enum.Enum):
    """What happened to memory, with PyTorch's numbers."""

    PREEXISTING = 1
    CREATE = 2
    INCREMENT_VERSION = 3
    DESTROY = 4


# The order of the columns of a file, and of the layers of the page. None: unknown.
ORDER = (
    Category.PARAMETER,
    Category.OPTIMIZER_STATE,
    Category.INPUT,
    Category.TEMPORARY,
    Category.ACTIVATION,
    Category.GRADIENT,
    Category.AUTOGRAD_DETAIL,
    None,
)
COLUMN = {category: number for number, category in enumerate(ORDER)}

# The bits of MemoryUse in native/dispatch/profile_memory.h.
PARAMETER, GRADIENT, INPUT, ACTIVATION, OPTIMIZER_STATE = 1, 2, 4, 8, 16


def watch_optimizers():
    """From now on the state of an optimizer that takes a step is known as such; `remove()` of the result ends it."""
    from ..optim.optimizer import register_optimizer_step_post_hook  # upward: asked only while memory is recorded

    def note(optimizer, args, kwargs):
        for state in optimizer.state.values():
            for value in state.values() if isinstance(state, dict) else ():
                if isinstance(value, _native.Tensor):
                    _native.profile_note(value, "optimizer_state")

    return register_optimizer_step_post_hook(note)


def note_parameters():
    """The parameters of modules that are alive are known as such, also where no gradient reached them."""
    from ..nn import Module  # upward: asked only while memory is recorded

    for thing in gc.get_objects():
        if issubclass(type(thing), Module):  # asked of nobody's __class__: any object of the program comes by here
            for parameter in thing.__dict__.get("_parameters", {}).values():
                if parameter is not None:
                    _native.profile_note(parameter, "parameter")


class Piece:
    """A piece of memory: from `start` (None: it was there before) to `end` (None: it is there still), in nanoseconds
    since 1970.
    """

    def __init__(self, recording, record):
        address, self.bytes, self.device, start, end, event, self.stack, uses, in_backward = record
        self.start = start + recording.wall_clock if start >= 0 else None
        self.end = end + recording.wall_clock if end >= 0 else None
        self.category = category_of(recording, end, event, uses, in_backward)
        self.frames = recording.stacks.frames(self.stack)


def category_of(recording, end, event, uses, in_backward):
    if uses & PARAMETER:
        return Category.PARAMETER
    if uses & OPTIMIZER_STATE:
        return Category.OPTIMIZER_STATE
    if uses & GRADIENT:
        return Category.GRADIENT
    if uses & INPUT and not in_backward:
        return Category.INPUT
    if uses & ACTIVATION:
        return Category.ACTIVATION
    if 0 <= event < len(recording.events) and end >= 0:
        outermost = recording.events[event]
        for around in ancestors(outermost):
            if around.kind != "range":
                outermost = around
        if outermost.kind != "range" and end - recording.began <= 1000 * outermost.time_range.end:
            return Category.TEMPORARY
    return Category.AUTOGRAD_DETAIL if in_backward else None


def pieces(recordings, device):
    """The memory of a device that recordings saw."""
    found = [Piece(recording, record) for recording in recordings for record in recording.allocations]
    return [piece for piece in found if same_device(piece.device, device)]


def same_device(one, other):
    return one.type == other.type and (one.type == "cpu" or (one.index or 0) == (other.index or 0))


def happenings(found):
    """(nanoseconds or -1, action, bytes, piece) in the order of time."""
    listed = [
        (piece.start if piece.start is not None else -1, Action.CREATE if piece.start is not None else
            Action.PREEXISTING, piece.bytes, piece)
        for piece in found
    ]  # fmt: skip
    listed += [(piece.end, Action.DESTROY, -piece.bytes, piece) for piece in found if piece.end is not None]
    return sorted(listed, key=lambda happening: happening[0])


def by_category(found):
    """[microseconds, bytes by category at each]; the first column is a zero, to stack the others on."""
    times, sizes = [], []
    listed = happenings(found)
    first = next((time for time, *_ in listed if time >= 0), 0)
    for time, _action, size, piece in listed:
        time = (time if time >= 0 else first) // 1000
        if not times:
            sizes.append([0] * (1 + len(ORDER)))
            times.append(time)
        elif time != times[-1]:
            sizes.append(list(sizes[-1]))
            times.append(time)
        sizes[-1][1 + COLUMN[piece.category]] += size
    return [times, sizes]


def raw(found):
    """(nanoseconds, action, bytes, category) of each happening."""
    return [[time, action.value, size, COLUMN[piece.category]] for time, action, size, piece in happenings(found)]


def category_text(category):
    return "unknown" if category is None else category.name.lower().replace("_", " ")


class CategoryLayers:
    """The colors of the page: one a category."""

    title, kind = "Memory by what it was for", "what for"
    names = [category_text(category) for category in ORDER]

    def number(self, holder):
        return self.names.index(holder[0])


def holder_of(piece):
    """The innermost line outside of cresset, and what it was for."""
    category = category_text(piece.category)
    for file, line, function in piece.frames:
        if not is_ours(file):
            return (category, file, line, function)
    return (category, "", 0, BEFORE[3] if piece.start is None else "outside of Python")


def html_page(found, device):
    before, events = {}, []
    for time, action, size, piece in happenings(found):
        holder = holder_of(piece)
        if action is Action.PREEXISTING:
            before[holder] = before.get(holder, 0) + size
        else:
            events.append((time, size, holder))
    return page(Timeline(events, before), f"Memory of {device}", str(device), layers=CategoryLayers())


def export(path, recordings, device):
    """Write it in the form that the name's ending asks for."""
    path = os.fspath(path)
    found = pieces(recordings, device)
    if path.endswith(".html"):
        text = html_page(found, device)
    else:
        text = json.dumps(raw(found) if path.endswith("raw.json.gz") else by_category(found))
    opened = gzip.open if path.endswith(".gz") else open
    with opened(path, "wt", encoding="utf-8") as file:
        file.write(text)
