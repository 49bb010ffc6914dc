"""Where a program is while it is recorded: its line, its module, and whether it asserts."""

import linecache
import opcode
import os
import re
import sys

from .. import _native

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


class RunningNode:
    """The notes of the node of a graph that is being run, if new nodes are to take them over; else None."""

    def __init__(self):
        self.meta = None


running_node = RunningNode()


class Place:
    """A line of the program, the module in which it runs, and whether it is recorded for backward there; `meta` holds
    the notes of the node that is being run."""

    def __init__(self):
        frame, self.function = sys._getframe(1), ""
        while frame is not None and frame.f_code.co_filename.startswith(PACKAGE):
            if "<locals>" not in frame.f_code.co_qualname:  # not what a decorator puts around a function
                self.function = frame.f_code.co_name  # in the end, what the program calls
            frame = frame.f_back
        self.line = f"{frame.f_code.co_filename}:{frame.f_lineno}, in {frame.f_code.co_name}" if frame else ""
        self.meta = running_node.meta
        self.module, self.records = _native.running_module_path(), _native.is_grad_enabled()

    @property
    def stack_trace(self):
        """The line as Python's tracebacks write it, with its code."""
        if not self.line:
            return ""
        file, number, function = re.match(r"(?s)(.*):(\d+), in (.*)", self.line).groups()
        return f'File "{file}", line {number}, in {function}\n    {linecache.getline(file, int(number)).strip()}'

    def __str__(self):
        return "; ".join(filter(None, [self.line, self.module and f"in the module {self.module}"]))


def asserts(frame):
    """Whether the frame stands at the condition of `assert`: what comes after the jump raises AssertionError."""
    code, jump = frame.f_code.co_code, frame.f_lasti
    steps = [(opcode.opname[code[i]], code[i + 1]) for i in range(jump, min(jump + 40, len(code)), 2)]
    between = ("CACHE", "EXTENDED_ARG", "POP_JUMP_IF_TRUE", "NOT_TAKEN")
    following = next((step for step in steps[1:] if step[0] not in between), None)
    # From Python 3.14 on AssertionError is the first of the common constants.
    raises = following in (("LOAD_ASSERTION_ERROR", 0), ("LOAD_COMMON_CONSTANT", 0))
    return raises and (steps[0][0].startswith("POP_JUMP") or steps[0][0] == "TO_BOOL")
