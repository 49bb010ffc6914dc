"""Functions of a program that are told of each function and module that was compiled or recorded: checks of the
compiler, such as writing everything to an archive and reading it back, are made of them.
"""

import contextlib
import weakref

_hooks = [None, None]  # of modules, of functions
_told = weakref.WeakSet()  # the types of modules that were told of


def set_hooks(module_hook, function_hook):
    """Call `module_hook(module)` and `function_hook(function)` from now on; None for none."""
    _hooks[:] = module_hook, function_hook


def hooks():
    """The two, of modules and of functions."""
    return tuple(_hooks)


@contextlib.contextmanager
def disabled():
    """A block in which nobody is told."""
    before = hooks()
    set_hooks(None, None)
    try:
        yield
    finally:
        set_hooks(*before)


def function_made(function):
    """Tell of a Function that was compiled or recorded."""
    if _hooks[1] is not None:
        from .objects import ScriptFunction

        _hooks[1](ScriptFunction(function))


def module_made(module):
    """Tell of a module, after its submodules; once for all modules of a type."""
    if _hooks[0] is None:
        return
    for inner in module._modules.values():
        if hasattr(inner, "_script_type"):
            module_made(inner)
    if module._script_type not in _told:
        _told.add(module._script_type)
        _hooks[0](module._c)
