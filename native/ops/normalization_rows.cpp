// Layer and RMS normalization, y = (x - mean) rstd weight + bias, with fused gradients: rows of n elements share mean
// and rstd, and there is a weight for each place in the row.
#include <algorithm>
#include <cmath>
#include <vector>

#include "base/parallel.h"
#include "dispatch/registration.h"
#include "ops/computed.h"
#include "ops/normalization.h"
#include "ops/normalization_moments.h"
#include "ops/reduction.h"
#include "tensor/blocks.h"

namespace cresset {

using namespace normalization;

namespace {

constexpr int64_t kTileRows = 64;  // rows whose column sums go into one partial result

// With kCentered, about the mean (layer normalization); without, about zero (RMS normalization).
template <class T, bool kCentered>
struct NormalizeRows {
  template <class Fma>
  CRESSET_INLINE void run(const T* x, T* out, T* means, T* rstds, const T* weight, const T* bias, int64_t rows,
                          int64_t n, double eps, bool streams) {
    const double share = n ? 1 / static_cast<double>(n) : 0;
    RowWriter<T> writer(streams);
    for (int64_t r = 0; r < rows; ++r, x += n, out += n) {
      T* y = writer.place(out);
      T mean = 0;
      double squares;
      if constexpr (kCentered) {
        const RowMoments<T> moments = moments_of_row(x, n, share);
        mean = moments.mean;
        squares = moments.squares;
      } else {
        squares = sum_of_terms<T>(n, [=](int64_t i) CRESSET_TERM { return x[i] * x[i]; });
      }
      // Squares about the mean that overflow say nothing: nan, not a row of zeros.
      const bool told = n && !(kCentered && squares == INFINITY);
      const T rstd = told ? static_cast<T>(1 / __builtin_sqrt(squares * share + eps)) : static_cast<T>(NAN);
      if constexpr (kCentered) means[r] = mean;
      rstds[r] = rstd;
      for (int64_t first = 0; first < n; first += kStreamedBlock) {
        const int64_t end = std::min(n, first + kStreamedBlock);
        if (weight) {
#pragma GCC ivdep
          for (int64_t i = first; i < end; ++i) y[i] = (x[i] - mean) * rstd * weight[i] + bias[i];
        } else {
#pragma GCC ivdep
          for (int64_t i = first; i < end; ++i) y[i] = (x[i] - mean) * rstd;
        }
        writer.write(out, first, end - first);
      }
    }
    writer.finish();
  }
};

// With h = (x - mean) rstd and k = grad weight: dx = rstd (k - mean(k) - h mean(k h)). The gradients of weight and bias
// are sums of grad h and of grad over the rows; they are added to in the same pass, unless `dw` is null.
template <class T, bool kCentered>
struct NormalizeRowsBackward {
  template <class Fma>
  CRESSET_INLINE void run(const T* g, const T* x, const T* means, const T* rstds, const T* weight, T* result,
                          T* __restrict dw, T* __restrict db, int64_t rows, int64_t n, bool streams) {
    const double share = 1 / static_cast<double>(n);
    RowWriter<T> writer(streams);
    for (int64_t r = 0; r < rows; ++r, g += n, x += n, result += n) {
      T* dx = writer.place(result);
      const T mean = kCentered ? means[r] : T(0), rstd = rstds[r];
      T level = 0;
      if constexpr (kCentered)
        level = static_cast<T>(sum_of_terms<T>(n, [=](int64_t i) CRESSET_TERM { return g[i] * weight[i]; }) * share);
      const T slope = static_cast<T>(
          sum_of_terms<T>(n, [=](int64_t i) CRESSET_TERM { return g[i] * weight[i] * ((x[i] - mean) * rstd); }) *
          share);
#pragma GCC ivdep
      for (int64_t i = 0; i < n; ++i) dx[i] = rstd * (g[i] * weight[i] - level - (x[i] - mean) * rstd * slope);
      writer.write(result, n);
      if (!dw) continue;
      for (int64_t i = 0; i < n; ++i) {
        dw[i] += g[i] * ((x[i] - mean) * rstd);
        db[i] += g[i];
      }
    }
    writer.finish();
  }
};

// Adds up the rows of partial[chunks][n] in double.
template <class T>
void add_partial(const T* partial, int64_t chunks, int64_t n, int64_t step, const Tensor& out) {
  std::vector<double> sums(static_cast<size_t>(n), 0.0);
  for (int64_t k = 0; k < chunks; ++k)
    for (int64_t i = 0; i < n; ++i) sums[static_cast<size_t>(i)] += static_cast<double>(partial[k * step + i]);
  const Tensor result = made<T>(out);
  for (int64_t i = 0; i < n; ++i) result.data<T>()[i] = static_cast<T>(sums[static_cast<size_t>(i)]);
  store(out, result);
}

struct Rows {
  int64_t count, n;
};
Rows rows_of(const Tensor& t, DimsView shape) {
  Rows rows{1, 1};
  for (int64_t s : shape) rows.n *= s;
  for (int64_t d = 0; d < t.dim() - static_cast<int64_t>(shape.size()); ++d) rows.count *= t.size(d);
  return rows;
}

// `by_value`: too few dimensions are a wrong value, as PyTorch has it for RMS normalization alone.
void check_normalized(const Call& c, const Tensor& t, DimsView shape,
                      std::initializer_list<std::pair<int, const char*>> parameters, bool by_value = false) {
  check(!shape.empty(),
        "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, but got "
        "normalized_shape = []");
  for (auto& [i, name] : parameters)
    check(!c.has(i) || c.tensor(i).sizes() == Dims(shape), "Expected ", name,
          " to be of same shape as normalized_shape, but got ", name, " of shape ",
          list(c.has(i) ? DimsView(c.tensor(i).sizes()) : shape), " and normalized_shape = ", list(shape));
  const int64_t rank = static_cast<int64_t>(shape.size());
  check_value(!by_value || t.dim() >= rank, "Input tensor must have at least ", rank, " dimensions, but got ", t.dim());
  bool fits = t.dim() >= rank;
  for (int64_t d = 0; fits && d < rank; ++d) fits = t.size(t.dim() - rank + d) == shape[static_cast<size_t>(d)];
  if (fits) return;
  std::string wanted;
  for (int64_t s : shape) wanted += ", " + std::to_string(s);
  fail("Given normalized_shape=", list(shape), ", expected input with shape [*", wanted, "], but got input of size",
       list(t.sizes()));
}

void promise_statistic(Call& c, const Tensor& t, DimsView shape, Dtype dtype) {
  Dims sizes = t.sizes();
  for (size_t d = 0; d < shape.size(); ++d) sizes[t.dim() - 1 - static_cast<int64_t>(d)] = 1;
  c.promise(sizes, dtype, t.device());
}

// (input, normalized_shape, weight, bias, eps) -> (output, mean, rstd), or without bias and mean.
template <bool kCentered>
void infer_normalize(Call& c) {
  const Tensor t = c.tensor(0);
  const DimsView shape = c.integers(1);
  if (kCentered)
    check_normalized(c, t, shape, {{2, "weight"}, {3, "bias"}});
  else
    check_normalized(c, t, shape, {{2, "weight"}}, true);
  check_implemented(is_floating(t.dtype()), kCentered ? "\"LayerNormKernelImpl\"" : "\"RMSNormKernelImpl\"",
                    " not implemented for '", legacy_name(t.dtype()), "'");
  c.promise_like(t);
  if constexpr (kCentered) check_parameter_dtypes(c, t, {2, 3});
  // rstd of RMS normalization is nobody's but the gradient's, whose terms may cancel: it has all its digits.
  const Dtype dtype = kCentered ? statistics_dtype(c, t, {2, 3}) : promote(t.dtype(), Dtype::f32);
  if (kCentered) promise_statistic(c, t, shape, dtype);
  promise_statistic(c, t, shape, dtype);
}
template <bool kCentered>
void run_normalize(Call& c) {
  const Tensor t = c.tensor(0);
  const auto [count, n] = rows_of(t, c.integers(1));
  const bool affine = c.has(2) || (kCentered && c.has(3));
  visit_computed(t.dtype(), "layer_norm", [&]<class T>() {
    const Tensor mean = kCentered ? made<T>(c.out(1)) : Tensor(), rstd = made<T>(c.out(kCentered ? 2 : 1));
    const ConvertedRows<T> x{contiguous(t), n}, y{c.out(0), n};
    const auto weight = affine ? vector_or<T>(c, 2, n, T(1)) : std::vector<T>();
    const auto bias = !affine     ? std::vector<T>()
                      : kCentered ? vector_or<T>(c, 3, n, T(0))
                                  : std::vector<T>(static_cast<size_t>(n), T(0));
    const bool streams = !y.converts() && streams_rows(c.out(0).bytes(), count, n, sizeof(T), 1);
    parallel_for(count, grain(n), [&, n = n](int64_t begin, int64_t end) {
      for_converted_rows<T, 2>(begin, end, n, y.converts(),
                               [&](int64_t first, int64_t rows, const std::array<T*, 2>& space) {
                                 T* to = y.place(first, space[1]);
                                 run_vectorized<NormalizeRows<T, kCentered>>(
                                     x.read(first, rows, space[0]), to, kCentered ? mean.data<T>() + first : nullptr,
                                     rstd.data<T>() + first, affine ? weight.data() : nullptr,
                                     affine ? bias.data() : nullptr, rows, n, c.real(kCentered ? 4 : 3), streams);
                                 y.write(first, rows, to);
                               });
    });
    if (kCentered) store(c.out(1), mean);
    store(c.out(kCentered ? 2 : 1), rstd);
  });
}

// (grad, input, normalized_shape, mean?, rstd, weight?, parameters) -> the gradients of input, weight and bias; mean is
// None for RMS normalization, and the last two are empty without `parameters`.
void infer_normalize_backward(Call& c) {
  const Tensor t = c.tensor(1);
  const DimsView shape = c.integers(2);
  const auto rank = static_cast<int64_t>(shape.size());
  check(rank <= t.dim() && std::equal(shape.begin(), shape.end(), t.sizes().end() - rank),
        "layer_norm: the input has shape ", list(t.sizes()), ", normalized_shape is ", list(shape));
  const auto [count, n] = rows_of(t, shape);
  check_sizes(c, "layer_norm", {{0, t.numel()}, {3, count}, {4, count}, {5, n}});
  c.promise_like(t);
  const int64_t none[] = {0};
  const Dtype dtype = c.tensor(c.has(5) ? 5 : 4).dtype();
  for (int i = 0; i < 2; ++i) c.promise(c.boolean(6) ? c.integers(2) : DimsView(none), dtype, t.device());
}
void run_normalize_backward(Call& c) {
  const Tensor t = c.tensor(1);
  const bool parameters = c.boolean(6);
  const auto [count, n] = rows_of(t, c.integers(2));
  visit_computed(t.dtype(), "layer_norm_backward", [&]<class T>() {
    const Tensor mean = c.has(3) ? ready<T>(c.tensor(3)) : Tensor(), rstd = ready<T>(c.tensor(4));
    const ConvertedRows<T> g{contiguous(c.tensor(0)), n}, x{contiguous(t), n}, dx{c.out(0), n};
    const bool converts = g.converts() || x.converts() || dx.converts();
    const auto weight = vector_or<T>(c, 5, n, T(1));
    const int64_t chunks = (count + kTileRows - 1) / kTileRows;
    std::vector<T> partial(static_cast<size_t>(parameters ? chunks * 2 * n : 0), T(0));
    const bool streams = !converts && streams_rows(c.out(0).bytes(), count, n, sizeof(T), 2);
    parallel_for(chunks, grain(n * kTileRows), [&, count = count, n = n](int64_t begin, int64_t end) {
      for (int64_t k = begin; k < end; ++k) {
        T* sums = parameters ? partial.data() + k * 2 * n : nullptr;
        for_converted_rows<T, 3>(
            k * kTileRows, std::min((k + 1) * kTileRows, count), n, converts,
            [&](int64_t first, int64_t rows, const std::array<T*, 3>& space) {
              T* to = dx.place(first, space[2]);
              const auto run = [&](auto loop) {
                run_vectorized<decltype(loop)>(g.read(first, rows, space[0]), x.read(first, rows, space[1]),
                                               static_cast<const T*>(mean.defined() ? mean.data<T>() + first : nullptr),
                                               static_cast<const T*>(rstd.data<T>() + first), weight.data(), to, sums,
                                               parameters ? sums + n : nullptr, rows, n, streams);
              };
              mean.defined() ? run(NormalizeRowsBackward<T, true>()) : run(NormalizeRowsBackward<T, false>());
              dx.write(first, rows, to);
            });
      }
    });
    if (!parameters) return;
    add_partial(partial.data(), chunks, n, 2 * n, c.out(1));
    add_partial(partial.data() + n, chunks, n, 2 * n, c.out(2));
  });
}

}  // namespace

REGISTER(normalization_rows) {
  r.add(
      "native_layer_norm(Tensor input, int[] normalized_shape, Tensor? weight, Tensor? bias, float eps) -> (Tensor, "
      "Tensor mean, Tensor rstd)",
      infer_normalize<true>, run_normalize<true>, kFunctionOnly | kFirstResultOnly);
  r.add("_rms_norm(Tensor input, int[] normalized_shape, Tensor? weight, float eps) -> (Tensor, Tensor rstd)",
        infer_normalize<false>, run_normalize<false>, kFunctionOnly | kFirstResultOnly, "RmsNormBackward0")
      .node_name_of = [](const Call&) { return "MulBackward0"; };  // in PyTorch the scaling is its last step
  r.add(
      "_normalize_backward(Tensor grad, Tensor input, int[] normalized_shape, Tensor? mean, Tensor rstd, Tensor? "
      "weight, bool parameters) -> (Tensor, Tensor, Tensor)",
      infer_normalize_backward, run_normalize_backward, kFunctionOnly | kNotDifferentiable);
}

}  // namespace cresset
