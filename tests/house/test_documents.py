"""The README, the documents and the examples do what they say."""

import contextlib
import io
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("changes/*.md")])


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_lead_somewhere(document):
    targets = re.findall(r"\]\(([^)#\s]+)[^)]*\)", document.read_text())
    missing = [
        t for t in targets if not t.startswith(("http:", "https:", "mailto:")) and not (document.parent / t).exists()
    ]
    assert missing == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda p: str(p.relative_to(ROOT)))
def test_files_that_are_named_are_there(document):
    named = re.findall(
        r"`((?:native|src|tests|tools|docs|examples|benchmarks|changes)/[\w./*-]+)`", document.read_text()
    )
    assert [name for name in named if not any(True for _ in ROOT.glob(name.rstrip("/")))] == []


@pytest.mark.parametrize("name", ["example", "tests"])
def test_the_readme_has_the_commands_that_ci_runs(name):
    """`.ci/run` finds its commands by these marks."""
    (command,) = re.findall(rf"^<!-- run: {name} -->\n```sh\n(.+)\n```$", (ROOT / "README.md").read_text(), re.M)
    assert command.startswith("python3 -m venv .venv && ")


def test_the_readme_program_prints_what_the_readme_says():
    (program,) = re.findall(r"^```python\n(.*?)^```$", (ROOT / "README.md").read_text(), re.M | re.S)
    (expected,) = re.findall(r"^print\(.*\)  # (.*)$", program, re.M)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(program, {})
    assert printed.getvalue().strip() == expected


def test_the_digits_example_reads_more_than_95_percent():
    command = [sys.executable, str(ROOT / "examples" / "digits.py")]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert len([line for line in lines if line.startswith("epoch")]) == 20
    assert float(re.fullmatch(r"Read (\d+\.\d)% of the unseen digits correctly\.", lines[-1])[1]) > 95


def test_collect_env_names_what_a_bug_report_needs(tmp_path):
    command = [sys.executable, "-m", "cresset.utils.collect_env"]
    # From another folder: here, the source tree would be found before the installed package.
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    titles = [line.split("  ")[0] for line in done.stdout.splitlines()]
    assert titles == [
        "cresset", "compiler", "instruction set", "threads",
        "Python", "platform", "C library", "processor", "memory", "CUDA",
        "NumPy", "SciPy", "Pillow", "ONNX", "safetensors", "transformers",
        "OMP_NUM_THREADS", "CUDA_VISIBLE_DEVICES", "PYTHONPATH",
    ]  # fmt: skip


def test_config_shows_the_version_and_the_instruction_set():
    import cresset

    shown = cresset.__config__.show()
    assert cresset.__version__ in shown and cresset._native.build_info()["isa"] in shown
