"""Route support tickets to billing, technical or account: from a CSV file to a saved model.

The CSV file has the columns text and label. Without one, tickets are made up. A tokenizer of whole words, a small
transformer, AdamW in mixed precision, macro F1 on 15 % that are held out, early stopping on their loss.
"""

import argparse
import csv
import os
import random
import tempfile

import cresset as torch
from cresset import nn
from cresset.metrics import F1
from cresset.nn import functional as F
from cresset.utils.data import CsvDataset, DataLoader, random_split

WORDS = {
    "account": "password login email profile username locked verify delete settings phone".split(),
    "billing": "invoice refund charge card payment receipt price subscription tax bank".split(),
    "technical": "crash error screen slow bug freeze install update network timeout".split(),
}
FILLER = "hello please help me with my the it is not working since today thanks again".split()
PAD, UNKNOWN = 0, 1


def write_tickets(path, count, seed=0):
    """Made-up tickets: words of their class between words of no class; one in ten mentions a word of another class,
    too.
    """
    rng = random.Random(seed)
    with open(path, "w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["text", "label"])
        for _ in range(count):
            label = rng.choice(list(WORDS))
            text = rng.choices(WORDS[label], k=rng.randint(2, 4)) + rng.choices(FILLER, k=rng.randint(1, 6))
            if rng.random() < 0.1:
                text.append(rng.choice(WORDS[rng.choice(list(WORDS))]))
            rng.shuffle(text)
            table.writerow([" ".join(text), label])


class Tokenizer:
    """Numbers for whole words."""

    def __init__(self, texts):
        words = sorted({word for text in texts for word in text.lower().split()})
        self.numbers = {word: number for number, word in enumerate(words, 2)}

    def __call__(self, text, longest=32):
        return torch.tensor([self.numbers.get(word, UNKNOWN) for word in text.lower().split()[:longest]] or [UNKNOWN])


def collate(samples):
    """Texts of several lengths as one batch: (ids, mask, labels)."""
    ids = nn.utils.rnn.pad_sequence([ids for ids, _ in samples], batch_first=True, padding_value=PAD)
    return ids, ids != PAD, torch.tensor([label for _, label in samples])


class Router(nn.Module):
    """Embeddings, transformer layers, and the mean over the words for a linear layer to judge."""

    def __init__(self, words, classes, width=32, layers=1, heads=4):
        super().__init__()
        self.embedding = nn.Embedding(words, width, padding_idx=PAD)
        layer = nn.TransformerEncoderLayer(width, heads, 2 * width, dropout=0.1, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.head = nn.Linear(width, classes)

    def forward(self, ids, mask):
        x = self.encoder(self.embedding(ids), src_key_padding_mask=~mask)
        weight = mask.unsqueeze(-1).to(x.dtype)
        return self.head((x * weight).sum(1) / weight.sum(1))


@torch.no_grad()
def evaluate(model, loader, classes):
    """(loss, macro F1)."""
    model.eval()
    total, count, score = 0.0, 0, F1(task="multiclass", num_classes=classes, average="macro")
    for ids, mask, labels in loader:
        scores = model(ids, mask)
        total, count = total + F.cross_entropy(scores, labels, reduction="sum").item(), count + len(labels)
        score.update(scores.argmax(1), labels)
    return total / count, float(score.compute())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("csv", nargs="?", help="a file with the columns text and label; made up if left out")
    parser.add_argument("--tickets", type=int, default=2000, help="how many to make up")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--patience", type=int, default=2, help="epochs without progress before it stops")
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--save", help="where the best weights go")
    options = parser.parse_args()
    torch.manual_seed(0)

    with tempfile.TemporaryDirectory() as folder:
        path = options.csv or os.path.join(folder, "tickets.csv")
        if not options.csv:
            write_tickets(path, options.tickets)
        rows = list(CsvDataset(path, columns=["text", "label"]))
    classes = sorted({row["label"] for row in rows})
    tokenizer = Tokenizer(row["text"] for row in rows)
    samples = [(tokenizer(row["text"]), classes.index(row["label"])) for row in rows]
    learn, held_out = random_split(samples, [0.85, 0.15])
    loader = DataLoader(learn, batch_size=32, shuffle=True, collate_fn=collate, num_workers=options.workers)
    check = DataLoader(held_out, batch_size=128, collate_fn=collate)
    print(f"{len(learn)} tickets to learn from, {len(held_out)} held out; classes: {', '.join(classes)}")

    model = Router(len(tokenizer.numbers) + 2, len(classes))
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    best, waited, kept = float("inf"), 0, None
    for epoch in range(1, options.epochs + 1):
        model.train()
        total = 0.0
        for ids, mask, labels in loader:
            with torch.autocast("cpu", dtype=torch.bfloat16):
                loss = F.cross_entropy(model(ids, mask).float(), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(labels)
        checked, score = evaluate(model, check, len(classes))
        print(
            f"epoch {epoch:2d}  loss {total / len(learn):.4f}  held out {checked:.4f}  macro F1 {score:.3f}", flush=True
        )
        if checked < best:
            best, waited, kept = checked, 0, {name: value.clone() for name, value in model.state_dict().items()}
        else:
            waited += 1
            if waited == options.patience:
                print(f"no progress for {waited} epochs: stop")
                break
    model.load_state_dict(kept)
    _, score = evaluate(model, check, len(classes))
    print(f"\nMacro F1 of the best epoch: {score:.3f}")
    if options.save:
        torch.save({"model": kept, "words": tokenizer.numbers, "classes": classes}, options.save)
    if not options.csv:
        for text in ("please refund the charge on my card", "login password locked", "crash and freeze after update"):
            ids = tokenizer(text).unsqueeze(0)
            with torch.no_grad():
                print(f"  {text!r} -> {classes[model(ids, ids != PAD).argmax().item()]}")


if __name__ == "__main__":
    main()
