"""wandb, offline: numbers, tensors, histograms, a watched model, and the run's files."""

import glob
import os
import tempfile

import torch
import wandb

with tempfile.TemporaryDirectory() as folder:
    os.environ.update(WANDB_SILENT="true", WANDB_MODE="offline", WANDB_DIR=folder)
    run = wandb.init(project="ecosystem", dir=folder, config={"lr": 0.1})
    model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU(), torch.nn.Linear(3, 2))
    run.watch(model, log="all", log_freq=1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        loss = torch.nn.functional.cross_entropy(model(torch.randn(8, 4)), torch.randint(0, 2, (8,)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        run.log({"loss": loss, "weights": wandb.Histogram(model[0].weight.detach()), "item": loss.item()})
    assert abs(run.summary["loss"] - loss.item()) < 1e-6 and run.step == 3
    assert run.summary["gradients/0.weight"]["_type"] == "histogram"
    picture = wandb.Image(torch.rand(3, 8, 8))
    run.log({"picture": picture})
    run.finish()
    assert glob.glob(os.path.join(folder, "wandb", "offline-run-*", "run-*.wandb"))
