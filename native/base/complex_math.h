// Complex numbers for the generated loops: arithmetic by the school formulas, functions by the C++ library.
//
// A product is (ac - bd) + (ad + bc) i with no rescue for infinities, as PyTorch computes it. Included only by code
// that is compiled for the baseline instruction set.
#pragma once
#include <complex>

#include "base/vector_math.h"

namespace cresset {

template <typename T>
struct Complex {
  T re, im;

  Complex() = default;
  Complex(T re, T im = 0) : re(re), im(im) {}
  explicit Complex(std::complex<T> z) : re(z.real()), im(z.imag()) {}
  explicit operator std::complex<T>() const { return {re, im}; }

  friend Complex operator-(Complex a) { return {-a.re, -a.im}; }
  friend Complex operator+(Complex a, Complex b) { return {a.re + b.re, a.im + b.im}; }
  friend Complex operator-(Complex a, Complex b) { return {a.re - b.re, a.im - b.im}; }
  friend Complex operator*(Complex a, Complex b) { return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}; }
  friend Complex operator+(Complex a, T b) { return {a.re + b, a.im}; }
  friend Complex operator+(T a, Complex b) { return {a + b.re, b.im}; }
  friend Complex operator-(Complex a, T b) { return {a.re - b, a.im}; }
  friend Complex operator-(T a, Complex b) { return {a - b.re, -b.im}; }
  friend Complex operator*(Complex a, T b) { return {a.re * b, a.im * b}; }
  friend Complex operator*(T a, Complex b) { return {a * b.re, a * b.im}; }
  friend Complex operator/(Complex a, T b) { return {a.re / b, a.im / b}; }
  // Smith's method: the ratio of the divisor's parts, smaller over larger, neither overflows nor vanishes as their
  // squares would.
  friend Complex operator/(Complex a, Complex b) {
    if (math::abs(b.re) >= math::abs(b.im)) {
      if (b.re == T(0) && b.im == T(0)) return {a.re / math::abs(b.re), a.im / math::abs(b.im)};
      const T ratio = b.im / b.re, scale = T(1) / (b.re + b.im * ratio);
      return {(a.re + a.im * ratio) * scale, (a.im - a.re * ratio) * scale};
    }
    const T ratio = b.re / b.im, scale = T(1) / (b.re * ratio + b.im);
    return {(a.re * ratio + a.im) * scale, (a.im * ratio - a.re) * scale};
  }
  friend Complex operator/(T a, Complex b) { return Complex(a) / b; }
  friend bool operator==(Complex a, Complex b) { return (a.re == b.re) & (a.im == b.im); }
  friend bool operator!=(Complex a, Complex b) { return (a.re != b.re) | (a.im != b.im); }
  friend bool operator==(Complex a, T b) { return (a.re == b) & (a.im == T(0)); }
  friend bool operator!=(Complex a, T b) { return (a.re != b) | (a.im != T(0)); }
};

using complex64 = Complex<float>;
using complex128 = Complex<double>;

namespace math {

template <typename T>
Complex<T> complex(T re, T im) {
  return {re, im};
}
inline complex64 complex(float re, float im) { return {re, im}; }
inline complex128 complex(double re, double im) { return {re, im}; }

template <typename T>
T real(Complex<T> z) {
  return z.re;
}
template <typename T>
T imag(Complex<T> z) {
  return z.im;
}
template <typename T>
T abs(Complex<T> z) {
  return hypot(z.re, z.im);
}
template <typename T>
Complex<T> conj(Complex<T> z) {
  return {z.re, -z.im};
}

#define CRESSET_COMPLEX_FUNCTION(name)                             \
  template <typename T>                                            \
  Complex<T> name(Complex<T> z) {                                  \
    return Complex<T>(std::name(static_cast<std::complex<T>>(z))); \
  }
CRESSET_COMPLEX_FUNCTION(exp)
CRESSET_COMPLEX_FUNCTION(log)
CRESSET_COMPLEX_FUNCTION(log10)
CRESSET_COMPLEX_FUNCTION(sqrt)
CRESSET_COMPLEX_FUNCTION(sin)
CRESSET_COMPLEX_FUNCTION(cos)
CRESSET_COMPLEX_FUNCTION(tan)
CRESSET_COMPLEX_FUNCTION(sinh)
CRESSET_COMPLEX_FUNCTION(cosh)
CRESSET_COMPLEX_FUNCTION(tanh)
CRESSET_COMPLEX_FUNCTION(asin)
CRESSET_COMPLEX_FUNCTION(acos)
CRESSET_COMPLEX_FUNCTION(atan)
CRESSET_COMPLEX_FUNCTION(asinh)
CRESSET_COMPLEX_FUNCTION(acosh)
CRESSET_COMPLEX_FUNCTION(atanh)
#undef CRESSET_COMPLEX_FUNCTION

template <typename T>
Complex<T> exp2(Complex<T> z) {
  return exp(z * T(0.693147180559945309417));
}
// exp(a + bi) - 1: its real part is (exp(a) - 1) cos(b) + (cos(b) - 1), in which nothing cancels for small a and b.
template <typename T>
Complex<T> expm1(Complex<T> z) {
  const T growth = expm1(z.re), half_sine = sin(z.im * T(0.5));
  return {growth * cos(z.im) - T(2) * half_sine * half_sine, (growth + T(1)) * sin(z.im)};
}
template <typename T>
Complex<T> log2(Complex<T> z) {
  return log(z) * T(1.44269504088896340736);
}
// log(1 + a + bi): |1 + z|^2 - 1 is a (2 + a) + b^2, exact for small z.
template <typename T>
Complex<T> log1p(Complex<T> z) {
  const T excess = z.re * (T(2) + z.re) + z.im * z.im;
  const bool small = (abs(z.re) < T(0.5)) & (abs(z.im) < T(0.5));
  return {small ? T(0.5) * log1p(excess) : log(abs(z + T(1))), atan2(z.im, z.re + T(1))};
}
template <typename T>
Complex<T> pow(Complex<T> x, Complex<T> y) {
  return Complex<T>(std::pow(static_cast<std::complex<T>>(x), static_cast<std::complex<T>>(y)));
}

}  // namespace math
}  // namespace cresset
