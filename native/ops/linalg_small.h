// Small matrices, factorized and solved for in plain loops: LAPACK takes longer to begin. Columns lie one after the
// other; what a routine of LAPACK of the same name does, these do in its order, so that they give what it would but for
// rounding.
#pragma once
#include <cmath>
#include <complex>
#include <limits>
#include <type_traits>

#include "base/dtype.h"

namespace cresset::small {

template <class T>
inline constexpr bool kIsComplex = !std::is_floating_point_v<T>;
template <class T>
struct RealOf {
  using type = T;
};
template <class R>
struct RealOf<std::complex<R>> {
  using type = R;
};
template <class T>
using Real = typename RealOf<T>::type;

template <class T>
T conjugate(T x) {
  if constexpr (kIsComplex<T>)
    return {x.real(), -x.imag()};
  else
    return x;
}
template <class T>
T conjugate_if(bool on, T x) {
  return on ? conjugate(x) : x;
}
// A product without the checks for infinities that the standard's complex one has.
template <class T>
T times(T a, T b) {
  if constexpr (kIsComplex<T>)
    return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
  else
    return a * b;
}
template <class T>
Real<T> real(T x) {
  if constexpr (kIsComplex<T>)
    return x.real();
  else
    return x;
}
// The size by which LAPACK chooses a pivot.
template <class T>
Real<T> size_of_pivot(T x) {
  if constexpr (kIsComplex<T>)
    return std::abs(x.real()) + std::abs(x.imag());
  else
    return std::abs(x);
}
template <class T>
Real<T> square(T x) {
  if constexpr (kIsComplex<T>)
    return x.real() * x.real() + x.imag() * x.imag();
  else
    return x * x;
}

// A = L Lᴴ of the lower triangle, in place: 0, or the order of the first leading minor that is not positive.
template <class T>
int32_t potrf(T* a, int64_t n);

// A = P L U in place, pivots from 1: 0, or which element of U's diagonal is the first zero.
template <class T>
int32_t getrf(T* a, int64_t m, int64_t n, int32_t* pivots);

// A X = B in place for a triangle a[i row_step + k column_step]: x has n numbers a column, `x_step` apart, and its
// columns are `x_next` apart.
template <class T>
void trsm(const T* a, int64_t row_step, int64_t column_step, bool lower, bool unit, bool conjugated, int64_t n, T* x,
          int64_t x_step, int64_t x_next, int64_t columns);

// Householder's form of A = Q R in place. False where a length cannot be summed up as it is: the matrix is then
// LAPACK's.
template <class T>
bool geqrf(T* a, int64_t m, int64_t n, T* tau);

// The first columns of the product of k reflectors, over the reflectors.
template <class T>
void orgqr(T* q, int64_t m, int64_t columns, int64_t k, const T* tau);

}  // namespace cresset::small
