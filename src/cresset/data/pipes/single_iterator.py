"""One iterator of a pipe at a time.

A pipe may keep samples between two calls of next(), as shuffle does; two iterators would take them from each other. So
each new iterator has the next number and resets the pipe, and an older one raises when it is asked for more. Branches
of one stream (branches.py) count together: `_begin_iterator` and `_is_current` are theirs to say.
"""

import functools
import inspect
import reprlib

import cresset

__all__ = ["described", "one_at_a_time", "with_count"]


def described(pipe):
    """A pipe and its arguments, for messages and for the profiler."""
    wanted = set(inspect.signature(type(pipe)).parameters)
    shown = {name: value for name, value in inspect.getmembers(pipe) if name in wanted}
    return f"{type(pipe).__name__}({', '.join(f'{name}={_short(value)}' for name, value in shown.items())})"


def _short(value):
    if isinstance(value, functools.partial):  # whose arguments may be whole datasets
        return f"functools.partial({_short(value.func)})"
    return value.__name__ if inspect.isfunction(value) else reprlib.repr(value)


def begin_iterator(pipe):
    """The number of a new iterator of `pipe`, which is reset for it."""
    if hasattr(pipe, "_begin_iterator"):
        return pipe._begin_iterator()
    pipe._valid_iterator_id = 0 if pipe._valid_iterator_id is None else pipe._valid_iterator_id + 1
    pipe._number_of_samples_yielded = 0
    pipe.reset()
    return pipe._valid_iterator_id


def check_is_current(pipe, number):
    if hasattr(pipe, "_is_current"):
        if pipe._is_current(number):
            return
        reason = (
            "because a new iterator has been created from one of the ChildDataPipes of "
            f"{described(pipe.main_datapipe)}."
        )
    elif pipe._valid_iterator_id == number:
        return
    else:
        reason = (
            f"because another iterator has been created from the same IterDataPipe: {described(pipe)}\nTo read a pipe "
            "twice at a time, `.fork()` it."
        )
    raise RuntimeError(f"This iterator has been invalidated {reason}\n(single iterator per IterDataPipe constraint)")


def recorded(pipe):
    """A range of the profiler with the pipe's name."""
    if "_profile_name" not in pipe.__dict__:
        pipe._profile_name = described(pipe).replace("IterDataPipe", "")
    return cresset.autograd.profiler.record_function(pipe._profile_name)


class Numbered:
    """An iterator of a pipe whose `__iter__` is no generator."""

    def __init__(self, iterator, pipe, counts):
        self._iterator, self._pipe, self._counts = iterator, pipe, counts
        self._number = begin_iterator(pipe)

    def __iter__(self):
        return self

    def __next__(self):
        check_is_current(self._pipe, self._number)
        if cresset.autograd._profiler_enabled():
            with recorded(self._pipe):
                sample = next(self._iterator)
        else:
            sample = next(self._iterator)
        if self._counts:
            self._pipe._number_of_samples_yielded += 1
        return sample

    def __getattr__(self, name):
        return getattr(self._iterator, name)


def one_at_a_time(method, is_its_own):
    """The `__iter__` of a class of pipes. `is_its_own`: the class has `__next__`, which counts."""
    if inspect.isgeneratorfunction(method):

        @functools.wraps(method)
        def numbered_generator(self):  # begins with the first sample, as the generator itself does
            samples, number, profiled = method(self), begin_iterator(self), cresset.autograd._profiler_enabled()
            try:
                while True:
                    check_is_current(self, number)
                    if profiled:
                        with recorded(self):
                            sample = next(samples)
                    else:
                        sample = next(samples)
                    self._number_of_samples_yielded += 1
                    yield sample
            except StopIteration:
                return
            except Exception as error:
                _say_where(error, self)
                raise
            finally:
                samples.close()

        return numbered_generator

    @functools.wraps(method)
    def numbered(self):
        iterator = method(self)
        return Numbered(iterator, self, counts=not (is_its_own and iterator is self))

    return numbered


def with_count(method):
    """The `__next__` of a class of pipes that are their own iterators."""

    @functools.wraps(method)
    def counted(self):
        sample = method(self)
        self._number_of_samples_yielded += 1
        return sample

    return counted


def _say_where(error, pipe):
    """Add to the text of an exception which pipe it came from, once."""
    text = error.args[0] if error.args and isinstance(error.args[0], str) else ""
    if "thrown by __iter__ of" not in text and "single iterator per IterDataPipe" not in text:
        error.args = (f"{text}\nThis exception is thrown by __iter__ of {described(pipe)}", *error.args[1:])
