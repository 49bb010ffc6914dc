"""The user's own classes and functions that files may name: add_safe_globals and its relatives."""

__all__ = ["add_safe_globals", "clear_safe_globals", "get_safe_globals", "safe_globals"]

_added = []


def _title(item):
    if isinstance(item, tuple):
        if len(item) != 2 or not callable(item[0]) or not isinstance(item[1], str):
            raise ValueError(f"add_safe_globals: expected (callable, 'module.name'), got {item!r}")
        return item[1]
    if not hasattr(item, "__module__") or not hasattr(item, "__qualname__"):
        raise ValueError(f"add_safe_globals: expected classes and functions, got {item!r}")
    # A built-in method of a class has no module; the class has.
    module = item.__module__ or getattr(getattr(item, "__self__", None), "__module__", None) or "builtins"
    from .saving import torch_name

    return ".".join(torch_name(module, item.__qualname__))


def add_safe_globals(safe_globals):
    """Let files name these classes and functions. A file can then build the classes and call the functions with
    arguments of its choice.

    Args:
        safe_globals: a list of them, or of pairs (callable, "module.name as it stands in the file").

    >>> class Settings: pass
    >>> cresset.serialization.add_safe_globals([Settings])
    >>> Settings in cresset.serialization.get_safe_globals()
    True
    >>> cresset.serialization.clear_safe_globals()
    """
    for item in safe_globals:
        _title(item)
        if item not in _added:
            _added.append(item)


def get_safe_globals():
    """The classes and functions that files may name, as they were added."""
    return list(_added)


def clear_safe_globals():
    """Forget all that add_safe_globals has added."""
    _added.clear()


def safe_titles():
    """From "module.name" to the object."""
    return {_title(item): item[0] if isinstance(item, tuple) else item for item in _added}


class safe_globals:
    """Inside, files may name these classes and functions; see add_safe_globals.

    >>> class Settings: pass
    >>> with cresset.serialization.safe_globals([Settings]):
    ...     cresset.serialization.get_safe_globals() == [Settings]
    True
    """

    def __init__(self, safe_globals):
        self.names = safe_globals

    def __enter__(self):
        self.before = get_safe_globals()
        add_safe_globals(self.names)

    def __exit__(self, *_):
        _added[:] = self.before
