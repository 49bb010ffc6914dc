"""Futures: waiting, chaining, failing."""

import threading

import pytest

from cresset.futures import Future, collect_all, wait_all


def test_wait_gets_what_another_thread_sets():
    future = Future()
    threading.Timer(0.01, future.set_result, [5]).start()
    assert future.wait() == 5 and future.done()


def test_then_chains_and_carries_exceptions():
    future = Future()
    after = future.then(lambda f: f.wait() + 1).then(lambda f: f.wait() / 0)
    future.set_result(1)
    with pytest.raises(ZeroDivisionError):
        after.wait()


def test_a_result_is_set_once():
    future = Future()
    future.set_exception(ValueError("no"))
    with pytest.raises(RuntimeError, match="only be marked completed once"):
        future.set_result(1)
    with pytest.raises(ValueError, match="no"):
        wait_all([future])
    assert collect_all([]).wait() == []


def test_a_future_waits_for_cuda_devices_only():
    Future(devices=["cuda:0"])
    with pytest.raises(ValueError, match="Expected devices to be CUDA devices, got cpu"):
        Future(devices=["cpu"])
