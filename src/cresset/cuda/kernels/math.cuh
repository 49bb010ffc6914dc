// The functions that printed formulas call, by the names they have in native/base: math::exp, math::quotient, ...
//
// Real ones are CUDA's own (the C library's in the emulator). Those with series and loops are in special.cuh, those of
// complex numbers in complex.cuh.
#pragma once
#include "types.cuh"

namespace cresset {

// A scalar attribute of an operator, as native/dispatch/pointwise.h has it: a formula reads the member that fits.
struct Attribute {
  double real, imag;
  int64_t integer;
};
template <class T>
CRESSET_INLINE T attribute(const Attribute& s) {
  if constexpr (is_float<T>)
    return static_cast<T>(s.real);
  else if constexpr (is_same<T, bool>)
    return s.integer != 0;
  else if constexpr (is_complex<T>)
    return T(static_cast<part<T>>(s.real), static_cast<part<T>>(s.imag));
  else
    return static_cast<T>(s.integer);
}

namespace math {

#define CRESSET_OF_ONE(name)                                  \
  CRESSET_INLINE float name(float x) { return ::name##f(x); } \
  CRESSET_INLINE double name(double x) { return ::name(x); }
#define CRESSET_OF_TWO(name)                                              \
  CRESSET_INLINE float name(float x, float y) { return ::name##f(x, y); } \
  CRESSET_INLINE double name(double x, double y) { return ::name(x, y); }
CRESSET_OF_ONE(exp)
CRESSET_OF_ONE(exp2)
CRESSET_OF_ONE(expm1)
CRESSET_OF_ONE(log)
CRESSET_OF_ONE(log2)
CRESSET_OF_ONE(log10)
CRESSET_OF_ONE(log1p)
CRESSET_OF_ONE(sqrt)
CRESSET_OF_ONE(sin)
CRESSET_OF_ONE(cos)
CRESSET_OF_ONE(tan)
CRESSET_OF_ONE(asin)
CRESSET_OF_ONE(acos)
CRESSET_OF_ONE(atan)
CRESSET_OF_ONE(sinh)
CRESSET_OF_ONE(cosh)
CRESSET_OF_ONE(tanh)
CRESSET_OF_ONE(asinh)
CRESSET_OF_ONE(acosh)
CRESSET_OF_ONE(atanh)
CRESSET_OF_ONE(erf)
CRESSET_OF_ONE(erfc)
CRESSET_OF_ONE(lgamma)
CRESSET_OF_ONE(floor)
CRESSET_OF_ONE(ceil)
CRESSET_OF_ONE(trunc)
CRESSET_OF_ONE(rint)
CRESSET_OF_TWO(atan2)
CRESSET_OF_TWO(pow)
CRESSET_OF_TWO(hypot)
CRESSET_OF_TWO(fmod)
CRESSET_OF_TWO(nextafter)
CRESSET_OF_TWO(copysign)
#undef CRESSET_OF_ONE
#undef CRESSET_OF_TWO
// The y with erf(y) = x and erfc(y) = rest, for 0 <= x < 1; in single precision rest is 1 - x, and nothing more.
#ifndef CRESSET_EMULATED
CRESSET_INLINE double erf_inverse(double x, double rest) { return x < 0.5 ? ::erfinv(x) : ::erfcinv(rest); }
CRESSET_INLINE float erf_inverse(float x, float) { return ::erfinvf(x); }
#else  // the C library has none: a guess to three digits, then Halley's method
inline double erf_inverse(double x, double rest) {
  const double logarithm = log(rest * (1.0 + x)), middle = 4.330746750799873 + 0.5 * logarithm;  // 2 / (0.147 pi)
  double y = sqrt(sqrt(middle * middle - logarithm * (1.0 / 0.147)) - middle);
  if (rest < 1e-290) {  // exp(-y y) has few digits or none: solve log(erfc(y)) = log(rest) by its series for large y
    for (int i = 0; i < 6; ++i) {
      const double s = 1.0 / (y * y);
      y = sqrt(log1p(s * (-0.5 + s * (0.75 + s * (-1.875 + s * (6.5625 - s * 29.53125))))) -
               log(y * 1.772453850905516) - log(rest));  // sqrt(pi)
    }
    return y;
  }
  for (int i = 0; i < 3; ++i) {
    const double error = (x < 0.5 ? erf(y) - x : rest - erfc(y)) / (exp(-y * y) * 1.1283791670955126);  // 2 / sqrt(pi)
    y -= error / (1.0 + y * error);
  }
  return y;
}
inline float erf_inverse(float x, float) {
  return static_cast<float>(erf_inverse(static_cast<double>(x), 1.0 - static_cast<double>(x)));
}
#endif
// The x that a standard normal variable is below with probability p.
#ifndef CRESSET_EMULATED
CRESSET_INLINE float normal_quantile(float p) { return ::normcdfinvf(p); }
#else
inline float normal_quantile(float p) {
  const double low = p < 0.5f ? p : 1.0 - static_cast<double>(p), infinite = static_cast<double>(INFINITY);
  const double size = low == 0.0 ? infinite : 1.4142135623730951 * erf_inverse(1.0 - 2.0 * low, 2.0 * low);
  return static_cast<float>(p < 0.5f ? -size : size);
}
#endif
#ifndef CRESSET_EMULATED
CRESSET_INLINE float erfcx(float x) { return ::erfcxf(x); }
#else  // from there on erfc has few digits or none, and three terms of its series have all
inline float erfcx(float x) {
  const double z = x, s = 0.5 / (z * z);
  return static_cast<float>(z < 20.0 ? exp(z * z) * erfc(z) : 0.5641895835477563 / z * (1.0 - s * (1.0 - 3.0 * s)));
}
#endif
// The logarithm of the probability that a standard normal variable is below x.
CRESSET_INLINE float log_ndtr(float x) {
  if (x >= 0.0f && x <= 1.0f) return log(0.5f + 0.5f * erf(x * 0.70710678118654752f));
  const float square = x * x, rest = ::fmaf(x, x, -square);  // together x^2 with all its digits
  const float scaled = 0.5f * erfcx(::fabsf(x) * 0.70710678118654752f);
  if (x < 0.0f) return log(scaled) - (0.5f * x) * x;  // x^2 itself may be too large for a number
  return square < 400.0f ? log1p(-scaled * exp(-0.5f * square) * (1.0f - 0.5f * rest)) : x != x ? x : -0.0f;
}
CRESSET_INLINE bool signbit(float x) { return __builtin_bit_cast(uint32_t, x) >> 31 != 0; }
CRESSET_INLINE bool signbit(double x) { return __builtin_bit_cast(uint64_t, x) >> 63 != 0; }

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

}  // namespace math
}  // namespace cresset

#include "integer_math.h"
