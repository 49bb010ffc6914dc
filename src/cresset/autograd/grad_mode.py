"""Whether calls are recorded: no_grad, enable_grad, set_grad_enabled and inference_mode, as contexts and as
decorators."""

import functools
import inspect
import warnings
from collections.abc import Callable
from typing import Any, TypeVar

from cresset import _native

F = TypeVar("F", bound=Callable[..., Any])

__all__ = [
    "enable_grad",
    "enforce_grad_layout_policy",
    "inference_mode",
    "is_multithreading_enabled",
    "no_grad",
    "set_grad_enabled",
    "set_multithreading_enabled",
]


class ModeContext:
    """A `with` block that is a decorator too: every call of the function (every step of a generator) runs in a fresh
    one.
    """

    def __call__(self, function: F) -> F:
        return run_inside(self.clone, function)

    def clone(self):
        return type(self)()


class PlainModeContext(ModeContext):
    """A mode without arguments, so that the decorator can be written without parentheses: `@no_grad`."""

    def __new__(cls, orig_func=None):
        return super().__new__(cls) if orig_func is None else cls()(orig_func)


def run_inside(context, function):
    """`function`, each call of it inside `with context():`."""
    if inspect.isclass(function):
        warnings.warn(
            f"{function.__name__}: Decorating classes is deprecated, since only the constructor runs in the mode. "
            "Decorate its `__init__` instead.",
            FutureWarning,
            stacklevel=3,
        )
        made = function

        def function(*args, **kwargs):
            return made(*args, **kwargs)

    elif inspect.isgeneratorfunction(function):
        return run_generator_inside(context, function)

    @functools.wraps(function)
    def inside(*args, **kwargs):
        with context():
            return function(*args, **kwargs)

    return inside


def run_generator_inside(context, function):
    """A generator whose own code runs in the mode, and whose caller's code does not."""

    @functools.wraps(function)
    def inside(*args, **kwargs):
        generator = function(*args, **kwargs)
        step = functools.partial(next, generator)
        while True:
            try:
                with context():
                    value = step()
            except StopIteration as end:
                return end.value
            try:
                received = yield value
                step = functools.partial(generator.send, received)
            except GeneratorExit:
                with context():
                    generator.close()
                raise
            except BaseException as thrown:
                step = functools.partial(generator.throw, thrown)

    return inside


class no_grad(PlainModeContext):
    """Calls inside are not recorded; results do not require gradients.

    >>> x = cresset.ones(2, requires_grad=True)
    >>> with cresset.no_grad():
    ...     y = x * 2
    >>> y.requires_grad
    False
    """

    def __enter__(self):
        self.prev = _native.set_grad_mode(False)

    def __exit__(self, *_):
        _native.set_grad_mode(self.prev)


class enable_grad(PlainModeContext):
    """Calls inside are recorded, even within no_grad.

    >>> x = cresset.ones(2, requires_grad=True)
    >>> with cresset.no_grad(), cresset.enable_grad():
    ...     y = x * 2
    >>> y.requires_grad
    True
    """

    def __enter__(self):
        self.prev = _native.set_grad_mode(True)

    def __exit__(self, *_):
        _native.set_grad_mode(self.prev)


class set_grad_enabled(ModeContext):
    """Switch recording on or off: at once when called, until the end of the block when used in `with`.

    >>> with cresset.set_grad_enabled(False):
    ...     cresset.is_grad_enabled()
    False
    """

    def __init__(self, mode):
        if not isinstance(mode, bool):
            raise TypeError(f"set_grad_enabled(): argument 'enabled' must be bool, not {type(mode).__name__}")
        self.mode = mode
        self.prev = _native.set_grad_mode(mode)

    def __call__(self, function: F) -> F:
        _native.set_grad_mode(self.prev)  # it was meant for the calls of `function`, not for now
        return super().__call__(function)

    def __enter__(self):
        _native.set_grad_mode(self.mode)

    def __exit__(self, *_):
        _native.set_grad_mode(self.prev)

    def __repr__(self):
        return f"set_grad_enabled(mode={self.mode})"

    def clone(self):
        return type(self)(self.mode)


class inference_mode(ModeContext):
    """Calls inside are not recorded, and their results can never be: cheaper than no_grad, and final.

    >>> with cresset.inference_mode():
    ...     y = cresset.ones(2) * 2
    >>> y.is_inference()
    True
    """

    def __new__(cls, mode=True):
        return super().__new__(cls) if isinstance(mode, bool) else cls()(mode)

    def __init__(self, mode=True):
        self.mode = mode

    def __enter__(self):
        self.prev = _native.set_inference_mode(self.mode), _native.set_grad_mode(not self.mode)

    def __exit__(self, *_):
        inference, grad = self.prev
        _native.set_inference_mode(inference)
        _native.set_grad_mode(grad)

    def clone(self):
        return type(self)(self.mode)


class Remembered(ModeContext):
    """A switch that PyTorch's programs set. It is remembered and read back; the engine here has no use for it."""

    enabled: bool

    def __init__(self, mode):
        self.mode, self.prev = bool(mode), type(self).enabled
        type(self).enabled = self.mode

    def __call__(self, function: F) -> F:
        type(self).enabled = self.prev
        return super().__call__(function)

    def __enter__(self):
        type(self).enabled = self.mode

    def __exit__(self, *_):
        type(self).enabled = self.prev

    def clone(self):
        return type(self)(self.mode)


class set_multithreading_enabled(Remembered):
    """Whether backward may use several threads. It always runs in the caller's thread."""

    enabled = True


def is_multithreading_enabled():
    """What `set_multithreading_enabled` set.

    >>> cresset.autograd.is_multithreading_enabled()
    True
    """
    return set_multithreading_enabled.enabled


class _force_original_view_tracking(Remembered):
    """Whether a view is differentiated as the operator that made it or by its strides, which give the same."""

    enabled = False


class enforce_grad_layout_policy(ModeContext):
    """Whether a gradient gets the strides of its leaf when it becomes `.grad`, as it does unless told otherwise.

    >>> x = cresset.ones(2, 3).t().requires_grad_()
    >>> with cresset.autograd.enforce_grad_layout_policy(False):
    ...     x.backward(cresset.ones(3, 2))
    >>> x.grad.stride()
    (2, 1)
    """

    def __init__(self, enable=True):
        self.mode, self.prev = enable, _native.set_keeps_grad_layout(enable)

    def __call__(self, function: F) -> F:
        _native.set_keeps_grad_layout(self.prev)
        return super().__call__(function)

    def __enter__(self):
        _native.set_keeps_grad_layout(self.mode)

    def __exit__(self, *_):
        _native.set_keeps_grad_layout(self.prev)

    def clone(self):
        return type(self)(self.mode)
