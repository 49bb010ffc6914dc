"""Records and the report: lines survive a dying process, and the page shows what they say."""

import re
from xml.etree import ElementTree

import pytest

from cresset import train
from cresset.train.records import Records
from cresset.train.report import Scale, charts_of


def write(path, lines):
    records = Records(path)
    for kind, values in lines:
        records.write(kind, **values)
    records.close()


LINES = [
    ("start", {"model": "Net<3>", "parameters": 1234, "optimizer": "SGD", "epochs": 2, "monitor": "val_loss"}),
    ("step", {"step": 5, "epoch": 1, "loss": 1.0, "lr": 0.1}),
    ("step", {"step": 10, "epoch": 1, "loss": float("nan"), "lr": 0.1}),
    ("epoch", {"epoch": 1, "step": 10, "loss": 0.9, "val_loss": 0.8, "val_accuracy": 0.5, "lr": 0.1}),
    ("epoch", {"epoch": 2, "step": 20, "loss": 0.7, "val_loss": 0.6, "val_accuracy": 0.75, "lr": 0.1}),
    ("end", {"reason": "finished", "step": 20, "epoch": 2, "best": 0.6, "best_epoch": 2}),
]


def test_a_line_that_was_cut_off_is_left_out(tmp_path):
    path = tmp_path / "run.jsonl"
    write(path, LINES)
    with open(path, "a") as file:
        file.write('{"kind": "epoch", "epo')
    lines = train.read_records(path)
    assert len(lines) == len(LINES) and lines[2]["loss"] == "nan"
    path.write_text("nonsense\n" + path.read_text())
    with pytest.raises(ValueError, match="line 1 of .* is not a record"):
        train.read_records(path)


def test_a_resumed_record_drops_what_was_not_kept(tmp_path):
    path = tmp_path / "run.jsonl"
    write(path, LINES)
    Records(path, after=(10, 1)).close()
    assert [(line["kind"], line.get("step")) for line in train.read_records(path)] == [("start", None), ("step", 5), ("step", 10), ("epoch", 10)]


def test_the_report_is_one_page_without_scripts(tmp_path):
    write(tmp_path / "run.jsonl", LINES)
    out = train.write_report(tmp_path)
    text = (tmp_path / "report.html").read_text()
    assert out == str(tmp_path / "report.html")
    assert "<script" not in text and not re.search(r"(src|href)=|url\(|@import", text)
    assert "prefers-color-scheme:dark" in text
    assert "Net&lt;3&gt;, 1,234 parameters" in text and "0.6 in epoch 2" in text and "finished" in text
    drawings = [ElementTree.fromstring(svg) for svg in re.findall(r"<svg.*?</svg>", text, re.S)]
    assert len(drawings) == 3  # loss, learning rate, accuracy
    labels = [drawing.get("aria-label") for drawing in drawings]
    assert "loss: each step ends at nan, training ends at 0.7, validation ends at 0.6" in labels


def test_training_and_validation_share_a_chart():
    lines = [{"kind": kind, **values} for kind, values in LINES]
    charts = dict(charts_of(lines))
    assert [curve.name for curve in charts["loss"]] == ["each step", "training", "validation"]
    assert charts["accuracy"][0].points == [(10, 0.5), (20, 0.75)]


@pytest.mark.parametrize("low, high, is_log", [(0, 1, False), (-3.2, 7.1, False), (1e-9, 2e-9, False), (5, 5, False), (1e-6, 10, True), (1, 90, True)])
def test_ticks_lie_within_the_range(low, high, is_log):
    scale = Scale(low, high, 0, 100, is_log=is_log)
    ticks = scale.ticks()
    assert 2 <= len(ticks) <= 8 and len(set(ticks)) == len(ticks)
    assert all(-1e-6 <= scale(tick) <= 100 + 1e-6 for tick in ticks)


def test_a_report_needs_a_record(tmp_path):
    with pytest.raises(FileNotFoundError, match="no record of a run"):
        train.write_report(tmp_path)
    (tmp_path / "run.jsonl").write_text("")
    with pytest.raises(ValueError, match="has no lines"):
        train.write_report(tmp_path)
    write(tmp_path / "run.jsonl", LINES[:1])
    train.write_report(tmp_path)
    assert "No numbers were recorded yet" in (tmp_path / "report.html").read_text()
