"""A store that sees the keys of another under a prefix."""

from .base import Store


class PrefixStore(Store):
    """Keys of `store` that begin with `prefix` and a slash, without them.

    >>> store = cresset.distributed.HashStore()
    >>> cresset.distributed.PrefixStore("group", store).set("key", "value")
    >>> store.get("group/key")
    b'value'
    """

    def __init__(self, prefix, store):
        super().__init__()
        if not isinstance(prefix, str) or not isinstance(store, Store):
            raise TypeError(
                f"PrefixStore: takes a str and a Store, not {type(prefix).__name__} and {type(store).__name__}"
            )
        self._prefix, self._store, self._timeout = prefix, store, store.timeout

    @property
    def underlying_store(self):
        """The store that holds the keys."""
        return self._store

    @property
    def _underlying_non_prefix_store(self):
        return self._store._underlying_non_prefix_store if isinstance(self._store, PrefixStore) else self._store

    def request(self, operation, keys=(), values=(), timeout=0.0):
        start = self._prefix.encode() + b"/"
        answer = self._store.request(operation, [start + key for key in keys], values, timeout)
        return [key.removeprefix(start) for key in answer if key.startswith(start)] if operation == "list" else answer

    def hurry(self, seconds):
        self._store.hurry(seconds)

    def clone(self):
        other = PrefixStore(self._prefix, self._store.clone())
        other._timeout = self._timeout
        return other
