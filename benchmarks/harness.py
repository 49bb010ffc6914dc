"""Runs one body for cresset and for PyTorch, in turn and in separate processes, and compares the medians.

A benchmark is a function that is given the library, prepares its data and returns what is to be timed:

    @benchmark(unit="ns")
    def add_two_small_tensors(lib):
        a, b = lib.ones(16), lib.ones(16)
        return lambda: a + b
"""

import argparse
import gc
import importlib
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
FILES = [
    "small_ops",
    "backward",
    "modules",
    "interpreter",
    "optimizers",
    "pointwise",
    "memory_bound",
    "compiled",
    "matmul",
    "data_loading",
    "import_time",
]
LIBRARIES = ["cresset", "torch"]
UNITS = {"ns": 1e9, "us": 1e6, "ms": 1e3, "s": 1.0}


def benchmark(unit, seconds=0.2):
    """Marks a function as a benchmark whose figure is the time of one call, given in `unit`.

    Args:
        unit: "ns", "us", "ms" or "s".
        seconds: how long one process measures.
    """

    def mark(body):
        body.benchmark = {"unit": unit, "seconds": seconds}
        return body

    return mark


def bodies(file):
    """The benchmarks of a file, in the order in which it defines them."""
    return [body for body in vars(importlib.import_module(f"benchmarks.{file}")).values() if hasattr(body, "benchmark")]


def seconds_per_call(call, seconds):
    """The median of three to ten batches that take about `seconds` together; the first call does not count."""
    call()
    loops, clock = 1, time.perf_counter

    def batch():
        start = clock()
        for _ in range(loops):
            call()
        return clock() - start

    while (taken := batch()) < seconds / 20 and loops < 10**7:
        loops = max(loops * 2, min(loops * 100, int(loops * seconds / 10 / max(taken, 1e-9))))
    batches = max(3, min(10, round(seconds / max(taken, 1e-9))))
    gc.disable()
    try:
        return statistics.median(batch() for _ in range(batches)) / loops
    finally:
        gc.enable()


def work(library, file, chosen):
    """In a process of its own: measure the benchmarks of one file on one library, one line of JSON each."""
    lib = importlib.import_module(library)
    for body in bodies(file):
        if chosen and body.__name__ not in chosen:
            continue
        row = {"name": body.__name__}
        try:
            row["seconds"] = seconds_per_call(body(lib), body.benchmark["seconds"])
        except Exception as error:  # a missing operator is a row of the table, not the end of the run
            row["error"] = f"{type(error).__name__}: {error}".splitlines()[0]
        print(json.dumps(row), flush=True)


def measure(python, library, file, chosen, threads):
    """The rows of one file on one library; empty when the library is not installed there."""
    environment = dict(os.environ, OMP_NUM_THREADS=str(threads), MKL_NUM_THREADS=str(threads))
    command = [python, str(FOLDER / "harness.py"), "--work", library, file, *chosen]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode and "ModuleNotFoundError" not in done.stderr:
        sys.stderr.write(f"{file} on {library} ended with status {done.returncode}\n{done.stderr[-2000:]}\n")
    return {
        row["name"]: row for row in map(json.loads, filter(lambda line: line.startswith("{"), done.stdout.splitlines()))
    }


class Figure:
    """The times of one benchmark on one library over the rounds."""

    def __init__(self, rows):
        self.times = [row["seconds"] for row in rows if row and "seconds" in row]
        self.error = next((row["error"] for row in rows if row and "error" in row), "not installed")

    def __bool__(self):
        return bool(self.times)

    @property
    def median(self):
        return statistics.median(self.times)

    @property
    def spread(self):
        """Half the distance between the fastest and the slowest round, relative to the median."""
        return (max(self.times) - min(self.times)) / 2 / self.median

    def show(self, unit):
        if not self:
            return "-"
        value = self.median * UNITS[unit]
        return f"{value:,.{max(0, 3 - len(str(int(value))))}f} {unit} ±{self.spread:.0%}"


def run(files, chosen, pythons, rounds, threads):
    """Measure and yield (file, body, {library: Figure})."""
    for file in files:
        results = {library: [] for library in LIBRARIES}
        for _ in range(rounds):
            for library in LIBRARIES:
                results[library].append(measure(pythons[library], library, file, chosen, threads))
        for body in bodies(file):
            if not chosen or body.__name__ in chosen:
                yield file, body, {lib: Figure([r.get(body.__name__) for r in results[lib]]) for lib in LIBRARIES}


def table(rows):
    """The lines of a Markdown table, padded so that it can be read as text too."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |" for row in rows
    ]
    return [lines[0], "|" + "|".join("-" * (width + 2) for width in widths) + "|", *lines[1:]]


def versions(pythons):
    """The version of each library, None for one that is not installed."""
    found = {}
    for library, python in pythons.items():
        code = f"import sys; sys.path.append({str(FOLDER.parent)!r}); import {library}; print({library}.__version__)"
        done = subprocess.run([python, "-I", "-c", code], capture_output=True, text=True)
        found[library] = done.stdout.strip() or None
    return found


def processor():
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__.splitlines()[0])
    parser.add_argument(
        "names", nargs="*", help=f"files ({', '.join(FILES)}) or single benchmarks; all if none is given"
    )
    parser.add_argument("--ours", default=sys.executable, metavar="PYTHON", help="an interpreter that has cresset")
    parser.add_argument("--torch", default=sys.executable, metavar="PYTHON", help="an interpreter that has PyTorch")
    parser.add_argument("--rounds", type=int, default=5, help="processes for each library and file, taken in turn")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument(
        "--markdown", metavar="FILE", help="write the table between the marks of FILE (docs/benchmarks.md)"
    )
    chosen = parser.parse_args(arguments)

    known = {body.__name__: file for file in FILES for body in bodies(file)}
    if unknown := set(chosen.names) - set(FILES) - set(known):
        parser.error(f"no benchmark named {', '.join(sorted(unknown))}; there are {', '.join([*FILES, *known])}")
    single = [name for name in chosen.names if name in known]
    files = [f for f in FILES if not chosen.names or f in chosen.names or f in {known[name] for name in single}]

    pythons = {"cresset": chosen.ours, "torch": chosen.torch}
    rows = [["question", "benchmark", "cresset", "PyTorch", "PyTorch / cresset"]]
    failures = []
    for file, body, figures in run(files, single, pythons, chosen.rounds, chosen.threads):
        ours, theirs = (figures[library] for library in LIBRARIES)
        ratio = f"{theirs.median / ours.median:.2f}" if ours and theirs else "-"
        unit = body.benchmark["unit"]
        rows.append([file, body.__name__, ours.show(unit), theirs.show(unit), ratio])
        failures += [f"{body.__name__} on {lib}: {fig.error}" for lib, fig in figures.items() if not fig]
        print(
            "  ".join(cell.ljust(width) for cell, width in zip(rows[-1], (13, 34, 18, 18, 8), strict=True)), flush=True
        )
    for failure in failures:
        print(failure)

    if chosen.markdown:
        version = versions(pythons)
        stamp = (
            f"cresset {version['cresset']} beside PyTorch {version['torch']}, Python {platform.python_version()}, "
            f"{processor()}, {chosen.threads} thread(s); median of {chosen.rounds} processes, ± half the range."
        )
        write_between_marks(Path(chosen.markdown), "\n".join([stamp, "", *table(rows)]))
    return 0


def write_between_marks(path, text, begin="<!-- table: begin -->", end="<!-- table: end -->"):
    before, _, rest = path.read_text().partition(begin)
    _, mark, after = rest.partition(end)
    if not mark:
        raise SystemExit(f"{path}: no {begin} ... {end} to write between")
    path.write_text(f"{before}{begin}\n{text}\n{end}{after}")


if __name__ == "__main__" and sys.argv[1:2] == ["--work"]:
    # The source tree goes last, so that an installed cresset is measured and not the tree beside this file.
    sys.path[0:1] = []
    sys.path.append(str(FOLDER.parent))
    importlib.import_module("benchmarks.harness").work(sys.argv[2], sys.argv[3], sys.argv[4:])
