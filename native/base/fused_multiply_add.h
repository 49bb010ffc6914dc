// a * b + c rounded once: exactly defined, so that code that says where it fuses gives the same bits everywhere.
//
// Loops that are compiled for several instruction sets in one file (base/instruction_set.h) get the class as a template
// argument. Files that are compiled once a level take DefaultFma.
#pragma once
#include <cstdint>

namespace cresset {

#define CRESSET_INLINE static inline __attribute__((always_inline))

// An instruction, where the code around it is compiled for processors that have it; else a call of the C library.
struct HardwareFma {
  CRESSET_INLINE float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
  CRESSET_INLINE double fma(double a, double b, double c) { return __builtin_fma(a, b, c); }
};

// For processors without the instruction. A float product is exact in double; its sum with the addend is rounded to
// odd, after which rounding to float is the same as having rounded once. In double the C library does it.
struct SoftwareFma {
  CRESSET_INLINE float fma(float a, float b, float c) {
    const double product = double(a) * double(b), addend = c;
    const double sum = product + addend;
    const double part = sum - product;
    const double rest = (product - (sum - part)) + (addend - part);
    const double error = rest == rest ? rest : 0.0;  // nan where the sum is infinite
    // If the sum is inexact and its last bit even, go one step towards the error. Only with what SSE2 has for 64 bits.
    const auto bits = __builtin_bit_cast(uint64_t, sum), error_bits = __builtin_bit_cast(uint64_t, error);
    const uint64_t magnitude = error_bits << 1;
    const uint64_t step = (magnitude | -magnitude) >> 63 & ~bits;
    const uint64_t towards_zero = (bits ^ error_bits) >> 63;
    return static_cast<float>(__builtin_bit_cast(double, bits + step - 2 * (step & towards_zero)));
  }
  CRESSET_INLINE double fma(double a, double b, double c) { return __builtin_fma(a, b, c); }
};

// CRESSET_LEVEL names the level of a file that is compiled once a level: the baseline of x86-64 has no such
// instruction.
#if defined(CRESSET_LEVEL) && defined(__x86_64__) && !defined(__FMA__)
using DefaultFma = SoftwareFma;
#else
using DefaultFma = HardwareFma;
#endif

}  // namespace cresset
