"""A set that remembers the order in which its members came."""

from collections.abc import MutableSet, Reversible

__all__ = ["OrderedSet"]


class OrderedSet(MutableSet, Reversible):
    """A set whose members are walked in the order in which they were added.

    >>> OrderedSet([3, 1, 3, 2])
    OrderedSet([3, 1, 2])
    """

    __slots__ = ("_dict",)

    def __init__(self, iterable=None):
        self._dict = dict.fromkeys(iterable if iterable is not None else ())

    @classmethod
    def _from_dict(cls, members):
        made = cls()
        made._dict = members
        return made

    def __contains__(self, elem):
        return elem in self._dict

    def __iter__(self):
        return iter(self._dict)

    def __len__(self):
        return len(self._dict)

    def __reversed__(self):
        return reversed(self._dict)

    def __repr__(self):
        return f"{type(self).__name__}({list(self)})" if self else f"{type(self).__name__}()"

    def __getstate__(self):
        return list(self._dict)

    def __setstate__(self, state):
        self._dict = dict.fromkeys(state)

    def add(self, elem):
        self._dict[elem] = None

    def discard(self, elem):
        self._dict.pop(elem, None)

    def clear(self):
        self._dict.clear()

    def pop(self):
        """Take out the last member."""
        if not self:
            raise KeyError("pop from an empty set")
        return self._dict.popitem()[0]

    def copy(self):
        return OrderedSet._from_dict(self._dict.copy())

    def update(self, *others):
        for other in others:
            self._dict.update(dict.fromkeys(other))

    def difference(self, *others):
        return self._without(others, self.copy())

    def difference_update(self, *others):
        self._without(others, self)

    @staticmethod
    def _without(others, target):
        for other in others:
            for elem in list(other):
                target.discard(elem)
        return target

    def union(self, *others):
        made = self.copy()
        made.update(*others)
        return made

    def intersection(self, *others):
        made = self.copy()
        made.intersection_update(*others)
        return made

    def intersection_update(self, *others):
        for other in others:
            kept = set(other)
            self._dict = {elem: None for elem in self._dict if elem in kept}

    def issubset(self, other):
        return (
            all(elem in other for elem in self)
            if isinstance(other, (set, frozenset, dict, OrderedSet))
            else self.issubset(set(other))
        )

    def issuperset(self, other):
        return all(elem in self for elem in other)

    def symmetric_difference(self, other):
        other = OrderedSet(other)
        return self.difference(other).union(other.difference(self))

    def symmetric_difference_update(self, other):
        self._dict = self.symmetric_difference(other)._dict

    @classmethod
    def _from_iterable(cls, iterable):
        return cls(iterable)
