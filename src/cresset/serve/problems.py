"""Why a request is not answered as asked: a status and a sentence."""


class Refused(Exception):
    """A request that is answered with `status` and a sentence that says why."""

    def __init__(self, status, message, headers=()):
        super().__init__(message)
        self.status, self.message, self.headers = status, message, headers


def is_memory(error):
    """Whether an exception says that there is no memory: Python's own, or that of the allocators of CPU and GPU."""
    words = str(error)
    return isinstance(error, MemoryError) or "can't allocate memory" in words or "out of memory" in words
