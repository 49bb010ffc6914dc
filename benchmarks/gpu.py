"""How fast is a CUDA device used? `python -m benchmarks.gpu [NAME...]`: cresset and PyTorch in turn, each in a process
of its own.

Times are of the host where launching is the question, of the device (events around the call, median) where a kernel is.
Rates count the bytes that have to move or the multiply-adds that have to be done, whatever the implementation does.
Without a device it says so and ends.
"""

import importlib
import json
import os
import subprocess
import sys
import time

ROUNDS = 15


class Bench:
    """The workloads on one implementation; the public methods without arguments are the benchmarks."""

    def __init__(self, name):
        self.lib = importlib.import_module(name)
        self.nn, self.functional, self.optim = (
            importlib.import_module(f"{name}.{part}") for part in ("nn", "nn.functional", "optim")
        )
        self.lib.manual_seed(0)

    def new(self, *sizes, dtype="bfloat16", grad=False):
        return self.lib.randn(*sizes, device="cuda", dtype=getattr(self.lib, dtype), requires_grad=grad)

    def _on_device(self, call, rounds=ROUNDS):
        """Milliseconds of the device."""
        event, times = self.lib.cuda.Event, []
        for number in range(rounds + 4):
            start, end = event(enable_timing=True), event(enable_timing=True)
            start.record()
            call()
            end.record()
            self.lib.cuda.synchronize()
            if number >= 4:
                times.append(start.elapsed_time(end))
        return sorted(times)[rounds // 2]

    def _on_host(self, call, repeats=400):
        """Microseconds of the host, the best of five."""
        best = float("inf")
        for _ in range(6):
            self.lib.cuda.synchronize()
            start = time.perf_counter()
            for _ in range(repeats):
                call()
            best = min(best, (time.perf_counter() - start) / repeats * 1e6)
        self.lib.cuda.synchronize()
        return best

    def launch_add(self):
        a, b = self.new(1024, dtype="float32"), self.new(1024, dtype="float32")
        return self._on_host(lambda: a + b), "us"

    def launch_backward(self):
        a, b = self.new(1024, dtype="float32", grad=True), self.new(1024, dtype="float32")
        return self._on_host(lambda: (a * b).sum().backward(), 200), "us"

    def _mlp(self):
        nn, lib = self.nn, self.lib
        model = nn.Sequential(nn.Linear(128, 256), nn.ReLU(), nn.Linear(256, 10)).to("cuda")
        optimizer = self.optim.Adam(model.parameters(), lr=1e-3, capturable=True)
        x, y = self.new(32, 128, dtype="float32"), lib.randint(0, 10, (32,), device="cuda")

        def step():
            optimizer.zero_grad(set_to_none=False)
            self.functional.cross_entropy(model(x), y).backward()
            optimizer.step()

        return step

    def mlp_step(self):
        step = self._mlp()
        return self._on_device(step, 100) * 1e3, "us"

    def mlp_step_as_a_graph(self):
        lib, step = self.lib, self._mlp()
        side = lib.cuda.Stream()
        with lib.cuda.stream(side):
            for _ in range(3):
                step()
        lib.cuda.synchronize()
        graph = lib.cuda.CUDAGraph()
        with lib.cuda.graph(graph):
            step()
        return self._on_device(graph.replay, 100) * 1e3, "us"

    def copy(self):
        x = self.new(1 << 28, dtype="float32")
        y = self.lib.empty_like(x)
        return 8 * x.numel() / self._on_device(lambda: y.copy_(x)) / 1e6, "GB/s"

    def add(self):
        x = self.new(1 << 28, dtype="float32")
        y = self.lib.empty_like(x)
        return 8 * x.numel() / self._on_device(lambda: self.lib.add(x, x, out=y)) / 1e6, "GB/s"

    def sum(self):
        x = self.new(1 << 28, dtype="float32")
        return 4 * x.numel() / self._on_device(x.sum) / 1e6, "GB/s"

    def column_sums(self):
        x = self.new(1 << 17, 768)
        return 2 * x.numel() / self._on_device(lambda: x.sum(0)) / 1e6, "GB/s"

    def softmax(self):
        x = self.new(32768, 4096)
        return 4 * x.numel() / self._on_device(lambda: x.softmax(-1)) / 1e6, "GB/s"

    def layer_norm(self):
        x, w = self.new(32768, 4096), self.new(4096)
        return 4 * x.numel() / self._on_device(lambda: self.functional.layer_norm(x, (4096,), w, w)) / 1e6, "GB/s"

    def transpose(self):
        x = self.new(16384, 16384)
        return 4 * x.numel() / self._on_device(lambda: x.t().contiguous()) / 1e6, "GB/s"

    def sort(self):
        x = self.new(1 << 24, dtype="float32")
        return x.numel() / self._on_device(lambda: x.sort()) / 1e3, "M/s"

    def matmul(self):
        a, b = self.new(8192, 8192), self.new(8192, 8192)
        return 2 * 8192**3 / self._on_device(lambda: a @ b) / 1e9, "TFLOP/s"

    def convolution(self):
        x, w = self.new(256, 128, 56, 56), self.new(128, 128, 3, 3)
        if self.lib.__name__ == "torch":  # cresset lays images out so by itself
            x, w = (t.contiguous(memory_format=self.lib.channels_last) for t in (x, w))
        return 2 * 256 * 128 * 56 * 56 * 128 * 9 / self._on_device(
            lambda: self.functional.conv2d(x, w, padding=1)
        ) / 1e9, "TFLOP/s"

    def attention(self):
        q = self.new(8, 16, 4096, 128)
        return 2 * 8 * 16 * 4096**2 * 128 / self._on_device(
            lambda: self.functional.scaled_dot_product_attention(q, q, q, is_causal=True)
        ) / 1e9, "TFLOP/s"

    def random_normal(self):
        x = self.new(1 << 28, dtype="float32")
        return 4 * x.numel() / self._on_device(x.normal_) / 1e6, "GB/s"

    def dropout(self):
        x = self.new(1 << 27, grad=True)
        return 5 * x.numel() / self._on_device(lambda: self.functional.dropout(x, 0.1)) / 1e6, "GB/s"

    def clip_100_gradients(self):
        parameters = [self.new(1 << 20, dtype="float32", grad=True) for _ in range(100)]
        for p in parameters:
            p.grad = self.lib.ones_like(p)
        clip = self.nn.utils.clip_grad_norm_
        return 12 * 100 * (1 << 20) / self._on_device(lambda: clip(parameters, 1.0)) / 1e6, "GB/s"

    def launch_adamw_of_148_tensors(self):
        parameters = [self.new(64, dtype="float32", grad=True) for _ in range(148)]
        for p in parameters:
            p.grad = self.lib.ones_like(p)
        return self._on_host(self.optim.AdamW(parameters, fused=True).step, 50), "us"

    def adamw_100_tensors(self):
        parameters = [self.new(1 << 20, dtype="float32", grad=True) for _ in range(100)]
        for p in parameters:
            p.grad = self.lib.ones_like(p)
        optimizer = self.optim.AdamW(parameters, fused=True)
        return 28 * 100 * (1 << 20) / self._on_device(optimizer.step) / 1e6, "GB/s"


def names():
    return [name for name in vars(Bench) if not name.startswith("_") and name != "new"]


def one(implementation, chosen):
    bench = Bench(implementation)
    for name in chosen:
        value, unit = getattr(bench, name)()
        print(json.dumps([name, value, unit]), flush=True)
        bench.lib.cuda.empty_cache()


def compare(chosen):
    results = {}
    for implementation in ("cresset", "torch"):
        command = [sys.executable, "-m", "benchmarks.gpu", "--one", implementation, *chosen]
        run = subprocess.run(command, capture_output=True, text=True, env=dict(os.environ))
        results[implementation] = {row[0]: row[1:] for row in map(json.loads, run.stdout.splitlines())}
        if run.returncode:
            print(
                f"{implementation} stopped: "
                f"{run.stderr.strip().splitlines()[-1] if run.stderr.strip() else run.returncode}"
            )
    print(f"| {'benchmark':22} | {'cresset':>10} | {'PyTorch':>10} | unit    | cresset is |")
    print(f"|{'-' * 24}|{'-' * 12}|{'-' * 12}|{'-' * 9}|{'-' * 12}|")
    for name in chosen:
        ours, theirs = (results[i].get(name, (None, "")) for i in ("cresset", "torch"))
        ahead = (
            ""
            if None in (ours[0], theirs[0])
            else f"{theirs[0] / ours[0] if ours[1] == 'us' else ours[0] / theirs[0]:.2f}x"
        )
        show = ["-" if r[0] is None else f"{r[0]:.1f}" for r in (ours, theirs)]
        print(f"| {name:22} | {show[0]:>10} | {show[1]:>10} | {ours[1] or theirs[1]:7} | {ahead:>10} |")


def main(arguments):
    import cresset

    if not cresset.cuda.is_available():
        sys.exit("there is no CUDA device: " + cresset._native.cuda.problem())
    chosen = [a for a in arguments if not a.startswith("-") and a not in ("cresset", "torch")] or names()
    if unknown := sorted(set(chosen) - set(names())):
        sys.exit(f"unknown benchmark {', '.join(unknown)}; there are {', '.join(names())}")
    one(arguments[1], chosen) if arguments[:1] == ["--one"] else compare(chosen)


if __name__ == "__main__":
    main(sys.argv[1:])
