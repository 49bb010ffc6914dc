// Functions of the generated loops that have branches or call the C library: gamma and Bessel functions, polynomials.
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
CRESSET_DEVICE inline double zeta(double s, double q) {
  if (s == 1.0) return INFINITY;
  if (!(s > 1.0)) return NAN;
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

// The part below x by its power series, good for x < a + 1.
CRESSET_DEVICE inline double igamma_series(double a, double x) {
  double term = 1.0, sum = 1.0;
  for (int k = 1; k < 20000 && term > 1e-17 * sum; ++k) {
    term *= x / (a + k);
    sum += term;
  }
  return sum * gamma_weight(a, x);
}
// The part above x by its continued fraction (Lentz's method), good for x >= a + 1.
CRESSET_DEVICE inline double igammac_fraction(double a, double x) {
  double b = x + 1.0 - a, c = 1e300, d = 1.0 / b, h = d;
  for (int k = 1; k < 20000; ++k) {
    const double an = -k * (k - a);
    b += 2.0;
    d = 1.0 / (an * d + b);
    c = b + an / c;
    const double delta = c * d;
    h *= delta;
    if (::fabs(delta - 1.0) < 1e-16) break;
  }
  return gamma_weight(a, x) * a * h;
}

// The part below or above x for large a, of which the sums above would need too many terms: Temme's expansion (DLMF 8.12.3)
//   erfc(-+ eta sqrt(a / 2)) / 2 -+ exp(-a eta^2 / 2) (c0(eta) + c1(eta) / a + c2(eta) / a^2) / sqrt(2 pi a),
// where eta^2 / 2 = d - log(1 + d) with d = x / a - 1. Where the exponential does not vanish eta is so small that the
// first terms of the c are enough.
constexpr double kLargeGammaParameter = 1e5;
CRESSET_DEVICE inline double igamma_large(double a, double x, bool upper) {
  const double d = (x - a) / a, half = log1p_excess(d), exponent = a * half, side = d < 0 ? -1.0 : 1.0;
  if (exponent > 745.0) return (d < 0) == upper ? 1.0 : 0.0;
  const double eta = side * ::sqrt(2.0 * half);
  const double c0 = -1.0 / 3 + eta * (1.0 / 12 + eta * (-2.0 / 135 + eta * (1.0 / 864 + eta * (1.0 / 2835 + eta * (-0.0001787551440329218 + eta * (3.919263178522438e-05 - eta * 2.185448510679992e-06))))));
  const double c1 = -1.0 / 540 + eta * (-1.0 / 288 + eta * (1.0 / 378 - eta * 0.0009902263374485596));
  const double c2 = 0.004133597883597883 - eta * 0.0026813271604938273;
  const double rest = ::exp(-exponent) * (c0 + (c1 + c2 / a) / a) / ::sqrt(2.0 * 3.14159265358979323846 * a);
  const double y = side * ::sqrt(exponent);
  return upper ? 0.5 * ::erfc(y) + rest : 0.5 * ::erfc(-y) - rest;
}

CRESSET_DEVICE inline double igamma(double a, double x) {
  if (a != a || x != x || a < 0.0 || x < 0.0) return NAN;
  if (a == 0.0) return x > 0.0 ? 1.0 : NAN;
  if (x == 0.0) return 0.0;
  if (is_infinite(a)) return is_infinite(x) ? NAN : 0.0;
  if (is_infinite(x)) return 1.0;
  if (a > kLargeGammaParameter) return igamma_large(a, x, false);
  return x < a + 1.0 ? igamma_series(a, x) : 1.0 - igammac_fraction(a, x);
}
CRESSET_DEVICE inline double igammac(double a, double x) {
  if (a != a || x != x || a < 0.0 || x < 0.0) return NAN;
  if (a == 0.0) return x > 0.0 ? 0.0 : NAN;
  if (x == 0.0) return 1.0;
  if (is_infinite(a)) return is_infinite(x) ? NAN : 1.0;
  if (is_infinite(x)) return 0.0;
  if (a > kLargeGammaParameter) return igamma_large(a, x, true);
  return x < a + 1.0 ? 1.0 - igamma_series(a, x) : igammac_fraction(a, x);
}

// ---- Bessel and Airy functions ----

CRESSET_DEVICE inline double bessel_j0(double x) { return ::j0(x); }
CRESSET_DEVICE inline double bessel_j1(double x) { return ::j1(x); }
CRESSET_DEVICE inline double bessel_y0(double x) { return x < 0.0 ? NAN : ::y0(x); }
CRESSET_DEVICE inline double bessel_y1(double x) { return x < 0.0 ? NAN : ::y1(x); }

// Ai by its power series f(x) Ai(0) + g(x) Ai'(0): nothing cancels for small x.
CRESSET_DEVICE inline double airy_series(double x) {
  const double cube = x * x * x;
  double f = 1.0, g = x, f_sum = f, g_sum = g;
  for (int k = 3; k < 45; k += 3) {
    f *= cube / (k * (k - 1.0));
    g *= cube / (k * (k + 1.0));
    f_sum += f;
    g_sum += g;
  }
  return 0.355028053887817239 * f_sum - 0.258819403792806798 * g_sum;
}
// Further out by Bessel functions of order 1/3 of z = 2/3 |x|^(3/2), as integrals along the path of steepest descent.
// There the integrand falls off on both sides and has no singularity within pi/2: the trapezoidal rule has all digits.
//   K(z) = exp(-z) integral of exp(-2 z sinh(s/2)^2) cosh(s/3)
//   J(z) + i Y(z) = exp(i (z - pi/6)) / (pi i) integral of exp(-z sinh(s) tanh(s)) 2 cosh(u/3) du
// with u = s + i atan(sinh(s)).
CRESSET_DEVICE inline double airy_ai(double x) {
  constexpr double kPi = 3.14159265358979323846, kRoot3 = 1.73205080756887729;
  if (x != x) return x;
  if (is_infinite(x)) return x > 0.0 ? 0.0 : NAN;
  if (x > 103.9) return 0.0;
  if (x > -1.0 && x < 1.0) return airy_series(x);
  const double size = ::fabs(x), root = ::sqrt(size), z = 2.0 / 3.0 * size * root;
  if (x > 0.0) {
    const double step = z < 10.0 ? 0.2 : 0.6325 / ::sqrt(z);
    double sum = 0.5;
    for (double s = step, weight = 1.0; weight > 1e-18; s += step) {
      const double half = ::sinh(0.5 * s);
      weight = ::exp(-2.0 * z * half * half);
      sum += weight * ::cosh(s / 3.0);
    }
    return root * step * sum * ::exp(-z) / (kPi * kRoot3);
  }
  const double step = z < 11.0 ? 0.12 : 0.4 / ::sqrt(z);
  double re = 1.0, im = 1.0;  // of the sum: at s = 0 the integrand is 2 (1 + i), and counts half
  for (double s = step, weight = 1.0; weight > 1e-18; s += step) {
    const double rise = ::sinh(s), slope = 1.0 / ::cosh(s), turn = ::atan(rise) / 3.0;
    weight = ::exp(-z * rise * rise * slope);
    const double a = 2.0 * weight * ::cosh(s / 3.0) * ::cos(turn), b = 2.0 * weight * ::sinh(s / 3.0) * ::sin(turn);
    re += a - b * slope;
    im += a * slope + b;
  }
  const double angle = z - kPi / 6.0, c = ::cos(angle) * step / kPi, s = ::sin(angle) * step / kPi;
  const double bessel_j = c * im + s * re, bessel_y = s * im - c * re;
  return 0.5 * root * (bessel_j - bessel_y / kRoot3);
}

// ---- orthogonal polynomials ----

// A fraction of the degree is dropped. Above a million the value is nan: no recurrence that long has a digit left.
CRESSET_DEVICE inline int64_t whole_degree(double degree) {
  return degree <= 1e6 ? static_cast<int64_t>(degree < -1.0 ? -1.0 : degree) : 1000001;
}

// The Chebyshev polynomials of the four kinds have the recurrence p(k+1) = 2 x p(k) - p(k-1) and differ in p(1); inside
// (-1, 1) a high degree is a circular function of acos(x).
CRESSET_DEVICE inline double chebyshev_recurrence(double x, int64_t n, double first) {
  double before = 1.0, last = first;
  if (n == 0) return before;
  for (int64_t k = 1; k < n && last == last; ++k) {
    const double next = 2.0 * x * last - before;
    before = last;
    last = next;
  }
  return last;
}
CRESSET_DEVICE inline double chebyshev_t(double x, double degree) {
  const int64_t n = whole_degree(degree);
  if (n < 0) return 0.0;
  if (n > 1000000) return NAN;
  if (::fabs(x) == 1.0) return x > 0.0 || n % 2 == 0 ? 1.0 : -1.0;
  if (n > 6 && ::fabs(x) < 1.0) return ::cos(n * ::acos(x));
  return chebyshev_recurrence(x, n, x);
}
CRESSET_DEVICE inline double chebyshev_u(double x, double degree) {
  const int64_t n = whole_degree(degree);
  if (n < 0) return 0.0;
  if (n > 1000000) return NAN;
  if (::fabs(x) == 1.0) return x > 0.0 || n % 2 == 0 ? n + 1.0 : -(n + 1.0);
  if (n > 8 && ::fabs(x) < 1.0) return ::sin((n + 1) * ::acos(x)) / ::sin(::acos(x));
  return chebyshev_recurrence(x, n, 2.0 * x);
}
CRESSET_DEVICE inline double chebyshev_v(double x, double degree) {
  const int64_t n = whole_degree(degree);
  if (n < 0) return 0.0;
  if (n > 1000000) return NAN;
  if (::fabs(x) == 1.0) return x > 0.0 ? 1.0 : n % 2 == 0 ? 2.0 * n + 1.0 : -(2.0 * n + 1.0);
  if (n > 8 && ::fabs(x) < 1.0) return ::cos((n + 0.5) * ::acos(x)) / ::cos(0.5 * ::acos(x));
  return chebyshev_recurrence(x, n, 2.0 * x - 1.0);
}
CRESSET_DEVICE inline double chebyshev_w(double x, double degree) {
  const int64_t n = whole_degree(degree);
  if (n < 0) return 0.0;
  if (n > 1000000) return NAN;
  if (::fabs(x) == 1.0) return x > 0.0 ? 2.0 * n + 1.0 : n % 2 == 0 ? 1.0 : -1.0;
  if (n > 8 && ::fabs(x) < 1.0) return ::sin((n + 0.5) * ::acos(x)) / ::sin(0.5 * ::acos(x));
  return chebyshev_recurrence(x, n, 2.0 * x + 1.0);
}

inline constexpr int64_t kLargestHermiteDegree = 512;  // beyond it the values leave the range of numbers
CRESSET_DEVICE inline double hermite_h(double x, double degree) {
  const int64_t n = whole_degree(degree);
  if (n < 0) return 0.0;
  if (n > kLargestHermiteDegree) return NAN;
  double before = 1.0, last = 2.0 * x;
  if (n == 0) return before;
  for (int64_t k = 1; k < n; ++k) {
    const double next = 2.0 * x * last - 2.0 * k * before;
    before = last;
    last = next;
  }
  return last;
}
CRESSET_DEVICE inline double hermite_he(double x, double degree) {
  const int64_t n = whole_degree(degree);
  if (n < 0) return 0.0;
  if (n > kLargestHermiteDegree) return NAN;
  double before = 1.0, last = x;
  if (n == 0) return before;
  for (int64_t k = 1; k < n; ++k) {
    const double next = x * last - k * before;
    before = last;
    last = next;
  }
  return last;
}
CRESSET_DEVICE inline double laguerre_l(double x, double degree) {
  const int64_t n = whole_degree(degree);
  if (n < 0) return 0.0;
  if (n > 1000000) return NAN;
  double before = 1.0, last = 1.0 - x;
  if (n == 0 || x == 0.0) return before;
  for (int64_t k = 1; k < n && last == last; ++k) {
    const double next = ((2.0 * k + 1.0 - x) * last - k * before) / (k + 1.0);
    before = last;
    last = next;
  }
  return last;
}
CRESSET_DEVICE inline double legendre_p(double x, double degree) {
  const int64_t n = whole_degree(degree);
  if (n < 0) return 0.0;
  if (n > 1000000) return NAN;
  if (::fabs(x) == 1.0) return x > 0.0 || n % 2 == 0 ? 1.0 : -1.0;
  double before = 1.0, last = x;
  if (n == 0) return before;
  for (int64_t k = 1; k < n && last == last; ++k) {
    const double next = ((2.0 * k + 1.0) * x * last - k * before) / (k + 1.0);
    before = last;
    last = next;
  }
  return last;
}

}  // namespace cresset::math
