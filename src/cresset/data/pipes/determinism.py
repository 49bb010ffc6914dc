"""Pipes whose order may differ from run to run say so, and a program may refuse them."""

from .pipe import IterDataPipe

__all__ = ["guaranteed_datapipes_determinism", "non_deterministic"]

_guaranteed = False


class guaranteed_datapipes_determinism:
    """From here on, or inside a `with` block, pipes that are marked `non_deterministic` cannot be made.

    >>> with cresset.utils.data.guaranteed_datapipes_determinism():
    ...     cresset.utils.data.non_deterministic(cresset.utils.data.IterDataPipe)()
    Traceback (most recent call last):
    TypeError: IterDataPipe is non-deterministic, but you set 'guaranteed_datapipes_determinism'. Make this pipe ...
    """

    def __init__(self):
        global _guaranteed
        self.prev, _guaranteed = _guaranteed, True

    def __enter__(self):
        pass

    def __exit__(self, *_):
        global _guaranteed
        _guaranteed = self.prev


class non_deterministic:
    """Marks a class of pipes, or, with a function of the constructor's arguments that says so, some of its instances.

    >>> @cresset.utils.data.non_deterministic(lambda source, sorted=True: not sorted)
    ... class Names(cresset.utils.data.IterDataPipe):
    ...     def __init__(self, source, sorted=True):
    ...         self.source = source
    """

    def __init__(self, arg):
        self.cls, self.deterministic_fn = None, None
        if isinstance(arg, type):
            self.cls = _checked(arg, "Only `IterDataPipe` can be decorated with `non_deterministic`")
        elif callable(arg):
            self.deterministic_fn = arg
        else:
            raise TypeError(f"{arg} can not be decorated by non_deterministic")

    def __call__(self, *args, **kwargs):
        if self.cls is None:
            self.cls = _checked(args[0], "Only `IterDataPipe` can be decorated")
            return self.deterministic_wrapper_fn
        self._refuse_if(True, "")
        return self.cls(*args, **kwargs)

    def deterministic_wrapper_fn(self, *args, **kwargs):
        """Make an instance, if it may be made."""
        varies = self.deterministic_fn(*args, **kwargs)
        if not isinstance(varies, bool):
            raise TypeError(
                "deterministic_fn of `non_deterministic` decorator is required to return a boolean value, but "
                f"{type(varies)} is found"
            )
        self._refuse_if(varies, " with the inputs")
        return self.cls(*args, **kwargs)

    def _refuse_if(self, varies, why):
        if _guaranteed and varies:
            raise TypeError(
                f"{self.cls.__name__} is non-deterministic{why}, but you set 'guaranteed_datapipes_determinism'. Make "
                "this pipe outside of it, if another order each time is all right"
            )


def _checked(cls, what):
    if not (isinstance(cls, type) and issubclass(cls, IterDataPipe)):
        raise TypeError(f"{what}, but {getattr(cls, '__name__', cls)} is found")
    return cls
