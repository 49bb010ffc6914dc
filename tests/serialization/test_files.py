"""save and load: what comes back, where it goes, and what happens to the file."""

import collections
import copy
import io
import mmap
import os
import pickle
import pickletools
import stat
import subprocess
import sys
import types
import zipfile
import zoneinfo

import pytest

import cresset
from cresset import nn, serialization


def there_and_back(value, **settings):
    file = io.BytesIO()
    cresset.save(value, file, **{k: v for k, v in settings.items() if k.startswith(("pickle", "_use"))})
    file.seek(0)
    return cresset.load(file, **{k: v for k, v in settings.items() if not k.startswith(("pickle", "_use"))})


FORMATS = [{}, {"pickle_protocol": 4}, {"_use_new_zipfile_serialization": False}]


class TestValues:
    @pytest.mark.parametrize("settings", FORMATS, ids=str)
    def test_tensors_that_share_memory_still_do(self, settings):
        base = cresset.zeros(6)
        back = there_and_back(
            {"whole": base, "part": base[2:4], "turned": base.view(2, 3).t(), "data": nn.Parameter(base[:2])},
            **settings,
        )
        back["whole"].copy_(cresset.arange(6.0))
        assert back["part"].tolist() == [2, 3] and back["turned"].tolist() == [[0, 3], [1, 4], [2, 5]]
        assert back["data"].tolist() == [0, 1] and isinstance(back["data"], nn.Parameter)

    @pytest.mark.parametrize("settings", FORMATS, ids=str)
    def test_plain_values_keep_their_type(self, settings):
        value = {
            "a": (1, 2.5),
            "b": [None, True],
            "c": {1},
            "d": frozenset([2]),
            "e": collections.OrderedDict(x=1),
            "f": b"q",
            "g": 2**90,
            "h": slice(1, None),
            "i": range(3),
        }
        back = there_and_back(value, **settings)
        assert back == value and all(type(back[k]) is type(value[k]) for k in value)

    def test_a_list_that_holds_itself_comes_back(self):
        loop = [1]
        loop.append(loop)
        back = there_and_back(loop)
        assert back[0] == 1 and back[1] is back

    def test_a_state_dict_keeps_its_versions(self):
        back = there_and_back(nn.BatchNorm1d(2).state_dict())
        assert back._metadata[""] == {"version": 2} and list(back) == [
            "weight",
            "bias",
            "running_mean",
            "running_var",
            "num_batches_tracked",
        ]

    def test_requires_grad_comes_back_and_history_does_not(self):
        x = cresset.ones(2, requires_grad=True)
        leaf, result = there_and_back([x, x * 2])
        assert leaf.requires_grad and result.requires_grad and result.is_leaf and result.grad_fn is None

    def test_a_tensor_seen_as_two_dtypes_cannot_be_saved(self):
        x = cresset.zeros(2)
        with pytest.raises(RuntimeError, match="different types"):
            cresset.save([x, x.view(cresset.int32)], io.BytesIO())

    def test_a_function_cannot_be_saved_if_it_has_no_name(self):
        with pytest.raises((pickle.PicklingError, AttributeError)):
            cresset.save(lambda: 1, io.BytesIO())

    def test_two_objects_in_one_file_of_the_old_format(self):
        file = io.BytesIO()
        cresset.save(cresset.ones(1), file, _use_new_zipfile_serialization=False)
        file.seek(0)
        assert cresset.load(file).tolist() == [1]


class TestPlainPickle:
    @pytest.mark.parametrize(
        "make",
        [
            lambda: cresset.arange(6.0)[1:4],
            lambda: nn.Parameter(cresset.ones(2)),
            lambda: cresset.zeros(2, dtype=cresset.uint16),
        ],
    )
    def test_tensors_pickle(self, make):
        value = make()
        for protocol in range(2, 6):
            back = pickle.loads(pickle.dumps(value, protocol))
            assert back.tolist() == value.tolist() and type(back) is type(value) and back.dtype == value.dtype

    def test_attributes_stay(self):
        value = cresset.ones(1)
        value.note = "here"
        assert pickle.loads(pickle.dumps(value)).note == "here" and copy.copy(value).note == "here"

    def test_storages_pickle(self):
        typed, untyped = pickle.loads(pickle.dumps((cresset.ones(2).storage(), cresset.ones(2).untyped_storage())))
        assert list(typed) == [1, 1] and untyped.nbytes() == 8

    def test_the_old_storage_classes_know_their_instances(self):
        assert isinstance(cresset.ones(2).storage(), cresset.FloatStorage) and not isinstance(
            cresset.ones(2).storage(), cresset.LongStorage
        )
        assert list(cresset.LongStorage([1, 2])) == [1, 2] and len(cresset.FloatStorage(3)) == 3


class TestPlaces:
    def make(self, value):
        file = io.BytesIO()
        cresset.save(value, file)
        file.seek(0)
        return file

    @pytest.mark.parametrize(
        "place",
        ["cpu", cresset.device("cpu"), {"cpu": "cpu"}, {}, lambda storage, tag: storage, lambda storage, tag: None],
    )
    def test_map_location_takes_what_pytorch_takes(self, place):
        assert cresset.load(self.make(cresset.ones(2)), map_location=place).tolist() == [1, 1]

    def test_a_function_sees_storage_and_tag(self):
        seen = []
        cresset.load(self.make(cresset.ones(2)), map_location=lambda storage, tag: seen.append((storage.nbytes(), tag)))
        assert seen == [(8, "cpu")]

    def test_meta_leaves_the_data_where_it_is(self):
        back = cresset.load(self.make(cresset.ones(2, 3)), map_location="meta")
        assert back.is_meta and back.shape == (2, 3)

    def test_meta_knows_where_the_data_lies_in_the_file(self):
        x = cresset.arange(3.0)
        file = self.make(x)
        data, at = file.getvalue(), cresset.load(file, map_location="meta").untyped_storage()._checkpoint_offset
        assert data[at : at + 12] == x.numpy().tobytes()

    def test_a_file_from_a_gpu_says_what_to_do(self):
        pickled = (
            zipfile.ZipFile(self.make(cresset.ones(2)))
            .read("archive/data.pkl")
            .replace(b"X\x03\x00\x00\x00cpu", b"X\x06\x00\x00\x00cuda:0")
        )
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w") as archive:
            archive.writestr("a/data.pkl", pickled)
            archive.writestr("a/data/0", bytes(8))
            archive.writestr("a/version", "3\n")
        file.seek(0)
        if not cresset.cuda.is_available():
            with pytest.raises(RuntimeError, match="map_location"):
                cresset.load(file)
            file.seek(0)
        assert cresset.load(file, map_location="cpu").tolist() == [0, 0]

    def test_a_package_of_the_users_own(self):
        before = list(serialization.locations._packages)
        try:
            serialization.register_package(
                1, lambda storage: "here", lambda storage, tag: storage if tag == "here" else None
            )
            file = self.make(cresset.ones(2))
            assert b"here" in file.getvalue() and cresset.load(file).tolist() == [1, 1]
        finally:
            serialization.locations._packages[:] = before


class TestFiles:
    def test_a_failed_save_leaves_the_old_file(self, tmp_path):
        path = tmp_path / "model.pt"
        cresset.save(cresset.ones(2), path)
        with pytest.raises((pickle.PicklingError, AttributeError)):
            cresset.save([cresset.zeros(2), lambda: 1], path)
        assert cresset.load(path).tolist() == [1, 1] and os.listdir(tmp_path) == ["model.pt"]

    def test_a_killed_save_leaves_the_old_file_or_the_new(self, tmp_path):
        path = tmp_path / "model.pt"
        cresset.save(cresset.ones(2), path)
        code = (
            "import sys, os, cresset\n"
            "from cresset.serialization import archive\n"
            "write = archive.ArchiveWriter.write\n"
            "def dying(self, name, data):\n"
            "    if name == 'version': os._exit(9)\n"
            "    write(self, name, data)\n"
            "archive.ArchiveWriter.write = dying\n"
            "cresset.save(cresset.zeros(2), sys.argv[1])\n"
        )
        done = subprocess.run(
            [sys.executable, "-c", code, str(path)],
            timeout=60,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        assert done.returncode == 9 and cresset.load(path).tolist() == [1, 1]

    def test_the_mode_of_the_file_stays(self, tmp_path):
        path = tmp_path / "model.pt"
        cresset.save(1, path)
        os.chmod(path, 0o640)
        cresset.save(2, path)
        assert stat.S_IMODE(os.stat(path).st_mode) == 0o640 and cresset.load(path) == 2

    def test_a_link_keeps_pointing_to_its_file(self, tmp_path):
        target, link = tmp_path / "epoch1.pt", tmp_path / "last.pt"
        cresset.save(1, target)
        link.symlink_to(target)
        cresset.save(2, link)
        assert link.is_symlink() and cresset.load(target) == 2

    def test_a_missing_folder_and_a_folder_are_errors(self, tmp_path):
        with pytest.raises(RuntimeError, match="Parent directory"):
            cresset.save(1, tmp_path / "no" / "model.pt")
        with pytest.raises(IsADirectoryError):
            cresset.save(1, tmp_path)

    def test_the_archive_is_named_after_the_file(self, tmp_path):
        cresset.save(1, tmp_path / "checkpoint.pt")
        assert zipfile.ZipFile(tmp_path / "checkpoint.pt").namelist()[0] == "checkpoint/data.pkl"

    def test_any_object_with_write_will_do(self):
        class Slow(io.RawIOBase):
            def __init__(self):
                self.data = bytearray()

            def writable(self):
                return True

            def write(self, piece):
                self.data += bytes(piece[:100])
                return min(len(piece), 100)

        file = Slow()
        cresset.save(cresset.arange(200), file)
        assert cresset.load(io.BytesIO(bytes(file.data))).tolist() == list(range(200))

    def test_a_file_that_cannot_seek_is_refused_with_advice(self):
        with pytest.raises((AttributeError, OSError), match="seekable"):
            cresset.load(types.SimpleNamespace(read=lambda n: b""))

    def test_mapped_memory_is_private(self, tmp_path):
        path = tmp_path / "w.pt"
        cresset.save(cresset.arange(1000.0), path)
        before = path.read_bytes()
        mapped = cresset.load(path, mmap=True)
        mapped[0] = 7
        assert mapped[:2].tolist() == [7, 1] and path.read_bytes() == before
        with pytest.raises(ValueError, match="path"):
            cresset.load(io.BytesIO(before), mmap=True)

    def test_mapping_options_can_be_set(self):
        with serialization.set_default_mmap_options(mmap.MAP_SHARED):
            assert serialization.get_default_mmap_options() == mmap.MAP_SHARED
        assert serialization.get_default_mmap_options() == mmap.MAP_PRIVATE
        with pytest.raises(ValueError, match="MAP_PRIVATE"):
            serialization.set_default_mmap_options(99)

    def test_big_endian_files_are_turned_around(self):
        file = io.BytesIO()
        cresset.save([cresset.tensor([1.0, 2.0]), cresset.tensor([1 + 2j])], file)
        swapped = io.BytesIO()
        with zipfile.ZipFile(file) as old, zipfile.ZipFile(swapped, "w") as new:
            for name in old.namelist():
                data = old.read(name)
                if name.endswith("byteorder"):
                    data = b"big" if sys.byteorder == "little" else b"little"
                elif "/data/" in name and not name.startswith("archive/."):
                    data = b"".join(data[i : i + 4][::-1] for i in range(0, len(data), 4))
                new.writestr(name, data)
        swapped.seek(0)
        floats, pair = cresset.load(swapped)
        assert floats.tolist() == [1, 2] and pair.tolist() == [1 + 2j]

    def test_skipped_data_leaves_room(self):
        file = io.BytesIO()
        with serialization.skip_data():
            cresset.save(cresset.ones(100), file)
        file.seek(0)
        assert cresset.load(file).tolist() == [0] * 100

    def test_arguments_that_make_no_sense_are_refused(self):
        file = io.BytesIO()
        cresset.save(1, file)
        file.seek(0)
        with pytest.raises(TypeError, match="surprise"):
            cresset.load(file, surprise=1)
        with pytest.raises(RuntimeError, match="Can not safely load weights when explicit pickle_module"):
            cresset.load(file, pickle_module=json_like, weights_only=True)
        with pytest.raises(ValueError, match="pickle_module"):
            cresset.save(1, file, pickle_module=json_like)
        with pytest.raises(AttributeError, match="write"):
            cresset.save(1, 3)
        with pytest.raises(TypeError, match="map_location"):
            cresset.load(file, map_location=3)


json_like = types.ModuleType("json_like")


def test_records_can_be_read_and_written_by_name(tmp_path):
    cresset.save({"a": cresset.arange(3.0)}, tmp_path / "a.pt")
    reader = cresset.PyTorchFileReader(str(tmp_path / "a.pt"))
    assert reader.has_record("data/0") and not reader.has_record("data/1") and reader.get_record("version") == b"3\n"
    assert (
        reader.get_storage_from_record("data/0", 3, cresset.float32).tolist() == [0, 1, 2]
        and len(reader.serialization_id()) == 40
    )
    writer = cresset.PyTorchFileWriter(str(tmp_path / "b.pt"))
    for name in reader.get_all_records():
        data = reader.get_record(name)
        writer.write_record(name, data, len(data))
    writer.write_end_of_file()
    assert cresset.load(tmp_path / "b.pt")["a"].tolist() == [0, 1, 2]
    with pytest.raises(RuntimeError, match="fewer"):
        reader.get_storage_from_record("data/0", 4, cresset.float32)


def test_records_behind_four_gigabytes_are_found(tmp_path):
    from cresset.serialization.archive import ArchiveReader, ArchiveWriter, FileSource

    start = 5 << 30
    with open(tmp_path / "large.zip", "w+b") as file:  # sparse: the gigabytes before take no space
        file.seek(start)
        writer = ArchiveWriter(file, "large")
        writer.at = start
        writer.write("data.pkl", b"behind")
        writer.close()
        assert file.tell() > start
        reader = ArchiveReader(FileSource(rewound(file)))
        assert reader.read("data.pkl") == b"behind" and reader.record("data.pkl").at > start
        with zipfile.ZipFile(rewound(file)) as archive:
            assert archive.read("large/data.pkl") == b"behind"


def rewound(file):
    file.seek(0)
    return file


@pytest.mark.parametrize("checked", [True, False])
def test_a_writer_of_records_aligns_them_and_may_leave_checksums_out(tmp_path, checked):
    path = str(tmp_path / "records.pt")
    writer = serialization.records.PyTorchFileWriter(path, compute_crc32=checked, storage_alignment=4096)
    writer.write_record("data/0", b"abcd", 4)
    writer.write_end_of_file()
    with zipfile.ZipFile(path) as archive:
        entry = archive.getinfo("records/data/0")
        assert (entry.CRC != 0) is checked
    with open(path, "rb") as file:
        assert file.read().index(b"abcd") % 4096 == 0


@pytest.mark.parametrize(
    "make, path",
    [
        (lambda: cresset.nn.LayerNorm(4), "torch.nn.modules.normalization LayerNorm"),
        (lambda: cresset.nn.InstanceNorm1d(4, affine=True), "torch.nn.modules.instancenorm InstanceNorm1d"),
        (lambda: cresset.nn.PixelShuffle(2), "torch.nn.modules.pixelshuffle PixelShuffle"),
        (lambda: cresset.nn.MSELoss(), "torch.nn.modules.loss MSELoss"),
        (lambda: cresset.nn.Sequential(cresset.nn.Flatten()), "torch.nn.modules.flatten Flatten"),
        (lambda: cresset.nn.TransformerEncoderLayer(4, 2, 8), "torch.nn.functional relu"),
        (
            lambda: cresset.nn.TransformerEncoderLayer(4, 2, 8, activation=cresset.nn.Tanh()),
            "torch.nn.modules.activation Tanh",
        ),
        (lambda: cresset.nn.TransformerDecoderLayer(4, 2, 8, activation=cresset.tanh), "torch tanh"),
        (lambda: cresset.nn.LSTM(4, 3), "torch.nn.modules.rnn LSTM"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_module_saved_whole_names_pytorchs_classes_and_loads_again(make, path):
    module, file = make(), io.BytesIO()
    cresset.save(module, file)
    file.seek(0)
    pickled = cresset.PyTorchFileReader(file).get_record("data.pkl")
    names = {argument for opcode, argument, _ in pickletools.genops(pickled) if opcode.name == "GLOBAL"}
    assert path in names and not [name for name in names if "cresset" in name]
    file.seek(0)
    back = cresset.load(file, weights_only=False)
    assert type(back) is type(module) and repr(back) == repr(module)
    assert all(
        cresset.equal(a, b) for a, b in zip(module.state_dict().values(), back.state_dict().values(), strict=True)
    )
    assert getattr(back, "activation", None) is getattr(module, "activation", None) or isinstance(
        module.activation, cresset.nn.Tanh
    )


class Celsius:
    def __init__(self, degrees):
        self.degrees = degrees


class Spelled(pickle.Pickler):
    """A pickler that says what objects are made of, as cloudpickle's does."""

    def reducer_override(self, obj):
        if isinstance(obj, Celsius):
            return collections.OrderedDict, ([("degrees", obj.degrees)],)
        assert not isinstance(obj, cresset.Tensor) and obj is not nn.Linear  # what is cresset's is not asked about
        return NotImplemented


spelling = types.ModuleType("spelling")
spelling.Pickler = Spelled


@pytest.mark.parametrize("zipped", [True, False])
def test_another_pickle_module_says_what_objects_are_made_of(zipped):
    file, layer = io.BytesIO(), nn.Linear(2, 2)
    written = {"layer": layer, "outside": Celsius(cresset.tensor(21.5))}
    cresset.save(written, file, pickle_module=spelling, _use_new_zipfile_serialization=zipped)
    assert b"torch.nn.modules.linear" in file.getvalue()
    file.seek(0)
    read = cresset.load(
        file, pickle_module=spelling
    )  # as data: the module is not asked; layers are read, as with False
    assert cresset.equal(read["layer"].weight, layer.weight) and read["outside"]["degrees"].item() == 21.5


class OnlySlots:
    """An object without a dictionary of its own."""

    __slots__ = ("x", "y")


def test_an_object_that_has_slots_alone_comes_back():
    made = OnlySlots()
    made.x, made.y = 2, "three"
    with serialization.safe_globals([OnlySlots]):
        back = there_and_back(made)
    assert type(back) is OnlySlots and (back.x, back.y) == (2, "three")


def test_what_the_method_of_a_builtin_class_makes_is_saved():
    file = io.BytesIO()
    cresset.save({"when": zoneinfo.ZoneInfo("UTC"), "what": cresset.ones(1)}, file)
    with zipfile.ZipFile(file) as archive:
        names = [argument for opcode, argument, _ in pickletools.genops(archive.read("archive/data.pkl"))]
    assert "_unpickle" in names and "zoneinfo ZoneInfo" in names


class TestWhereFilesAre:
    def test_an_open_file_can_be_read_by_its_name_after_save(self, tmp_path):
        with open(tmp_path / "file", "wb") as file:
            cresset.save(cresset.ones(2), file)
            assert cresset.load(tmp_path / "file").tolist() == [1.0, 1.0]

    def test_what_is_written_to_a_shared_mapping_goes_to_the_file(self, tmp_path):
        cresset.save(cresset.zeros(3), tmp_path / "file")
        with serialization.set_default_mmap_options(mmap.MAP_SHARED):
            cresset.load(tmp_path / "file", mmap=True)[0] = 7.0
        assert cresset.load(tmp_path / "file", mmap=True).tolist() == [7.0, 0.0, 0.0]

    def test_the_old_format_is_read_to_the_meta_device_and_without_data(self):
        file = io.BytesIO()
        cresset.save(cresset.ones(2), file, _use_new_zipfile_serialization=False)
        file.seek(0)
        assert cresset.load(file, map_location="meta").device.type == "meta"
        file.seek(0)
        with serialization.skip_data():
            assert cresset.load(file).shape == (2,)

    def test_load_reads_safetensors_by_their_name(self, tmp_path):
        tensors = {"a": cresset.arange(3.0), "b": cresset.ones(2, 2, dtype=cresset.int8)}
        cresset.safetensors.save_file(tensors, tmp_path / "x.safetensors")
        loaded = cresset.load(tmp_path / "x.safetensors")
        assert all(cresset.equal(loaded[name], value) for name, value in tensors.items())
        assert cresset.load(tmp_path / "x.safetensors", map_location="meta")["b"].shape == (2, 2)

    def test_records_are_written_and_read_by_name(self, tmp_path):
        for place in (tmp_path / "archive", io.BytesIO()):
            with serialization._open_zipfile_writer(place) as archive:
                archive.write_record("a/b", b"123", 3)
            if isinstance(place, io.BytesIO):
                place.seek(0)
                assert serialization._is_zipfile(place)
            with serialization._open_zipfile_reader(place) as archive:
                assert archive.get_record("a/b") == b"123"


class TestEnvironment:
    @pytest.fixture
    def model(self, tmp_path):
        cresset.save(nn.Linear(2, 2), tmp_path / "model")
        return tmp_path / "model"

    def test_it_can_ask_for_data_alone(self, model, monkeypatch):
        monkeypatch.setenv("TORCH_FORCE_WEIGHTS_ONLY_LOAD", "1")
        with pytest.raises(pickle.UnpicklingError, match="Weights only load failed"):
            cresset.load(model, weights_only=False)

    def test_it_can_allow_modules_where_a_call_says_nothing(self, model, monkeypatch):
        monkeypatch.setenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1")
        with pytest.warns(UserWarning, match="forcing weights_only=False"):
            assert isinstance(cresset.load(model), nn.Linear)
        with pytest.raises(pickle.UnpicklingError):
            cresset.load(model, weights_only=True)

    def test_it_cannot_ask_for_both(self, model, monkeypatch):
        monkeypatch.setenv("TORCH_FORCE_WEIGHTS_ONLY_LOAD", "1")
        monkeypatch.setenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1")
        with pytest.raises(RuntimeError, match="only one"):
            cresset.load(model)


@pytest.mark.parametrize("settings", FORMATS, ids=str)
def test_tensors_made_of_the_numbers_of_others_come_back(settings):
    x = cresset.arange(6.0).reshape(2, 3)
    made = {
        "sparse": x.to_sparse(),
        "rows": x.to_sparse_csr(),
        "nested": cresset.nested.nested_tensor([x[0], x[1, :2]]),
        "channels": cresset.quantize_per_channel(
            x, cresset.tensor([0.5, 1.0]), cresset.tensor([3, 1]), 0, cresset.qint8
        ),
        "conjugate": cresset.complex(x, x + 1).conj(),
    }
    file = io.BytesIO()
    cresset.save({**made, "beside": x, "again": [x, x]}, file, **settings)
    file.seek(0)
    found = cresset.load(file)
    assert found["again"][0] is found["again"][1] and cresset.equal(found["beside"], x)
    for name in ("sparse", "rows"):
        assert cresset.equal(found[name].to_dense(), x)
    assert [part.tolist() for part in found["nested"].unbind()] == [[0.0, 1.0, 2.0], [3.0, 4.0]]
    assert cresset.equal(found["channels"].dequantize(), made["channels"].dequantize())
    assert cresset.equal(found["conjugate"], made["conjugate"])
