"""Datasets over files: rows by number, errors that name file and line, and the same samples with workers."""

import doctest
import io
import json
import pickle
import re
import struct
import tarfile

import pytest

import cresset
from cresset.data import readers
from cresset.utils.data import (
    ArrayDataset,
    CsvDataset,
    DataLoader,
    JsonLinesDataset,
    ParquetDataset,
    TarDataset,
    TextLinesDataset,
)


@pytest.fixture
def write(tmp_path):
    """Writes a text or bytes to a file and gives its path."""

    def go(data, name="data.txt"):
        (tmp_path / name).write_bytes(data if isinstance(data, bytes) else data.encode())
        return tmp_path / name

    return go


@pytest.mark.parametrize("module", [readers.tables, readers.arrays, readers.tar], ids=lambda m: m.__name__)
def test_the_examples_in_the_documentation_run(module):
    result = doctest.testmod(module, extraglobs={"cresset": cresset})
    assert result.failed == 0 and result.attempted > 0


def test_text_lines_with_blank_ones_and_any_line_end(write):
    lines = TextLinesDataset(write("one\r\n\nthree ü"))
    assert list(lines) == ["one", "", "three ü"] and len(lines) == 3 and lines[-3] == "one"
    with pytest.raises(IndexError, match="index 3 is out of range; .* has 3 records"):
        lines[3]


def test_an_empty_text_has_no_lines(write):
    assert len(TextLinesDataset(write(""))) == 0


def test_bytes_that_are_no_text_are_named_by_line(write):
    with pytest.raises(ValueError, match=r"data.txt, line 2: not utf-8 \(invalid start byte at byte 1\)"):
        TextLinesDataset(write(b"good\nb\xffad\n"))[1]


def test_a_pickled_dataset_opens_its_file_again(write):
    again = pickle.loads(pickle.dumps(TextLinesDataset(write("a\nb\n"), transform=str.upper)))
    assert list(again) == ["A", "B"]


def test_a_file_that_became_shorter_is_an_error(write):
    path = write("first\nsecond\n")
    lines = TextLinesDataset(path)
    path.write_text("first\n")
    with pytest.raises(RuntimeError, match="line 2: the file has become shorter"):
        lines[1]


def test_json_lines_skip_blank_lines_and_name_bad_ones(write):
    values = JsonLinesDataset(write('{"x": 1}\n\n[2, 3]\n{"x": \n'))
    assert len(values) == 3 and values[0] == {"x": 1} and values[1] == [2, 3]
    with pytest.raises(ValueError, match="data.txt, line 4: not JSON"):
        values[2]


def test_csv_with_quotes_line_ends_and_types(write):
    table = CsvDataset(write('text,label\r\n"a, ""b""\nc",1\r\nplain,2\r\n'), types={"label": int})
    assert list(table) == [{"text": 'a, "b"\nc', "label": 1}, {"text": "plain", "label": 2}]


def test_csv_columns_names_and_delimiter(write):
    path = write("1;2;3\n4;5;6\n")
    table = CsvDataset(path, names=["a", "b", "c"], columns=["c", "a"], delimiter=";", types={"c": float})
    assert table[1] == {"c": 6.0, "a": "4"} and list(table[1]) == ["c", "a"]


@pytest.mark.parametrize(
    "text, options, words",
    [
        ("a,b\n1,2\n3\n", {}, "line 3: 1 fields, expected 2 (a, b)"),
        ("a,b\n1,2\n3,x\n", {"types": {"b": int}}, "line 3, column 'b': 'x' does not convert"),
        ('a,b\n"1\n\n",2\n3\n', {}, "line 5: 1 fields"),
        ("a,b\n", {"columns": ["c"]}, "there is no column 'c'; the columns are a, b"),
        ('a\n"open\n', {}, "line 2: a quote is opened and never closed"),
        ("", {}, "the file is empty"),
        ("a,a\n", {}, "two columns have the same name"),
    ],
)
def test_a_bad_csv_is_named_by_line(write, text, options, words):
    with pytest.raises(ValueError) as raised:
        list(CsvDataset(write(text), **options))
    assert words in str(raised.value) and "data.txt" in str(raised.value)


@pytest.mark.parametrize("workers", [0, 2])
def test_csv_in_a_loader_with_workers(write, workers):
    path = write("x,y\n" + "".join(f"{i},{i * i}\n" for i in range(10)))
    loader = DataLoader(CsvDataset(path, types={"x": float, "y": int}), batch_size=4, num_workers=workers)
    assert [batch["y"].tolist() for batch in loader] == [[0, 1, 4, 9], [16, 25, 36, 49], [64, 81]]


def test_arrays_of_numpy_are_mapped(tmp_path):
    numpy = pytest.importorskip("numpy")
    x = numpy.arange(12, dtype="float32").reshape(4, 3)
    numpy.save(tmp_path / "x.npy", x)
    rows = ArrayDataset(tmp_path / "x.npy")
    assert len(rows) == 4 and rows[2].tolist() == [6.0, 7.0, 8.0] and rows[-1].dtype == cresset.float32
    numpy.save(tmp_path / "f.npy", numpy.asfortranarray(x))
    assert ArrayDataset(tmp_path / "f.npy")[1].tolist() == [3.0, 4.0, 5.0]
    numpy.savez(tmp_path / "xy.npz", x=x, y=numpy.arange(4))
    both = ArrayDataset(tmp_path / "xy.npz")
    assert both[3]["x"].tolist() == [9.0, 10.0, 11.0] and both[3]["y"].item() == 3
    assert ArrayDataset(tmp_path / "xy.npz", names="y")[1].item() == 1
    assert pickle.loads(pickle.dumps(both))[0]["y"].item() == 0


def test_changing_a_row_does_not_change_the_file(tmp_path):
    cresset.safetensors.save_file({"x": cresset.zeros(2, 2)}, tmp_path / "a.safetensors")
    ArrayDataset(tmp_path / "a.safetensors", names="x")[0].fill_(5)
    assert ArrayDataset(tmp_path / "a.safetensors", names="x")[0].tolist() == [0.0, 0.0]


def test_arrays_that_do_not_fit_are_refused(tmp_path):
    path = tmp_path / "a.safetensors"
    cresset.safetensors.save_file({"x": cresset.zeros(2), "y": cresset.zeros(3), "n": cresset.tensor(1.0)}, path)
    with pytest.raises(ValueError, match="'n' is a single number"):
        ArrayDataset(path)
    with pytest.raises(ValueError, match="differ in their number of rows: {'x': 2, 'y': 3}"):
        ArrayDataset(path, names=["x", "y"])
    with pytest.raises(ValueError, match="there is no array 'z'"):
        ArrayDataset(path, names="z")
    numpy = pytest.importorskip("numpy")
    numpy.savez_compressed(tmp_path / "c.npz", x=numpy.zeros(3))
    with pytest.raises(ValueError, match="'x' is compressed and cannot be mapped"):
        ArrayDataset(tmp_path / "c.npz")
    (tmp_path / "short.npy").write_bytes(
        b"\x93NUMPY\x01\x00\x40\x00" + b"{'descr': '<f8', 'fortran_order': False, 'shape': (9,), }".ljust(64)
    )
    with pytest.raises(ValueError, match="needs 72 bytes, the file ends before"):
        ArrayDataset(tmp_path / "short.npy")


def test_parquet_rows_across_groups_and_files(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    pytest.importorskip("pyarrow.parquet")
    for name, start in (("a.parquet", 0), ("b.parquet", 5)):
        table = pyarrow.table({"x": list(range(start, start + 5)), "word": [f"w{i}" for i in range(start, start + 5)]})
        pyarrow.parquet.write_table(table, tmp_path / name, row_group_size=2)
    rows = ParquetDataset([tmp_path / "a.parquet", tmp_path / "b.parquet"])
    assert len(rows) == 10 and [row["x"] for row in rows] == list(range(10)) and rows[-1] == {"x": 9, "word": "w9"}
    assert ParquetDataset(tmp_path / "a.parquet", columns=["x"])[1] == {"x": 1}
    with pytest.raises(ValueError, match="there is no column 'z'"):
        ParquetDataset(tmp_path / "a.parquet", columns=["z"])
    (tmp_path / "c.parquet").write_text("this is not parquet at all")
    with pytest.raises(ValueError, match="c.parquet: not a Parquet file"):
        ParquetDataset(tmp_path / "c.parquet")


def make_shard(path, members, mode="w"):
    with tarfile.open(path, mode) as archive:
        for name, data in members:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))


@pytest.fixture
def shards(tmp_path):
    for shard in range(3):
        members = []
        for i in range(2):
            number = 2 * shard + i
            members += [
                (f"a/{number}.cls", str(number).encode()),
                (f"a/{number}.json", json.dumps({"n": number}).encode()),
                (f"a/{number}.bin", b"raw"),
            ]
        make_shard(tmp_path / f"s-{shard:02d}.tar", members)
    return tmp_path


def test_members_with_one_name_form_a_sample(shards):
    samples = list(TarDataset(str(shards / "s-{00..02}.tar")))
    assert [sample["cls"] for sample in samples] == list(range(6))
    assert samples[3] == {"__key__": "a/3", "cls": 3, "json": {"n": 3}, "bin": b"raw"}
    assert [sample["cls"] for sample in TarDataset(str(shards / "s-*.tar"), transform=dict)] == list(range(6))


@pytest.mark.parametrize("workers", [0, 1, 2, 4])
def test_workers_share_the_shards(shards, workers):
    data = TarDataset(str(shards / "s-*.tar"), transform=lambda sample: sample["cls"])
    assert sorted(n for batch in DataLoader(data, batch_size=2, num_workers=workers) for n in batch.tolist()) == list(
        range(6)
    )


def test_ranks_share_the_shards(shards):
    parts = [[s["cls"] for s in TarDataset(str(shards / "s-*.tar"), rank=rank, world_size=2)] for rank in range(2)]
    assert parts == [[0, 1, 4, 5], [2, 3]]
    with pytest.raises(ValueError, match="rank must be from 0 to world_size - 1 = 1, got 2"):
        TarDataset(str(shards / "s-00.tar"), rank=2, world_size=2)


def test_the_order_of_the_shards_follows_seed_and_epoch(shards):
    data = TarDataset(str(shards / "s-*.tar"), shuffle=True)
    orders = set()
    for epoch in range(8):
        data.set_epoch(epoch)
        order = tuple(sample["cls"] for sample in data)
        assert order == tuple(sample["cls"] for sample in data) and sorted(order) == list(range(6))
        orders.add(order)
    assert len(orders) > 1


def test_decoding_can_be_added_to_and_turned_off(shards, tmp_path):
    file = io.BytesIO()
    cresset.save(cresset.arange(3), file)
    make_shard(tmp_path / "t.tar.gz", [("x.pt", file.getvalue()), ("x.up", b"low")], "w:gz")
    (sample,) = TarDataset(tmp_path / "t.tar.gz", decode={"up": bytes.upper})
    assert sample["pt"].tolist() == [0, 1, 2] and sample["up"] == b"LOW"
    assert next(iter(TarDataset(shards / "s-00.tar", decode=False)))["cls"] == b"0"


def test_what_is_wrong_with_a_shard_is_said(tmp_path):
    make_shard(tmp_path / "bad.tar", [("x.json", b"{")])
    with pytest.raises(ValueError, match="bad.tar: the member 'x.json' cannot be decoded"):
        list(TarDataset(tmp_path / "bad.tar"))
    (tmp_path / "no.tar").write_bytes(b"not a tar file")
    with pytest.raises(ValueError, match="no.tar: not a tar file, or cut short"):
        list(TarDataset(tmp_path / "no.tar"))
    with pytest.raises(FileNotFoundError, match="no file matches"):
        TarDataset(str(tmp_path / "none-*.tar"))


def shard(folder, members, name="a.tar", mode="w", sizes=()):
    """A tar file with these members; `sizes` are said in the headers instead of the true ones."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode=mode) as archive:
        for title, data in members.items():
            member = tarfile.TarInfo(title)
            member.size = dict(sizes).get(title, len(data))
            archive.addfile(member, io.BytesIO(data) if member.size == len(data) else None)
    (folder / name).write_bytes(file.getvalue())
    return str(folder / name)


class TestHostileShards:
    @pytest.mark.parametrize("mode", ["w", "w:gz", "w:bz2", "w:xz"])
    def test_a_packed_member_beyond_all_measure_is_refused(self, tmp_path, mode):
        path = shard(tmp_path, {"a.bin": bytes(40_000_000)}, mode=mode)
        if mode == "w":
            assert len(next(iter(TarDataset(path)))["bin"]) == 40_000_000
            return
        with pytest.raises(ValueError, match="more than 4 times the file's size"):
            list(TarDataset(path))

    def test_an_array_that_claims_more_than_its_member_has_is_refused(self, tmp_path):
        header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (1099511627776,), }"
        path = shard(tmp_path, {"a.npy": b"\x93NUMPY\x01\0" + struct.pack("<H", len(header)) + header})
        with pytest.raises(ValueError, match="does not have 0 bytes"):
            list(TarDataset(path))

    def test_a_long_extension_of_a_header_is_refused(self, tmp_path):
        with pytest.raises(ValueError, match="bytes follow"):
            list(TarDataset(shard(tmp_path, {"a" * 200_000: b"1"})))

    def test_a_header_that_lies_about_its_size_is_an_error(self, tmp_path):
        for size in (20_000, 2**40):
            with pytest.raises(ValueError):
                list(TarDataset(shard(tmp_path, {"a.txt": b"1"}, sizes={"a.txt": size}.items())))

    def test_json_that_takes_much_memory_is_refused(self, tmp_path):
        data = b"[" + b"[]," * 1_000_000 + b"0]"
        with pytest.raises(ValueError, match="more memory than 16 times"):
            list(TarDataset(shard(tmp_path, {"a.json": data})))
        (tmp_path / "a.jsonl").write_bytes(data)
        with pytest.raises(ValueError, match="line 1: not JSON: its values take more memory"):
            JsonLinesDataset(tmp_path / "a.jsonl")[0]

    def test_json_is_utf_8(self, tmp_path):
        with pytest.raises(ValueError, match="cannot be decoded"):
            list(TarDataset(shard(tmp_path, {"a.json": "[1]".encode("utf-32-be")})))


class TestHostileArrays:
    def test_an_archive_of_thousands_of_arrays_takes_one_descriptor(self, tmp_path):
        numpy = pytest.importorskip("numpy")
        numpy.savez(tmp_path / "a.npz", **{f"x{n}": numpy.full(2, n) for n in range(3000)})
        rows = ArrayDataset(tmp_path / "a.npz")
        assert rows[1]["x2999"].item() == 2999

    def test_a_single_number_in_column_order_has_no_rows(self, tmp_path):
        header = b"{'descr': '<f4', 'fortran_order': True, 'shape': (), }"
        (tmp_path / "a.npy").write_bytes(b"\x93NUMPY\x01\0" + struct.pack("<H", len(header)) + header + bytes(4))
        with pytest.raises(ValueError, match="single number"):
            ArrayDataset(tmp_path / "a.npy")

    def test_records_of_an_archive_that_overlap_are_refused(self, tmp_path):
        numpy = pytest.importorskip("numpy")
        path = tmp_path / "a.npz"
        numpy.savez(path, x=numpy.zeros(4), y=numpy.zeros(4))
        data = bytearray(path.read_bytes())
        for at in [m.start() for m in re.finditer(b"PK\x01\x02", data)][:1]:
            struct.pack_into("<2I", data, at + 20, 400, 400)
        path.write_bytes(data)
        with pytest.raises(ValueError, match="overlap|records end"):
            ArrayDataset(path)

    @pytest.mark.parametrize("shape", [b"(-1,)", b"(9" + b"9" * 30 + b",)", b"(1, 2", b"()()", b"(1e5,)", b"[1]", b"x"])
    def test_odd_shapes_are_errors(self, tmp_path, shape):
        header = b"{'descr': '<f8', 'fortran_order': False, 'shape': " + shape + b", }"
        path = tmp_path / "a.npy"
        path.write_bytes(b"\x93NUMPY\x01\0" + struct.pack("<H", len(header)) + header)
        with pytest.raises(ValueError, match="header cannot be read"):
            ArrayDataset(path)

    @pytest.mark.parametrize(
        "header",
        [
            b"{'shape': (3,), 'fortran_order': False, 'descr': '<f4'}",
            b'{"descr": "<f4", "fortran_order": False, "shape": (3L,)}',
            b"  {'descr': '<f4', 'fortran_order': False, 'shape': (3, ), }  \n",
        ],
    )
    def test_headers_of_other_writers_are_read(self, tmp_path, header):
        path = tmp_path / "a.npy"
        path.write_bytes(b"\x93NUMPY\x01\0" + struct.pack("<H", len(header)) + header + struct.pack("<3f", 1, 2, 3))
        assert [row.item() for row in ArrayDataset(path)] == [1, 2, 3]
