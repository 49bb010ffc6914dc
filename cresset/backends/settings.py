"""How a backend's `flags` work: settings of a module that are set together and come back afterwards."""

import contextlib
import sys

__all__ = ["Namespace", "make_flags"]


class Namespace:
    """Settings as attributes."""

    def __init__(self, **settings):
        self.__dict__.update(settings)


def make_flags(module_name, **defaults):
    """(set_flags, flags) of a module: a function that sets several of its settings and gives what they were, and its context manager."""

    def set_flags(**settings):
        module = sys.modules[module_name]
        before = {"_" + name: getattr(module, name) for name in defaults}
        for name, value in settings.items():
            name = name.removeprefix("_")
            if name not in defaults:
                raise TypeError(f"set_flags() got an unexpected keyword argument '_{name}'")
            if value is not None:
                setattr(module, name, value)
        return before

    @contextlib.contextmanager
    def flags(**settings):
        unknown = set(settings) - set(defaults)
        if unknown:
            raise TypeError(f"flags() got an unexpected keyword argument {sorted(unknown)[0]!r}")
        module = sys.modules[module_name]
        before = {name: getattr(module, name) for name in defaults}
        for name, value in {**defaults, **settings}.items():
            setattr(module, name, value)
        try:
            yield
        finally:
            for name, value in before.items():
                setattr(module, name, value)

    set_flags.__doc__ = "Set several settings, by names with an underscore before them; gives what they were."
    flags.__doc__ = (
        f"Inside, the settings are {', '.join(f'{name}={value!r}' for name, value in defaults.items())} unless given."
    )
    return set_flags, flags
