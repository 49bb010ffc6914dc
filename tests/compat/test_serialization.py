"""Files go both ways between cresset and PyTorch: values, sharing, strides, modules' and optimizers' states, old and
new formats.
"""

import collections
import io
import warnings
import zipfile

import pytest

import cresset

torch = pytest.importorskip("torch")

DTYPES = [
    "float16", "bfloat16", "float32", "float64", "complex64", "complex128", "bool", "uint8", "int8", "int16", "int32",
    "int64", "uint16", "uint32", "uint64",
    "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz",
]  # fmt: skip
SETTINGS = [{}, {"pickle_protocol": 3}, {"pickle_protocol": 5}, {"_use_new_zipfile_serialization": False}]


def carried(value, writer, reader, weights_only=True, **settings):
    """`value`, saved by one library and loaded by the other."""
    file = io.BytesIO()
    writer.save(value, file, **settings)
    file.seek(0)
    if reader is torch and "pickle_protocol" in settings:
        weights_only = False  # PyTorch's own safe reader knows protocol 2 only
    return reader.load(file, weights_only=weights_only)


def raw(tensor):
    """The bytes of a tensor, in either library."""
    lib = torch if isinstance(tensor, torch.Tensor) else cresset
    return bytes(tensor.detach().contiguous().view(-1).view(lib.uint8).tolist()) if tensor.numel() else b""


def same(a, b):
    assert str(a.dtype) == str(b.dtype) and tuple(a.shape) == tuple(b.shape) and a.requires_grad == b.requires_grad
    assert a.stride() == b.stride() and a.storage_offset() == b.storage_offset()
    assert raw(a) == raw(b)


@pytest.fixture(params=["to PyTorch", "from PyTorch"])
def pair(request):
    """(the library that writes, the one that reads)"""
    return (cresset, torch) if request.param == "to PyTorch" else (torch, cresset)


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_arrives_bit_for_bit(pair, dtype, settings):
    writer, reader = pair
    tensor = writer.tensor([[0.0, 1.0, 2.0], [3.0, 1.0, 0.0]]).to(getattr(writer, dtype))
    same(carried(tensor, writer, reader, **settings), tensor)


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_shared_storages_and_views_arrive_shared(pair, settings):
    writer, reader = pair
    base = writer.arange(12.0)
    values = {
        "whole": base,
        "part": base[3:7],
        "turned": base.view(3, 4).t(),
        "parameter": writer.nn.Parameter(base[2:4]),
        "again": base,
    }
    back = carried(values, writer, reader, **settings)
    for name in ("whole", "part", "turned", "parameter"):
        same(back[name], values[name])
    assert type(back["parameter"]) is reader.nn.Parameter
    back["whole"][3] = 99
    assert back["part"][0].item() == 99 and back["turned"][3, 0].item() == 99 and back["parameter"].data[1].item() == 99
    assert back["again"] is back["whole"]


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_containers_and_plain_values_arrive_as_they_are(pair, settings):
    writer, reader = pair
    values = {
        "int": 3, "big": 2**80, "negative": -5, "float": 0.1, "text": "ü", "bytes": b"\x00\xff",
        "array": bytearray(b"ab"), "none": None, "bool": True,
        "tuple": (1, (2, 3)), "list": [1, [2]], "set": {1, 2}, "complex": 1 + 2j,
        "ordered": collections.OrderedDict(b=1, a=2), "counter": collections.Counter("aab"),
        1: "integer key", (1, "a"): "tuple key", "empty": [(), [], {}, set()],
    }  # fmt: skip
    back = carried(values, writer, reader, **settings)
    assert back == values and list(back) == list(values)
    assert all(type(back[key]) is type(values[key]) for key in values)


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_sizes_devices_dtypes_and_meta_tensors_arrive(pair, settings):
    writer, reader = pair
    values = {
        "size": writer.Size([2, 3]), "device": writer.device("cpu"), "cuda": writer.device("cuda:1"),
        "dtype": writer.bfloat16,
        "meta": writer.zeros(2, 3, device="meta").t(),
    }  # fmt: skip
    back = carried(values, writer, reader, **settings)
    assert back["size"] == reader.Size([2, 3]) and type(back["size"]) is reader.Size
    assert (
        back["device"] == reader.device("cpu")
        and back["cuda"] == reader.device("cuda", 1)
        and back["dtype"] is reader.bfloat16
    )
    assert back["meta"].is_meta and back["meta"].stride() == (1, 3)


def test_zero_elements_scalars_expanded_and_conjugate_tensors_arrive(pair):
    writer, reader = pair
    values = [writer.zeros(0, 3), writer.tensor(5), writer.ones(1).expand(3), writer.arange(8.0)[::3], writer.empty(0)]
    for a, b in zip(carried(values, writer, reader), values, strict=True):
        same(a, b)
    (conjugate,) = carried([writer.tensor([1 + 2j]).conj()], writer, reader)
    assert conjugate.resolve_conj().tolist() == [1 - 2j]


def test_a_tensor_with_attributes_arrives(pair):
    writer, reader = pair
    tensor, parameter = writer.ones(2), writer.nn.Parameter(writer.ones(1))
    tensor.note, parameter.note = "here", [1, 2]
    a, b = carried([tensor, parameter], writer, reader)
    assert a.note == "here" and b.note == [1, 2] and type(a) is reader.Tensor and type(b) is reader.nn.Parameter


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_states_of_a_module_and_an_optimizer_arrive(pair, settings):
    writer, reader = pair

    def make(lib):
        lib.manual_seed(0)
        model = lib.nn.Sequential(lib.nn.Conv2d(1, 2, 3), lib.nn.BatchNorm2d(2), lib.nn.Flatten(), lib.nn.Linear(32, 3))
        return model, lib.optim.AdamW(model.parameters(), lr=0.01)

    model, optimizer = make(writer)
    for _ in range(3):
        optimizer.zero_grad()
        model(writer.ones(4, 1, 6, 6)).square().mean().backward()
        optimizer.step()
    back = carried(
        {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3}, writer, reader, **settings
    )
    assert isinstance(back["model"], collections.OrderedDict) and list(back["model"]) == list(model.state_dict())
    assert back["model"]._metadata["1"] == {"version": 2}
    other, other_optimizer = make(reader)
    other.load_state_dict(back["model"])
    other_optimizer.load_state_dict(back["optimizer"])
    for name, tensor in model.state_dict().items():
        same(back["model"][name], tensor)
    assert back["optimizer"]["param_groups"] == optimizer.state_dict()["param_groups"]


def test_storages_arrive(pair):
    writer, reader = pair
    typed = writer.ones(3)._typed_storage() if writer is torch else writer.ones(3).storage()
    untyped, typed = carried([writer.tensor([1, 2], dtype=writer.uint8).untyped_storage(), typed], writer, reader)
    if reader is torch:  # which gives a TypedStorage for either
        untyped, typed = untyped._untyped_storage, typed._untyped_storage
    assert untyped.tolist() == [1, 2] and typed.nbytes() == 12
    assert isinstance(untyped, reader.UntypedStorage)


def test_numpy_values_of_pytorch_files_are_read():
    np = pytest.importorskip("numpy")
    values = {
        "scalar": np.float64(1.5),
        "array": np.arange(6).reshape(2, 3),
        "text": np.array(["ab", "c"]),
        "fortran": np.asfortranarray(np.eye(2, 3)),
        "bool": np.bool_(True),
    }
    back = carried(values, torch, cresset)
    assert back["scalar"] == 1.5 and type(back["scalar"]) is np.float64 and back["bool"] == np.bool_(True)
    for name in ("array", "text", "fortran"):
        assert (back[name] == values[name]).all() and back[name].dtype == values[name].dtype


def test_a_layer_saved_whole_by_pytorch_is_read_with_weights_only_false():
    model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.ReLU(), torch.nn.LayerNorm(2))
    back = carried(model, torch, cresset, weights_only=False)
    assert type(back) is cresset.nn.Sequential and type(back[0]) is cresset.nn.Linear
    x = [[1.0, -2.0, 0.5]]
    got, expected = back(cresset.tensor(x)).tolist()[0], model(torch.tensor(x)).tolist()[0]
    assert got == pytest.approx(expected, rel=1e-5, abs=1e-6)


def test_a_layer_saved_whole_here_is_read_by_pytorch():
    model = cresset.nn.Sequential(cresset.nn.Conv1d(1, 2, 3), cresset.nn.BatchNorm1d(2), cresset.nn.Dropout(0.5))
    back = carried(model, cresset, torch, weights_only=False)
    assert type(back[0]) is torch.nn.Conv1d and type(back[1]) is torch.nn.BatchNorm1d
    same(back[0].weight, model[0].weight)


def test_the_archive_has_the_records_of_pytorch_in_its_layout():
    def listing(lib):
        file = io.BytesIO()
        lib.save({"a": lib.ones(5), "b": lib.zeros(3, dtype=lib.int64)}, file)
        data = file.getvalue()
        with zipfile.ZipFile(file) as archive:
            assert archive.testzip() is None
            found = []
            for item in archive.infolist():
                start = (
                    item.header_offset
                    + 30
                    + int.from_bytes(data[item.header_offset + 26 : item.header_offset + 28], "little")
                )
                start += int.from_bytes(data[item.header_offset + 28 : item.header_offset + 30], "little")
                found.append((item.filename, item.file_size, item.compress_type, start % 64))
            return found, archive.read("archive/data.pkl")

    (ours, our_pickle), (theirs, their_pickle) = listing(cresset), listing(torch)
    assert ours == theirs
    assert our_pickle == their_pickle


def test_pytorch_maps_our_files_into_memory(tmp_path):
    cresset.save({"w": cresset.arange(100.0)}, tmp_path / "w.pt")
    assert torch.load(tmp_path / "w.pt", mmap=True)["w"].tolist() == list(range(100))
    torch.save({"w": torch.arange(100.0)}, tmp_path / "v.pt")
    assert cresset.load(tmp_path / "v.pt", mmap=True)["w"].tolist() == list(range(100))


def test_files_without_checksums_are_read():
    torch.serialization.set_crc32_options(False)
    try:
        file = io.BytesIO()
        torch.save(torch.ones(3), file)
    finally:
        torch.serialization.set_crc32_options(True)
    file.seek(0)
    assert cresset.load(file).tolist() == [1, 1, 1]


def test_both_refuse_the_same_names():
    class Thing:
        pass

    globals()["Thing"] = Thing
    Thing.__module__, Thing.__qualname__ = __name__, "Thing"
    file = io.BytesIO()
    torch.save({"x": Thing()}, file)
    file.seek(0)
    theirs = torch.serialization.get_unsafe_globals_in_checkpoint(file)
    file.seek(0)
    assert cresset.serialization.get_unsafe_globals_in_checkpoint(file) == theirs == [f"{__name__}.Thing"]


# ---------------------------------------------------------------- safetensors


def test_safetensors_files_go_both_ways(tmp_path):
    package = pytest.importorskip("safetensors.torch")
    from cresset import safetensors

    values = {
        f"t.{name}": [[0.0, 1.0], [2.0, 3.0]] for name in DTYPES if name in {str(d)[6:] for d in safetensors_dtypes()}
    }
    ours = {name: cresset.tensor(value).to(getattr(cresset, name[2:])) for name, value in values.items()}
    ours["scalar"], ours["empty"] = cresset.tensor(7), cresset.zeros(0, 3)
    safetensors.save_file(ours, tmp_path / "ours.safetensors", metadata={"format": "pt"})
    theirs = package.load_file(tmp_path / "ours.safetensors")
    assert set(theirs) == set(ours)
    for name, tensor in ours.items():
        same(theirs[name], tensor)
    package.save_file(theirs, tmp_path / "theirs.safetensors", metadata={"format": "pt"})
    assert (tmp_path / "theirs.safetensors").read_bytes() == (tmp_path / "ours.safetensors").read_bytes()
    back = safetensors.load_file(tmp_path / "theirs.safetensors")
    for name, tensor in ours.items():
        same(back[name], tensor)


def safetensors_dtypes():
    from cresset.serialization.safetensors import _WORDS

    return [dtype for dtype in _WORDS if dtype not in (cresset.complex64, cresset.float8_e8m0fnu)]


@pytest.mark.parametrize("layout", ["to_sparse", "to_sparse_csr", "to_sparse_csc"])
def test_sparse_tensors_go_both_ways(pair, layout):
    writer, reader = pair
    dense = [[0.0, 1.0, 0.0], [2.0, 0.0, 3.0]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch calls its compressed layouts a beta
        back = carried({"s": getattr(writer.tensor(dense), layout)()}, writer, reader)["s"]
        assert back.to_dense().tolist() == dense and str(back.layout) == str(
            getattr(reader.tensor(dense), layout)().layout
        )
