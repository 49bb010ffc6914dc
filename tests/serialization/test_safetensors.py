"""The safetensors format: files made by hand, files that are wrong, and tensors read one by one."""

import json
import struct

import pytest

import cresset
from cresset import nn, safetensors


def by_hand(header, data=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def entry(dtype="F32", shape=(1,), offsets=(0, 4)):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}


def test_a_file_made_by_hand_is_read():
    back = safetensors.load(
        by_hand(
            {"x": entry(shape=(2, 2), offsets=(0, 16)), "n": entry("I64", (), (16, 24))},
            struct.pack("<4fq", 1, 2, 3, 4, -5),
        )
    )
    assert back["x"].tolist() == [[1, 2], [3, 4]] and back["n"].item() == -5 and back["n"].dtype == cresset.int64


def test_the_file_is_what_the_format_says():
    data = safetensors.save({"b": cresset.tensor([1, 2], dtype=cresset.int16), "a": cresset.tensor(3.0)}, {"k": "v"})
    (size,) = struct.unpack("<Q", data[:8])
    assert size % 8 == 0
    assert json.loads(data[8 : 8 + size]) == {
        "__metadata__": {"k": "v"},
        "a": entry(shape=()),
        "b": entry("I16", (2,), (4, 8)),
    }
    assert data[8 + size :] == struct.pack("<f2h", 3.0, 1, 2)


@pytest.mark.parametrize("dtype", safetensors.load.__globals__["_WORDS"], ids=str)
def test_every_dtype_comes_back(dtype):
    value = cresset.tensor([0.0, 1.0, 2.0]).to(dtype)
    (back,) = safetensors.load(safetensors.save({"x": value})).values()
    assert back.dtype == dtype and back.view(cresset.uint8).tolist() == value.view(cresset.uint8).tolist()


@pytest.mark.parametrize(
    "data, problem",
    [
        (b"", "HeaderTooSmall"),
        (struct.pack("<Q", 2**40) + b"{}", "HeaderTooLarge"),
        (struct.pack("<Q", 99) + b"{}", "InvalidHeaderLength"),
        (by_hand(b"[]"), "InvalidHeaderStart"),
        (by_hand(b"{nonsense}"), "InvalidHeaderDeserialization"),
        (by_hand(b"{" + b'"a":{' * 10000), "InvalidHeaderDeserialization"),
        (by_hand(b"{" + b'"a":{' * 100000), "HeaderTooLarge"),
        (by_hand(b'{"a":1,"a":2}'), "twice"),
        (by_hand({"a": 3}), "dtype, shape and data_offsets"),
        (by_hand({"a": entry("F128")}, bytes(4)), "F128"),
        (by_hand({"a": entry(shape=(2,))}, bytes(4)), "TensorInvalidInfo"),
        (by_hand({"a": entry(shape=(-1,))}, bytes(4)), "shape"),
        (by_hand({"a": entry(shape=(2**61, 2**61), offsets=(0, 0))}), "TensorInvalidInfo"),
        (by_hand({"a": entry(offsets=(4, 8))}, bytes(8)), "InvalidOffset"),
        (by_hand({"a": entry(), "b": entry(offsets=(0, 4))}, bytes(4)), "InvalidOffset"),
        (by_hand({"a": entry()}, bytes(3)), "MetadataIncompleteBuffer"),
        (by_hand({"a": entry()}, bytes(5)), "MetadataIncompleteBuffer"),
        (by_hand({"a": entry(offsets=(4, 0))}, bytes(4)), "data_offsets"),
        (by_hand({"__metadata__": {"a": 1}}), "metadata"),
    ],
)
def test_a_wrong_file_is_a_clear_error(data, problem, tmp_path):
    with pytest.raises(safetensors.SafetensorError, match=problem):
        safetensors.load(data)
    (tmp_path / "x").write_bytes(data)
    with pytest.raises(safetensors.SafetensorError, match=problem):
        safetensors.load_file(tmp_path / "x")


def test_tensors_that_overlap_or_have_gaps_are_not_saved():
    base = cresset.ones(4)
    with pytest.raises(RuntimeError, match="share memory"):
        safetensors.save({"a": base, "b": base[1:3]})
    safetensors.save({"a": base[:2], "b": base[2:]})
    with pytest.raises(ValueError, match="contiguous"):
        safetensors.save({"a": cresset.ones(2, 3).t()})
    with pytest.raises(ValueError, match="torch.Tensor"):
        safetensors.save({"a": 3})


def test_tensors_are_read_one_by_one(tmp_path):
    safetensors.save_file({"a": cresset.arange(6.0).view(2, 3), "b": cresset.ones(1)}, tmp_path / "x", {"format": "pt"})
    with safetensors.safe_open(tmp_path / "x", framework="pt") as file:
        assert sorted(file.keys()) == ["a", "b"] and file.metadata() == {"format": "pt"}
        assert file.get_tensor("a").tolist() == [[0, 1, 2], [3, 4, 5]]
        part = file.get_slice("a")
        assert part.get_shape() == [2, 3] and part.get_dtype() == "F32" and part[:, 1].tolist() == [1, 4]
        with pytest.raises(safetensors.SafetensorError, match="does not contain"):
            file.get_tensor("c")
    with pytest.raises(safetensors.SafetensorError, match="closed"):
        file.get_tensor("a")


def test_changes_do_not_reach_the_file(tmp_path):
    safetensors.save_file({"a": cresset.zeros(2)}, tmp_path / "x")
    before = (tmp_path / "x").read_bytes()
    safetensors.load_file(tmp_path / "x")["a"].fill_(1)
    assert (tmp_path / "x").read_bytes() == before


def test_a_model_with_tied_weights_goes_there_and_back(tmp_path):
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(2, 2, bias=False), nn.Linear(2, 2, bias=False)
            self.b.weight = self.a.weight

    model, other = Tied(), Tied()
    safetensors.save_model(model, tmp_path / "x")
    assert safetensors.load_model(other, tmp_path / "x") == (set(), [])
    assert other.b.weight.tolist() == model.a.weight.tolist()
