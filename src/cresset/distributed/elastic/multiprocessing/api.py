"""What becomes of what the processes of a job print, and of signals to their agent."""

import enum
import os
import tempfile


class Std(enum.IntFlag):
    """Streams of a process: none, what it prints, its errors, or both.

    >>> Std.from_str("0:1,1:3")
    {0: <Std.OUT: 1>, 1: <Std.ALL: 3>}
    """

    NONE = 0
    OUT = 1
    ERR = 2
    ALL = 3

    @classmethod
    def from_str(cls, vm):
        """From torchrun's notation: "3" for all processes, or "0:3,1:1"."""
        text = str(vm)
        try:
            if ":" not in text:
                return cls(int(text))
            return {int(rank): cls(int(what)) for rank, what in (pair.split(":") for pair in text.split(","))}
        except ValueError:
            raise ValueError(f"Std.from_str: {vm!r} is neither 0 to 3 nor RANK:0 to 3,...") from None


class SignalException(Exception):
    """A signal asked the agent to end, and its processes have."""

    def __init__(self, msg, sigval):
        super().__init__(msg)
        self.sigval = sigval


class LogsSpecs:
    """Which streams of processes go to files, and which are shown here.

    Args:
        log_dir: the folder; a new one of the system's if None.
        redirects: a Std, or one for each local rank: what goes to a file.
        tee: what goes to a file and is shown here, too.
        local_ranks_filter: show only what these processes print.
    """

    def __init__(self, log_dir=None, redirects=Std.NONE, tee=Std.NONE, local_ranks_filter=None):
        self._root_log_dir, self._redirects, self._tee = log_dir, redirects, tee
        self._local_ranks_filter = local_ranks_filter

    @property
    def root_log_dir(self):
        """The folder."""
        return self._root_log_dir


class DefaultLogsSpecs(LogsSpecs):
    """LogsSpecs whose folder is there."""

    def __init__(self, log_dir=None, redirects=Std.NONE, tee=Std.NONE, local_ranks_filter=None):
        if log_dir and log_dir != os.devnull:
            if os.path.exists(log_dir) and not os.path.isdir(log_dir):
                raise NotADirectoryError(f"log_dir: {log_dir} is a file")
            os.makedirs(log_dir, exist_ok=True)
        elif not log_dir and (redirects or tee):
            log_dir = tempfile.mkdtemp(prefix="torchelastic_")
        super().__init__(log_dir, redirects, tee, local_ranks_filter)

    def __repr__(self):
        return (
            f"DefaultLogsSpecs(root_log_dir={self._root_log_dir}, redirects={self._redirects}, tee={self._tee}, "
            f"local_ranks_filter={self._local_ranks_filter})"
        )


for _class in (Std, SignalException, LogsSpecs, DefaultLogsSpecs):
    _class.__module__ = "torch.distributed.elastic.multiprocessing.api"
