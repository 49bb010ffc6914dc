"""`cresset inspect`: the tensors of each format, from their descriptions alone."""

import io
import json
import os
import struct
import subprocess
import sys
import time

import pytest

import cresset
from cresset import cli
from cresset.cli import contents
from cresset.serialization.archive import ArchiveWriter


def test_a_checkpoint_lists_tensors_by_their_path_and_the_values_beside(tmp_path, capsys):
    path = tmp_path / "a.pt"
    cresset.save(
        {"model": {"weight": cresset.ones(4, 3)}, "epoch": 3, "steps": [cresset.ones(2, dtype=cresset.int64)]}, path
    )
    assert cli.main(["inspect", str(path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split() == ["model.weight", "4x3", "float32", "48", "B"]
    assert lines[2].split() == ["steps.0", "2", "int64", "16", "B"]
    assert "epoch = 3" in lines and lines[-1].startswith("2 tensors, 14 elements, 64 B of data")


def test_a_torchscript_archive_lists_its_tensors_and_methods(tmp_path, capsys):
    path = tmp_path / "m.pt"
    cresset.jit.trace(cresset.nn.Linear(3, 2), cresset.ones(1, 3)).save(path)
    assert cli.main(["inspect", str(path)]) == 0
    out = capsys.readouterr().out
    assert out.splitlines()[1].split() == ["weight", "2x3", "float32", "24", "B"]
    assert "method forward" in out and "2 tensors, 8 elements" in out


def test_an_exported_program_lists_its_tensors_inputs_and_outputs(tmp_path, capsys):
    path = tmp_path / "m.pt2"
    cresset.export.save(cresset.export.export(cresset.nn.PReLU(), (cresset.ones(1, 3),)), path)
    assert cli.main(["inspect", str(path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split() == ["weight", "1", "float32", "4", "B"]
    assert "inputs = input" in lines and lines[-1].startswith("1 tensor, 1 elements, 4 B of data")


def test_safetensors_with_metadata_as_json(tmp_path, capsys):
    path = tmp_path / "a.safetensors"
    cresset.safetensors.save_file({"w": cresset.ones(2, 2, dtype=cresset.bfloat16)}, path, {"made": "here"})
    assert cli.main(["inspect", "--json", str(path)]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["tensors"] == [{"name": "w", "shape": [2, 2], "dtype": "bfloat16", "bytes": 8}] and said["others"] == {
        "made": "here"
    }


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
        (b"hello, world, this is text", "none of .pt, .pt2, .safetensors"),
        (b"PK\x03\x04 and then nothing", "central directory"),
        (b'\x08\0\0\0\0\0\0\0{"a":1}}', "a.file"),
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


def archive(pickled):
    """A checkpoint with this pickle."""
    file = io.BytesIO()
    writer = ArchiveWriter(file, "archive")
    writer.write("data.pkl", pickled)
    writer.write("version", b"3\n")
    writer.close()
    return file.getvalue()


def inspected(tmp_path, capsys, data, *options):
    """(exit status, standard output, standard error) for a file with these bytes."""
    path = tmp_path / "a.pt"
    path.write_bytes(data)
    return cli.main(["inspect", str(path), *options]), *capsys.readouterr()


def test_lists_that_share_lists_are_looked_into_once(tmp_path, capsys):
    start = time.perf_counter()
    data = archive(b"\x80\x02]q\x00" + b"".join(b"(h%ch%clq%c" % (n, n, n + 1) for n in range(60)) + b".")
    status, out, _ = inspected(tmp_path, capsys, data, "--json")
    assert status == 0 and time.perf_counter() - start < 10
    others = json.loads(out)["others"]
    assert others["1"] == "<the list at 0>" and len(others) == 60


def test_a_list_that_contains_itself_ends(tmp_path, capsys):
    status, out, _ = inspected(tmp_path, capsys, archive(b"\x80\x02]q\x00h\x00a."))
    assert status == 0 and "0 = <the list at the top>" in out


@pytest.mark.parametrize("levels", [999, 1001, 50_000])
def test_deep_lists_are_listed(tmp_path, capsys, levels):
    status, out, _ = inspected(
        tmp_path, capsys, archive(b"\x80\x02" + b"]" * levels + b"K\x07a" + b"a" * (levels - 1) + b".")
    )
    assert status == 0
    (line,) = [line for line in out.splitlines() if line.endswith(" = 7")]
    assert line.startswith("0.0.0.") and len(line) < 400


def test_leaves_on_every_level_of_a_deep_list_have_short_names(tmp_path, capsys):
    levels = 50_000
    status, out, _ = inspected(
        tmp_path, capsys, archive(b"\x80\x02" + b"]K\x01a" * levels + b"a" * (levels - 1) + b"."), "--json"
    )
    assert status == 0 and len(out) < 100 * levels


NASTY = "\x1b[2J\x1b]0;owned\x07 \r\n\u2028\u202e\x9b31m\x7fweight 4x4 float32"


def test_names_and_values_from_a_file_are_escaped(tmp_path, capsys):
    cresset.save({NASTY: cresset.ones(2), "text": NASTY, ("a", NASTY): 1}, tmp_path / "a.pt")
    cresset.safetensors.save_file({NASTY: cresset.ones(2)}, tmp_path / "a.safetensors", {NASTY: NASTY})
    for name in ("a.pt", "a.safetensors"):
        assert cli.main(["inspect", str(tmp_path / name)]) == 0
        out = capsys.readouterr().out
        assert out.replace("\n", "").isprintable() and "\\x1b[2J" in out
        assert not [line for line in out.splitlines() if line.strip().startswith("weight")]


def test_errors_that_quote_a_file_are_escaped_and_one_line(tmp_path, capsys):
    name = b"\x1b[2Jevil\x07"
    for data in (
        archive(b"\x80\x02c" + name + b"\nx\n."),
        archive(b"\x80\x04\x8c\x05a\nb\rc\x8c\x01x\x93."),
        b"\x93NUMPY\x01\0\x30\0{'descr': '" + name + b"'",
        struct.pack("<Q", 30) + b'{"' + name + b'":{"dtype":1}}' + b" " * 10,
    ):
        status, out, error = inspected(tmp_path, capsys, data)
        assert (status, out) == (1, "") and len(error.splitlines()) == 1
        assert error.rstrip("\n").isprintable()


def test_large_numbers_and_odd_keys_are_told_by_their_kind(tmp_path, capsys):
    cresset.save({10**5000: 1, "big": 10**5000, (1, (2, (3,))): 2, None: 3, ("a", 1): 4}, tmp_path / "a.pt")
    for options in ([], ["--json"]):
        assert cli.main(["inspect", str(tmp_path / "a.pt"), *options]) == 0
        out = capsys.readouterr().out
        for said in ("<int>", "<tuple>", "None", "(a, 1)"):
            assert said in out


def test_arrays_that_claim_more_than_the_file_has_are_errors(tmp_path, capsys):
    def array(header):
        return b"\x93NUMPY\x01\0" + struct.pack("<H", len(header)) + header

    for header in (
        b"{'descr': '<f8', 'fortran_order': False, 'shape': (1000000, 1000000), }",
        b"{'descr': '<f8', 'fortran_order': False, 'shape': (" + b"9" * 3000 + b",), }",
        b"{'descr': '<f999999999', 'fortran_order': False, 'shape': (7,), }",
        b"{'descr': '<f8', 'fortran_order': False, 'shape': (" + b"99999," * 800 + b"), }",
        b"-" * 9000 + b"1",
        b"(" * 9000,
    ):
        status, _, error = inspected(tmp_path, capsys, array(header))
        assert status == 1 and len(error.splitlines()) == 1


def test_compressed_arrays_are_listed_from_their_headers(tmp_path):
    numpy = pytest.importorskip("numpy")
    numpy.savez_compressed(tmp_path / "a.npz", x=numpy.zeros((1000, 1000)), y=numpy.arange(3))
    found, _ = contents.read(str(tmp_path / "a.npz"))
    assert [(e["name"], e["shape"], e["bytes"]) for e in found] == [("x", [1000, 1000], 8_000_000), ("y", [3], 24)]


def test_letters_that_the_terminal_lacks_are_escaped(tmp_path):
    cresset.save({"größe 😀": 1}, tmp_path / "a.pt")
    done = subprocess.run(
        [sys.executable, "-m", "cresset", "inspect", str(tmp_path / "a.pt")],
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )
    assert done.returncode == 0 and b"gr\\xf6" in done.stdout


def test_what_is_named_a_million_times_is_listed_up_to_a_limit(tmp_path, capsys):
    status, out, _ = inspected(tmp_path, capsys, archive(b"\x80\x02](" + b"K\x01" * 200_000 + b"e."), "--json")
    assert status == 0 and len(json.loads(out)["others"]) == contents.LISTED
