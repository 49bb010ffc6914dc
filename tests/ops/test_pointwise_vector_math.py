"""The elementary functions of float32 tensors: accuracy against the math module, ends of the range, every way to
call."""

import math
import os
import struct
import subprocess
import sys

import pytest

import cresset

pytestmark = pytest.mark.cpu_only("the vector functions of its instruction sets")

INF, NAN = math.inf, math.nan


def single(value):
    """The value as a number of single precision has it."""
    return struct.unpack("f", struct.pack("f", value))[0]


def unit_in_last_place(value):
    """The distance of neighboring numbers of single precision around `value`."""
    return 2.0 ** max(math.frexp(value)[1] - 24, -149)


def spread(low, high, count=4000):
    """Numbers of both equal distances and equal ratios, between the ends."""
    even = [low + (high - low) * (k + 0.37) / count for k in range(count)]
    sizes = [math.exp(-60 + 60 * k / 500) for k in range(501)]
    near_zero = [s * v for s in (-1, 1) for v in sizes if low <= s * v <= high]
    return [single(v) for v in even + near_zero]


def erf_inverse(x):
    """By halving an interval: slow, and right."""
    low, high = 0.0, 6.0
    while low < (middle := (low + high) / 2) < high:
        below = math.erf(middle) < abs(x) if abs(x) < 0.5 else math.erfc(middle) > 1 - abs(x)
        low, high = (middle, high) if below else (low, middle)
    return math.copysign(low, x)


FUNCTIONS = {
    "exp": (math.exp, -87, 88.7), "exp2": (lambda x: 2.0**x, -126, 127.9), "expm1": (math.expm1, -20, 88.7),
    "log": (math.log, 1e-30, 100), "log2": (math.log2, 1e-30, 100),
    "log10": (math.log10, 1e-30, 100), "log1p": (math.log1p, -0.9999, 1000), "tanh": (math.tanh, -12, 12),
    "erf": (math.erf, -5, 5), "erfc": (math.erfc, -5, 9),
    "sin": (math.sin, -9e5, 9e5), "cos": (math.cos, -200, 200), "tan": (math.tan, -200, 200),
    "asin": (math.asin, -1, 1), "acos": (math.acos, -1, 1), "atan": (math.atan, -50, 50),
    "sinh": (math.sinh, -80, 80), "cosh": (math.cosh, -80, 80), "erfinv": (erf_inverse, -0.9999999, 0.9999999),
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_is_right_to_two_units_in_the_last_place(name):
    function, low, high = FUNCTIONS[name]
    inputs = [x for x in spread(low, high) if x > 0 or name not in ("log", "log2", "log10")]
    outputs = getattr(cresset, name)(cresset.tensor(inputs)).tolist()
    worst = max(
        (abs(y - function(x)) / unit_in_last_place(function(x)), x) for x, y in zip(inputs, outputs, strict=True)
    )
    assert worst[0] <= 2, f"{name}({worst[1]!r}) is off by {worst[0]} units"


def double_spread(low, high, count=4000):
    even = [low + (high - low) * (k + 0.37) / count for k in range(count)]
    return even + [s * math.exp(-k / 8) for s in (-1, 1) for k in range(400) if low <= s * math.exp(-k / 8) <= high]


@pytest.mark.parametrize(
    ("name", "low", "high"),
    [("exp", -745, 709), ("erf", -7, 7), ("sin", -9e5, 9e5), ("cos", -9e5, 9e5), ("sin", 1e6, 1e9)],
)  # fmt: skip
def test_a_function_of_doubles_is_right_to_two_units_in_the_last_place(name, low, high):
    multiples = [math.nextafter(k * math.pi / 2, INF) for k in (1, 2, 3, 355, 573204) if low <= k * math.pi / 2 <= high]
    inputs = double_spread(low, high) + multiples
    function = getattr(math, name)
    outputs = getattr(cresset, name)(cresset.tensor(inputs, dtype=cresset.float64)).tolist()
    for x, y in zip(inputs, outputs, strict=True):
        assert abs(y - function(x)) <= 2 * math.ulp(function(x)), (name, x, y, function(x))


@pytest.mark.parametrize(
    ("name", "x", "expected"),
    [("exp", -INF, 0.0), ("exp", INF, INF), ("exp", -745.0, 5e-324), ("exp", 709.8, INF), ("erf", INF, 1.0),
     ("erf", -INF, -1.0), ("erf", -0.0, -0.0), ("erf", 5e-324, 5e-324), ("sin", -0.0, -0.0), ("sin", INF, NAN),
     ("cos", -INF, NAN), ("cos", 0.0, 1.0), *((name, NAN, NAN) for name in ("exp", "erf", "sin", "cos"))],
)  # fmt: skip
def test_the_ends_of_a_function_of_doubles(name, x, expected):
    for count in (1, 33):
        got = getattr(cresset, name)(cresset.full((count,), x, dtype=cresset.float64)).tolist()[-1]
        assert same_number(got, expected), (name, x, got)


@pytest.mark.parametrize(
    ("name", "formula"),
    [("sigmoid", lambda x: 1 / (1 + math.exp(-x))), ("silu", lambda x: x / (1 + math.exp(-x))),
        ("gelu", lambda x: x * 0.5 * math.erfc(-x * math.sqrt(0.5)))],
)  # fmt: skip
def test_an_activation_is_right_to_four_units_of_the_input(name, formula):
    """Relative to the larger of the input and the output: gelu far below zero is the end of a cancellation."""
    inputs = spread(-12, 12)
    outputs = getattr(cresset.nn.functional, name)(cresset.tensor(inputs)).tolist()
    for x, y in zip(inputs, outputs, strict=True):
        assert abs(y - formula(x)) <= 4 * unit_in_last_place(max(abs(x), abs(formula(x)))), (name, x, y, formula(x))


@pytest.mark.parametrize(
    ("name", "x", "expected"),
    [("exp", -INF, 0.0), ("exp", INF, INF), ("exp", 88.72284, INF), ("exp", -104.0, 0.0), ("exp", -103.9, 2.0**-149),
        ("exp", 0.0, 1.0), ("exp", -0.0, 1.0),
     ("exp2", -149.0, 2.0**-149), ("exp2", 128.0, INF), ("exp2", 10.0, 1024.0), ("expm1", -INF, -1.0),
     ("expm1", INF, INF), ("expm1", -0.0, -0.0),
     ("log", 0.0, -INF), ("log", -0.0, -INF), ("log", -1.0, NAN), ("log", INF, INF), ("log", 1.0, 0.0),
     ("log", 2.0**-149, -103.27893), ("log1p", -1.0, -INF),
     ("tanh", INF, 1.0), ("tanh", -INF, -1.0), ("tanh", -0.0, -0.0), ("tanh", 1e-40, 1e-40), ("erf", INF, 1.0),
     ("erf", -INF, -1.0), ("erf", -0.0, -0.0),
     ("erfinv", 1.0, INF), ("erfinv", -1.0, -INF), ("erfinv", 1.5, NAN), ("erfinv", NAN, NAN), ("erfinv", -0.0, -0.0),
     ("erfinv", 1e-40, 8.862269e-41),
     ("sin", -0.0, -0.0), ("sin", INF, NAN), ("cos", INF, NAN), ("cos", 0.0, 1.0), ("atan", INF, math.pi / 2),
     ("sigmoid", -INF, 0.0), ("sigmoid", INF, 1.0),
     *((name, NAN, NAN) for name in ("exp", "exp2", "expm1", "log", "log1p", "tanh", "erf", "sin", "cos", "sigmoid"))],
)  # fmt: skip
def test_the_ends_of_a_function(name, x, expected):
    for count in (1, 33):  # alone, and in the middle of a vector
        got = getattr(cresset, name)(cresset.full((count,), x)).tolist()[-1]
        assert (got != got and expected != expected) or got == single(expected), (name, x, got)
        assert expected != 0 or math.copysign(1, got) == math.copysign(1, expected)


def same_number(a, b):
    return (a != a and b != b) or (a == b and math.copysign(1, a) == math.copysign(1, b))


ODD_NUMBERS = [
    0.0,
    -0.0,
    1.0,
    -1.5,
    2.0**-149,
    -(2.0**-149),
    2.0**-126,
    3.4028234663852886e38,
    1e30,
    7.25,
    1e-30,
    0.1,
    -1e10,
    INF,
    -INF,
    NAN,
    2.0**24,
    3.0,
]


def pairs():
    cresset.manual_seed(0)
    bits = cresset.randint(-(2**31), 2**31, (4000,)).to(cresset.int32).view(cresset.float32).tolist()
    numbers = [(x, y) for x in map(single, ODD_NUMBERS) for y in map(single, ODD_NUMBERS)] + list(zip(bits, bits[1:]))
    near = [(x, x * k) for x in bits[:500] for k in (0.3, 1.0, 1.7, 1e-6)]
    return numbers + [(x, single(y)) for x, y in near if abs(y) < 3e38 or x != x]


def test_the_rest_of_a_division_is_exact_whatever_the_quotient():
    numbers = pairs()
    x, y = (cresset.tensor(list(column)) for column in zip(*numbers))
    rests = cresset.fmod(x, y).tolist()
    for (a, b), rest in zip(numbers, rests, strict=True):
        expected = NAN if b == 0 or abs(a) == INF or a != a or b != b else math.fmod(a, b)
        assert same_number(rest, expected), (a, b, rest, expected)


@pytest.mark.parametrize("dtype", [cresset.float32, cresset.float64])
def test_the_next_number_is_the_neighbor(dtype):
    numbers = pairs()
    x, y = (cresset.tensor(list(column), dtype=dtype) for column in zip(*numbers))
    for (a, b), after in zip(numbers, cresset.nextafter(x, y).tolist(), strict=True):
        if dtype == cresset.float64:
            assert same_number(after, math.nextafter(a, b)), (a, b, after)
        elif a == b or a != a or b != b:
            assert same_number(after, b if a == b else NAN), (a, b, after)
        else:
            assert (after > a) == (b > a) and after != a, (a, b, after)
            between = (a + after) / 2 if abs(after) < INF and abs(a) < INF else a
            assert single(between) in (a, after), (a, b, after)


def test_results_do_not_depend_on_layout_size_or_threads():
    base = cresset.linspace(-9, 9, 3 * 1001 * 1000)
    threads = cresset.get_num_threads()
    try:
        for function in (cresset.exp, cresset.tanh, cresset.erf, cresset.nn.functional.gelu):
            whole = function(base)
            cresset.set_num_threads(2 if threads == 1 else 1)
            assert cresset.equal(function(base), whole)
            cresset.set_num_threads(threads)
            assert cresset.equal(cresset.cat([function(part) for part in base.split(100_003)]), whole)
            assert cresset.equal(function(base.view(3, -1).t()), whole.view(3, -1).t())
            assert cresset.equal(function(base[::7]), whole[::7])
    finally:
        cresset.set_num_threads(threads)


PROGRAM = """
import hashlib, cresset, cresset.nn.functional as F
x = cresset.linspace(-20, 20, 4999)
calls = [lambda x: (x / 20).erfinv(), lambda x: cresset.fmod(x, 0.7), lambda x: cresset.nextafter(x, -x), cresset.exp, cresset.log, cresset.tanh, cresset.erf, cresset.sin, cresset.log1p, F.gelu, F.silu,
         lambda x: cresset.softmax(x.view(1, -1), 1), lambda x: cresset.log_softmax(x.view(-1, 1), 0), lambda x: x.to(cresset.float16).float(), lambda x: x.to(cresset.bfloat16).float(),
         *(lambda x, f=f: f(x.double()) for f in (cresset.exp, cresset.sin, cresset.cos, cresset.erf, F.gelu))]
print([hashlib.sha256(bytes(f(x).nan_to_num(7.0).view(cresset.uint8).flatten().tolist())).hexdigest()[:16] for f in calls])
"""  # noqa: E501


def test_every_instruction_set_gives_the_same_bits():
    outputs = {}
    for level in ("baseline", "avx2", "avx512"):
        run = subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env={**os.environ, "CRESSET_ISA": level},
            capture_output=True,
            text=True,
            check=True,
        )
        outputs[level] = run.stdout
    assert len(set(outputs.values())) == 1, outputs


# ---- conversions


def test_conversion_to_half_types_rounds_to_even():
    x = cresset.tensor([1 + 2.0**-11, 1 + 3 * 2.0**-11, 65519.0, 65520.0, 2.0**-25, 2.0**-24 * 1.5, -0.0, INF, NAN] * 9)
    assert x.to(cresset.float16)[:8].tolist() == [1.0, 1 + 2.0**-9, 65504.0, INF, 0.0, 2.0**-23, 0.0, INF]
    y = cresset.tensor([1 + 2.0**-8, 1 + 3 * 2.0**-8, 3.4e38, -0.0, INF] * 9)
    assert y.to(cresset.bfloat16)[:5].tolist() == [1.0, 1 + 2.0**-6, INF, 0.0, INF]
    assert x.to(cresset.float16)[8].isnan() and math.copysign(1, y.to(cresset.bfloat16)[3].item()) == -1


def test_conversion_to_bytes_drops_what_is_above_eight_bits():
    x = cresset.tensor([-1.5, 255.9, 256.0, 257.0, -300.0, 2.0**31, 2.0**40 + 2.0**17, 3e38] * 9)
    assert x.to(cresset.uint8)[:8].tolist() == [255, 255, 0, 1, 212, 0, 0, 0]


def test_half_values_survive_a_trip_through_float():
    every = cresset.arange(-(2**15), 2**15).to(cresset.int16)
    for half in (cresset.float16, cresset.bfloat16):
        values = every.view(half)
        number = ~values.isnan()
        assert cresset.equal(values.float().to(half).view(cresset.int16)[number], every[number])


# ---- rows where they lie, numbers, powers


def test_broadcast_rows_and_slices_give_what_whole_tensors_give():
    a, row, column = cresset.randn(7, 700), cresset.randn(700), cresset.randn(7, 1)
    assert cresset.equal(a + row, a + row.expand(7, 700).contiguous())
    assert cresset.equal(a * column, a * column.expand(7, 700).contiguous())
    assert cresset.equal(
        a[:, 100:500] + row[:400], (a + 0)[:, 100:500].contiguous() + row[:400].expand(7, 400).contiguous()
    )
    wide = cresset.zeros(7, 900)
    wide[:, 50:750].add_(a).mul_(row)
    assert cresset.equal(wide[:, 50:750], a * row) and wide[:, :50].abs().sum() == 0 and wide[:, 750:].abs().sum() == 0


def test_a_large_result_is_the_same_in_parts():
    a, row = cresset.randn(2100, 1024), cresset.randn(1024)
    whole, scaled = a + row, a * 2.5
    grad = cresset.autograd.grad((x := a.clone().requires_grad_()).exp(), x, a)[0]
    for part in (slice(0, 9), slice(1000, 1009), slice(2091, 2100)):
        assert cresset.equal(whole[part], a[part] + row) and cresset.equal(scaled[part], a[part] * 2.5)
        assert cresset.equal(grad[part], a[part] * a[part].exp())


@pytest.mark.parametrize(
    ("exponent", "values"), [(3, [-8.0, 27.0]), (-1, [-0.5, 1 / 3]), (0.5, [NAN, 3**0.5]), (-0.5, [NAN, 3**-0.5])]
)
def test_simple_powers_and_their_derivatives(exponent, values):
    x = cresset.tensor([-2.0, 3.0], dtype=cresset.float64, requires_grad=True)
    y = x**exponent
    assert all(a == pytest.approx(b, nan_ok=True) for a, b in zip(y.tolist(), values, strict=True))
    (slope,) = cresset.autograd.grad(y.sum(), x, create_graph=True)
    assert slope[1].item() == pytest.approx(exponent * 3.0 ** (exponent - 1))
    assert cresset.autograd.grad(slope[1], x)[0][1].item() == pytest.approx(
        exponent * (exponent - 1) * 3.0 ** (exponent - 2)
    )
    assert x.detach().clone().pow_(exponent)[1].item() == pytest.approx(values[1])


def test_powers_of_whole_numbers_stay_whole():
    assert (cresset.tensor([-2, 3]) ** 3).tolist() == [-8, 27] and (cresset.tensor([-2, 3]) ** 3).dtype is cresset.int64
    for whole in (cresset.tensor([2]), cresset.tensor([True])):
        with pytest.raises(RuntimeError, match="negative integer powers"):
            whole**-1


# ---- extremes


@pytest.mark.parametrize("place", [0, 1, 63, 64, 700, 4095, 4096, 9999])
def test_nan_wins_wherever_it_stands(place):
    x = cresset.arange(10_000.0)
    assert x.max() == 9999 and x.min() == 0
    x[place] = NAN
    assert x.max().isnan() and x.min().isnan() and x.view(100, 100).amax(0).isnan().sum() == 1
    assert x.view(100, 100).amax(1).isnan().sum() == 1
