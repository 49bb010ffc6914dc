"""What every store offers. A store has one primitive, `request`, which asks a Table; the rest is written with it
here."""

from datetime import timedelta

from ..errors import DistStoreError, QueueEmptyError

DEFAULT_TIMEOUT = timedelta(seconds=300)
ANSWERS = 30.0  # seconds that the holder of a table has to answer, beside what a request may wait


def to_bytes(value, what):
    """A key or value as bytes; text is encoded."""
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    raise TypeError(f"Store: {what} must be a str or bytes, not {type(value).__name__}")


def seconds(timeout):
    """A timeout as a number of seconds."""
    if not isinstance(timeout, timedelta):
        raise TypeError(f"Store: a timeout is a datetime.timedelta, not {type(timeout).__name__}")
    return timeout.total_seconds()


class Store:
    """The base of all stores. Keys are text, values are bytes.

    A class for a new kind of store defines `request(operation, keys, values, timeout)`: what a Table answers, waiting
    up to `timeout` seconds where it has to wait.
    """

    def __init__(self):
        self._timeout, self._answers = DEFAULT_TIMEOUT, ANSWERS

    def request(self, operation, keys=(), values=(), timeout=0.0):
        raise NotImplementedError(f"{type(self).__name__}.request: a kind of store defines it")

    def _ask(self, operation, keys=(), values=(), timeout=0.0):
        keys = [to_bytes(key, "a key") for key in keys]
        return self.request(operation, keys, [to_bytes(value, "a value") for value in values], timeout)

    # ---- settings

    @property
    def timeout(self):
        """How long `get` and `wait` wait for a key."""
        return self._timeout

    def set_timeout(self, timeout):
        """Wait this long (a timedelta) for a key from now on."""
        seconds(timeout)
        self._timeout = timeout

    def hurry(self, seconds):
        """From now on give up when the holder of the table, beside what a request may wait, needs longer to answer."""
        self._answers = seconds

    def has_extended_api(self):
        """Whether append, multi_get and multi_set are there; they are in every store here."""
        return True

    # ---- keys

    def set(self, key, value):
        """Give a key a value."""
        self._ask("set", [key], [value])

    def get(self, key):
        """The value of a key; waits for it as long as the timeout says."""
        return self._ask("get", [key], (), seconds(self._timeout))[0]

    def add(self, key, value):
        """Add a number to the value of a key, which counts from 0; the sum."""
        return int(self._ask("add", [key], [str(int(value))])[0])

    def compare_set(self, key, expected_value, desired_value):
        """Set a key to `desired_value` if its value is `expected_value`, or if it has none and that is empty; what it
        is then."""
        return self._ask("compare_set", [key], [expected_value, desired_value])[0]

    def append(self, key, value):
        """Put bytes after the value of a key."""
        self._ask("append", [key], [value])

    def multi_get(self, keys):
        """The values of several keys; waits for them."""
        return self._ask("get", keys, (), seconds(self._timeout))

    def multi_set(self, keys, values):
        """Give several keys their values at once."""
        if len(keys) != len(values):
            raise ValueError(f"multi_set: {len(keys)} keys and {len(values)} values")
        self._ask("set", keys, values)

    def wait(self, keys, timeout=None):
        """Wait until all keys have values.

        Args:
            keys: a list of names.
            timeout: a timedelta; by default the store's own.
        """
        if isinstance(keys, (str, bytes)):
            raise TypeError("wait: keys must be a list of names")
        self._ask("wait", keys, (), seconds(self._timeout if timeout is None else timeout))

    def check(self, keys):
        """Whether all keys have values now."""
        return self._ask("check", keys)[0] == b"1"

    def _each(self, keys):
        """For each key whether it has a value now."""
        return [answer == b"1" for answer in self._ask("each", keys)]

    def delete_key(self, key):
        """Take a key out; whether it was there."""
        return self._ask("delete", [key])[0] == b"1"

    def num_keys(self):
        """How many keys there are."""
        return int(self._ask("count")[0])

    def list_keys(self):
        """The names of all keys."""
        return [key.decode() for key in self._ask("list")]

    def barrier(self, key, world_size, timeout=None):
        """Wait until `world_size` callers have come to the barrier of this name."""
        self._ask("arrive", [key], [str(int(world_size))], seconds(self._timeout if timeout is None else timeout))

    # ---- queues

    def queue_push(self, key, value):
        """Put a value at the end of a queue."""
        self._ask("push", [key], [value])

    def queue_pop(self, key, block=True):
        """Take the first value of a queue; waits for one, or with block=False raises QueueEmptyError."""
        try:
            return self._ask("pop", [key], (), seconds(self._timeout) if block else 0.0)[0]
        except DistStoreError:
            if block:
                raise
            raise QueueEmptyError(f"queue_pop: the queue {key!r} is empty") from None

    def queue_len(self, key):
        """How many values wait in a queue."""
        return int(self._ask("length", [key])[0])

    def clone(self):
        """Another handle to the same table, for use by another thread."""
        raise NotImplementedError(f"{type(self).__name__}.clone: a kind of store defines it")
