"""How long does a row times weights of 16, 8 and 4 bits take on a CUDA device? `python -m benchmarks.packed_weights`:
cresset and PyTorch, each in a process of its own.

Microseconds of the device for a product, from graphs that go round enough weights that no cache holds them; bfloat16,
128 weights of 4 bits share a scale. Without a device it says so and ends.
"""

import importlib
import json
import subprocess
import sys

SIZES = [(4096, 4096), (11008, 4096), (4096, 11008), (32000, 4096)]
BYTES = 600 << 20  # of all weights of a size


def one(library):
    """As a line of JSON: of each size the times for 16, 8 and 4 bits."""
    lib = importlib.import_module(library)
    rows, bf16 = {}, lib.bfloat16

    def time(calls):
        calls[0]()
        lib.cuda.synchronize()
        graph = lib.cuda.CUDAGraph()
        with lib.cuda.graph(graph):
            kept = [call() for call in calls]
        times = []
        for _ in range(9):
            start, end = (lib.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            graph.replay()
            end.record()
            lib.cuda.synchronize()
            times.append(start.elapsed_time(end) / len(kept) * 1e3)
        return sorted(times)[4]

    for columns, k in SIZES:
        x = lib.randn(1, k, device="cuda", dtype=bf16)
        scales = lib.rand(columns, device="cuda", dtype=bf16)
        pairs = lib.rand(k // 128, columns, 2, device="cuda", dtype=bf16)

        def several(make, bits, size=columns * k):
            return [make() for _ in range(max(2, BYTES * 8 // (size * bits)))]

        def bytes_of(n, m):
            return lib.randint(0, 256, (n, m), device="cuda", dtype=lib.uint8)

        wide = several(lambda n=columns, k=k: lib.randn(n, k, device="cuda", dtype=bf16), 16)
        found = [time([lambda w=w, x=x: lib.nn.functional.linear(x, w) for w in wide])]
        del wide
        eight = several(lambda n=columns, k=k: bytes_of(n, k).view(lib.int8), 8)
        found.append(time([lambda w=w, x=x, s=scales: lib._weight_int8pack_mm(x, w, s) for w in eight]))
        del eight
        four = several(lambda n=columns, k=k: lib._convert_weight_to_int4pack(bytes_of(n, k // 2), 8), 4)
        found.append(time([lambda w=w, x=x, s=pairs: lib._weight_int4pack_mm(x, w, 128, s) for w in four]))
        rows[f"{columns} x {k}"] = found
    print(json.dumps(rows), flush=True)


def compare():
    """A table."""
    print(f"{'weights':14s} {'library':8s} {'16 bits':>8s} {'8 bits':>8s} {'4 bits':>8s}")
    for library in ("cresset", "torch"):
        command = [sys.executable, "-m", "benchmarks.packed_weights", "one", library]
        run = subprocess.run(command, capture_output=True, text=True)
        lines = [line for line in run.stdout.splitlines() if line.startswith("{")]
        if not lines:
            print(f"{library} failed: {run.stderr.strip().splitlines()[-1:]}")
            continue
        for size, times in json.loads(lines[-1]).items():
            print(f"{size:14s} {library:8s} " + " ".join(f"{t:8.1f}" for t in times))


if __name__ == "__main__":
    args = sys.argv[1:]
    if args[:1] == ["one"]:
        one(*args[1:])
    elif importlib.import_module("cresset").cuda.is_available():
        compare()
    else:
        print("there is no CUDA device")
