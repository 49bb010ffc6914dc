"""What a program with schedulers, transforms, distributions, scripts and loaders says about its types."""

import io
from collections.abc import Iterator
from typing import Any

import cresset as torch
from cresset import Tensor, nn
from cresset.func import functional_call, grad, jacfwd, jacrev, vmap
from cresset.optim.lr_scheduler import CosineAnnealingLR, LambdaLR, LRScheduler, OneCycleLR, SequentialLR
from cresset.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset, random_split


class Pairs(Dataset[tuple[Tensor, int]]):
    def __len__(self) -> int:
        return 3

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        return torch.zeros(2), index


class Stream(IterableDataset[Tensor]):
    def __iter__(self) -> Iterator[Tensor]:
        yield torch.zeros(1)


class Net(nn.Module):
    def __init__(self, width: int = 4) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(width, width), nn.ReLU())
        self.heads = nn.ModuleList([nn.Linear(width, 1) for _ in range(2)])
        self.scale: Tensor
        self.register_buffer("scale", torch.ones(1))
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        y = self.body(x) * self.scale
        if mask is not None:
            y = y.masked_fill(mask, float("-inf"))
        return torch.cat([head(y) for head in self.heads], dim=-1)


def train(model: Net, loader: DataLoader[tuple[Tensor, int]]) -> float:
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.1)
    scheduler: LRScheduler = CosineAnnealingLR(optimizer, T_max=10)
    warm = LambdaLR(optimizer, lambda step: min(1.0, step / 10))
    both = SequentialLR(optimizer, [warm, scheduler], milestones=[5])
    cycle = OneCycleLR(optimizer, max_lr=0.1, total_steps=10)
    scaler = torch.amp.GradScaler("cpu", enabled=False)
    total = 0.0
    for x, y in loader:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = nn.functional.cross_entropy(model(x), torch.as_tensor(y))
        scaler.scale(loss).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad(set_to_none=True)
        both.step()
        cycle.step()
        total += loss.item()
    return total


def transforms() -> None:
    def f(x: Tensor) -> Tensor:
        return (x**2).sum()

    g = grad(f)(torch.ones(3))
    j = jacrev(f)(torch.ones(3))
    k = jacfwd(f)(torch.ones(3))
    v = vmap(f, in_dims=0)(torch.ones(2, 3))
    model = Net()
    out = functional_call(model, dict(model.named_parameters()), (torch.ones(1, 4),))
    print(g, j, k, v, out)


def distributions() -> Tensor:
    normal = torch.distributions.Normal(0.0, 1.0)
    other = torch.distributions.Normal(torch.zeros(2), torch.ones(2))
    kl = torch.distributions.kl_divergence(normal, other)
    categorical = torch.distributions.Categorical(logits=torch.zeros(3))
    total: Tensor = normal.rsample((2,)) + categorical.log_prob(categorical.sample()) + kl.sum()
    return total


@torch.jit.script
def doubled(x: Tensor) -> Tensor:
    return x * 2


@torch.compile
def fused(x: Tensor) -> Tensor:
    return torch.relu(x) + 1


@torch.no_grad()
def evaluate(model: nn.Module, x: Tensor) -> Tensor:
    found: Tensor = model(x).argmax(dim=-1)
    return found


compiled = torch.compile(Net(), mode="reduce-overhead")
first, second = random_split(Pairs(), [2, 1], generator=torch.Generator().manual_seed(0))
loader = DataLoader(first, batch_size=2, shuffle=True, num_workers=0, pin_memory=False, drop_last=True)
tensors = DataLoader(TensorDataset(torch.zeros(4, 2), torch.zeros(4)), batch_size=2)
for batch, target in tensors:
    print(batch.shape, target.mean().item())
values, indices = torch.topk(torch.ones(4), 2)
m = torch.max(torch.ones(2, 2), dim=1)
print(m.values, m.indices, values, indices)
q, r = torch.linalg.qr(torch.eye(3))
state: dict[str, Any] = Net().state_dict()
file = io.BytesIO()
torch.save({"model": state, "step": 3}, file)
file.seek(0)
loaded = torch.load(file, map_location="cpu", weights_only=True)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
x = torch.randn(2, 3, device=device, dtype=torch.float32, requires_grad=True)
handle = nn.Linear(2, 2).register_forward_hook(lambda module, args, output: None)
handle.remove()
(gradient,) = torch.autograd.grad(x.sum(), [x], create_graph=True)
s = x[:, None, ..., 0] + x[0, 1:].view(-1, 2)
d = torch.cdist(x, x, p=1.0)
e = torch.einsum("ij,kj->ik", x, x)
parts: tuple[Tensor, ...] = torch.split(x, 1)
n: int = x.numel() + x.size(0) + x.shape[0]
pool = nn.MultiheadAttention(4, 2, batch_first=True)
attended, weights = pool(torch.ones(1, 2, 4), torch.ones(1, 2, 4), torch.ones(1, 2, 4))
out, (h, c) = nn.LSTM(3, 4)(torch.ones(2, 1, 3))
