"""Whether results may depend on more than their inputs: the deterministic settings.

On the CPU, results never depend on the number of threads, whatever is set here. The settings decide whether memory that
nobody initialized is filled, and whether cuDNN may use algorithms on CUDA whose sums come in another order each time.
"""

import warnings

from .. import _native

__all__ = [
    "are_deterministic_algorithms_enabled", "get_deterministic_debug_mode",
    "is_deterministic_algorithms_warn_only_enabled", "is_warn_always_enabled", "set_deterministic_debug_mode",
    "set_warn_always", "use_deterministic_algorithms",
]  # fmt: skip

_state = {"deterministic": False, "warn_only": False, "fill": True, "warn_always": False}


def _tell_native():
    _native.set_fill_uninitialized(_state["deterministic"] and _state["fill"])
    _native.cuda.set_deterministic(_state["deterministic"])


def use_deterministic_algorithms(mode, *, warn_only=False):
    """Use only algorithms whose results are the same in every run. On the CPU, all are; on CUDA, all but some of
    cuDNN's.

    Memory that is not initialized (`empty`) is filled then, see `utils.deterministic`.

    >>> cresset.use_deterministic_algorithms(True)
    >>> cresset.are_deterministic_algorithms_enabled()
    True
    >>> cresset.use_deterministic_algorithms(False)
    """
    for name, place, value in (("mode", " (position 1)", mode), ("warn_only", "", warn_only)):
        if not isinstance(value, bool):
            raise TypeError(
                f"_set_deterministic_algorithms(): argument '{name}'{place} must be bool, not {type(value).__name__}"
            )
    _state["deterministic"], _state["warn_only"] = mode, warn_only
    _tell_native()


def are_deterministic_algorithms_enabled():
    """Whether `use_deterministic_algorithms` asked for them.

    >>> cresset.are_deterministic_algorithms_enabled()
    False
    """
    return _state["deterministic"]


def is_deterministic_algorithms_warn_only_enabled():
    """Whether an algorithm that is not deterministic would warn only.

    >>> cresset.is_deterministic_algorithms_warn_only_enabled()
    False
    """
    return _state["warn_only"]


_MODES = ("default", "warn", "error")


def set_deterministic_debug_mode(debug_mode):
    """`use_deterministic_algorithms` by a word or number: "default" or 0, "warn" or 1, "error" or 2.

    >>> cresset.set_deterministic_debug_mode("default")
    """
    if not isinstance(debug_mode, (int, str)):
        raise TypeError(f"set_deterministic_debug_mode: expected a str or int, got a {type(debug_mode).__name__}")
    if debug_mode not in (*_MODES, 0, 1, 2):
        raise RuntimeError(f"set_deterministic_debug_mode: expected one of {_MODES} or 0, 1, 2, got {debug_mode!r}")
    number = _MODES.index(debug_mode) if isinstance(debug_mode, str) else debug_mode
    use_deterministic_algorithms(number > 0, warn_only=number == 1)


def get_deterministic_debug_mode():
    """0, 1 or 2, see `set_deterministic_debug_mode`.

    >>> cresset.get_deterministic_debug_mode()
    0
    """
    return (1 if _state["warn_only"] else 2) if _state["deterministic"] else 0


def set_warn_always(b):
    """Whether warnings that come once a process come each time. Here they come through Python's `warnings`, which
    decides.

    >>> cresset.set_warn_always(False)
    """
    if not isinstance(b, bool):
        raise TypeError(f"set_warn_always: expected a bool, got {b!r}")
    _state["warn_always"] = b


def is_warn_always_enabled():
    """What `set_warn_always` set.

    >>> cresset.is_warn_always_enabled()
    False
    """
    return _state["warn_always"]


def alert_not_deterministic(caller):
    """Say that `caller`, a function of one's own, gives other results in each run: an error if deterministic ones are
    asked for, or a warning.
    """
    if not _state["deterministic"]:
        return
    text = (
        f"{caller} does not have a deterministic implementation, but you set 'torch.use_deterministic_algorithms(True"
    )
    if _state["warn_only"]:
        warnings.warn(text + ", warn_only=True)'.", stacklevel=2)
    else:
        raise RuntimeError(text + ")'. Turn it off for this operation, or use warn_only=True")
