// Elementary functions as inline code without branches, so that a plain loop around them vectorizes.
//
// Single precision: at most 2 units in the last place, right at 0, infinities, nan, denormals and on overflow. What is
// fused is written so, Fma::fma, and contraction is off: every instruction-set level gives the same bits. A function
// that is easier in double precision is computed there. Double precision: exp, log, tanh and a few more are inline; the
// rest call the C library (generate.py knows which). Nothing is fused there, where the baseline would have to call the
// C library for it. Everything is `static` and always inlined: code for one instruction set must never be shared with a
// file compiled for another.
#pragma once
#include <cmath>
#include <cstdint>

#include "base/circular_functions.h"
#include "base/error_function.h"
#include "base/exponentials.h"
#include "base/float_bits.h"

namespace cresset::math {

CRESSET_INLINE float hypot(float x, float y) {
  const double a = x, b = y;
  const float result = static_cast<float>(sqrt(a * a + b * b));
  const float infinity = static_cast<float>(INFINITY);
  return (abs(x) == infinity) | (abs(y) == infinity) ? infinity : result;
}
CRESSET_INLINE double hypot(double x, double y) { return ::hypot(x, y); }
// A long division in double precision: each step takes away the multiple of y that 53 bits of the quotient give,
// exactly, as the product is not rounded; the quotient of two floats has at most 278 bits. What a rounded quotient is
// off by comes back with the next step, or at the end.
template <class Fma = DefaultFma>
CRESSET_INLINE float fmod(float x, float y) {
  if constexpr (__is_same(Fma, SoftwareFma)) return ::fmodf(x, y);
  const double divisor = abs(static_cast<double>(y)), inverse = 1.0 / divisor;
  double rest = abs(static_cast<double>(x));
#pragma GCC unroll 6
  for (int step = 0; step < 6; ++step) rest = Fma::fma(-__builtin_trunc(rest * inverse), divisor, rest);
  rest = rest < 0.0 ? rest + divisor : rest;
  rest = rest >= divisor ? rest - divisor : rest;
  const float result = copysign(static_cast<float>(rest), x);
  return (divisor == static_cast<double>(INFINITY)) & (abs(x) < static_cast<float>(INFINITY)) ? x : result;
}
CRESSET_INLINE double fmod(double x, double y) { return ::fmod(x, y); }
CRESSET_INLINE float nextafter(float x, float y) {
  const uint32_t from = bits(x), sign = bits(y) & (0x80000000u);
  const float beside = from_bits((x < y) == (x > 0) ? from + 1 : from - 1),
              moved = x == 0 ? from_bits(sign | 1u) : beside;
  return (x != x) | (y != y) ? x + y : x == y ? y : moved;
}
CRESSET_INLINE double nextafter(double x, double y) {
  const uint64_t from = bits(x), sign = bits(y) & (uint64_t{1} << 63);
  const double beside = from_bits((x < y) == (x > 0) ? from + 1 : from - 1),
               moved = x == 0 ? from_bits(sign | uint64_t{1}) : beside;
  return (x != x) | (y != y) ? x + y : x == y ? y : moved;
}

}  // namespace cresset::math
