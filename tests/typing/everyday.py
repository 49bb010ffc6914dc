"""Everyday calls, each in a form that people write. A strict type checker must find nothing to say; test_typing.py
checks that, and runs them."""

import cresset as torch
from cresset import Tensor, nn
from cresset.nn import functional as F


def creation() -> list[Tensor]:
    a = torch.zeros(2, 3)
    b = torch.zeros((2, 3), dtype=torch.float64)
    c = torch.ones([2, 3], device="cpu")
    d = torch.empty(2, 3, device=torch.device("cpu"), requires_grad=True)
    e = torch.full((2, 2), 7)
    f = torch.full((2, 2), 0.5, dtype=torch.half)
    g = torch.arange(5)
    h = torch.arange(1, 5)
    i = torch.arange(0.0, 1.0, 0.25, dtype=torch.float32)
    j = torch.linspace(0, 1, 5)
    k = torch.linspace(0, 1, steps=5)
    m = torch.eye(3)
    n = torch.rand(2, 2, generator=torch.Generator())
    o = torch.randn((2, 3))
    p = torch.randint(10, (3,))
    q = torch.randint(0, 10, (3,), dtype=torch.int32)
    r = torch.randperm(4)
    s = torch.tensor([1.0, 2.0], requires_grad=True)
    t = torch.tensor(3)
    u = torch.as_tensor([[1, 2], [3, 4]])
    v = torch.zeros_like(a)
    w = torch.ones_like(a, dtype=torch.bool)
    x = a.new_zeros(3, 4)
    y = a.new_tensor([1.0])
    z = torch.zeros(a.shape)
    return [
        a,
        b,
        c,
        d,
        e,
        f,
        g,
        h,
        i,
        j,
        k,
        m,
        n,
        o,
        p,
        q,
        r,
        s,
        t,
        u,
        v,
        w,
        x,
        y,
        z,
        torch.empty_like(a),
        torch.randn_like(a),
    ]


def arithmetic(x: Tensor, y: Tensor) -> list[Tensor]:
    x = x.clone()
    x += 1
    x *= y
    x -= 0.5
    x /= 2
    return [
        x + y, x + 1, 1 + x, x - 2.5, 3 - x, x * y, 2 * x, x / 2, 1 / (x + 10), x // 2, x % 2, x**2, 2**x, -x, abs(x),
        x @ y.T,
        torch.add(x, y), torch.add(x, y, alpha=2), torch.add(x, 1), torch.mul(x, 2.0), x.add(1), x.add_(y), x.mul_(0.5),
        x.sub(y, alpha=2),
        torch.sub(x, y), torch.div(x, y, rounding_mode="floor"), x.div(2), torch.pow(x, 2), x.pow(0.5),
        torch.maximum(x, y), torch.minimum(x, y),
        x.clamp(0, 1), x.clamp(min=0), torch.clamp(x, max=1.0), torch.lerp(x, y, 0.5),
        torch.addcmul(x, x, y, value=0.1), x.exp(), torch.log1p(x.abs()),
        x.sqrt_(), torch.sigmoid(x), x.relu(), torch.where(x > 0, x, y), torch.where(x > 0, x, 0.0),
        x.masked_fill(x > 0, 0), x.round(decimals=2),
        x == y, x != 0, x < y, x >= 1, (x > 0) & (y > 0), (x > 0) | ~(y > 0), torch.isnan(x), x.eq(y), x.logical_not(),
    ]  # fmt: skip


def reductions(x: Tensor) -> list[Tensor]:
    values, indices = x.max(dim=1)
    best = torch.max(x, 0)
    order = x.sort(descending=True)
    top = torch.topk(x, k=2, dim=-1)
    return [
        x.sum(), x.sum(0), x.sum(dim=1, keepdim=True), x.sum((0, 1)), torch.sum(x, dim=[0, 1], dtype=torch.float64),
        x.mean(), x.mean(-1), x.mean(dim=(0, 1)),
        x.std(), x.std(dim=0), x.var(unbiased=False), x.var(0, keepdim=True), x.max(), x.min(), torch.max(x, x),
        x.argmax(), x.argmax(dim=1), x.amax(dim=(0, 1)),
        x.any(), x.all(dim=0), x.prod(), x.prod(0), x.norm(), x.norm(p=2, dim=1), x.cumsum(0), x.cumprod(dim=-1),
        x.logsumexp(dim=1), x.median(), values, indices,
        best.values, best.indices, order.values, order.indices, top.values, top[1], x.unique(), x.softmax(-1),
        torch.softmax(x, dim=1), x.log_softmax(dim=0),
        torch.bincount(torch.tensor([0, 1, 1])), x.argsort(dim=-1), torch.quantile(x, 0.5), torch.cdist(x, x),
        torch.linalg.norm(x),
    ]  # fmt: skip


def shapes(x: Tensor) -> list[Tensor]:
    rows, columns = x.shape
    count: int = x.size(0)
    size: torch.Size = x.size()
    assert rows == count and columns == size[1] and x.numel() == len(x) * x.shape[-1] and x.ndim == x.dim()
    a, b = x.split(1)
    first, *rest = x.chunk(2, dim=1)
    return [
        x.view(-1), x.view(3, 2), x.view((3, 2)), x.reshape(3, 2), x.reshape((-1,)), torch.reshape(x, (6,)),
        x.flatten(), x.flatten(0, 1), x.unsqueeze(0), x.squeeze(),
        x.unsqueeze(0).squeeze(0), x.transpose(0, 1), x.t(), x.T, x.mT, x.permute(1, 0), x.permute((1, 0)),
        torch.permute(x, (1, 0)), x.expand(4, 2, 3), x.expand((4, -1, -1)),
        x.repeat(2, 1), x.repeat_interleave(2, dim=0), torch.tile(x, (2, 1)), x.contiguous(), torch.cat([x, x], dim=0),
        torch.cat((x, x)), torch.stack([x, x], dim=-1),
        torch.hstack([x, x]), x.roll(1, 0), x.flip(0), x.flip((0, 1)), x.movedim(0, 1), x.narrow(0, 0, 1),
        x.unbind(0)[0], torch.einsum("ij,kj->ik", x, x), a, b, first, *rest,
        x[0], x[:, 1], x[..., None], x[0, 1], x[x > 0], x[torch.tensor([0, 1])], x[[0, 1]], x[:1, ::2],
        x.gather(1, torch.zeros(2, 1, dtype=torch.long)),
        x.index_select(0, torch.tensor([1])), x.scatter(0, torch.zeros(1, 3, dtype=torch.long), 1.0),
        x.scatter_add(0, torch.zeros(2, 3, dtype=torch.long), x), x.triu(), x.tril(-1), x.diagonal(),
        torch.tril(torch.ones(3, 3)), torch.meshgrid(torch.arange(2), torch.arange(3), indexing="ij")[0],
        torch.nn.functional.one_hot(torch.tensor([0, 1]), num_classes=2),
    ]  # fmt: skip


def conversions(x: Tensor) -> list[object]:
    x = x.clone()
    x[0] = 1.0
    x[:, 1] = torch.zeros(2)
    number: float = x.sum().item()
    whole: int = int(x.sum())
    answer: bool = bool((x > 0).any())
    moved = [
        x.to("cpu"),
        x.to(torch.float64),
        x.to(device="cpu", dtype=torch.half),
        x.to(x),
        x.cpu(),
        x.float(),
        x.double(),
        x.long(),
        x.bool(),
        x.type(torch.int8),
    ]
    return [
        number,
        whole,
        answer,
        x.tolist(),
        x.dtype,
        x.device,
        x.device.type,
        x.requires_grad,
        x.is_cuda,
        x.data,
        x.grad,
        x.stride(),
        x.is_contiguous(),
        torch.equal(x, x),
        torch.allclose(x, x, atol=1e-6),
        *moved,
    ]


def autograd() -> list[object]:
    x = torch.randn(3, requires_grad=True)
    (x**2).sum().backward()
    assert x.grad is not None
    gradient: Tensor = x.grad.clone()
    x.grad = None
    (other,) = torch.autograd.grad((x * 2).sum(), [x])
    with torch.no_grad():
        x -= 0.1 * gradient
    with torch.inference_mode(), torch.set_grad_enabled(False):
        frozen = x.detach().requires_grad_(False)
    hook = x.register_hook(lambda grad: grad * 2)
    hook.remove()
    return [other, frozen, x.is_leaf, x.grad_fn, torch.is_grad_enabled(), torch.func.vmap(torch.sin)(x)]


def layers(x: Tensor) -> list[object]:
    image = torch.randn(2, 3, 8, 8)
    linear = nn.Linear(3, 4)
    network = nn.Sequential(
        nn.Conv2d(3, 8, kernel_size=3, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(inplace=True),
        nn.MaxPool2d(2),
        nn.Flatten(),
    )
    lstm = nn.LSTM(3, 4, num_layers=2, batch_first=True)
    output, (hidden, cell) = lstm(x.unsqueeze(0))
    attention = nn.MultiheadAttention(4, num_heads=2, batch_first=True)
    attended, weights = attention(output, output, output)
    sizes = [p.shape for p in network.parameters()]
    device = next(linear.parameters()).device
    return [
        linear(x), linear.weight.shape, linear.bias, network(image), network[0],
        nn.Embedding(5, 2)(torch.tensor([1, 2])), hidden, cell, attended, weights, sizes, device,
        F.relu(x), F.gelu(x), F.softmax(x, dim=-1), F.dropout(x, p=0.5, training=False),
        F.linear(x, linear.weight, linear.bias), F.layer_norm(x, (3,)),
        F.cross_entropy(x, torch.tensor([0, 1])), F.mse_loss(x, x), F.binary_cross_entropy_with_logits(x, x.sigmoid()),
        F.conv2d(image, torch.randn(4, 3, 3, 3), padding=1),
        F.max_pool2d(image, 2), F.interpolate(image, scale_factor=2, mode="nearest"), F.pad(x, (1, 1)),
        F.normalize(x, dim=1), F.scaled_dot_product_attention(output, output, output),
        F.embedding(torch.tensor([0]), x), F.cosine_similarity(x, x), F.adaptive_avg_pool2d(image, 1),
        nn.CrossEntropyLoss(weight=torch.ones(3))(x, torch.tensor([0, 1])),
        network.train(), network.eval(), linear.to(torch.float64), linear.requires_grad_(False), linear.state_dict(),
        list(network.named_modules()), nn.Parameter(x),
    ]  # fmt: skip


def steps() -> list[object]:
    model = nn.Linear(2, 2)
    sgd = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True)
    adam = torch.optim.Adam(model.parameters(), lr=1e-3, betas=(0.9, 0.999), eps=1e-8)
    step = torch.optim.lr_scheduler.StepLR(sgd, step_size=10, gamma=0.5)
    warm = torch.optim.lr_scheduler.LambdaLR(adam, lambda epoch: 0.5**epoch)
    scaler = torch.amp.GradScaler("cpu", enabled=False)
    model(torch.ones(1, 2)).sum().backward()
    sgd.step()
    step.step()
    adam.step()
    warm.step()
    for group in adam.param_groups:
        group["lr"] = 0.1
    return [
        adam.state_dict(),
        step.get_last_lr(),
        scaler.state_dict(),
        nn.utils.clip_grad_norm_(model.parameters(), 1.0),
        torch.distributions.Normal(0.0, 1.0).sample((2,)),
    ]


def settings() -> list[object]:
    torch.manual_seed(0)
    torch.set_default_dtype(torch.float32)
    torch.set_printoptions(precision=4)
    return [
        torch.get_default_dtype(),
        torch.get_num_threads(),
        torch.cuda.is_available(),
        torch.cuda.device_count(),
        torch.__version__,
        torch.finfo(torch.float32).eps,
        torch.iinfo(torch.int64).max,
        torch.backends.cudnn.benchmark,
        torch.device("cuda", 0).index,
        torch.float32.itemsize,
        torch.pi,
    ]


def main() -> None:
    x, y = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]), torch.ones(2, 3)
    for part in (
        creation(),
        arithmetic(x, y),
        reductions(x),
        shapes(x),
        conversions(x),
        autograd(),
        layers(x),
        steps(),
        settings(),
    ):
        print(len(part))


if __name__ == "__main__":
    main()
