// The loops over rows and columns of which group and batch normalization are made: y = (x - mean) rstd weight + bias,
// with a weight for each channel.
#pragma once
#include <vector>

#include "base/instruction_set.h"
#include "tensor/blocks.h"

namespace cresset::normalization {

// y = (x - mean) scale + shift, with one mean, scale and shift a row; they repeat after `period` rows. x and y begin
// with the row `first`. Without `mean` it is part of the shift: the same but for the digits that numbers close together
// have in common, which are lost then.
template <class T>
struct ScaleRows {
  template <class Fma>
  CRESSET_INLINE void run(const T* x, T* y, const T* mean, const T* scale, const T* shift, int64_t first, int64_t rows,
                          int64_t period, int64_t n, bool streams) {
    if (mean && n == 1 && first + rows <= period) {  // side by side: row by row takes a fifth longer
      const T* __restrict from = x, * __restrict m = mean, * __restrict a = scale, * __restrict b = shift;
      T* __restrict to = y;
      for (int64_t r = 0; r < rows; ++r) to[r] = (from[r] - m[first + r]) * a[first + r] + b[first + r];
      return;
    }
    RowWriter<T> writer(streams);
    for (int64_t r = first; r < first + rows; ++r, x += n, y += n) {
      const T m = mean ? mean[r % period] : T(0), a = scale[r % period], b = shift[r % period];
      const T* __restrict from = x;
      T* __restrict to = writer.place(y);
      for (int64_t i = 0; i < n; ++i) to[i] = (from[i] - m) * a + b;
      writer.write(y, n);
    }
    writer.finish();
  }
};

// dx = a g - p - q (x - mean), with one set of coefficients a row or a column.
template <class T>
struct GradCoefficients {
  std::vector<T> a, p, q, mean;
  explicit GradCoefficients(int64_t n) : a(static_cast<size_t>(n)), p(a), q(a), mean(a) {}
};
template <class T>
struct GradRows {
  template <class Fma>
  CRESSET_INLINE void run(const T* g, const T* x, T* dx, const GradCoefficients<T>* k, int64_t first, int64_t rows,
                          int64_t period, int64_t n, bool streams) {
    RowWriter<T> writer(streams);
    for (int64_t r = first; r < first + rows; ++r, g += n, x += n, dx += n) {
      const size_t at = static_cast<size_t>(r % period);
      const T a = k->a[at], p = k->p[at], q = k->q[at], mean = k->mean[at];
      const T* __restrict from = x, * __restrict grad = g;
      T* __restrict to = writer.place(dx);
      for (int64_t i = 0; i < n; ++i) to[i] = a * grad[i] - p - q * (from[i] - mean);
      writer.write(dx, n);
    }
    writer.finish();
  }
};

}  // namespace cresset::normalization
