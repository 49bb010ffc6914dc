"""The formulas of pointwise operators, read as numbers, as expressions and as C++; and what the built module makes of
them, at every instruction-set level that this machine runs.
"""

import cmath
import importlib.util
import json
import math
import os
import pathlib
import struct
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def load_generator():
    """native/generate.py as a module: it brings the formulas with it, beside any cresset that is installed."""
    spec = importlib.util.spec_from_file_location("generate_for_tests", ROOT / "native" / "generate.py")
    module = importlib.util.module_from_spec(spec)
    hidden = {name: sys.modules.pop(name) for name in list(sys.modules) if name.split(".")[0] == "cresset"}
    try:
        spec.loader.exec_module(module)
        formulas = {name: value for name, value in sys.modules.items() if name.startswith("cresset.ops.pointwise")}
    finally:
        for name in [name for name in sys.modules if name.split(".")[0] == "cresset"]:
            del sys.modules[name]
        sys.modules.update(hidden)
    return module, formulas


generate, formulas = load_generator()
pointwise = formulas["cresset.ops.pointwise"]
expression = formulas["cresset.ops.pointwise.expression"]
primitives = formulas["cresset.ops.pointwise.primitives"]
definition = formulas["cresset.ops.pointwise.definition"]

OPERATORS = list(pointwise.definitions.values())
INF, NAN = math.inf, math.nan


def only_compiled(operator):
    """Whether the value needs a primitive that Python has not: those are tested in compiled form."""
    return needs_compiled_code(operator.forward("f64" if "f64" in operator.types else operator.types[0]))


def needs_compiled_code(value):
    return any(
        node.op in primitives.registry and primitives.registry[node.op].number is None for node in generate.nodes(value)
    )


def has_derivative_for_numbers(operator):
    if not operator.differentiable or "f64" not in operator.types or not any(operator.has_gradient()):
        return False
    return not any(
        needs_compiled_code(e) for e in (operator.forward("f64"), *operator.backward("f64")) if e is not None
    )


def is_close(a, b, tolerance=1e-12):
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if cmath.isnan(a) or cmath.isnan(b):
        return cmath.isnan(a) and cmath.isnan(b)
    return a == b or abs(a - b) <= tolerance * max(1.0, abs(b))


# ---- the formulas as numbers


@pytest.mark.parametrize("operator", OPERATORS, ids=str)
class TestEveryOperator:
    """What each operator promises by being defined."""

    def test_examples_hold(self, operator):
        if only_compiled(operator):
            assert not operator.examples
            return
        assert operator.examples, f"{operator.name} has no example"
        for *args, expected in operator.examples:
            assert is_close(operator(*args), expected), (
                f"{operator.name}{tuple(args)} = {operator(*args)}, not {expected}"
            )

    def test_documentation_is_a_sentence(self, operator):
        assert operator.doc.endswith((".", "...")), operator.doc
        assert operator.signature.startswith(operator.name + "(Tensor")

    def test_derivative_agrees_with_finite_differences(self, operator):
        if not has_derivative_for_numbers(operator):
            return
        attributes = [ATTRIBUTES.get(operator.name, {}).get(a.name, a.default) for a in operator.attributes]
        checked = 0
        for inputs in sample_inputs(operator):
            output = operator(*inputs, *attributes)
            if not math.isfinite(output):
                continue
            gradients = operator.gradients(1.0, inputs, attributes, output)
            for place, (kind, gradient) in enumerate(zip(operator.kinds, gradients, strict=True)):
                if kind == "b" or gradient is None:
                    continue
                slope = finite_difference(operator, inputs, attributes, place)
                if math.isfinite(slope):
                    assert is_close(gradient, slope, 2e-5), (
                        f"{operator.name}{inputs} by {operator.inputs[place]}: {gradient}, not {slope}"
                    )
                    checked += 1
        assert checked >= 2, f"{operator.name}: no point to check"

    def test_derivative_of_tensors_is_that_of_numbers(self, operator, tensor_operators):
        """Backward of backward calls the same functions with tensors; here stand-ins that know only arithmetic and
        operators.
        """
        if not has_derivative_for_numbers(operator):
            return
        attributes = [ATTRIBUTES.get(operator.name, {}).get(a.name, a.default) for a in operator.attributes]
        for inputs in sample_inputs(operator):
            output = operator(*inputs, *attributes)
            expected = operator.gradients(1.5, inputs, attributes, output)
            boxed = [Boxed(value) for value in inputs]
            for gradient, value in zip(
                operator.gradients(Boxed(1.5), boxed, attributes, Boxed(output)), expected, strict=True
            ):
                assert (gradient is None) == (value is None)
                assert value is None or is_close(unbox(gradient), value)

    def test_only_what_a_gradient_uses_is_needed(self, operator, tensor_operators):
        """An input that is not kept is None; the gradient that does not use it is still there."""
        if not has_derivative_for_numbers(operator):
            return
        inputs = sample_inputs(operator)[0]
        attributes = [ATTRIBUTES.get(operator.name, {}).get(a.name, a.default) for a in operator.attributes]
        output = operator(*inputs, *attributes)
        expected = operator.gradients(1.5, inputs, attributes, output)
        for place, uses in enumerate(operator.uses()):
            if not operator.has_gradient()[place]:
                continue
            kept = [Boxed(value) if name in uses else None for name, value in zip(operator.inputs, inputs, strict=True)]
            gradients = operator.gradients(Boxed(1.5), kept, attributes, Boxed(output) if "output" in uses else None)
            assert is_close(unbox(gradients[place]), expected[place])


ATTRIBUTES = {"threshold": {"threshold": 0.45, "value": 2.0}, "logit": {"eps": None}, "polygamma_elementwise": {"n": 1}}

# Places inside the domain of functions that are not defined everywhere, and off their kinks.
UNIT = [(0.3,), (0.62,), (0.85,)]
SAMPLES = {
    "acosh": [(1.7,), (2.9,)], "binary_cross_entropy_elementwise": [(0.3, 0.2), (0.7, 0.9)],
    "kl_div_elementwise": [(-0.4, 0.3), (-1.2, 0.7)],
    "ndtri": UNIT, "logit": UNIT, "erfinv": UNIT, "asin": UNIT, "acos": UNIT, "atanh": UNIT,
    "log": [(0.3,), (2.7,)], "log2": [(0.3,), (2.7,)], "log10": [(0.3,), (2.7,)], "sqrt": [(0.3,), (2.7,)],
    "rsqrt": [(0.3,), (2.7,)],
    "entr": [(0.3,), (2.7,)], "lgamma": [(0.3,), (2.7,), (-1.4,)], "pow": [(0.7, 1.3), (2.2, -0.6)],
    "xlogy": [(0.7, 1.3), (-2.2, 0.6)],
    "nextafter": [(0.3, 1.0)],
    "poisson_nll_elementwise": [(0.3, 1.2), (1.4, 0.5)],
}  # fmt: skip


def sample_inputs(operator):
    if operator.name in SAMPLES:
        return SAMPLES[operator.name]
    values = [
        (0.37, -0.81, 1.23, 0.58),
        (-1.46, 0.66, 0.29, 1.71),
        (0.92, 2.35, -0.57, 0.33),
        (-0.21, -1.17, 2.05, -0.9),
    ]
    return [
        tuple(bool(v > 0) if kind == "b" else v for kind, v in zip(operator.kinds, row, strict=False)) for row in values
    ]


def finite_difference(operator, inputs, attributes, place, step=1e-5):
    """The slope by central differences, from points near and nearer."""

    def value(shift):
        moved = list(inputs)
        moved[place] += shift
        return operator(*moved, *attributes)

    wide, narrow = ((value(h) - value(-h)) / (2 * h) for h in (step, step / 2))
    return (4 * narrow - wide) / 3


# ---- stand-ins for tensors


class Boxed:
    """A number that hides: it has a tensor's arithmetic and its methods conj and is_complex, and nothing else."""

    def __init__(self, value):
        self.value = value

    def is_complex(self):
        return isinstance(self.value, complex)

    def conj(self):
        return Boxed(self.value.conjugate())


def unbox(value):
    return value.value if isinstance(value, Boxed) else value


def _lift(name):
    # An expression of one node has the number's meaning without Python's exceptions (1 / 0 is inf).
    def method(self, *others):
        values = [float(v) if type(v) is int else v for v in map(unbox, (self, *others))]
        if any(isinstance(v, bool) for v in values):
            return Boxed(getattr(values[0], name)(*values[1:]))
        kinds = ["c128" if isinstance(v, complex) else "f64" for v in values]
        nodes = [expression.variable(f"v{i}", kind) for i, kind in enumerate(kinds)]
        node = getattr(expression.Expression, name)(*nodes)
        return Boxed(primitives.evaluate(node, {f"v{i}": v for i, v in enumerate(values)}))

    return method


for _name in (
    "add",
    "radd",
    "sub",
    "rsub",
    "mul",
    "rmul",
    "truediv",
    "rtruediv",
    "neg",
    "lt",
    "le",
    "gt",
    "ge",
    "eq",
    "ne",
):
    setattr(Boxed, f"__{_name}__", _lift(f"__{_name}__"))
Boxed.__and__ = lambda self, other: Boxed(self.value and unbox(other))
Boxed.__or__ = lambda self, other: Boxed(self.value or unbox(other))
Boxed.__invert__ = lambda self: Boxed(not self.value)


@pytest.fixture
def tensor_operators():
    """Tensors find their operators: here, those of the numbers inside."""

    def lookup(name):
        if name == "zeros_like":  # what a derivative of 0 makes of a gradient
            return lambda grad: Boxed(0.0)
        return lambda *args, **attributes: Boxed(pointwise.definitions[name](*map(unbox, args), **attributes))

    before = definition._tensor_operator
    pointwise.set_tensor_operator(lookup)
    yield
    pointwise.set_tensor_operator(before)


# ---- the formulas as expressions


def test_equal_expressions_are_one():
    x = expression.variable("x", "f32")
    assert (x + 1) * 2 is (x + 1) * 2
    assert (x + 1.0) is (x + 1)
    assert (x + 1) is not (x - 1)


def test_a_shared_part_is_printed_once():
    x = expression.variable("x", "f32")
    square = x * x
    _, lines = formulas["cresset.ops.pointwise.printing"].print_body([("y", square + 1 / square)])
    assert lines == ["const float t1 = x * x;", "y = t1 + 1.0f / t1;"]


def test_what_does_not_change_in_the_loop_is_printed_before_it():
    x, alpha = expression.variable("x", "f64"), expression.variable("alpha", "f64")
    before, lines = formulas["cresset.ops.pointwise.printing"].print_body(
        [("y", x * (1 / alpha))], frozenset({"alpha"})
    )
    assert before == ["const double t1 = 1.0 / alpha;"]
    assert lines == ["y = x * t1;"]


def test_a_formula_cannot_branch_on_a_value():
    x = expression.variable("x", "f32")
    with pytest.raises(TypeError, match="use where"):
        bool(x > 0)


def test_a_fraction_does_not_silently_become_a_whole_number():
    with pytest.raises(TypeError, match="0.5"):
        expression.variable("x", "i64") * 0.5


def test_bool_sum_is_or_and_product_is_and():
    assert pointwise.definitions["add"].forward("b8").op == "or"
    assert pointwise.definitions["mul"].forward("b8").op == "and"
    assert "b8" not in pointwise.definitions["sub"].types


def test_a_gradient_that_is_zero_by_choice_ignores_an_infinite_one():
    relu = pointwise.definitions["relu"]
    (gradient,) = relu.backward("f32")
    assert primitives.evaluate(gradient, {"grad": INF, "output": 0.0}) == 0


def test_uses_names_what_backward_reads():
    uses = {name: pointwise.definitions[name].uses() for name in ("add", "mul", "sigmoid", "div", "where")}
    assert uses == {"add": [[], []], "mul": [["y"], ["x"]], "sigmoid": [["output"]], "div": [["y"], ["x", "y"]],
                    "where": [[], ["condition"], ["condition"]]}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "signature"),
    [("add", "add(Tensor input, Tensor other, *, Scalar alpha=1) -> Tensor"),
     ("clamp", "clamp(Tensor input, Tensor? min=None, Tensor? max=None) -> Tensor"),
     ("logit", "logit(Tensor input, float? eps=None) -> Tensor"),
     ("round", "round(Tensor input, *, int decimals=0) -> Tensor"),
     ("where", "where(Tensor condition, Tensor input, Tensor other) -> Tensor"),
     ("kl_div_elementwise", "kl_div_elementwise(Tensor input, Tensor target, bool log_target=False) -> Tensor")],
)  # fmt: skip
def test_signature(name, signature):
    assert pointwise.definitions[name].signature == signature


# ---- ties, kinks and ends, where PyTorch's choice is one of several


@pytest.mark.parametrize(
    ("name", "inputs", "gradients"),
    [("relu", (0.0,), (0,)), ("abs", (0.0,), (0,)), ("maximum", (2.0, 2.0), (0.5, 0.5)),
        ("minimum", (2.0, 2.0), (0.5, 0.5)),
     ("fmax", (2.0, 2.0), (1, 0)), ("clamp", (1.0, 1.0, 3.0), (1, 0, 0)), ("clamp", (3.0, 1.0, 3.0), (1, 0, 0)),
     ("clamp", (0.0, 1.0, 3.0), (0, 1, 0)), ("clamp", (0.0, 3.0, 1.0), (0, 0, 1)), ("pow", (0.0, 2.0), (0, 0)),
     ("pow", (3.0, 0.0), (0, math.log(3))),
     ("hardtanh", (1.0,), (0,)), ("leaky_relu", (0.0,), (0.01,)), ("atan2", (0.0, 0.0), (0, 0)), ("sinc", (0.0,), (0,)),
     ("hardswish", (-3.0,), (0,)), ("hardswish", (3.0,), (1,)), ("sign", (0.3,), (0,)),
     ("xlogy", (0.0, 0.0), (0, NAN))],
)  # fmt: skip
def test_derivative_at_a_kink(name, inputs, gradients):
    operator = pointwise.definitions[name]
    expressions = operator.backward("f64")
    values = dict(zip(operator.inputs, inputs, strict=True))
    values.update({a.name: a.default for a in operator.attributes}, grad=1.0, output=operator(*inputs))
    got = [primitives.evaluate(e, values) for e in expressions]
    assert all(map(is_close, got, gradients)), got


def test_nan_wins_in_maximum_and_loses_in_fmax():
    maximum, fmax = pointwise.definitions["maximum"], pointwise.definitions["fmax"]
    assert math.isnan(maximum(NAN, 1.0)) and math.isnan(maximum(1.0, NAN))
    assert fmax(NAN, 1.0) == fmax(1.0, NAN) == 1.0


def test_whole_numbers_divide_by_the_rules_of_their_names():
    names = ("div_floor", "div_trunc", "remainder", "fmod")
    assert [pointwise.definitions[name](-7, 2) for name in names] == [-4, -3, 1, -1]
    assert [pointwise.definitions[name](-7.0, 2.0) for name in names] == [-4, -3, 1, -1]


# ---- the formulas as C++


def test_the_generator_gives_the_same_text_twice():
    assert generate.generate() == generate.generate()


def test_the_table_has_every_operator_once():
    text = generate.table_file()
    for operator in OPERATORS:
        assert text.count(f'{{"{operator.name}", ') == 1


LEVELS = ("baseline", "avx2", "avx512")  # those beyond this machine are its best
COMPILED_FAMILIES = ("exponential", "trigonometric", "activation", "special", "polynomial")
DTYPES = {"f32": "float32", "f64": "float64", "b8": "bool"}
PROGRAM = """
import json, sys
import cresset
operators = cresset._native.operators()
for name, types, columns, attributes in json.load(sys.stdin):
    tensors = [cresset.tensor(column, dtype=getattr(cresset, t)) for column, t in zip(columns, types)]
    print(json.dumps(operators[name](*tensors, **attributes).tolist()))
"""


def run_loops(level, loops):
    """What the built module computes at a level, for (operator, compute, columns) each: lists of numbers."""
    calls = [
        (
            operator.name,
            [DTYPES[type] for _, type in generate.Loop(operator, compute).reads],
            columns,
            {a.name: v for a, v in zip(operator.attributes, attribute_values(operator), strict=True)},
        )
        for operator, compute, columns in loops
    ]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        input=json.dumps(calls),
        env={**os.environ, "CRESSET_ISA": level},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


SPECIAL_VALUES = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    -0.5,
    2.0,
    -3.0,
    INF,
    -INF,
    NAN,
    1e-40,
    -1e-40,
    1e-10,
    88.5,
    -88.5,
    -103.0,
    104.0,
    1e5,
    -1e30,
    3e38,
]


def columns_for(loop):
    """Special values and a spread of others: a count that is no multiple of any vector's length."""
    spread = [math.sinh(k / 11) * (-1) ** k for k in range(1, 90)]
    values = SPECIAL_VALUES + spread
    return [values[place:] + values[:place] for place in range(len(loop.reads))]


def compiled_operators():
    return [operator for operator in OPERATORS if operator.family in COMPILED_FAMILIES]


def attribute_values(operator):
    given = ATTRIBUTES.get(operator.name, {})
    return [given.get(a.name, 0 if a.required else a.default) for a in operator.attributes]


def test_every_level_gives_the_same_bits():
    def bits(values):
        return [b"nan" if v != v else struct.pack("d", v) for v in values]

    loops = [
        (operator, loop.compute, columns_for(loop))
        for operator in compiled_operators()
        for loop in generate.loops_of(operator).values()
        if loop.at_every_level and loop.compute in ("f32", "f64")
    ]
    baseline, *others = (run_loops(level, loops) for level in LEVELS)
    assert len(baseline) == len(loops) > 100
    for results in others:
        for (operator, compute, _), expected, got in zip(loops, baseline, results, strict=True):
            assert bits(got) == bits(expected), (operator.name, compute)


def test_compiled_loops_agree_with_the_numbers():
    """The text says what the formula says; and the functions of vector_math.h are what their names say."""
    tolerance, loops = {"f32": 1e-6, "f64": 1e-13}, []
    for operator in compiled_operators():
        if only_compiled(operator) or operator.name in ("digamma", "log_ndtr", "ndtri", "erfinv"):
            continue  # ill-conditioned places: a rounding of the argument shows in the value
        for compute in ("f32", "f64"):
            loop = generate.Loop(operator, compute)
            columns = [[round_to(compute, v) for v in column if abs(v) < 40] for column in columns_for(loop)]
            count = min(map(len, columns))
            loops.append((operator, compute, [column[:count] for column in columns]))
    checked = 0
    for (operator, compute, columns), results in zip(loops, run_loops(LEVELS[-1], loops), strict=True):
        for *args, got in zip(*columns, results, strict=True):
            expected = operator(*args, *attribute_values(operator))
            if abs(expected) < 1e30 and not math.isnan(got):
                assert is_close(got, expected, tolerance[compute] * 4), (
                    f"{operator.name}{tuple(args)}: {got}, not {expected}"
                )
                checked += 1
    assert checked > 5000


def round_to(compute, value):
    return struct.unpack("f", struct.pack("f", value))[0] if compute == "f32" else value


def test_large_angles_are_reduced_without_loss():
    angles = [round_to("f32", v) for v in (1e5, 1e6, 1.5e6, 1e10, 1e22, 3e38, 710.0)]
    (results,) = run_loops("baseline", [(pointwise.definitions["sin"], "f32", [angles])])
    for angle, got in zip(angles, results, strict=True):
        assert abs(got - math.sin(angle)) < 1e-7


ONLY_COMPILED = [
    ("bessel_j0", (1.0,), 0.7651976865579666), ("bessel_j1", (1.0,), 0.4400505857449335),
    ("bessel_y0", (1.0,), 0.08825696421567698),
    ("bessel_y1", (1.0,), -0.7812128213002887), ("zeta", (2.0, 1.0), math.pi**2 / 6),
    ("zeta", (3.0, 2.5), 0.118102025820864),
    ("polygamma_elementwise", (0.5,), math.pi**2 / 2), ("igamma", (1.0, 2.0), 1 - math.exp(-2)),
    ("igammac", (0.5, 2.0), math.erfc(math.sqrt(2))),
    ("igamma", (200.0, 210.0), 0.763969674501154), ("airy_ai", (1.0,), 0.13529241631288147),
    ("airy_ai", (-2.0,), 0.22740742820168557),
    ("chebyshev_polynomial_t", (0.3, 9.0), math.cos(9 * math.acos(0.3))),
    ("chebyshev_polynomial_u", (0.3, 2.0), 4 * 0.09 - 1),
    ("chebyshev_polynomial_v", (0.3, 1.0), -0.4), ("chebyshev_polynomial_w", (0.3, 1.0), 1.6),
    ("shifted_chebyshev_polynomial_t", (0.3, 2.0), 2 * 0.16 - 1), ("hermite_polynomial_h", (0.5, 3.0), -5.0),
    ("hermite_polynomial_he", (0.5, 3.0), -1.375), ("laguerre_polynomial_l", (0.5, 2.0), 0.125),
    ("legendre_polynomial_p", (0.5, 2.0), -0.125),
]  # fmt: skip


def test_functions_that_only_compiled_code_has():
    loops = [(pointwise.definitions[name], "f64", [[value] for value in args]) for name, args, _ in ONLY_COMPILED]
    results = run_loops("baseline", loops)
    for (name, args, expected), (got,) in zip(ONLY_COMPILED, results, strict=True):
        assert is_close(got, expected, 1e-8), (name, args, got)


# ---- the page that shows how to add one


def test_the_page_on_adding_an_operation_shows_one_that_works():
    page = (ROOT / "docs" / "adding_an_op.md").read_text(encoding="utf-8")
    code, printed = (page.split(f"```{language}\n")[1].split("```")[0] for language in ("python", "cpp"))
    names = {
        "pointwise": pointwise.pointwise,
        "sqrt": pointwise.definitions["sqrt"],
        "__name__": "cresset.ops.pointwise.activation",
    }
    try:
        exec(code, names)
        operator = names["squareplus"]
        for *args, expected in operator.examples:
            assert operator(*args) == expected
        (slope,) = operator.gradients(1.0, (0.7,), (4.0,), None)
        assert is_close(slope, finite_difference(operator, (0.7,), (4.0,), 0), 1e-8)
        assert generate.Loop(operator, "f32").text() == printed.split("\n", 1)[1]
    finally:
        del pointwise.definitions["squareplus"]
