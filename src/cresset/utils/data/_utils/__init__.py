"""PyTorch's places for what loaders are made of: collation, fetching, workers, pinned memory."""

import atexit
import importlib.util

MP_STATUS_CHECK_INTERVAL = 5.0  # seconds after which a process that waits for another looks whether it is alive
HAS_NUMPY = importlib.util.find_spec("numpy") is not None
python_exit_status = False  # whether Python is ending


@atexit.register
def _set_python_exit_flag():
    global python_exit_status
    python_exit_status = True


from . import collate, fetch, pin_memory, signal_handling, worker  # noqa: E402, F401
