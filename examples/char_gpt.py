"""A transformer learns a text letter by letter, then writes in its manner. Give it a text file; it has learned enough
when you can read it.
"""

import argparse
import pathlib
import time

import cresset as torch
from cresset import nn
from cresset.nn import functional as F


class Block(nn.Module):
    """Attention to the letters before, then a layer for each letter alone."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        x = x + self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(x.shape))
        return x + self.mlp(self.norm2(x))


class GPT(nn.Module):
    def __init__(self, letters, context, width, layers, heads):
        super().__init__()
        self.context = context
        self.letter, self.place = nn.Embedding(letters, width), nn.Embedding(context, width)
        self.blocks = nn.Sequential(*[Block(width, heads) for _ in range(layers)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, letters, bias=False)
        self.head.weight = self.letter.weight  # what a letter means and how it is foretold are one table
        for table in (self.letter, self.place):
            nn.init.normal_(table.weight, std=0.02)

    def forward(self, ids):
        x = self.letter(ids) + self.place(torch.arange(ids.shape[1]))
        return self.head(self.norm(self.blocks(x)))

    @torch.no_grad()
    def write(self, ids, count, temperature=0.8, top_k=20):
        """Add `count` letters to `ids`, each drawn from the `top_k` likeliest."""
        for _ in range(count):
            scores, letters = self(ids[:, -self.context :])[:, -1].topk(min(top_k, self.head.out_features))
            chosen = torch.multinomial((scores / temperature).softmax(-1), 1)
            ids = torch.cat([ids, letters.gather(1, chosen)], dim=1)
        return ids


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("text", nargs="?", default=__file__, help="a text file (default: this program)")
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--context", type=int, default=64)
    parser.add_argument("--width", type=int, default=96)
    parser.add_argument("--layers", type=int, default=3)
    parser.add_argument("--sample", type=int, default=300)
    options = parser.parse_args()
    torch.manual_seed(0)

    text = pathlib.Path(options.text).read_text(encoding="utf-8")
    letters = sorted(set(text))
    number = {letter: i for i, letter in enumerate(letters)}
    data = torch.tensor([number[letter] for letter in text])
    model = GPT(len(letters), options.context, options.width, options.layers, heads=4)
    decayed = [p for p in model.parameters() if p.dim() > 1]
    others = [p for p in model.parameters() if p.dim() <= 1]
    groups = [{"params": decayed, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=2e-3, betas=(0.9, 0.95))
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=2e-3, total_steps=options.steps)
    print(f"{len(text)} letters, {len(letters)} different ones, {sum(p.numel() for p in model.parameters())} weights")

    start = time.perf_counter()
    for step in range(1, options.steps + 1):
        at = torch.randint(0, len(data) - options.context - 1, (options.batch, 1)) + torch.arange(options.context)
        loss = F.cross_entropy(model(data[at]).flatten(0, 1), data[at + 1].flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        if step == 1 or step % max(1, options.steps // 10) == 0:
            print(f"step {step:5d}  loss {loss.item():.4f}  {time.perf_counter() - start:6.1f} s", flush=True)
    opening = data[:8].unsqueeze(0)
    print("\n" + "".join(letters[i] for i in model.eval().write(opening, options.sample)[0].tolist()))


if __name__ == "__main__":
    main()
