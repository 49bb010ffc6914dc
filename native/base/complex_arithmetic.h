// Complex numbers for generated code: their arithmetic, by the school formulas.
//
// A product is (ac - bd) + (ad + bc) i with no rescue for infinities, as PyTorch computes it. CUDA kernels include this
// file too: cresset/cuda/kernels/types.cuh.
#pragma once
#ifndef CRESSET_KERNEL
#include "base/vector_math.h"
#define CRESSET_DEVICE
// In loops of every instruction set: a function that all share would be compiled for one of them.
#define CRESSET_ARITHMETIC [[gnu::always_inline]] inline
#else
#define CRESSET_ARITHMETIC CRESSET_DEVICE inline
#endif

namespace cresset {

template <typename T>
struct Complex {
  T re, im;

  Complex() = default;
  CRESSET_ARITHMETIC Complex(T re, T im = 0) : re(re), im(im) {}

  CRESSET_ARITHMETIC friend Complex operator-(Complex a) { return {-a.re, -a.im}; }
  CRESSET_ARITHMETIC friend Complex operator+(Complex a, Complex b) { return {a.re + b.re, a.im + b.im}; }
  CRESSET_ARITHMETIC friend Complex operator-(Complex a, Complex b) { return {a.re - b.re, a.im - b.im}; }
  CRESSET_ARITHMETIC friend Complex operator*(Complex a, Complex b) {
    // Two sums, not a difference and a sum: of those g++ 12 makes a fused instruction (vfmaddsub), whatever
    // -ffp-contract says, and the bits would depend on the processor.
    return {a.re * b.re + -a.im * b.im, a.re * b.im + a.im * b.re};
  }
  CRESSET_ARITHMETIC friend Complex operator+(Complex a, T b) { return {a.re + b, a.im}; }
  CRESSET_ARITHMETIC friend Complex operator+(T a, Complex b) { return {a + b.re, b.im}; }
  CRESSET_ARITHMETIC friend Complex operator-(Complex a, T b) { return {a.re - b, a.im}; }
  CRESSET_ARITHMETIC friend Complex operator-(T a, Complex b) { return {a - b.re, -b.im}; }
  CRESSET_ARITHMETIC friend Complex operator*(Complex a, T b) { return {a.re * b, a.im * b}; }
  CRESSET_ARITHMETIC friend Complex operator*(T a, Complex b) { return {a * b.re, a * b.im}; }
  CRESSET_ARITHMETIC friend Complex operator/(Complex a, T b) { return {a.re / b, a.im / b}; }
  // Smith's method: the ratio of the divisor's parts, smaller over larger, neither overflows nor vanishes as their
  // squares would.
  CRESSET_ARITHMETIC friend Complex operator/(Complex a, Complex b) {
    if (math::abs(b.re) >= math::abs(b.im)) {
      if (b.re == T(0) && b.im == T(0)) return {a.re / math::abs(b.re), a.im / math::abs(b.im)};
      const T ratio = b.im / b.re, scale = T(1) / (b.re + b.im * ratio);
      return {(a.re + a.im * ratio) * scale, (a.im + -a.re * ratio) * scale};
    }
    const T ratio = b.re / b.im, scale = T(1) / (b.re * ratio + b.im);
    return {(a.re * ratio + a.im) * scale, (a.im * ratio + -a.re) * scale};
  }
  CRESSET_ARITHMETIC friend Complex operator/(T a, Complex b) { return Complex(a) / b; }
  CRESSET_ARITHMETIC friend bool operator==(Complex a, Complex b) { return (a.re == b.re) & (a.im == b.im); }
  CRESSET_ARITHMETIC friend bool operator!=(Complex a, Complex b) { return (a.re != b.re) | (a.im != b.im); }
  CRESSET_ARITHMETIC friend bool operator==(Complex a, T b) { return (a.re == b) & (a.im == T(0)); }
  CRESSET_ARITHMETIC friend bool operator!=(Complex a, T b) { return (a.re != b) | (a.im != T(0)); }
};

using complex64 = Complex<float>;
using complex128 = Complex<double>;

namespace math {

CRESSET_ARITHMETIC complex64 complex(float re, float im) { return {re, im}; }
CRESSET_ARITHMETIC complex128 complex(double re, double im) { return {re, im}; }

template <typename T>
CRESSET_ARITHMETIC T real(Complex<T> z) {
  return z.re;
}
template <typename T>
CRESSET_ARITHMETIC T imag(Complex<T> z) {
  return z.im;
}
template <typename T>
CRESSET_ARITHMETIC Complex<T> conj(Complex<T> z) {
  return {z.re, -z.im};
}

}  // namespace math
}  // namespace cresset
