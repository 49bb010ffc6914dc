"""The formulas of pointwise operators and the steps of optimizers as CUDA text: what kernels include and call.

A formula becomes a function of one element, printed by the printer of the CPU's loops. It computes as the CPU does when
the kernel is compiled with --fmad=false: what is not fused there must not be here. Special functions of single
precision have formulas of their own, without doubles. The build prints what the package has (native/generate.py); at
run time only the program's own formulas are.
"""

import re

from ..ops.pointwise import stepping  # noqa: F401  (defines the updates)
from ..ops.pointwise.definition import in_single_precision
from ..ops.pointwise.expression import is_complex, leaves
from ..ops.pointwise.loops import Loop, nodes, variables
from ..ops.pointwise.printing import TYPE_NAMES, print_body
from ..ops.pointwise.update import COMPUTES, updates

# The primitives that are not in math.cuh.
SPECIAL = {
    "zeta", "polygamma", "igamma", "igammac", "bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1", "chebyshev_t",
    "chebyshev_u", "chebyshev_v", "chebyshev_w", "hermite_h", "hermite_he", "laguerre_l", "legendre_p",
    "low_chebyshev", "low_hermite_h", "low_hermite_he", "low_laguerre_l", "low_legendre_p",
}  # fmt: skip
COMPLEX = {
    "abs", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "pow", "sin", "cos", "tan", "asin", "acos",
    "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh",
}  # fmt: skip


def formula_source(operator, which, compute):
    """The function `formula` of an operator (itself, or its name; also one of the program's own) or of a gradient.

    Args:
        which: -1 for the formula, else the index of the input whose gradient it is.
        compute: the type to compute in: f32, f64, i64, u64, b8, c64 or c128.

    The function takes what the loop of the CPU reads, in its order, and the attributes:
        RESULT formula(T0 x, T1 y, ..., const Attribute* scalars)
    """
    if isinstance(operator, str):
        # Not at the top: it needs the native module, and the build, which prints the package's own formulas, has none
        # yet.
        from ..ops import formulas

        name, operator = operator, formulas.definition(operator)
        if operator is None:
            raise ValueError(f"formula_source: {name} has no formula")
    place = operator.name if which < 0 else f"the gradient of {operator.name} by input {which}"
    types = operator.types if which < 0 else operator.backward_types
    if compute not in types or (which >= 0 and not operator.has_gradient()[which]):
        raise ValueError(f"formula_source: {place} is not defined on {compute}")
    with in_single_precision():
        loop = Loop(operator, compute, None if which < 0 else which)
    used, result = variables(loop.expression), TYPE_NAMES[loop.result_type]
    parameters = [f"{TYPE_NAMES[type]} {name}" for name, type in loop.reads]
    attributes = []
    for index, attribute in enumerate(loop.attributes):
        if attribute.name in used:
            type = TYPE_NAMES[attribute.type_in(compute)]
            attributes.append(f"const {type} {attribute.name} = attribute<{type}>(scalars[{index}]);")
    alike = frozenset(attribute.name for attribute in loop.attributes)
    # Doubles on the way to a float: its rounding hides how they were rounded.
    fused = ("f64",) if loop.result_type == "f32" else ()
    _, body = print_body(
        [(f"const {result} result", loop.expression)], functions=loop.functions, branches=alike, fused=fused
    )
    return "\n".join([
        *includes([loop.expression]), "",
        f"// {place}",
        f"__device__ __forceinline__ {result} formula({', '.join([*parameters, 'const Attribute* scalars'])}) {{",
        *(f"  {line}" for line in (*attributes, *body)),
        "  return result;", "}", "",
    ])  # fmt: skip


def update_source(name, number, compute):
    """The step of an optimizer in the variant of this number, for parameters that compute in f32 or f64.

    A type and three functions, so that one kernel does it for all elements of all tensors. A block calls `prepare` once
    for a tensor (in one thread, into shared memory) and `update` for each element; `advance` follows once a tensor.
        struct Constants                                              what depends on numbers alone
        void prepare(Constants& constants, const double* numbers)     the group's numbers, then the tensor's singles
        void update(const Constants& constants, T& param, const T& grad, ...)    the variant's tensors, in its order
        void advance(const double* numbers, double* singles)          the new singles
    """
    variants = {variant.number: variant for variant in updates[name].variants()}
    if number not in variants or compute not in COMPUTES:
        raise ValueError(
            f"update_source: {name} has the variants {list(variants)} in {COMPUTES}, not {number} in {compute}"
        )
    variant, type = variants[number], TYPE_NAMES[compute]
    results = {tensor: variant.results[compute][tensor] for tensor in variant.written}
    constant = frozenset((*variant.update.singles, *variant.update.numbers))
    used = set().union(*map(leaves, results.values()))
    before, body = print_body([(f"{tensor}_", value) for tensor, value in results.items()], constant)
    before = [*(line.strip() for line in variant.read_numbers(used)), *before]
    # What the body reads of the lines "const TYPE NAME = VALUE;" before it.
    read = set(re.findall(r"\w+", " ".join(body)))
    declared = [line.removeprefix("const ").partition(" = ")[0].split() for line in before]
    kept = [(type, name) for type, name in declared if name in read]
    tensors = [f"{'' if tensor in results else 'const '}{type}& {tensor}_" for tensor in variant.tensors]
    return "\n".join([
        *includes([*results.values(), *variant.results["f64"].values()]), "",
        f"// {variant.name}",
        "struct Constants {", *(f"  {type} {name};" for type, name in kept), "};",
        "__device__ __forceinline__ void prepare(Constants& constants, const double* numbers) {",
        *(f"  {line}" for line in before), *(f"  constants.{name} = {name};" for _, name in kept), "}",
        f"__device__ __forceinline__ void update(const Constants& constants, {', '.join(tensors)}) {{",
        *(f"  const {type} {name} = constants.{name};" for type, name in kept),
        *(f"  const {type} {tensor} = {tensor}_;" for tensor in variant.tensors if tensor in used),
        *(f"  {line}" for line in body), "}",
        "__device__ __forceinline__ void advance(const double* numbers, double* singles) {",
        *variant.advance_lines(), "}", "",
    ])  # fmt: skip


def includes(expressions):
    """The headers that have the functions of these expressions."""
    headers = {"math.cuh"}
    for expression in expressions:
        for node in nodes(expression):
            if node.op in SPECIAL:
                headers.add("special.cuh")
            elif node.op in COMPLEX and is_complex(node.args[0].type):
                headers.add("complex.cuh")
    return [f'#include "{header}"' for header in ("math.cuh", "special.cuh", "complex.cuh") if header in headers]
