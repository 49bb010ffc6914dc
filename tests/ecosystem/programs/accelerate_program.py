"""accelerate: mixed precision, accumulation, checkpoints, loading into an empty model, and `accelerate launch`."""

import os
import subprocess
import sys
import tempfile

import torch
from accelerate import (
    Accelerator,
    dispatch_model,
    infer_auto_device_map,
    init_empty_weights,
    load_checkpoint_and_dispatch,
)
from torch.utils.data import DataLoader, TensorDataset


def train_one():
    accelerator = Accelerator(gradient_accumulation_steps=2, mixed_precision="bf16", cpu=True)
    torch.manual_seed(0)
    model = torch.nn.Linear(4, 2)
    before = model.weight.detach().clone()
    optimizer = torch.optim.AdamW(model.parameters())
    data = DataLoader(TensorDataset(torch.randn(16, 4), torch.randint(0, 2, (16,))), 2)
    model, optimizer, data = accelerator.prepare(model, optimizer, data)
    for x, y in data:
        with accelerator.accumulate(model):
            accelerator.backward(torch.nn.functional.cross_entropy(model(x), y))
            if accelerator.sync_gradients:
                accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
    weight = accelerator.unwrap_model(model).weight
    assert not torch.equal(before, weight)
    return accelerator, model, weight


def under_launch():
    """Two processes: the same weights in both, half the batches each."""
    accelerator, _, weight = train_one()
    assert accelerator.num_processes == 2
    gathered = accelerator.gather(weight.detach().reshape(1, 2, 4))
    assert gathered.shape == (2, 2, 4) and torch.equal(gathered[0], gathered[1])
    assert accelerator.reduce(torch.ones(1)).item() == 2
    accelerator.end_training()


def alone():
    with tempfile.TemporaryDirectory() as folder:
        accelerator, model, weight = train_one()
        accelerator.save_state(folder)
        saved = weight.detach().clone()
        weight.data.zero_()
        accelerator.load_state(folder)
        assert torch.equal(accelerator.unwrap_model(model).weight, saved)
        with init_empty_weights():
            empty = torch.nn.Sequential(torch.nn.Linear(4, 2), torch.nn.Linear(2, 2))
        assert empty[0].weight.device.type == "meta"
        full = torch.nn.Sequential(torch.nn.Linear(4, 2), torch.nn.Linear(2, 2))
        path = os.path.join(folder, "w.pt")
        torch.save(full.state_dict(), path)
        x = torch.randn(1, 4)
        assert torch.equal(load_checkpoint_and_dispatch(empty, path, device_map={"": "cpu"})(x), full(x))
        with init_empty_weights():
            empty = torch.nn.Sequential(torch.nn.Linear(4, 2), torch.nn.Linear(2, 2))
        assert infer_auto_device_map(empty, max_memory={"cpu": 1000}) == {"": "cpu"}
        places = {"0": "cpu", "1": "disk"}
        spread = load_checkpoint_and_dispatch(empty, path, device_map=places, offload_folder=folder)
        assert torch.allclose(spread(x), full(x))  # the second layer is read from the disk when it is called
        assert dispatch_model(full, {"": "cpu"}) is full


if __name__ == "__main__":
    if "launched" in sys.argv:
        under_launch()
    else:
        alone()
        command = ["-m", "accelerate.commands.launch", "--multi_gpu", "--num_processes", "2", "--num_machines", "1"]
        more = ["--mixed_precision", "bf16", "--dynamo_backend", "no", "--main_process_port", "0", __file__, "launched"]
        done = subprocess.run(
            [sys.executable, *command, *more],
            capture_output=True,
            text=True,
            timeout=200,
            env={**os.environ, "ACCELERATE_USE_CPU": "true"},
        )
        assert done.returncode == 0, done.stdout + done.stderr
