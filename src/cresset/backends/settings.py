"""How the settings of a backend work: names of a module that are checked when they are set, `flags` that set several
for a block, and the freezing of all of them."""

import contextlib
import sys
import types

__all__ = ["Kept", "Made", "boolean", "freeze", "is_frozen", "make_flags", "make_settings"]

_frozen = [False]


def freeze():
    """From now on only `flags` change settings."""
    _frozen[0] = True


def is_frozen():
    """Whether `freeze` was called."""
    return _frozen[0]


@contextlib.contextmanager
def _thawed():
    before, _frozen[0] = _frozen[0], False
    try:
        yield
    finally:
        _frozen[0] = before


def boolean(name, value):
    """`value`, which must be True or False."""
    if not isinstance(value, bool):
        raise RuntimeError(f"{name} expects a bool, but got {type(value).__name__}")
    return value


class Made:
    """A setting that is found by a function, and set by another one."""

    def __init__(self, get, put):
        self.get, self.put, self.freezes = get, put, True

    def __set_name__(self, owner, name):
        self.name = name

    def __get__(self, module, kind=None):
        return self if module is None else self.get()

    def __set__(self, module, value):
        if _frozen[0] and self.freezes:
            name = module.__name__.replace("cresset.", "torch.", 1)
            raise RuntimeError(
                f"not allowed to set {name} flags after disable_global_flags; please use flags() context manager "
                "instead"
            )
        self.put(value)


class Kept(Made):
    """A setting that keeps its value.

    Args:
        value: the first one.
        check: takes the setting's name and a value, and gives what is to be kept, or raises.
        tell: called after a change.
        freezes: whether `freeze` is about this setting.
    """

    def __init__(self, value, check=boolean, tell=None, freezes=True):
        super().__init__(lambda: self.value, self._keep)
        self.value, self.check, self.tell, self.freezes = value, check, tell, freezes

    def _keep(self, value):
        self.value = self.check(self.name, value)
        if self.tell is not None:
            self.tell()


def make_settings(module_name, **settings):
    """Make these names of a module settings."""
    module = sys.modules[module_name]
    module.__class__ = type("Settings", (types.ModuleType,), settings)


def make_flags(module_name, **defaults):
    """(set_flags, flags) of a module: a function that sets several of its settings and gives what they were, and its
    context manager.

    A value of None leaves a setting as it is.
    """
    names = tuple(defaults)

    def given(who, prefix, args, settings):
        if len(args) > len(names):
            raise TypeError(f"{who}() takes {len(names)} positional arguments but {len(args)} were given")
        found = dict(zip(names, args, strict=False))
        for name, value in settings.items():
            plain = name.removeprefix(prefix)
            if not name.startswith(prefix) or plain not in defaults:
                raise TypeError(f"{who}() got an unexpected keyword argument {name!r}")
            if plain in found:
                raise TypeError(f"{who}() got multiple values for argument {name!r}")
            found[plain] = value
        return found

    def put(settings):
        module = sys.modules[module_name]
        before = {name: getattr(module, name) for name in names}
        for name, value in settings.items():
            if value is not None:
                setattr(module, name, value)
        return before

    def set_flags(*args, **settings):
        return tuple(put(given("set_flags", "_", args, settings)).values())

    @contextlib.contextmanager
    def flags(*args, **settings):
        wanted = {**defaults, **given("flags", "", args, settings)}
        with _thawed():
            before = put(wanted)
        try:
            yield
        finally:
            with _thawed():
                for name, value in before.items():
                    setattr(sys.modules[module_name], name, value)

    set_flags.__doc__ = "Set several settings, by names with an underscore before them; gives what they were."
    flags.__doc__ = (
        f"Inside, the settings are {', '.join(f'{name}={value!r}' for name, value in defaults.items())} unless given."
    )
    return set_flags, flags
