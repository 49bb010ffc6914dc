// softmax and log_softmax along one dimension, and their gradients, each as one fused pass over rows that stay in the
// cache.
//
// The tensor is seen as [outer][n][inner]. Along the last dimension a row is contiguous; along another, `inner` rows
// run side by side. The halves are computed in float.
#include <array>

#include "base/exponentials.h"
#include "base/parallel.h"
#include "dispatch/registration.h"
#include "ops/computed.h"
#include "ops/reduction.h"
#include "tensor/blocks.h"
#include "tensor/transpose.h"

namespace cresset {
namespace {

constexpr int64_t kSideBySide = 256;

// ---------------------------------------------------------------- forward

template <class T, bool kLog>
struct SoftmaxRows {
  template <class Fma>
  CRESSET_INLINE void run(const T* x, T* out, int64_t rows, int64_t n, bool streams) {
    RowWriter<T> writer(streams);
    for (int64_t r = 0; r < rows; ++r, x += n, out += n) {
      T* y = writer.place(out);
      const T largest = fold_run(Extreme<T, true>(), x, n);
      double sum = 0;
      if (n < kFoldLanes) {  // too short for lanes: two plain loops
#pragma GCC ivdep
        for (int64_t i = 0; i < n; ++i) y[i] = math::exp<Fma>(x[i] - largest);
        for (int64_t i = 0; i < n; ++i) sum += static_cast<double>(y[i]);
      } else {
        sum = sum_of_terms<T>(n, [=](int64_t i) CRESSET_TERM { return y[i] = math::exp<Fma>(x[i] - largest); });
      }
      if constexpr (kLog) {
        const T log_sum = static_cast<T>(math::log(sum));
#pragma GCC ivdep
        for (int64_t i = 0; i < n; ++i) y[i] = (x[i] - largest) - log_sum;
      } else {
        const T scale = static_cast<T>(1 / sum);
        for (int64_t i = 0; i < n; ++i) y[i] *= scale;
      }
      writer.write(out, n);
    }
    writer.finish();
  }
};

template <class T, bool kLog>
struct SoftmaxColumns {
  template <class Fma>
  CRESSET_INLINE void run(const T* x, T* y, int64_t n, int64_t step, int64_t count) {
    alignas(64) T largest[kSideBySide], sums[kSideBySide];
    fold_columns(Extreme<T, true>(), x, step, n, count, largest);
    for (int64_t c = 0; c < count; ++c) sums[c] = 0;
    for (int64_t r = 0; r < n; ++r) {
      const T* __restrict from = x + r * step;
      T* __restrict to = y + r * step;
      for (int64_t c = 0; c < count; ++c) {
        const T e = math::exp<Fma>(from[c] - largest[c]);
        sums[c] += e;
        if constexpr (!kLog) to[c] = e;
      }
    }
    for (int64_t c = 0; c < count; ++c) sums[c] = kLog ? math::log(sums[c]) : 1 / sums[c];
    for (int64_t r = 0; r < n; ++r) {
      const T* __restrict from = x + r * step;
      T* __restrict to = y + r * step;
      for (int64_t c = 0; c < count; ++c) to[c] = kLog ? (from[c] - largest[c]) - sums[c] : to[c] * sums[c];
    }
  }
};

// ---------------------------------------------------------------- gradients

template <class T, bool kLog>
struct GradientRows {
  template <class Fma>
  CRESSET_INLINE void run(const T* g, const T* y, T* result, int64_t rows, int64_t n, bool streams) {
    RowWriter<T> writer(streams);
    for (int64_t r = 0; r < rows; ++r, g += n, y += n, result += n) {
      T* out = writer.place(result);
      if constexpr (kLog) {
        const T sum = static_cast<T>(sum_of_terms<T>(n, [=](int64_t i) CRESSET_TERM { return g[i]; }));
#pragma GCC ivdep
        for (int64_t i = 0; i < n; ++i) out[i] = g[i] - math::exp<Fma>(y[i]) * sum;
      } else {
        const T sum = static_cast<T>(sum_of_terms<T>(n, [=](int64_t i) CRESSET_TERM { return g[i] * y[i]; }));
#pragma GCC ivdep
        for (int64_t i = 0; i < n; ++i) out[i] = (g[i] - sum) * y[i];
      }
      writer.write(result, n);
    }
    writer.finish();
  }
};

template <class T, bool kLog>
struct GradientColumns {
  template <class Fma>
  CRESSET_INLINE void run(const T* g, const T* y, T* out, int64_t n, int64_t step, int64_t count) {
    alignas(64) T sums[kSideBySide];
    for (int64_t c = 0; c < count; ++c) sums[c] = 0;
    for (int64_t r = 0; r < n; ++r)
      for (int64_t c = 0; c < count; ++c) sums[c] += kLog ? g[r * step + c] : g[r * step + c] * y[r * step + c];
    for (int64_t r = 0; r < n; ++r) {
      const T* __restrict a = g + r * step, * __restrict b = y + r * step;
      T* __restrict to = out + r * step;
      for (int64_t c = 0; c < count; ++c)
        to[c] = kLog ? a[c] - math::exp<Fma>(b[c]) * sums[c] : (a[c] - sums[c]) * b[c];
    }
  }
};

// ---------------------------------------------------------------- short rows

// Rows too short to fill vectors are turned, so that neighboring rows lie side by side: a third of the time for rows of
// 10 or 16. What a row becomes does not depend on its neighbors.
constexpr int64_t kShortRow = 32, kRowsTurned = 64;

// columns(turned inputs, turned result, count) for up to kRowsTurned rows at a time.
template <class T, size_t kInputs, class Columns>
void turn_rows(const std::array<const T*, kInputs>& inputs, T* out, int64_t rows, int64_t n, Columns&& columns) {
  alignas(64) T turned[kInputs][kShortRow * kRowsTurned], result[kShortRow * kRowsTurned];
  for (int64_t r = 0; r < rows; r += kRowsTurned) {
    const int64_t count = std::min(kRowsTurned, rows - r);
    for (size_t k = 0; k < kInputs; ++k) transpose_matrix(turned[k], kRowsTurned, inputs[k] + r * n, n, count, n);
    columns(turned, result, count);
    transpose_matrix(out + r * n, n, result, kRowsTurned, n, count);
  }
}

// ---------------------------------------------------------------- driving

// rows(first row, how many) along the last dimension, columns(offset, how many) along another.
template <class Rows, class Columns>
void for_each_part(const AlongDim& l, Rows&& rows, Columns&& columns) {
  if (l.inner == 1) {
    parallel_for(l.outer, std::max<int64_t>(1, kParallelGrain / 4 / std::max<int64_t>(l.n, 1)),
                 [&](int64_t begin, int64_t end) { rows(begin, end - begin); });
    return;
  }
  const int64_t blocks = (l.inner + kSideBySide - 1) / kSideBySide;
  const int64_t work = std::max<int64_t>(1, l.n * std::min(l.inner, kSideBySide));
  parallel_for(l.outer * blocks, std::max<int64_t>(1, kParallelGrain / 4 / work), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t column = i % blocks * kSideBySide;
      columns(i / blocks * l.n * l.inner + column, std::min(kSideBySide, l.inner - column));
    }
  });
}

template <bool kLog>
void run_softmax(Call& c) {
  const Tensor out = c.out();
  if (out.numel() == 0) return;
  visit_computed(out.dtype(), kLog ? "log_softmax" : "softmax", [&]<class T>() {
    const AlongDim l = along(c.tensor(0), c.integer(1));
    if (l.inner == 1 && l.n > kShortRow) {
      const ConvertedRows<T> x{contiguous(c.tensor(0)), l.n}, y{out, l.n};
      const bool streams = !y.converts() && streams_rows(out.bytes(), l.outer, l.n, sizeof(T), 1);
      return for_each_part(
          l,
          [&](int64_t row, int64_t rows) {
            for_converted_rows<T, 2>(row, row + rows, l.n, x.converts() || y.converts(),
                                     [&](int64_t first, int64_t count, const std::array<T*, 2>& space) {
                                       T* to = y.place(first, space[1]);
                                       run_vectorized<SoftmaxRows<T, kLog>>(x.read(first, count, space[0]), to, count,
                                                                            l.n, streams);
                                       y.write(first, count, to);
                                     });
          },
          [](int64_t, int64_t) {});
    }
    const Tensor x = ready<T>(c.tensor(0)), y = out.dtype() == dtype_of<T> ? out : empty(out.sizes(), dtype_of<T>);
    const T* from = x.data<T>();
    T* to = y.data<T>();
    for_each_part(
        l,
        [&](int64_t row, int64_t rows) {
          turn_rows<T, 1>({from + row * l.n}, to + row * l.n, rows, l.n, [&](auto& x, T* y, int64_t count) {
            run_vectorized<SoftmaxColumns<T, kLog>>(static_cast<const T*>(x[0]), y, l.n, kRowsTurned, count);
          });
        },
        [&](int64_t at, int64_t count) {
          run_vectorized<SoftmaxColumns<T, kLog>>(from + at, to + at, l.n, l.inner, count);
        });
    if (y.get() != out.get()) copy_into(out, y);
  });
}
template <bool kLog>
void infer_softmax(Call& c) {
  const Tensor t = c.tensor(0);
  wrap_dim(c.integer(1), t.dim());
  const Dtype dtype = c.dtype_or(2, t.dtype());
  check_implemented(is_floating(dtype) && size_of(dtype) > 1,
                    kLog ? "\"log_softmax_lastdim_kernel_impl\"" : "\"softmax_lastdim_kernel_impl\"",
                    " not implemented for '", legacy_name(dtype), "'");
  c.promise(t.sizes(), dtype, t.device());
}

template <bool kLog>
void run_gradient(Call& c) {
  const Tensor out = c.out();
  if (out.numel() == 0) return;
  visit_computed(c.tensor(1).dtype(), kLog ? "log_softmax_backward" : "softmax_backward", [&]<class T>() {
    const AlongDim l = along(c.tensor(1), c.integer(2));
    if (l.inner == 1 && l.n > kShortRow) {
      const ConvertedRows<T> g{contiguous(c.tensor(0)), l.n}, y{contiguous(c.tensor(1)), l.n}, result{out, l.n};
      const bool streams = !result.converts() && streams_rows(out.bytes(), l.outer, l.n, sizeof(T), 2);
      return for_each_part(
          l,
          [&](int64_t row, int64_t rows) {
            for_converted_rows<T, 3>(row, row + rows, l.n, g.converts() || y.converts() || result.converts(),
                                     [&](int64_t first, int64_t count, const std::array<T*, 3>& space) {
                                       T* to = result.place(first, space[2]);
                                       run_vectorized<GradientRows<T, kLog>>(g.read(first, count, space[0]),
                                                                             y.read(first, count, space[1]), to, count,
                                                                             l.n, streams);
                                       result.write(first, count, to);
                                     });
          },
          [](int64_t, int64_t) {});
    }
    const Tensor g = ready<T>(c.tensor(0)), y = ready<T>(c.tensor(1)),
                 result = out.dtype() == dtype_of<T> ? out : empty(out.sizes(), dtype_of<T>);
    const T *a = g.data<T>(), *b = y.data<T>();
    T* to = result.data<T>();
    for_each_part(
        l,
        [&](int64_t row, int64_t rows) {
          turn_rows<T, 2>(
              {a + row * l.n, b + row * l.n}, to + row * l.n, rows, l.n, [&](auto& x, T* result, int64_t count) {
                run_vectorized<GradientColumns<T, kLog>>(static_cast<const T*>(x[0]), static_cast<const T*>(x[1]),
                                                         result, l.n, kRowsTurned, count);
              });
        },
        [&](int64_t at, int64_t count) {
          run_vectorized<GradientColumns<T, kLog>>(a + at, b + at, to + at, l.n, l.inner, count);
        });
    if (result.get() != out.get()) copy_into(out, result);
  });
}
void infer_gradient(Call& c) {
  const Tensor y = c.tensor(1);
  wrap_dim(c.integer(2), y.dim());
  check(c.tensor(0).sizes() == y.sizes(), c.op.name(), ": the gradient has shape ", list(c.tensor(0).sizes()),
        ", the output ", list(y.sizes()));
  c.promise(y.sizes(), c.dtype_or(3, y.dtype()), y.device());
}

}  // namespace

REGISTER(softmax) {
  r.add("softmax(Tensor input, int dim, ScalarType? dtype=None) -> Tensor", infer_softmax<false>, run_softmax<false>);
  r.add("log_softmax(Tensor input, int dim, ScalarType? dtype=None) -> Tensor", infer_softmax<true>, run_softmax<true>);
  r.add("_softmax_backward_data(Tensor grad_output, Tensor output, int dim, ScalarType? input_dtype=None) -> Tensor",
        infer_gradient, run_gradient<false>, kFunctionOnly);
  r.add(
      "_log_softmax_backward_data(Tensor grad_output, Tensor output, int dim, ScalarType? input_dtype=None) -> Tensor",
      infer_gradient, run_gradient<true>, kFunctionOnly);
}

}  // namespace cresset
