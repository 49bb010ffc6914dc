"""Where in a model an exception came from: a note on it that names the innermost module and what came in.

The path is that below the outermost module that was called, so it grows while the exception passes outwards.
"""

import threading
import weakref

import cresset
from cresset import _native

_last = threading.local()  # the note that was written last: error (its id), module (the outermost so far), path, text


def _described(value):
    """A tensor by its shape, tensors in lists by theirs, anything else by its type."""
    if isinstance(value, cresset.Tensor):
        return str(tuple(value.shape))
    if isinstance(value, (list, tuple)) and value and len(value) <= 8:
        return f"[{', '.join(map(_described, value))}]"
    return "None" if value is None else type(value).__name__


def _arrived(args, kwargs):
    parts = [_described(value) for value in args]
    parts += [f"{name}={_described(value)}" for name, value in (kwargs or {}).items()]
    if not parts:
        return "no input"
    return ("inputs " if len(parts) > 1 else "input ") + ", ".join(parts)


def _path_to(inner, outer):
    """The dotted path of a module below another one, or None."""
    for name, module in outer.named_children():
        if module is inner:
            return name
    return next((path for path, module in outer.named_modules() if module is inner), None)


def note_module(module, args, kwargs, error):
    """Say on `error`, which is about to leave a call of `module`, where it came from. One note an exception."""
    notes = getattr(error, "__notes__", ())
    if getattr(_last, "error", None) == id(error) and _last.text in notes:
        inner = _last.module()
        path = _path_to(inner, module) if inner is not None and inner is not module else None
        if path is not None:
            path = f"{path}.{_last.path}" if _last.path else path
            text = f"in {path}: {_last.what}"
            notes[notes.index(_last.text)] = text
            _last.module, _last.path, _last.text = weakref.ref(module), path, text
    elif not any(note.startswith("in ") for note in notes):
        what = f"{type(module).__name__}({' '.join(module.extra_repr().split())}), {_arrived(args, kwargs)}"
        _last.error, _last.module, _last.path, _last.what = id(error), weakref.ref(module), "", what
        _last.text = f"in {what}"
        error.add_note(_last.text)


_native.set_module_note(note_module)
