"""The benchmarks run, and their harness counts and tabulates correctly."""

import importlib
import sys
import time
from pathlib import Path

import pytest

# Last, so that an installed cresset is found before the source tree.
sys.path.append(str(Path(__file__).resolve().parents[2]))
harness = importlib.import_module("benchmarks.harness")

BODIES = [body for file in harness.FILES if file != "import_time" for body in harness.bodies(file)]


@pytest.mark.parametrize("body", BODIES, ids=lambda body: body.__name__)
def test_every_benchmark_runs(body):
    body(importlib.import_module("cresset"))()


def test_every_file_is_listed():
    files = {p.stem for p in harness.FOLDER.glob("*.py")} - {
        "__init__",
        "__main__",
        "harness",
        "gpu",
        "compiled_gpu",
        "first_use",
        "flex_attention",
        "large_gpt",
        "packed_weights",
    }  # these have a runner of their own
    assert files == set(harness.FILES)


def test_every_case_of_the_operators_runs(capsys):
    operators, cresset = importlib.import_module("benchmarks.operators.__main__"), importlib.import_module("cresset")
    threads = cresset.get_num_threads()
    try:
        failed = operators.run_once([operators.Library("cresset", "cpu")], operators.CASES, [0])
    finally:
        cresset.set_num_threads(threads)
    assert not failed, capsys.readouterr().out


def test_the_time_of_a_call_is_the_time_of_a_call():
    assert 0.002 <= harness.seconds_per_call(lambda: time.sleep(0.002), seconds=0.1) < 0.02


def test_a_figure_has_a_median_and_a_spread():
    figure = harness.Figure([{"seconds": 1e-6}, {"seconds": 2e-6}, {"seconds": 4e-6}, None])
    assert figure.median == 2e-6 and figure.spread == pytest.approx(0.75)
    assert figure.show("us") == "2.00 us ±75%"


def test_a_failure_is_told():
    figure = harness.Figure([{"error": "AttributeError: no attribute 'gelu'"}])
    assert not figure and figure.show("us") == "-" and "gelu" in figure.error


def test_the_table_is_written_between_its_marks(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- table: begin -->\nold\n<!-- table: end -->\nafter\n")
    harness.write_between_marks(page, "\n".join(harness.table([["a", "b"], ["1", "two"]])))
    assert page.read_text() == (
        "before\n<!-- table: begin -->\n| a | b   |\n|---|-----|\n| 1 | two |\n<!-- table: end -->\nafter\n"
    )


def test_an_unknown_name_is_refused(capsys):
    with pytest.raises(SystemExit):
        harness.main(["no_such_benchmark"])
    assert "no benchmark named no_such_benchmark" in capsys.readouterr().err
