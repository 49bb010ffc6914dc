"""Notes that nodes carry along while graphs are made from graphs: which node, which line, which annotation."""

import contextlib
import functools
import traceback

from ..graph.places import running_node

__all__ = [
    "annotate",
    "annotate_fn",
    "format_stack",
    "get_current_meta",
    "has_preserved_node_meta",
    "preserve_node_meta",
    "reset_grad_fn_seq_nr",
    "set_current_meta",
    "set_stack_trace",
]

current_meta = {}
should_preserve_node_meta = False


@contextlib.contextmanager
def preserve_node_meta(enable=True):
    """Inside, new nodes take over the notes of the node that is being run."""
    global should_preserve_node_meta, current_meta
    before, meta = should_preserve_node_meta, current_meta.copy()
    should_preserve_node_meta = enable
    try:
        yield
    finally:
        should_preserve_node_meta, current_meta = before, meta


def has_preserved_node_meta():
    return should_preserve_node_meta


@contextlib.contextmanager
def annotate(annotation_dict):
    """Inside, nodes that are made carry these notes under `custom`."""
    global current_meta
    before = current_meta.get("custom")
    current_meta["custom"] = {**(before or {}), **annotation_dict}
    try:
        yield
    finally:
        if before is None:
            current_meta.pop("custom", None)
        else:
            current_meta["custom"] = before


def annotate_fn(annotation_dict):
    """A decorator: calls of the function run inside `annotate`."""

    def decorate(function):
        @functools.wraps(function)
        def annotated(*args, **kwargs):
            with annotate(annotation_dict):
                return function(*args, **kwargs)

        return annotated

    return decorate


def set_stack_trace(stack):
    if should_preserve_node_meta and stack:
        current_meta["stack_trace"] = "".join(stack)


def format_stack():
    """Where the program is, or where the node that is being run came from."""
    return (
        [current_meta["stack_trace"]]
        if should_preserve_node_meta and "stack_trace" in current_meta
        else traceback.format_list(traceback.extract_stack()[:-1])
    )


@contextlib.contextmanager
def set_current_meta(node, pass_name=""):
    """Inside, a node's notes are those that new nodes take over."""
    global current_meta
    if not should_preserve_node_meta or not node.meta:
        yield
        return
    before = current_meta
    current_meta = {**node.meta, "from_node": [*node.meta.get("from_node", []), (node.name, pass_name or node.target)]}
    running_node.meta, meta_before = current_meta, running_node.meta
    try:
        yield
    finally:
        current_meta, running_node.meta = before, meta_before


def get_current_meta():
    return current_meta


def reset_grad_fn_seq_nr():
    current_meta.pop("grad_fn_seq_nr", None)
    current_meta.pop("in_grad_fn", None)
