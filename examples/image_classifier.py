"""A small residual network reads handwritten digits: loaders, augmentation, a schedule, the best weights kept, and who
is taken for whom.
"""

import argparse
import os
import tempfile

import cresset as torch
from cresset import nn
from cresset.cli.digits import load_digits
from cresset.metrics import Accuracy, ConfusionMatrix
from cresset.nn import functional as F
from cresset.utils.data import DataLoader, Dataset, TensorDataset, random_split


class Moved(Dataset):
    """Samples of another dataset, with the picture moved by up to one dot: another picture each time, the same
    digit."""

    def __init__(self, dataset):
        self.dataset = dataset

    def __len__(self):
        return len(self.dataset)

    def __getitem__(self, index):
        picture, label = self.dataset[index]
        down, right = torch.randint(0, 3, (2,)).tolist()
        return F.pad(picture, (1, 1, 1, 1))[:, down : down + 8, right : right + 8], label


class Residual(nn.Module):
    """x + f(x), where f is two convolutions; with a 1 x 1 convolution on x where the width changes."""

    def __init__(self, width_in, width, stride=1):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(width_in, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(),
            nn.Conv2d(width, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width),
        )  # fmt: skip
        same = stride == 1 and width_in == width
        self.shortcut = nn.Identity() if same else nn.Conv2d(width_in, width, 1, stride, bias=False)

    def forward(self, x):
        return F.relu(self.shortcut(x) + self.body(x))


def make_model(width):
    return nn.Sequential(
        nn.Conv2d(1, width, 3, 1, 1), nn.ReLU(), Residual(width, width), Residual(width, 2 * width, 2),
        Residual(2 * width, 4 * width, 2),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4 * width, 10),
    )  # fmt: skip


@torch.no_grad()
def evaluate(model, loader):
    """(accuracy, confusion matrix)."""
    model.eval()
    right, confused = Accuracy(task="multiclass", num_classes=10), ConfusionMatrix(task="multiclass", num_classes=10)
    for pictures, labels in loader:
        guesses = model(pictures).argmax(1)
        right.update(guesses, labels)
        confused.update(guesses, labels)
    return float(right.compute()), confused.compute()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--width", type=int, default=16)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--workers", type=int, default=0)
    options = parser.parse_args()
    torch.manual_seed(0)

    learn, test = random_split(TensorDataset(*load_digits()), [1500, 297])
    loader = DataLoader(Moved(learn), batch_size=options.batch, shuffle=True, num_workers=options.workers)
    check = DataLoader(test, batch_size=100)
    model = make_model(options.width)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-4, nesterov=True)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, options.epochs)
    best = 0.0
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "best.pt")
        for epoch in range(1, options.epochs + 1):
            model.train()
            for pictures, labels in loader:
                loss = F.cross_entropy(model(pictures), labels, label_smoothing=0.05)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            schedule.step()
            right, _ = evaluate(model, check)
            print(f"epoch {epoch:2d}  last loss {loss.item():.4f}  accuracy {right:.2%}", flush=True)
            if right >= best:
                best = right
                torch.save(model.state_dict(), path)
        model.load_state_dict(torch.load(path))
    right, confused = evaluate(model, check)
    print("\ntaken for       " + "".join(f"{digit:4d}" for digit in range(10)))
    for digit, row in enumerate(confused.tolist()):
        print(f"  a {digit}           " + "".join(f"{int(count):4d}" if count else "   ." for count in row))
    print(f"\nAccuracy of the best epoch: {right:.2%}")


if __name__ == "__main__":
    main()
