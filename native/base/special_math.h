// Functions of the generated loops that have branches or call the C library: whole numbers, gamma and Bessel functions.
//
// Included only by code that is compiled for the baseline instruction set.
#pragma once
#include "base/vector_math.h"

namespace cresset::math {

// ---- whole numbers ----------------------------------------------------------------------------------------------------------------

// Quotient towards zero and remainder. A zero divisor gives 0 (the caller reports it); the one quotient that overflows wraps.
CRESSET_INLINE int64_t quotient(int64_t x, int64_t y) {
  if (y == 0) return 0;
  if (y == -1) return static_cast<int64_t>(-static_cast<uint64_t>(x));
  return x / y;
}
CRESSET_INLINE uint64_t quotient(uint64_t x, uint64_t y) { return y == 0 ? 0 : x / y; }
CRESSET_INLINE int64_t modulo(int64_t x, int64_t y) { return y == 0 || y == -1 ? 0 : x % y; }
CRESSET_INLINE uint64_t modulo(uint64_t x, uint64_t y) { return y == 0 ? 0 : x % y; }

CRESSET_INLINE uint64_t gcd(uint64_t x, uint64_t y) {
  while (y != 0) {
    const uint64_t rest = x % y;
    x = y;
    y = rest;
  }
  return x;
}
CRESSET_INLINE int64_t gcd(int64_t x, int64_t y) {
  return static_cast<int64_t>(gcd(static_cast<uint64_t>(abs(x)), static_cast<uint64_t>(abs(y))));
}

// Shifts by any number of bits: what leaves the 64 bits is lost, a negative count counts as too many.
CRESSET_INLINE int64_t shl(int64_t x, int64_t n) { return n < 0 || n > 63 ? 0 : static_cast<int64_t>(static_cast<uint64_t>(x) << n); }
CRESSET_INLINE uint64_t shl(uint64_t x, uint64_t n) { return n > 63 ? 0 : x << n; }
CRESSET_INLINE int64_t shr(int64_t x, int64_t n) { return x >> (n < 0 || n > 63 ? 63 : n); }
CRESSET_INLINE uint64_t shr(uint64_t x, uint64_t n) { return n > 63 ? 0 : x >> n; }

// x^n by squaring, modulo 2^64; a negative power is 0 unless x is 1 or -1.
CRESSET_INLINE uint64_t pow(uint64_t x, uint64_t n) {
  uint64_t result = 1;
  for (; n != 0; n >>= 1, x *= x) {
    if (n & 1) result *= x;
  }
  return result;
}
CRESSET_INLINE int64_t pow(int64_t x, int64_t n) {
  if (n < 0) return x == 1 ? 1 : x == -1 ? (n & 1 ? -1 : 1) : 0;
  return static_cast<int64_t>(pow(static_cast<uint64_t>(x), static_cast<uint64_t>(n)));
}

// ---- gamma and Bessel functions ---------------------------------------------------------------------------------------------------

CRESSET_INLINE double lgamma(double x) {
  int sign;
  return ::lgamma_r(x, &sign);
}
CRESSET_INLINE float lgamma(float x) { return static_cast<float>(lgamma(static_cast<double>(x))); }

CRESSET_INLINE double bessel_j0(double x) { return ::j0(x); }
CRESSET_INLINE double bessel_j1(double x) { return ::j1(x); }
CRESSET_INLINE double bessel_y0(double x) { return ::y0(x); }
CRESSET_INLINE double bessel_y1(double x) { return ::y1(x); }

}  // namespace cresset::math
