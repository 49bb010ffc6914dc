"""Modules that both libraries compile: `make(lib)` gives {name: (module, arguments)} of cresset or PyTorch. Used by
test_jit_files.py.

The source of each is one text for both: `torch` and `nn` are the library's.
"""

from typing import Dict, List, NamedTuple, Optional, Tuple  # noqa: F401, UP035  -- names for the modules' annotations


def make(torch):
    """{name: (make module, make arguments)}; the numbers are seeded by the caller."""
    nn, F = torch.nn, torch.nn.functional
    image, rows, sequence = (
        (lambda: (torch.randn(2, 3, 12, 12),)),
        (lambda: (torch.randn(4, 6),)),
        (lambda: (torch.randn(2, 5, 8),)),
    )
    layers = {
        "linear": (lambda: nn.Linear(6, 3), rows),
        "linear_without_bias": (lambda: nn.Linear(6, 3, bias=False), rows),
        "bilinear": (lambda: nn.Bilinear(6, 6, 2), lambda: (torch.randn(4, 6), torch.randn(4, 6))),
        "identity": (lambda: nn.Identity(), rows),
        "conv1d": (lambda: nn.Conv1d(5, 4, 3, padding=1), sequence),
        "conv2d": (lambda: nn.Conv2d(3, 4, 3, stride=2, padding=1), image),
        "conv2d_groups": (lambda: nn.Conv2d(3, 6, 3, groups=3, bias=False), image),
        "conv2d_same": (lambda: nn.Conv2d(3, 4, 3, padding="same"), image),
        "conv2d_reflect": (lambda: nn.Conv2d(3, 4, 3, padding=1, padding_mode="reflect"), image),
        "conv_transpose2d": (lambda: nn.ConvTranspose2d(3, 4, 3, stride=2), image),
        "conv3d": (lambda: nn.Conv3d(2, 3, 2), lambda: (torch.randn(1, 2, 4, 4, 4),)),
        "batch_norm1d": (lambda: nn.BatchNorm1d(6).eval(), rows),
        "batch_norm2d": (lambda: nn.BatchNorm2d(3).eval(), image),
        "batch_norm2d_training": (lambda: nn.BatchNorm2d(3), image),
        "layer_norm": (lambda: nn.LayerNorm(8), sequence),
        "group_norm": (lambda: nn.GroupNorm(3, 3), image),
        "instance_norm2d": (lambda: nn.InstanceNorm2d(3), image),
        "rms_norm": (lambda: nn.RMSNorm(8), sequence),
        "local_response_norm": (lambda: nn.LocalResponseNorm(2), image),
        "max_pool2d": (lambda: nn.MaxPool2d(2), image),
        "max_pool1d": (lambda: nn.MaxPool1d(2), sequence),
        "avg_pool2d": (lambda: nn.AvgPool2d(3, stride=2), image),
        "adaptive_avg_pool2d": (lambda: nn.AdaptiveAvgPool2d((3, 3)), image),
        "adaptive_max_pool2d": (lambda: nn.AdaptiveMaxPool2d(3), image),
        "dropout_eval": (lambda: nn.Dropout(0.5).eval(), rows),
        "embedding": (lambda: nn.Embedding(10, 4), lambda: (torch.tensor([[1, 2], [3, 9]]),)),
        "embedding_padding": (lambda: nn.Embedding(10, 4, padding_idx=0), lambda: (torch.tensor([[1, 0], [3, 9]]),)),
        "flatten": (lambda: nn.Flatten(), image),
        "unflatten": (lambda: nn.Unflatten(1, (2, 3)), rows),
        "pixel_shuffle": (lambda: nn.PixelShuffle(2), lambda: (torch.randn(1, 4, 3, 3),)),
        "upsample_nearest": (lambda: nn.Upsample(scale_factor=2.0, mode="nearest"), image),
        "upsample_bilinear": (lambda: nn.Upsample(size=(7, 9), mode="bilinear", align_corners=False), image),
        "constant_pad2d": (lambda: nn.ConstantPad2d((1, 2, 0, 1), 0.5), image),
        "reflection_pad2d": (lambda: nn.ReflectionPad2d(2), image),
        "zero_pad2d": (lambda: nn.ZeroPad2d(1), image),
        "cosine_similarity": (lambda: nn.CosineSimilarity(dim=1), lambda: (torch.randn(4, 6), torch.randn(4, 6))),
        "lstm_cell": (lambda: nn.LSTMCell(6, 4), rows),
        "gru_cell": (lambda: nn.GRUCell(6, 4), rows),
        "multihead_attention": (
            lambda: nn.MultiheadAttention(8, 2, batch_first=True).eval(),
            lambda: (torch.randn(2, 5, 8),) * 3,
        ),
        "transformer_encoder_layer": (
            lambda: nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True),
            sequence,
        ),
        "sequential_mlp": (lambda: nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3), nn.Softmax(dim=1)), rows),
        "mse_loss": (lambda: nn.MSELoss(), lambda: (torch.randn(4, 6), torch.randn(4, 6))),
        "cross_entropy": (lambda: nn.CrossEntropyLoss(), lambda: (torch.randn(4, 6), torch.tensor([0, 1, 5, 2]))),
    }
    for name in (
        "ReLU",
        "GELU",
        "SiLU",
        "Sigmoid",
        "Tanh",
        "ELU",
        "LeakyReLU",
        "Hardswish",
        "Softplus",
        "LogSoftmax",
        "PReLU",
        "Mish",
        "SELU",
        "Hardtanh",
        "GLU",
        "Softmax2d",
        "Threshold",
    ):
        options = {"LogSoftmax": {"dim": 1}, "Threshold": {"threshold": 0.1, "value": 2.0}}.get(name, {})
        layers[f"activation_{name}"] = (
            lambda name=name, options=options: getattr(nn, name)(**options),
            image if name == "Softmax2d" else rows,
        )
    return {**layers, **written(torch, nn, F, image, rows, sequence)}


def written(torch, nn, F, image, rows, sequence):
    class Cnn(nn.Module):
        def __init__(self):
            super().__init__()
            self.features = nn.Sequential(
                nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(inplace=True), nn.MaxPool2d(2)
            )
            self.head = nn.Linear(8 * 6 * 6, 5)

        def forward(self, x):
            x = self.features(x)
            return self.head(torch.flatten(x, 1))

    class Block(nn.Module):
        def __init__(self, width: int):
            super().__init__()
            self.conv = nn.Conv2d(width, width, 3, padding=1, bias=False)
            self.norm = nn.BatchNorm2d(width)

        def forward(self, x):
            return F.relu(self.norm(self.conv(x)) + x)

    class Residual(nn.Module):
        def __init__(self):
            super().__init__()
            self.stem = nn.Conv2d(3, 4, 1)
            self.blocks = nn.ModuleList([Block(4), Block(4)])
            self.pool = nn.AdaptiveAvgPool2d(1)

        def forward(self, x):
            x = self.stem(x)
            for block in self.blocks:
                x = block(x)
            return self.pool(x).flatten(1)

    class Branch(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            if x.sum() > 0:
                return x + 1
            else:
                return x - 1

    class Loops(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(6, 6)

        def forward(self, x: torch.Tensor, times: int) -> torch.Tensor:
            for i in range(times):
                if i == 2:
                    continue
                x = torch.tanh(self.fc(x)) * i
                if bool(x.abs().max() > 100):
                    break
            n = 0
            while n < 3:
                x = x + n
                n += 1
            return x

    class Typed(nn.Module):
        def forward(self, xs: List[torch.Tensor], scale: Optional[float] = None) -> Tuple[torch.Tensor, int]:
            total = torch.zeros_like(xs[0])
            for x in xs:
                total = total + x
            if scale is not None:
                total = total * scale
            return total, len(xs)

    class Detection(nn.Module):
        """Boxes above a threshold, the best first, overlaps dropped: control flow that depends on the data."""

        def __init__(self):
            super().__init__()
            self.threshold = 0.3

        def overlap(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
            low = torch.max(a[:2], b[:2])
            high = torch.min(a[2:], b[2:])
            side = (high - low).clamp(min=0)
            inter = side[0] * side[1]
            area = (a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - inter
            return inter / area

        def forward(self, boxes: torch.Tensor, scores: torch.Tensor) -> Dict[str, torch.Tensor]:
            keep: List[int] = []
            order = torch.argsort(scores, descending=True)
            for i in range(order.size(0)):
                at = int(order[i])
                if float(scores[at]) < self.threshold:
                    break
                good = True
                for j in keep:
                    if float(self.overlap(boxes[at], boxes[j])) > 0.5:
                        good = False
                if good:
                    keep.append(at)
            chosen = torch.tensor(keep, dtype=torch.int64)
            return {"boxes": boxes[chosen], "scores": scores[chosen]}

    class Dicts(nn.Module):
        def __init__(self):
            super().__init__()
            self.towers = nn.ModuleDict({"a": nn.Linear(6, 2), "b": nn.Linear(6, 3)})
            self.names = ["a", "b"]
            self.limits = {"low": -1.0, "high": 1.0}

        def forward(self, x) -> Dict[str, torch.Tensor]:
            out: Dict[str, torch.Tensor] = {}
            for name, tower in self.towers.items():
                out[name] = tower(x).clamp(self.limits["low"], self.limits["high"])
            return out

    class Buffers(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("scale", torch.arange(6.0))
            self.register_buffer("seen", torch.zeros(1, dtype=torch.int64))
            self.weight = nn.Parameter(torch.ones(6))
            self.none = None

        def forward(self, x):
            self.seen += 1
            return x * self.scale * self.weight + self.seen

    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv = nn.Linear(8, 24)
            self.heads = 2

        def forward(self, x, mask: Optional[torch.Tensor] = None):
            b, n, c = x.shape
            q, k, v = self.qkv(x).view(b, n, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
            scores = (q @ k.transpose(-2, -1)) / (c // self.heads) ** 0.5
            if mask is not None:
                scores = scores.masked_fill(mask == 0, float("-inf"))
            return (scores.softmax(dim=-1) @ v).transpose(1, 2).reshape(b, n, c)

    class Indexing(nn.Module):
        def forward(self, x):
            y = x.clone()
            y[0, 1:3] = 5.0
            y[:, -1] += 1
            return y[..., ::2], x[None, :, 0], x[x > 0], y[[0, 1], [2, 3]]

    class Texts(nn.Module):
        def forward(self, x, name: str = "x"):
            text = f"{name}:{x.size(0)}" + "-".join(["a", "b"]).upper()
            parts = text.split(":")
            return x * len(parts), text, [len(part) for part in parts]

    class Comprehensions(nn.Module):
        def forward(self, xs: List[torch.Tensor]):
            sums = [x.sum() for x in xs]
            table = {str(i): i * i for i in range(3)}
            pairs = [(i, a + b) for i, (a, b) in enumerate(zip(xs, sums))]
            return torch.stack(sums), table, pairs[0][1], max([len(table), 2]), sorted([3, 1, 2])

    class Methods(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(6, 3)

        def forward(self, x):
            return self.scaled(self.fc(x), 2)

        def scaled(self, x, by: int = 3):
            return x * by

        @torch.jit.export
        def predict(self, x):
            return self.forward(x).argmax(1)

    class Casts(nn.Module):
        def forward(self, x):
            half = x.to(torch.float64)
            whole = (x * 10).to(torch.int32)
            if half.dtype == torch.float64:
                whole = whole + 1
            made = torch.zeros(2, 3, dtype=torch.float64, device=x.device)
            return half, whole, made.type_as(x), torch.ones_like(x, dtype=torch.bool), x.new_zeros(2)

    class Reductions(nn.Module):
        def forward(self, x):
            values, places = x.max(dim=1)
            top, where = x.topk(2, dim=1)
            return values, places, top, where, x.mean(), x.std(dim=0), x.norm(), torch.cumsum(x, 0), x.argmin()

    class Shapes(nn.Module):
        def forward(self, x):
            a, b = x.chunk(2, dim=1)
            parts = x.split([2, 4], dim=1)
            joined = torch.cat([a, b, parts[1]], dim=1)
            return (
                joined.unsqueeze(0).expand(2, -1, -1),
                x.t(),
                x.reshape(-1, 2).squeeze(),
                torch.stack([a, b]),
                x.flip(0),
                x.repeat(1, 2),
            )

    class NoGrad(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(6, 6)

        def forward(self, x):
            with torch.no_grad():
                y = self.fc(x)
            return y * self.fc(x)

    class Raises(nn.Module):
        def forward(self, x):
            if x.dim() != 2:
                raise ValueError("two dimensions")
            assert x.size(1) == 6, "six columns"
            return x.sum(1)

    class Encoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(20, 8)
            self.layers = nn.ModuleList(
                [nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True) for _ in range(2)]
            )
            self.norm = nn.LayerNorm(8)

        def forward(self, tokens):
            x = self.embed(tokens)
            for layer in self.layers:
                x = layer(x)
            return self.norm(x)

    class Recurrent(nn.Module):
        def __init__(self):
            super().__init__()
            self.cell = nn.LSTMCell(8, 8)
            self.out = nn.Linear(8, 2)

        def forward(self, x):
            h = torch.zeros(x.size(0), 8)
            c = torch.zeros_like(h)
            outputs: List[torch.Tensor] = []
            for step in range(x.size(1)):
                h, c = self.cell(x[:, step], (h, c))
                outputs.append(self.out(h))
            return torch.stack(outputs, dim=1), (h, c)

    class Lstm(nn.Module):
        def __init__(self, *args, **kwargs):
            super().__init__()
            self.layer = nn.LSTM(8, *args, **kwargs)

        def forward(self, x):
            y, (h, c) = self.layer(x)
            return y, h, c

    class Gru(nn.Module):
        def __init__(self, *args, **kwargs):
            super().__init__()
            self.layer = nn.GRU(8, *args, **kwargs)

        def forward(self, x):
            return self.layer(x)

    class Rnn(nn.Module):
        def __init__(self, *args, **kwargs):
            super().__init__()
            self.layer = nn.RNN(8, *args, **kwargs)

        def forward(self, x):
            return self.layer(x)

    class Forks(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(6, 6)

        def forward(self, x):
            later = torch.jit.fork(self.fc, x)
            y = x * 2
            return torch.jit.wait(later) + y

    class Shared(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = nn.Linear(6, 6)
            self.second = self.first

        def forward(self, x):
            return self.second(self.first(x))

    tokens = lambda: (torch.tensor([[1, 2, 3], [4, 5, 19]]),)  # noqa: E731
    boxes = lambda: (
        torch.tensor([[0.0, 0, 2, 2], [0, 0, 2, 1.9], [3, 3, 4, 4], [5, 5, 6, 6]]),
        torch.tensor([0.9, 0.8, 0.7, 0.1]),
    )  # noqa: E731
    several = lambda: ([torch.randn(2, 2), torch.randn(2, 2)],)  # noqa: E731
    return {
        "cnn": (lambda: Cnn().eval(), image), "residual": (lambda: Residual().eval(), image), "branch": (Branch, rows),
        "loops": (Loops, lambda: (torch.randn(2, 6), 5)),
        "typed": (Typed, lambda: ([torch.ones(2), torch.ones(2)], 3.0)),
        "typed_without_scale": (Typed, lambda: ([torch.ones(2)],)), "detection": (Detection, boxes),
        "dicts": (Dicts, rows),
        "buffers": (Buffers, rows), "attention": (Attention, sequence), "indexing": (Indexing, rows),
        "texts": (Texts, rows), "comprehensions": (Comprehensions, several),
        "methods": (Methods, rows), "casts": (Casts, rows), "reductions": (Reductions, rows), "shapes": (Shapes, rows),
        "no_grad": (NoGrad, rows), "raises": (Raises, rows),
        "encoder": (Encoder, tokens), "recurrent": (Recurrent, sequence), "forks": (Forks, rows),
        "lstm": (lambda: Lstm(6, batch_first=True), sequence),
        "lstm_two_layers_both_ways": (lambda: Lstm(5, 2, bidirectional=True), sequence),
        "gru": (lambda: Gru(6), sequence),
        "rnn": (lambda: Rnn(6, nonlinearity="relu"), sequence), "shared": (Shared, rows),
    }  # fmt: skip
