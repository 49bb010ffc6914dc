"""The command line: what each command prints, its exit status, and no traceback for a user's mistake."""

import json
import os
import re
import signal
import subprocess
import sys
import time
import zlib

import pytest

import cresset
from cresset import cli
from cresset.cli import canvas, digits, doctor, terminal

ROOT = os.path.dirname(os.path.dirname(cresset.__file__))


def environment():
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([ROOT, os.environ.get("PYTHONPATH", "")]),
        "OMP_NUM_THREADS": "1",
    }


def run(*arguments, cwd=None):
    command = [sys.executable, "-m", "cresset", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=environment(), timeout=100)


def test_help_names_every_command(capsys):
    with pytest.raises(SystemExit) as stopped:
        cli.main(["--help"])
    assert stopped.value.code == 0
    shown = capsys.readouterr().out
    assert all(re.search(rf"^    {command}( |$)", shown, re.M) for command in cli.COMMANDS)


def test_no_command_shows_the_help_and_is_a_mistake(capsys):
    assert cli.main([]) == 2
    assert "cresset train digits" in capsys.readouterr().out


def test_version(capsys):
    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out == f"cresset {cresset.version.__version__}\n"


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["train", "digits", "--epochs", "0"], "whole number above zero, got '0'"),
        (["train", "cats"], "invalid choice: 'cats'"),
        (["inspect"], "required: FILE"),
        (["run"], "required: SCRIPT\n"),
        (["train", "digits", "--lr", "1"], "cresset train digits: error: unrecognized arguments: --lr 1"),
    ],
)
def test_a_bad_argument_has_status_2(arguments, words, capsys):
    with pytest.raises(SystemExit) as stopped:
        cli.main(arguments)
    assert stopped.value.code == 2 and words in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["inspect", "nowhere.pt"], "nowhere.pt: No such file"),
        (["run", "nowhere.py"], "run: there is no program 'nowhere.py'"),
        (["report", "nowhere.jsonl"], "report: "),
        (["train", "gpt", "--temperature", "-1"], "--temperature must not be negative, got -1.0"),
        (["train", "gpt", "--text", "nowhere.txt"], "nowhere.txt: No such file"),
    ],
)
def test_a_mistake_is_one_line_and_status_1(arguments, words, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert cli.main(arguments) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("cresset: ") and words in line


def test_an_interrupt_has_status_130_and_no_traceback():
    command = [sys.executable, "-m", "cresset", "train", "digits", "--epochs", "1000"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment())
    process.stdout.readline()
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130 and errors.strip() == "cresset: interrupted"


def test_the_digits_are_1797_pictures_of_ten_kinds():
    pictures, labels = digits.load_digits()
    assert pictures.shape == (1797, 1, 8, 8) and labels.shape == (1797,)
    assert labels[:10].tolist() == list(range(10)) and pictures.max().item() == 1.0
    assert labels.bincount().min().item() >= 170


def test_the_split_keeps_learning_and_test_apart():
    learn, test = digits.split_digits()
    assert len(learn[0]) + len(test[0]) == 1797 and len(test[0]) == 297


def test_train_digits_draws_and_saves(tmp_path):
    done = run(
        "train",
        "digits",
        "--epochs",
        3,
        "--batch",
        64,
        "--png",
        tmp_path / "p.png",
        "--save",
        tmp_path / "w.safetensors",
    )
    assert done.returncode == 0, done.stderr
    assert len(re.findall(r"^epoch", done.stdout, re.M)) == 3
    assert float(re.search(r"Read (\d+\.\d)% of the unseen digits", done.stdout)[1]) > 80
    assert (tmp_path / "p.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    model = digits.make_model()
    cresset.safetensors.load_model(model, tmp_path / "w.safetensors")
    assert digits.evaluate(model, *digits.split_digits()[1])[1] > 0.8


def test_train_gpt_learns_and_writes(tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("def f(x): return x\n" * 200)
    done = run(
        "train",
        "gpt",
        "--text",
        text,
        "--steps",
        40,
        "--batch",
        8,
        "--context",
        16,
        "--width",
        32,
        "--layers",
        1,
        "--sample",
        30,
        "--temperature",
        0,
    )
    assert done.returncode == 0, done.stderr
    losses = [float(loss) for loss in re.findall(r"\] loss (\d+\.\d+)", done.stdout)]
    assert losses[-1] < 0.7 * losses[0]
    assert "def " in done.stdout


def test_doctor_finds_that_cresset_works(capsys):
    assert cli.main(["doctor", "--json"]) == 0
    found = {item["topic"]: item for item in json.loads(capsys.readouterr().out)}
    assert found["cresset"]["state"] == "good" and {"threads", "memory", "LAPACK", "numpy", "CUDA"} <= set(found)


def test_doctor_says_how_to_get_what_is_missing(monkeypatch, capsys):
    monkeypatch.setattr(doctor, "PACKAGES", [("no_such_module", "no-such-package", "try this")])
    assert cli.main(["doctor"]) == 0
    assert (
        "not installed; to try this" in (shown := capsys.readouterr().out) and "-> pip install no-such-package" in shown
    )


def test_doctor_says_how_to_get_a_library_of_cuda(monkeypatch, capsys):
    monkeypatch.setattr(
        doctor, "CUDA_LIBRARIES", [("NVRTC", ("libnosuchlibrary.so.1",), "nvrtcVersion", "compiles kernels")]
    )
    cli.main(["doctor"])
    assert (
        "NVRTC            not found (compiles kernels)" in (shown := capsys.readouterr().out)
        and "pip install cresset[cuda]" in shown
    )


def test_doctor_fails_when_gradients_are_wrong(monkeypatch, capsys):
    monkeypatch.setattr(doctor, "works", lambda: doctor.finding("cresset", doctor.BAD, "broken", "install it again"))
    assert cli.main(["doctor"]) == 1
    assert "1 things that cresset needs do not work" in capsys.readouterr().out


def test_a_curve_falls_from_left_to_right():
    lines = terminal.curve([2.0, 1.0, 0.0], width=6, height=3, unit=lambda v: f"{v:.0f}").splitlines()
    assert [line.split("|")[0].strip() for line in lines] == ["2", "", "0"]
    assert (
        len({len(line) for line in lines}) >= 1
        and lines[0].split("| ")[1].strip()
        and lines[-1].rstrip()[-1] not in " |"
    )


def test_a_canvas_is_a_png_that_can_be_read_back():
    drawn = canvas.Canvas(3, 2, (255, 255, 255))
    drawn.rectangle(1, 0, 1, 2, (255, 0, 0))
    data = drawn.png()
    assert data[16:24] == (3).to_bytes(4, "big") + (2).to_bytes(4, "big")
    length = int.from_bytes(data[33:37], "big")
    row = b"\0" + b"\xff\xff\xff" + b"\xff\0\0" + b"\xff\xff\xff"
    assert data[37:41] == b"IDAT" and zlib.decompress(data[41 : 41 + length]) == row * 2


def test_report_writes_a_page_about_a_run(tmp_path, capsys):
    records = cresset.train.records.Records(tmp_path / "run.jsonl")
    records.write("epoch", epoch=1, step=10, loss=0.5)
    records.close()
    assert cli.main(["report", str(tmp_path)]) == 0
    assert capsys.readouterr().out == f"wrote {tmp_path / 'report.html'}\n"
    assert "<svg" in (tmp_path / "report.html").read_text()
    (tmp_path / "empty.jsonl").write_text("")
    assert cli.main(["report", str(tmp_path / "empty.jsonl")]) == 1
    assert "has no lines" in capsys.readouterr().err


@pytest.mark.parametrize(
    "model, small",
    [
        ("digits", ["--epochs", "2"]),
        ("gpt", ["--steps", "8", "--letters", "20000", "--sample", "4", "--width", "16", "--layers", "1"]),
    ],
)
def test_training_records_a_run_that_report_draws(model, small, tmp_path, capsys):
    folder = str(tmp_path / "first")
    assert cli.main(["train", model, *small, "--run", folder]) == 0
    assert "`cresset report" in capsys.readouterr().out
    assert cli.main(["report", folder]) == 0
    assert "<svg" in (tmp_path / "first" / "report.html").read_text()
    lines = [json.loads(line) for line in (tmp_path / "first" / "run.jsonl").read_text().splitlines()]
    assert lines[0]["kind"] == "start" and lines[-1]["reason"] == "finished"
    assert cli.main(["train", model, *small, "--run", folder]) == 1
    assert "holds a run already" in capsys.readouterr().err


@pytest.mark.parametrize(
    "option, place, words",
    [
        ("--save", "none/weights.pt", "--save none/weights.pt: there is no folder none"),
        ("--png", "none/picture.png", "--png none/picture.png: there is no folder none"),
        ("--save", ".", "--save . is a folder; name a file in it"),
        ("--run", "a_file", "--run a_file is a file; name a folder"),
    ],
)
def test_a_place_that_cannot_be_written_is_said_before_training(option, place, words, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a_file").write_text("")
    assert cli.main(["train", "digits", option, place]) == 1
    shown = capsys.readouterr()
    assert words in shown.err and not shown.out


def test_a_report_is_not_written_where_there_is_no_folder(tmp_path, capsys):
    assert cli.main(["report", str(tmp_path), "--out", str(tmp_path / "none" / "page.html")]) == 1
    assert "there is no folder" in capsys.readouterr().err


def test_a_device_that_is_not_there_is_said_in_one_line(capsys):
    assert cli.main(["train", "digits", "--device", "toaster"]) == 1
    assert "train: --device toaster" in capsys.readouterr().err
    assert cli.main(["train", "digits", "--device", "meta"]) == 1
    assert "expected cpu, cuda or cuda:1" in capsys.readouterr().err


@pytest.mark.parametrize("model", ["digits", "gpt"])
def test_the_help_of_training_tells_the_defaults(model, capsys):
    with pytest.raises(SystemExit):
        cli.main(["train", model, "--help"])
    shown = capsys.readouterr().out
    options = re.findall(r"^  (--[a-z]+)", shown, re.M)
    assert len(options) > 6
    for option in set(options) - {"--png", "--save"}:
        text = shown[shown.index(f"\n  {option}") + 1 :].split("\n  --")[0]
        assert "(default:" in " ".join(text.split()), option


def test_serving_imports_nothing_of_its_extra_before_it_is_used():
    program = (
        "import sys, cresset.serve, cresset.cli; cresset.cli.make_parser(); cresset.serve.ModelSettings('m', 'm.pt2'); "
        "print(sorted({'starlette', 'uvicorn', 'httpx', 'anyio', 'httptools', 'orjson'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=environment(), timeout=60
    )
    assert done.stdout == "[]\n", done.stderr


@pytest.mark.parametrize("missing", ["starlette", "uvicorn", "httptools", "orjson"])
def test_serving_without_its_extra_says_how_to_get_it(missing, monkeypatch, capsys):
    for name in ("starlette", "uvicorn", "httptools", "orjson"):  # the others are there, or seem to be
        monkeypatch.setitem(sys.modules, name, None if name == missing else sys.modules[__name__])
    assert cli.main(["serve", "model.pt2"]) == 1
    assert (
        capsys.readouterr().err
        == f'cresset: serve: {missing} is not installed; pip install "cresset[serve]" brings it\n'
    )
