"""What torch.jit knows of the present moment: whether it is switched on, and who is tracing."""

import os
import threading

_this_thread = threading.local()
_jit_caching_layer = {}  # function -> its compiled form
_jit_function_overload_caching = {}  # function -> the compiled forms of its signatures


class EnabledProxy:
    """Whether `script` and `trace` compile, or give back what they got: PYTORCH_JIT=0 switches them off."""

    def __init__(self):
        self.enabled = os.environ.get("PYTORCH_JIT", "1") != "0"

    def __bool__(self):
        return self.enabled


_enabled = EnabledProxy()


def disable():
    """Let `script` give back what it gets."""
    _enabled.enabled = False


def enable():
    _enabled.enabled = True


def tracing():
    """The recorder of torch.jit.trace in this thread, or None."""
    return getattr(_this_thread, "tracing", None)


def set_tracing(recorder):
    """Say who is tracing in this thread. Gives who was."""
    before = tracing()
    _this_thread.tracing = recorder
    return before


def clear_class_registry():
    """Forget which classes were compiled, and the names that they have: the next class of a name gets it."""
    from .scripting import unit

    _clear_class_state()
    unit.taken.clear()


def _clear_class_state():
    """Forget which classes were compiled."""
    from .scripting import unit

    unit.forget()
    _jit_caching_layer.clear()
    _jit_function_overload_caching.clear()
