"""How a run tells where it is: one live line in a terminal, a live text in a notebook, and lines that stay in a log
file.
"""

import math
import os
import sys
import time

from cresset.serialization.quoting import printable

LIVE_SECONDS = 0.1  # between two pictures of a live line
LOG_SECONDS = 30.0  # between two lines of a log within an epoch


def is_notebook():
    """Whether the output goes to a notebook's cell."""
    module = sys.modules.get("IPython")
    shell = module.get_ipython() if module is not None else None
    return shell is not None and hasattr(shell, "kernel")


def make_progress(kind="auto", stream=None):
    """The progress for `kind`: "terminal", "notebook", "log", "none", or "auto", which looks where the output goes."""
    stream = stream or sys.stdout
    if kind is True or kind == "auto":
        if is_notebook():
            kind = "notebook"
        else:
            kind = "terminal" if stream.isatty() and os.environ.get("TERM") != "dumb" else "log"
    if kind is False or kind is None or kind == "none":
        return Progress()
    kinds = {"terminal": TerminalLine, "notebook": NotebookText, "log": LogLines}
    if kind not in kinds:
        raise ValueError(f"fit: progress should be 'auto', 'terminal', 'notebook', 'log' or 'none', got {kind!r}")
    return kinds[kind](stream)


def short(value):
    """A number in at most four digits."""
    if isinstance(value, int):
        return str(value)
    if not isinstance(value, float):
        return str(value)
    return f"{value:.4g}" if math.isfinite(value) else str(value)


def words(values):
    return "  ".join(
        f"{printable(name)} {short(value)}" for name, value in values.items() if isinstance(value, (int, float))
    )


def duration(seconds):
    """
    >>> duration(75.2)
    '1:15'
    """
    seconds = int(seconds)
    hours, minutes = seconds // 3600, seconds // 60 % 60
    return f"{hours}:{minutes:02}:{seconds % 60:02}" if hours else f"{minutes}:{seconds % 60:02}"


class Progress:
    """Says nothing; the others are made of it. `next_time` is when the loop should call `show` again."""

    next_time = math.inf

    def begin_epoch(self, epoch, epochs, batches, done=0):
        self.epoch, self.epochs, self.batches = epoch, epochs, batches
        self.began, self.first = time.perf_counter(), done

    def show(self, _batch, _values):
        """Called within an epoch, after `batch` batches of it."""

    def end_epoch(self, _values):
        pass

    def say(self, _text):
        """A line that stays."""

    def close(self):
        pass

    def _line(self, batch, values):
        spent = time.perf_counter() - self.began
        rate = (batch - self.first) / spent if spent > 0 else 0.0
        head = f"epoch {self.epoch}/{self.epochs}"
        if not self.batches:
            return f"{head}  batch {batch}  {words(values)}  {rate:.3g} batches/s"
        share = min(1.0, batch / self.batches)
        full = round(20 * share)
        left = (self.batches - batch) / rate if rate > 0 else 0
        return f"{head} {'█' * full}{'░' * (20 - full)} {batch}/{self.batches}  {words(values)}  {duration(left)} left"

    def _summary(self, values):
        return f"epoch {self.epoch}/{self.epochs}  {words(values)}  {duration(time.perf_counter() - self.began)}"


class TerminalLine(Progress):
    """Rewrites one line; the summary of an epoch stays."""

    def __init__(self, stream):
        self.stream, self.next_time, self.live = stream, 0.0, False

    def _put(self, text):
        try:
            width = os.get_terminal_size(self.stream.fileno()).columns or 100  # 0: it does not know
        except (OSError, ValueError, AttributeError):
            width = 100
        self.stream.write("\r\x1b[K" + text[: width - 1])

    def show(self, batch, values):
        self.next_time = time.perf_counter() + LIVE_SECONDS
        self._put(self._line(batch, values))
        self.live = True
        self.stream.flush()

    def say(self, text):
        self.stream.write(("\r\x1b[K" if self.live else "") + text + "\n")
        self.live = False
        self.stream.flush()

    def end_epoch(self, values):
        self.say(self._summary(values))

    def close(self):
        if self.live:
            self.stream.write("\n")
            self.stream.flush()


class LogLines(Progress):
    """Whole lines only: one an epoch, and one now and then in long epochs."""

    def __init__(self, stream):
        self.stream = stream
        self.next_time = time.perf_counter() + LOG_SECONDS

    def show(self, batch, values):
        self.next_time = time.perf_counter() + LOG_SECONDS
        of = f" of {self.batches}" if self.batches else ""
        self.say(f"epoch {self.epoch}/{self.epochs}  batch {batch}{of}  {words(values)}")

    def say(self, text):
        self.stream.write(text + "\n")
        self.stream.flush()

    def end_epoch(self, values):
        self.say(self._summary(values))


class NotebookText(Progress):
    """One output of the cell that is rewritten: the epochs so far, and the running one."""

    def __init__(self, _stream):
        from IPython.display import display

        self.next_time, self.lines = 0.0, []
        self.handle = display(self._text(""), display_id=True)

    def _text(self, live):
        from html import escape

        from IPython.display import HTML

        return HTML(
            '<pre style="line-height:1.4;color:inherit;background:none">'
            + escape("\n".join([*self.lines, live]))
            + "</pre>"
        )

    def show(self, batch, values):
        self.next_time = time.perf_counter() + 2 * LIVE_SECONDS
        self.handle.update(self._text(self._line(batch, values)))

    def say(self, text):
        self.lines.append(text)
        self.handle.update(self._text(""))

    def end_epoch(self, values):
        self.say(self._summary(values))
