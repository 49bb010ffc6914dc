"""tensorboard: what the writer logs is read back by TensorBoard's own reader."""

import tempfile

import torch
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from torch.utils.tensorboard import SummaryWriter

with tempfile.TemporaryDirectory() as folder:
    with SummaryWriter(folder) as writer:
        for step in range(3):
            writer.add_scalar("loss", torch.tensor(1.0 / (step + 1)), step)
        writer.add_histogram("weights", torch.arange(10.0), 1)
        writer.add_image("picture", torch.rand(3, 8, 8), 2)
        writer.add_text("note", "hello", 0)
        writer.add_pr_curve("pr", torch.tensor([0, 1, 1]), torch.tensor([0.2, 0.7, 0.9]), 0)
        writer.add_graph(torch.nn.Sequential(torch.nn.Linear(4, 2), torch.nn.ReLU()), torch.ones(1, 4))
        writer.add_hparams({"lr": 0.1}, {"accuracy": 0.5}, run_name=".")
    log = EventAccumulator(folder, size_guidance={"tensors": 0})
    log.Reload()
    assert [(event.step, round(event.value, 4)) for event in log.Scalars("loss")] == [(0, 1.0), (1, 0.5), (2, 0.3333)]
    assert log.Histograms("weights")[0].histogram_value.num == 10 and log.Images("picture")[0].width == 8
    assert b"hello" in log.Tensors("note/text_summary")[0].tensor_proto.string_val[0]
    assert {"addmm", "linear"} & {node.op.split("::")[-1] for node in log.Graph().node} or len(log.Graph().node) > 3
    assert log.Scalars("accuracy")[0].value == 0.5
