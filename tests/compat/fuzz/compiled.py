"""Runs random programs of programs.py on cresset twice, eagerly and as a compiled region, and compares all that can be
seen at the end: bits, strides, versions, sharing, gradients, errors with their messages, and the diary of hooks.

    python tests/compat/fuzz/compiled.py --seed S --count N [--only I] [--every K]

In the region tensors of every size are computed late. Nobody looks between two steps, so that groups grow. `--only I`
runs one program and prints its lines. PyTorch is not needed. The last line is: `compiled: N programs, S steps, G groups
of C calls, findings F`.
"""

import argparse
import os
import random
import re
import subprocess
import sys
import traceback

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import steps_autograd  # noqa: E402, F401
import steps_memory  # noqa: E402, F401
import steps_values  # noqa: E402, F401
from lockstep import Lockstep, Side  # noqa: E402
from programs import libraries  # noqa: E402
from steps import Maker  # noqa: E402

BATCH = 250
PLACES = re.compile(r"0x[0-9a-f]+|\bline \d+")  # addresses, and lines of the step


class Exactly(Side):
    """A side whose numbers are taken as they are."""

    def since(self, tensor, what, now):
        return now


class Twice(Lockstep):
    """One library beside itself: the first side eager, the second one compiled."""

    def __init__(self, library):
        super().__init__([library])
        self.sides = [Exactly(library), Exactly(library)]

    def elements(self, name, expected, got, dtype):
        bits = np.dtype(f"u{min(expected.itemsize, 8)}")
        theirs, ours = (np.ascontiguousarray(a).view(bits) for a in (expected, got))
        if (theirs == ours).all():
            return None
        numbers = [np.ascontiguousarray(a).reshape(-1)[:8].tolist() for a in (got, expected)]
        return f"{name}: {numbers[0]} instead of {numbers[1]} of {expected.shape} {dtype}"


def run_program(twice, seed, number):
    """The lines of a program and how its two runs differ, or None."""
    from cresset import _native

    rng = random.Random(f"{seed}/{number}")
    eager, compiled = twice.sides
    eager.begin()
    maker = Maker(rng, eager)
    lines, errors = [], []
    for _ in range(rng.randint(5, 30)):
        lines.append(maker.line())
        eager.run(lines[-1])
        errors.append(eager.error)
    state = eager.t.is_grad_enabled(), eager.t.get_default_dtype()
    compiled.begin()
    least, found = _native.set_late_elements(1), []
    _native.compute_late(True)
    try:
        for line in lines:
            compiled.run(line)
            found.append(compiled.error)
    finally:
        _native.compute_late(False)
        _native.settle_late("the program ends")
        _native.set_late_elements(least)
    for line, theirs, ours in zip(lines, errors, found, strict=True):
        if [PLACES.sub("", str(e)) for e in (theirs,)] != [PLACES.sub("", str(e)) for e in (ours,)]:
            return lines, f"{line}: raised {ours} instead of {theirs}"
    if (compiled.t.is_grad_enabled(), compiled.t.get_default_dtype()) != state:
        return lines, "the modes differ at the end"
    eager.error = compiled.error = None
    return lines, twice.difference()


def run_batch(seed, first, count):
    """Programs from `first` on, in this process; the number of the one under way is printed first."""
    (library,) = libraries(True)
    from cresset import _native

    twice, steps, findings = Twice(library), 0, 0
    for number in range(first, first + count):
        print(f"at {number}", flush=True)
        try:
            lines, why = run_program(twice, seed, number)
        except Exception:
            lines, why = [], "the fuzzer failed: " + traceback.format_exc()[-1500:]
        steps += len(lines)
        if why:
            findings += 1
            print(f"finding {number}: {why}", *(f"    {line}" for line in lines), sep="\n", flush=True)
    late = _native.late_statistics()
    print(f"done {count} {steps} {late['groups']} {late['calls']} {findings}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", default="0")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--only", type=int)
    parser.add_argument("--batch", type=int, nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.batch:
        return run_batch(given.seed, *given.batch)
    first, count = (given.only, 1) if given.only is not None else (0, given.count)
    totals, number = np.zeros(5, int), first
    while number < first + count:
        size = min(BATCH, first + count - number)
        command = [sys.executable, os.path.abspath(__file__), "--seed", given.seed, "--batch", str(number), str(size)]
        run = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
        lines = run.stdout.splitlines()
        print(*(line for line in lines if not line.startswith(("at ", "done "))), sep="\n", end="")
        if lines and lines[-1].startswith("done "):
            totals += np.array([int(word) for word in lines[-1].split()[1:]])
            number += size
            continue
        at = max([int(line.split()[1]) for line in lines if line.startswith("at ")], default=number)
        print(f"finding {at}: the process died with {run.returncode}", run.stderr[-3000:], sep="\n", flush=True)
        totals += np.array([at + 1 - number, 0, 0, 0, 1])
        number = at + 1
    print(
        f"\ncompiled: {totals[0]} programs, {totals[1]} steps, {totals[2]} groups of {totals[3]} calls, "
        f"findings {totals[4]}"
    )
    return int(totals[4] > 0)


if __name__ == "__main__":
    sys.exit(main())
