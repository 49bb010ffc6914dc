"""How fast is a GPT of 1.3 billion parameters trained on one device, and with how much memory? `python -m
benchmarks.large_gpt`: cresset and PyTorch, each in a process of its own.

24 blocks of width 2048, 16 sequences of 1024, bfloat16 by autocast over float32 weights, each block a checkpoint, fused
AdamW. Tokens a second of the median step, and the peak of memory. Without a device it says so and ends.
"""

import importlib
import json
import subprocess
import sys
import time

WIDTH, BLOCKS, HEADS, VOCABULARY, LENGTH, ROWS, STEPS = 2048, 24, 16, 50304, 1024, 16, 6


def model_of(lib, nn, functional, checkpoint):
    """The loss of tokens and targets, as a module."""

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.n1, self.n2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
            self.qkv, self.proj = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
            self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

        def forward(self, x):
            b, t, d = x.shape
            q, k, v = (z.view(b, t, HEADS, d // HEADS).transpose(1, 2) for z in self.qkv(self.n1(x)).split(d, 2))
            y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.proj(y.transpose(1, 2).reshape(b, t, d))
            return x + self.down(functional.gelu(self.up(self.n2(x)), approximate="tanh"))

    class GPT(nn.Module):
        def __init__(self):
            super().__init__()
            self.token, self.position = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(LENGTH, WIDTH)
            self.blocks = nn.ModuleList([Block() for _ in range(BLOCKS)])
            self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, VOCABULARY, bias=False)
            self.head.weight = self.token.weight

        def forward(self, tokens, targets):
            x = self.token(tokens) + self.position(lib.arange(tokens.shape[1], device=tokens.device))
            for block in self.blocks:
                x = checkpoint(block, x, use_reentrant=False)
            return functional.cross_entropy(self.head(self.norm(x)).flatten(0, 1), targets.flatten())

    return GPT()


def one(library, mode="eager", optimizer="AdamW"):
    """As a line of JSON; a mode is "eager" or one of torch.compile's, the optimizer also AdamW8bit of cresset."""
    lib = importlib.import_module(library)
    nn, functional = importlib.import_module(library + ".nn"), importlib.import_module(library + ".nn.functional")
    checkpoint = importlib.import_module(library + ".utils.checkpoint").checkpoint
    lib.manual_seed(0)
    with lib.device("cuda"):
        model = model_of(lib, nn, functional, checkpoint)
        tokens, targets = (lib.randint(0, VOCABULARY, (ROWS, LENGTH)) for _ in range(2))
    options = {"lr": 1e-4, "fused": True} if optimizer == "AdamW" else {"lr": 1e-4}
    optimizer = getattr(importlib.import_module(library + ".optim"), optimizer)(model.parameters(), **options)

    function = model if mode == "eager" else lib.compile(model, mode=mode)

    def step():
        with lib.autocast("cuda", dtype=lib.bfloat16):
            loss = function(tokens, targets)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss

    seconds = []
    for _ in range(STEPS):
        lib.cuda.synchronize()
        start = time.perf_counter()
        loss = step()
        lib.cuda.synchronize()
        seconds.append(time.perf_counter() - start)
    speed = ROWS * LENGTH / sorted(seconds[2:])[(STEPS - 2) // 2]
    peak = lib.cuda.max_memory_allocated() / 2**30
    parameters = sum(p.numel() for p in model.parameters())
    found = {"library": library, "parameters": parameters, "value": speed, "peak": peak, "loss": loss.item()}
    print(json.dumps(found), flush=True)


def compare():
    """A line for each library."""
    for library in ("cresset", "torch"):
        command = [sys.executable, "-m", "benchmarks.large_gpt", "one", library]
        run = subprocess.run(command, capture_output=True, text=True)
        lines = [line for line in run.stdout.splitlines() if line.startswith("{")]
        if not lines:
            print(f"{library} failed: {run.stderr.strip().splitlines()[-1:]}")
            continue
        row = json.loads(lines[-1])
        print(
            f"{library:8s} {row['parameters'] / 1e9:.2f} G parameters, {row['value']:8.0f} tokens/s, "
            f"peak {row['peak']:6.2f} GiB, loss after {STEPS} steps {row['loss']:.4f}"
        )


if __name__ == "__main__":
    args = sys.argv[1:]
    if args[:1] == ["one"]:
        one(*args[1:])
    elif importlib.import_module("cresset").cuda.is_available():
        compare()
    else:
        print("there is no CUDA device")
