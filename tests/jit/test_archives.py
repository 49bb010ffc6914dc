"""torch.jit.save and load: what is in the file, what comes back, and what damaged and hostile files get."""

import io
import pickle
import struct
import subprocess
import sys
import zipfile
from typing import Dict, List, Optional

import pytest

import cresset
from cresset import nn


class Small(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 2)
        self.register_buffer("shift", cresset.ones(2))
        self.names = ["a", "b"]
        self.table: Dict[str, int] = {"x": 1}

    def forward(self, x, times: int = 1, scale: Optional[float] = None):
        out: List[cresset.Tensor] = []
        for _ in range(times):
            out.append(self.fc(x) + self.shift)
        total = cresset.stack(out).sum(0)
        if scale is not None:
            total = total * scale
        return total

    @cresset.jit.export
    def named(self, i: int) -> str:
        return self.names[i]


def archive_of(module, extra=None):
    file = io.BytesIO()
    cresset.jit.save(module, file, extra)
    return file.getvalue()


def records(data):
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        return {name.partition("/")[2]: file.read(name) for name in file.namelist()}


def archive(contents, pack=()):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as made:
        for name, data in contents.items():
            made.writestr(f"archive/{name}", data, zipfile.ZIP_DEFLATED if name in pack else zipfile.ZIP_STORED)
    return file.getvalue()


def load(data, **options):
    return cresset.jit.load(io.BytesIO(data), **options)


@pytest.fixture
def good():
    return archive_of(cresset.jit.script(Small()))


class TestFiles:
    def test_a_module_comes_back_whole(self):
        module = cresset.jit.script(Small())
        again = load(archive_of(module))
        x = cresset.randn(4, 3)
        assert cresset.equal(again(x, 2, 0.5), module(x, 2, 0.5)) and again.named(1) == "b"
        assert list(again.state_dict()) == ["shift", "fc.weight", "fc.bias"]
        assert all(isinstance(p, nn.Parameter) and p.requires_grad for p in again.parameters())
        assert again.table == {"x": 1} and not again.shift.requires_grad
        assert "original_name=Small" in repr(again)

    def test_a_module_that_was_loaded_can_be_saved_and_trained(self):
        first = load(archive_of(cresset.jit.script(Small())))
        second = load(archive_of(first))
        second(cresset.ones(1, 3)).sum().backward()
        assert second.fc.weight.grad.tolist() == [[1.0, 1.0, 1.0], [1.0, 1.0, 1.0]]

    def test_a_function_comes_back_as_the_forward_of_a_module(self, tmp_path):
        @cresset.jit.script
        def doubled(x, by: int = 2):
            return x * by

        doubled.save(str(tmp_path / "f.pt"))
        assert cresset.jit.load(tmp_path / "f.pt")(cresset.ones(1), 3).tolist() == [3.0]

    def test_the_records_are_those_of_torchscript(self, good):
        names = set(records(good))
        assert {"data.pkl", "constants.pkl", ".data/version", "byteorder", "data/0"} <= names
        assert any(name.startswith("code/__torch__") and name.endswith(".py") for name in names)

    def test_tied_weights_stay_tied(self):
        class Tied(nn.Module):
            def __init__(self):
                super().__init__()
                self.a = nn.Linear(2, 2)
                self.b = nn.Linear(2, 2)
                self.b.weight = self.a.weight

            def forward(self, x):
                return self.b(self.a(x))

        again = load(archive_of(cresset.jit.script(Tied())))
        assert again.a.weight is again.b.weight and len(list(again.parameters())) == 3

    def test_extra_files_are_filled_in(self):
        data = archive_of(cresset.jit.script(Small()), {"labels.txt": "a,b", "raw": b"\x00"})
        extra = {"labels.txt": "", "raw": "", "absent": "before"}
        load(data, _extra_files=extra)
        assert extra == {"labels.txt": b"a,b", "raw": b"\x00", "absent": b""}

    def test_map_location_puts_tensors_elsewhere(self, good):
        assert load(good, map_location="meta").fc.weight.device.type == "meta"

    def test_a_save_that_fails_leaves_the_old_file(self, tmp_path):
        path = tmp_path / "m.pt"
        path.write_bytes(b"old")
        with pytest.raises(AttributeError, match="save_to_buffer"):
            cresset.jit.save(nn.Linear(1, 1), path)
        module = cresset.jit.script(Small())
        module.__dict__["names"] = object()
        with pytest.raises(RuntimeError, match="cannot be written"):
            module.save(path)
        assert path.read_bytes() == b"old" and [p.name for p in tmp_path.iterdir()] == ["m.pt"]

    def test_a_fresh_process_needs_no_source(self, tmp_path, good):
        path = tmp_path / "m.pt"
        path.write_bytes(good)
        code = f"import cresset; m = cresset.jit.load({str(path)!r}); print(m(cresset.ones(1, 3)).shape, m.named(0))"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert done.stdout.split("\n")[0] == "torch.Size([1, 2]) a"

    def test_torch_load_reads_it_with_a_warning(self, good):
        with pytest.raises(RuntimeError, match="TorchScript archives"):
            cresset.load(io.BytesIO(good))
        with pytest.warns(UserWarning, match="dispatching to 'torch.jit.load'"):
            module = cresset.load(io.BytesIO(good), weights_only=False)
        assert module.named(0) == "a"


class TestBadFiles:
    @pytest.mark.parametrize(("path", "words"), [("/no/such/file", "does not exist"), ("/", "is a directory")])
    def test_a_path_that_is_no_file_is_a_value_error(self, path, words):
        with pytest.raises(ValueError, match=words):
            cresset.jit.load(path)

    @pytest.mark.parametrize("part", [0, 3, 100, 0.5, 0.9, 0.999])
    def test_a_truncated_file_is_an_error(self, good, part):
        cut = part if isinstance(part, int) else int(len(good) * part)
        with pytest.raises(RuntimeError, match="truncated|damaged|no archive"):
            load(good[:cut])

    def test_a_version_from_the_future_is_named(self, good):
        contents = {**records(good), ".data/version": b"11\n"}
        with pytest.raises(RuntimeError, match="version 11, but the maximum supported version for reading is 10"):
            load(archive(contents))

    def test_a_file_of_torch_save_is_told_apart(self):
        file = io.BytesIO()
        cresset.save({"a": 1}, file)
        with pytest.raises(RuntimeError, match="no TorchScript archive.*torch.load"):
            load(file.getvalue())

    @pytest.mark.parametrize(
        "line",
        ["import os", "x = __import__('os').system('true')", "x = exec('1')", "x = open('f')", "x = self.__class__",
            "x = (lambda: 1)()", "x = torch.load('f')", "x = eval('1')", "x = [].__class__.__base__"],
    )  # fmt: skip
    def test_source_that_is_python_and_no_torchscript_is_refused(self, good, line):
        contents = records(good)
        (name,) = [name for name in contents if name.endswith("test_archives.py")]
        text = contents[name].decode()
        at = text.index("\n", text.index("def forward")) + 1
        at = text.index(":\n", at) + 2
        contents[name] = (text[:at] + f"    {line}\n" + text[at:]).encode()
        with pytest.raises((RuntimeError, cresset.jit.Error)):
            load(archive(contents))(cresset.ones(1, 3))

    def test_a_name_in_the_pickle_that_is_none_of_the_archive_is_refused(self, good):
        hostile = b"\x80\x02cos\nsystem\nX\x04\x00\x00\x00true\x85R."
        for record in ("data.pkl", "constants.pkl"):
            with pytest.raises(pickle.UnpicklingError, match=r"os\.system"):
                load(archive({**records(good), record: hostile}))

    def test_an_attribute_of_another_type_is_refused(self, good):
        contents = records(good)
        contents["data.pkl"] = contents["data.pkl"].replace(
            b"X\x08\x00\x00\x00training\x88", b"X\x08\x00\x00\x00training]"
        )
        with pytest.raises(RuntimeError, match="'training'.*should be bool"):
            load(archive(contents))

    def test_an_attribute_that_is_a_class_in_place_of_a_list_is_refused(self, good):
        contents = records(good)
        names = b"X\x05\x00\x00\x00names"
        before, after = contents["data.pkl"].split(names)
        end = after.index(b"X\x05\x00\x00\x00table")
        contents["data.pkl"] = before + names + b"ccollections\nOrderedDict\n" + after[end:]
        with pytest.raises(RuntimeError, match=r"'names'.*should be List\[str\], and is type"):
            load(archive(contents))

    def test_compressed_source_may_not_grow_beyond_the_file_by_more_than_a_megabyte(self, good):
        contents = records(good)
        (name,) = [name for name in contents if name.endswith("test_archives.py")]
        contents[name] += b"#" * (4 << 20)
        with pytest.raises(RuntimeError, match="is said to unpack to"):
            load(archive(contents, pack=[name]))

    def test_a_record_that_lies_about_its_size_is_refused(self, good):
        contents = records(good)
        (name,) = [name for name in contents if name.endswith("test_archives.py")]
        data = bytearray(archive(contents, pack=[name]))
        size = len(contents[name])
        at = data.rindex(struct.pack("<I", size))
        data[at : at + 4] = struct.pack("<I", size + 7)
        with pytest.raises(RuntimeError, match="another size|damaged"):
            load(bytes(data))

    def test_source_with_terminal_sequences_is_refused_before_a_message_shows_it(self, good):
        contents = records(good)
        (name,) = [name for name in contents if name.endswith("test_archives.py")]
        contents[name] += b"# \x1b[2J\n"
        with pytest.raises(RuntimeError, match="no text") as caught:
            load(archive(contents))
        assert "\x1b" not in str(caught.value)

    def test_a_list_inside_of_itself_is_refused(self, good):
        contents = records(good)
        looping = b"]q\xc8h\xc8a"  # a list whose one item it is itself
        contents["data.pkl"] = contents["data.pkl"].replace(
            b"X\x08\x00\x00\x00training\x88", b"X\x08\x00\x00\x00training" + looping
        )
        with pytest.raises(RuntimeError):
            load(archive(contents))


class TestNamesThatTwoHave:
    """Modules from two archives may have classes and functions of one name: one of them gets another."""

    def saved(self, amount):
        class Shift(nn.Module):
            def __init__(self):
                super().__init__()
                self.first = nn.Linear(2, 2) if amount == 1 else nn.ReLU()
                self.amount = amount

            def forward(self, x):
                return self.first(x) + self.amount

        module, file = Shift(), io.BytesIO()
        cresset.jit.save(cresset.jit.script(module), file)
        file.seek(0)
        return module, file

    def test_both_are_in_the_file(self):
        (one, first), (two, second) = self.saved(1), self.saved(2)

        class Both(nn.Module):
            def __init__(self):
                super().__init__()
                self.one, self.two = cresset.jit.load(first), cresset.jit.load(second)

            def forward(self, x):
                return self.two(self.one(x))

        file, x = io.BytesIO(), cresset.randn(3, 2)
        cresset.jit.save(cresset.jit.script(Both()), file)
        file.seek(0)
        both = cresset.jit.load(file)
        assert both(x).equal(two(one(x)))
        assert both.one._c.qualified_name != both.two._c.qualified_name
        again = io.BytesIO()
        cresset.jit.save(both, again)
        again.seek(0)
        assert cresset.jit.load(again)(x).equal(both(x))
