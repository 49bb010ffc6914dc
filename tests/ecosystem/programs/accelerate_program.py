"""accelerate: mixed precision, accumulation, checkpoints, loading into an empty model."""

import os
import tempfile

import torch
from accelerate import Accelerator, init_empty_weights, load_checkpoint_and_dispatch
from torch.utils.data import DataLoader, TensorDataset

with tempfile.TemporaryDirectory() as folder:
    accelerator = Accelerator(gradient_accumulation_steps=2, mixed_precision="bf16", cpu=True)
    model = torch.nn.Linear(4, 2)
    before = model.weight.detach().clone()
    optimizer = torch.optim.AdamW(model.parameters())
    data = DataLoader(TensorDataset(torch.randn(8, 4), torch.randint(0, 2, (8,))), 2)
    model, optimizer, data = accelerator.prepare(model, optimizer, data)
    for x, y in data:
        with accelerator.accumulate(model):
            accelerator.backward(torch.nn.functional.cross_entropy(model(x), y))
            accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
    assert not torch.equal(before, model.weight)
    accelerator.save_state(folder)
    accelerator.load_state(folder)
    with init_empty_weights():
        empty = torch.nn.Linear(4, 2)
    assert empty.weight.device.type == "meta"
    path = os.path.join(folder, "w.pt")
    torch.save(model.state_dict(), path)
    assert torch.equal(load_checkpoint_and_dispatch(empty, path, device_map={"": "cpu"}).weight, model.weight)
