"""torch.futures: a result that comes later."""

import threading
import types


class Future:
    """A result, or an exception, that somebody sets and others wait for.

    >>> future = cresset.futures.Future()
    >>> doubled = future.then(lambda done: 2 * done.value())
    >>> future.set_result(3)
    >>> doubled.wait()
    6
    """

    __class_getitem__ = classmethod(types.GenericAlias)  # Future[int] says what the result will be

    def __init__(self, *, devices=None):
        if devices is not None:
            from ._native import device

            bad = [one for one in devices if device(one).type != "cuda"]
            if bad:
                raise ValueError(f"Expected devices to be CUDA devices, got {bad[0]}")
        self._condition = threading.Condition()
        self._done, self._result, self._exception, self._callbacks = False, None, None, []

    def done(self):
        """Whether there is a result or an exception."""
        return self._done

    def wait(self):
        """The result, once it is there; an exception that was set is raised."""
        with self._condition:
            while not self._done:
                self._condition.wait()
        return self.value()

    def value(self):
        """The result, which must be there already."""
        if not self._done:
            raise RuntimeError("Future: the result is not there yet; call wait()")
        if self._exception is not None:
            raise self._exception
        return self._result

    def _finish(self, result, exception):
        with self._condition:
            if self._done:
                raise RuntimeError("Future can only be marked completed once, and it is; make a new one")
            self._result, self._exception, self._done = result, exception, True
            callbacks, self._callbacks = self._callbacks, []
            self._condition.notify_all()
        for callback in callbacks:
            callback(self)

    def set_result(self, result):
        """Give the result."""
        self._finish(result, None)

    def set_exception(self, result):
        """Give an exception, which wait raises."""
        if not isinstance(result, Exception):
            raise AssertionError(f"{result} is of type {type(result)}, not an Exception.")
        self._finish(None, result)

    def _when_done(self, callback):
        with self._condition:
            if not self._done:
                self._callbacks.append(callback)
                return
        callback(self)

    def add_done_callback(self, callback):
        """Call `callback` with this future when it is done; what the callback raises is printed and goes no further."""

        def careful(future):
            try:
                callback(future)
            except Exception:
                import traceback

                traceback.print_exc()

        self._when_done(careful)

    def __reduce__(self):
        raise RuntimeError("Can not pickle torch.futures.Future; send its result")

    def then(self, callback):
        """A future of what `callback` makes of this one when it is done; what it raises comes as a RuntimeError."""

        def tell(error):
            told = RuntimeError(f"Got the following error when running the callback: {type(error).__name__}: {error}")
            told.__cause__ = error
            return told

        return self._followed(callback, tell)

    def _followed(self, callback, tell=lambda error: error):
        """The same with what `tell` makes of an exception."""
        following = Future()

        def run(future):
            try:
                result = callback(future)
            except Exception as error:
                following.set_exception(tell(error))
            else:
                following.set_result(result)

        self._when_done(run)
        return following


def collect_all(futures):
    """A future of the list of these futures, done when all of them are.

    >>> first, second = cresset.futures.Future(), cresset.futures.Future()
    >>> both = cresset.futures.collect_all([first, second])
    >>> first.set_result(1); second.set_result(2)
    >>> [future.wait() for future in both.wait()]
    [1, 2]
    """
    futures, together, lock = list(futures), Future(), threading.Lock()
    if any(future is None for future in futures):
        raise RuntimeError("collect_all: Future can't be None")
    left = len(futures)

    def one_done(_):
        nonlocal left
        with lock:
            left -= 1
            last = left == 0
        if last:
            together.set_result(futures)

    if not futures:
        together.set_result(futures)
    for future in futures:
        future._when_done(one_done)
    return together


def wait_all(futures):
    """The results of all, in order; the first exception is raised."""
    return [future.wait() for future in collect_all(futures).wait()]
