"""PyTorch's place for what happens when a worker process of somebody's own loader dies. Our loader watches its workers
by their pipes and has no need of it.
"""

import faulthandler as _faulthandler
import os as _os
import signal as _signal
import threading as _threading

_pids = {}  # of a loader's iterator, by its id
_handling = False


def _set_worker_signal_handlers():
    """In a worker: a crash prints where it was."""
    _faulthandler.enable()


def _set_worker_pids(key, pids):
    if key in _pids:
        raise ValueError(f"_set_worker_pids: the worker processes of {key} are known already; remove them first")
    _pids[key] = tuple(pids)


def _remove_worker_pids(key):
    if key not in _pids:
        raise ValueError(f"_remove_worker_pids: no worker processes of {key} are known")
    del _pids[key]


def _error_if_any_worker_fails():
    """RuntimeError for a worker that ended by a signal or with an error; its status is left for who waits for it."""
    for key, pids in list(_pids.items()):
        for pid in pids:
            try:
                ended = _os.waitid(_os.P_PID, pid, _os.WEXITED | _os.WNOHANG | _os.WNOWAIT)
            except ChildProcessError:
                continue
            # SIGTERM is how multiprocessing ends the processes that are left when the program ends.
            fine = (_os.CLD_EXITED, 0), (_os.CLD_KILLED, _signal.SIGTERM)
            if ended is None or (ended.si_code, ended.si_status) in fine:
                continue
            _pids[key] = ()  # said once
            how = (
                f"exited unexpectedly with exit code {ended.si_status}"
                if ended.si_code == _os.CLD_EXITED
                else f"is killed by signal: {_signal.strsignal(ended.si_status)}"
            )
            raise RuntimeError(f"DataLoader worker (pid {pid}) {how}")


def _set_SIGCHLD_handler():
    """From now on the end of a worker is seen at once, in the main thread; a handler that was there is called, too."""
    global _handling
    if _handling or _threading.current_thread() is not _threading.main_thread():
        return
    before = _signal.getsignal(_signal.SIGCHLD)

    def handler(number, frame):
        _error_if_any_worker_fails()
        if callable(before):
            before(number, frame)

    _signal.signal(_signal.SIGCHLD, handler)
    _handling = True
