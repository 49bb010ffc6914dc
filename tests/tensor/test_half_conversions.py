"""float16 and bfloat16 to float and back: to the nearest, ties to even, by whatever instructions the processor has."""

import os
import subprocess
import sys

import pytest

PROGRAM = """
import math, random, struct
import cresset

random.seed(5)

def floats(bits):
    return cresset.tensor(bits, dtype=cresset.int64).to(cresset.int32).view(cresset.float32)

def bits_of(x, width):
    return [b % (1 << width) for b in x.view(cresset.int16 if width == 16 else cresset.int32).tolist()]

def float_bits(x):
    return struct.unpack("<I", struct.pack("<f", x))[0]

def as_float16(x):
    if math.isnan(x):
        return (0x8000 if math.copysign(1, x) < 0 else 0) | 0x7E00
    try:
        return struct.unpack("<H", struct.pack("<e", x))[0]
    except OverflowError:
        return 0x7C00 if x > 0 else 0xFC00

def as_bfloat16(bits):
    if bits & 0x7FFFFFFF > 0x7F800000:
        return 0x7FC0
    return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16

# Each float16 there is.
patterns = cresset.arange(65536).to(cresset.int16)
wide = bits_of(patterns.view(cresset.float16).to(cresset.float32), 32)
for half, found in enumerate(wide):
    value = struct.unpack("<e", struct.pack("<H", half))[0]
    if math.isnan(value):
        assert found == (half & 0x8000) << 16 | 0x7FC00000 | (half & 0x3FF) << 13, hex(half)
    else:
        assert found == float_bits(value), hex(half)
assert bits_of(patterns.view(cresset.bfloat16).to(cresset.float32), 32) == [b << 16 for b in range(65536)]

# Each of them again, what lies between two of them, and the floats next to that.
between = [b + d for b in wide if b & 0x7FFFFFFF < 0x7F800000 for d in (-1, 0, 1, 0xFFF, 0x1000, 0x1001)]
between = [b % (1 << 32) for b in between] + [0x7F800000, 0xFF800000, 0x7FC00000, 0xFFC12345, 0x7F812345, 0x477FF000]
narrow = bits_of(floats(between).to(cresset.float16), 16)
for bits, found in zip(between, narrow):
    value = struct.unpack("<f", struct.pack("<I", bits))[0]
    assert found == as_float16(value), (hex(bits), hex(found))

# Ordinary numbers with one of another kind among them, at each place of a vector, and numbers at random.
others = [1, 0x7FFF, 0x8000, 0x8001, 0x18000, 0x7FFFFF, 0x80000001, 0x7F800000, 0xFF800000, 0x7F800001, 0xFFFFFFFF, 0]
many = []
for place in range(64):
    many += [float_bits(random.uniform(-9, 9)) for _ in range(64)]
    many[-64 + place] = others[place % len(others)]
many += [random.getrandbits(32) for _ in range(20000)] + [random.getrandbits(23) for _ in range(1000)]
many += [0x7F7F7FFF, 0x7F7F8000, 0xFF7FFFFF, 0x3F808000, 0x3F818000]
for at in (0, 1, 7):
    for bits, found in zip(many[at:], bits_of(floats(many[at:]).to(cresset.bfloat16), 16)):
        assert found == as_bfloat16(bits), (hex(bits), hex(found))
print("right")
"""


@pytest.mark.parametrize("level", ["baseline", "avx2", "avx512"])
def test_every_half_and_what_lies_between(level):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env={**os.environ, "CRESSET_ISA": level}, capture_output=True, text=True
    )
    assert done.stdout == "right\n", done.stderr
