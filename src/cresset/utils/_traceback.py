"""torch.utils._traceback: the stack of a place in the program, kept to be shown later."""

import contextlib
import linecache
import os
import traceback


class CapturedTraceback:
    """The stack at the time of `extract()`: files, lines and functions. The texts of the lines are looked up when it is
    shown.

    >>> from cresset.utils._traceback import CapturedTraceback
    >>> def here():
    ...     return CapturedTraceback.extract()
    >>> here().summary()[-1].name
    'here'
    """

    def __init__(self, frames):
        self._frames = frames

    @staticmethod
    def extract(*, script=False, cpp=False, skip=0):
        """The stack up to the caller, without its last `skip` frames. There are no frames of TorchScript or C++."""
        if script or cpp:
            raise NotImplementedError("CapturedTraceback.extract: only frames of Python are captured")
        frames = traceback.StackSummary.extract(traceback.walk_stack(None), lookup_lines=False)
        frames.reverse()
        return CapturedTraceback(traceback.StackSummary.from_list(frames[: len(frames) - 1 - skip]))

    def summary(self):
        """The frames, the innermost last."""
        return self._frames

    def format(self):
        """The lines of text, as of a traceback."""
        return traceback.format_list(self._frames)

    @staticmethod
    def format_all(tbs):
        """The lines of text of several."""
        return [captured.format() for captured in tbs]


def format_frame(frame, *, base=None, line=False):
    """A frame as file:line in function; with `line`, its text behind."""
    shown = os.path.relpath(frame.filename, base) if base else frame.filename
    return f"{shown}:{frame.lineno} in {frame.name}" + (f"  # {frame.line}" if line else "")


def format_traceback_short(tb):
    """The innermost frame of a traceback."""
    return format_frame(traceback.extract_tb(tb)[-1])


@contextlib.contextmanager
def report_compile_source_on_error():
    """In the block, tracebacks show the lines of code that was made from a text: its globals have the text as
    `__compile_source__`.
    """
    try:
        yield
    except Exception as error:
        for frame, _ in traceback.walk_tb(error.__traceback__):
            text = frame.f_globals.get("__compile_source__")
            if text is not None:
                lines, name = text.splitlines(keepends=True), frame.f_code.co_filename
                linecache.cache[name] = (len(text), None, lines, name)
        raise
