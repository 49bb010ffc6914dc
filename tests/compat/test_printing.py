"""The same random tensors print the same text in PyTorch, for every dtype and many print options."""

import math
import random

import pytest

import cresset
from cresset.show import printing

torch = pytest.importorskip("torch")

FLOATS = ["float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"]
COMPLEX = ["complex64", "complex128"]
INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
SPECIAL = [math.nan, math.inf, -math.inf, 0.0, -0.0, 1.0, -1.0, 0.5, 1e-5, 1e9]
SIZES = [0, 1, 1, 2, 3, 4, 5, 7, 12, 20, 40]
OPTIONS = {
    "precision": [0, 1, 2, 6, 10],
    "threshold": [0, 5, 20, 100, 1000, math.inf],
    "edgeitems": [0, 1, 2, 3, 5],
    "linewidth": [10, 40, 80, 120, 200],
    "sci_mode": [None, True, False],
    "profile": ["default", "short", "full"],
}


def random_floats(rng, count):
    """Numbers of one kind: like size, unlike size, whole, tiny, huge, or mixed with nan, infinity and zero."""
    kind = rng.choice(["like", "unlike", "whole", "tiny", "huge", "zero", "special"])
    factor = {"tiny": rng.choice([1e-3, 1e-5, 1e-40]), "huge": rng.choice([1e4, 1e8, 1e30]), "zero": 0.0}.get(kind, 1.0)
    numbers = [rng.gauss(0, 1) * factor for _ in range(count)]
    if kind == "unlike":
        numbers = [number * 10.0 ** rng.randint(-12, 12) for number in numbers]
    if kind == "whole":
        size = rng.choice([1, 10, 1000, 1e6, 1e12])
        numbers = [float(round(number * size)) for number in numbers]
    if kind == "special":
        numbers = [rng.choice(SPECIAL) if rng.random() < 0.5 else number for number in numbers]
    return numbers


def random_values(rng, dtype, count):
    if dtype in FLOATS:
        return random_floats(rng, count)
    if dtype in COMPLEX:
        return [complex(*parts) for parts in zip(random_floats(rng, count), random_floats(rng, count), strict=True)]
    if dtype == "bool":
        return [rng.random() < 0.5 for _ in range(count)]
    info = torch.iinfo(getattr(torch, dtype))
    limit = rng.choice([1, 10, 1000, info.max])
    return [rng.randint(max(info.min, -limit), min(info.max, limit)) for _ in range(count)]


def random_shape(rng):
    shape = [rng.choice(SIZES) for _ in range(rng.choice([0, 1, 1, 2, 2, 3, 4]))]
    while math.prod(shape) > 3000:
        shape[rng.randrange(len(shape))] = 2
    return shape


def random_options(rng):
    return {name: rng.choice(values) for name, values in OPTIONS.items() if rng.random() < 0.3}


@pytest.mark.parametrize("dtype", [*FLOATS, *COMPLEX, *INTEGERS, "bool"])
def test_random_tensors_print_as_in_pytorch(dtype):
    rng = random.Random(dtype)
    for _ in range(60):
        shape, options = random_shape(rng), random_options(rng)
        values = random_values(rng, dtype, math.prod(shape))
        requires_grad = dtype in ("float32", "complex128") and rng.random() < 0.3
        texts = []
        for lib in (cresset, torch):
            # Made as float64 and cast: the narrow floats cannot be made from every number directly.
            wide = lib.float64 if dtype in FLOATS else lib.complex128 if dtype in COMPLEX else getattr(lib, dtype)
            tensor = lib.tensor(values, dtype=wide).reshape(shape).to(getattr(lib, dtype)).requires_grad_(requires_grad)
            with printing.printoptions(**options), torch._tensor_str.printoptions(**options):
                texts.append(repr(tensor))
        assert texts[0] == texts[1], (shape, options)


@pytest.mark.parametrize(
    "program",
    [
        lambda lib: lib.nn.Parameter(lib.ones(2, 2)),
        lambda lib: lib.ones(40, requires_grad=True) * 2,
        lambda lib: lib.ones(3, 3, requires_grad=True).t(),
        lambda lib: lib.ones(3, requires_grad=True).clone()[1:],
        lambda lib: lib.zeros(2, 0, 3, dtype=lib.complex64),
        lambda lib: lib.zeros(2, 3, dtype=lib.int64, device="meta"),
        lambda lib: lib.nn.Parameter(lib.zeros(2, 3, device="meta")),
        lambda lib: type("Sub", (lib.Tensor,), {})(lib.ones(2, 20)),
        lambda lib: type("Sub", (lib.nn.Parameter,), {})(lib.ones(3)),
        lambda lib: lib.nn.Parameter(lib.ones(3).as_subclass(type("Sub", (lib.Tensor,), {}))),
    ],
)
def test_kinds_of_tensor_print_as_in_pytorch(program):
    assert repr(program(cresset)) == repr(program(torch))


@pytest.mark.parametrize("spec", ["", ".2f", ">10", "d", "e"])
@pytest.mark.parametrize("value", [3.14159, 3, True, 1 + 2j, [3]])
def test_format_does_as_in_pytorch(value, spec):
    def outcome(lib):
        try:
            return format(lib.tensor(value), spec)
        except (TypeError, ValueError) as error:
            return type(error), str(error)

    assert outcome(cresset) == outcome(torch)
