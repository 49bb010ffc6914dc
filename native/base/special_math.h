// Functions of the generated loops that have branches or call the C library: gamma and Bessel functions.
//
// Included by code that is compiled for the baseline instruction set only, and by CUDA kernels that need it
// (cresset/cuda/kernels/special.cuh).
#pragma once
#ifndef CRESSET_KERNEL
#include "base/integer_math.h"
#define CRESSET_DEVICE
#endif

namespace cresset::math {

CRESSET_INLINE bool is_infinite(double x) { return ::fabs(x) == static_cast<double>(INFINITY); }

// ---- gamma functions ----

#ifndef CRESSET_KERNEL  // math.cuh has it
inline double lgamma(double x) {
  int sign;
  return ::lgamma_r(x, &sign);
}
#endif

// The sum of (k + q)^-s over k >= 0: terms one by one until k + q > 9, the rest by the Euler-Maclaurin formula.
CRESSET_DEVICE inline double zeta_above_one(double s, double q) {
  if (q <= 0.0) {
    if (q == ::floor(q)) return INFINITY;
    if (s != ::floor(s)) return NAN;
  }
  if (q != q) return q;
  if (is_infinite(q)) return 0.0;
  double sum = 0.0, a = q;
  for (int k = 0; k < 10 || a <= 9.0; ++k, a += 1.0) {
    const double term = ::pow(a, -s);
    sum += term;
    if (::fabs(term) < 1e-17 * ::fabs(sum) && a > 0.0) return sum;
  }
  // a is the first k + q that was not added: a^(1-s) / (s-1) + a^-s / 2 + sum of B_2j / (2j)! s (s+1) ... (s+2j-2)
  // a^(-s-2j+1)
  const double power = ::pow(a, -s);
  sum += power * a / (s - 1.0) + 0.5 * power;
  const double bernoulli[] = {1.0 / 12,
                              -1.0 / 720,
                              1.0 / 30240,
                              -1.0 / 1209600,
                              1.0 / 47900160,
                              -691.0 / 1307674368000.0,
                              1.0 / 74724249600.0,
                              -3617.0 / 10670622842880000.0};
  double factor = s * power / a;
  for (int j = 0; j < 8; ++j) {
    sum += bernoulli[j] * factor;
    factor *= (s + 2 * j + 1) * (s + 2 * j + 2) / (a * a);
  }
  return sum;
}
CRESSET_INLINE double zeta(double s, double q) {
  return s > 1.0 ? zeta_above_one(s, q) : static_cast<double>(s == 1.0 ? INFINITY : NAN);
}

// d - log(1 + d), also where both are nearly the same.
CRESSET_DEVICE inline double log1p_excess(double d) {
  if (::fabs(d) > 0.01) return d - ::log1p(d);
  double power = d * d, sum = 0.5 * power;
  for (int k = 3; k < 12; ++k) {
    power *= -d;
    sum += power / k;
  }
  return sum;
}

// x^a exp(-x) / gamma(a + 1). For large a by Stirling's series, in which the large logarithms have cancelled on paper.
CRESSET_DEVICE inline double gamma_weight(double a, double x) {
  if (a < 20.0) return ::exp(a * ::log(x) - x - lgamma(a + 1.0));
  const double d = (x - a) / a;
  const double inverse = 1.0 / (a * a);
  const double tail = (1.0 / 12 - inverse * (1.0 / 360 - inverse * (1.0 / 1260 - inverse / 1680))) / a;
  return ::exp(-a * log1p_excess(d) - tail) / ::sqrt(2.0 * 3.14159265358979323846 * a);
}

// How small the last term is beside the sum: for a result in double or in single precision.
constexpr double kLastTerm64 = 1e-17, kLastTerm32 = 1e-11;

// The part below x by its power series, good for x < a + 1.
CRESSET_DEVICE inline double igamma_series(double a, double x, double last_term) {
  double term = 1.0, sum = 1.0;
  for (int k = 1; k < 20000 && term > last_term * sum; ++k) {
    term *= x / (a + k);
    sum += term;
  }
  return sum * gamma_weight(a, x);
}
// The part above x by its continued fraction, good for x >= a + 1: numerators and denominators of its convergents by
// their recurrence, divided once in a while to see whether they have settled.
CRESSET_DEVICE inline double igammac_fraction(double a, double x, double last_term) {
  double b = x + 1.0 - a, above_before = 0.0, above = 1.0, below_before = 1.0, below = b, value = 1.0 / b;
  for (int k = 1; k < 20000; k += 4) {
    for (int j = k; j < k + 4; ++j) {
      const double an = -j * (j - a);
      b += 2.0;
      const double next_above = b * above + an * above_before, next_below = b * below + an * below_before;
      above_before = above, above = next_above, below_before = below, below = next_below;
    }
    const double scale = 1.0 / below, last = value;
    value = above * scale;
    if (::fabs(value - last) <= 10.0 * last_term * value) break;
    above_before *= scale, below_before *= scale, above = value, below = 1.0;
  }
  return gamma_weight(a, x) * a * value;
}

// The part below or above x for large a, of which the sums above would need too many terms: Temme's expansion
// (DLMF 8.12.3)
//   erfc(-+ eta sqrt(a / 2)) / 2 -+ exp(-a eta^2 / 2) (c0(eta) + c1(eta) / a + c2(eta) / a^2) / sqrt(2 pi a),
// where eta^2 / 2 = d - log(1 + d) with d = x / a - 1. Where the exponential does not vanish eta is so small that the
// first terms of the c are enough.
constexpr double kLargeGammaParameter = 1e5;
CRESSET_DEVICE inline double igamma_large(double a, double x, bool upper) {
  const double d = (x - a) / a, half = log1p_excess(d), exponent = a * half, side = d < 0 ? -1.0 : 1.0;
  if (exponent > 745.0) return (d < 0) == upper ? 1.0 : 0.0;
  const double eta = side * ::sqrt(2.0 * half);
  const double c0 =
      -1.0 / 3 +
      eta * (1.0 / 12 +
             eta * (-2.0 / 135 + eta * (1.0 / 864 + eta * (1.0 / 2835 + eta * (-0.0001787551440329218 +
                                                                               eta * (3.919263178522438e-05 -
                                                                                      eta * 2.185448510679992e-06))))));
  const double c1 = -1.0 / 540 + eta * (-1.0 / 288 + eta * (1.0 / 378 - eta * 0.0009902263374485596));
  const double c2 = 0.004133597883597883 - eta * 0.0026813271604938273;
  const double rest = ::exp(-exponent) * (c0 + (c1 + c2 / a) / a) / ::sqrt(2.0 * 3.14159265358979323846 * a);
  const double y = side * ::sqrt(exponent);
  return upper ? 0.5 * ::erfc(y) + rest : 0.5 * ::erfc(-y) - rest;
}

CRESSET_DEVICE inline double igamma(double a, double x, double last_term = kLastTerm64) {
  if (a != a || x != x || a < 0.0 || x < 0.0) return NAN;
  if (a == 0.0) return x > 0.0 ? 1.0 : NAN;
  if (x == 0.0) return 0.0;
  if (is_infinite(a)) return is_infinite(x) ? NAN : 0.0;
  if (is_infinite(x)) return 1.0;
  if (a > kLargeGammaParameter) return igamma_large(a, x, false);
  return x < a + 1.0 ? igamma_series(a, x, last_term) : 1.0 - igammac_fraction(a, x, last_term);
}
CRESSET_DEVICE inline double igammac(double a, double x, double last_term = kLastTerm64) {
  if (a != a || x != x || a < 0.0 || x < 0.0) return NAN;
  if (a == 0.0) return x > 0.0 ? 0.0 : NAN;
  if (x == 0.0) return 1.0;
  if (is_infinite(a)) return is_infinite(x) ? NAN : 1.0;
  if (is_infinite(x)) return 0.0;
  if (a > kLargeGammaParameter) return igamma_large(a, x, true);
  return x < a + 1.0 ? 1.0 - igamma_series(a, x, last_term) : igammac_fraction(a, x, last_term);
}
CRESSET_DEVICE inline float igamma(float a, float x) {
  return static_cast<float>(igamma(static_cast<double>(a), static_cast<double>(x), kLastTerm32));
}
CRESSET_DEVICE inline float igammac(float a, float x) {
  return static_cast<float>(igammac(static_cast<double>(a), static_cast<double>(x), kLastTerm32));
}

// ---- Bessel functions ----

CRESSET_DEVICE inline double bessel_j0(double x) { return ::j0(x); }
CRESSET_DEVICE inline double bessel_j1(double x) { return ::j1(x); }
CRESSET_DEVICE inline double bessel_y0(double x) { return x < 0.0 ? NAN : ::y0(x); }
CRESSET_DEVICE inline double bessel_y1(double x) { return x < 0.0 ? NAN : ::y1(x); }

}  // namespace cresset::math
