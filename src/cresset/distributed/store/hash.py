"""A store inside of one process, for its threads."""

import threading
import time

from ..errors import DistStoreError
from .base import Store
from .table import Later, Table


class HashStore(Store):
    """A store that threads of one process share.

    >>> store = cresset.distributed.HashStore()
    >>> store.set("first_key", "first_value")
    >>> store.get("first_key"), store.add("count", 2)
    (b'first_value', 2)
    """

    def __init__(self, _table=None):
        super().__init__()
        self._table, self._changed = _table or (Table(), threading.Condition())

    def request(self, operation, keys=(), values=(), timeout=0.0):
        deadline, state = time.monotonic() + timeout, {}
        with self._changed:
            while True:
                try:
                    answer = self._table.answer(operation, keys, values, state)
                except Later:
                    if not self._changed.wait(max(0.0, deadline - time.monotonic())) and time.monotonic() >= deadline:
                        raise DistStoreError(too_late(operation, keys, timeout)) from None
                else:
                    self._changed.notify_all()
                    return answer

    def clone(self):
        other = HashStore((self._table, self._changed))
        other._timeout = self._timeout
        return other


def too_late(operation, keys, timeout):
    """The words for a request that waited in vain."""
    names = ", ".join(repr(key.decode(errors="replace")) for key in keys[:8]) + (", ..." if len(keys) > 8 else "")
    return f"Store.{operation}: Wait timeout: nobody set {names} within {timeout:g} s"
