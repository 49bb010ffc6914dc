"""The types of kernels: conversions between any two dtypes give what the CPU gives, bit for bit.

Computed on the host, where g++ compiles the same headers. On a card the halves are converted by its own instructions.
"""

import ctypes
import shutil

import numpy
import nvrtc
import printed
import pytest

import cresset

pytestmark = pytest.mark.filterwarnings("ignore:Casting complex values")

DTYPES = {
    "u8": "uint8", "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64", "f16": "float16", "f32": "float32",
    "f64": "float64", "c32": "complex32", "c64": "complex64", "c128": "complex128", "b8": "bool", "bf16": "bfloat16",
    "u16": "uint16", "u32": "uint32", "u64": "uint64", "f8e5m2": "float8_e5m2", "f8e4m3fn": "float8_e4m3fn",
    "f8e5m2fnuz": "float8_e5m2fnuz", "f8e4m3fnuz": "float8_e4m3fnuz", "f8e8m0fnu": "float8_e8m0fnu",
}  # fmt: skip
FLOATING = {"f16", "bf16", "f32", "f64", "c32", "c64", "c128"} | {tag for tag in DTYPES if tag.startswith("f8")}


def program(shape):
    return '#include "types.cuh"\n' + "\n".join(
        shape.format(a=a, b=b) for a in DTYPES for b in DTYPES
    )  # fmt: skip


LOOP = """extern "C" void {a}_to_{b}(const dtype_{a}* a, dtype_{b}* b, long n) {{
  for (long i = 0; i < n; ++i) b[i] = convert<dtype_{b}>(a[i]);
}}"""
KERNEL = """extern "C" __global__ void {a}_to_{b}(const dtype_{a}* a, dtype_{b}* b, long n) {{
  const long i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) b[i] = convert<dtype_{b}>(a[i]);
}}"""


def dtype(tag):
    return getattr(cresset, DTYPES[tag])


def samples(tag):
    """A tensor with what is special in a dtype, and all codes of a narrow one."""
    if tag == "b8":
        return cresset.tensor([False, True])
    size = dtype(tag).itemsize
    if size <= 2:
        return (
            cresset.arange(256**size)
            .to(cresset.int64)
            .to(cresset.uint16 if size == 2 else cresset.uint8)
            .view(dtype(tag))
        )
    if tag in FLOATING:
        special = [0.0, 0.5, 0.99, 1.0, 1.5, 2.5, 126.7, 255.9, 256.0, 40000.0, 65519.0, 65520.0, 1e-7, 6e-8, 448.0,
            460.0, 464.0,
                   57344.0, 61440.0, 2.0**31, 2.0**31 - 200, 2.0**40 + 2**20, 2.0**62, 1e20, 1e30, 3e38,
                   numpy.inf]  # fmt: skip
        random = numpy.random.default_rng(0).standard_normal(2000) * numpy.logspace(-9, 9, 2000)
        values = numpy.array([*special, *(-value for value in special), numpy.nan, *random])
        if "c" not in tag:
            return cresset.from_numpy(values).to(dtype(tag))
        real = {"c32": cresset.float16, "c64": cresset.float32, "c128": cresset.float64}[tag]
        parts = cresset.from_numpy(numpy.stack([values, numpy.roll(values, 7)], 1)).to(real)
        return cresset.view_as_complex(parts)
    info = cresset.iinfo(dtype(tag))
    values = [
        info.min,
        info.max,
        info.max - 1,
        0,
        1,
        2,
        127,
        128,
        255,
        256,
        65535,
        65536,
        2**24 + 1,
        16777219,
        2**30 + 65,
    ]
    values += [2**53 + 1, 2**62 + 2**38 + 1, -1, -129] if size == 8 else []
    return cresset.tensor([value for value in values if value >= info.min], dtype=dtype(tag))


def fits(source, tag):
    """Where a conversion is defined in C++: what is beyond the whole numbers differs from processor to processor."""
    if not (source.is_floating_point() or source.is_complex()) or tag in FLOATING or tag == "b8":
        return cresset.ones(source.shape, dtype=cresset.bool)
    values = (source.real if source.is_complex() else source).to(cresset.float64)
    low, high = {"i32": (-(2.0**31), 2.0**31), "u64": (-(2.0**63), 2.0**64)}.get(tag, (-(2.0**63), 2.0**63))
    return (values >= low) & (values < high)


def codes(tensor):
    return tensor.contiguous().view(cresset.uint8).reshape(tensor.shape[0], -1)


def same(a, b):
    """Equal bits, or both not a number: part by part."""
    if a.is_complex():
        a, b = cresset.view_as_real(a.to(cresset.complex128)), cresset.view_as_real(b.to(cresset.complex128))
        return ((a == b) | (a.isnan() & b.isnan())).all(1)
    equal = (codes(a) == codes(b)).all(1)
    return equal | (a.float().isnan() & b.float().isnan()) if a.is_floating_point() else equal


@pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
def test_conversions_are_those_of_the_cpu(tmp_path):
    library, wrong = printed.compile_on_host(program(LOOP), tmp_path), []
    for a in DTYPES:
        source = samples(a)
        for b in DTYPES:
            expected = source.to(dtype(b))
            got = cresset.zeros(source.shape[0] * dtype(b).itemsize, dtype=cresset.uint8).view(dtype(b))
            pointers = (ctypes.c_void_p(t.data_ptr()) for t in (source, got))
            getattr(library, f"{a}_to_{b}")(*pointers, ctypes.c_long(source.shape[0]))
            bad = (~same(got, expected) & fits(source, b)).nonzero().flatten().tolist()
            if bad:
                at = bad[0]
                wrong.append(f"{a} to {b}: {len(bad)} differ, {codes(source)[at].tolist()} becomes "
                             f"{codes(got)[at].tolist()}, "
                             f"on the CPU {codes(expected)[at].tolist()}")  # fmt: skip
    assert not wrong, "\n".join(wrong)


@pytest.mark.skipif(nvrtc.library() is None, reason="needs the package nvidia-cuda-nvrtc")
@pytest.mark.parametrize("architecture", ["sm_75", "sm_90"])
def test_every_conversion_compiles(architecture):
    assert nvrtc.compile(program(KERNEL), architecture, ["--Ofast-compile=max"])
