"""Groups that are computed often are printed (printing.py) and compiled in a thread of their own, one after another.

Meanwhile, and where that fails, they run as lists of loops. What goes wrong is told once, as a warning.
"""

import atexit
import contextlib
import ctypes
import os
import queue
import subprocess
import threading
import warnings

from .. import _native

_libraries = []  # the core holds addresses in them, and they live as long as the process
_lock = threading.Lock()


class _Worker:
    """The thread, the groups that wait, and the compiler that runs."""

    def __init__(self):
        self.groups, self.thread, self.compiler, self.warned, self.ended = queue.SimpleQueue(), None, None, False, False

    def ask(self, key):
        self.groups.put(key)
        with _lock:
            if self.thread is None and not self.ended:
                self.thread = threading.Thread(target=self.work, name="cresset-compile", daemon=True)
                self.thread.start()

    def work(self):
        while (key := self.groups.get()) is not None:
            if isinstance(key, threading.Event):  # somebody waits for what was asked before
                key.set()
                continue
            address = 0
            try:
                address = self.compile(key)
            except Exception as error:
                said = getattr(error, "stderr", None) or ""
                self.warn(f"{type(error).__name__}: {error}\n{said.strip()[-2000:]}".strip())
            if not self.ended:
                _native.install_group(key, address)

    def compile(self, key):
        # The formulas are read when the first group is printed: most programs never need them here.
        from ..ops.pointwise import system_compiler
        from . import telling
        from .printing import group_source

        if not system_compiler.is_wanted():
            return 0
        compiler = system_compiler.find()
        if compiler is None:
            self.warn("no C++ compiler was found; CRESSET_COMPILER=none says that none is wanted")
            return 0
        source = group_source(key)
        if source is None or self.ended:
            return 0
        telling.tell("output_code", lambda: source)
        library = system_compiler.load(source, compiler, self.run)
        telling.tell("kernel_code", lambda: source)
        _libraries.append(library)
        return ctypes.cast(library.cresset_group, ctypes.c_void_p).value

    def run(self, command, **options):
        """subprocess.run of this module, that can be stopped.

        It has the program's own priority: it takes as much of the processors at any, and the sooner the function is
        there, the sooner it pays. (Two busy threads on two cores: there after 0.5 s instead of 0.6 to 1.8, and up to a
        third more steps in the first two seconds.)
        """
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as self.compiler:
            out, err = self.compiler.communicate()
        if self.compiler.returncode:
            raise subprocess.CalledProcessError(self.compiler.returncode, command[0], out, err)

    def warn(self, reason):
        if self.warned or self.ended:
            return
        self.warned = True
        with contextlib.suppress(Warning):  # where warnings are errors, there is nobody here to catch one
            warnings.warn(
                f"compile: groups are computed as lists of loops, since they cannot be compiled: {reason}", stacklevel=2
            )

    def end(self):
        """The program ends: what is being compiled is given up."""
        self.ended = True
        self.groups.put(None)
        if self.compiler is not None:
            with contextlib.suppress(OSError):
                self.compiler.kill()
        if self.thread is not None:
            self.thread.join(5)


_worker = _Worker()


def ask(key):
    """Print and compile the group; the core takes the function when it is there."""
    _worker.ask(key)


def wait():
    """Until all groups that were asked for are compiled."""
    if _worker.thread is not None:
        done = threading.Event()
        _worker.groups.put(done)
        done.wait()


def _begin_anew():
    global _worker, _lock
    _worker, _lock = _Worker(), threading.Lock()


atexit.register(lambda: _worker.end())
os.register_at_fork(after_in_child=_begin_anew)
