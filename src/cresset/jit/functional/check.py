"""Checks that raise."""

import cresset as torch


def _assert(condition: bool, message: str) -> None:
    assert condition, message


STANDS_FOR = {torch: {"_assert": _assert}}
