"""`torch.jit.fork` in a compiled program: a function that runs beside the caller. A wait for one that no thread has
begun runs it itself, so that functions that fork and wait inside each other cannot starve.
"""

import threading
from concurrent.futures import ThreadPoolExecutor

from .. import _native
from ..futures import Future

_lock = threading.Lock()
_pool = None


def _threads():
    global _pool
    with _lock:
        if _pool is None:
            import os

            _pool = ThreadPoolExecutor(
                max_workers=max(_native.get_num_threads(), 2), thread_name_prefix="torch.jit.fork"
            )
            os.register_at_fork(after_in_child=_forget)
    return _pool


def _forget():
    """A forked process has none of the threads."""
    global _pool, _lock
    _pool, _lock = None, threading.Lock()


class Task(Future):
    """The result of a forked call."""

    def __init__(self, function, args, kwargs=None):
        super().__init__()
        self._call, self._begun = (function, args, kwargs or {}), threading.Lock()
        self._grad = _native.is_grad_enabled()

    def run(self):
        """Compute the result, unless another thread does."""
        if not self._begun.acquire(blocking=False):
            return
        (function, args, kwargs), self._call = self._call, None
        before = _native.is_grad_enabled()
        _native.set_grad_mode(self._grad)
        try:
            result = function(*args, **kwargs)
        except BaseException as error:
            self.set_exception(error)
        else:
            self.set_result(result)
        finally:
            _native.set_grad_mode(before)

    def wait(self):
        self.run()
        return super().wait()


class Fork:
    """Calling it starts a program and gives its Task."""

    def __init__(self, program):
        self.program = program

    def __call__(self, *args):
        return start(self.program, args)


def start(function, args, kwargs=None):
    """A Task that another thread may begin from now on."""
    task = Task(function, args, kwargs)
    _threads().submit(task.run)
    return task
