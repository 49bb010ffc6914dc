"""Settings of save and load: where records start, what mmap means by default, and files without their data."""

import contextlib
import copy
import io
import threading
import zipfile

import pytest

import cresset
from cresset import serialization
from cresset.utils.serialization import config


def offset_of(file, name):
    return cresset.PyTorchFileReader(file).get_record_offset(name)


@pytest.fixture
def restored(monkeypatch):
    """Settings that a test changes are those of before afterwards."""
    for kind in (config.load, config.save):
        for name, value in list(vars(kind).items()):
            if not name.startswith("__"):
                monkeypatch.setattr(kind, name, value)


@pytest.mark.usefixtures("restored")
class TestConfig:
    def test_storages_start_where_the_alignment_says(self, tmp_path):
        cresset.save(cresset.arange(3), tmp_path / "plain.pt")
        assert offset_of(tmp_path / "plain.pt", "data/0") % 64 == 0
        config.save.storage_alignment = 4096
        cresset.save(cresset.arange(3), tmp_path / "pages.pt")
        assert offset_of(tmp_path / "pages.pt", "data/0") == 5 * 4096  # four small records come before
        assert cresset.load(tmp_path / "pages.pt").tolist() == [0, 1, 2]
        assert cresset.PyTorchFileReader(tmp_path / "pages.pt").get_record(".storage_alignment") == b"4096"

    def test_mapping_can_be_the_default(self, tmp_path):
        cresset.save(cresset.zeros(3), tmp_path / "a.pt")
        config.load.mmap = True
        mapped = cresset.load(tmp_path / "a.pt")
        assert mapped.tolist() == [0.0, 0.0, 0.0]
        with pytest.raises(ValueError, match="must be a file path in order to use the mmap"):
            cresset.load(io.BytesIO((tmp_path / "a.pt").read_bytes()))
        assert cresset.load(io.BytesIO((tmp_path / "a.pt").read_bytes()), mmap=False).tolist() == [0.0, 0.0, 0.0]

    def test_functions_and_attributes_are_one(self):
        config.save.compute_crc32 = False
        assert not serialization.get_crc32_options()
        serialization.set_default_load_endianness(serialization.LoadEndianness.BIG)
        assert config.load.endianness is serialization.LoadEndianness.BIG
        assert config.load.mmap_flags == serialization.get_default_mmap_options()


class TestSkippedData:
    def test_room_is_left_for_it(self, tmp_path):
        with serialization.skip_data():
            cresset.save(cresset.full((1 << 20,), 7.0), tmp_path / "room.pt")
        assert cresset.load(tmp_path / "room.pt").abs().sum() == 0
        assert (tmp_path / "room.pt").stat().st_blocks * 512 < 1 << 20  # the room takes no space

    def test_so_it_is_in_a_stream_that_cannot_be_positioned(self):
        class Stream:
            data = b""

            def write(self, part):
                self.data += part

        stream = Stream()
        with serialization.skip_data():
            cresset.save(cresset.ones(3), stream)
        assert cresset.load(io.BytesIO(stream.data)).tolist() == [0.0, 0.0, 0.0]

    def test_other_threads_write_theirs(self):
        file = io.BytesIO()
        with serialization.skip_data():
            thread = threading.Thread(target=cresset.save, args=(cresset.ones(2), file))
            thread.start()
            thread.join()
        file.seek(0)
        assert cresset.load(file).tolist() == [1.0, 1.0]

    def test_nested_tensors_are_refused(self):
        nested = cresset.nested.nested_tensor([cresset.ones(2), cresset.ones(3)])
        with (
            pytest.raises(RuntimeError, match="Cannot serialize nested tensor under skip_data"),
            serialization.skip_data(),
        ):
            cresset.save(nested, io.BytesIO())

    def test_there_is_none_of_the_meta_device(self):
        with pytest.warns(UserWarning, match="meta device under skip_data"), serialization.skip_data():
            cresset.save(cresset.ones(2, device="meta"), io.BytesIO())


def test_a_record_can_be_announced_and_filled_in_later(tmp_path):
    file = tmp_path / "later.zip"
    writer = cresset.PyTorchFileWriter(file)
    writer.write_record_metadata("data/0", 8)
    writer.write_record("data/1", b"behind", 6)
    writer.write_end_of_file()
    with open(file, "r+b") as opened:
        opened.seek(offset_of(file, "data/0"))
        opened.write(b"filledin")
    reader = cresset.PyTorchFileReader(file)
    assert reader.get_record("data/0") == b"filledin" and reader.get_record("data/1") == b"behind"
    assert {"later/data/0", "later/data/1"} <= set(zipfile.ZipFile(file).namelist())


class TestFakeTensors:
    def test_room_is_left_for_what_they_would_hold(self):
        with cresset._subclasses.FakeTensorMode():
            whole = cresset.randn(2, 3)
            fake = {"whole": whole, "row": whole[1], "elsewhere": cresset.ones(2, device="cuda")}
        file = io.BytesIO()
        with serialization.skip_data(materialize_fake_tensors=True):
            cresset.save(fake, file)
        file.seek(0)
        found = cresset.load(file, map_location="cpu")
        assert found["whole"].tolist() == [[0.0] * 3] * 2 and found["elsewhere"].tolist() == [0.0, 0.0]
        found["whole"][1] = 5.0
        assert found["row"].tolist() == [5.0] * 3  # on the same memory still
        file.seek(0)
        asked = []
        cresset.load(file, map_location=lambda storage, location: asked.append(location) or storage)
        assert sorted(asked) == ["cpu", "cuda:0"]

    def test_otherwise_they_are_not_saved(self):
        with cresset._subclasses.FakeTensorMode():
            fake = cresset.ones(2)
        for context in (contextlib.nullcontext, serialization.skip_data):
            with pytest.raises(AttributeError, match="Can't pickle a FakeTensor"), context():
                cresset.save(fake, io.BytesIO())

    def test_they_can_be_copied(self):
        with cresset._subclasses.FakeTensorMode():
            fake = cresset.ones(2, 3, requires_grad=True)
        for copied in (copy.copy(fake), copy.deepcopy(fake)):
            assert type(copied) is type(fake) and copied.shape == (2, 3) and copied.requires_grad
