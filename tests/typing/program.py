"""A typical training program, as a user with a strict type checker writes it. Checked, and run, by test_typing.py."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import cresset as torch
from cresset import Tensor, nn
from cresset.nn import functional as F
from cresset.optim import AdamW, Optimizer
from cresset.optim.lr_scheduler import CosineAnnealingLR, LRScheduler
from cresset.utils.data import DataLoader, Dataset, Sampler, TensorDataset, random_split


class Points(Dataset[tuple[Tensor, Tensor]]):
    """Points in the plane, and on which side of the diagonal they lie."""

    def __init__(self, count: int, generator: torch.Generator | None = None) -> None:
        self.points = torch.randn(count, 2, generator=generator)
        self.sides = (self.points[:, 0] > self.points[:, 1]).long()

    def __len__(self) -> int:
        return self.points.shape[0]

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        return self.points[index], self.sides[index]


class Backward(Sampler[int]):
    def __init__(self, length: int) -> None:
        self.length = length

    def __iter__(self) -> Iterator[int]:
        return iter(range(self.length - 1, -1, -1))

    def __len__(self) -> int:
        return self.length


class Residual(nn.Module):
    scale: Tensor

    def __init__(self, width: int, dropout: float = 0.1) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.inner = nn.Sequential(
            nn.Linear(width, 2 * width), nn.GELU(), nn.Dropout(dropout), nn.Linear(2 * width, width)
        )
        self.gain = nn.Parameter(torch.zeros(width))
        self.register_buffer("scale", torch.ones(()))

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.inner(self.norm(x))
        return x + self.scale * self.gain * y


class Classifier(nn.Module):
    def __init__(self, width: int = 16, depth: int = 2, classes: int = 2) -> None:
        super().__init__()
        self.embed = nn.Linear(2, width, bias=False)
        self.blocks = nn.ModuleList([Residual(width) for _ in range(depth)])
        self.head = nn.Linear(width, classes)
        nn.init.normal_(self.head.weight, std=0.02)
        nn.init.zeros_(self.head.bias)

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu(self.embed(x))
        for block in self.blocks:
            x = block(x)
        logits: Tensor = self.head(x)
        return logits


def count_parameters(model: nn.Module) -> int:
    return sum(p.numel() for p in model.parameters() if p.requires_grad)


def train_one_epoch(
    model: nn.Module,
    loader: DataLoader[tuple[Tensor, Tensor]],
    optimizer: Optimizer,
    scheduler: LRScheduler,
    device: torch.device,
) -> float:
    model.train()
    total, seen = 0.0, 0
    for points, sides in loader:
        points, sides = points.to(device), sides.to(device, non_blocking=True)
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(device.type, dtype=torch.bfloat16, enabled=False):
            loss = F.cross_entropy(model(points), sides, label_smoothing=0.01)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
        optimizer.step()
        total += loss.item() * points.size(0)
        seen += points.size(0)
    scheduler.step()
    return total / seen


@torch.no_grad()
def accuracy(model: nn.Module, loader: DataLoader[tuple[Tensor, Tensor]]) -> float:
    model.eval()
    right = torch.zeros((), dtype=torch.int64)
    seen = 0
    for points, sides in loader:
        right += (model(points).argmax(dim=-1) == sides).sum()
        seen += len(sides)
    return float(right) / seen


def collate(batch: list[tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
    points, sides = zip(*batch)
    return torch.stack(points), torch.stack(sides)


def main() -> None:
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    generator = torch.Generator().manual_seed(1)
    data = Points(256, generator)
    training, held_out = random_split(data, [192, 64], generator=generator)
    batches = DataLoader(training, batch_size=32, shuffle=True, num_workers=0, generator=generator, collate_fn=collate)
    checks = DataLoader(held_out, batch_size=64)
    backward = DataLoader(
        TensorDataset(data.points, data.sides), sampler=Backward(len(data)), batch_size=16, drop_last=True
    )
    print(len(batches), len(checks), len(backward), next(iter(backward))[0].shape)

    model = Classifier().to(device)
    decayed = [p for p in model.parameters() if p.dim() > 1]
    others = [p for p in model.parameters() if p.dim() <= 1]
    optimizer = AdamW(
        [{"params": decayed, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}], lr=3e-2, betas=(0.9, 0.99)
    )
    scheduler = CosineAnnealingLR(optimizer, T_max=4)
    for epoch in range(4):
        loss = train_one_epoch(model, batches, optimizer, scheduler, device)
        print(f"{epoch}: loss {loss:.3f}, rate {scheduler.get_last_lr()[0]:.4f}, right {accuracy(model, checks):.2f}")

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.pt"
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 4}, path)
        saved = torch.load(path, map_location=device, weights_only=True)
    again = Classifier()
    again.load_state_dict(saved["model"], strict=True)
    x = torch.randn(5, 2)
    torch.testing.assert_close(again.eval()(x), model.eval()(x.to(device)).cpu())
    handle = again.embed.register_forward_hook(lambda module, inputs, output: None)
    handle.remove()
    print(count_parameters(again), [name for name, _ in again.named_parameters()][:2])


if __name__ == "__main__":
    main()
