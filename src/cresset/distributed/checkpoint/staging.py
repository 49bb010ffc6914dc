"""torch.distributed.checkpoint.staging: who copies the state that async_save writes."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import cresset

__all__ = ["AsyncStager", "BlockingAsyncStager", "DefaultStager", "StagingOptions"]


def copied(value):
    """Nested state whose tensors are copies."""
    if isinstance(value, cresset.Tensor):
        return value.detach().clone()
    if isinstance(value, dict):
        return {key: copied(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(copied(item) for item in value)
    return value


@runtime_checkable
class AsyncStager(Protocol):
    """Something that copies state; a StorageWriter may be one."""

    @property
    def should_synchronize_after_execute(self) -> bool:
        """Whether async_save has to call synchronize_staging."""
        ...

    def stage(self, state_dict):
        """A copy, or a Future of it."""
        ...

    def synchronize_staging(self) -> None:
        """Wait for copies that are on their way."""
        ...

    def close(self) -> None:
        """Nothing will be copied any more."""
        ...


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
        return copied(state_dict) if self._thread is None else self._thread.submit(copied, state_dict)

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
        return copied(state_dict)

    @property
    def should_synchronize_after_execute(self):
        """Whether async_save has to call synchronize_staging."""
        return False

    def synchronize_staging(self):
        """Nothing is on its way."""

    def close(self):
        """Nothing has to end."""
