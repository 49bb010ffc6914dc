"""Records and the report: lines survive a dying process, and the page shows what they say."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest

from cresset import cli, train
from cresset.train.records import Records
from cresset.train.report import Curve, Scale, chart, charts_of


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
    assert [(line["kind"], line.get("step")) for line in train.read_records(path)] == [
        ("start", None),
        ("step", 5),
        ("step", 10),
        ("epoch", 10),
    ]


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


@pytest.mark.parametrize(
    "low, high, is_log",
    [(0, 1, False), (-3.2, 7.1, False), (1e-9, 2e-9, False), (5, 5, False), (1e-6, 10, True), (1, 90, True)],
)
def test_ticks_lie_within_the_range(low, high, is_log):
    scale = Scale(low, high, 0, 100, is_log=is_log)
    ticks = scale.ticks()
    assert 2 <= len(ticks) <= 8 and len(set(ticks)) == len(ticks)
    assert all(-1e-6 <= scale(tick) <= 100 + 1e-6 for tick in ticks)


def test_the_ticks_of_an_axis_are_written_in_one_way():
    """0.0011 above 9.5e−4 would have to be read twice."""
    drawn = chart("learning rate", [Curve("rate", "train", [(1, 0.001), (9, 0.001)])], 9)
    ticks = re.findall(r'text-anchor="end">(.*?)</text>', drawn)
    assert ticks == ["0.0009", "0.00095", "0.001", "0.00105", "0.0011"]


def test_a_report_needs_a_record(tmp_path):
    with pytest.raises(FileNotFoundError, match="no record of a run"):
        train.write_report(tmp_path)
    (tmp_path / "run.jsonl").write_text("")
    with pytest.raises(ValueError, match="has no lines"):
        train.write_report(tmp_path)
    write(tmp_path / "run.jsonl", LINES[:1])
    train.write_report(tmp_path)
    assert "No numbers were recorded yet" in (tmp_path / "report.html").read_text()


SCRIPT = "<script>document.title='run'</script><img src=x onerror=\"document.title='run'\">'\"\x1b[2J\ud800"


class Reader(HTMLParser):
    """The tags and attributes of a page."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes = set(), set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        self.attributes.update(name for name, _ in attributes)


def report_of(folder, *lines):
    """The page of a run whose file has these lines, objects or text."""
    (folder / "run.jsonl").write_text(
        "".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines)
    )
    return Path(train.write_report(folder)).read_text(encoding="utf-8")


def test_nothing_of_a_record_becomes_a_part_of_the_page(tmp_path):
    page = report_of(
        tmp_path,
        {
            "kind": "start",
            "model": SCRIPT,
            "optimizer": SCRIPT,
            "device": SCRIPT,
            "monitor": SCRIPT,
            "epochs": 2,
            "seed": 1,
            SCRIPT: SCRIPT,
        },
        {"kind": "step", "step": 1, SCRIPT: 0.5, "loss": SCRIPT},
        {"kind": "epoch", "epoch": 1, SCRIPT: 0.5, "val_" + SCRIPT: 1.5, "lr": SCRIPT},
        {"kind": "epoch", "epoch": 2, SCRIPT: 0.5},
        {"kind": SCRIPT, "epoch": 2},
        {"kind": "end", "reason": SCRIPT, "best": SCRIPT, "best_epoch": 1},
    )
    read = Reader(page)
    assert read.tags <= {"html", "head", "meta", "title", "style", "body", "h1", "dl", "div", "dt", "dd", "main",
        "figure", "figcaption", "span", "i", "svg", "path", "text", "polyline", "circle", "details", "summary", "table",
        "thead", "tbody", "tr", "th", "td", "p"}  # fmt: skip
    assert not [name for name in read.attributes if name.startswith("on") or name in ("src", "href", "style")]
    assert "&lt;script&gt;" in page and "\x1b" not in page


@pytest.mark.parametrize("name", ["step", "epoch"])
@pytest.mark.parametrize("value", ["<script>1</script>", 1.5, None, True, [1], {"a": 1}, 2**64])
def test_a_place_in_the_run_that_is_no_number_is_an_error(tmp_path, name, value):
    with pytest.raises(ValueError, match=rf"line 1 of .*{name} should be a whole number"):
        report_of(tmp_path, {"kind": "epoch", "epoch": 1, "step": 1, name: value})


ODD = [
    "[]", "3", "{}", '{"kind": 1}', '{"kind": null}', '{"kind": "epoch"}', '{"kind": "step"}', '{"kind": "end"}',
    '{"kind": "start", "parameters": "x"}',
    '{"kind": "start", "model": ["a"]}', '{"kind": "start", "epochs": {}}', '{"kind": "start", "monitor": 7}',
    '{"kind": "end", "reason": 5}',
    '{"kind": "end", "reason": "x", "best": 1, "best_epoch": "<b>"}', "[" * 100_000, '{"a":' * 10_000, "\x00",
    '{"kind": "epoch", "epoch": ' + "9" * 5000 + "}",
]  # fmt: skip


@pytest.mark.parametrize("line", ODD, ids=lambda line: line[:40])
def test_an_odd_line_is_one_line_of_error(tmp_path, capsys, line):
    (tmp_path / "run.jsonl").write_text(line + '\n{"kind": "epoch", "epoch": 1}\n')
    assert cli.main(["report", str(tmp_path)]) == 1
    assert re.fullmatch(
        r"cresset: report: read_records: line 1 of .* is not a record of a run \(.*\)\n", capsys.readouterr().err
    )


@pytest.mark.parametrize(
    "lines",
    [
        ['{"kind": "epoch", "epoch": 1, "loss": 1e308}', '{"kind": "epoch", "epoch": 2, "loss": -1e308}'],
        [
            '{"kind": "epoch", "epoch": 1, "loss": 5e-324}',
            '{"kind": "epoch", "epoch": 2, "loss": 1e-323}',
            '{"kind": "epoch", "epoch": 3, "loss": 1e9}',
        ],
        ['{"kind": "epoch", "epoch": 1, "loss": ' + "9" * 400 + "}"],
        ['{"kind": "epoch", "epoch": 1, "loss": NaN}', '{"kind": "epoch", "epoch": 2, "loss": "inf", "time": "nan"}'],
        [
            '{"kind": "step", "step": 9223372036854775807, "loss": 1}',
            '{"kind": "step", "step": -5, "loss": 1.0000000000000002}',
        ],
        [
            '{"kind": "epoch", "epoch": 1, "loss": 1, "time": 1e308}',
            '{"kind": "epoch", "epoch": 2, "loss": 2, "time": -1e308}',
        ],
        ['{"kind": "epoch", "epoch": 1, "loss": true, "other": [1], "more": {"a": null}}'],
        [
            '{"kind": "start", "model": null, "parameters": null, "epochs": null}',
            '{"kind": "end", "reason": null, "best": null}',
        ],
    ],
)
def test_odd_numbers_still_make_a_page(tmp_path, lines):
    for svg in re.findall(r"<svg.*?</svg>", report_of(tmp_path, *lines), re.S):
        ElementTree.fromstring(svg)


def test_a_record_of_many_names_makes_a_page_of_bounded_size(tmp_path):
    lines = [{"kind": "epoch", "epoch": n, f"name{n}": 1.0} for n in range(5000)]
    page = report_of(tmp_path, *lines)
    assert page.count("<figure") == 100 and len(page) < 2_000_000


def test_the_record_of_a_long_run_is_read(tmp_path):
    line = (
        '{"kind": "step", "time": 1763236800.123, "step": %d, "epoch": 1, "batch": 5, "loss": 0.51234, "lr": '
        '0.1, "samples_per_second": 100.0}\n'
    )
    (tmp_path / "run.jsonl").write_text("".join(line % n for n in range(150_000)))
    assert len(train.read_records(tmp_path / "run.jsonl")) == 150_000


def test_a_record_that_would_take_much_memory_is_refused(tmp_path):
    with pytest.raises(ValueError, match="take much more memory"):
        report_of(tmp_path, '{"kind": "x", "a": [' + "[]," * 1_000_000 + "0]}")
