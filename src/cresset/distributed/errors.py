"""What goes wrong between processes."""


class DistError(RuntimeError):
    """Something went wrong in torch.distributed."""


class DistBackendError(DistError):
    """A collective failed: the message names the ranks, what each called and where."""


class DistNetworkError(DistError):
    """A connection could not be made or was lost."""


class DistStoreError(DistError):
    """A key did not come in time, or a store is broken."""


class QueueEmptyError(DistStoreError):
    """A queue of a store has nothing in it."""


for _error in (DistError, DistBackendError, DistNetworkError, DistStoreError, QueueEmptyError):
    _error.__module__ = "torch.distributed"
