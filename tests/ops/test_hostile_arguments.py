"""Every operator by its signature with arguments that do not fit one another: an error or a result, never the end of
the process. Operators that only derivatives call are among them."""

import os
import random
import re
import signal
import subprocess
import sys

import cresset
from cresset import _native

DTYPES = [cresset.float32, cresset.float64, cresset.int64, cresset.bool, cresset.bfloat16, cresset.complex64]
CALLS, MEMORY = 60, 4 << 30  # of each operator; bytes for all


def parameters_of(signature):
    """(type, name, whether by name only) of each parameter."""
    inside = signature[signature.index("(") + 1 : signature.rindex(") ->")]
    found, by_name = [], False
    for part in filter(None, map(str.strip, re.split(r",(?![^\[\(]*[\]\)])", inside))):
        if part == "*":
            by_name = True
            continue
        kind, _, rest = part.partition(" ")
        found.append((re.sub(r"\([a-z]!?\)", "", kind), rest.partition("=")[0], by_name))
    return found


def tensor(chance, dtype):
    shape = [chance.choice([0, 1, 2, 3, 4]) for _ in range(chance.choice([0, 1, 2, 2, 3, 4, 5]))]
    made = cresset.randn(shape) * 3 if chance.random() < 0.7 else cresset.randint(-2, 9, shape)
    made = made.to(dtype if chance.random() < 0.8 else chance.choice(DTYPES))
    if chance.random() < 0.2 and made.ndim > 1:
        made = made.transpose(0, -1)
    if chance.random() < 0.1 and made.ndim and made.shape[-1]:
        made = made[..., :1].expand(*made.shape[:-1], 3)
    return made


def value(chance, kind, dtype):
    if kind.endswith("?"):
        return None if chance.random() < 0.4 else value(chance, kind[:-1], dtype)
    if "[" in kind:
        return [value(chance, kind.partition("[")[0], dtype) for _ in range(chance.randrange(4))]
    if kind == "Tensor":
        return tensor(chance, dtype)
    if kind == "int":
        return chance.choice([0, 1, 2]) if chance.random() < 0.7 else chance.choice([-1, 3, 7, 2**40, -(2**62)])
    if kind in ("float", "Scalar"):
        return chance.choice([0.0, 1.0, -1.0, 0.5, 1e30, float("nan"), float("inf"), 2])
    if kind == "bool":
        return chance.random() < 0.5
    if kind == "str":
        return chance.choice(["", "mean", "sum", "reflect"])
    return chance.choice(DTYPES) if kind in ("ScalarType", "dtype") else None


def call_all():
    """Call each operator, and say before each call which it is: what ends the process was said last."""
    os.environ["OMP_NUM_THREADS"] = "1"
    worked = 0
    for name, operator in sorted(_native.operators().items()):
        parameters = parameters_of(operator.signatures[0])
        print(name, flush=True)
        for number in range(CALLS):
            chance = random.Random(f"{name} {number}")
            cresset.manual_seed(number)
            dtype = chance.choice([cresset.float32, cresset.float32, cresset.float64, cresset.int64])
            args = [value(chance, kind, dtype) for kind, _, by_name in parameters if not by_name]
            named = {word: value(chance, kind, dtype) for kind, word, by_name in parameters if by_name}
            try:
                operator(*args, **named)
                worked += 1
            except Exception:  # any error will do
                continue
    print("calls that worked:", worked)


def test_no_operator_ends_the_process():
    program = f"""
import resource
resource.setrlimit(resource.RLIMIT_AS, ({MEMORY}, {MEMORY}))
from tests.ops import test_hostile_arguments
test_hostile_arguments.call_all()
"""
    paths = [os.path.dirname(os.path.dirname(cresset.__file__)), os.getcwd()]
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    last = run.stdout.strip().splitlines()[-1:]
    ended = signal.Signals(-run.returncode).name if run.returncode < 0 else run.returncode
    assert run.returncode == 0, f"{last} ended the process: {ended}; {run.stderr[-500:]}"
    assert int(last[0].rpartition(" ")[2]) > 2000
