"""Tensors of the user's own classes in files, and names that files may have."""

import copy
import datetime
import io
import os
import pickle
import zoneinfo

import pytest

import cresset as torch


class Wrapped(torch.Tensor):
    """Holds what it stands for in a slot, and a value under the name of a method."""

    __slots__ = ["held"]

    @staticmethod
    def __new__(cls, held):
        made = torch.Tensor._make_wrapper_subclass(cls, held.shape, dtype=held.dtype)
        made.held = held
        made.t = "a value"
        return made

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        args = [value.held if isinstance(value, cls) else value for value in args]
        result = func(*args, **(kwargs or {}))
        return cls(result) if isinstance(result, torch.Tensor) else result


class Stated(torch.Tensor):
    """Says itself what its state is."""

    def __getstate__(self):
        return "state", self.note

    def __setstate__(self, state):
        self.note = state[1] + " again"


class Outer:
    class Inner:
        pass


def again(value, allowed=(), **options):
    file = io.BytesIO()
    torch.save(value, file)
    file.seek(0)
    with torch.serialization.safe_globals(allowed):
        return torch.load(file, **options)


def test_slots_and_attributes_of_a_class_come_back():
    loaded = again(Wrapped(torch.arange(3.0)), [Wrapped])
    assert loaded.held.tolist() == [0.0, 1.0, 2.0]
    assert loaded.t == "a value"


def test_slots_are_copied_deeply():
    before = Wrapped(torch.arange(3.0))
    after = copy.deepcopy(before)
    before.held.zero_()
    assert after.held.tolist() == [0.0, 1.0, 2.0]


def test_a_class_says_what_its_state_is():
    tensor = torch.ones(2).as_subclass(Stated)
    tensor.note = "kept"
    assert again(tensor, [Stated]).note == "kept again"


def test_a_file_sets_no_slots_that_a_class_does_not_have():
    file = io.BytesIO()
    tensor = Wrapped(torch.ones(2))
    tensor.__class__.__getstate__ = lambda self: ({}, {"grad": torch.ones(2)})
    try:
        torch.save(tensor, file)
    finally:
        del tensor.__class__.__getstate__
    file.seek(0)
    with torch.serialization.safe_globals([Wrapped]), pytest.raises(pickle.UnpicklingError, match="the attribute grad"):
        torch.load(file)


def test_results_of_a_class_that_dispatches_stay_what_it_gives():
    class Plain(torch.Tensor):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return torch.ones(2)

    tensor = torch.Tensor._make_wrapper_subclass(Plain, (2,))
    assert type(tensor + 1) is torch.Tensor
    assert Plain.__torch_function__ is torch._C._disabled_torch_function_impl


def test_a_class_that_has_both_protocols_keeps_them():
    class Both(torch.Tensor):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return torch.ones(2)

        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return "answered"

    assert torch.Tensor._make_wrapper_subclass(Both, (2,)) + 1 == "answered"


class TestNamesInFiles:
    def test_built_in_functions_are_found_under_their_name_of_today(self):
        assert type(again(Outer.Inner(), [Outer, Outer.Inner, getattr])) is Outer.Inner

    def test_what_getattr_finds_must_be_allowed_too(self):
        moment = datetime.datetime(2025, 1, 1, tzinfo=zoneinfo.ZoneInfo("UTC"))
        allowed = [datetime.datetime, getattr, zoneinfo.ZoneInfo]
        with pytest.raises(pickle.UnpicklingError, match="_unpickle of zoneinfo.ZoneInfo"):
            again(moment, allowed)
        assert again(moment, [*allowed, zoneinfo.ZoneInfo._unpickle]) == moment

    def test_modules_that_reach_the_system_stay_blocked(self):
        with pytest.raises(pickle.UnpicklingError, match="whose module posix is blocked"):
            again(os.execv, [os.execv])

    def test_the_error_says_how_to_allow_a_name(self):
        with pytest.raises(pickle.UnpicklingError, match=r"add_safe_globals\(\[.*Outer\]\)` .*allowlist"):
            again(Outer())
