"""A ResNet-18 with torchvision's transforms, 8 steps on pictures of 64 x 64."""

import torch
from torchvision import models
from torchvision.transforms import v2


def prepare():
    torch.manual_seed(0)
    model = models.resnet18(num_classes=10)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4, momentum=0.9)
    change = v2.Compose([v2.RandomHorizontalFlip(), v2.ToDtype(torch.float32, scale=True), v2.Normalize([0.5], [0.5])])
    pictures = torch.randint(0, 256, (8, 16, 3, 64, 64), dtype=torch.uint8)
    labels = torch.randint(0, 10, (8, 16))

    def train():
        losses = []
        for x, y in zip(pictures, labels, strict=True):
            loss = torch.nn.functional.cross_entropy(model(change(x)), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return losses

    return train
