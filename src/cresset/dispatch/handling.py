"""Whom a call is given to: the innermost mode, then the classes of the arguments."""

import threading

from .. import _native
from .._native import Tensor
from ..ops import aten_table
from . import translation


class _Modes(threading.local):
    def __init__(self):
        self.stack = []


_modes = _Modes()


def stack():
    """The modes of this thread, the innermost last."""
    return _modes.stack


def push(mode):
    """Let a mode see the calls of this thread."""
    _modes.stack.append(mode)
    _native.set_dispatching(True)


def pop():
    """Take off the innermost mode."""
    mode = _modes.stack.pop()
    _native.set_dispatching(bool(_modes.stack))
    return mode


class without_modes:
    """A block that no mode sees; gives the modes that were on."""

    def __enter__(self):
        self.kept, _modes.stack = _modes.stack, []
        _native.set_dispatching(False)
        return self.kept

    def __exit__(self, *_):
        _modes.stack = self.kept
        _native.set_dispatching(bool(self.kept))


def below(func, args, kwargs):
    """`func` on the memory of its arguments, unrecorded, as if their classes did not answer for them."""
    disabled, recording = _native.set_dispatch_disabled(True), _native.set_grad_mode(False)
    try:
        with without_modes():
            return func(*args, **kwargs)
    finally:
        _native.set_dispatch_disabled(disabled)
        _native.set_grad_mode(recording)


def _asked(args, kwargs):
    """The arguments whose classes are asked, one of each class, subclasses before their bases."""
    asked = []
    for value in (*args, *kwargs.values()):
        for leaf in value if isinstance(value, (list, tuple)) else (value,):
            if not _native.is_dispatched(leaf) or any(type(leaf) is type(other) for other in asked):
                continue
            place = next((i for i, other in enumerate(asked) if issubclass(type(leaf), type(other))), len(asked))
            asked.insert(place, leaf)
    return asked


def give(func, args, kwargs):
    """What the mode or class that is responsible makes of `func(*args, **kwargs)`."""
    asked = _asked(args, kwargs)
    types = tuple(type(tensor) for tensor in asked)
    if _modes.stack:
        mode = pop()
        try:
            rule = _rule(func, type(mode))
            result = (
                mode.__torch_dispatch__(func, types, args, kwargs)
                if rule is None
                else rule(mode, func, types, args, kwargs)
            )
        finally:
            push(mode)
        if result is not NotImplemented:
            return result
    for tensor in asked:
        rule = _rule(func, type(tensor))
        if rule is None:
            result = tensor.__torch_dispatch__(func, types, args, kwargs)
        else:
            result = rule(type(tensor), func, types, args, kwargs)
        if result is not NotImplemented:
            return result
    names = ", ".join(f"tensor subclass {kind}" for kind in types)
    raise TypeError(
        f"Multiple dispatch failed for 'torch._ops.{func}'; all __torch_dispatch__ handlers returned NotImplemented:\n"
        f"  {names}\n"
        "For more information, try re-running with TORCH_LOGS=not_implemented"
    )


def give_or_run(func, args, kwargs):
    """The same, or `func(*args, **kwargs)` where nobody is responsible."""
    return give(func, args, kwargs) if _modes.stack or _asked(args, kwargs) else func(*args, **kwargs)


def _rule(func, kind):
    """What was registered for an operator and a class or mode, by torch.library.register_torch_dispatch."""
    return getattr(func, "_dispatch_rules", {}).get(kind)


def handle(name, args, out):
    """A call of one of our operators: asked by the call path. `args` are in the order of its signature."""
    base = name.partition(".")[0]
    if base == "to" or base in translation.METHODS_OF_DTYPES:
        found = translation.converted(name, args)
        return args[0] if found is None else give(*found)
    if base == "contiguous" and out is None:
        found = translation.made_contiguous(*args)
        return args[0] if found is None else give(*found)
    found = translation.aten_call(name, args, out)
    if found is None:
        return translation.made_of_others(name, args, out)
    func, args, kwargs = found
    return give(func, args, kwargs)


def give_own(name, function, args):
    """What the classes of the arguments make of a function of ours, which they see as `torch.ops.cresset.<name>`."""
    return give(translation.own_function(name, function), args, {})


def item(tensor):
    """The number that a tensor holds: asked by `item()`, `bool()` and their like."""
    if tensor.numel() != 1:
        raise RuntimeError(f"a Tensor with {tensor.numel()} elements cannot be converted to Scalar")
    number = give(aten_table.packet("_local_scalar_dense").default, (tensor,), {})
    return number.item() if isinstance(number, Tensor) else number


def lift(tensor):
    """A tensor that was made of data, as modes see it come into being."""
    return give(aten_table.packet("lift_fresh").default, (tensor,), {}) if _modes.stack else tensor
