"""Formulas printed for CUDA: they compile for every card, and give the values that the CPU gives.

Values are computed on the host: g++ compiles the same texts and headers, with the C library in place of CUDA's
    functions.
"""

import shutil

import numpy
import nvrtc
import printed
import pytest
from printed import DTYPES

import cresset
from cresset import _native
from cresset.cuda.printing import formula_source, update_source
from cresset.ops.pointwise import pointwise
from cresset.ops.pointwise.update import updates

OPERATORS = _native.operators()
needs_nvrtc = pytest.mark.skipif(nvrtc.library() is None, reason="needs the package nvidia-cuda-nvrtc")
needs_compiler = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")

# How far apart the values of a formula may be, in units in the last place of the result (of a complex one: of its
# larger part). The C library's functions and those of the CPU's loops are each at most 2 units off, and a formula calls
# a few. Formulas that are not in these tables and only use operations with one right result are equal in every bit.
FEW, FEW_COMPLEX = 4, 8
# Differences of nearly equal numbers: there the unit is that of the largest input or intermediate value that is one.
CANCELLING = {
    "logaddexp": "max(x, y) + log1p(...) near 0",
    "logaddexp2": "max(x, y) + log2(1 + ...) near 0",
    "entr_gradient_x": "-log(x) - 1 near 1/e",
    "digamma": "log(x) - ... near its zero at 1.46",
    "lgamma_gradient_x": "is digamma",
    "i0e_gradient_x": "i1e(x) - i0e(x) for large x",
    "i1e_gradient_x": "i0e(x) - i1e(x) - ... for large x",
    "gelu": "1 + erf(x) for negative x",
    "gelu_gradient_x": "the zero at -0.75",
    "gelu_tanh": "1 + tanh(x) for negative x",
    "gelu_tanh_gradient_x": "1 - tanh(x)^2, and the zero at -0.75",
    "silu_gradient_x": "the zero at -1.28",
    "mish_gradient_x": "1 - tanh(x)^2, and the zero at -1.19",
    "tanhshrink": "x - tanh(x) for small x",
    "tanhshrink_gradient_x": "1 - tanh(x)^2",
    "binary_cross_entropy_elementwise": "a mean of logarithms with weights of both signs",
    "binary_cross_entropy_elementwise_gradient_target": "log(1 - x) - log(x) near 1/2",
    "binary_cross_entropy_with_logits_elementwise": "(1 - target) x + ...",
    "weighted_binary_cross_entropy_with_logits_elementwise": "(1 - target) x + ...",
    "weighted_binary_cross_entropy_with_logits_elementwise_gradient_target": "a sum of two signs",
    "kl_div_elementwise": "target (log(target) - x)",
    "poisson_nll_elementwise": "exp(x) - target x",
    "poisson_nll_elementwise_gradient_x": "exp(x) - target",
    **{
        f"{shifted}chebyshev_polynomial_{kind}": "low degrees near their zeros"
        for kind in "tuvw"
        for shifted in ("", "shifted_")
    },
    "hermite_polynomial_h": "low degrees near their zeros",
    "hermite_polynomial_he": "low degrees near their zeros",
    "laguerre_polynomial_l": "low degrees near their zeros",
    "legendre_polynomial_p": "low degrees near their zeros",
}
# More units, and why.
WIDE = {
    "erf_gradient_x": (8, "a product with a denormal number"),
    "erfc_gradient_x": (8, "a product with a denormal number"),
    "erfinv_gradient_x": (16, "exp of the square of a result with a rounding of its own"),
    "mish_gradient_x": (8, "the same, times x"),
    "gelu_tanh_gradient_x": (32, "the same, times x^3"),
    "airy_ai": (32, "a sine and a cosine that cancel near its zeros"),
    "scaled_modified_bessel_k0": (8, "a sum of two series"),
    "polygamma_elementwise": (8, "powers of a sum that is rounded"),
    "polygamma_elementwise_gradient_x": (8, "the same"),
    "trigamma_gradient_x": (8, "the same"),
    "gamma_density": (512, "exp of a sum of large logarithms"),
    "gamma_density_gradient_y": (512, "the same"),
    "igamma_gradient_y": (512, "exp of a sum of large logarithms"),
    "igammac_gradient_y": (512, "exp of a sum of large logarithms"),
    "pow_gradient_x": (32, "a product with a denormal number"),
    "sinc_gradient_x": (512, "(cos(x) - sinc(x)) / x for small x"),
}
# The view Tensor.real has no need of these as operators with a gradient.
UNCALLED = {"real_part_gradient_x", "imaginary_part_gradient_x"}


def name_of(loop):
    return loop.name.removesuffix(f"_{loop.compute}")


# ---------------------------------------------------------------- compiling


@needs_nvrtc
@pytest.mark.parametrize("compute", DTYPES)
def test_every_formula_and_gradient_compiles(compute):
    assert nvrtc.compile(printed.program(printed.every_loop(compute)), "sm_90", ["--Ofast-compile=max"])


@needs_nvrtc
@pytest.mark.parametrize("architecture", ["sm_75", "sm_80", "sm_100"])
def test_formulas_compile_for_other_cards(architecture):
    loops = [row for compute in DTYPES for row in printed.every_loop(compute)[::40]]
    assert nvrtc.compile(printed.program(loops), architecture, ["--Ofast-compile=max"])


@needs_nvrtc
@pytest.mark.parametrize("compute", ["f32", "f64"])
def test_every_step_compiles(compute):
    assert nvrtc.compile(printed.update_program(compute), "sm_90", ["--Ofast-compile=max"])


def test_a_formula_that_is_not_defined_is_an_error():
    with pytest.raises(ValueError, match="gcd is not defined on f32"):
        formula_source("gcd", -1, "f32")
    with pytest.raises(ValueError, match="the gradient of eq by input 0 is not defined on f32"):
        formula_source("eq", 0, "f32")
    with pytest.raises(ValueError, match="matmul has no formula"):
        formula_source("matmul", -1, "f32")
    with pytest.raises(ValueError, match="sgd has the variants"):
        update_source("sgd", 1, "f32")


def test_operators_of_the_program_are_printed_too():
    @pointwise(types="float")
    def shifted_square(x, shift=1.0):
        return (x + shift) * (x + shift)

    text = formula_source(shifted_square.key, -1, "f32")
    assert "float formula(float x, const Attribute* scalars)" in text
    assert "attribute<float>(scalars[0])" in text


def test_only_formulas_that_need_it_include_the_long_headers():
    assert "special.cuh" not in formula_source("gelu", 0, "f32")
    assert "special.cuh" in formula_source("igamma", -1, "f64")
    assert "complex.cuh" not in formula_source("mul", 0, "c64")
    assert "complex.cuh" in formula_source("exp", -1, "c64")


# ---------------------------------------------------------------- values


@pytest.fixture(scope="module", params=DTYPES)
def compiled(request, tmp_path_factory):
    loops = printed.every_loop(request.param)
    return loops, printed.compile_on_host(printed.loop_program(loops), tmp_path_factory.mktemp(request.param))


def attribute_choices(operator, compute):
    """The defaults, and what the examples give."""
    if operator.name == "polygamma_elementwise":
        return [(1,), (2,), (5,)]
    if operator.name == "round" and compute in ("i64", "u64"):
        return [(0,)]  # whole numbers have no decimals: the CPU refuses them
    required = sum(attribute.required for attribute in operator.attributes)
    given = [
        example[len(operator.inputs) : -1] for example in [*operator.examples, [None] * (len(operator.inputs) + 1)]
    ]
    defaults = [attribute.default for attribute in operator.attributes]
    return list(dict.fromkeys((*some, *defaults[len(some) :]) for some in given if len(some) >= required))


def as_number(attribute, value, compute):
    """What the core gives a loop for None."""
    if value is not None or compute in ("b8", "i64", "u64"):
        return value or 0
    return (
        numpy.copysign(numpy.finfo(DTYPES[compute]).max, attribute.missing)
        if numpy.isinf(attribute.missing)
        else numpy.nan
    )


def inputs_of(operator, compute):
    columns = printed.samples(compute, len(operator.inputs))
    for index, kind in enumerate(operator.kinds):
        if kind == "b":
            columns[index] = numpy.random.default_rng(index).random(len(columns[index])) < 0.5
    keep = numpy.ones(len(columns[0]), bool)
    for column, kind in zip(columns, operator.kinds, strict=True):
        if kind == "d" and compute in ("i64", "u64"):  # division by zero is an error there
            keep &= column != 0
    return dict(zip(operator.inputs, (numpy.ascontiguousarray(column[keep]) for column in columns), strict=True))


def on_cpu(operator, which, loop, values, attributes):
    """The CPU's result; `values` gets what the loop reads beside the inputs."""
    tensors = [cresset.from_numpy(values[name].copy()) for name in operator.inputs]
    if which >= 0:
        tensors[which].requires_grad_()
    names = [attribute.name for attribute in operator.attributes]
    result = OPERATORS[operator.name](*tensors, **dict(zip(names, attributes, strict=True)))
    values["output"] = result.detach().numpy()
    if which < 0:
        return values["output"]
    grad = numpy.resize(printed.samples(loop.reads[0][1], 1, seed=3)[0], len(values["output"]))
    values["grad"] = grad
    return cresset.autograd.grad(result, tensors[which], cresset.from_numpy(grad))[0].numpy()


def parts(array):
    return array.view(array.real.dtype).reshape(-1, 2) if array.dtype.kind == "c" else array[:, None]


def distance(got, expected, beside=()):
    """By how many units in the last place two arrays differ, element by element.

    The unit is that of the largest part of the two, and of the arrays in `beside`. A nan is equal to a nan.
    """
    got_parts, expected_parts = parts(got), parts(expected)
    if got_parts.dtype.kind not in "f":
        return numpy.where((got_parts == expected_parts).all(1), 0.0, numpy.inf)
    info = numpy.finfo(got_parts.dtype)
    same = (got_parts == expected_parts) | (numpy.isnan(got_parts) & numpy.isnan(expected_parts))
    finite = numpy.isfinite(got_parts) & numpy.isfinite(expected_parts)
    sizes = [numpy.abs(parts(array)).astype(numpy.longdouble) for array in (got, expected, *beside)]
    size = numpy.maximum.reduce([numpy.where(numpy.isfinite(one), one, 0).max(1) for one in sizes])
    unit = numpy.maximum(size * numpy.longdouble(info.eps), numpy.longdouble(info.smallest_subnormal))[:, None]
    apart = numpy.abs(got_parts.astype(numpy.longdouble) - expected_parts.astype(numpy.longdouble)) / unit
    return numpy.where(same, 0, numpy.where(finite, apart, numpy.inf)).max(1).astype(float)


def bound_of(operator, which, loop):
    name = name_of(loop)
    if name in WIDE:
        return WIDE[name][0]
    if name not in CANCELLING and printed.is_exact(operator, which, loop):
        return 0
    return FEW_COMPLEX if loop.compute in ("c64", "c128") else FEW


def strain(operator, compute, values):
    """What a complex power adds: exp(y log(x)) has the rounding errors of y log(x), which is why large ones are left
    out.
    """
    if operator.name != "pow" or compute not in ("c64", "c128"):
        return 1.0
    factor = 4 * (1 + numpy.abs(values["exponent"]) * (1 + numpy.abs(numpy.log(values["x"]))))
    compared = (factor < 100) & numpy.isfinite(values.get("grad", 0))
    return numpy.where(compared, factor, numpy.inf)


@needs_compiler
def test_values_agree_with_the_cpu(compiled):
    loops, library = compiled
    wrong = []
    for operator, which, loop in loops:
        if name_of(loop) in UNCALLED:
            continue
        values = inputs_of(operator, loop.compute)
        for attributes in attribute_choices(operator, loop.compute):
            with numpy.errstate(all="ignore"):
                expected = on_cpu(operator, which, loop, values, attributes)
                numbers = [as_number(a, v, loop.compute) for a, v in zip(operator.attributes, attributes, strict=True)]
                inputs = [values[name] for name, _ in loop.reads]
                got = printed.call(getattr(library, loop.name), loop, inputs, numbers)
                assert got.dtype == expected.dtype, loop.name
                beside = [*inputs, numpy.ones_like(got)] if name_of(loop) in CANCELLING else []
                apart = distance(got, expected, beside) / strain(operator, loop.compute, values)
            worst = numpy.nan_to_num(apart).argmax()
            if apart[worst] > bound_of(operator, which, loop):
                at = {name: values[name][worst] for name, _ in loop.reads}
                wrong.append(
                    f"{loop.name}{attributes}: {got[worst]}, on the CPU {expected[worst]}, {apart[worst]:.4g} units "
                    f"apart at {at}"
                )
    assert not wrong, "\n".join(wrong)


def places():
    """Numbers of single precision of both signs: even steps, all sizes, and those beside zeros of some functions."""
    zeros = [
        [zero * (1 + step * 2e-4) for step in range(-50, 50)] for zero in (0.8935770, 1.4616321, 2.4048256, 3.831706)
    ]
    even, sizes = numpy.linspace(1e-4, 12, 12001), numpy.exp(numpy.linspace(-85, 85, 3001))
    positive = numpy.concatenate([even, sizes, *zeros]).astype(numpy.float32)
    return numpy.concatenate([positive, -positive])


@needs_compiler
def test_formulas_of_single_precision_are_a_few_units_off(compiled):
    loops, library = compiled
    wrong = []
    for operator, which, loop in loops:
        if loop.compute != "f32" or operator._single is None or which >= 0 or len(operator.inputs) > 1:
            continue
        x = places()
        for attributes in attribute_choices(operator, "f32"):
            with numpy.errstate(all="ignore"):
                got = printed.call(getattr(library, loop.name), loop, [x], attributes)
                tensor = cresset.from_numpy(x.astype(numpy.float64))
                expected = OPERATORS[operator.name](tensor, *attributes).numpy().astype(numpy.float32)
                apart = distance(got, expected)
            worst = numpy.nan_to_num(apart).argmax()
            if apart[worst] > 8:
                wrong.append(f"{loop.name}{attributes}: {got[worst]}, not {expected[worst]} at {x[worst]!r}")
    assert not wrong, "\n".join(wrong)


# ---------------------------------------------------------------- steps of optimizers


def random_numbers(update, random):
    """A value for each number: yes or no where it is one, else something between 0.1 and 0.9."""
    choices = ("maximize", "decoupled_weight_decay")
    return {name: float(random.integers(2)) if name in choices else random.uniform(0.1, 0.9) for name in update.numbers}


@needs_compiler
@pytest.mark.parametrize("compute", ["f32", "f64"])
def test_steps_have_the_bits_of_the_cpu(compute, tmp_path):
    library, random = printed.compile_on_host(printed.update_loops(compute), tmp_path), numpy.random.default_rng(1)
    for variant in (variant for update in updates.values() for variant in update.variants()):
        for _ in range(4):
            numbers = random_numbers(variant.update, random)
            tensors = {name: random.standard_normal(100).astype(DTYPES[compute]) ** 2 for name in variant.tensors}
            tensors["grad"] -= 0.5
            singles = {name: numpy.array(random.uniform(1, 9), "f4") for name in variant.singles}

            param = cresset.from_numpy(tensors["param"].copy()).requires_grad_()
            param.grad = cresset.from_numpy(tensors["grad"].copy())
            state = {name: cresset.from_numpy(array.copy()) for name, array in (tensors | singles).items()}
            group = {"params": [param]}
            kept = {param: {name: state[name] for name in state if name not in ("param", "grad")}}
            assert _native.update("step", variant.update.name, [(variant.number, numbers, group)], kept) is None
            expected = kept[param] | {"param": param.detach()}

            known = [*numbers.values(), *map(float, singles.values())]
            after = printed.call_update(library, variant, compute, list(tensors.values()), known)
            for single, value in zip(variant.singles, after, strict=True):
                singles[single] = numpy.float32(value)
            for name in (*variant.written, *variant.singles):
                got = (tensors | singles)[name]
                assert numpy.array_equal(got, expected[name].numpy(), equal_nan=True), (variant.name, name)
