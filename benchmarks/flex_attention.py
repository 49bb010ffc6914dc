"""How fast is flex_attention on a CUDA device? `python -m benchmarks.flex_attention`: cresset and PyTorch, whose form
is compiled, each in a process of its own.

4 sequences of 16 heads of 4096 rows in bfloat16; milliseconds of the median call, forward alone and with its backward,
and the first call, which compiles. Without a device it says so and ends.
"""

import importlib
import json
import subprocess
import sys
import time

BATCH, HEADS, LENGTH = 4, 16, 4096
WIDTHS = (64, 128)
NAMES = ("plain", "causal", "slopes", "soft cap, causal", "window", "documents")


def functions(lib, name):
    """score_mod and mask_mod."""

    def causal(b, h, q, kv):
        return q >= kv

    def window(b, h, q, kv):
        return (q >= kv) & (q - kv < 512)

    def slopes(score, b, h, q, kv):
        return score + lib.exp2(-(h + 1) * (8.0 / HEADS)) * (kv - q)

    def cap(score, b, h, q, kv):
        return 20 * lib.tanh(score / 20)

    if name == "documents":
        document = (lib.arange(LENGTH, device="cuda") // 700).int()
        return None, lambda b, h, q, kv: (document[q] == document[kv]) & (q >= kv)
    return {
        "plain": (None, None), "causal": (None, causal), "slopes": (slopes, None), "soft cap, causal": (cap, causal),
        "window": (None, window),
    }[name]  # fmt: skip


def one(library, *names):
    """As a line of JSON: for each case (first call, forward, forward and backward)."""
    lib = importlib.import_module(library)
    flex = importlib.import_module(library + ".nn.attention.flex_attention")
    attend = flex.flex_attention
    if library == "torch":
        lib._dynamo.config.recompile_limit = 100
        attend = lib.compile(attend, dynamic=False)
    ready = {}
    for name in names or NAMES:
        score_mod, mask_mod = functions(lib, name)
        for width in WIDTHS:
            tensors = [
                lib.randn(BATCH, HEADS, LENGTH, width, device="cuda", dtype=lib.bfloat16).requires_grad_()
                for _ in range(3)
            ]
            grad = lib.randn(BATCH, HEADS, LENGTH, width, device="cuda", dtype=lib.bfloat16)
            mask = mask_mod and flex.create_block_mask(mask_mod, None, None, LENGTH, LENGTH, device="cuda")

            def forward(tensors=tensors, score_mod=score_mod, mask=mask):
                return attend(*tensors, score_mod=score_mod, block_mask=mask)

            def both(forward=forward, grad=grad, tensors=tensors):
                forward().backward(grad)
                for t in tensors:
                    t.grad = None

            start = time.perf_counter()
            both()
            lib.cuda.synchronize()
            ready[f"{name}, width {width}"] = (time.perf_counter() - start, forward, both)
    return lib, ready


def timed(lib, call):
    times = []
    for _ in range(12):
        start, end = (lib.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        call()
        end.record()
        lib.cuda.synchronize()
        times.append(start.elapsed_time(end))
    return sorted(times[2:])[5]


def compare():
    """A table."""
    print(f"{'case':28s} {'library':8s} {'first, s':>9s} {'forward':>9s} {'both, ms':>9s}")
    for library in ("cresset", "torch"):
        command = [sys.executable, "-m", "benchmarks.flex_attention", "one", library]
        run = subprocess.run(command, capture_output=True, text=True)
        lines = [line for line in run.stdout.splitlines() if line.startswith("{")]
        if not lines:
            print(f"{library} failed: {run.stderr.strip().splitlines()[-1:]}")
            continue
        for case, (first, forward, both) in json.loads(lines[-1]).items():
            print(f"{case:28s} {library:8s} {first:9.2f} {forward:9.3f} {both:9.3f}")


def main(library, *names):
    lib, ready = one(library, *names)
    print(json.dumps({
        case: (first, timed(lib, forward), timed(lib, both)) for case, (first, forward, both) in ready.items()
    }), flush=True)  # fmt: skip


if __name__ == "__main__":
    args = sys.argv[1:]
    if args[:1] == ["one"]:
        main(*args[1:])
    elif importlib.import_module("cresset").cuda.is_available():
        compare()
    else:
        print("there is no CUDA device")
