"""What a process of a job says when it fails, and what the agent makes of it."""

import functools
import json
import os
import signal
import sys
import time
import traceback
from dataclasses import dataclass, field


@dataclass
class ProcessFailure:
    """The end of a process that failed: `message` says why, as far as it said so itself."""

    local_rank: int
    pid: int
    exitcode: int
    error_file: str
    rank: int = -1
    timestamp: float = field(default_factory=time.time)
    message: str = ""

    def signal_name(self):
        """The signal that ended it, or ''."""
        if self.exitcode < 0:
            try:
                return signal.Signals(-self.exitcode).name
            except ValueError:
                return f"signal {-self.exitcode}"
        return ""

    def timestamp_isoformat(self):
        """When it ended."""
        return time.strftime("%Y-%m-%d_%H:%M:%S", time.localtime(self.timestamp))


class ChildFailedError(Exception):
    """A process failed; says which was the first, and why."""

    def __init__(self, name, failures):
        self.name, self.failures = name, failures
        super().__init__(self.format_msg())

    def get_first_failure(self):
        """The rank of the first that failed, and its failure."""
        rank = min(self.failures, key=lambda r: self.failures[r].timestamp)
        return rank, self.failures[rank]

    def format_msg(self):
        """The whole story."""
        rank, first = self.get_first_failure()
        lines = ["", "=" * 60, f"{self.name} FAILED", "-" * 60, "Root Cause (first observed failure):"]
        lines += self._lines(rank, first)
        others = [(r, f) for r, f in sorted(self.failures.items()) if r != rank]
        if others:
            lines += ["-" * 60, "Other Failures:"]
            for r, f in others:
                lines += self._lines(r, f)
        return "\n".join([*lines, "=" * 60])

    @staticmethod
    def _lines(rank, failure):
        how = f"exit code {failure.exitcode}"
        if failure.exitcode < 0:
            how = f"Signal {-failure.exitcode} ({failure.signal_name()}) received"
        unsaid = "put @torch.distributed.elastic.multiprocessing.errors.record on the main function to see it"
        return [
            f"  time      : {failure.timestamp_isoformat()}",
            f"  rank      : {rank} (local_rank: {failure.local_rank})",
            f"  exitcode  : {failure.exitcode} (pid: {failure.pid})",
            f"  why       : {how}",
            "  traceback : " + (failure.message or unsaid).replace("\n", "\n              "),
        ]


def record(fn, error_handler=None):
    """A decorator for the main function of a program: what it raises is told to the agent that started it.

    Args:
        error_handler: PyTorch's class that writes the file; there is one way here.
    """

    @functools.wraps(fn)
    def wrapper(*args, **kwargs):
        try:
            return fn(*args, **kwargs)
        except SystemExit:
            raise
        except BaseException as error:
            write(error)
            raise

    return wrapper


def write(error):
    """Put an error where the agent reads it."""
    path = os.environ.get("TORCHELASTIC_ERROR_FILE")
    if not path:
        return
    more = {"py_callstack": "".join(traceback.format_exception(error)), "timestamp": str(int(time.time()))}
    try:
        with open(path, "w") as file:
            json.dump({"message": {"message": f"{type(error).__name__}: {error}", "extraInfo": more}}, file)
    except OSError as problem:
        print(f"record: the error cannot be told to the agent: {problem}", file=sys.stderr)


def read(path):
    """What a process wrote, or ''."""
    try:
        with open(path) as file:
            return str(json.load(file)["message"]["extraInfo"]["py_callstack"]).strip()
    except (OSError, ValueError, KeyError, TypeError):
        return ""
