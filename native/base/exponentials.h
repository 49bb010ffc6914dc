// Exponentials, logarithms, powers and hyperbolic functions: a part of vector_math.h, which says how they are made.
#pragma once
#include <cmath>
#include <cstdint>

#include "base/float_bits.h"

namespace cresset::math {

// ---- exponentials ----

// x = n ln 2 + r with |r| <= ln(2) / 2; n ln 2 is subtracted in two parts. In double the first product is exact; in
// single precision the fused difference is.
inline constexpr float kLog2E = 1.44269504f, kLn2High = 0.693147182f, kLn2Low = -1.90465421e-9f;
template <class Fma = DefaultFma>
CRESSET_INLINE Reduced32 reduce_by_ln2(float x) {
  const float n = Fma::fma(x, kLog2E, kRound32) - kRound32;
  return {n, Fma::fma(n, -kLn2Low, Fma::fma(n, -kLn2High, x))};
}
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
  return long_polynomial(r, 0.5000000000000010651, 0.1666666666666640993, 0.04166666666652978020,
                         0.008333333333495512952, 0.001388888894375726094, 0.0001984126950531575232,
                         2.480149294597547979e-5, 2.755758675242567968e-6, 2.763030906943137646e-7,
                         2.500014639539292172e-8);
}
// The same to 10 digits: enough for a result in single precision.
CRESSET_INLINE double exp_tail_short(double r) {
  return polynomial(r, 0.499999998784044637, 0.166666659519330425, 0.0416668066956491525, 0.00833424913365932343,
                    0.00138777917813850697, 0.000182926424310094492);
}

// x 2^n, given 2^23 1.5 + 254 + n for -150 <= n <= 128, as it comes from rounding: in two steps, whose exponents are
// each half of n + 254. All results from the smallest denormal to infinity come out right. In double precision 2^52 1.5
// + 2046 + n for -1077 <= n <= 1025.
inline constexpr float kRoundBiased32 = kRound32 + 254.0f;
inline constexpr double kRoundBiased64 = kRound64 + 2046.0;
CRESSET_INLINE float scale_by_biased(float x, float biased) {
  const uint32_t low = bits(biased) >> 1, high = bits(biased) - low;
  return x * from_bits(low << 23) * from_bits(high << 23);
}
CRESSET_INLINE double scale_by_biased(double x, double biased) {
  const uint64_t low = bits(biased) >> 1, high = bits(biased) - low;
  return x * from_bits(low << 52) * from_bits(high << 52);
}

template <class Fma = DefaultFma>
CRESSET_INLINE float exp(float x) {
  const float above = x < -104.0f ? -104.0f : x, clamped = above > 89.0f ? 89.0f : above;
  const float biased = Fma::fma(clamped, kLog2E, kRoundBiased32), n = biased - kRoundBiased32;
  const float r = Fma::fma(n, -kLn2Low, Fma::fma(n, -kLn2High, clamped));
  return scale_by_biased(exp_kernel<Fma>(r), biased);
}
CRESSET_INLINE double exp(double x) {
  const double above = x < -746.0 ? -746.0 : x, clamped = above > 710.0 ? 710.0 : above;
  const double biased = clamped * 1.4426950408889634 + kRoundBiased64, n = biased - kRoundBiased64;
  const double r = (clamped - n * 0.6931471803691238) - n * 1.9082149292705877e-10;
  return scale_by_biased(1.0 + (r + r * r * exp_tail(r)), biased);
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

}  // namespace cresset::math
