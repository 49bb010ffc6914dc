"""Types for annotations that the compiler reads: those of `typing`, and lists that a single number may stand for."""

from typing import Any, Dict, List, Optional, Tuple, Union  # noqa: F401, UP035

from ..futures import Future  # noqa: F401


class BroadcastingListCls:
    """`BroadcastingList2[int]`: a list of two ints, or one int that stands for both."""

    def __init__(self, length=None):
        self.length = length

    def __getitem__(self, element):
        return _BroadcastingList(self.length, element)


class _BroadcastingList:
    """What `BroadcastingList2[int]` is, for the compiler to read."""

    def __init__(self, length, element):
        self.length, self.element = length, element

    def __or__(self, other):
        return Union[List[self.element], other]  # noqa: UP006, UP007


BroadcastingList1, BroadcastingList2, BroadcastingList3 = map(BroadcastingListCls, (1, 2, 3))
BroadcastingList4, BroadcastingList5, BroadcastingList6 = map(BroadcastingListCls, (4, 5, 6))
