"""A process of a job that runs a function, in place of a program."""

import contextlib
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time

from .errors import write
from .processes import chosen, log_path, prefix_of


def _run(function, args, environment, files, signals, results):
    """What the new process does."""
    for name in signals:  # a forked process has the agent's handlers
        number = getattr(signal, name, None)
        if number is not None:
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    os.environ.update(environment)
    for number, path in files.items():
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        os.dup2(file, number)
        os.close(file)
    try:
        value = function(*args)
        results.send(value)
    except SystemExit:
        raise
    except BaseException as error:
        write(error)
        raise
    with contextlib.suppress(EOFError):
        results.recv()  # the memory of tensors is asked for here: stay until they have come


class Running:
    """The process, with the methods of subprocess.Popen that an agent calls; `value` is what the function gave."""

    def __init__(self, process, results):
        self.process, self.results, self.value, self.returncode = process, results, None, None

    @property
    def pid(self):
        """Its number."""
        return self.process.pid

    def poll(self):
        """Its exit status, None while it runs."""
        self.returncode = self.process.exitcode
        if self.results is not None and self.results.poll():
            with contextlib.suppress(EOFError, OSError):  # it ended without a result
                self.value = self.results.recv()
                self.results.send(None)
            self.results.close()
            self.results = None
        return self.returncode

    def wait(self, timeout):
        """Until it ends; subprocess.TimeoutExpired if that takes longer."""
        deadline = time.monotonic() + timeout
        while self.poll() is None:
            left = deadline - time.monotonic()
            if left <= 0:
                raise subprocess.TimeoutExpired(self.process.name, timeout)
            self.process.join(min(left, 0.05))
        return self.returncode

    def send_signal(self, number):
        """Send it a signal, if it runs."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self):
        """End it."""
        self.process.kill()
        self.process.join()
        self.poll()


class FunctionProcess:
    """As processes.Process."""

    def __init__(self, settings, local, rank, errors, environment, generation):
        self.local, self.rank, self.errors = local, rank, errors
        self.over, self.threads = threading.Event(), []
        redirects, tee = chosen(settings.redirects, local), chosen(settings.tee, local)
        hidden, files, shown = bool(settings.shown) and local not in settings.shown, {}, []
        for bit, name, out in ((1, "stdout", sys.stdout), (2, "stderr", sys.stderr)):
            if (redirects | tee) & bit:
                files[bit] = log_path(settings, generation, local, name)
                if tee & bit and not hidden:
                    shown.append((files[bit], out))
            elif hidden:
                files[bit] = os.devnull
        context = multiprocessing.get_context(settings.start_method)
        ours, theirs = context.Pipe()
        what = (settings.function, settings.args, environment, files, settings.signals, theirs)
        process = context.Process(target=_run, args=what)
        process.start()
        theirs.close()
        self.process = Running(process, ours)
        for path, out in shown:
            thread = threading.Thread(
                target=self.follow, args=(path, out, prefix_of(settings, local, rank)), daemon=True
            )
            thread.start()
            self.threads.append(thread)

    def follow(self, path, out, prefix):
        """Show here what the process writes to its file, until it is over."""
        rest, file = b"", None
        while True:
            last = self.over.wait(0.05)
            if file is None and os.path.exists(path):
                file = open(path, "rb")  # noqa: SIM115
            if file is not None:
                *lines, rest = (rest + file.read()).split(b"\n")
                lines += [rest] if last and rest else []
                for line in lines:
                    out.write(f"{prefix}{line.decode(errors='replace')}\n")
                out.flush()
            if last:
                break
        if file is not None:
            file.close()

    def close(self):
        """The process has ended: show the last of what it wrote."""
        self.over.set()
        for thread in self.threads:
            thread.join(5)
        self.threads = []
