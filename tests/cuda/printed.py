"""Programs of printed formulas, for NVRTC and for g++, and sample values to call them with."""

import ctypes
import functools
import subprocess

import numpy
from nvrtc import KERNELS

from cresset.cuda.printing import formula_source, update_source
from cresset.ops.pointwise import definitions
from cresset.ops.pointwise.definition import in_single_precision
from cresset.ops.pointwise.loops import OPERATIONS, Loop, loops_of, nodes
from cresset.ops.pointwise.printing import TYPE_NAMES
from cresset.ops.pointwise.update import updates

DTYPES = {
    "b8": numpy.bool_, "i64": numpy.int64, "u64": numpy.uint64, "f32": numpy.float32, "f64": numpy.float64,
    "c64": numpy.complex64, "c128": numpy.complex128,
}  # fmt: skip
# Functions whose result is exact: beside + - * / and sqrt, what moves bits and whole numbers.
EXACT = OPERATIONS | {
    "abs", "sqrt", "floor", "ceil", "trunc", "rint", "copysign", "signbit", "fmod", "nextafter", "quotient", "modulo",
    "gcd", "shl", "shr", "real", "imag", "conj", "complex",
}  # fmt: skip

_KERNEL = """extern "C" __global__ void {name}(char* const* p, const Attribute* s, long n) {{
  const long i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {call}
}}"""
_LOOP = """extern "C" void {name}(char* const* p, const Attribute* s, long n) {{
  for (long i = 0; i < n; ++i) {call}
}}"""

_UPDATE_KERNEL = """extern "C" __global__ void {name}(char* const* p, const double* numbers, double* singles, long n) {{
  __shared__ {space}::Constants constants;
  if (threadIdx.x == 0) {space}::prepare(constants, numbers);
  __syncthreads();
  const long i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {call}
  if (i == 0) {space}::advance(numbers, singles);
}}"""
_UPDATE_LOOP = """extern "C" void {name}(char* const* p, const double* numbers, double* singles, long n) {{
  {space}::Constants constants;
  {space}::prepare(constants, numbers);
  for (long i = 0; i < n; ++i) {call}
  {space}::advance(numbers, singles);
}}"""


def every_loop(compute):
    """(operator, which, loop) for each formula and gradient in a compute type; `which` is -1 for the formula."""
    return _every_loop()[compute]


@functools.cache
def _every_loop():
    rows = {compute: [] for compute in DTYPES}
    for operator in definitions.values():
        for (place, compute), loop in loops_of(operator).items():
            if place not in ("numbers", "narrow"):  # the forward formula, as the CPU runs it beside numbers, or narrow
                rows[compute].append((operator, -1 if place == "forward" else place, loop))
    return rows


def is_exact(operator, which, loop: Loop):
    """Whether only operations are used that have one right result (a complex division or modulus has not), the same on
    the CPU.
    """
    with in_single_precision():
        if Loop(operator, loop.compute, None if which < 0 else which).expression is not loop.expression:
            return False
    return all(
        node.op in EXACT and not (node.op in ("abs", "sqrt", "div") and node.args[0].type in ("c64", "c128"))
        for node in nodes(loop.expression)
    )


def program(loops, shape=_KERNEL):
    """One text with a kernel for each (operator, which, loop), named as the loop."""
    headers, parts = set(), []
    for number, (operator, which, loop) in enumerate(loops):
        lines = formula_source(operator, which, loop.compute).splitlines()
        headers.update(line for line in lines if line.startswith("#"))
        body = "\n".join(line for line in lines if not line.startswith("#"))
        reads = [f"reinterpret_cast<const {TYPE_NAMES[t]}*>(p[{k}])[i]" for k, (_, t) in enumerate(loop.reads, 1)]
        result = f"reinterpret_cast<{TYPE_NAMES[loop.result_type]}*>(p[0])[i]"
        call = f"{result} = formula{number}::formula({', '.join([*reads, 's'])});"
        parts += [f"namespace formula{number} {{{body}\n}}", shape.format(name=loop.name, call=call)]
    return "\n".join([*sorted(headers), *parts])


def update_program(compute, shape=_UPDATE_KERNEL):
    """One text with a kernel for each variant of each update."""
    headers, parts = set(), []
    for variant in (variant for update in updates.values() for variant in update.variants()):
        lines = update_source(variant.update.name, variant.number, compute).splitlines()
        headers.update(line for line in lines if line.startswith("#"))
        body, space = "\n".join(line for line in lines if not line.startswith("#")), f"of_{variant.name}"
        tensors = [f"reinterpret_cast<{TYPE_NAMES[compute]}*>(p[{k}])[i]" for k in range(len(variant.tensors))]
        call = f"{space}::update({', '.join(['constants', *tensors])});"
        parts += [
            f"namespace {space} {{{body}\n}}",
            shape.format(name=f"{variant.name}_{compute}", space=space, call=call),
        ]
    return "\n".join([*sorted(headers), *parts])


def compile_on_host(source, folder):
    """The program compiled by g++, where __device__ means nothing: a library to call."""
    path = folder / "program.so"
    command = [
        "g++", "-std=c++20", "-O0", "-ffp-contract=off", "-shared", "-fPIC", "-DCRESSET_EMULATED", "-D__device__=",
        "-D__forceinline__=inline", f"-I{KERNELS}", "-x", "c++", "-", "-o", str(path),
    ]  # fmt: skip
    subprocess.run(command, input=source, text=True, check=True)
    return ctypes.CDLL(str(path))


def loop_program(loops):
    return program(loops, _LOOP)


def update_loops(compute):
    return update_program(compute, _UPDATE_LOOP)


class Attribute(ctypes.Structure):
    _fields_ = [("real", ctypes.c_double), ("imag", ctypes.c_double), ("integer", ctypes.c_int64)]


def call(function, loop, inputs, attributes):
    """The values of a compiled loop. `inputs` are arrays in the order of loop.reads."""
    result = numpy.zeros(len(inputs[0]), DTYPES[loop.result_type])
    arrays = [result, *inputs]
    pointers = (ctypes.c_void_p * len(arrays))(*(array.ctypes.data for array in arrays))
    scalars = (Attribute * 4)(*(Attribute(complex(v).real, complex(v).imag, _whole(v)) for v in attributes))
    function(pointers, scalars, ctypes.c_long(len(result)))
    return result


def call_update(library, variant, compute, tensors, numbers):
    """Changes the arrays as the step does; gives the new singles."""
    pointers = (ctypes.c_void_p * len(tensors))(*(array.ctypes.data for array in tensors))
    known = (ctypes.c_double * len(numbers))(*numbers)
    singles = (ctypes.c_double * 3)(*numbers[len(variant.update.numbers) :])
    getattr(library, f"{variant.name}_{compute}")(pointers, known, singles, ctypes.c_long(len(tensors[0])))
    return list(singles)[: len(variant.singles)]


def _whole(value):
    return int(value) if not isinstance(value, complex) and numpy.isfinite(value) else 0


def samples(compute, count, seed=0):
    """`count` arrays of one length: all that is special, in every combination of two, and random numbers."""
    random = numpy.random.default_rng(seed)
    if compute == "b8":
        special, drawn = numpy.array([False, True]), random.random((count, 40)) < 0.5
    elif compute in ("i64", "u64"):
        info = numpy.iinfo(DTYPES[compute])
        special = numpy.array([0, 1, 2, 3, 7, 63, 64, 1000, info.max, info.max - 1, 2**40], DTYPES[compute])
        if compute == "i64":
            special = numpy.concatenate([special, -special, [info.min]])
        drawn = random.integers(-20 if compute == "i64" else 0, 20, (count, 300)).astype(DTYPES[compute])
    else:
        real = numpy.float32 if compute in ("f32", "c64") else numpy.float64
        info = numpy.finfo(real)
        special = [0.0, 0.25, 0.5, 1.0, 1.5, 3.0, 11.3, 0.001, 90.5, 1e5, 1e-20, 1e20, info.tiny,
            info.smallest_subnormal,
                   info.max, numpy.inf]  # fmt: skip
        special = numpy.array([*special, *(-v for v in special), numpy.nan], real)
        drawn = random.standard_normal((count, 2, 600)) * numpy.repeat([1.0, 0.1, 20.0], 200)
        if compute in ("c64", "c128"):
            special = special[[0, 3, 4, 6, 8, 12, 15, 16, 18, 19, 23, 31, 32]]
            special = numpy.stack(numpy.meshgrid(special, special), -1).reshape(-1, 2).view(DTYPES[compute])[:, 0]
            drawn = drawn[:, 0] + 1j * drawn[:, 1]
        else:
            drawn = drawn[:, 0]
    first = numpy.repeat(special, len(special)) if count > 1 else special
    columns = [first, *(numpy.tile(special, len(special) * k)[: len(first)] for k in range(1, count))]
    if count > 2:  # more of them in other orders
        columns[2:] = [random.permutation(column) for column in columns[2:]]
    return [
        numpy.ascontiguousarray(numpy.concatenate([column, more]).astype(DTYPES[compute]))
        for column, more in zip(columns, drawn, strict=True)
    ]
