"""The table behind a store: keys with bytes, counters, queues, barriers. It answers at once or says what it waits
for."""

from collections import deque


class Later(Exception):
    """The answer has to wait until a key changes."""

    def __init__(self, key):
        super().__init__(key)
        self.key = key


class Table:
    def __init__(self):
        self.values = {}  # key -> bytes
        self.queues = {}  # key -> deque of bytes
        self.barriers = {}  # key -> [arrived in this round, rounds done]

    def answer(self, operation, keys, values, state):
        """The answer to a request, as a list of bytes, or Later.

        Args:
            state: a dictionary of the request's own, empty at first and the same when it is asked again.
        """
        return getattr(self, "_" + operation)(keys, values, state)

    OPERATIONS = (
        "set", "get", "add", "compare_set", "append", "wait", "check", "each", "delete", "count", "list", "arrive",
        "push", "pop", "length",
    )  # fmt: skip

    def _set(self, keys, values, _):
        self.values.update(zip(keys, values, strict=True))
        return []

    def _get(self, keys, values, state):
        # Those that were there when it was asked before are looked at again at the end alone: they may be thousands.
        for start in (state.get("known", 0), 0):
            for i in range(start, len(keys)):
                if keys[i] not in self.values:
                    state["known"] = i
                    raise Later(keys[i])
        return [self.values[key] for key in keys]

    def _wait(self, keys, values, state):
        self._get(keys, values, state)
        return []

    def _check(self, keys, values, _):
        return [b"1" if all(key in self.values for key in keys) else b"0"]

    def _each(self, keys, values, _):
        return [b"1" if key in self.values else b"0" for key in keys]

    def _add(self, keys, values, _):
        try:
            total = int(self.values.get(keys[0], b"0")) + int(values[0])
        except ValueError:
            raise ValueError(
                f"add: the value of {keys[0].decode()!r} is {self.values[keys[0]][:40]!r}, no number"
            ) from None
        self.values[keys[0]] = str(total).encode()
        return [self.values[keys[0]]]

    def _compare_set(self, keys, values, _):
        expected, desired = values
        if self.values.get(keys[0], b"") == expected:
            self.values[keys[0]] = desired
        return [self.values.get(keys[0], expected)]

    def _append(self, keys, values, _):
        self.values[keys[0]] = self.values.get(keys[0], b"") + values[0]
        return []

    def _delete(self, keys, values, _):
        known = self.values.pop(keys[0], None) is not None
        return [b"1" if self.queues.pop(keys[0], None) is not None or known else b"0"]

    def _count(self, keys, values, _):
        return [str(len(self.values) + len(self.queues)).encode()]

    def _list(self, keys, values, _):
        return [*self.values, *self.queues]

    def _arrive(self, keys, values, state):
        round_ = self.barriers.setdefault(keys[0], [0, 0])
        if "round" not in state:
            state["round"] = round_[1]
            round_[0] += 1
            if round_[0] >= int(values[0]):
                round_[:] = [0, round_[1] + 1]
        if round_[1] == state["round"]:
            raise Later(keys[0])
        return []

    def _push(self, keys, values, _):
        self.queues.setdefault(keys[0], deque()).append(values[0])
        return []

    def _pop(self, keys, values, _):
        queue = self.queues.get(keys[0])
        if not queue:
            raise Later(keys[0])
        value = queue.popleft()
        if not queue:
            del self.queues[keys[0]]
        return [value]

    def _length(self, keys, values, _):
        return [str(len(self.queues.get(keys[0], ()))).encode()]
