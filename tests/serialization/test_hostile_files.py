"""Files that are damaged or hostile: each is a clear error, nothing runs, and no more memory is taken than the file
has.
"""

import importlib.util
import io
import os
import pickle
import struct
import warnings
import zipfile
import zlib
from pathlib import Path

import pytest

import cresset
from cresset import nn, serialization
from cresset.serialization import bounds

_spec = importlib.util.spec_from_file_location(
    "fuzz_files", Path(__file__).resolve().parents[2] / "tools" / "fuzz_files.py"
)
fuzz = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(fuzz)


def load(data, **settings):
    return cresset.load(io.BytesIO(data), **settings)


@pytest.mark.parametrize("title", fuzz.hostile_pickles())
@pytest.mark.parametrize("weights_only", [None, True, False])
def test_a_hostile_pickle_is_refused_and_nothing_runs(title, weights_only, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data = fuzz.hostile_pickles(f"touch {tmp_path}/sprung")[title]
    before = cresset._native.host_memory_statistics()["in_use"]
    cresset._native.reset_peak_host_memory()
    for file in (fuzz.archive(data), fuzz.stream(data)):
        with pytest.raises((pickle.UnpicklingError, AttributeError, RuntimeError)) as caught:
            load(file, weights_only=weights_only)
        assert weights_only is False or not isinstance(caught.value, AttributeError)
    assert cresset._native.host_memory_statistics()["peak"] - before <= len(data) + 2**20
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("module, name", fuzz.DANGEROUS_NAMES)
def test_the_error_names_what_the_file_names_and_the_way_to_allow_it(module, name):
    data = fuzz.archive(b"\x80\x02" + fuzz.named(module, name) + b".")
    blocked = module in ("os", "sys", "posix", "nt")
    with pytest.raises(pickle.UnpicklingError, match="is blocked" if blocked else "add_safe_globals") as caught:
        load(data)
    assert f"{module}.{name}".removeprefix("__builtin__.") in str(caught.value)
    assert serialization.get_unsafe_globals_in_checkpoint(io.BytesIO(data)) == [f"{module}.{name}"]


def test_thousands_of_changed_files_give_values_or_errors():
    warnings.simplefilter("ignore")  # Pillow's, of damaged pictures
    outcomes, findings, most = fuzz.run(4000, seed=20)
    assert findings == [] and most < bounds.promised(0)
    assert outcomes["value"] > 300 and outcomes["UnpicklingError"] > 500 and outcomes["SafetensorError"] > 100
    assert all(outcomes[kind] > 20 for kind in fuzz.WEIGHTS)


class TestArchives:
    def good(self):
        file = io.BytesIO()
        cresset.save({"a": cresset.arange(100.0), "b": cresset.ones(3)}, file)
        return file.getvalue()

    def rebuilt(self, change, compression=zipfile.ZIP_STORED):
        """The good archive, written anew by zipfile with records changed."""
        file = io.BytesIO()
        with zipfile.ZipFile(io.BytesIO(self.good())) as old, zipfile.ZipFile(file, "w", compression) as new:
            for name in old.namelist():
                data = change(name, old.read(name))
                if data is not None:
                    new.writestr(name, data)
        return file.getvalue()

    def test_every_truncation_is_an_error(self):
        data = self.good()
        for size in range(0, len(data), 7):
            with pytest.raises((RuntimeError, EOFError, pickle.UnpicklingError)):
                load(data[:size])

    def test_compressed_records_are_refused(self):
        bomb = self.rebuilt(
            lambda name, data: bytes(10_000_000) if name.endswith("data/0") else data, zipfile.ZIP_DEFLATED
        )
        assert len(bomb) < 100_000
        with pytest.raises(RuntimeError, match="compressed"):
            load(bomb)

    def test_a_changed_byte_is_seen_by_the_checksum(self):
        data = bytearray(self.good())
        data[data.index(struct.pack("<f", 50.0))] ^= 1
        with pytest.raises(RuntimeError, match="checksum"):
            load(bytes(data))

    def test_overlapping_records_are_refused(self):
        data = bytearray(self.good())
        entries, at = [], data.index(b"PK\x01\x02")
        while data[at : at + 4] == b"PK\x01\x02":
            entries.append(at)
            at += 46 + sum(struct.unpack_from("<3H", data, at + 28))
        offsets = {data[e + 46 : e + 46 + struct.unpack_from("<H", data, e + 28)[0]].decode(): e for e in entries}
        first, second = offsets["archive/data/0"], offsets["archive/data/1"]
        size, start = struct.unpack_from("<I", data, second + 24)[0], struct.unpack_from("<I", data, first + 42)[0]
        # The first record is said to be long enough to reach into the second.
        header = struct.unpack_from("<I", data, second + 42)[0] - start + size
        for place in (first + 20, first + 24):
            struct.pack_into("<I", data, place, header)
        with pytest.raises(RuntimeError, match="overlap|checksum"):
            load(bytes(data))

    def test_a_storage_smaller_than_its_tensor_is_an_error(self):
        with pytest.raises((RuntimeError, pickle.UnpicklingError), match="bytes"):
            load(self.rebuilt(lambda name, data: data[:40] if name.endswith("data/0") else data))

    def test_a_missing_storage_is_an_error(self):
        with pytest.raises(RuntimeError, match="data/0"):
            load(self.rebuilt(lambda name, data: None if name.endswith("data/0") else data))

    def test_strides_outside_of_the_storage_are_an_error(self):
        def pickled(offset, size, stride):
            file = io.BytesIO()

            class Fake:
                def __reduce__(self):
                    return cresset._utils._rebuild_tensor_v2, (
                        cresset.ones(4).storage(),
                        offset,
                        size,
                        stride,
                        False,
                        {},
                    )

            cresset.save(Fake(), file)
            return file.getvalue()

        assert load(pickled(1, (3,), (1,))).tolist() == [1, 1, 1]
        for case in (
            (2, (3,), (1,)),
            (0, (2,), (4,)),
            (-1, (1,), (1,)),
            (0, (2,), (-1,)),
            (0, (2**62,), (2**62,)),
            (0, (-1,), (1,)),
            (0, (2**70,), (1,)),
            (2**70, (1,), (1,)),
        ):
            with pytest.raises((RuntimeError, pickle.UnpicklingError)):
                load(pickled(*case))

    def test_text_and_empty_files_are_errors(self, tmp_path):
        for content, error in (
            (b"", EOFError),
            (b"not a checkpoint", pickle.UnpicklingError),
            (b"PK\x03\x04 and nothing", RuntimeError),
        ):
            path = tmp_path / "file.pt"
            path.write_bytes(content)
            with pytest.raises(error):
                cresset.load(path)

    def test_a_torchscript_archive_is_told_apart(self):
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w") as archive:
            archive.writestr("m/constants.pkl", b"")
        with pytest.raises(RuntimeError, match="TorchScript"):
            load(file.getvalue())


class Local(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, 2)


class Settings:
    def __init__(self, width):
        self.width = width


class Custom:
    def __setstate__(self, state):
        self.state = state


class TestOwnClasses:
    def saved(self, value):
        file = io.BytesIO()
        cresset.save(value, file)
        return file.getvalue()

    def test_a_module_needs_weights_only_false_and_its_class(self):
        data = self.saved(Local())
        with pytest.raises(pickle.UnpicklingError, match="Local"):
            load(data)
        back = load(data, weights_only=False)
        assert type(back) is Local and type(back.layer) is nn.Linear and back.layer.weight.shape == (2, 2)

    def test_a_class_that_is_gone_is_said(self, monkeypatch):
        data = self.saved(Local())
        monkeypatch.delitem(globals(), "Local")
        with pytest.raises(AttributeError, match="Local"):
            load(data, weights_only=False)

    def test_another_class_must_be_allowed(self):
        data = self.saved({"settings": Settings(3)})
        for weights_only in (True, False):
            with pytest.raises(pickle.UnpicklingError, match="add_safe_globals"):
                load(data, weights_only=weights_only)
        with serialization.safe_globals([Settings]):
            assert load(data)["settings"].width == 3
        with pytest.raises(pickle.UnpicklingError):
            load(data)

    def test_an_allowed_class_gets_its_state_by_setstate(self):
        made = Custom()
        made.value = 5
        with serialization.safe_globals([Custom]):
            assert load(self.saved(made)).state == {"value": 5}

    def test_a_class_can_be_allowed_under_the_name_in_the_file(self):
        data = fuzz.archive(b"\x80\x02" + fuzz.named("old.place", "Settings") + b"K\x05\x85R.")
        with serialization.safe_globals([(Settings, "old.place.Settings")]):
            assert load(data).width == 5

    def test_what_was_allowed_can_be_listed_and_forgotten(self):
        serialization.add_safe_globals([Settings])
        assert serialization.get_safe_globals() == [Settings]
        serialization.clear_safe_globals()
        assert serialization.get_safe_globals() == []
        with pytest.raises(ValueError, match="classes"):
            serialization.add_safe_globals([3])

    def test_standard_containers_come_back_with_weights_only_false(self):
        import argparse
        import collections
        import datetime

        value = [argparse.Namespace(lr=0.1), datetime.datetime(2024, 1, 2), collections.deque([1, 2]), Path("a/b")]
        data = self.saved(value)
        with pytest.raises(pickle.UnpicklingError):
            load(data)
        assert load(data, weights_only=False) == value


def test_a_checksum_of_zero_stands_for_none():
    serialization.set_crc32_options(False)
    try:
        file = io.BytesIO()
        cresset.save(cresset.ones(2), file)
    finally:
        serialization.set_crc32_options(True)
    assert zlib.crc32(b"1").to_bytes(4, "little") not in file.getvalue() and load(file.getvalue()).tolist() == [1, 1]
