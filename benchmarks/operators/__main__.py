"""Which operators are slower than PyTorch's? `python -m benchmarks.operators [NAME...]`.

Every operator with work of its own is called on three sizes, alone and with its backward, by cresset and by PyTorch in
turn in one process. What is printed: the cases that are behind by more than 5 %, the geometric mean of the ratios for
each size, and the operators of the table that no case calls. The calls stand in the other files of this folder; a CPU
is given smaller sizes than a GPU.

The time is the host's, around a batch of calls and, on a GPU, the wait for the device after it: of small tensors it is
that of the call, of large ones that of the kernel. The median of the batches counts.

    --device NAME    cpu (the default) or cuda
    --match PATTERN  the cases whose names have the regular expression; all take some minutes
    --size NAME      small, medium or large alone
    --threads N      of each library on the CPU; 1 unless told
    --once           each call once, at the small size: whether all cases run
    --first          on a GPU: call each case of cresset once, in several processes, which compiles the kernels that are
                     not on disk yet
    --json FILE      all figures
"""

import argparse
import json
import math
import os
import re
import statistics
import subprocess
import sys
import time

from . import algebra, layers, moving, pointwise, reductions  # noqa: F401 -- each adds its cases
from .cases import CASES, NOT_TIMED, SIZES

BEHIND = 1.05
BATCH_SECONDS, BATCHES, PROCESSES = 0.002, 5, 12


class Library:
    """cresset or PyTorch, and how it makes the tensors of a case."""

    def __init__(self, name, device, threads=1):
        self.name, self.device = name, device
        self.lib = __import__(name)
        self.lib.set_num_threads(threads)
        self.F = __import__(f"{name}.nn.functional", fromlist=["functional"])
        self.lib.manual_seed(0)
        self.wait = self.lib.cuda.synchronize if device == "cuda" else lambda: None
        self.kept = {}  # what calls need beside their operands

    def tensor(self, spec):
        """The tensor that a Spec describes."""
        lib, (kind, shape, high) = self.lib, spec
        if kind == "index":
            return lib.randint(0, high, shape, device=self.device)
        if kind == "bool":
            return lib.rand(shape, device=self.device) < 0.5
        if kind == "byte":
            return lib.randint(0, 255, shape, device=self.device, dtype=lib.uint8)
        if kind == "unit":  # where every function of a real number is defined
            return (lib.rand(shape, device=self.device) * 0.8 + 0.1).requires_grad_()
        if kind == "definite":
            x = lib.randn(shape, device=self.device)
            return (x @ x.mT / shape[-1] + lib.eye(shape[-1], device=self.device)).requires_grad_()
        dtype = {
            "half": lib.bfloat16,
            "double": lib.float64,
            "complex": lib.complex64,
            "image": lib.float32,
            "normal": lib.float32,
            "fixed": lib.float32,
        }[kind]
        x = lib.randn(shape, device=self.device, dtype=dtype)
        return x if kind == "fixed" else x.requires_grad_()

    def keep(self, key, make):
        if key not in self.kept:
            self.kept[key] = make()
        return self.kept[key]

    def sorted(self):
        return self.keep("sorted", lambda: self.lib.linspace(-2, 2, 1000, device=self.device))

    def order(self, n):
        return self.keep(("order", n), lambda: self.lib.randperm(n, device=self.device))

    def window(self, n):
        return self.keep(("window", n), lambda: self.lib.hann_window(n, device=self.device))

    def thinned(self, x, layout):
        """A sparse tensor with one in a hundred of the elements of `x`."""
        return self.keep(
            ("thinned", layout, *x.shape),
            lambda: getattr((x * (x > 2.326)), f"to_sparse{'_csr' * (layout == 'csr')}")(),
        )

    def lists(self, tensors, count):
        n = len(tensors) // count
        return [list(tensors[k * n : (k + 1) * n]) for k in range(count)]

    def module(self, name, *arguments):
        nn = __import__(f"{self.name}.nn", fromlist=["nn"])
        return self.keep((name, *arguments), lambda: getattr(nn, name)(*arguments).to(self.device))

    def calls(self, case, size):
        """What is timed: the operator alone, and with its backward where it has one."""
        specs = case.specs[self.device][size]
        tensors = [self.tensor(spec) for spec in (specs if isinstance(specs[0], tuple) else [specs])]
        wanted = [t for t in tensors if t.requires_grad]
        lib, call = self.lib, case.call

        def forward():
            with lib.no_grad():
                return call(self, *tensors)

        result = call(self, *tensors)
        result = (
            next((t for t in result if t.requires_grad), result[0]) if isinstance(result, (tuple, list)) else result
        )
        if not (wanted and case.backward and getattr(result, "requires_grad", False)):
            return {"forward": forward}
        seed = lib.ones_like(result)

        def both():
            found = call(self, *tensors)
            if isinstance(found, (tuple, list)):
                found = next(t for t in found if t.requires_grad)
            return lib.autograd.grad(found, wanted, seed, allow_unused=True)

        return {"forward": forward, "backward": both}


def seconds(library, call, loops):
    library.wait()
    start = time.perf_counter()
    for _ in range(loops):
        call()
    library.wait()
    return (time.perf_counter() - start) / loops


def compare(pair):
    """Median seconds of a call, for each of the two libraries, batches in turn."""
    loops = []
    for library, call in pair:
        call()
        once = seconds(library, call, 2)
        once = min(once, seconds(library, call, 2))
        loops.append(max(1, min(2000, round(BATCH_SECONDS / max(once, 1e-7)))))
    times = ([], [])
    for _ in range(BATCHES if loops[0] > 1 or loops[1] > 1 else 3):
        for k, (library, call) in enumerate(pair):
            times[k].append(seconds(library, call, loops[k]))
    return tuple(statistics.median(t) for t in times)


def sweep(libraries, cases, sizes):
    """Rows of (name, way, size, seconds of cresset, seconds of PyTorch), and what failed."""
    rows, errors = [], []
    for case in cases:
        for size in sizes:
            try:
                calls = [library.calls(case, size) for library in libraries]
                for way in calls[0]:
                    if way in calls[1]:
                        pair = [(library, call[way]) for library, call in zip(libraries, calls, strict=True)]
                        rows.append([case.name, way, SIZES[size], *compare(pair)])
            except Exception as error:  # an operator that fails is a line of the report, not the end of the sweep
                errors.append(
                    f"{case.name} ({SIZES[size]}): {type(error).__name__}: {str(error).splitlines()[0][:150]}"
                )
        for library in libraries:
            if library.device == "cuda" and library.lib.cuda.memory_reserved() > 24 << 30:
                library.lib.cuda.empty_cache()
    return rows, errors


def report(rows, errors):
    """The lines of the report."""
    ratio = {(name, way, size): ours / theirs for name, way, size, ours, theirs in rows}
    seconds_of = {(name, way, size): (ours, theirs) for name, way, size, ours, theirs in rows}
    lines = []
    for size in reversed(SIZES):
        behind = sorted(((r, key) for key, r in ratio.items() if key[2] == size and r > BEHIND), reverse=True)
        lines.append(f"behind by more than {BEHIND - 1:.0%}, {size}: {len(behind)}")
        for r, key in behind:
            ours, theirs = seconds_of[key]
            lines.append(f"  {r:6.2f}  {key[0]:36} {key[1]:8}  {ours * 1e6:10.1f} us  PyTorch {theirs * 1e6:10.1f} us")
    for size in [*SIZES, None]:
        found = [math.log(r) for key, r in ratio.items() if size in (None, key[2])]
        if found:
            mean = math.exp(statistics.fmean(found))
            lines.append(f"geometric mean, {size or 'all'}: {mean:.3f} of PyTorch's time ({len(found)} figures)")
    return lines + [f"failed: {error}" for error in errors]


def not_called():
    """Public operators of the table that no case names."""
    import cresset

    called = {word for case in CASES for word in (case.name, *case.name.split())}
    table = cresset._native.operators()
    return sorted(
        name
        for name in table
        if not name.startswith("_")
        and any(cresset._native.operator_forms(name))
        and name.rstrip("_") not in called
        and name.rstrip("_") not in NOT_TIMED
    )


def compile_first(cases, sizes):
    """Cases of cresset once each, over several processes."""
    command = [sys.executable, "-m", "benchmarks.operators", "--device", "cuda"]
    if len(sizes) == 1:
        command += ["--size", SIZES[sizes[0]]]
    names = [case.name for case in cases]
    parts = [subprocess.Popen([*command, "--part", f"{k}/{PROCESSES}", *names]) for k in range(PROCESSES)]
    for part in parts:
        part.wait()


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="python -m benchmarks.operators", description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="cases; all if none is given")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--match", metavar="PATTERN", default="")
    parser.add_argument("--size", choices=SIZES)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--once", action="store_true")
    parser.add_argument("--first", action="store_true")
    parser.add_argument("--part", help=argparse.SUPPRESS)
    parser.add_argument("--json", metavar="FILE")
    chosen = parser.parse_args(arguments)
    if unknown := set(chosen.names) - {case.name for case in CASES}:
        parser.error(f"no case named {', '.join(sorted(unknown))}")
    cases = [
        case for case in CASES if (not chosen.names or case.name in chosen.names) and re.search(chosen.match, case.name)
    ]
    if chosen.device == "cuda":
        import cresset

        if not cresset.cuda.is_available():
            sys.exit("there is no CUDA device: " + cresset._native.cuda.problem())
    sizes = [SIZES.index(chosen.size)] if chosen.size else list(range(len(SIZES)))
    if chosen.part:
        part, parts = map(int, chosen.part.split("/"))
        return run_once([Library("cresset", "cuda")], cases[part::parts], sizes)
    libraries = [Library(name, chosen.device, chosen.threads) for name in ("cresset", "torch")]
    if chosen.once:
        return run_once(libraries, cases, [0])
    if chosen.first:
        compile_first(cases, sizes)
    rows, errors = sweep(libraries, cases, sizes)
    if chosen.json:
        with open(chosen.json, "w") as file:
            json.dump({"rows": rows, "errors": errors}, file)
    print("\n".join(report(rows, errors)))
    if len(cases) == len(CASES) and (missing := not_called()):
        print("not called:", " ".join(missing))
    return 0


def run_once(libraries, cases, sizes):
    """Each call once; the errors are printed, and their number returned."""
    wrong = 0
    for case in cases:
        for library in libraries:
            try:
                for size in sizes:
                    for call in library.calls(case, size).values():
                        call()
                library.wait()
            except Exception as error:
                wrong += 1
                print(f"{case.name} on {library.name}: {type(error).__name__}: {str(error).splitlines()[0][:150]}")
    return min(wrong, 100)


if __name__ == "__main__":
    os.environ.setdefault("PYTHONUNBUFFERED", "1")
    sys.exit(main())
