"""safetensors: tensors and models, there and back; shared memory is found; parts of a file are read."""

import os
import tempfile

import safetensors.torch
import torch
from safetensors import safe_open

with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "x.safetensors")
    tensors = {"a": torch.randn(2, 3), "b": torch.ones(2, dtype=torch.bfloat16), "c": torch.arange(4)}
    safetensors.torch.save_file(tensors, path, metadata={"format": "pt"})
    loaded = safetensors.torch.load_file(path)
    assert all(torch.equal(tensors[k], loaded[k]) and tensors[k].dtype == loaded[k].dtype for k in tensors)
    with safe_open(path, framework="pt", device="cpu") as file:
        assert sorted(file.keys()) == ["a", "b", "c"] and file.metadata() == {"format": "pt"}
        assert torch.equal(file.get_slice("a")[:, 1:], tensors["a"][:, 1:])
    again = safetensors.torch.load(safetensors.torch.save(tensors))
    assert all(torch.equal(tensors[k], again[k]) for k in tensors)

    first, second = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)
    safetensors.torch.save_model(first, path)
    safetensors.torch.load_model(second, path)
    assert torch.equal(first.weight, second.weight)

    shared = torch.randn(4)
    tied = {"all": shared, "part": shared[1:]}
    assert safetensors.torch.storage_ptr(tied["all"]) == safetensors.torch.storage_ptr(tied["part"])
    assert safetensors.torch.storage_size(tied["part"]) == 16
    try:
        safetensors.torch.save_file(tied, path)
    except RuntimeError as error:
        assert "share memory" in str(error)
    else:
        raise AssertionError("tensors that share memory were saved")
    model = torch.nn.Module()
    model.a = torch.nn.Linear(3, 3)
    model.b = model.a
    safetensors.torch.save_model(model, path)
    assert safetensors.torch.load_model(model, path) == (set(), [])
