"""torch.futures: results that come later."""

import pickle
import threading

import pytest

import cresset
from cresset.futures import Future, collect_all, wait_all


def test_the_type_of_the_result_is_said():
    future = Future[int]()
    future.set_result(3)
    assert isinstance(future, Future) and future.wait() == 3


def test_what_a_callback_raises_comes_as_a_runtime_error():
    future = Future()
    following = future.then(lambda done: done.value() + "1")
    future.set_result(1)
    with pytest.raises(RuntimeError, match="Got the following error when running the callback: TypeError") as caught:
        following.wait()
    assert isinstance(caught.value.__cause__, TypeError)


def test_an_exception_that_is_set_is_raised_as_it_is():
    future = Future()
    future.set_exception(ValueError("on purpose"))
    with pytest.raises(ValueError, match="on purpose"):
        future.wait()


def test_none_is_no_future():
    for take in (cresset.jit.wait, lambda future: wait_all([future]), lambda future: collect_all([Future(), future])):
        with pytest.raises(RuntimeError, match="Future can't be None"):
            take(None)


def test_a_future_is_not_pickled():
    with pytest.raises(RuntimeError, match="Can not pickle"):
        pickle.dumps(Future())


def test_wait_gets_what_another_thread_sets():
    future = Future()
    threading.Timer(0.01, future.set_result, [5]).start()
    assert future.wait() == 5 and future.done()


def test_then_chains_and_carries_exceptions():
    future = Future()
    after = future.then(lambda f: f.wait() + 1).then(lambda f: f.wait() / 0)
    future.set_result(1)
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
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
