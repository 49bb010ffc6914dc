"""torch.distributed.checkpoint.staging: who copies the state that async_save writes."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from . import _copied

__all__ = ["BlockingAsyncStager", "DefaultStager", "StagingOptions"]


@dataclass
class StagingOptions:
    """How state is copied.

    Args:
        use_async_staging: in a thread; the program must not change the state until it is copied.
        use_pinned_memory, use_shared_memory, use_non_blocking_copy: PyTorch's ways to copy from a GPU; copies are plain
            here.
    """

    use_pinned_memory: bool = True
    use_shared_memory: bool = True
    use_async_staging: bool = True
    use_non_blocking_copy: bool = True


class DefaultStager:
    """Copies state, in a thread of its own unless its options say otherwise.

    Args:
        config: a StagingOptions.
    """

    def __init__(self, config=None):
        self._config = StagingOptions() if config is None else config
        self._thread = ThreadPoolExecutor(max_workers=1) if self._config.use_async_staging else None

    def stage(self, state_dict):
        """A copy; a Future of it where copies are made in a thread."""
        return _copied(state_dict) if self._thread is None else self._thread.submit(_copied, state_dict)

    @property
    def should_synchronize_after_execute(self):
        """Whether async_save has to call synchronize_staging."""
        return False

    def synchronize_staging(self):
        """Wait for copies: whoever has the Future waits for it."""

    def close(self):
        """End the thread."""
        if self._thread is not None:
            self._thread.shutdown()


class BlockingAsyncStager:
    """Copies state while the program waits.

    Args:
        cache_staged_state_dict, type_check: PyTorch's, about memory that it keeps; a copy is new each time here.
    """

    def __init__(self, cache_staged_state_dict=False, type_check=False):
        pass

    def stage(self, state_dict):
        """A copy."""
        return _copied(state_dict)

    @property
    def should_synchronize_after_execute(self):
        """Whether async_save has to call synchronize_staging."""
        return False

    def synchronize_staging(self):
        """Nothing is on its way."""

    def close(self):
        """Nothing has to end."""
