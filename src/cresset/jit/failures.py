"""Exceptions of a running program: which line of TorchScript raised them."""

from .. import _native

HEADER = "The following operation failed in the TorchScript interpreter."
TRACEBACK = "Traceback of TorchScript (most recent call last):"


class Error(Exception):
    """What a program itself raises (`raise`, `assert`); torch.jit.Error."""

    __module__ = "torch.jit"
    python_class = None  # the name that the program raised, such as "builtins.ValueError"


def raise_exception(message, class_name=None):
    """`prim::RaiseException`."""
    error = Error(message)
    error.python_class = class_name
    raise error


def _text(frames, kind, message):
    return f"{HEADER}\n{TRACEBACK}\n{''.join(reversed(frames))}{kind}: {message}\n"


def _frame(program, place):
    ranges = getattr(program, "ranges", ())
    if 0 <= place < len(ranges):
        shown = ranges[place].highlight()
        first, _, rest = shown.partition("\n")
        return f"{first}, in {program.__name__}\n{rest}"
    return f'  File "<unknown>", in {program.__name__}\n'


def _told(program, place, error):
    """The exception that leaves a program: RuntimeError with the operator's message at the end, or torch.jit.Error."""
    frames = getattr(error, "_frames", None)
    if frames is None:
        frames, kind, message = [], _kind(error), str(error)
        if not isinstance(error, Error):
            original, error = error, _class_for(error)()
            error.__cause__ = original
            error.__suppress_context__ = False
        error._frames, error._kind, error._message = frames, kind, message
    frames.append(_frame(program, place))
    error.args = (_text(frames, error._kind, error._message),)
    return error


def _kind(error):
    if isinstance(error, Error):
        return error.python_class or "RuntimeError"
    return (
        type(error).__name__
        if isinstance(error, RuntimeError)
        else f"RuntimeError: {type(error).__name__}"
        if not str(error)
        else "RuntimeError"
    )


def _class_for(error):
    """Subclasses of RuntimeError that PyTorch has (running out of memory) stay what they are."""
    return (
        type(error)
        if isinstance(error, RuntimeError) and type(error) is not RuntimeError and _plain(type(error))
        else RuntimeError
    )


def _plain(kind):
    try:
        kind()
    except TypeError:
        return False
    return True


_native.set_program_failure(_told)
