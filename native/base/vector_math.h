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

// ---- polynomials: c0 + c1 x + c2 x^2 + ... ----

template <typename T>
CRESSET_INLINE T polynomial(T, T c0) {
  return c0;
}
template <typename T, typename... More>
CRESSET_INLINE T polynomial(T x, T c0, T c1, More... more) {
  return c0 + x * polynomial(x, c1, more...);
}
// The same in single precision, each step rounded once.
template <class Fma>
CRESSET_INLINE float fused_polynomial(float, float c0) {
  return c0;
}
template <class Fma, typename... More>
CRESSET_INLINE float fused_polynomial(float x, float c0, float c1, More... more) {
  return Fma::fma(x, fused_polynomial<Fma>(x, c1, more...), c0);
}

// ---- exponentials ----

// x = n ln 2 + r with |r| <= ln(2) / 2; n ln 2 is subtracted in two parts. In double the first product is exact; in
// single precision the fused difference is.
inline constexpr float kLog2E = 1.44269504f, kLn2High = 0.693147182f, kLn2Low = -1.90465421e-9f;
struct Reduced32 {
  float n, r;
};
template <class Fma = DefaultFma>
CRESSET_INLINE Reduced32 reduce_by_ln2(float x) {
  const float n = Fma::fma(x, kLog2E, kRound32) - kRound32;
  return {n, Fma::fma(n, -kLn2Low, Fma::fma(n, -kLn2High, x))};
}
struct Reduced64 {
  double n, r;
};
CRESSET_INLINE Reduced64 reduce_by_ln2(double x) {
  const double n = (x * 1.4426950408889634 + kRound64) - kRound64;
  return {n, (x - n * 0.6931471803691238) - n * 1.9082149292705877e-10};
}

// (exp(r) - 1 - r) / r^2 for |r| <= ln(2) / 2
template <class Fma = DefaultFma>
CRESSET_INLINE float exp_tail(float r) {
  return fused_polynomial<Fma>(r, 0.499999940f, 0.166665211f, 0.0416682921f, 0.00836872123f, 0.00138187420f);
}
// exp(r) for |r| <= ln(2) / 2
template <class Fma = DefaultFma>
CRESSET_INLINE float exp_kernel(float r) {
  return Fma::fma(r, Fma::fma(r, exp_tail<Fma>(r), 1.0f), 1.0f);
}
CRESSET_INLINE double exp_tail(double r) {
  return polynomial(r, 0.5000000000000010651, 0.1666666666666640993, 0.04166666666652978020, 0.008333333333495512952,
                    0.001388888894375726094, 0.0001984126950531575232, 2.480149294597547979e-5, 2.755758675242567968e-6,
                    2.763030906943137646e-7, 2.500014639539292172e-8);
}
// The same to 10 digits: enough for a result in single precision.
CRESSET_INLINE double exp_tail_short(double r) {
  return polynomial(r, 0.499999998784044637, 0.166666659519330425, 0.0416668066956491525, 0.00833424913365932343,
                    0.00138777917813850697, 0.000182926424310094492);
}

// x 2^n, given 2^23 1.5 + 254 + n for -150 <= n <= 128, as it comes from rounding: in two steps, whose exponents are
// each half of n + 254. All results from the smallest denormal to infinity come out right.
inline constexpr float kRoundBiased32 = kRound32 + 254.0f;
CRESSET_INLINE float scale_by_biased(float x, float biased) {
  const uint32_t low = bits(biased) >> 1, high = bits(biased) - low;
  return x * from_bits(low << 23) * from_bits(high << 23);
}

template <class Fma = DefaultFma>
CRESSET_INLINE float exp(float x) {
  const float above = x < -104.0f ? -104.0f : x, clamped = above > 89.0f ? 89.0f : above;
  const float biased = Fma::fma(clamped, kLog2E, kRoundBiased32), n = biased - kRoundBiased32;
  const float r = Fma::fma(n, -kLn2Low, Fma::fma(n, -kLn2High, clamped));
  return scale_by_biased(exp_kernel<Fma>(r), biased);
}
CRESSET_INLINE double exp(double x) {
  x = x < -746.0 ? -746.0 : x;
  x = x > 710.0 ? 710.0 : x;
  const auto [n, r] = reduce_by_ln2(x);
  return scale_by_power(1.0 + (r + r * r * exp_tail(r)), n);
}

// For loops over both types.
template <class Fma>
CRESSET_INLINE double exp(double x) {
  return exp(x);
}

// exp(x) for |x| < 700 to 10 digits.
CRESSET_INLINE double exp_short(double x) {
  const auto [n, r] = reduce_by_ln2(x);
  return (1.0 + (r + r * r * exp_tail_short(r))) * power_of_two(n);
}

template <class Fma = DefaultFma>
CRESSET_INLINE float exp2(float x) {
  const float above = x < -150.0f ? -150.0f : x, clamped = above > 128.0f ? 128.0f : above;
  const float biased = clamped + kRoundBiased32, r = (clamped - (biased - kRoundBiased32)) * 0.693147181f;
  return scale_by_biased(exp_kernel<Fma>(r), biased);
}
CRESSET_INLINE double exp2(double x) { return ::exp2(x); }

// exp(x) - 1 = 2^n (exp(r) - 1 + (1 - 2^-n)): nothing cancels when n is 0.
template <class Fma = DefaultFma>
CRESSET_INLINE float expm1(float x) {
  const float above = x < -20.0f ? -20.0f : x, clamped = above > 89.0f ? 89.0f : above;
  const auto [n, r] = reduce_by_ln2<Fma>(clamped);
  const float tail = Fma::fma(r * r, exp_tail<Fma>(r), r);
  const float inverse = power_of_two(-(n > 30.0f ? 30.0f : n));
  const float result = scale_by_power(tail + (1.0f - inverse), n);
  return x == 0.0f ? x : result;
}
CRESSET_INLINE double expm1(double x) {
  const double clamped_below = x < -50.0 ? -50.0 : x;
  const double clamped = clamped_below > 710.0 ? 710.0 : clamped_below;
  const double n = (clamped * 1.4426950408889634 + kRound64) - kRound64;
  const double high = clamped - n * 0.6931471803691238, low = n * 1.9082149292705877e-10;
  const double r = high - low,
               rest = (high - r) - low;  // what r lost to rounding counts when exp(r) - 1 is near 2^-n - 1
  const double tail = r + (r * r * exp_tail(r) + rest);
  const double inverse = power_of_two(-(n > 60.0 ? 60.0 : n));
  const double result = scale_by_power(tail + (1.0 - inverse), n);
  return x == 0.0 ? x : result;
}

// ---- logarithms ----

// x = m 2^e with sqrt(1/2) <= m < sqrt(2), for positive finite x.
struct Split32 {
  float m, e;
};
CRESSET_INLINE Split32 split(float x) {
  const bool small = x < 1.17549435e-38f;  // below the normal numbers: shift up first
  const float scaled = small ? x * 8388608.0f : x;
  const int32_t offset = static_cast<int32_t>(bits(scaled) - 0x3f3504f3u);
  const int32_t e = offset >> 23;
  return {from_bits(bits(scaled) - (static_cast<uint32_t>(e) << 23)), static_cast<float>(e) - (small ? 23.0f : 0.0f)};
}
inline constexpr uint64_t kSqrtHalf64 = 0x3fe6a09e667f3bcd, kExponentBias = 2048;
struct Split64 {
  double m, e;
};
CRESSET_INLINE Split64 split(double x) {
  const bool small = x < 2.2250738585072014e-308;
  const double scaled = small ? x * 4503599627370496.0 : x;
  // The exponent, kept positive by a bias, becomes a double by way of the low bits of 2^52.
  const uint64_t biased = (bits(scaled) - kSqrtHalf64 + (kExponentBias << 52)) >> 52;
  const double e = from_bits(biased | bits(4503599627370496.0)) - (4503599627370496.0 + 2048.0);
  return {from_bits(bits(scaled) - ((biased - kExponentBias) << 52)), e - (small ? 52.0 : 0.0)};
}

// log(1 + f) for sqrt(1/2) <= 1 + f < sqrt(2) is f - log_tail(f)
template <class Fma = DefaultFma>
CRESSET_INLINE float log_tail(float f) {
  const float p = fused_polynomial<Fma>(f, 0.333333313f, -0.250008196f, 0.200012416f, -0.166234091f, 0.142015830f,
                                        -0.131596163f, 0.127621785f, -0.0763635188f);
  return f * f * Fma::fma(-f, p, 0.5f);
}
// log(1 + f) + e ln 2
template <class Fma = DefaultFma>
CRESSET_INLINE float log_of_parts(float f, float e) {
  return Fma::fma(e, kLn2High, Fma::fma(e, kLn2Low, f - log_tail<Fma>(f)));
}
// log(1 + f) with s = f / (2 + f) is 2 s + s^3 R(s^2) = f - s (f - s^2 R).
CRESSET_INLINE double log_tail(double f) {
  const double s = f / (2.0 + f), z = s * s;
  const double r =
      polynomial(z, 0.6666666666666734633, 0.3999999999941281002, 0.2857142874288645439, 0.2222219851393471524,
                 0.1818356780356478156, 0.1531395185285092079, 0.1479703059569367462);
  return s * (f - z * r);
}

template <typename T>
CRESSET_INLINE T log_at_edges(T x, T result) {
  const T infinity = static_cast<T>(INFINITY), nan = static_cast<T>(NAN);
  const T positive = x < infinity ? result : x;  // infinity and nan stay
  const T zero = x == T(0) ? -infinity : nan;
  return x <= T(0) ? zero : positive;
}

template <class Fma = DefaultFma>
CRESSET_INLINE float log(float x) {
  const auto [m, e] = split(x);
  return log_at_edges(x, log_of_parts<Fma>(m - 1.0f, e));
}
CRESSET_INLINE double log(double x) {
  const auto [m, e] = split(x);
  const double f = m - 1.0;
  return log_at_edges(x, e * 0.6931471803691238 + (f - (log_tail(f) - e * 1.9082149292705877e-10)));
}

// log(x) for positive normal x to 10 digits.
CRESSET_INLINE double log_short(double x) {
  const uint64_t biased = (bits(x) - kSqrtHalf64 + (kExponentBias << 52)) >> 52;
  const double e = from_bits(biased | bits(4503599627370496.0)) - (4503599627370496.0 + 2048.0);
  const double f = from_bits(bits(x) - ((biased - kExponentBias) << 52)) - 1.0;
  const double s = f / (2.0 + f), z = s * s;
  const double r =
      polynomial(z, 0.6666666564452443060, 0.4000033555468469371, 0.2853727714689954970, 0.2358288440598109056);
  return e * 0.6931471805599453 + (f - s * (f - z * r));
}

template <class Fma = DefaultFma>
CRESSET_INLINE float log2(float x) {
  const auto [m, e] = split(x);
  const float f = m - 1.0f;
  // log2(e) is 1 + 0.44269504: the whole part of the product costs no rounding.
  const float tail = log_tail<Fma>(f), rest = Fma::fma(f - tail, 0.44269504f, -tail);
  return log_at_edges(x, e + (f + rest));
}
CRESSET_INLINE double log2(double x) { return ::log2(x); }

template <class Fma = DefaultFma>
CRESSET_INLINE float log10(float x) {
  const auto [m, e] = split(x);
  const float f = m - 1.0f, natural = f - log_tail<Fma>(f);
  // log10(2) in two parts
  return log_at_edges(x, Fma::fma(e, 0.301025391f, Fma::fma(e, 4.60503907e-6f, natural * 0.434294482f)));
}
CRESSET_INLINE double log10(double x) { return ::log10(x); }

template <class Fma = DefaultFma>
CRESSET_INLINE float log1p(float x) {
  const float u = 1.0f + x;
  const auto [m, e] = split(u);
  // f = (1 + x) 2^-e - 1, from x itself so that nothing of a small x is lost; beside a large x the 1 does not count.
  const float inverse = power_of_two(e > 100.0f ? -100.0f : -e);
  const float small = Fma::fma(x, inverse, inverse - 1.0f);
  const float f = u > 16777216.0f ? m - 1.0f : small;
  return x == 0.0f ? x : log_at_edges(u, log_of_parts<Fma>(f, e));
}
CRESSET_INLINE double log1p(double x) {
  const double u = 1.0 + x;
  const auto [m, e] = split(u);
  const double inverse = power_of_two(e > 100.0 ? -100.0 : -e);
  const double small = x * inverse + (inverse - 1.0);
  const double f = u > 9007199254740992.0 ? m - 1.0 : small;
  const double result = e * 0.6931471803691238 + (f - (log_tail(f) - e * 1.9082149292705877e-10));
  return x == 0.0 ? x : log_at_edges(u, result);
}

// ---- powers ----

// x^y from |x|^y for finite y and x that has a logarithm: the sign for a negative x, which needs a whole y, and the
// edges.
template <typename T>
CRESSET_INLINE T pow_at_edges(T x, T y, T plain, T largest_odd) {
  // 0 and infinity have no logarithm: their powers are 0 or infinity by the sign of y.
  const T high = static_cast<T>(INFINITY), zero = T(0), one = T(1);
  const T at_zero = y > zero ? zero : high, at_infinity = y > zero ? high : zero;
  const T edge = x == zero ? at_zero : at_infinity;
  const bool is_edge = (x == zero) | (abs(x) == high);
  // An infinite y: 1 stays 1, the rest goes to 0 or infinity.
  const T grown = (abs(x) > one) == (y > zero) ? high : zero;
  const T far = abs(x) == one ? one : grown;
  const T finite = is_edge ? edge : plain;
  const T unsigned_result = abs(y) == high ? far : finite;
  const T whole = rint(y);
  const bool is_whole = (whole == y) & (abs(y) < high);
  const T half = rint(y * T(0.5));
  const bool is_odd = is_whole & (half * T(2) != y) & (abs(y) < largest_odd);
  const bool negative = signbit(x);
  const T signed_result = is_odd & negative ? -unsigned_result : unsigned_result;
  const bool invalid = (x < zero) & (x > -high) & !is_whole & (abs(y) < high);
  const T real = invalid ? static_cast<T>(NAN) : signed_result;
  const T with_nan = (x != x) | (y != y) ? x + y : real;
  return (y == zero) | (x == one) ? one : with_nan;
}

// In double precision.
CRESSET_INLINE float pow(float x, float y) {
  const double size = abs(static_cast<double>(x));
  const double exponent = static_cast<double>(y) * log_short(size);
  const double below = exponent < -150.0 ? -150.0 : exponent;
  const double clamped = below > 150.0 ? 150.0 : below;
  return pow_at_edges(x, y, static_cast<float>(exp_short(clamped)), 16777216.0f);
}

// A number as a sum of two, of which the second is what rounding took from the first.
struct Pair64 {
  double high, low;
};
CRESSET_INLINE Pair64 sum_of_ordered(double a, double b) {  // |a| >= |b|, or a is 0
  const double high = a + b;
  return {high, b - (high - a)};
}
CRESSET_INLINE Pair64 product(double a, double b) {
  const double high = a * b;
#ifdef __FMA__
  return {high, __builtin_fma(a, b, -high)};
#else
  // Both factors in two halves of 26 bits, whose products are exact.
  const double a_wide = a * 134217729.0, b_wide = b * 134217729.0;
  const double a_high = a_wide - (a_wide - a), b_high = b_wide - (b_wide - b), a_low = a - a_high, b_low = b - b_high;
  return {high, ((a_high * b_high - high) + a_high * b_low + a_low * b_high) + a_low * b_low};
#endif
}

// log(x) to 65 bits for positive finite x: with s = (m - 1) / (m + 1), e ln 2 + 2 s + s^3 (2/3 + 2/5 s^2 + ...).
CRESSET_INLINE Pair64 log_pair(double x) {
  const auto [m, e] = split(x);
  const double f = m - 1.0, below = m + 1.0, below_rest = m - (below - 1.0), inverse = 1.0 / below;
  const double s = f * inverse;
  const Pair64 back = product(s, below);
  const double s_rest = (((f - back.high) - back.low) - s * below_rest) * inverse;
  const Pair64 square = product(s, s);
  const double square_rest = square.low + 2.0 * s * s_rest, z = square.high;
  const double more = z * polynomial(z, 0.40000000000000000001, 0.28571428571428564526, 0.22222222222228461084,
                                     0.18181818179648299085, 0.1538461576233813011, 0.13333296448583258216,
                                     0.11766816615797456094, 0.10456253210139139959, 0.10763061848120075177);
  const Pair64 factor = sum_of_ordered(0.66666666666666662966, more);
  const double factor_rest = factor.low + 3.7007434154171883e-17;
  const Pair64 cube = product(s, z);
  const double cube_rest = cube.low + (s * square_rest + s_rest * z);
  const Pair64 tail = product(cube.high, factor.high);
  const double tail_rest = tail.low + (cube.high * factor_rest + cube_rest * factor.high);
  const Pair64 first = sum_of_ordered(e * 0.6931471803691238, 2.0 * s), all = sum_of_ordered(first.high, tail.high);
  return {all.high, all.low + (first.low + (2.0 * s_rest + tail_rest + e * 1.9082149292705877e-10))};
}

// exp(y log |x|), where the product is kept to more digits than a double has.
CRESSET_INLINE double pow(double x, double y) {
  const Pair64 logarithm = log_pair(abs(x)), exact = product(y, logarithm.high);
  const double wanted = exact.high, below = wanted < -750.0 ? -750.0 : wanted, high = below > 750.0 ? 750.0 : below;
  const double low =
      (high == wanted) & (abs(y) < 1e25) ? exact.low + y * logarithm.low : 0.0;  // 1 has no logarithm to lose
  const double n = (high * 1.4426950408889634 + kRound64) - kRound64;
  const double first = high - n * 0.6931471803691238, second = low - n * 1.9082149292705877e-10;
  const double r = first + second, rest = (first - r) + second;
  const double tail = polynomial(r, 0.5, 0.1666666666666667103, 0.041666666666666676866, 0.0083333333333260825535,
                                 0.0013888888888879002494, 0.00019841269875003973789, 2.4801587336632320117e-5,
                                 2.7557255168123061037e-6, 2.7557263076005474318e-7, 2.5105313423078522597e-8,
                                 2.0918212752506956358e-9);
  const Pair64 linear = sum_of_ordered(1.0, r);
  const double value = linear.high + (linear.low + (r * r * tail + (rest + rest * r)));
  return pow_at_edges(x, y, scale_by_power(value, n), 9007199254740992.0);
}

// ---- circular functions ----

// The angle at which the quick reduction ends: up to there a multiple of pi/2 in two parts is exact enough.
inline constexpr float kLargestQuickAngle = 1.0e6f;
CRESSET_INLINE bool is_large_angle(float x) { return !(abs(x) <= kLargestQuickAngle); }
CRESSET_INLINE bool is_large_angle(double x) { return !(abs(x) <= static_cast<double>(kLargestQuickAngle)); }

// x = n pi/2 + r with |r| <= pi/4, in double precision.
CRESSET_INLINE Reduced64 reduce_by_half_pi(float x) {
  const double wide = x;
  const double n = (wide * 0.6366197723675814 + kRound64) - kRound64;
  return {n, (wide - n * 1.57079632673412561417) - n * 6.07710050650619224932e-11};
}

// sin and cos of |r| <= 0.85
template <class Fma = DefaultFma>
CRESSET_INLINE float sin_kernel(float r) {
  const float z = r * r;
  return Fma::fma(r * z, fused_polynomial<Fma>(z, -0.166666478f, 0.00833174866f, -0.000194621985f), r);
}
template <class Fma = DefaultFma>
CRESSET_INLINE float cos_kernel(float r) {
  const float z = r * r;
  return Fma::fma(z, fused_polynomial<Fma>(z, -0.5f, 0.0416666344f, -0.00138867844f, 2.43749437e-5f), 1.0f);
}

// The sine of x moved by a number of quarter turns: x = n pi/2 + r, where pi/2 has three parts. The first difference is
// exact, the others are rounded to the digits of r.
template <class Fma = DefaultFma>
CRESSET_INLINE float sin_of_quarters(float x, uint32_t quarters) {
  const float shifted = Fma::fma(x, 0.636619772f, kRound32), n = shifted - kRound32;
  const float first = Fma::fma(n, -1.57079637f, x), second = Fma::fma(n, 4.37113883e-8f, first);
  const float r = Fma::fma(n, 1.71512451e-15f, second);
  const float s = sin_kernel<Fma>(r), c = cos_kernel<Fma>(r);
  const uint32_t turns = bits(shifted) + quarters;
  const float value = (turns & 1u) != 0u ? c : s;
  return from_bits(bits(value) ^ (turns & 2u) << 30);
}

// The same in double precision. The products with the first two parts of pi/2, which have 33 bits, are exact.
CRESSET_INLINE double sin_of_quarters(double x, uint64_t quarters) {
  const double shifted = x * 0.6366197723675814 + kRound64, n = shifted - kRound64;
  const double r = ((x - n * 1.57079632673412561417) - n * 6.07710050630396597660e-11) - n * 2.02226624879595063154e-21;
  const double z = r * r;
  const double s = r + r * z *
                           polynomial(z, -0.16666666666666664078, 0.0083333333333304282028, -0.00019841269835987067728,
                                      2.7557315710282533423e-6, -2.5051051702099855346e-8, 1.5912468682933194203e-10);
  const double c =
      1.0 - (z * 0.5 - z * z *
                           polynomial(z, 0.041666666666666665047, -0.0013888888888887071677, 2.4801587298282940773e-5,
                                      -2.7557317026283304011e-7, 2.0876096123072585332e-9, -1.1379090628335083367e-11));
  const uint64_t turns = bits(shifted) + quarters;
  const double value = (turns & 1u) != 0u ? c : s;
  return from_bits(bits(value) ^ (turns & 2u) << 62);
}

// Without branches, for angles up to kLargestQuickAngle; nan and infinity give nan. sin, cos and tan below are for
// every angle.
namespace quick {

CRESSET_INLINE double sin(double x) { return x == 0.0 ? x : sin_of_quarters(x, uint64_t{0}); }
CRESSET_INLINE double cos(double x) { return sin_of_quarters(x, uint64_t{1}); }

template <class Fma = DefaultFma>
CRESSET_INLINE float sin(float x) {
  const float result = sin_of_quarters<Fma>(x, 0u);
  return x == 0.0f ? x : result;
}
template <class Fma = DefaultFma>
CRESSET_INLINE float cos(float x) {
  return sin_of_quarters<Fma>(x, 1u);
}
CRESSET_INLINE float tan(float x) {
  const auto [n, r] = reduce_by_half_pi(x);
  const double z = r * r;
  const double s = r + r * z *
                           polynomial(z, -0.16666666641427847, 0.00833332936226539789, -0.000198393271143372589,
                                      2.71823700763253421e-6);
  const double c = 1.0 - (z * 0.5 - z * z *
                                        polynomial(z, 0.0416666666190864655, -0.0013888883466084006,
                                                   2.47994513362798672e-5, -2.72050333306564116e-7));
  const bool odd = (bits(n + kRound64) & 1u) != 0u;
  const double above = odd ? -c : s, below = odd ? s : c;
  const float result = static_cast<float>(above / below);
  return x == 0.0f ? x : result;
}

}  // namespace quick

CRESSET_INLINE float sin(float x) {
  return is_large_angle(x) ? static_cast<float>(::sin(static_cast<double>(x))) : quick::sin(x);
}
CRESSET_INLINE float cos(float x) {
  return is_large_angle(x) ? static_cast<float>(::cos(static_cast<double>(x))) : quick::cos(x);
}
CRESSET_INLINE float tan(float x) {
  return is_large_angle(x) ? static_cast<float>(::tan(static_cast<double>(x))) : quick::tan(x);
}
CRESSET_INLINE double sin(double x) { return ::sin(x); }
CRESSET_INLINE double cos(double x) { return ::cos(x); }
CRESSET_INLINE double tan(double x) { return ::tan(x); }

// asin of 0 <= x <= 0.6
template <class Fma = DefaultFma>
CRESSET_INLINE float asin_kernel(float x) {
  const float z = x * x;
  return Fma::fma(x * z,
                  fused_polynomial<Fma>(z, 0.166665726f, 0.0750485635f, 0.0438167652f, 0.0367162637f, -0.00119767118f,
                                        0.0561021890f),
                  x);
}
// Above 0.6: asin(x) = pi/2 - 2 asin(sqrt((1 - x) / 2)).
CRESSET_INLINE float asin(float x) {
  const float size = abs(x);
  const bool outer = size > 0.6f;
  const float root = sqrt((1.0f - size) * 0.5f);
  const float a = asin_kernel(outer ? root : size);
  const float far = 1.57079637f - (2.0f * a - -4.37113883e-8f);
  return copysign(outer ? far : a, x);
}
CRESSET_INLINE float acos(float x) {
  const float size = abs(x);
  const bool outer = size > 0.6f;
  const float root = sqrt((1.0f - size) * 0.5f);
  const float a = asin_kernel(outer ? root : size);
  const float inner = 1.57079637f - (copysign(a, x) - -4.37113883e-8f);
  const float left = 3.14159274f - (2.0f * a - -8.74227766e-8f), right = 2.0f * a;
  const float edge = x < 0.0f ? left : right;
  return outer ? edge : inner;
}
CRESSET_INLINE double asin(double x) { return ::asin(x); }
CRESSET_INLINE double acos(double x) { return ::acos(x); }

// atan of 0 <= x <= 1
template <class Fma = DefaultFma>
CRESSET_INLINE float atan_kernel(float x) {
  const float z = x * x;
  return Fma::fma(x * z,
                  fused_polynomial<Fma>(z, -0.333332991f, 0.199985483f, -0.142642421f, 0.109521876f, -0.0840345471f,
                                        0.0579576584f, -0.0311779028f, 0.0109146331f, -0.00179362722f),
                  x);
}
CRESSET_INLINE float atan(float x) {
  const float size = abs(x);
  const bool outer = size > 1.0f;
  const float a = atan_kernel(outer ? 1.0f / size : size);
  const float far = 1.57079637f - (a - -4.37113883e-8f);
  return copysign(outer ? far : a, x);
}
CRESSET_INLINE double atan(double x) { return ::atan(x); }

// The angle of the point (x, y).
CRESSET_INLINE float atan2(float y, float x) {
  const float width = abs(x), height = abs(y);
  const bool steep = height > width;
  const float high = steep ? height : width, low = steep ? width : height;
  const float ratio = high == low ? 1.0f : low / high;
  const float a = atan_kernel(high == 0.0f ? 0.0f : ratio);
  const float up = 1.57079637f - (a - -4.37113883e-8f);
  const float quarter = steep ? up : a;
  const float back = 3.14159274f - (quarter - -8.74227766e-8f);
  const float half = signbit(x) ? back : quarter;
  return (x != x) | (y != y) ? x + y : copysign(half, y);
}
CRESSET_INLINE double atan2(double y, double x) { return ::atan2(y, x); }

// ---- hyperbolic functions ----

// h / (h + 1) with h = (exp(2 |x|) - 1) / 2; beyond 10 it is 1. With 2 |x| = n ln 2 + 2 r, h = 2^n k + (2^n - 1) / 2,
// where k = (exp(2 r) - 1) / 2.
template <class Fma = DefaultFma>
CRESSET_INLINE float tanh(float x) {
  const float size = abs(x), clamped = size > 10.0f ? 10.0f : size;
  const float biased = Fma::fma(clamped, 2.0f * kLog2E, kRound32 + 127.0f), n = biased - (kRound32 + 127.0f);
  const float r = Fma::fma(n, -0.5f * kLn2Low, Fma::fma(n, -0.5f * kLn2High, clamped));
  const float tail = fused_polynomial<Fma>(r, 2.0f * 0.499999940f, 4.0f * 0.166665211f, 8.0f * 0.0416682921f,
                                           16.0f * 0.00836872123f, 32.0f * 0.00138187420f);
  const float k = Fma::fma(r * r, tail, r), scale = from_bits(bits(biased) << 23);
  const float h = Fma::fma(scale, k, Fma::fma(scale, 0.5f, -0.5f));
  const float quotient = h / (h + 1.0f);
  const float near = Fma::fma(-h, quotient, h);  // the same for a small h, with less of the quotient's errors
  return copysign(h < 0.5f ? near : quotient, x);
}
// q = h / (1 + h) with h = expm1(2 |x|) / 2, which for small x is h - h q: a small correction has small errors.
CRESSET_INLINE double tanh(double x) {
  const double size = abs(x);
  const double clamped = size > 22.0 ? 22.0 : size;
  const double h = 0.5 * expm1(2.0 * clamped), q = h / (1.0 + h);
  const double near = size < 1e-200 ? size : h - h * q;
  return copysign(size < 0.3 ? near : q, x);
}

CRESSET_INLINE float sinh(float x) {
  const double size = abs(static_cast<double>(x));
  const double e = exp_short(size > 100.0 ? 100.0 : size);
  const double far = 0.5 * (e - 1.0 / e);
  const double z = size * size;
  const double near = size + size * z * polynomial(z, 1.0 / 6, 1.0 / 120, 1.0 / 5040, 1.0 / 362880);
  return copysign(static_cast<float>(size < 0.5 ? near : far), x);
}
CRESSET_INLINE double sinh(double x) { return ::sinh(x); }
CRESSET_INLINE float cosh(float x) {
  const double size = abs(static_cast<double>(x));
  const double e = exp_short(size > 100.0 ? 100.0 : size);
  return static_cast<float>(0.5 * (e + 1.0 / e));
}
CRESSET_INLINE double cosh(double x) { return ::cosh(x); }

CRESSET_INLINE float asinh(float x) {
  const double size = abs(static_cast<double>(x));
  const double far = log_short(size + sqrt(size * size + 1.0));
  const double near = size - size * size * size * (1.0 / 6);
  const float result = static_cast<float>(size < 1e-3 ? near : far);
  return copysign(abs(x) < static_cast<float>(INFINITY) ? result : abs(x), x);
}
CRESSET_INLINE double asinh(double x) { return ::asinh(x); }
CRESSET_INLINE float acosh(float x) {
  const double wide = x;
  const float result = static_cast<float>(log_short(wide + sqrt(wide * wide - 1.0)));
  const float inside = x < static_cast<float>(INFINITY) ? result : x;
  return x < 1.0f ? static_cast<float>(NAN) : inside;
}
CRESSET_INLINE double acosh(double x) { return ::acosh(x); }
CRESSET_INLINE float atanh(float x) {
  const double size = abs(static_cast<double>(x));
  const double far = 0.5 * log_short((1.0 + size) / (1.0 - size));
  const double near = size + size * size * size * (1.0 / 3);
  const float inside = static_cast<float>(size < 1e-3 ? near : far);
  const float edge = size == 1.0 ? static_cast<float>(INFINITY) : static_cast<float>(NAN);
  return copysign(size < 1.0 ? inside : edge, x);
}
CRESSET_INLINE double atanh(double x) { return ::atanh(x); }

// ---- error function ----

// Two polynomials: one in x^2, which x is multiplied with, and one around 2.625 for larger x; from 3.9 on it is 1.
template <class Fma = DefaultFma>
CRESSET_INLINE float erf(float x) {
  const float slope = fused_polynomial<Fma>(x * x, 0.128379136f, -0.376124591f, 0.112820379f, -0.0268007461f,
                                            0.00510497065f, -0.000739815063f, 6.14403762e-05f);
  const float size = abs(x), near = Fma::fma(x, slope, x), t = (size > 3.9f ? 3.9f : size) - 2.625f;
  const float far =
      fused_polynomial<Fma>(t, 0.999794602f, 0.00114778965f, -0.00301282457f, 0.00489287917f, -0.00541625731f,
                            0.00420425553f, -0.00224193279f, 0.000711020431f, 2.85759215e-05f, -0.000184796183f,
                            7.80569826e-05f, 6.86025032e-06f, -8.50332071e-06f);
  return size < 1.25f ? near : copysign(far, x);
}
CRESSET_INLINE double erf(double x) { return ::erf(x); }
CRESSET_INLINE double erfc(double x) { return ::erfc(x); }
// exp(-x^2) times a polynomial in t = (|x| - 4) / (|x| + 4); beyond 10.2 it is 0.
CRESSET_INLINE float erfc(float x) {
  const double size = abs(static_cast<double>(x)), clamped = size > 10.2 ? 10.2 : size;
  const double t = (clamped - 4.0) / (clamped + 4.0);
  const double scaled =
      polynomial(t, 1.23299511877966627, -0.139621131159537752, 0.0153796225373903134, 0.0680978471334100026,
                 -0.101037624201231637, 0.0937213617618043829, -0.0663561916368520445, 0.0372196279270543631,
                 -0.0160216296451157472, 0.00505246741591153544, -0.00112882848031453036, -0.000639705085724202135);
  const double tail = exp_short(-clamped * clamped) * scaled / (1.0 + 2.0 * clamped);
  const double result = x < 0.0f ? 2.0 - tail : tail;
  return x != x ? x : static_cast<float>(result);
}

// The y with erf(y) = x and erfc(y) = rest, for 0 <= x < 1; in single precision rest is 1 - x, and nothing more. y / x
// is smooth in w = -log(1 - x^2), from some w on in its root, and far out in the root's inverse: a polynomial for each
// range.
template <class Fma = DefaultFma>
CRESSET_INLINE float erf_inverse(float x, float) {
  const float w = -log<Fma>(Fma::fma(-x, x, 1.0f)), root = sqrt(w);
  const float near =
      fused_polynomial<Fma>(w, 0.0112269242f, 0.2320137128f, 0.01154916512f, -0.002335270595f, -0.0001265394743f,
                            4.404880433e-5f, 4.150663237e-6f, -2.008271339e-6f, 2.243043015e-7f, -8.93192597e-9f);
  const float far = fused_polynomial<Fma>(root - 3.168034f, 3.001526776f, 1.004297002f, 0.006405777927f,
                                          -0.004692371871f, 0.003267002292f, -0.002208947708f, 0.001223259198f,
                                          -0.0003477913992f, -0.0001368445975f, 0.0001115385808f);
  return w < 5.0f ? Fma::fma(x, near, x * 0.875f) : x * far;
}
CRESSET_INLINE double erf_inverse(double x, double rest) {
  const double w = -log(rest * (1.0 + x)), root = sqrt(w);
  const double near = polynomial(
      w - 3.125, 1.653654562683102712, 0.24015818242558970989, -0.0060336708714270112969, -0.00074070253416694010806,
      0.00018673420802124271572, -0.000013882523361276876215, -1.3654691796592068361e-6, 4.2347877672780652969e-7,
      -2.9070386660191429466e-8, -4.1126331042976139132e-9, 1.0512202440121784072e-9, -5.4154417754696635046e-11,
      -1.2977505202014966524e-11, 2.6335724924608484059e-12, -8.1065944564384951179e-14, -4.0554139746886005127e-14,
      6.5819553059292388607e-15, 2.1669946262835739661e-17, -1.2907023546130730434e-16, 1.1125794759379464874e-17,
      1.1027771591500032941e-18, -1.6787330615256771869e-19, -2.3623696985661074151e-22);
  const double middle = polynomial(
      root - 3.25, 3.0838856104922206763, 1.0052589676941592026, 0.0053709145535581983223, -0.0037512085075638537904,
      0.0024914420976198812115, -0.0016882755561681802984, 0.00095328935211181777561, -0.00035503751863069760148,
      0.000024031363245440548101, 0.000068284840522929233718, -0.000047319529183371890164, 0.000012475343474376930773,
      2.9273722115986925899e-6, -4.0139463981902918841e-6, 1.4958263152984917443e-6, 1.8323999881328577679e-8,
      -2.6860975725571460947e-7, 9.0719505710299225305e-8, -3.8310399460724113797e-10);
  const double far = polynomial(
      root - 5.25, 5.1024697665054209082, 1.0101951772794914775, -0.00027432268760327143398, -0.00015004600229566794193,
      0.000055148726559290672827, -0.000014023129204351455381, 3.1187982642378873338e-6, -6.4736662546997134255e-7,
      1.3092332777510273253e-7, -2.8103870094966798358e-8, 7.8050713022919072364e-9, -3.2853833069126299929e-9,
      1.6550597072127449044e-9, -7.4939221274698528233e-10, 3.4830438559381150586e-10, -1.8459162911451041869e-10,
      5.8364502519430347642e-11, 2.3412435619054888832e-12, -4.1687598427770060404e-12);
  const double farthest =
      root * polynomial(1.0 / root - 0.09598214285714285, 0.9897345263834600235, -0.16619562180436893331,
                        -0.36997048554861526242, 1.7083121298893531518, -4.5519389476006292375, 18.473684468767917113,
                        -98.100214427051238305, 586.51124117736317922, -3817.5971706563594273, 26503.606013764606528,
                        -192192.04929552746969, 1454207.1005581880214, -12185272.371734267186, 98577776.806831289506,
                        -383464112.15992013084, 2858687059.1801281148, -163821775652.3941153, 1479574659241.3963534,
                        15750893819031.495605, -147295012908350.59243, -2005663666691714.7727, 18390243684238039.459);
  return x * (w < 6.25 ? near : root < 4.0 ? middle : root < 6.45 ? far : farthest);
}

// ---- the rest ----

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
