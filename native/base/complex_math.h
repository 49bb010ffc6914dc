// Functions of complex numbers, made of those of real ones.
//
// At infinities, nan and signed zeros they give what the C standard (annex G) asks for; elsewhere a few units in the
// last place of each part. Included by code that is compiled for the baseline instruction set only, and by CUDA kernels
// that need it (cresset/cuda/kernels/complex.cuh).
#pragma once
#ifndef CRESSET_KERNEL
#include "base/complex_arithmetic.h"
#endif

namespace cresset::math {

// Where the functions change their formulas.
template <typename T>
struct ComplexRange;
template <>
struct ComplexRange<float> {
  static constexpr float exp_overflows = 88.0f;
  static constexpr float tanh_is_one = 12.0f;
  static constexpr float huge = 8.5e37f;                     // a quarter of the largest number
  static constexpr float tiny = 1e-30f;                      // sums and products below it lose digits
  static constexpr float rescue = 1.152921504606846976e18f;  // 2^60: lifts tiny numbers
  static constexpr float square_from = 8.8817842e-16f, square_to = 1.1529215e18f;  // 2^-50, 2^60: squares lose nothing
  static constexpr float lift = 1.2676506e30f, ln_lift = 69.3147180559945309f;     // 2^100: brings others between them
  static constexpr float far = 32768.0f;                                           // 1 beside its square does not count
  static constexpr float end = 67108864.0f;                                        // nor beside itself
  static constexpr float near = 1e-15f;  // the inverse of its square is near infinity
};
template <>
struct ComplexRange<double> {
  static constexpr double exp_overflows = 709.0;
  static constexpr double tanh_is_one = 22.0;
  static constexpr double huge = 4.4e307;
  static constexpr double tiny = 1e-290;
  static constexpr double rescue = 4.14951556888099295851e180;                                        // 2^600
  static constexpr double square_from = 3.8725919148493183e-121, square_to = 3.2733906078961419e150;  // 2^-400, 2^500
  static constexpr double lift = 4.14951556888099295851e180, ln_lift = 415.888308335967185650;        // 2^600
  static constexpr double far = 1073741824.0;
  static constexpr double end = 36028797018963968.0;
  static constexpr double near = 1e-150;
};

// The functions of the parts: CUDA's, or the C library's, which for single numbers are quicker than those of the loops.
namespace scalar {
#define CRESSET_OF_ONE(name)                                  \
  CRESSET_INLINE float name(float x) { return ::name##f(x); } \
  CRESSET_INLINE double name(double x) { return ::name(x); }
#define CRESSET_OF_TWO(name)                                              \
  CRESSET_INLINE float name(float x, float y) { return ::name##f(x, y); } \
  CRESSET_INLINE double name(double x, double y) { return ::name(x, y); }
CRESSET_OF_ONE(exp)
CRESSET_OF_ONE(expm1)
CRESSET_OF_ONE(log)
CRESSET_OF_ONE(log1p)
CRESSET_OF_ONE(sqrt)
CRESSET_OF_ONE(sin)
CRESSET_OF_ONE(cos)
CRESSET_OF_ONE(sinh)
CRESSET_OF_ONE(cosh)
CRESSET_OF_ONE(tanh)
CRESSET_OF_ONE(asinh)
CRESSET_OF_TWO(atan2)
CRESSET_OF_TWO(hypot)
CRESSET_OF_TWO(copysign)
#undef CRESSET_OF_ONE
#undef CRESSET_OF_TWO
CRESSET_INLINE float abs(float x) { return ::fabsf(x); }
CRESSET_INLINE double abs(double x) { return ::fabs(x); }
CRESSET_INLINE float fma(float a, float b, float c) { return ::fmaf(a, b, c); }
CRESSET_INLINE double fma(double a, double b, double c) { return ::fma(a, b, c); }
#ifdef __CUDACC__
CRESSET_INLINE void sine_and_cosine(float x, float& s, float& c) { ::sincosf(x, &s, &c); }
CRESSET_INLINE void sine_and_cosine(double x, double& s, double& c) { ::sincos(x, &s, &c); }
#else
template <typename T>
CRESSET_INLINE void sine_and_cosine(T x, T& s, T& c) {
  s = sin(x), c = cos(x);
}
#endif
}  // namespace scalar

template <typename T>
CRESSET_INLINE bool is_finite(T x) {
  return scalar::abs(x) < static_cast<T>(INFINITY);
}
template <typename T>
CRESSET_INLINE bool is_infinity(T x) {
  return scalar::abs(x) == static_cast<T>(INFINITY);
}
template <typename T>
CRESSET_INLINE Complex<T> times_i(Complex<T> z) {
  return {-z.im, z.re};
}
template <typename T>
CRESSET_INLINE Complex<T> over_i(Complex<T> z) {
  return {z.im, -z.re};
}

template <typename T>
CRESSET_DEVICE T abs(Complex<T> z) {
  return hypot(z.re, z.im);
}

// ---- exponentials ----

template <typename T>
CRESSET_DEVICE Complex<T> exp(Complex<T> z) {
  const T nan = static_cast<T>(NAN), infinity = static_cast<T>(INFINITY);
  if (z.im == T(0)) return {scalar::exp(z.re), z.im};
  if (!is_finite(z.im)) {
    if (z.re == -infinity) return {T(0), scalar::copysign(T(0), z.im)};
    return {z.re == infinity ? infinity : nan, nan};
  }
  const T c = scalar::cos(z.im), s = scalar::sin(z.im);
  if (z.re > ComplexRange<T>::exp_overflows) {  // the product may not
    const T root = scalar::exp(T(0.5) * z.re);
    return {root * c * root, root * s * root};
  }
  const T size = scalar::exp(z.re);
  return {size * c, size * s};
}
template <typename T>
CRESSET_DEVICE Complex<T> exp2(Complex<T> z) {
  return exp(z * T(0.693147180559945309417));
}
// exp(a + bi) - 1: its real part is (exp(a) - 1) cos(b) + (cos(b) - 1), in which nothing cancels for small a and b.
template <typename T>
CRESSET_DEVICE Complex<T> expm1(Complex<T> z) {
  const T growth = scalar::expm1(z.re), half_sine = scalar::sin(z.im * T(0.5));
  return {growth * scalar::cos(z.im) - T(2) * half_sine * half_sine, (growth + T(1)) * scalar::sin(z.im)};
}

// ---- logarithms ----

// log|z| from |z|^2 in two numbers, the second what rounding took from the first: near 1, where the logarithm is of
// that size, nothing is lost. One way for all numbers, since threads side by side would go each way in turn; only those
// whose squares over- or underflow are scaled.
template <typename T>
CRESSET_DEVICE T log_of_size(Complex<T> z) {
  using Range = ComplexRange<T>;
  T x = scalar::abs(z.re), y = scalar::abs(z.im), back = T(0);
  if (is_infinity(x) || is_infinity(y)) return static_cast<T>(INFINITY);
  const T either = x < y ? y : x;
  if (either > Range::square_to || either < Range::square_from) {
    const bool shrinks = either > Range::square_to;
    const T scale = shrinks ? T(1) / Range::lift : Range::lift;
    x *= scale, y *= scale, back = shrinks ? Range::ln_lift : -Range::ln_lift;
  }
  const T large = x < y ? y : x, small = x < y ? x : y;
  const T a = large * large, b = small * small, sum = a + b;
  const T lost = ((a - sum) + b) + (scalar::fma(large, large, -a) + scalar::fma(small, small, -b));
  const T log = scalar::log(sum);
  return T(0.5) * (sum > T(0) ? log + lost / sum : log) + back;
}
template <typename T>
CRESSET_DEVICE Complex<T> log(Complex<T> z) {
  return {log_of_size(z), scalar::atan2(z.im, z.re)};
}
template <typename T>
CRESSET_DEVICE Complex<T> log2(Complex<T> z) {
  return log(z) * T(1.44269504088896340736);
}
template <typename T>
CRESSET_DEVICE Complex<T> log10(Complex<T> z) {
  return log(z) / T(2.30258509299404568402);
}
// log(1 + a + bi): |1 + z|^2 - 1 is a (2 + a) + b^2, exact for small z.
template <typename T>
CRESSET_DEVICE Complex<T> log1p(Complex<T> z) {
  const T excess = z.re * (T(2) + z.re) + z.im * z.im;
  const bool small = (scalar::abs(z.re) < T(0.5)) & (scalar::abs(z.im) < T(0.5));
  return {small ? T(0.5) * scalar::log1p(excess) : scalar::log(abs(z + T(1))), scalar::atan2(z.im, z.re + T(1))};
}

// ---- powers ----

// The root with a real part that is not negative: t = sqrt((|x| + |z|) / 2) is one part, y / 2t the other.
template <typename T>
CRESSET_DEVICE Complex<T> sqrt(Complex<T> z) {
  using Range = ComplexRange<T>;
  const T nan = static_cast<T>(NAN), infinity = static_cast<T>(INFINITY);
  if (is_infinity(z.im)) return {infinity, z.im};
  if (z.re != z.re) return {nan, nan};
  if (z.re == infinity) return {infinity, z.im == z.im ? scalar::copysign(T(0), z.im) : nan};
  if (z.re == -infinity) return {z.im == z.im ? T(0) : nan, scalar::copysign(infinity, z.im)};
  if (z.im == T(0)) {
    const T root = scalar::sqrt(scalar::abs(z.re));
    return z.re < T(0) ? Complex<T>(T(0), scalar::copysign(root, z.im)) : Complex<T>(root, z.im);
  }
  T x = scalar::abs(z.re), y = scalar::abs(z.im), back = T(1);
  if (x > Range::huge || y > Range::huge) {
    x *= T(0.0625), y *= T(0.0625), back = T(4);
  } else if (x < Range::tiny && y < Range::tiny) {
    x *= Range::rescue, y *= Range::rescue, back = T(1) / scalar::sqrt(Range::rescue);
  }
  const T t = scalar::sqrt((x + scalar::hypot(x, y)) * T(0.5)), other = y / (t + t) * back, root = t * back;
  return z.re < T(0) ? Complex<T>(other, scalar::copysign(root, z.im))
                     : Complex<T>(root, scalar::copysign(other, z.im));
}
template <typename T>
CRESSET_DEVICE Complex<T> pow(Complex<T> x, Complex<T> y) {
  return exp(y * log(x));
}

// ---- hyperbolic and circular functions ----

template <typename T>
CRESSET_DEVICE Complex<T> sinh(Complex<T> z) {
  const T nan = static_cast<T>(NAN);
  if (z.im == T(0)) return {scalar::sinh(z.re), z.im};
  if (!is_finite(z.im)) return {z.re == T(0) || is_infinity(z.re) ? z.re : nan, nan};
  const T c = scalar::cos(z.im), s = scalar::sin(z.im);
  if (scalar::abs(z.re) > ComplexRange<T>::exp_overflows) {
    const T root = scalar::exp(T(0.5) * scalar::abs(z.re)), half = T(0.5) * root;
    return {scalar::copysign(half, z.re) * c * root, half * s * root};
  }
  return {scalar::sinh(z.re) * c, scalar::cosh(z.re) * s};
}
template <typename T>
CRESSET_DEVICE Complex<T> cosh(Complex<T> z) {
  const T nan = static_cast<T>(NAN);
  if (z.im == T(0)) return {scalar::cosh(z.re), z.re != z.re ? z.im : z.im * scalar::copysign(T(1), z.re)};
  if (!is_finite(z.im)) {
    return {is_infinity(z.re) ? static_cast<T>(INFINITY) : nan, z.re == T(0) ? T(0) : nan};
  }
  const T c = scalar::cos(z.im), s = scalar::sin(z.im);
  if (z.re == T(0)) return {c, z.re * s};
  if (scalar::abs(z.re) > ComplexRange<T>::exp_overflows) {
    const T root = scalar::exp(T(0.5) * scalar::abs(z.re)), half = T(0.5) * root;
    return {half * c * root, scalar::copysign(half, z.re) * s * root};
  }
  return {scalar::cosh(z.re) * c, scalar::sinh(z.re) * s};
}
// (sinh cosh + i sin cos) / (sinh^2 + cos^2)
template <typename T>
CRESSET_DEVICE Complex<T> tanh(Complex<T> z) {
  const T nan = static_cast<T>(NAN);
  if (is_infinity(z.re)) {
    const bool turns = is_finite(z.im) & (scalar::abs(z.im) > T(1));
    return {scalar::copysign(T(1), z.re), scalar::copysign(T(0), turns ? scalar::sin(z.im) * scalar::cos(z.im) : z.im)};
  }
  if (z.im == T(0)) return {scalar::tanh(z.re), z.im};
  if (!is_finite(z.im)) return {z.re == T(0) ? z.re : nan, nan};
  T s, c;
  scalar::sine_and_cosine(z.im, s, c);
  if (scalar::abs(z.re) > ComplexRange<T>::tanh_is_one) {
    const T fall = scalar::exp(-scalar::abs(z.re));
    return {scalar::copysign(T(1), z.re), T(4) * s * c * fall * fall};
  }
  const T rise = scalar::sinh(z.re), below = scalar::fma(rise, rise, c * c);
  return {rise * scalar::sqrt(scalar::fma(rise, rise, T(1))) / below, s * c / below};
}
template <typename T>
CRESSET_DEVICE Complex<T> sin(Complex<T> z) {
  return over_i(sinh(times_i(z)));
}
template <typename T>
CRESSET_DEVICE Complex<T> cos(Complex<T> z) {
  return cosh(times_i(z));
}
template <typename T>
CRESSET_DEVICE Complex<T> tan(Complex<T> z) {
  return over_i(tanh(times_i(z)));
}

// ---- inverse functions: Kahan's formulas, in whose sums nothing cancels ----

template <typename T>
CRESSET_DEVICE bool is_beyond(Complex<T> z, T limit) {
  return scalar::abs(z.re) > limit || scalar::abs(z.im) > limit;
}
template <typename T>
CRESSET_DEVICE Complex<T> asin(Complex<T> z) {
  const T nan = static_cast<T>(NAN), ln2 = T(0.693147180559945309417);
  if (z.re != z.re || z.im != z.im) {
    if (is_infinity(z.re) || is_infinity(z.im)) return {nan, is_infinity(z.im) ? z.im : static_cast<T>(INFINITY)};
    return {z.re == T(0) ? z.re : nan, nan};
  }
  if (is_beyond(z, ComplexRange<T>::far)) {
    return {scalar::atan2(z.re, scalar::abs(z.im)), scalar::copysign(log_of_size(z) + ln2, z.im)};
  }
  const Complex<T> left = sqrt(T(1) - z), right = sqrt(T(1) + z);
  return {scalar::atan2(z.re, left.re * right.re - left.im * right.im),
          scalar::asinh(left.re * right.im - left.im * right.re)};
}
template <typename T>
CRESSET_DEVICE Complex<T> acos(Complex<T> z) {
  const T nan = static_cast<T>(NAN), ln2 = T(0.693147180559945309417);
  if (z.re != z.re || z.im != z.im) {
    if (is_infinity(z.re)) return {nan, static_cast<T>(-INFINITY)};
    if (is_infinity(z.im)) return {nan, -z.im};
    return {z.re == T(0) ? T(1.57079632679489661923) : nan, nan};
  }
  if (is_beyond(z, ComplexRange<T>::far)) {
    return {scalar::atan2(scalar::abs(z.im), z.re), -scalar::copysign(log_of_size(z) + ln2, z.im)};
  }
  const Complex<T> left = sqrt(T(1) - z), right = sqrt(T(1) + z);
  return {T(2) * scalar::atan2(left.re, right.re), scalar::asinh(right.re * left.im - right.im * left.re)};
}
template <typename T>
CRESSET_DEVICE Complex<T> asinh(Complex<T> z) {
  return over_i(asin(times_i(z)));
}
template <typename T>
CRESSET_DEVICE Complex<T> acosh(Complex<T> z) {
  const Complex<T> angle = acos(z);
  return {scalar::abs(angle.im), scalar::copysign(angle.re, z.im)};
}
// log((1 + z) / (1 - z)) / 2
template <typename T>
CRESSET_DEVICE Complex<T> atanh(Complex<T> z) {
  using Range = ComplexRange<T>;
  const T nan = static_cast<T>(NAN), quarter_turn = T(1.57079632679489661923);
  const T x = scalar::abs(z.re), y = scalar::abs(z.im);
  if (is_infinity(x) || is_infinity(y)) {
    return {scalar::copysign(T(0), z.re), z.im != z.im ? nan : scalar::copysign(quarter_turn, z.im)};
  }
  if (x != x || y != y) return {z.re == T(0) ? z.re : nan, nan};
  if (is_beyond(z, Range::end)) {
    const T size = x < y ? y : x, ratio = (x < y ? x : y) / size, square = T(1) + ratio * ratio;
    return {z.re / size / size / square, scalar::copysign(quarter_turn, z.im)};
  }
  const T rest = T(1) - x, distance = rest * rest + y * y;
  // Beside 1 the distance is y alone, whose square may vanish.
  const bool beside = (x == T(1)) & (y < Range::near);
  const T re =
      beside ? T(0.5) * (T(0.693147180559945309417) - scalar::log(y)) : T(0.25) * scalar::log1p(T(4) * x / distance);
  return {scalar::copysign(re, z.re), T(0.5) * scalar::atan2(T(2) * z.im, rest * (T(1) + x) - y * y)};
}
template <typename T>
CRESSET_DEVICE Complex<T> atan(Complex<T> z) {
  return over_i(atanh(times_i(z)));
}

}  // namespace cresset::math
