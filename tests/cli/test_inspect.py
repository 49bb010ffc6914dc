"""`cresset inspect`: the tensors of each format, from their descriptions alone."""

import json

import pytest

import cresset
from cresset import cli
from cresset.cli import contents


def test_a_checkpoint_lists_tensors_by_their_path_and_the_values_beside(tmp_path, capsys):
    path = tmp_path / "a.pt"
    cresset.save({"model": {"weight": cresset.ones(4, 3)}, "epoch": 3, "steps": [cresset.ones(2, dtype=cresset.int64)]}, path)
    assert cli.main(["inspect", str(path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split() == ["model.weight", "4x3", "float32", "48", "B"]
    assert lines[2].split() == ["steps.0", "2", "int64", "16", "B"]
    assert "epoch = 3" in lines and lines[-1].startswith("2 tensors, 14 elements, 64 B of data")


def test_safetensors_with_metadata_as_json(tmp_path, capsys):
    path = tmp_path / "a.safetensors"
    cresset.safetensors.save_file({"w": cresset.ones(2, 2, dtype=cresset.bfloat16)}, path, {"made": "here"})
    assert cli.main(["inspect", "--json", str(path)]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["tensors"] == [{"name": "w", "shape": [2, 2], "dtype": "bfloat16", "bytes": 8}] and said["others"] == {"made": "here"}


def test_numpy_files_without_loading_them(tmp_path):
    numpy = pytest.importorskip("numpy")
    numpy.savez(tmp_path / "a.npz", x=numpy.zeros((2, 3), "float64"), flag=numpy.array(True), word=numpy.array(["ab"]))
    found, _ = contents.read(str(tmp_path / "a.npz"))
    assert [(e["name"], e["shape"], e["dtype"], e["bytes"]) for e in found] == [
        ("x", [2, 3], "float64", 48), ("flag", [], "bool", 1), ("word", [1], "text2", 8),
    ]  # fmt: skip
    numpy.save(tmp_path / "b.npy", numpy.zeros(5, "float32"))
    assert contents.read(str(tmp_path / "b.npy"))[0][0]["bytes"] == 20


@pytest.mark.parametrize(
    "data, words",
    [
        (b"", "is empty"),
        (b"hello, world, this is text", "none of .pt, .safetensors"),
        (b"PK\x03\x04 and then nothing", "not a zip file"),
        (b"\x08\0\0\0\0\0\0\0{\"a\":1}}", "a.file"),
        (b"\x93NUMPY\x01\0\x05\0nope!", "header cannot be read"),
        (b"\x80\x02 junk", "a.file"),
    ],
)
def test_a_file_that_is_something_else_is_one_line(tmp_path, capsys, data, words):
    path = tmp_path / "a.file"
    path.write_bytes(data)
    assert cli.main(["inspect", str(path)]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert words in line


@pytest.mark.parametrize("count, text", [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (3 << 30, "3.0 GiB")])
def test_sizes_as_people_read_them(count, text):
    assert contents.size_text(count) == text
