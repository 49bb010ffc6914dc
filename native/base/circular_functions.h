// Sine, cosine, tangent and their inverses: a part of vector_math.h, which says how they are made.
#pragma once
#include <cmath>
#include <cstdint>

#include "base/float_bits.h"

namespace cresset::math {

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

// The sum of two numbers, and what rounding it lost.
CRESSET_INLINE Pair64 exact_sum(double a, double b) {
  const double sum = a + b, part = sum - a;
  return {sum, (a - (sum - part)) + (b - part)};
}

// The same in double precision. The products with the first three parts of pi/2, which have 33 bits, are exact, and r
// has a second part, so that sin and cos have the last digit that they would have of an exact r.
CRESSET_INLINE double sin_of_quarters(double x, uint64_t quarters) {
  const double shifted = x * 0.6366197723675814 + kRound64, n = shifted - kRound64;
  const auto [second, second_rest] = exact_sum(x - n * 1.57079632673412561417, n * -6.07710050630396597660e-11);
  const auto [third, third_rest] = exact_sum(second, n * -2.02226624871116645580e-21);
  const double rest = (second_rest + third_rest) - n * 8.47842766036889956997e-32;
  const double r = third + rest, low = (third - r) + rest;
  const double z = r * r, cube = r * z, half = z * 0.5, most = 1.0 - half;
  const double s_tail = polynomial(z, 0.0083333333333304282028, -0.00019841269835987067728, 2.7557315710282533423e-6,
                                   -2.5051051702099855346e-8, 1.5912468682933194203e-10);
  const double s = r - ((z * (0.5 * low - cube * s_tail) - low) - cube * -0.16666666666666664078);
  const double c_tail = z * polynomial(z, 0.041666666666666665047, -0.0013888888888887071677, 2.4801587298282940773e-5,
                                       -2.7557317026283304011e-7, 2.0876096123072585332e-9, -1.1379090628335083367e-11);
  const double c = most + (((1.0 - most) - half) + (z * c_tail - r * low));
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
CRESSET_INLINE double sin(double x) { return is_large_angle(x) ? ::sin(x) : quick::sin(x); }
CRESSET_INLINE double cos(double x) { return is_large_angle(x) ? ::cos(x) : quick::cos(x); }
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

}  // namespace cresset::math
