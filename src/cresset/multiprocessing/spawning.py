"""spawn: run one function in several processes, and hear of the first that fails, with its traceback."""

import multiprocessing
import multiprocessing.connection
import os
import pickle
import signal
import sys
import tempfile
import time
import traceback


class ProcessException(Exception):
    """A process ended badly."""

    def __init__(self, msg, error_index, pid):
        super().__init__(msg)
        self.msg, self.error_index, self.pid = msg, error_index, pid

    def __reduce__(self):
        return type(self), (self.msg, self.error_index, self.pid)


class ProcessRaisedException(ProcessException):
    """The function raised an exception, whose traceback is in the message."""

    def __init__(self, msg, error_index, error_pid):
        super().__init__(msg, error_index, error_pid)


class ProcessExitedException(ProcessException):
    """A process ended by a signal or with an exit code."""

    def __init__(self, msg, error_index, error_pid, exit_code, signal_name=None):
        super().__init__(msg, error_index, error_pid)
        self.exit_code, self.signal_name = exit_code, signal_name

    def __reduce__(self):
        return type(self), (self.msg, self.error_index, self.pid, self.exit_code, self.signal_name)


def _run(function, index, args, error_file):
    try:
        function(index, *args)
    except KeyboardInterrupt:
        pass  # the parent was interrupted, too
    except Exception:
        with open(error_file, "wb") as file:
            pickle.dump(traceback.format_exc(), file)
        sys.exit(1)


class ProcessContext:
    """Processes that were started together."""

    def __init__(self, processes, error_files):
        self.processes, self.error_files = processes, error_files
        self.sentinels = {process.sentinel: index for index, process in enumerate(processes)}

    def pids(self):
        """The numbers of the processes."""
        return [int(process.pid) for process in self.processes]

    def join(self, timeout=None, grace_period=None):
        """Wait until one has ended. True when all have; an exception, after the others were ended, when one has
        failed."""
        if not self.sentinels:
            return True
        ready = multiprocessing.connection.wait(self.sentinels.keys(), timeout=timeout)
        failed = None
        for sentinel in ready:
            index = self.sentinels.pop(sentinel)
            process = self.processes[index]
            process.join()
            if process.exitcode != 0:
                failed = index
                break
        if failed is None:
            done = not self.sentinels
            if done:
                self._forget_files()
            return done
        self._end_others(grace_period)
        process = self.processes[failed]
        told = self._told(failed)
        self._forget_files()
        if told is not None:
            raise ProcessRaisedException(
                f"\n\n-- Process {failed} terminated with the following error:\n{told}", failed, process.pid
            )
        if process.exitcode < 0:
            name = signal.Signals(-process.exitcode).name
            raise ProcessExitedException(
                f"process {failed} terminated with signal {name}", failed, process.pid, process.exitcode, name
            )
        raise ProcessExitedException(
            f"process {failed} terminated with exit code {process.exitcode}", failed, process.pid, process.exitcode
        )

    def _end_others(self, grace_period):
        until = time.monotonic() + (grace_period or 0)
        for process in self.processes:
            if grace_period and process.is_alive():
                process.join(max(0, until - time.monotonic()))
        for process in self.processes:
            if process.is_alive():
                process.terminate()
        for process in self.processes:
            process.join(30)
            if process.is_alive():
                process.kill()
                process.join()

    def _told(self, index):
        if not os.path.getsize(self.error_files[index]):
            return None
        with open(self.error_files[index], "rb") as file:
            return pickle.load(file)

    def _forget_files(self):
        for path in self.error_files:
            if os.path.exists(path):
                os.unlink(path)


SpawnContext = ProcessContext


def start_processes(fn, args=(), nprocs=1, join=True, daemon=False, start_method="spawn"):
    """Run fn(i, *args) in `nprocs` processes, i = 0, 1, …. Waits for them with join=True; else gives a
    ProcessContext."""
    context, processes, files = multiprocessing.get_context(start_method), [], []
    for index in range(nprocs):
        with tempfile.NamedTemporaryFile(prefix="cresset-process-", suffix=".pickle", delete=False) as file:
            files.append(file.name)
        process = context.Process(target=_run, args=(fn, index, args, file.name), daemon=daemon)
        process.start()
        processes.append(process)
    together = ProcessContext(processes, files)
    if not join:
        return together
    while not together.join():
        pass
    return None


def spawn(fn, args=(), nprocs=1, join=True, daemon=False, start_method="spawn"):
    """Run fn(i, *args) in `nprocs` new processes, i = 0, 1, ….

    If one fails, the others are ended and its exception is raised here with its traceback. With join=False a
    ProcessContext is given, whose `join` waits.
    """
    if start_method != "spawn":
        import warnings

        warnings.warn(
            (
                f"spawn: this always starts processes by 'spawn', got start_method={start_method!r}; use "
                "start_processes "
                "for others"
            ),
            stacklevel=2,
        )
    return start_processes(fn, args, nprocs, join, daemon, "spawn")
