"""Teach two layers of plain tensors to read digits, and see how many unseen ones they get right.

The data set is drawn here: each digit of a small font, moved about, faded, and covered with noise. The same program
runs on PyTorch when the import says `import torch`.
"""

import argparse
import random
import time

import cresset as torch

FONT = """
.###. ..#.. .###. ##### ...#. ##### ..##. ##### .###. .###.
#...# .##.. #...# ...#. ..##. #.... .#... ....# #...# #...#
#..## ..#.. ....# ..#.. .#.#. ####. #.... ...#. #...# #...#
#.#.# ..#.. ...#. ...#. #..#. ....# ####. ..#.. .###. .####
##..# ..#.. ..#.. ....# ##### ....# #...# .#... #...# ....#
#...# ..#.. .#... #...# ...#. #...# #...# .#... #...# ...#.
.###. .###. ##### .###. ...#. .###. .###. .#... .###. .##..
"""
GLYPHS = list(zip(*(line.split() for line in FONT.split("\n") if line)))
SIZE = 12


def draw(digit, rng):
    """A picture of `digit`: SIZE x SIZE numbers from 0 (paper) to about 1 (ink), as one list."""
    top, left, ink = rng.randrange(SIZE - 6), rng.randrange(SIZE - 4), rng.uniform(0.5, 1.0)
    picture = [abs(rng.gauss(0.0, 0.15)) for _ in range(SIZE * SIZE)]
    for y, row in enumerate(GLYPHS[digit]):
        for x, mark in enumerate(row):
            if mark == "#" and rng.random() > 0.04:
                picture[(top + y) * SIZE + left + x] += ink
    return picture


def make_digits(count, seed):
    """`count` pictures and the digits they show."""
    rng = random.Random(seed)
    labels = [rng.randrange(10) for _ in range(count)]
    return torch.tensor([draw(digit, rng) for digit in labels]), torch.tensor(labels)


def show(picture):
    """The picture in characters."""
    rows = [picture[y * SIZE : (y + 1) * SIZE].tolist() for y in range(SIZE)]
    return "\n".join("  " + "".join(" .:-=+*#%@"[min(9, int(9 * value))] * 2 for value in row) for row in rows)


def predict(x, weights):
    w1, b1, w2, b2 = weights
    return (x @ w1 + b1).relu() @ w2 + b2


def cross_entropy(scores, labels):
    """The mean of -log(probability given to the right digit)."""
    return (scores.logsumexp(1) - scores.gather(1, labels.unsqueeze(1)).squeeze(1)).mean()


def accuracy(x, labels, weights):
    with torch.no_grad():
        return (predict(x, weights).argmax(1) == labels).float().mean().item()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--hidden", type=int, default=256)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--rate", type=float, default=0.3)
    options = parser.parse_args()

    torch.manual_seed(0)
    x, labels = make_digits(6000, seed=1)
    unseen, answers = make_digits(1000, seed=2)
    print(f"{len(x)} pictures to learn from, {len(unseen)} for the test. This is a {labels[0].item()}:\n{show(x[0])}\n")

    w1 = torch.randn(SIZE * SIZE, options.hidden) * (2 / SIZE**2) ** 0.5
    w2 = torch.randn(options.hidden, 10) * (1 / options.hidden) ** 0.5
    weights = [w.requires_grad_() for w in (w1, torch.zeros(options.hidden), w2, torch.zeros(10))]

    for epoch in range(1, options.epochs + 1):
        start, total = time.perf_counter(), 0.0
        for batch in torch.randperm(len(x)).split(options.batch):
            loss = cross_entropy(predict(x[batch], weights), labels[batch])
            loss.backward()
            with torch.no_grad():
                for w in weights:
                    w -= options.rate * w.grad
                    w.grad = None
            total += loss.item() * len(batch)
        seconds, right = time.perf_counter() - start, accuracy(unseen, answers, weights)
        bar = "#" * round(30 * epoch / options.epochs)
        print(
            f"epoch {epoch:2d} [{bar:30s}]  loss {total / len(x):.4f}  accuracy {right:.3f}  {seconds:.2f} s",
            flush=True,
        )

    print(f"\nRead {accuracy(unseen, answers, weights):.1%} of the unseen digits correctly.")


if __name__ == "__main__":
    main()
