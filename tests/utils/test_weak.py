"""Dictionaries and references that do not keep tensors alive (torch.utils.weak)."""

import copy
import gc

import pytest

import cresset as torch
from cresset.utils.weak import TensorWeakRef, WeakIdKeyDictionary, WeakIdRef, WeakTensorKeyDictionary


def test_an_entry_goes_with_its_key():
    table = WeakTensorKeyDictionary()
    kept, lost = torch.ones(2), torch.ones(2)
    table[kept], table[lost] = "kept", "lost"
    assert len(table) == 2 and table[lost] == "lost"
    del lost
    gc.collect()
    assert list(table.items()) == [(kept, "kept")]


def test_keys_are_objects_not_values():
    table = WeakIdKeyDictionary()
    a, b = torch.ones(2), torch.ones(2)
    table[a] = 1
    assert a in table and b not in table
    with pytest.raises(KeyError):
        table[b]
    assert table.get(b, "none") == "none" and table.setdefault(b, 2) == 2 and table.pop(b) == 2 and b not in table


def test_a_key_that_dies_during_a_walk_does_not_disturb_it():
    table, keys = WeakIdKeyDictionary(), [torch.ones(1) for _ in range(4)]
    for number, key in enumerate(keys):
        table[key] = number
    seen = []
    del key
    for number in table.values():
        seen.append(number)
        if number == 0:
            del keys[2]
    assert seen == [0, 1, 3] and len(table) == 3


def test_copies_unions_and_equality():
    a, b = torch.ones(1), torch.zeros(1)
    table = WeakIdKeyDictionary({a: [1]}.items())
    same, deep = copy.copy(table), copy.deepcopy(table)
    assert same == table and same[a] is table[a]
    assert deep[a] == [1] and deep[a] is not table[a]
    both = table | WeakIdKeyDictionary([(b, 2)])
    assert both[a] == [1] and both[b] == 2
    assert both != table and both.popitem()[0] is b


def test_references_compare_by_identity():
    a, b = torch.ones(2), torch.ones(2)
    assert WeakIdRef(a) == WeakIdRef(a) and WeakIdRef(a) != WeakIdRef(b)
    reference = TensorWeakRef(a)
    assert reference() is a
    del a
    gc.collect()
    assert reference() is None
    with pytest.raises(AssertionError, match="expected a torch.Tensor"):
        TensorWeakRef(3)


def test_update_takes_anything_with_keys():
    a, b = torch.ones(1), torch.ones(1)

    class Mapping:
        def keys(self):
            return [a, b]

        def __getitem__(self, key):
            return "a" if key is a else "b"

    found = WeakIdKeyDictionary()
    found.update(Mapping())
    assert found[a] == "a" and found[b] == "b"


def test_an_update_that_fails_changes_nothing():
    a = torch.ones(1)

    class Broken:
        def keys(self):
            return [a, "b"]

        def __getitem__(self, key):
            if key is a:
                return "a"
            raise KeyError(key)

    found = WeakIdKeyDictionary()
    with pytest.raises(KeyError):
        found.update(Broken())
    assert len(found) == 0
