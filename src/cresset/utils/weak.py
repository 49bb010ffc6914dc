"""Dictionaries and references that do not keep their keys alive, by the identity of the keys: two tensors are the same
key when they are one object, whatever their elements.
"""

import collections.abc
import weakref

from .._native import Tensor

__all__ = ["TensorWeakRef", "WeakIdKeyDictionary", "WeakIdRef", "WeakTensorKeyDictionary"]


class WeakIdRef(weakref.ref):
    """A weak reference that compares and hashes by the identity of what it refers to, also when that is gone."""

    __slots__ = ["_id"]

    def __init__(self, key, callback=None):
        super().__init__(key, callback)
        self._id = id(key)

    def __call__(self):
        found = super().__call__()
        if found is not None and hasattr(found, "_fix_weakref"):
            found._fix_weakref()
        return found

    def __hash__(self):
        return self._id

    def __eq__(self, other):
        a, b = self(), other()
        return a is b if a is not None and b is not None else self is other

    def __ne__(self, other):
        return not self == other


class _WeakHashRef(weakref.ref):
    """The same, where the key's own hash and `==` decide; both as they were, when the key is gone."""

    __slots__ = ["_id"]

    def __init__(self, key, callback=None):
        super().__init__(key, callback)
        self._id = hash(key)

    def __call__(self):
        found = super().__call__()
        if found is not None and hasattr(found, "_fix_weakref"):
            found._fix_weakref()
        return found

    def __hash__(self):
        return self._id

    def __eq__(self, other):
        a, b = self(), other()
        return a == b if a is not None and b is not None else self is other

    def __ne__(self, other):
        return not self == other


class WeakIdKeyDictionary(collections.abc.MutableMapping):
    """A dictionary whose entries go when their keys do; keys are compared by identity.

    >>> table = cresset.utils.weak.WeakIdKeyDictionary()
    >>> key = cresset.ones(2)
    >>> table[key] = "kept"
    >>> table[key], len(table)
    ('kept', 1)
    >>> del key
    >>> len(table)
    0
    """

    def __init__(self, dict=None, ref_type=WeakIdRef):
        self.data, self.ref_type = {}, ref_type
        owner = weakref.ref(self)

        def remove(reference):
            table = owner()
            if table is not None:
                # While the table is walked through, what goes is only noted.
                table._pending.append(reference) if table._walks else table.data.pop(reference, None)

        self._remove, self._pending, self._walks = remove, [], 0
        if dict is not None:
            self.update(dict)

    def _walk(self):
        """(reference, key, value) of the entries that live; changes by dying keys wait until the end."""
        self._walks += 1
        try:
            for reference, value in self.data.items():
                key = reference()
                if key is not None:
                    yield reference, key, value
        finally:
            self._walks -= 1
            if not self._walks:
                self._settle()

    def _settle(self):
        while self._pending:
            self.data.pop(self._pending.pop(), None)

    def __getitem__(self, key):
        return self.data[self.ref_type(key)]

    def __setitem__(self, key, value):
        self.data[self.ref_type(key, self._remove)] = value

    def __delitem__(self, key):
        if not self._walks:
            self._settle()
        del self.data[self.ref_type(key)]

    def __len__(self):
        return len(self.data) - len(self._pending)

    def __contains__(self, key):
        try:
            reference = self.ref_type(key)
        except TypeError:
            return False
        return reference in self.data

    def __iter__(self):
        for _, key, _ in self._walk():
            yield key

    def keys(self):
        """The keys that live."""
        return iter(self)

    def values(self):
        """The values of the keys that live."""
        for _, _, value in self._walk():
            yield value

    def items(self):
        """(key, value) of the keys that live."""
        for _, key, value in self._walk():
            yield key, value

    def keyrefs(self):
        """The references to the keys."""
        return list(self.data)

    def get(self, key, default=None):
        """The value of a key, or `default`."""
        return self.data.get(self.ref_type(key), default)

    def setdefault(self, key, default=None):
        """The value of a key, which is `default` from now on if it had none."""
        return self.data.setdefault(self.ref_type(key, self._remove), default)

    def pop(self, key, *args):
        """Take out a key; its value, or the default that is given."""
        return self.data.pop(self.ref_type(key), *args)

    def popitem(self):
        """Take out some (key, value)."""
        while True:
            reference, value = self.data.popitem()
            key = reference()
            if key is not None:
                return key, value

    def update(self, dict=None, /, **kwargs):
        """Add the entries of another mapping or of pairs."""
        if dict is not None:
            # What has no items() is read as a whole first, so that trouble in it leaves this one as it was.
            for key, value in (dict if hasattr(dict, "items") else {}.__class__(dict)).items():
                self[key] = value
        if kwargs:
            self.update(kwargs)

    def copy(self):
        """Another dictionary with the same keys and values."""
        made = WeakIdKeyDictionary(ref_type=self.ref_type)
        for _, key, value in self._walk():
            made[key] = value
        return made

    __copy__ = copy

    def __deepcopy__(self, memo):
        from copy import deepcopy

        made = self.__class__()
        for _, key, value in self._walk():
            made[key] = deepcopy(value, memo)
        return made

    def __or__(self, other):
        if not isinstance(other, collections.abc.Mapping):
            return NotImplemented
        made = self.copy()
        made.update(other)
        return made

    def __ror__(self, other):
        if not isinstance(other, collections.abc.Mapping):
            return NotImplemented
        made = self.__class__()
        made.update(other)
        made.update(self)
        return made

    def __ior__(self, other):
        self.update(other)
        return self

    def __eq__(self, other):
        if not isinstance(other, collections.abc.Mapping):
            return NotImplemented
        return {id(key): value for key, value in self.items()} == {id(key): value for key, value in other.items()}

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self):
        return f"<{self.__class__.__name__} at {id(self):#x}>"


WeakTensorKeyDictionary = WeakIdKeyDictionary


class TensorWeakRef:
    """A weak reference to a tensor: called, it gives the tensor, or None when that is gone.

    >>> x = cresset.ones(2)
    >>> reference = cresset.utils.weak.TensorWeakRef(x)
    >>> reference() is x
    True
    """

    def __init__(self, tensor):
        if not isinstance(tensor, Tensor):
            raise AssertionError(f"TensorWeakRef: expected a torch.Tensor, got {type(tensor)}")
        self.ref = weakref.ref(tensor)

    def __call__(self):
        return self.ref()
