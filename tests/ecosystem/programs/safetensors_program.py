"""safetensors: tensors and models, there and back."""

import os
import tempfile

import safetensors.torch
import torch

with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "x.safetensors")
    tensors = {"a": torch.randn(2, 3), "b": torch.ones(2, dtype=torch.bfloat16), "c": torch.arange(4)}
    safetensors.torch.save_file(tensors, path)
    loaded = safetensors.torch.load_file(path)
    assert all(torch.equal(tensors[k], loaded[k]) and tensors[k].dtype == loaded[k].dtype for k in tensors)
    first, second = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)
    safetensors.torch.save_model(first, path)
    safetensors.torch.load_model(second, path)
    assert torch.equal(first.weight, second.weight)
