"""How workers start."""

import multiprocessing

import pytest


@pytest.fixture(scope="package", autouse=True)
def forked():
    """Workers are forked unless a test says otherwise, whichever start is this Python's default (forkserver from 3.14
    on): classes and functions of a test's own go along.
    """
    before = multiprocessing.get_start_method(allow_none=True)
    multiprocessing.set_start_method("fork", force=True)
    yield
    multiprocessing.set_start_method(before, force=True)
