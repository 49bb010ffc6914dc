"""torch.distributed.checkpoint.api: the error of processes that save or load together."""

__all__ = ["CheckpointException"]


class CheckpointException(BaseException):
    """Some processes could not do their part; `failures` has the error of each, by rank."""

    def __init__(self, msg, failures):
        super().__init__(msg, failures)
        self.failures = failures

    def __str__(self):
        lines = [f"{type(self).__name__} ranks:{set(self.failures)}"]
        return "\n".join([*lines, *(f"rank {rank}: {error}" for rank, error in sorted(self.failures.items()))])
