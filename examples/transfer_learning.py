"""A network that reads clean digits learns to read those of a bad scanner from a few pictures: its features stay, a new
last layer learns.
"""

import argparse
import os
import tempfile

import cresset as torch
from cresset import nn
from cresset.cli.digits import load_digits
from cresset.nn import functional as F


def make_model():
    features = nn.Sequential(
        nn.Conv2d(1, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.Conv2d(32, 64, 3, padding=1),
        nn.BatchNorm2d(64), nn.ReLU(),
        nn.MaxPool2d(2), nn.Conv2d(64, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
    )  # fmt: skip
    return nn.ModuleDict({"features": features, "head": nn.Linear(64 * 4, 10)})


def scores(model, pictures):
    return model["head"](model["features"](pictures))


def train(model, pictures, labels, epochs, rate, frozen=False):
    """Train what requires a gradient; frozen features also keep the statistics of their normalization."""
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=rate)
    for _ in range(epochs):
        model.train()
        if frozen:
            model["features"].eval()
        for chosen in torch.randperm(len(pictures)).split(32):
            loss = F.cross_entropy(scores(model, pictures[chosen]), labels[chosen])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


def accuracy(model, pictures, labels):
    model.eval()
    with torch.no_grad():
        return (scores(model, pictures).argmax(1) == labels).float().mean().item()


def badly_scanned(pictures):
    """Faint, and with noise all over."""
    return 0.4 * pictures + 0.3 * torch.rand(pictures.shape)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shots", type=int, default=3, help="pictures of each digit from the bad scanner")
    parser.add_argument("--epochs", type=int, default=10, help="on the clean digits")
    parser.add_argument("--new-epochs", type=int, default=60, help="on those of the bad scanner")
    options = parser.parse_args()
    torch.manual_seed(0)

    pictures, labels = load_digits()
    known = make_model()
    train(known, pictures[:900], labels[:900], options.epochs, 2e-3)
    print(f"clean digits that it has not seen: {accuracy(known, pictures[900:], labels[900:]):.1%}")

    pictures, labels = badly_scanned(pictures[900:]), labels[900:]
    few = torch.cat([(labels == digit).nonzero().flatten()[: options.shots] for digit in range(10)])
    rest = torch.ones(len(labels), dtype=torch.bool)
    rest[few] = False
    print(f"badly scanned ones, without learning more: {accuracy(known, pictures[rest], labels[rest]):.1%}")

    with tempfile.TemporaryDirectory() as folder:  # a published model comes as a file, too
        path = os.path.join(folder, "features.safetensors")
        torch.safetensors.save_file(known["features"].state_dict(), path)
        model = make_model()
        model["features"].load_state_dict(torch.safetensors.load_file(path))
    model["features"].requires_grad_(False)
    train(model, pictures[few], labels[few], options.new_epochs, 5e-3, frozen=True)
    print(f"with a new last layer, from {len(few)} pictures: {accuracy(model, pictures[rest], labels[rest]):.1%}")

    fresh = make_model()
    train(fresh, pictures[few], labels[few], options.new_epochs, 2e-3)
    print(f"the same pictures, from scratch: {accuracy(fresh, pictures[rest], labels[rest]):.1%}")


if __name__ == "__main__":
    main()
