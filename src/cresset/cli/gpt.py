"""`cresset train gpt`: a small transformer reads the sources of Python's standard library letter by letter, then writes
some of its own.
"""

import math
import pathlib
import sys
import sysconfig
import time

import cresset
from cresset import nn, optim
from cresset.nn import functional as F

from . import CommandError
from .contents import save_weights
from .recording import recorded
from .terminal import LiveLine, bar, curve


def read_library(letters):
    """About `letters` letters of the standard library's modules, in the order of their names."""
    folder = pathlib.Path(sysconfig.get_paths()["stdlib"])
    found, count = [], 0
    for path in sorted(folder.glob("*.py")):
        text = path.read_text(encoding="utf-8", errors="ignore")
        found.append(text)
        count += len(text)
        if count >= letters:
            break
    if not found:
        raise CommandError(f"train gpt: {folder} has no sources of the standard library; give a text with --text FILE")
    return "\n".join(found)[:letters]


class Block(nn.Module):
    """Attention to the letters before, then a layer of its own for each letter; both are added to what came in."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.attention_norm, self.hidden_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.queries_keys_values = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.hidden = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        batch, length, width = x.shape
        split = self.queries_keys_values(self.attention_norm(x)).view(batch, length, 3, self.heads, width // self.heads)
        queries, keys, values = split.permute(2, 0, 3, 1, 4).unbind(0)
        seen = F.scaled_dot_product_attention(queries, keys, values, is_causal=True)
        x = x + self.out(seen.transpose(1, 2).reshape(batch, length, width))
        return x + self.hidden(self.hidden_norm(x))


class CharacterGPT(nn.Module):
    """Scores of the next letter, for each place of a text."""

    def __init__(self, letters, context, width, layers, heads):
        super().__init__()
        self.context = context
        self.letters, self.places = nn.Embedding(letters, width), nn.Embedding(context, width)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(layers)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, letters)
        for embedding in (self.letters, self.places):
            nn.init.normal_(embedding.weight, std=0.02)

    def forward(self, ids):
        x = self.letters(ids) + self.places.weight[: ids.shape[1]]
        return self.head(self.norm(self.blocks(x)))


@cresset.no_grad()
def write(model, ids, count, temperature):
    """Continue the text `ids` (1, length) by `count` letters, one by one; yields their numbers."""
    model.eval()
    for _ in range(count):
        scores = model(ids[:, -model.context :])[:, -1]
        if temperature == 0:
            chosen = scores.argmax(1, keepdim=True)
        else:
            chosen = cresset.multinomial((scores / temperature).softmax(1), 1)
        ids = cresset.cat([ids, chosen], 1)
        yield chosen.item()


def batches(data, batch, context):
    """Random stretches of the text, and the same moved by one letter: what comes next."""
    places = cresset.arange(context, device=data.device)
    while True:
        starts = cresset.randint(0, len(data) - context - 1, (batch, 1)).to(data.device)
        at = starts + places
        yield data[at], data[at + 1]


def loss_of(model, x, y):
    return F.cross_entropy(model(x).flatten(0, 1), y.flatten())


def train(model, data, checked, options, records):
    """Train for the given steps; the losses of the steps. The loss on `checked`, a text that is kept aside, is told now
    and then; each telling is an epoch of the record.
    """
    line = LiveLine()
    optimizer = optim.AdamW(model.parameters(), lr=2e-3, betas=(0.9, 0.99), weight_decay=0.1)
    warm = max(1, options.steps // 20)
    schedule = optim.lr_scheduler.LambdaLR(
        optimizer,
        lambda step: min(1, (step + 1) / warm) * (0.55 + 0.45 * math.cos(math.pi * min(1, step / options.steps))),
    )
    report = max(1, options.steps // 8)
    losses, start = [], time.perf_counter()
    for step, (x, y) in zip(range(1, options.steps + 1), batches(data, options.batch, options.context)):
        loss = loss_of(model, x, y)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
        records.write("step", step=step, loss=losses[-1], lr=float(optimizer.param_groups[0]["lr"]))
        rate = step * options.batch * options.context / (time.perf_counter() - start)
        line.show(
            f"step {step:4d} [{bar(step, options.steps)}] loss {losses[-1]:.3f}  {rate / 1e3:.1f} thousand letters a "
            "second"
        )
        if step % report == 0 or step == options.steps:
            recent = losses[-report:]
            with cresset.no_grad():
                model.eval()
                unseen = loss_of(model, *checked).item()
                model.train()
            records.write("epoch", epoch=-(-step // report), step=step, loss=sum(recent) / len(recent), val_loss=unseen)
            records.flush()
            line.keep(
                f"step {step:4d} [{bar(step, options.steps)}] loss {sum(recent) / len(recent):.3f}  unseen text "
                f"{unseen:.3f}  {rate / 1e3:.1f} thousand letters/s"
            )
    return losses


def run(options):
    if options.temperature < 0:
        raise CommandError(f"train gpt: --temperature must not be negative, got {options.temperature}")
    heads = next(h for h in (4, 3, 2, 1) if options.width % h == 0)
    if options.threads:
        cresset.set_num_threads(options.threads)
    cresset.manual_seed(options.seed)
    if options.text:
        text = pathlib.Path(options.text).read_text(encoding="utf-8", errors="replace")[: options.letters]
    else:
        text = read_library(options.letters)
    if len(text) < 20 * (options.context + 2):
        raise CommandError(
            f"train gpt: the text has {len(text)} letters; a context of {options.context} needs "
            f"{20 * (options.context + 2)}"
        )
    vocabulary = sorted(set(text) | {"\n"})
    number = {letter: i for i, letter in enumerate(vocabulary)}
    data = cresset.tensor([number[letter] for letter in text], device=options.device)
    kept = max(len(data) // 20, options.context + 2)  # the last part is for checking
    generator_state = cresset.get_rng_state()
    checked = next(batches(data[-kept:], 32, options.context))
    cresset.set_rng_state(generator_state)
    model = CharacterGPT(len(vocabulary), options.context, options.width, options.layers, heads).to(options.device)
    weights = sum(p.numel() for p in model.parameters())
    print(
        f"{len(text)} letters, {len(vocabulary)} different ones; {weights} weights, {cresset.get_num_threads()} "
        "threads\n"
    )
    with recorded(options, "gpt", model, "AdamW", None) as records:
        losses = train(model, data[:-kept], checked, options, records)
    print("\n" + curve(losses, title="loss", unit=lambda v: f"{v:.2f}") + "\n")
    opening = "def " if all(letter in number for letter in "def ") else "\n"
    sys.stdout.write(opening)
    for chosen in write(
        model,
        cresset.tensor([[number[letter] for letter in opening]], device=options.device),
        options.sample,
        options.temperature,
    ):
        sys.stdout.write(vocabulary[chosen])
        sys.stdout.flush()
    print()
    if options.save:
        save_weights(model, options.save)
    return 0
