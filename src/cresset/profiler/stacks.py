"""Stacks of Python's lines, as the recorder numbers them: equal stacks have one number."""

import os
import runpy
import sysconfig

RUNNERS = ("<frozen runpy>", "<frozen importlib")


class Stacks:
    """The lines of a recording. A stack is a number; -1 is the empty one.

    `lines` are (number of the stack around it, file, line, function), as `_native.profile_stop` gives them.
    """

    def __init__(self, lines=()):
        self.lines = lines
        self._texts = {-1: []}

    def frames(self, number):
        """(file, line, function) of a stack, innermost first."""
        found = []
        while number >= 0:
            number, file, line, function = self.lines[number]
            found.append((file, line, function))
        return found

    def texts(self, number):
        """The lines of a stack as text, "file(line): function", innermost first. Equal stacks get the same list."""
        unknown = []
        while number not in self._texts:
            unknown.append(number)
            number = self.lines[number][0]
        texts = self._texts[number]
        for number in reversed(unknown):
            _, file, line, function = self.lines[number]
            texts = self._texts[number] = [f"{file}({line}): {function}", *texts]
        return texts


def split_text(text):
    """(file, line, function) of "file(line): function".

    >>> cresset.profiler.stacks.split_text("train.py(12): step")
    ('train.py', 12, 'step')
    """
    place, _, function = text.rpartition("): ")
    file, _, line = place.rpartition("(")
    return (file, int(line), function) if line.isdigit() else ("", 0, text)


STANDARD = tuple({os.path.join(sysconfig.get_path(name), "") for name in ("stdlib", "platstdlib")})
PACKAGE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "")


def is_ours(file):
    """Whether a file belongs to cresset, or to what starts a program."""
    return file.startswith((PACKAGE, *RUNNERS)) or file == runpy.__file__


def is_library(file):
    """Whether a file came with Python or was installed. Text that was made at run time ("<string>") is no file."""
    parts = file.replace("\\", "/").split("/")
    return file.startswith(("<", *STANDARD)) or "site-packages" in parts or "dist-packages" in parts
