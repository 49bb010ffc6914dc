"""torchmetrics: numbers that can be worked out by hand."""

import torch
import torchmetrics
from torchmetrics.classification import BinaryAUROC, MulticlassAccuracy, MulticlassConfusionMatrix

guess, truth = torch.tensor([0, 1, 2]), torch.tensor([0, 1, 1])
accuracy = MulticlassAccuracy(3, average="micro")
accuracy.update(guess, truth)
assert abs(accuracy.compute().item() - 2 / 3) < 1e-6
assert MulticlassConfusionMatrix(3)(guess, truth).tolist() == [[1, 0, 0], [0, 1, 1], [0, 0, 0]]
assert BinaryAUROC()(torch.tensor([0.1, 0.9, 0.8, 0.2]), torch.tensor([0, 1, 1, 0])).item() == 1.0
assert torchmetrics.MeanSquaredError()(torch.ones(3), torch.zeros(3)).item() == 1.0
assert torchmetrics.text.BLEUScore()(["the cat is here"], [["the cat is here"]]).item() == 1.0
