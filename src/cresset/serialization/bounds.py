"""How much memory, and how much time, a file may take: a budget that grows with the file's size.

Values cost more in memory than in a file (an empty set is one byte there, and 232 here), so no reader can promise to
take no more memory than a file has bytes. The promise is 16 times the size and 16 MB. Three quarters of it are the
budget for values; the rest is for the file's own bytes and for what is there for a moment only, such as a dictionary's
old table while its new one is filled.
"""

import itertools
import json
import pickle
import sys

__all__ = ["TIMES", "Budget", "json_cost", "promised", "read_json"]

TIMES, FREE = 16, 16 << 20
_MAX_KEY_PARTS = 1000  # of a tuple that is a key: hashing and comparing walk it natively, however deep or shared it is
_MAX_CROWD = 100  # keys of one dictionary with one hash: each new one is compared with all the others
_BATCH = 1000  # elements that a container takes before its size is looked at
_FULL = 35  # bytes an element in a table that has little room left
_SELDOM_ALIKE = {str, bytes, float, bool, type(None)}  # kinds whose values have hashes of their own, or random ones


def promised(size):
    """The most memory that reading a file of `size` bytes takes."""
    return TIMES * size + FREE


class Budget:
    """What reading one file of `size` bytes may still take.

    >>> from cresset.serialization.bounds import Budget
    >>> budget = Budget(size=100)
    >>> budget.spend(1000)
    >>> budget.spend(10**9)
    Traceback (most recent call last):
        ...
    _pickle.UnpicklingError: its values take more memory than 16 times the file's 100 bytes and 16 MB
    """

    def __init__(self, size):
        self.size, self.left = size, promised(size) * 3 // 4
        self.crowds = {}  # id of a container -> (the container, how many keys it has of each hash)

    def spend(self, count):
        """Take `count` bytes off."""
        self.left -= count
        if self.left < 0:
            raise pickle.UnpicklingError(
                f"its values take more memory than {TIMES} times the file's {self.size} bytes and {FREE >> 20} MB"
            )

    def spend_value(self, value):
        """Take off what a number, text or bytes takes; the value itself."""
        self.spend(sys.getsizeof(value) + 16)
        return value

    def size_before(self, container):
        """The size of a container that is about to grow. A full table doubles at once, so there must be room for
        another one like it.
        """
        size = sys.getsizeof(container)
        if size > self.left and size < _FULL * (len(container) + _BATCH):
            self.spend(size)
        return size

    def grown(self, before, container):
        """Take off what a container has grown by since its size was `before`."""
        growth = sys.getsizeof(container) - before
        if growth > 0:
            self.spend(growth + growth // 4)

    def check_key(self, container, key):
        """Refuse keys that take long to hash or to compare: many parts, or many that have the same hash."""
        kind = type(key)
        if kind in _SELDOM_ALIKE or (kind is int and -(2**60) < key < 2**60):
            return
        pending, parts, is_random, bits = [key], 0, False, 0
        while pending:
            part = pending.pop()
            parts += 1
            if type(part) is int:
                bits += part.bit_length()
            elif type(part) in (str, bytes):
                is_random = is_random or len(part) > 0  # hashed with a number that no file knows
            else:
                bits += 0 if isinstance(part, (tuple, frozenset)) else 64
            if parts > _MAX_KEY_PARTS:
                raise pickle.UnpicklingError(f"a key of a dictionary or set has more than {_MAX_KEY_PARTS} parts")
            if isinstance(part, (tuple, frozenset)):
                pending.extend(part)
        if is_random or bits < 60:  # too few different keys to have one hash of 64 bits in common
            return
        _, crowd = self.crowds.setdefault(id(container), (container, {}))
        hashed = hash(key)
        crowd[hashed] = crowd.get(hashed, 0) + 1
        self.spend(200)
        if crowd[hashed] > _MAX_CROWD:
            raise pickle.UnpicklingError(f"more than {_MAX_CROWD} keys of one dictionary or set have the same hash")

    def fill_dict(self, target, pairs):
        """Set the items `pairs` of (key, value) in a dictionary."""
        pairs, is_plain, go_on = iter(pairs), type(target) is dict, True
        while go_on:
            go_on, before = False, self.size_before(target)
            for key, value in itertools.islice(pairs, _BATCH):
                if type(key) is not str:
                    self.check_key(target, key)
                target[key] = value
                go_on = True
                if not is_plain:
                    self.spend(64)
            self.grown(before, target)

    def fill_set(self, target, elements):
        """Add the list `elements` to a set."""
        for start in range(0, len(elements), _BATCH):
            before = self.size_before(target)
            for element in elements[start : start + _BATCH]:
                if type(element) is not str:
                    self.check_key(target, element)
                target.add(element)
            self.grown(before, target)


def read_json(data, **settings):
    """The value of JSON in bytes; a ValueError if it takes more memory than a file of this size may, or is none.
    `settings` are those of json.loads.
    """
    if json_cost(data) > promised(len(data)):
        raise ValueError(f"its values take more memory than {TIMES} times its {len(data)} bytes and {FREE >> 20} MB")
    try:
        return json.loads(data.decode("utf-8"), **settings)
    except RecursionError:
        raise ValueError("its values are nested too deeply") from None


def json_cost(text):
    """No less than what the values in the JSON text take (bytes); the text is looked at, not read.

    >>> from cresset.serialization.bounds import json_cost
    >>> json_cost(b'[[], []]') < 1000
    True
    """
    lists, objects, pairs, quotes, elements = (text.count(mark) for mark in (b"[", b"{", b":", b'"', b","))
    return (
        88 * lists + 240 * objects + 45 * pairs + 32 * quotes + 40 * elements + len(text) * (1 if text.isascii() else 8)
    )
