"""What a program's own lines cost: time in operators, which is measured, time of Python, which is sampled, and memory
of tensors. `cresset profile` prints it."""

import linecache
import os
import signal

from .. import _native
from . import stacks
from .recording import ProfilerActivity, Recording, supported_activities
from .tables import cut

PERIOD = 0.001  # seconds between two looks at Python
SIGNAL = signal.SIGRTMAX - 3  # makes the main thread look; see native/bindings/sampler.h


class Line:
    """One line of the program. Times are in nanoseconds: `own` is spent in the line itself, in operators and in
    packages that it calls; `total` also in other lines of the program that it calls.
    """

    def __init__(self, file, number):
        self.file, self.number = file, number
        self.own = self.total = self.operators = self.python = self.device = self.calls = 0
        self.allocated = self.at_peak = self.most = 0
        self.device_allocated = self.device_at_peak = 0

    @property
    def place(self):
        return f"{os.path.basename(self.file)}:{self.number}" if self.file else "outside of your code"

    @property
    def text(self):
        text = linecache.getline(self.file, self.number).strip() if self.file else ""
        return "".join(letter if letter.isprintable() else " " for letter in text)  # nothing that moves the cursor

    def __repr__(self):
        return f"<Line {self.place} own={time_text(self.own)} calls={self.calls}>"


class LineProfile:
    """Watches a program from start() to stop(), both from the main thread; attribute() finds the lines.

    Args:
        keep_events: keep every call too, for a trace; `events` has them afterwards.
        starter: the file of what starts the program, and is none of it: the command `cresset` itself.
    """

    def __init__(self, keep_events=False, starter=None):
        self.keep_events, self.starter, self.own_folder = keep_events, starter, None
        self.lines, self.samples, self.time, self.peaks = {}, 0, 0, (0, 0)

    def start(self):
        self.folder = os.getcwd()  # names of files may be relative to it
        self.recording = Recording(
            record_shapes=self.keep_events, profile_memory=True, with_stack=True, with_flops=False,
            keep_events=self.keep_events, sums=True, cuda=ProfilerActivity.CUDA in supported_activities(),
        )  # fmt: skip
        self.recording.start()
        self.handled = signal.signal(SIGNAL, _native.profile_look)
        signal.siginterrupt(SIGNAL, False)  # the system goes on with what it interrupts
        _native.profile_sample(PERIOD, SIGNAL)

    def stop(self):
        _native.profile_sample_stop()
        signal.signal(SIGNAL, self.handled)
        self.recording.stop()
        self.time = self.recording.ended - self.recording.began
        self.stacks, sums = self.recording.stacks, self.recording.sums
        self.samples, self.peaks = sums["samples"], sums["peaks"]
        self.sums = sums

    def attribute(self, own_folder=None):
        """Find the lines. Files under `own_folder` are the program's, even where they lie among installed packages."""
        self.own_folder = os.path.join(own_folder, "") if own_folder else None
        sums = self.sums
        for number, _name, calls, time in sums["operators"]:
            line = self._spend(number, time)
            line.operators += time
            line.calls += calls
        for number, time in sums["python"]:
            self._spend(number, time).python += time
        for number, time in sums.get("device", ()):
            self.line_of(number).device += time
        for number, side, _count, allocated, _held, at_peak, most in sums["memory"]:
            line = self.line_of(number)
            if side == "cpu":
                line.allocated += allocated
                line.at_peak += at_peak
                line.most = max(line.most, most)
            else:
                line.device_allocated += allocated
                line.device_at_peak += at_peak

    @property
    def events(self):
        return self.recording.events

    def is_own(self, file):
        if stacks.is_ours(file) or file == self.starter:
            return False
        if self.own_folder and file.startswith(self.own_folder):  # may lie among installed packages, or hold such
            inside = file[len(self.own_folder) :]
            return not stacks.is_library(inside) and not (
                file.startswith(stacks.STANDARD) and not self.own_folder.startswith(stacks.STANDARD)
            )
        return not stacks.is_library(file)

    def own_lines(self, number):
        """(file, line) of the program's lines in a stack, innermost first, each once."""
        found = {}
        for file, line, _function in self.stacks.frames(number):
            if self.is_own(file):
                found.setdefault((os.path.join(self.folder, file), line))
        return list(found)

    def line_of(self, number):
        """The innermost of the program's lines in a stack; one without a file where there is none."""
        key = next(iter(self.own_lines(number)), ("", 0))
        if key not in self.lines:
            self.lines[key] = Line(*key)
        return self.lines[key]

    def _spend(self, number, time):
        line = self.line_of(number)
        line.own += time
        for key in self.own_lines(number) or [("", 0)]:
            if key not in self.lines:
                self.lines[key] = Line(*key)
            self.lines[key].total += time
        return line

    def memory_device(self):
        """Where the program's tensors were: a GPU if there were any."""
        return _native.device("cuda:0" if self.peaks[1] else "cpu")

    def flames(self):
        """What `flame.tree` draws."""
        for number, name, _calls, time in self.sums["operators"]:
            yield self.stacks.frames(number), name, time
        for number, time in self.sums["python"]:
            yield self.stacks.frames(number), None, time


def time_text(nanoseconds):
    """Three digits and a unit.

    >>> cresset.profiler.lines.time_text(1234567)
    '1.23 ms'
    """
    for unit, length in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if nanoseconds >= length or unit == "us":
            value = nanoseconds / length
            return f"{value:.{0 if value >= 99.95 else 1 if value >= 9.995 else 2}f} {unit}"
    return ""


def size_text(count):
    """Three digits and a unit; a dash for nothing.

    >>> cresset.profiler.lines.size_text(3 << 20)
    '3.00 MiB'
    """
    if not count:
        return "-"
    value, unit = float(count), "B"
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if abs(value) < 999.5 or unit == "TiB":
            break
        value /= 1024
    return f"{value:.{0 if value >= 99.95 or unit == 'B' else 1 if value >= 9.995 else 2}f} {unit}"


def count_text(count):
    return f"{count:,}" if count else "-"


def table(profile, rows=10, by_memory=False, width=120):
    """The costliest lines as text, and what all cost together."""
    whole = sum(line.own for line in profile.lines.values())
    has_device = profile.peaks[1] > 0 or any(line.device for line in profile.lines.values())
    columns = [
        ("self", lambda line: time_text(line.own)),
        ("share", lambda line: f"{100 * line.own / max(whole, 1):.1f}%"),
        ("total", lambda line: time_text(line.total)),
        ("calls", lambda line: count_text(line.calls)),
        ("allocated", lambda line: size_text(line.allocated)),
        ("at peak", lambda line: size_text(line.at_peak)),
    ]
    if has_device:
        columns[3:3] = [("GPU", lambda line: time_text(line.device) if line.device else "-")]
        columns += [
            ("GPU alloc.", lambda line: size_text(line.device_allocated)),
            ("GPU peak", lambda line: size_text(line.device_at_peak)),
        ]
    order = (lambda line: (line.device_at_peak, line.at_peak, line.allocated)) if by_memory else lambda line: line.own
    own = sorted((line for line in profile.lines.values() if line.file), key=order, reverse=True)
    shown = [line for line in own[:rows] if line.own or line.allocated or line.device_allocated]
    others = sums_of([line for line in own if line not in shown], f"{len(own) - len(shown)} other lines")
    outside = sums_of([line for line in profile.lines.values() if not line.file], "outside of your lines")
    listed = shown + [line for line in (others, outside) if line.own or line.allocated]
    cells = [[text(line) for _, text in columns] for line in listed]
    widths = [max(len(title), *(len(row[i]) for row in cells), 4) for i, (title, _) in enumerate(columns)]
    places = [line.place for line in listed]
    numbers = sum(widths) + 2 * len(widths)
    place_width = max([len(place) for place in places] + [4])
    one_row = width - numbers - place_width - 2 >= 28  # there is room for the line's text beside its place
    lines = ["  ".join(title.rjust(w) for (title, _), w in zip(columns, widths)) + "  line"]
    lines.append("  ".join("-" * w for w in widths) + "  " + "-" * max(min(width - numbers, 60), 4))
    for line, row, place in zip(listed, cells, places):
        text = "  ".join(cell.rjust(w) for cell, w in zip(row, widths)) + "  "
        if one_row:
            text += f"{place.ljust(place_width)}  {cut(line.text, width - numbers - place_width - 2)}"
            lines.append(text.rstrip())
        else:
            lines.append(text + cut(place, max(width - numbers, 12)))
            if line.text:
                lines.append("    " + cut(line.text, width - 4))
    return "\n".join(lines) + "\n"


class sums_of(Line):
    """Several lines as one row."""

    def __init__(self, lines, name):
        super().__init__("", 0)
        self.name = name
        for key in ("own", "operators", "python", "device", "calls", "allocated", "at_peak", "device_allocated",
            "device_at_peak"):  # fmt: skip
            setattr(self, key, sum(getattr(line, key) for line in lines))
        self.total = self.own

    place = property(lambda self: self.name)
    text = ""


def summary(profile, name):
    """What the program took in all, in one or two sentences."""
    operators = sum(line.operators for line in profile.lines.values())
    python = sum(line.python for line in profile.lines.values())
    memory = f"tensors held {size_text(profile.peaks[0])} at most" if profile.peaks[0] else "no tensors"
    if profile.peaks[1]:
        memory += f", {size_text(profile.peaks[1])} on the GPU"
    return (
        f"{name}: {time_text(profile.time)}. Operators {time_text(operators)}, Python and waiting "
        f"{time_text(python)} ({profile.samples:,} sample{'s' * (profile.samples != 1)}); {memory}."
    )
