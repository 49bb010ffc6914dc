"""Before any test: processes that tests start find the installed cresset, not the folder they are started in.

`pytest --device cuda tests/ops tests/nn ...` runs tests with new tensors on another device, those that modules make
when they are imported too. What is about the CPU itself (threads, instruction sets, NumPy's memory, errors at once) is
marked `cpu_only("why")` and skipped there.

`pytest --compiled` runs each test as a compiled region in which tensors of every size are computed late.

`pytest -n 3` runs them in three processes, a file in one of them. A test that is marked `alone` (it measures time)
waits until no other runs, and none begins before it has ended.
"""

import contextlib
import fcntl
import os
import signal
import tempfile

import pytest

os.environ["PYTHONSAFEPATH"] = "1"
# Begun in the background, a shell's commands ignore Ctrl-C, and so would every program that a test interrupts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser):
    parser.addoption("--device", default="cpu", help="where new tensors go: cpu or cuda")
    parser.addoption("--compiled", action="store_true", help="run each test as a compiled region")


def pytest_configure(config):
    config.addinivalue_line("markers", "cpu_only(reason): about the CPU itself; skipped with --device")
    config.addinivalue_line("markers", "alone: no other test may run beside it")
    config.addinivalue_line("markers", "kernels: about a kernel of each device; tests/cuda runs it on the emulated one")
    if getattr(config.option, "numprocesses", None) and not takes_turns(config):
        turns = tempfile.TemporaryDirectory(prefix="cresset-tests-")
        config.add_cleanup(turns.cleanup)
        os.environ["CRESSET_TEST_TURNS"] = turns.name  # the processes that run tests inherit it
    if config.getoption("--device") != "cpu":
        import cresset

        cresset.set_default_device(config.getoption("--device"))


def pytest_collection_modifyitems(config, items):
    if config.getoption("--device") == "cpu":
        return
    for item in items:
        item.add_marker(
            pytest.mark.filterwarnings("ignore:.*has no kernel for 'cuda:UserWarning")
        )  # it is right, and said once
        for mark in item.iter_markers("cpu_only"):
            item.add_marker(pytest.mark.skip(reason=f"about the CPU: {mark.args[0]}"))


def takes_turns(config):
    """Whether this is one of several processes that run tests. One that a test starts belongs to its turn."""
    return hasattr(config, "workerinput")


@contextlib.contextmanager
def a_turn(alone):
    """Beside the tests of other processes, or alone."""
    folder = os.environ["CRESSET_TEST_TURNS"]
    with open(f"{folder}/next", "w") as following, open(f"{folder}/running", "w") as running:
        fcntl.flock(following, fcntl.LOCK_EX)  # in the order in which they come, so that one that waits is not passed
        fcntl.flock(running, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        fcntl.flock(following, fcntl.LOCK_UN)
        try:
            yield
        finally:
            fcntl.flock(running, fcntl.LOCK_UN)  # at once: processes that the test leaves behind inherit the file


@pytest.hookimpl(wrapper=True, tryfirst=True)  # first: what is waited here is no time of the test's
def pytest_runtest_protocol(item):
    if not takes_turns(item.config):
        return (yield)
    with a_turn(alone=item.get_closest_marker("alone") is not None):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    if not item.config.getoption("--compiled"):
        return (yield)
    from cresset import _native

    least, before = _native.set_late_elements(1), _native.compute_late(True)
    try:
        return (yield)
    finally:
        _native.compute_late(before)
        _native.settle_late("the test ends")
        _native.set_late_elements(least)


@pytest.fixture(autouse=True)
def default_device(request):
    device = request.config.getoption("--device")
    if device == "cpu":
        yield
        return
    import cresset

    cresset.set_default_device(device)
    yield
    cresset.set_default_device(device)
    cresset.cuda.synchronize()  # an error that the device found late is this test's, not the next one's


@pytest.fixture
def refused(request):
    """pytest.raises(error, match=...); a device finds a bad index late, at the next synchronization, and says so in
    words of its own.
    """
    on_cpu = request.config.getoption("--device") == "cpu"

    @contextlib.contextmanager
    def refusing(error, match):
        if on_cpu:
            with pytest.raises(error, match=match):
                yield
            return
        import cresset

        with pytest.raises((error, IndexError), match=f"{match}|is out of bounds for size"):
            yield
            cresset.cuda.synchronize()

    return refusing
