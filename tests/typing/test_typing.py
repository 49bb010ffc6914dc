"""Type checkers have nothing to say about programs that are right, and say something about those that are wrong."""

import importlib.util
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import cresset

HERE = Path(__file__).parent
PROGRAMS = [HERE / "program.py", HERE / "everyday.py", HERE / "strangers.py"]
CALL = re.compile(r"\b(?:torch|F|nn|[a-z]\w*)\.\w+\(")

needs_mypy = pytest.mark.skipif(importlib.util.find_spec("mypy") is None, reason="mypy is not installed")
needs_pyright = pytest.mark.skipif(shutil.which("pyright") is None, reason="pyright is not installed")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Where mypy runs: what it has read of the package is kept from one test to the next."""
    return tmp_path_factory.mktemp("typing")


def mypy(*files, folder):
    """What mypy says of files with the package that this test runs on."""
    site = folder / "site"
    site.mkdir(exist_ok=True)
    link = site / "cresset"
    if not link.exists():
        link.symlink_to(Path(cresset.__file__).parent)
    (folder / "mypy.ini").write_text(
        "[mypy]\n[mypy-cresset.*]\nignore_errors = True\n"
    )  # as of a package that is installed
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(folder / "cache")]
    environment = {"MYPYPATH": str(site), "PATH": "/usr/bin:/bin"}
    return subprocess.run([*command, *map(str, files)], cwd=folder, env=environment, capture_output=True, text=True,
        timeout=280)  # fmt: skip


@needs_mypy
def test_mypy_accepts_everyday_programs_in_its_strict_mode(folder):
    run = mypy(*PROGRAMS, folder=folder)
    assert run.returncode == 0, run.stdout + run.stderr


@needs_mypy
def test_mypy_finds_what_is_wrong(folder):
    """Else the test above would pass on a package that a type checker cannot see."""
    file = folder / "wrong.py"
    lines = {
        "import cresset as torch": None,
        "x: int = torch.zeros(2).sum()": "Incompatible types in assignment",
        'y = torch.zeros("2")': "incompatible type",
        "z = torch.zeros(2).view(2, size=(3,))": "No overload variant",
        "w = torch.zeroes(2)": "has no attribute",
        "v = torch.nn.Linear(3)": "Missing positional argument",
        "u = torch.zeros(2).nope()": "has no attribute",
    }
    file.write_text("\n".join(lines) + "\n")
    said = mypy(file, folder=folder).stdout
    for number, message in enumerate(lines.values(), 1):
        found = [line for line in said.splitlines() if line.startswith(f"wrong.py:{number}:")]
        assert bool(found) == bool(message) and (not message or message in found[0]), said


@needs_pyright
def test_pyright_accepts_everyday_programs_and_finds_what_is_wrong(tmp_path):
    (tmp_path / "pyrightconfig.json").write_text(json.dumps({"extraPaths": [str(Path(cresset.__file__).parents[1])]}))
    for file in PROGRAMS:
        shutil.copy(file, tmp_path)
    run = subprocess.run(["pyright", "."], cwd=tmp_path, capture_output=True, text=True, timeout=280)
    assert run.returncode == 0, run.stdout + run.stderr
    (tmp_path / "wrong.py").write_text("import cresset as torch\nx: int = torch.zeros(2)\ntorch.nn.Linear(3)\n")
    run = subprocess.run(["pyright", "."], cwd=tmp_path, capture_output=True, text=True, timeout=280)
    assert "wrong.py:2" in run.stdout and "wrong.py:3" in run.stdout and "2 errors" in run.stdout, run.stdout


@pytest.mark.parametrize("file", PROGRAMS, ids=lambda file: file.stem)
def test_the_programs_run(file):
    run = subprocess.run([sys.executable, str(file)], capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stdout + run.stderr


def test_there_are_many_everyday_calls():
    assert len(CALL.findall(PROGRAMS[1].read_text())) >= 120
