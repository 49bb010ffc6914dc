// What the functions of vector_math.h are made of: the bits and exponents of floats, rounding to whole numbers,
// polynomials.
#pragma once
#include <cstdint>

#include "base/fused_multiply_add.h"

namespace cresset::math {

// ---- bits and exponents ----

CRESSET_INLINE uint32_t bits(float x) { return __builtin_bit_cast(uint32_t, x); }
CRESSET_INLINE uint64_t bits(double x) { return __builtin_bit_cast(uint64_t, x); }
CRESSET_INLINE float from_bits(uint32_t b) { return __builtin_bit_cast(float, b); }
CRESSET_INLINE double from_bits(uint64_t b) { return __builtin_bit_cast(double, b); }

// Adding 1.5 * 2^23 (or 2^52) to a number rounds it to a whole number, which then stands in the low bits of the sum.
inline constexpr float kRound32 = 12582912.0f;
inline constexpr double kRound64 = 6755399441055744.0;

// 2^n for a whole number n given as a float, -126 <= n <= 127.
CRESSET_INLINE float power_of_two(float n) { return from_bits(bits(n + (kRound32 + 127.0f)) << 23); }
CRESSET_INLINE double power_of_two(double n) { return from_bits(bits(n + (kRound64 + 1023.0)) << 52); }

// x * 2^n for whole n: in two steps, so that results below the normal numbers and above the largest come out right.
CRESSET_INLINE float scale_by_power(float x, float n) {
  const float half = (n * 0.5f + kRound32) - kRound32;
  return x * power_of_two(half) * power_of_two(n - half);
}
CRESSET_INLINE double scale_by_power(double x, double n) {
  const double half = (n * 0.5 + kRound64) - kRound64;
  return x * power_of_two(half) * power_of_two(n - half);
}

CRESSET_INLINE float abs(float x) { return __builtin_fabsf(x); }
CRESSET_INLINE double abs(double x) { return __builtin_fabs(x); }
// Whole numbers wrap around modulo 2^64; in C++ only the unsigned ones may.
CRESSET_INLINE int64_t add(int64_t x, int64_t y) {
  return static_cast<int64_t>(static_cast<uint64_t>(x) + static_cast<uint64_t>(y));
}
CRESSET_INLINE int64_t sub(int64_t x, int64_t y) {
  return static_cast<int64_t>(static_cast<uint64_t>(x) - static_cast<uint64_t>(y));
}
CRESSET_INLINE int64_t mul(int64_t x, int64_t y) {
  return static_cast<int64_t>(static_cast<uint64_t>(x) * static_cast<uint64_t>(y));
}
CRESSET_INLINE int64_t neg(int64_t x) { return static_cast<int64_t>(-static_cast<uint64_t>(x)); }
CRESSET_INLINE int64_t abs(int64_t x) { return x < 0 ? neg(x) : x; }
// Of a narrow type what is above it is dropped: the same low bits, whatever the sign.
template <typename Narrow>
CRESSET_INLINE Narrow add(Narrow x, Narrow y) {
  return static_cast<Narrow>(uint32_t{x} + uint32_t{y});
}
template <typename Narrow>
CRESSET_INLINE Narrow sub(Narrow x, Narrow y) {
  return static_cast<Narrow>(uint32_t{x} - uint32_t{y});
}
template <typename Narrow>
CRESSET_INLINE Narrow mul(Narrow x, Narrow y) {
  return static_cast<Narrow>(uint32_t{x} * uint32_t{y});
}
template <typename Narrow>
CRESSET_INLINE Narrow neg(Narrow x) {
  return static_cast<Narrow>(-uint32_t{x});
}
CRESSET_INLINE float copysign(float x, float y) { return __builtin_copysignf(x, y); }
CRESSET_INLINE double copysign(double x, double y) { return __builtin_copysign(x, y); }
CRESSET_INLINE bool signbit(float x) { return bits(x) >> 31 != 0; }
CRESSET_INLINE bool signbit(double x) { return bits(x) >> 63 != 0; }
CRESSET_INLINE float sqrt(float x) { return __builtin_sqrtf(x); }
CRESSET_INLINE double sqrt(double x) { return __builtin_sqrt(x); }

// ---- rounding ----

#if defined(__SSE4_1__) || defined(__aarch64__)  // an instruction each
CRESSET_INLINE float rint(float x) { return __builtin_rintf(x); }
CRESSET_INLINE double rint(double x) { return __builtin_rint(x); }
CRESSET_INLINE float floor(float x) { return __builtin_floorf(x); }
CRESSET_INLINE double floor(double x) { return __builtin_floor(x); }
CRESSET_INLINE float ceil(float x) { return __builtin_ceilf(x); }
CRESSET_INLINE double ceil(double x) { return __builtin_ceil(x); }
CRESSET_INLINE float trunc(float x) { return __builtin_truncf(x); }
CRESSET_INLINE double trunc(double x) { return __builtin_trunc(x); }
#else
// The nearest whole number, halves to even: every number of size 2^23 (2^52) or more is whole already.
CRESSET_INLINE float rint(float x) {
  const float whole = copysign((abs(x) + 8388608.0f) - 8388608.0f, x);
  return abs(x) < 8388608.0f ? whole : x;
}
CRESSET_INLINE double rint(double x) {
  const double whole = copysign((abs(x) + 4503599627370496.0) - 4503599627370496.0, x);
  return abs(x) < 4503599627370496.0 ? whole : x;
}
CRESSET_INLINE float floor(float x) {
  const float whole = rint(x);
  return copysign(whole > x ? whole - 1.0f : whole, x);
}
CRESSET_INLINE double floor(double x) {
  const double whole = rint(x);
  return copysign(whole > x ? whole - 1.0 : whole, x);
}
CRESSET_INLINE float ceil(float x) {
  const float whole = rint(x);
  return copysign(whole < x ? whole + 1.0f : whole, x);
}
CRESSET_INLINE double ceil(double x) {
  const double whole = rint(x);
  return copysign(whole < x ? whole + 1.0 : whole, x);
}
CRESSET_INLINE float trunc(float x) { return copysign(floor(abs(x)), x); }
CRESSET_INLINE double trunc(double x) { return copysign(floor(abs(x)), x); }
#endif

// A number taken apart: n times a constant, n whole, and the rest r.
struct Reduced32 {
  float n, r;
};
struct Reduced64 {
  double n, r;
};
// A number as a sum of two, of which the second is what rounding took from the first.
struct Pair64 {
  double high, low;
};

// ---- polynomials: c0 + c1 x + c2 x^2 + ... ----

template <typename T>
CRESSET_INLINE T polynomial(T, T c0) {
  return c0;
}
template <typename T, typename... More>
CRESSET_INLINE T polynomial(T x, T c0, T c1, More... more) {
  return c0 + x * polynomial(x, c1, more...);
}
// The same by even and odd powers apart: two chains of half the length, which a sixth of exp's time was waiting for.
template <typename T>
CRESSET_INLINE T every_other_term(T, T c0) {
  return c0;
}
template <typename T>
CRESSET_INLINE T every_other_term(T, T c0, T) {
  return c0;
}
template <typename T, typename... More>
CRESSET_INLINE T every_other_term(T square, T c0, T, More... more) {
  return c0 + square * every_other_term(square, more...);
}
template <typename T, typename... More>
CRESSET_INLINE T long_polynomial(T x, T c0, More... more) {
  const T square = x * x;
  return every_other_term(square, c0, more...) + x * every_other_term(square, more...);
}
// In single precision, each step rounded once.
template <class Fma>
CRESSET_INLINE float fused_polynomial(float, float c0) {
  return c0;
}
template <class Fma, typename... More>
CRESSET_INLINE float fused_polynomial(float x, float c0, float c1, More... more) {
  return Fma::fma(x, fused_polynomial<Fma>(x, c1, more...), c0);
}

}  // namespace cresset::math
