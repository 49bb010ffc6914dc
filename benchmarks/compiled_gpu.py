"""What does `torch.compile` gain on a CUDA device? `python -m benchmarks.compiled_gpu [NAME...]`: eager and compiled,
on cresset and on PyTorch, each in a process of its own.

    python -m benchmarks.compiled_gpu one cresset gpt2 default    one figure, as JSON
    python -m benchmarks.compiled_gpu profile gpt2 default        cresset's kernels and their times, by PyTorch's
    profiler

A mode is "eager" or one of torch.compile's. `first` is the time of the first step above the second's, in seconds.
Without a device it says so and ends.
"""

import importlib
import json
import subprocess
import sys
import time

WORKLOADS = {
    "gpt2": ("tok/s", ("eager", "default", "reduce-overhead", "max-autotune")),
    "resnet50": ("img/s", ("eager", "default")),
    "decode": ("tok/s", ("eager", "default", "reduce-overhead")),
    "decode32": ("tok/s", ("eager", "reduce-overhead")),
    "mlp": ("us", ("eager", "default", "reduce-overhead")),
}


class Models:
    """The models, and a step of each."""

    def __init__(self, name):
        self.lib = importlib.import_module(name)
        self.nn, self.functional, self.optim = (
            importlib.import_module(f"{name}.{part}") for part in ("nn", "nn.functional", "optim")
        )
        self.lib.manual_seed(0)

    def compiled(self, function, mode):
        return function if mode == "eager" else self.lib.compile(function, mode=mode)

    def gpt2(self, mode):
        """124 M parameters, 16 sequences of 1024, bfloat16 by autocast, AdamW: a training step."""
        lib, nn, functional = self.lib, self.nn, self.functional

        class Block(nn.Module):
            def __init__(self, d, heads):
                super().__init__()
                self.n1, self.n2, self.heads = nn.LayerNorm(d), nn.LayerNorm(d), heads
                self.qkv, self.proj = nn.Linear(d, 3 * d), nn.Linear(d, d)
                self.up, self.down = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)

            def forward(self, x):
                b, t, c = x.shape
                parts = self.qkv(self.n1(x)).split(c, 2)
                q, k, v = (z.view(b, t, self.heads, c // self.heads).transpose(1, 2) for z in parts)
                y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
                x = x + self.proj(y.transpose(1, 2).contiguous().view(b, t, c))
                return x + self.down(functional.gelu(self.up(self.n2(x)), approximate="tanh"))

        class GPT2(nn.Module):
            def __init__(self, vocabulary=50304, d=768, layers=12, heads=12, length=1024):
                super().__init__()
                self.token, self.position = nn.Embedding(vocabulary, d), nn.Embedding(length, d)
                self.blocks = nn.ModuleList([Block(d, heads) for _ in range(layers)])
                self.norm, self.head = nn.LayerNorm(d), nn.Linear(d, vocabulary, bias=False)
                self.head.weight = self.token.weight

            def forward(self, tokens, targets):
                x = self.token(tokens) + self.position(lib.arange(tokens.shape[1], device=tokens.device))
                for block in self.blocks:
                    x = block(x)
                return functional.cross_entropy(self.head(self.norm(x)).flatten(0, 1), targets.flatten())

        model = GPT2().cuda()
        optimizer = self.optim.AdamW(model.parameters(), lr=6e-4, fused=True)
        tokens, targets = (lib.randint(0, 50304, (16, 1024), device="cuda") for _ in range(2))
        function = self.compiled(model, mode)

        def step():
            with lib.autocast("cuda", dtype=lib.bfloat16):
                loss = function(tokens, targets)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            return loss

        return step, 16 * 1024, 20

    def resnet50(self, mode):
        """256 images of 224 x 224, bfloat16 by autocast, SGD with momentum: a training step."""
        lib, nn, functional = self.lib, self.nn, self.functional

        class Bottleneck(nn.Module):
            def __init__(self, i, m, stride):
                super().__init__()
                self.c1, self.b1 = nn.Conv2d(i, m, 1, bias=False), nn.BatchNorm2d(m)
                self.c2, self.b2 = nn.Conv2d(m, m, 3, stride, 1, bias=False), nn.BatchNorm2d(m)
                self.c3, self.b3 = nn.Conv2d(m, 4 * m, 1, bias=False), nn.BatchNorm2d(4 * m)
                self.skip = None
                if stride != 1 or i != 4 * m:
                    self.skip = nn.Sequential(nn.Conv2d(i, 4 * m, 1, stride, bias=False), nn.BatchNorm2d(4 * m))

            def forward(self, x):
                y = functional.relu(self.b1(self.c1(x)))
                y = functional.relu(self.b2(self.c2(y)))
                return functional.relu(self.b3(self.c3(y)) + (x if self.skip is None else self.skip(x)))

        layers, i = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)], 64
        for m, n, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
            for k in range(n):
                layers.append(Bottleneck(i, m, stride if k == 0 else 1))
                i = 4 * m
        model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2048, 1000)).cuda()
        model = model.to(memory_format=lib.channels_last)
        x = lib.randn(256, 3, 224, 224, device="cuda").contiguous(memory_format=lib.channels_last)
        y = lib.randint(0, 1000, (256,), device="cuda")
        optimizer = self.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        function = self.compiled(model, mode)

        def step():
            with lib.autocast("cuda", dtype=lib.bfloat16):
                loss = functional.cross_entropy(function(x), y)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            return loss

        return step, 256, 10

    def decode32(self, mode):
        """The same as decode for 32 sequences: 13.5 GB of weights and 8.6 GB of cache are read."""
        return self.decode(mode, 32)

    def decode(self, mode, rows=1):
        """A Llama of 7 B parameters in bfloat16 says one token, with 512 places of cache."""
        lib, nn, functional = self.lib, self.nn, self.functional
        d, heads, wide, length = 4096, 32, 11008, 512

        class Layer(nn.Module):
            def __init__(self):
                super().__init__()
                self.n1, self.n2 = nn.RMSNorm(d, eps=1e-5), nn.RMSNorm(d, eps=1e-5)
                self.qkv, self.out = nn.Linear(d, 3 * d, bias=False), nn.Linear(d, d, bias=False)
                self.gate, self.up = nn.Linear(d, wide, bias=False), nn.Linear(d, wide, bias=False)
                self.down = nn.Linear(wide, d, bias=False)
                self.register_buffer("k", lib.zeros(rows, heads, length, d // heads))
                self.register_buffer("v", lib.zeros(rows, heads, length, d // heads))

            def forward(self, x, place, mask, cos, sin):
                q, k, v = (z.view(rows, 1, heads, d // heads).transpose(1, 2) for z in self.qkv(self.n1(x)).split(d, 2))

                def turned(z):
                    a, b = z.chunk(2, -1)
                    return z * cos + lib.cat((-b, a), -1) * sin

                q, k = turned(q), turned(k)
                self.k.index_copy_(2, place, k)
                self.v.index_copy_(2, place, v)
                y = functional.scaled_dot_product_attention(q, self.k, self.v, attn_mask=mask)
                x = x + self.out(y.transpose(1, 2).reshape(rows, 1, d))
                h = self.n2(x)
                return x + self.down(functional.silu(self.gate(h)) * self.up(h))

        class Llama(nn.Module):
            def __init__(self):
                super().__init__()
                self.token = nn.Embedding(32000, d)
                self.layers = nn.ModuleList([Layer() for _ in range(32)])
                self.norm, self.head = nn.RMSNorm(d, eps=1e-5), nn.Linear(d, 32000, bias=False)
                self.register_buffer("angles", lib.zeros(length, d // heads))

            def forward(self, token, place):
                x = self.token(token)
                angle = self.angles.index_select(0, place)
                cos, sin = angle.cos(), angle.sin()
                mask = (lib.arange(length, device="cuda") <= place).view(1, 1, 1, length)
                for layer in self.layers:
                    x = layer(x, place, mask, cos, sin)
                return self.head(self.norm(x)).argmax(-1)

        lib.set_default_dtype(lib.bfloat16)
        with lib.device("cuda"):
            model = Llama()
        lib.set_default_dtype(lib.float32)
        for p in model.parameters():
            p.requires_grad_(False)
        function = self.compiled(model, mode)
        token = lib.zeros(rows, 1, dtype=lib.int64, device="cuda")
        place = lib.zeros(1, dtype=lib.int64, device="cuda")

        def step():
            with lib.no_grad():
                token.copy_(function(token, place))
                place.add_(1)

        return step, rows, 60

    def mlp(self, mode):
        """Two layers, 32 rows, Adam: a training step."""
        nn, functional = self.nn, self.functional
        model = nn.Sequential(nn.Linear(128, 256), nn.ReLU(), nn.Linear(256, 10)).cuda()
        optimizer = self.optim.Adam(model.parameters(), lr=1e-3)
        x = self.lib.randn(32, 128, device="cuda")
        y = self.lib.randint(0, 10, (32,), device="cuda")

        def one():
            optimizer.zero_grad()
            functional.cross_entropy(model(x), y).backward()
            optimizer.step()

        return self.compiled(one, mode), None, 300


def one(library, name, mode):
    """One workload in one mode, as a line of JSON."""
    models = Models(library)
    lib = models.lib
    step, units, steps = getattr(models, name)(mode)

    def timed(count):
        lib.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(count):
            step()
        lib.cuda.synchronize()
        return (time.perf_counter() - start) / count

    first, second = timed(1), timed(1)
    timed(max(5, steps // 4))
    lib.cuda.reset_peak_memory_stats()
    seconds = min(timed(steps) for _ in range(3))
    value = units / seconds if units else seconds * 1e6
    peak = lib.cuda.max_memory_allocated() / 2**30
    found = {"library": library, "name": name, "mode": mode, "value": value, "first": first - second, "peak": peak}
    print(json.dumps(found), flush=True)


def profile(name, mode):
    """Cresset's kernels by PyTorch's profiler, which sees all kernels of a process."""
    import torch

    torch.zeros(1, device="cuda")
    models = Models("cresset")
    step, _, _ = getattr(models, name)(mode)
    for _ in range(5):
        step()
    models.lib.cuda.synchronize()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as found:
        for _ in range(3):
            step()
        models.lib.cuda.synchronize()
    print(f"{name} {mode}: microseconds of a step, launches, kernel")
    rows = sorted(found.key_averages(), key=lambda e: -e.device_time_total)
    print(f"{sum(e.device_time_total for e in rows) / 3:10.1f} {sum(e.count for e in rows) / 3:7.1f} all")
    for e in rows[:45]:
        print(f"{e.device_time_total / 3:10.1f} {e.count / 3:7.1f} {e.key[:110]}")


def compare(names):
    """A table of all workloads in all modes."""
    print(f"{'workload':10s} {'mode':16s} {'cresset':>12s} {'torch':>12s} unit    first step (s)   peak (GiB)")
    for name in names or WORKLOADS:
        unit, modes = WORKLOADS[name]
        for mode in modes:
            rows = {}
            for library in ("cresset", "torch"):
                command = [sys.executable, "-m", "benchmarks.compiled_gpu", "one", library, name, mode]
                run = subprocess.run(command, capture_output=True, text=True)
                lines = [line for line in run.stdout.splitlines() if line.startswith("{")]
                rows[library] = json.loads(lines[-1]) if lines else None
                if not lines:
                    print(f"{name} {mode} on {library} failed: {run.stderr.strip().splitlines()[-1:]}")
            text = [
                " ".join(f"{row[what]:.{digits}f}" if row else "-" for row in rows.values())
                for what, digits in (("first", 1), ("peak", 2))
            ]
            values = [f"{row['value']:12.1f}" if row else f"{'-':>12s}" for row in rows.values()]
            print(f"{name:10s} {mode:16s} {' '.join(values)} {unit:7s} {text[0]:16s} {text[1]}", flush=True)


if __name__ == "__main__":
    args = sys.argv[1:]
    if args[:1] == ["one"]:
        one(*args[1:])
    elif args[:1] == ["profile"]:
        profile(*args[1:])
    elif importlib.import_module("cresset").cuda.is_available():
        compare(args)
    else:
        print("there is no CUDA device")
