#include "ops/linalg_small.h"

#include <algorithm>

namespace cresset::small {

template <class T>
int32_t potrf(T* a, int64_t n) {
  for (int64_t j = 0; j < n; ++j) {
    T* const column = a + j * n;
    const Real<T> pivot = real(column[j]);
    if (!(pivot > 0)) return static_cast<int32_t>(j + 1);
    const Real<T> root = std::sqrt(pivot), inverse = 1 / root;
    column[j] = root;
    for (int64_t i = j + 1; i < n; ++i) column[i] *= inverse;
    for (int64_t k = j + 1; k < n; ++k) {
      const T factor = conjugate(column[k]);
      T* const to = a + k * n;
#pragma GCC ivdep
      for (int64_t i = k; i < n; ++i) to[i] -= times(column[i], factor);
    }
  }
  return 0;
}

template <class T>
int32_t getrf(T* a, int64_t m, int64_t n, int32_t* pivots) {
  int32_t info = 0;
  for (int64_t j = 0; j < std::min(m, n); ++j) {
    T* const column = a + j * m;
    int64_t p = j;
    Real<T> largest = size_of_pivot(column[j]);
    for (int64_t i = j + 1; i < m; ++i)
      if (const Real<T> size = size_of_pivot(column[i]); size > largest) largest = size, p = i;
    pivots[j] = static_cast<int32_t>(p + 1);
    if (column[p] == T(0)) {
      if (!info) info = static_cast<int32_t>(j + 1);
    } else {
      if (p != j)
        for (int64_t c = 0; c < n; ++c) std::swap(a[c * m + j], a[c * m + p]);
      if (std::abs(column[j]) >= std::numeric_limits<Real<T>>::min()) {
        const T inverse = T(1) / column[j];
        for (int64_t i = j + 1; i < m; ++i) column[i] = times(column[i], inverse);
      } else {
        for (int64_t i = j + 1; i < m; ++i) column[i] /= column[j];
      }
    }
    for (int64_t c = j + 1; c < n; ++c) {
      T* const to = a + c * m;
      const T factor = to[j];
#pragma GCC ivdep
      for (int64_t i = j + 1; i < m; ++i) to[i] -= times(column[i], factor);
    }
  }
  return info;
}

template <class T>
void trsm(const T* a, int64_t row_step, int64_t column_step, bool lower, bool unit, bool conjugated, int64_t n, T* x,
          int64_t x_step, int64_t x_next, int64_t columns) {
  for (int64_t c = 0; c < columns; ++c) {
    T* const to = x + c * x_next;
    for (int64_t step = 0; step < n; ++step) {
      const int64_t j = lower ? step : n - 1 - step, first = lower ? j + 1 : 0, last = lower ? n : j;
      T value = to[j * x_step];
      if (!unit) to[j * x_step] = value = value / conjugate_if(conjugated, a[j * (row_step + column_step)]);
      const T* const column = a + j * column_step;
      if (row_step == 1 && x_step == 1 && !conjugated) {
#pragma GCC ivdep
        for (int64_t i = first; i < last; ++i) to[i] -= times(column[i], value);
      } else {
        for (int64_t i = first; i < last; ++i)
          to[i * x_step] -= times(conjugate_if(conjugated, column[i * row_step]), value);
      }
    }
  }
}

template <class T>
bool geqrf(T* a, int64_t m, int64_t n, T* tau) {
  using Wide = double;  // in which squares of floats have room
  for (int64_t j = 0; j < std::min(m, n); ++j) {
    T* const column = a + j * m;
    Wide below = 0;
    for (int64_t i = j + 1; i < m; ++i)
      below += static_cast<Wide>(std::real(column[i])) * std::real(column[i]) +
               static_cast<Wide>(std::imag(column[i])) * std::imag(column[i]);
    const T head = column[j];
    if (below == 0 && std::imag(head) == 0) {
      for (int64_t i = j + 1; i < m; ++i)
        if (column[i] != T(0)) return false;  // their squares are too small
      tau[j] = 0;
      continue;
    }
    const Wide whole = below + static_cast<Wide>(std::real(head)) * std::real(head) +
                       static_cast<Wide>(std::imag(head)) * std::imag(head);
    if (!(whole > 1e-280 && whole < 1e280)) return false;
    const auto length = static_cast<Real<T>>(std::sqrt(whole));
    if constexpr (std::is_same_v<Real<T>, float>)
      if (!(length > 1e-30f && length < 1e30f)) return false;
    const Real<T> beta = std::real(head) > 0 ? -length : length;
    if constexpr (kIsComplex<T>)
      tau[j] = {(beta - head.real()) / beta, -head.imag() / beta};
    else
      tau[j] = (beta - head) / beta;
    const T scale = T(1) / (head - T(beta));
    for (int64_t i = j + 1; i < m; ++i) column[i] = times(column[i], scale);
    column[j] = beta;
    for (int64_t c = j + 1; c < n; ++c) {
      T* const to = a + c * m;
      T sum = to[j];
      for (int64_t i = j + 1; i < m; ++i) sum += times(conjugate(column[i]), to[i]);
      sum = times(conjugate(tau[j]), sum);
      to[j] -= sum;
#pragma GCC ivdep
      for (int64_t i = j + 1; i < m; ++i) to[i] -= times(column[i], sum);
    }
  }
  return true;
}

template <class T>
void orgqr(T* q, int64_t m, int64_t columns, int64_t k, const T* tau) {
  for (int64_t c = k; c < columns; ++c)
    for (int64_t i = 0; i < m; ++i) q[c * m + i] = i == c ? T(1) : T(0);
  for (int64_t j = k - 1; j >= 0; --j) {
    T* const column = q + j * m;
    for (int64_t c = j + 1; c < columns; ++c) {
      T* const to = q + c * m;
      T sum = to[j];
      for (int64_t i = j + 1; i < m; ++i) sum += times(conjugate(column[i]), to[i]);
      sum = times(tau[j], sum);
      to[j] -= sum;
#pragma GCC ivdep
      for (int64_t i = j + 1; i < m; ++i) to[i] -= times(column[i], sum);
    }
    for (int64_t i = j + 1; i < m; ++i) column[i] = times(-tau[j], column[i]);
    column[j] = T(1) - tau[j];
    for (int64_t i = 0; i < j; ++i) column[i] = 0;
  }
}

#define FOR_TYPE(T)                                                                                         \
  template int32_t potrf(T*, int64_t);                                                                      \
  template int32_t getrf(T*, int64_t, int64_t, int32_t*);                                                   \
  template void trsm(const T*, int64_t, int64_t, bool, bool, bool, int64_t, T*, int64_t, int64_t, int64_t); \
  template bool geqrf(T*, int64_t, int64_t, T*);                                                            \
  template void orgqr(T*, int64_t, int64_t, int64_t, const T*);
FOR_TYPE(float)
FOR_TYPE(double)
FOR_TYPE(complex64)
FOR_TYPE(complex128)
#undef FOR_TYPE

}  // namespace cresset::small
