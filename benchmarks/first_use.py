"""How long does the first step of a program take on a CUDA device that it never used? `python -m benchmarks.first_use
[NAME...]`: on cresset with an empty folder of kernels and then with what that run left there, and on PyTorch.

Each in a process of its own. `setup` is the time to make the model on the device, which begins with the device's own
start; `first` and `second` are training steps, in seconds. Without a device it says so and ends.
"""

import importlib
import json
import os
import subprocess
import sys
import tempfile
import time

MODELS = ("cnn", "gpt", "attention")


def cnn(lib, nn, functional):
    """Two convolutions and a layer, 64 images of 32 x 32, SGD with momentum."""
    model = nn.Sequential(
        nn.Conv2d(3, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Dropout(0.1), nn.Linear(64 * 64, 10),
    ).cuda()  # fmt: skip
    x, y = lib.randn(64, 3, 32, 32, device="cuda"), lib.randint(0, 10, (64,), device="cuda")
    optimizer = lib.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    return optimizer, lambda: functional.cross_entropy(model(x), y)


def gpt(lib, nn, functional):
    """Four blocks of width 256, 8 sequences of 256, bfloat16 by autocast, AdamW."""

    class Block(nn.Module):
        def __init__(self, d):
            super().__init__()
            self.n1, self.n2 = nn.LayerNorm(d), nn.LayerNorm(d)
            self.qkv, self.proj = nn.Linear(d, 3 * d), nn.Linear(d, d)
            self.up, self.down = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)

        def forward(self, x):
            b, t, d = x.shape
            q, k, v = (z.view(b, t, 4, d // 4).transpose(1, 2) for z in self.qkv(self.n1(x)).split(d, 2))
            y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.proj(y.transpose(1, 2).reshape(b, t, d))
            return x + self.down(functional.gelu(self.up(self.n2(x))))

    blocks = [Block(256) for _ in range(4)]
    model = nn.Sequential(nn.Embedding(1000, 256), *blocks, nn.LayerNorm(256), nn.Linear(256, 1000)).cuda()
    tokens = lib.randint(0, 1000, (8, 257), device="cuda")
    optimizer = lib.optim.AdamW(model.parameters(), lr=1e-3)

    def loss():
        with lib.autocast("cuda", dtype=lib.bfloat16):
            return functional.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())

    return optimizer, loss


def attention(lib, nn, functional):
    """Attention alone, of a shape that takes a plan of its own: 4 x 16 heads of 128, 2048 places."""
    q, k, v = (lib.randn(4, 16, 2048, 128, device="cuda", dtype=lib.bfloat16, requires_grad=True) for _ in range(3))
    optimizer = lib.optim.SGD([q, k, v], lr=0.1)
    return optimizer, lambda: functional.scaled_dot_product_attention(q, k, v, is_causal=True).float().mean()


def one(library, name):
    """One model, as a line of JSON."""
    lib = importlib.import_module(library)
    nn, functional = importlib.import_module(library + ".nn"), importlib.import_module(library + ".nn.functional")

    def timed(call):
        start = time.perf_counter()
        result = call()
        lib.cuda.synchronize()
        return result, time.perf_counter() - start

    (optimizer, loss), setup = timed(lambda: globals()[name](lib, nn, functional))

    def step():
        optimizer.zero_grad()
        value = loss()
        value.backward()
        optimizer.step()
        return value.item()

    seconds = [timed(step)[1] for _ in range(3)]
    found = {"library": library, "name": name, "setup": setup, "first": seconds[0], "second": seconds[1]}
    if library == "cresset":
        compiled, from_disk, *_ = lib._native.cuda.compile_statistics()
        found |= {"compiled": compiled, "from_disk": from_disk}
    print(json.dumps(found), flush=True)


def compare(names):
    """A table of all models."""
    print(f"{'model':10s} {'library':24s} {'setup':>7s} {'first':>7s} {'second':>7s} kernels compiled, from disk")
    for name in names or MODELS:
        with tempfile.TemporaryDirectory() as folder:
            for library, words in (("cresset", "nothing on disk"), ("cresset", "kernels on disk"), ("torch", "")):
                command = [sys.executable, "-m", "benchmarks.first_use", "one", library, name]
                environment = dict(os.environ, CRESSET_CACHE=folder)
                run = subprocess.run(command, capture_output=True, text=True, env=environment)
                lines = [line for line in run.stdout.splitlines() if line.startswith("{")]
                if not lines:
                    print(f"{name} on {library} failed: {run.stderr.strip().splitlines()[-1:]}")
                    continue
                row = json.loads(lines[-1])
                times = " ".join(f"{row[what]:7.3f}" for what in ("setup", "first", "second"))
                kernels = f"{row['compiled']}, {row['from_disk']}" if "compiled" in row else ""
                print(f"{name:10s} {library + ' ' + words:24s} {times} {kernels}", flush=True)


if __name__ == "__main__":
    args = sys.argv[1:]
    if args[:1] == ["one"]:
        one(*args[1:])
    elif importlib.import_module("cresset").cuda.is_available():
        compare(args)
    else:
        print("there is no CUDA device")
