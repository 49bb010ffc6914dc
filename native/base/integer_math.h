// Functions of whole numbers that C++ has no operator for, or one that is not defined everywhere.
//
// CUDA kernels include this file too: cresset/cuda/kernels/math.cuh.
#pragma once
#ifndef CRESSET_KERNEL
#include "base/vector_math.h"
#endif

namespace cresset::math {

// Quotient towards zero and remainder. A zero divisor gives 0 (the caller reports it); the one quotient that overflows
// wraps.
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
CRESSET_INLINE int64_t shl(int64_t x, int64_t n) {
  return n < 0 || n > 63 ? 0 : static_cast<int64_t>(static_cast<uint64_t>(x) << n);
}
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

}  // namespace cresset::math
