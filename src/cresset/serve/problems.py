"""Why a request is not answered as asked: a status and a sentence."""


class Refused(Exception):
    """A request that is answered with `status` and a sentence that says why."""

    def __init__(self, status, message, headers=()):
        super().__init__(message)
        self.status, self.message, self.headers = status, message, headers
