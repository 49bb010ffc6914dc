"""A small network reads digits, becomes a graph, a picture, a file, and a C program that gives the same answers."""

import argparse
import pathlib
import shutil
import subprocess

import cresset as torch
from cresset import nn
from cresset.cli.digits import load_digits
from cresset.export import Dim, export, load, save, to_c
from cresset.nn import functional as F


class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(width, 2 * width, 3, padding=1), nn.BatchNorm2d(2 * width), nn.ReLU(), nn.AdaptiveAvgPool2d(2),
        )  # fmt: skip
        self.head = nn.Linear(8 * width, 10)

    def forward(self, picture):
        return self.head(self.features(picture).flatten(1))


def train(model, pictures, labels, steps):
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    for _ in range(steps):
        chosen = torch.randint(0, len(labels), (64,))
        loss = F.cross_entropy(model(pictures[chosen]), labels[chosen])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


def answers_of_c(folder, pictures):
    """What the compiled file answers to each picture."""
    subprocess.run(["cc", "-std=c99", "-O2", "-o", folder / "digits", folder / "digits.c", "-lm"], check=True)
    given = b"".join(bytes(memoryview(picture.contiguous().reshape(-1))) for picture in pictures)
    found = subprocess.run([folder / "digits"], input=given, capture_output=True, check=True).stdout
    return torch.frombuffer(bytearray(found), dtype=torch.float32).view(-1, 10)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=pathlib.Path, default=pathlib.Path("exported"))
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--width", type=int, default=12)
    options = parser.parse_args()
    torch.manual_seed(0)
    options.folder.mkdir(parents=True, exist_ok=True)

    pictures, labels = load_digits()
    model = Net(options.width)
    print(f"loss {train(model, pictures[:1500], labels[:1500], options.steps):.3f}")
    model.eval()

    program = export(model, (pictures[:2],), dynamic_shapes={"picture": {0: Dim("batch", max=4096)}})
    print([str(node.target) for node in program.graph.nodes if node.op == "call_function"])
    program.to_svg(options.folder / "digits.svg")
    save(program, options.folder / "digits.pt2")
    scores = load(options.folder / "digits.pt2").module()(pictures[1500:])
    print(f"{(scores.argmax(1) == labels[1500:]).float().mean().item():.1%} of unseen digits are read, from the file")

    to_c(export(model, (pictures[:1],)), options.folder / "digits.c", name="digits", main=True)
    if shutil.which("cc"):
        same = answers_of_c(options.folder, pictures[1500:]).argmax(1) == scores.argmax(1)
        print(f"C gives the same answer for {same.sum().item()} of {len(same)} pictures")


if __name__ == "__main__":
    main()
