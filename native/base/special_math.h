// Functions of the generated loops that have branches or call the C library: whole numbers, gamma and Bessel functions.
//
// Included only by code that is compiled for the baseline instruction set.
#pragma once
#include "base/vector_math.h"

namespace cresset::math {

// ---- whole numbers ----

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

// ---- gamma functions ----

inline double lgamma(double x) {
  int sign;
  return ::lgamma_r(x, &sign);
}

// The sum of (k + q)^-s over k >= 0: terms one by one until k + q > 9, the rest by the Euler-Maclaurin formula.
inline double zeta(double s, double q) {
  if (s == 1.0) return INFINITY;
  if (!(s > 1.0)) return NAN;
  if (q <= 0.0) {
    if (q == ::floor(q)) return INFINITY;
    if (s != ::floor(s)) return NAN;
  }
  if (q != q) return q;
  if (std::isinf(q)) return 0.0;
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

// x^a exp(-x) / gamma(a + 1). For large a by Stirling's series, in which the large logarithms have cancelled on paper.
inline double gamma_weight(double a, double x) {
  if (a < 20.0) return ::exp(a * ::log(x) - x - lgamma(a + 1.0));
  const double d = (x - a) / a;
  const double inverse = 1.0 / (a * a);
  const double tail = (1.0 / 12 - inverse * (1.0 / 360 - inverse * (1.0 / 1260 - inverse / 1680))) / a;
  return ::exp(a * (::log1p(d) - d) - tail) / ::sqrt(2.0 * 3.14159265358979323846 * a);
}

// The part below x by its power series, good for x < a + 1.
inline double igamma_series(double a, double x) {
  double term = 1.0, sum = 1.0;
  for (int k = 1; k < 20000 && term > 1e-17 * sum; ++k) {
    term *= x / (a + k);
    sum += term;
  }
  return sum * gamma_weight(a, x);
}
// The part above x by its continued fraction (Lentz's method), good for x >= a + 1.
inline double igammac_fraction(double a, double x) {
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

inline double igamma(double a, double x) {
  if (a != a || x != x || a < 0.0 || x < 0.0) return NAN;
  if (a == 0.0) return x > 0.0 ? 1.0 : NAN;
  if (x == 0.0) return 0.0;
  if (std::isinf(a)) return std::isinf(x) ? NAN : 0.0;
  if (std::isinf(x)) return 1.0;
  return x < a + 1.0 ? igamma_series(a, x) : 1.0 - igammac_fraction(a, x);
}
inline double igammac(double a, double x) {
  if (a != a || x != x || a < 0.0 || x < 0.0) return NAN;
  if (a == 0.0) return x > 0.0 ? 0.0 : NAN;
  if (x == 0.0) return 1.0;
  if (std::isinf(a)) return std::isinf(x) ? NAN : 1.0;
  if (std::isinf(x)) return 0.0;
  return x < a + 1.0 ? 1.0 - igamma_series(a, x) : igammac_fraction(a, x);
}

// ---- Bessel and Airy functions ----

inline double bessel_j0(double x) { return ::j0(x); }
inline double bessel_j1(double x) { return ::j1(x); }
inline double bessel_y0(double x) { return x < 0.0 ? NAN : ::y0(x); }
inline double bessel_y1(double x) { return x < 0.0 ? NAN : ::y1(x); }

// Ai by Bessel functions of order 1/3 of 2/3 |x|^(3/2).
inline double airy_ai(double x) {
  if (x != x) return x;
  if (std::isinf(x)) return x > 0.0 ? 0.0 : NAN;
  if (x > 103.9) return 0.0;
  if (x == 0.0) return 0.355028053887817239;
  const double size = ::fabs(x), root = ::sqrt(size), z = 2.0 / 3.0 * size * root;
  if (x > 0.0) return root * std::cyl_bessel_k(1.0 / 3, z) / (3.14159265358979323846 * 1.73205080756887729);
  return 0.5 * root * (std::cyl_bessel_j(1.0 / 3, z) - std::cyl_neumann(1.0 / 3, z) / 1.73205080756887729);
}

// ---- orthogonal polynomials ----

// A fraction of the degree is dropped. Above a million the value is nan: no recurrence that long has a digit left.
inline int64_t whole_degree(double degree) {
  return degree <= 1e6 ? static_cast<int64_t>(degree < -1.0 ? -1.0 : degree) : 1000001;
}

// The Chebyshev polynomials of the four kinds have the recurrence p(k+1) = 2 x p(k) - p(k-1) and differ in p(1); inside
// (-1, 1) a high degree is a circular function of acos(x).
inline double chebyshev_recurrence(double x, int64_t n, double first) {
  double before = 1.0, last = first;
  if (n == 0) return before;
  for (int64_t k = 1; k < n && last == last; ++k) {
    const double next = 2.0 * x * last - before;
    before = last;
    last = next;
  }
  return last;
}
inline double chebyshev_t(double x, double degree) {
  const int64_t n = whole_degree(degree);
  if (n < 0) return 0.0;
  if (n > 1000000) return NAN;
  if (::fabs(x) == 1.0) return x > 0.0 || n % 2 == 0 ? 1.0 : -1.0;
  if (n > 6 && ::fabs(x) < 1.0) return ::cos(n * ::acos(x));
  return chebyshev_recurrence(x, n, x);
}
inline double chebyshev_u(double x, double degree) {
  const int64_t n = whole_degree(degree);
  if (n < 0) return 0.0;
  if (n > 1000000) return NAN;
  if (::fabs(x) == 1.0) return x > 0.0 || n % 2 == 0 ? n + 1.0 : -(n + 1.0);
  if (n > 8 && ::fabs(x) < 1.0) return ::sin((n + 1) * ::acos(x)) / ::sin(::acos(x));
  return chebyshev_recurrence(x, n, 2.0 * x);
}
inline double chebyshev_v(double x, double degree) {
  const int64_t n = whole_degree(degree);
  if (n < 0) return 0.0;
  if (n > 1000000) return NAN;
  if (::fabs(x) == 1.0) return x > 0.0 ? 1.0 : n % 2 == 0 ? 2.0 * n + 1.0 : -(2.0 * n + 1.0);
  if (n > 8 && ::fabs(x) < 1.0) return ::cos((n + 0.5) * ::acos(x)) / ::cos(0.5 * ::acos(x));
  return chebyshev_recurrence(x, n, 2.0 * x - 1.0);
}
inline double chebyshev_w(double x, double degree) {
  const int64_t n = whole_degree(degree);
  if (n < 0) return 0.0;
  if (n > 1000000) return NAN;
  if (::fabs(x) == 1.0) return x > 0.0 ? 2.0 * n + 1.0 : n % 2 == 0 ? 1.0 : -1.0;
  if (n > 8 && ::fabs(x) < 1.0) return ::sin((n + 0.5) * ::acos(x)) / ::sin(0.5 * ::acos(x));
  return chebyshev_recurrence(x, n, 2.0 * x + 1.0);
}

inline constexpr int64_t kLargestHermiteDegree = 512;  // beyond it the values leave the range of numbers
inline double hermite_h(double x, double degree) {
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
inline double hermite_he(double x, double degree) {
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
inline double laguerre_l(double x, double degree) {
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
inline double legendre_p(double x, double degree) {
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
