"""`cresset train digits`: a small convolutional network learns to read handwritten digits.

The 1797 pictures of 8 x 8 dots in digits.bin are from "Optical Recognition of Handwritten Digits" by E. Alpaydin and C.
Kaynak (UCI Machine Learning Repository, CC BY 4.0): zlib-compressed, first the labels, a byte each, then the dots row
by row, a byte of 0 to 16 each.
"""

import time
import zlib
from importlib import resources

import cresset
from cresset import nn, optim
from cresset.nn import functional as F
from cresset.train.records import Records

from .contents import save_weights
from .recording import recorded
from .terminal import LiveLine, bar, curve, picture, side_by_side

COUNT, SIZE = 1797, 8
TEST = 297  # how many of them are kept for the test


def load_digits():
    """(pictures of shape (1797, 1, 8, 8) with dots from 0 to 1, their labels)."""
    data = bytearray(zlib.decompress(resources.files("cresset.cli").joinpath("digits.bin").read_bytes()))
    numbers = cresset.frombuffer(data, dtype=cresset.uint8)
    labels, dots = numbers[:COUNT].long(), numbers[COUNT:].float() / 16
    return dots.view(COUNT, 1, SIZE, SIZE), labels


def split_digits(seed=0):
    """(pictures, labels) to learn from and (pictures, labels) for the test, in an order drawn from `seed`."""
    pictures, labels = load_digits()
    order = cresset.randperm(COUNT, generator=cresset.Generator().manual_seed(seed))
    learn, test = order[TEST:], order[:TEST]
    return (pictures[learn], labels[learn]), (pictures[test], labels[test])


def make_model():
    """Three convolutions and a linear layer: about 60 thousand weights."""
    return nn.Sequential(
        nn.Conv2d(1, 32, 3, padding=1, bias=False), nn.BatchNorm2d(32), nn.ReLU(),
        nn.Conv2d(32, 64, 3, padding=1, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(64, 64, 3, padding=1, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Dropout(0.3), nn.Linear(64 * 2 * 2, 10),
    )  # fmt: skip


def moved(pictures):
    """The pictures, all moved by the same dot or none in each direction: more to learn from."""
    down, right = (cresset.randint(0, 3, (2,)) - 1).tolist()
    padded = F.pad(pictures, (1, 1, 1, 1))
    return padded[:, :, 1 + down : 1 + down + SIZE, 1 + right : 1 + right + SIZE]


def evaluate(model, pictures, labels):
    """(the loss, the part that is right, the digits that were read)."""
    model.eval()
    with cresset.no_grad():
        scores = model(pictures)
    guesses = scores.argmax(1)
    return F.cross_entropy(scores, labels).item(), (guesses == labels).float().mean().item(), guesses


def train(model, learn, test, epochs, batch, say=None, records=None):
    """Train; a list with (loss in training, loss in the test, accuracy in the test) of each epoch, which are written to
    `records`, if given.
    """
    pictures, labels = learn
    line = say or LiveLine()
    optimizer = optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-2)
    steps = -(-len(pictures) // batch)
    schedule = optim.lr_scheduler.OneCycleLR(optimizer, max_lr=5e-3, total_steps=epochs * steps)
    history = []
    records = records or Records(None)
    for epoch in range(1, epochs + 1):
        model.train()
        start, total = time.perf_counter(), 0.0
        for step, chosen in enumerate(cresset.randperm(len(pictures)).to(pictures.device).split(batch), 1):
            loss = F.cross_entropy(model(moved(pictures[chosen])), labels[chosen])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            total += loss.item() * len(chosen)
            line.show(f"epoch {epoch:2d} [{bar(step, steps)}] loss {loss.item():.4f}")
        checked, right, _ = evaluate(model, *test)
        history.append((total / len(pictures), checked, right))
        records.write("epoch", epoch=epoch, step=epoch * steps, loss=history[-1][0], val_loss=checked,
            val_accuracy=right,
            lr=float(optimizer.param_groups[0]["lr"]))  # fmt: skip
        records.flush()
        line.keep(
            f"epoch {epoch:2d} [{bar(epoch, epochs)}] loss {history[-1][0]:.4f}  test loss {checked:.4f}  accuracy "
            f"{right:6.2%}  {time.perf_counter() - start:.2f} s"
        )
    return history


def draw(history, pictures, labels, guesses, scale=5):
    """A canvas with the curves of the run and the first forty test pictures, the wrong ones in red."""
    from .canvas import Canvas

    columns, rows, gap = 10, 4, 14
    cell = SIZE * scale + gap
    canvas = Canvas(columns * cell + gap, 190 + rows * (cell + 12), (250, 250, 248))
    for number, (values, color) in enumerate(
        [([h[0] for h in history], (44, 95, 168)), ([h[2] for h in history], (34, 139, 84))]
    ):
        left, width, height = 60 + number * (canvas.width // 2), canvas.width // 2 - 80, 120
        low, high = min(values), max(values)
        reach = (high - low) or 1.0
        canvas.rectangle(left, 30 + height, width, 1, (150, 150, 150))
        canvas.rectangle(left, 30, 1, height, (150, 150, 150))
        points = [
            (left + width * i / max(len(values) - 1, 1), 30 + height * (high - v) / reach) for i, v in enumerate(values)
        ]
        canvas.line(points, color)
        for value, top in ((high, 26), (low, 24 + height)):
            canvas.text(left - 52, top, f"{value:.2f}" if number == 0 else f"{value:.1%}")
    for place in range(min(columns * rows, len(pictures))):
        left, top = gap + place % columns * cell, 175 + place // columns * (cell + 12)
        good = guesses[place] == labels[place]
        canvas.rectangle(
            left - 2, top - 2, SIZE * scale + 4, SIZE * scale + 4, (200, 200, 200) if good else (200, 40, 40)
        )
        for y, row in enumerate(pictures[place]):
            for x, value in enumerate(row):
                canvas.rectangle(left + x * scale, top + y * scale, scale, scale, (255 - int(255 * value),) * 3)
        canvas.text(left, top + SIZE * scale + 5, str(guesses[place]), (60, 60, 60) if good else (200, 40, 40))
    return canvas


def run(options):
    start = time.perf_counter()
    cresset.set_num_threads(options.threads)
    cresset.manual_seed(options.seed)
    learn, test = ([part.to(options.device) for part in parts] for parts in split_digits())
    model = make_model().to(options.device)
    weights = sum(p.numel() for p in model.parameters())
    print(
        f"{len(learn[0])} handwritten digits to learn from, {len(test[0])} for the test; {weights} weights, "
        f"{options.threads} thread{'s' * (options.threads > 1)}\n"
    )
    with recorded(options, "digits", model, "AdamW", options.epochs) as records:
        history = train(model, learn, test, options.epochs, options.batch, records=records)
    _, right, guesses = evaluate(model, *test)
    print("\n" + curve([h[0] for h in history], title="loss", unit=lambda v: f"{v:.3f}"))
    print(curve([h[2] for h in history], title="accuracy on digits it has not seen", unit=lambda v: f"{v:.1%}") + "\n")

    pictures, labels, guesses = test[0].squeeze(1).tolist(), test[1].tolist(), guesses.tolist()
    wrong = [i for i in range(len(labels)) if guesses[i] != labels[i]]
    shown = [*wrong[:3], *(i for i in range(len(labels)) if i not in wrong)][:5]
    captions = [
        (f"{guesses[i]}" if guesses[i] == labels[i] else f"{guesses[i]}, not {labels[i]}", guesses[i] == labels[i])
        for i in shown
    ]
    print(side_by_side([picture(pictures[i]) for i in shown], captions))
    print(
        f"\nRead {right:.1%} of the unseen digits correctly ({len(wrong)} wrong of {len(labels)}) after "
        f"{time.perf_counter() - start:.1f} s."
    )
    if options.png:
        with open(options.png, "wb") as file:
            file.write(draw(history, pictures, labels, guesses).png())
        print(f"drew {options.png}")
    if options.save:
        save_weights(model, options.save)
    return 0
