// The functions with series and loops: gamma, zeta and Bessel functions, orthogonal polynomials. One copy of them
// serves the CPU and CUDA: native/base/special_math.h and polynomials.h.
#pragma once
#include "math.cuh"
#include "polynomials.h"
#include "special_math.h"

namespace cresset::math {

// The derivative of this order of digamma, from 1 to 30, for x > 0, without its sign: order! times the sum of (x +
// k)^-(order + 1), whose first terms are added one by one and the rest by the Euler-Maclaurin formula.
CRESSET_DEVICE inline float polygamma(float order, float x) {
  const float s = order + 1.0f;
  float factorial = 1.0f;
  for (float k = 2.0f; k <= order; k += 1.0f) factorial *= k;
  const auto power = [order, factorial](float inverse) {  // order! inverse^order
    float value = factorial * inverse;
    for (float k = 1.0f; k < order; k += 1.0f) value *= inverse;
    return value;
  };
  float a = x, sum = 0.0f;
  for (; a < 5.0f + order; a += 1.0f) {
    const float inverse = 1.0f / a;
    sum += power(inverse) * inverse;
  }
  const float inverse = 1.0f / a, square = inverse * inverse, before = power(inverse), last = before * inverse;
  float factor = s * last * inverse, rest = factor * (1.0f / 12.0f);
  factor *= (s + 1.0f) * (s + 2.0f) * square;
  rest -= factor * (1.0f / 720.0f);
  factor *= (s + 3.0f) * (s + 4.0f) * square;
  rest += factor * (1.0f / 30240.0f);
  factor *= (s + 5.0f) * (s + 6.0f) * square;
  rest -= factor * (1.0f / 1209600.0f);
  return sum + (before / order + (0.5f * last + rest));
}

// Orthogonal polynomials of the degrees from 2 to 7 by their recurrences: p(n) from p(0) = 1 and p(1) = `first` by
// p(k + 1) = next(k, p(k), p(k - 1)), whose k is a constant in each step.
template <class Next>
CRESSET_INLINE float of_low_degree(float first, float n, Next next) {
  float before = 1.0f, last = first;
#pragma unroll
  for (int k = 1; k < 7; ++k)
    if (n >= static_cast<float>(k + 1)) {
      const float following = next(static_cast<float>(k), last, before);
      before = last, last = following;
    }
  return last;
}
CRESSET_INLINE float low_chebyshev(float first, float x, float n) {
  const float twice = 2.0f * x;
  return of_low_degree(first, n, [=](float, float last, float before) { return twice * last - before; });
}
CRESSET_INLINE float low_hermite_h(float x, float n) {
  const float twice = 2.0f * x;
  return of_low_degree(twice, n, [=](float k, float last, float before) { return twice * last - 2.0f * k * before; });
}
CRESSET_INLINE float low_hermite_he(float x, float n) {
  return of_low_degree(x, n, [=](float k, float last, float before) { return x * last - k * before; });
}
CRESSET_INLINE float low_laguerre_l(float x, float n) {
  return of_low_degree(1.0f - x, n, [=](float k, float last, float before) {
    return ((2.0f * k + 1.0f - x) * last - k * before) * (1.0f / (k + 1.0f));
  });
}
CRESSET_INLINE float low_legendre_p(float x, float n) {
  return of_low_degree(x, n, [=](float k, float last, float before) {
    return ((2.0f * k + 1.0f) * x * last - k * before) * (1.0f / (k + 1.0f));
  });
}

}  // namespace cresset::math
