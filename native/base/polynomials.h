// Orthogonal polynomials by their recurrences: of one number, or of eight at a time, each with its own degree.
//
// CUDA kernels have the one, the generated loops of every instruction set the other: eight doubles are as many
// registers as the instruction set needs for them.
#pragma once
#ifndef CRESSET_KERNEL
#include "base/vector_math.h"
#endif

namespace cresset::math {

// ---- what both kinds of number have ----

CRESSET_INLINE double choose(bool which, double a, double b) { return which ? a : b; }
CRESSET_INLINE bool any(bool which) { return which; }
CRESSET_INLINE double largest(double x) { return x > 0.0 ? x : 0.0; }  // 0 for nan
template <class F>
CRESSET_INLINE double replace(bool which, double value, double x, double y, F f) {
  return which ? f(x, y) : value;
}

#ifndef CRESSET_KERNEL
inline constexpr int kLanes = 8;
typedef double Lanes __attribute__((vector_size(8 * kLanes)));
typedef int64_t LaneMask __attribute__((vector_size(8 * kLanes)));

CRESSET_INLINE Lanes choose(LaneMask which, Lanes a, Lanes b) { return which ? a : b; }
CRESSET_INLINE bool any(LaneMask which) {
  int64_t found = 0;
  for (int i = 0; i < kLanes; ++i) found |= which[i];
  return found != 0;
}
CRESSET_INLINE double largest(Lanes x) {
  double most = 0.0;
  for (int i = 0; i < kLanes; ++i) most = x[i] > most ? x[i] : most;
  return most;
}
template <class F>
CRESSET_INLINE Lanes replace(LaneMask which, Lanes value, Lanes x, Lanes y, F f) {
  if (any(which))
    for (int i = 0; i < kLanes; ++i)
      if (which[i]) value[i] = f(x[i], y[i]);
  return value;
}

// The next eight numbers in memory, or as many as are left there.
template <class T>
CRESSET_INLINE Lanes load_lanes(const T* from, int64_t left) {
  Lanes x = {};
  if (left >= kLanes)
    for (int i = 0; i < kLanes; ++i) x[i] = static_cast<double>(from[i]);
  else
    for (int i = 0; i < left; ++i) x[i] = static_cast<double>(from[i]);
  return x;
}
template <class T>
CRESSET_INLINE void store_lanes(T* to, Lanes x, int64_t left) {
  if (left >= kLanes)
    for (int i = 0; i < kLanes; ++i) to[i] = static_cast<T>(x[i]);
  else
    for (int i = 0; i < left; ++i) to[i] = static_cast<T>(x[i]);
}
#endif

// ---- recurrences ----

// A fraction of the degree is dropped, and a negative degree gives 0. Above a limit the value is nan: no recurrence
// that long has a digit left.
inline constexpr double kLargestDegree = 1e6, kLargestHermiteDegree = 512;  // a larger one leaves the range of numbers
template <class V>
CRESSET_INLINE V of_degree(V value, V degree, double limit) {
  const V constant = choose(degree < 1.0, V{} + 1.0, value), real = choose(degree <= -1.0, V{}, constant);
  return choose(degree < limit + 1.0, real, V{} + static_cast<double>(NAN));
}

// p(n) from p(0) = 1 and p(1) = `first` by p(k + 1) = next(k, p(k), p(k - 1)).
template <class V, class Next>
CRESSET_INLINE V recurrence(V first, V degree, double limit, Next next) {
  V before = V{} + 1.0, last = first;
  const double most = largest(choose(degree < limit + 1.0, degree, V{}));
  int since = 0;
  for (double k = 1.0; k + 1.0 <= most; k += 1.0) {
    if (++since == 256) {
      since = 0;
      if (!any(last == last)) break;
    }
    const V following = next(k, last, before);
    const auto goes_on = degree >= k + 1.0;
    before = choose(goes_on, last, before);
    last = choose(goes_on, following, last);
  }
  return of_degree(last, degree, limit);
}

// Of one number: its degree says how often.
template <class Next>
CRESSET_INLINE double recurrence(double first, double degree, double limit, Next next) {
  if (!(degree >= 2.0 && degree < limit + 1.0)) return of_degree(first, degree, limit);
  double before = 1.0, last = first, k = 1.0;
  for (int left = static_cast<int>(degree) - 1; left > 0; --left, k += 1.0) {
    if ((left & 255) == 0 && last != last) break;
    const double following = next(k, last, before);
    before = last, last = following;
  }
  return last;
}

// The Chebyshev polynomials of the four kinds have the recurrence p(k + 1) = 2 x p(k) - p(k - 1) and differ in p(1);
// inside [-1, 1] a high degree is a circular function of acos(x), sooner where the result is a double.
template <class Result, class V, class Circular>
CRESSET_INLINE V chebyshev(V x, V degree, V first, double highest_in_double, Circular circular) {
  const double highest = sizeof(Result) == sizeof(double) ? highest_in_double : 32.0;
  const auto high = (degree >= highest + 1.0) & (x >= -1.0) & (x <= 1.0);
  const V low = choose(high, V{}, degree), twice = 2.0 * x;
  const V value =
      recurrence(first, low, kLargestDegree, [&](double, V last, V before) { return twice * last - before; });
  return replace(high & (degree < kLargestDegree + 1.0), choose(high, of_degree(V{}, degree, kLargestDegree), value), x,
                 degree, [circular](double at, double of) { return circular(at, ::trunc(of)); });
}
template <class Result, class Circular>
CRESSET_INLINE double chebyshev(double x, double degree, double first, double highest_in_double, Circular circular) {
  const double highest = sizeof(Result) == sizeof(double) ? highest_in_double : 32.0;
  if (degree >= highest + 1.0 && degree < kLargestDegree + 1.0 && x >= -1.0 && x <= 1.0)
    return circular(x, ::trunc(degree));
  const double twice = 2.0 * x;
  return recurrence(first, degree, kLargestDegree,
                    [twice](double, double last, double before) { return twice * last - before; });
}
CRESSET_INLINE double sign_of_degree(double n) { return ::fmod(n, 2.0) == 0.0 ? 1.0 : -1.0; }
template <class Result = double, class V>
CRESSET_INLINE V chebyshev_t(V x, V degree) {
  return chebyshev<Result>(x, degree, x, 6.0, [](double at, double n) {
    if (::fabs(at) == 1.0) return at > 0.0 ? 1.0 : sign_of_degree(n);
    return ::cos(n * ::acos(at));
  });
}
template <class Result = double, class V>
CRESSET_INLINE V chebyshev_u(V x, V degree) {
  return chebyshev<Result>(x, degree, 2.0 * x, 8.0, [](double at, double n) {
    if (::fabs(at) == 1.0) return at > 0.0 ? n + 1.0 : sign_of_degree(n) * (n + 1.0);
    return ::sin((n + 1.0) * ::acos(at)) / ::sin(::acos(at));
  });
}
template <class Result = double, class V>
CRESSET_INLINE V chebyshev_v(V x, V degree) {
  return chebyshev<Result>(x, degree, 2.0 * x - 1.0, 8.0, [](double at, double n) {
    if (::fabs(at) == 1.0) return at > 0.0 ? 1.0 : sign_of_degree(n) * (2.0 * n + 1.0);
    return ::cos((n + 0.5) * ::acos(at)) / ::cos(0.5 * ::acos(at));
  });
}
template <class Result = double, class V>
CRESSET_INLINE V chebyshev_w(V x, V degree) {
  return chebyshev<Result>(x, degree, 2.0 * x + 1.0, 8.0, [](double at, double n) {
    if (::fabs(at) == 1.0) return at > 0.0 ? 2.0 * n + 1.0 : sign_of_degree(n);
    return ::sin((n + 0.5) * ::acos(at)) / ::sin(0.5 * ::acos(at));
  });
}

template <class V>
CRESSET_INLINE V hermite_h(V x, V degree) {
  const V twice = 2.0 * x;
  return recurrence(twice, degree, kLargestHermiteDegree,
                    [&](double k, V last, V before) { return twice * last - 2.0 * k * before; });
}
template <class V>
CRESSET_INLINE V hermite_he(V x, V degree) {
  return recurrence(x, degree, kLargestHermiteDegree,
                    [&](double k, V last, V before) { return x * last - k * before; });
}
template <class V>
CRESSET_INLINE V laguerre_l(V x, V degree) {
  return recurrence(1.0 - x, degree, kLargestDegree,
                    [&](double k, V last, V before) { return ((2.0 * k + 1.0 - x) * last - k * before) / (k + 1.0); });
}
template <class V>
CRESSET_INLINE V legendre_p(V x, V degree) {
  return recurrence(x, degree, kLargestDegree,
                    [&](double k, V last, V before) { return ((2.0 * k + 1.0) * x * last - k * before) / (k + 1.0); });
}

}  // namespace cresset::math
