"""Temporary files of saves that were killed: the next save removes them, and none that somebody still writes."""

import os
import signal
import subprocess
import sys

import pytest

import cresset
from cresset.serialization import saving

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the locks of files are POSIX's")

PROGRAM = """
import os, signal, sys
import cresset

class Slow:
    def __reduce__(self):
        print("saving", flush=True)
        if sys.argv[2] == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        sys.stdin.read()
        return list, ()

cresset.save(Slow(), sys.argv[1])
"""


def start(path, what):
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(path), what],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert process.stdout.readline() == "saving\n"
    return process


def temporary_files(folder):
    return sorted(name for name in os.listdir(folder) if name.endswith(".tmp"))


@pytest.mark.parametrize("first", ["a.pt", "b.pt", "a\nb", "ä"])
def test_the_next_save_removes_what_a_killed_one_left(tmp_path, first):
    path = tmp_path / "a.pt"
    for killed in (tmp_path / first, path):
        with start(killed, "kill") as process:
            pass
        assert process.returncode == -signal.SIGKILL
    assert len(temporary_files(tmp_path)) == 1  # the second start has removed the first one's
    cresset.save([1], path)
    assert os.listdir(tmp_path) == ["a.pt"] and cresset.load(path) == [1]


def test_what_a_living_process_writes_stays(tmp_path):
    path = tmp_path / "a.pt"
    process = start(path, "wait")
    (mine,) = temporary_files(tmp_path)
    cresset.save([1], path)
    cresset.safetensors.save_file({"a": cresset.ones(1)}, tmp_path / "a.pt.safetensors")
    assert temporary_files(tmp_path) == [mine]
    process.communicate("")
    assert process.returncode == 0 and temporary_files(tmp_path) == [] and cresset.load(path) == []


def test_files_of_other_machines_and_other_kinds_stay(tmp_path):
    stem = f".a.pt.{saving._machine()}."
    keep = [
        ".a.pt.ffffffff.1.00000000.tmp",  # of another machine
        stem + "1.tmp", stem + "x.00000000.tmp", stem + "1.00000000.tmp.old", ".a.pt.tmp",
    ]  # fmt: skip
    for name in keep:
        (tmp_path / name).write_bytes(b"")
    (tmp_path / "precious").write_bytes(b"1")
    os.symlink(tmp_path / "precious", tmp_path / (stem + "2.00000000.tmp"))
    os.mkfifo(tmp_path / (stem + "3.00000000.tmp"))
    os.mkdir(tmp_path / (stem + "4.00000000.tmp"))
    before = set(os.listdir(tmp_path))
    (tmp_path / (stem + "5.00000000.tmp")).write_bytes(b"left")
    cresset.save([1], tmp_path / "a.pt")
    assert set(os.listdir(tmp_path)) == before | {"a.pt"}


def test_a_file_that_was_taken_for_abandoned_before_its_lock_is_made_anew(tmp_path, monkeypatch):
    locked = []

    def lock(file, wait):
        if not locked:
            os.unlink(os.path.join(tmp_path, temporary_files(tmp_path)[0]))  # somebody else was quicker
        locked.append(wait)
        return True

    monkeypatch.setattr(saving, "_lock", lock)
    cresset.save([1], tmp_path / "a.pt")
    assert locked == [True, True] and os.listdir(tmp_path) == ["a.pt"]


def test_many_processes_that_save_to_one_path_never_lose_a_file(tmp_path):
    program = "import sys, cresset\nfor n in range(40): cresset.save([n], sys.argv[1])"
    path = str(tmp_path / "a.pt")
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", program, path], stderr=subprocess.PIPE, env={**os.environ, "OMP_NUM_THREADS": "1"}
        )
        for _ in range(4)
    ]
    for process in processes:
        _, error = process.communicate()
        assert process.returncode == 0, error.decode()
    assert os.listdir(tmp_path) == ["a.pt"] and cresset.load(path) == [39]


def test_a_long_name_of_wide_letters_is_saved(tmp_path):
    path = tmp_path / ("\U0001f600" * 60)
    cresset.save([1], path)
    assert cresset.load(path) == [1]
