"""With `pytest -n 2`, a test that is marked `alone` runs beside no other: the turns of tests/conftest.py."""

import importlib.util
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

PATH = Path(__file__).resolve().parents[1] / "conftest.py"


@pytest.fixture
def a_turn(tmp_path, monkeypatch):
    monkeypatch.setenv("CRESSET_TEST_TURNS", str(tmp_path))
    spec = importlib.util.spec_from_file_location("conftest_for_turns", PATH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.a_turn


class Runner(threading.Thread):
    """Takes a turn as a process does (each opens the files itself), and keeps it until it may leave."""

    def __init__(self, a_turn, alone):
        super().__init__(daemon=True)
        self.a_turn, self.alone, self.inside, self.may_leave = a_turn, alone, threading.Event(), threading.Event()
        self.start()

    def run(self):
        with self.a_turn(self.alone):
            self.inside.set()
            self.may_leave.wait(60)

    def leave(self):
        self.may_leave.set()
        self.join(60)


def test_tests_run_beside_each_other_and_one_that_is_alone_waits_for_them_and_keeps_the_next_out(a_turn):
    first, second = Runner(a_turn, alone=False), Runner(a_turn, alone=False)
    assert first.inside.wait(60) and second.inside.wait(60)
    alone = Runner(a_turn, alone=True)
    assert not alone.inside.wait(0.2)
    following = Runner(a_turn, alone=False)
    first.leave()
    assert not alone.inside.wait(0.2) and not following.inside.is_set()
    second.leave()
    assert alone.inside.wait(60) and not following.inside.wait(0.2)
    alone.leave()
    assert following.inside.wait(60)
    following.leave()


def test_a_run_of_tests_that_a_test_starts_belongs_to_its_turn(a_turn, tmp_path):
    shutil.copy(PATH, tmp_path / "conftest.py")
    (tmp_path / "test_inner.py").write_text("def test_inner(): pass\n")
    environment = {**os.environ, "PYTEST_XDIST_WORKER": "gw0", "CRESSET_TEST_TURNS": str(tmp_path)}
    with a_turn(alone=True):
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", tmp_path, tmp_path],
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
        )
    assert done.returncode == 0 and "1 passed" in done.stdout, done.stdout + done.stderr
