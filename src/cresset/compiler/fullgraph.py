"""compile(fullgraph=True): the program has to be one graph, so what it does may not depend on the elements of tensors.

Code runs eagerly, so the program itself shows it: inside of such a call, asking a tensor for its bool (`if x.sum() >
    0`, `while`, `and`,
`bool(x)`) is an error, and so is the list of its elements and `graph_break()`. Functions of cresset may look at values;
PyTorch's are one operator of the graph, too. A condition on `x.item()` is not noticed: the number does not know where
it came from.
"""

import functools
import sys

from .. import _native
from ..graph.places import asserts
from ..tensors.tensor import Tensor


class TorchDynamoException(RuntimeError):
    """The base of what goes wrong while a program is read."""


class Unsupported(TorchDynamoException):
    """A program that has to be one graph is none."""

    def __init__(self, msg="", *, case_name="", real_stack=None):
        super().__init__(msg)
        self.msg, self.case_name, self.real_stack = msg, case_name, real_stack


def refuse(what, _tensor, frame=None):
    """Raise Unsupported, unless the caller is cresset itself or an assert statement, which a graph can hold."""
    if what in ("the number in a tensor", "the address of a tensor"):
        return
    frame = frame or sys._getframe(1)
    if frame.f_code is Tensor.tolist.__code__:  # the method itself is Python
        frame = frame.f_back
    if frame.f_globals.get("__name__", "").partition(".")[0] == __package__.partition(".")[0] or asserts(frame):
        return
    raise Unsupported(
        f"compile: fullgraph=True allows a single graph, and this needs {what}, which only the data tell: "
        f"{frame.f_code.co_filename}:{frame.f_lineno}, in {frame.f_code.co_name}. Use torch.where, or compile with "
        "fullgraph=False"
    )


def graph_break(msg=""):
    """Ask for a new graph from here on: an error inside of compile(fullgraph=True). A backend of one's own gets one."""
    watcher = _native.watch_values(None)
    _native.watch_values(watcher)
    capture = getattr(watcher, "__self__", None)
    if hasattr(capture, "end_graph"):
        watcher = capture.watcher
        capture.end_graph(f"the program calls graph_break(){': ' + msg if msg else ''}")
    if watcher is refuse:
        raise Unsupported(
            "compile: fullgraph=True allows a single graph, and the program calls "
            f"graph_break(){': ' + msg if msg else ''}"
        )


def one_graph(function):
    """`function`, which fails where it would not be one graph."""

    @functools.wraps(function)
    def checked(*args, **kwargs):
        before = _native.watch_values(refuse)
        try:
            return function(*args, **kwargs)
        finally:
            _native.watch_values(before)

    return checked
