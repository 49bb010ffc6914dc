"""Each example runs as a whole on small settings, and what it learns can be seen in what it prints."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import cresset

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"


def run(name, *arguments):
    """What the example prints."""
    package = os.path.dirname(os.path.dirname(cresset.__file__))
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([package, os.environ.get("PYTHONPATH", "")]),
        "OMP_NUM_THREADS": "1",
    }
    command = [sys.executable, str(EXAMPLES / name), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=200)
    assert done.returncode == 0, done.stderr
    return done.stdout


def numbers(pattern, text):
    return [float(number) for number in re.findall(pattern, text)]


def test_the_ticket_router_routes():
    shown = run("ticket_router.py", "--tickets", 800, "--epochs", 4)
    assert numbers(r"Macro F1 of the best epoch: (\S+)", shown)[0] > 0.9
    assert re.findall(r"-> (\w+)", shown) == ["billing", "account", "technical"]


def test_the_ticket_router_reads_a_csv_and_saves(tmp_path):
    (tmp_path / "t.csv").write_text("text,label\n" + 'good day,hi\n"well, farewell",bye\n' * 40)
    shown = run("ticket_router.py", tmp_path / "t.csv", "--epochs", 6, "--save", tmp_path / "r.pt")
    assert "classes: bye, hi" in shown
    saved = cresset.load(tmp_path / "r.pt")
    assert saved["classes"] == ["bye", "hi"] and "well," in saved["words"]


def test_early_stopping_stops():
    shown = run("ticket_router.py", "--tickets", 60, "--epochs", 200, "--patience", 1)
    assert "no progress for 1 epochs: stop" in shown


def test_a_model_becomes_a_graph_a_picture_a_file_and_c(tmp_path):
    shown = run("model_as_c.py", "--folder", tmp_path, "--steps", 150)
    assert "aten.conv2d.default" in shown and numbers(r"(\S+)% of unseen digits", shown)[0] > 80
    assert {"digits.c", "digits.pt2", "digits.svg"} <= {path.name for path in tmp_path.iterdir()}
    assert "C gives the same answer for 297 of 297 pictures" in shown or not shutil.which("cc")


def test_the_image_classifier_reads_digits():
    shown = run("image_classifier.py", "--epochs", 3, "--width", 8, "--batch", 64)
    assert numbers(r"Accuracy of the best epoch: (\S+)%", shown)[0] > 85
    rows = [
        list(map(int, re.findall(r"\d+", line.replace(".", "0"))[1:]))
        for line in shown.splitlines()
        if line.startswith("  a ")
    ]
    assert len(rows) == 10 and sum(map(sum, rows)) == 297


def test_the_character_gpt_learns(tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("the cat sat on the mat. " * 60)
    shown = run(
        "char_gpt.py", text, "--steps", 60, "--batch", 8, "--context", 16, "--width", 32, "--layers", 1, "--sample", 40
    )
    losses = numbers(r"loss (\S+)", shown)
    assert losses[-1] < 0.6 * losses[0]
    assert shown.rstrip("\n").splitlines()[-1].startswith("the cat ")


def test_the_forecast_beats_the_period_before():
    shown = run("time_series.py", "--length", 1500, "--epochs", 10)
    ((lstm, naive),) = re.findall(r"LSTM (\S+), as a period ago (\S+)", shown)
    assert float(lstm) < float(naive)


def test_known_features_beat_learning_from_scratch():
    shown = run("transfer_learning.py", "--epochs", 4, "--new-epochs", 30)
    transferred, fresh = (
        numbers(r"last layer, from 30 pictures: (\S+)%", shown)[0],
        numbers(r"from scratch: (\S+)%", shown)[0],
    )
    assert transferred > fresh + 5


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda p: p.name)
def test_every_example_helps_and_is_listed(path):
    assert "usage:" in run(path.name, "--help")
    assert f"[{path.name}]" in (EXAMPLES / "README.md").read_text()
