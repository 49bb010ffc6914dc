// Group and batch normalization, y = (x - mean) rstd weight + bias, with fused gradients.
//
// They work on [batch][channel][space], with a weight for each channel. With the channels innermost in memory
// (channels_last, or no space at all) batch normalization walks [row][channel] instead.
#include <cmath>
#include <vector>

#include "base/checked.h"
#include "base/parallel.h"
#include "dispatch/registration.h"
#include "ops/channel_sums.h"
#include "ops/computed.h"
#include "ops/memory_format.h"
#include "ops/normalization.h"
#include "ops/reduction.h"
#include "tensor/blocks.h"

namespace cresset {
namespace normalization {

// Statistics are kept in the parameters' dtype where a half input comes with float parameters.
Dtype statistics_dtype(const Call& c, const Tensor& input, std::initializer_list<int> parameters) {
  for (int i : parameters)
    if (c.has(i)) return promote(input.dtype(), c.tensor(i).dtype());
  return input.dtype();
}

void check_sizes(const Call& c, const char* who, std::initializer_list<std::pair<int, int64_t>> sizes) {
  for (const auto& [i, count] : sizes)
    check(!c.has(i) || c.tensor(i).numel() == count, who, ": argument ", i, " of the backward has shape ",
          list(c.has(i) ? DimsView(c.tensor(i).sizes()) : DimsView()), ", expected ", count, " elements");
}

// Weights, biases and running statistics have the input's dtype, or all are float32 beside halves.
void check_parameter_dtypes(const Call& c, const Tensor& input, std::initializer_list<int> parameters) {
  if (!input.device().is_cpu()) return;
  const bool half = input.dtype() == Dtype::f16 || input.dtype() == Dtype::bf16;
  int first = -1;
  for (int i : parameters) {
    if (!c.has(i)) continue;
    const Dtype d = c.tensor(i).dtype();
    check(d == input.dtype() || (half && d == Dtype::f32), c.op.name(),
          ": mixed dtype (CPU): expect parameter to have scalar type of ", half ? "Float" : legacy_name(input.dtype()),
          " as the input of ", name_of(input.dtype()), ", got ", name_of(d), "; all inputs must share same datatype.");
    if (first < 0) first = i;
    check(d == c.tensor(first).dtype(), c.op.name(),
          ": mixed dtype (CPU): all the parameters must share same datatype, got ", name_of(c.tensor(first).dtype()),
          " and ", name_of(d));
  }
}

}  // namespace normalization

using namespace normalization;

namespace {

constexpr int64_t kCachedGroup = 65536;  // elements that stay in the cache between statistics and result

// ---------------------------------------------------------------- channels

// y = (x - mean) scale + shift, with one mean, scale and shift a row; they repeat after `period` rows. Without `mean`
// it is part of the shift: the same but for the digits that numbers close together have in common, which are lost then.
template <class T>
struct ScaleRows {
  template <class Fma>
  CRESSET_INLINE void run(const T* x, T* y, const T* mean, const T* scale, const T* shift, int64_t first, int64_t rows,
                          int64_t period, int64_t n, bool streams) {
    if (mean && n == 1 && first + rows <= period) {  // side by side: row by row takes a fifth longer
      const T* __restrict from = x, * __restrict m = mean, * __restrict a = scale, * __restrict b = shift;
      T* __restrict to = y;
      for (int64_t r = first; r < first + rows; ++r) to[r] = (from[r] - m[r]) * a[r] + b[r];
      return;
    }
    RowWriter<T> writer(streams);
    for (int64_t r = first; r < first + rows; ++r) {
      const T m = mean ? mean[r % period] : T(0), a = scale[r % period], b = shift[r % period];
      const T* __restrict from = x + r * n;
      T* __restrict to = writer.place(y + r * n);
      for (int64_t i = 0; i < n; ++i) to[i] = (from[i] - m) * a + b;
      writer.write(y + r * n, n);
    }
    writer.finish();
  }
};
// The mean and the mean square distance from it.
template <class T>
struct MomentsOfRow {
  template <class Fma>
  CRESSET_INLINE void run(const T* x, int64_t n, T* mean, double* variance) {
    const double share = n ? 1 / static_cast<double>(n) : 0;
    const T m = static_cast<T>(sum_of_terms<T>(n, [=](int64_t i) CRESSET_TERM { return x[i]; }) * share);
    *mean = m;
    *variance = sum_of_terms<T>(n, [=](int64_t i) CRESSET_TERM { return (x[i] - m) * (x[i] - m); }) * share;
  }
};
template <class T>
struct ScaleColumns {
  template <class Fma>
  CRESSET_INLINE void run(const T* x, T* y, const T* __restrict scale, const T* __restrict shift, int64_t first,
                          int64_t rows, int64_t columns, bool streams) {
    RowWriter<T> writer(streams);
    for (int64_t r = first; r < first + rows; ++r) {
      const T* __restrict from = x + r * columns;
      T* __restrict to = writer.place(y + r * columns);
      for (int64_t c = 0; c < columns; ++c) to[c] = from[c] * scale[c] + shift[c];
      writer.write(y + r * columns, columns);
    }
    writer.finish();
  }
};

// Sums of the gradient, and of the gradient times the distance from the mean: what all gradients of a normalization are
// made of.
struct GradSums {
  double level = 0, slope = 0;
};
template <class T>
struct GradSumsOfRow {
  template <class Fma>
  CRESSET_INLINE void run(const T* g, const T* x, T mean, int64_t n, GradSums* out) {
    out->level += sum_of_terms<T>(n, [=](int64_t i) CRESSET_TERM { return g[i]; });
    out->slope += sum_of_terms<T>(n, [=](int64_t i) CRESSET_TERM { return g[i] * (x[i] - mean); });
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
    for (int64_t r = first; r < first + rows; ++r) {
      const size_t at = static_cast<size_t>(r % period);
      const T a = k->a[at], p = k->p[at], q = k->q[at], mean = k->mean[at];
      const T* __restrict from = x + r * n, * __restrict grad = g + r * n;
      T* __restrict to = writer.place(dx + r * n);
      for (int64_t i = 0; i < n; ++i) to[i] = a * grad[i] - p - q * (from[i] - mean);
      writer.write(dx + r * n, n);
    }
    writer.finish();
  }
};
template <class T>
struct GradColumns {
  template <class Fma>
  CRESSET_INLINE void run(const T* g, const T* x, T* dx, const T* __restrict a, const T* __restrict p,
                          const T* __restrict q, const T* __restrict mean, int64_t first, int64_t rows, int64_t columns,
                          bool streams) {
    RowWriter<T> writer(streams);
    for (int64_t r = first; r < first + rows; ++r) {
      const T* __restrict from = x + r * columns, * __restrict grad = g + r * columns;
      T* __restrict to = writer.place(dx + r * columns);
      for (int64_t c = 0; c < columns; ++c) to[c] = a[c] * grad[c] - p[c] - q[c] * (from[c] - mean[c]);
      writer.write(dx + r * columns, columns);
    }
    writer.finish();
  }
};

// ---------------------------------------------------------------- group normalization

// (input, weight?, bias?, N, C, HxW, group, eps) -> (output, mean, rstd)
void promise_in_order(Call& c, const Tensor& t, bool channels_last) {
  TensorInfo info{t.sizes(), {}, t.dtype(), t.device()};
  if (channels_last) info.strides = channels_last_strides(t.sizes());
  c.promise(std::move(info));
}

void infer_group_norm(Call& c) {
  const Tensor t = c.tensor(0);
  const int64_t batch = c.integer(3), channels = c.integer(4), groups = c.integer(6);
  check(groups > 0, "Expected num groups to be greater than 0, got ", groups);
  check(batch >= 0 && channels >= 0 && c.integer(5) >= 0,
        "group_norm: the numbers of samples, channels and places must not be negative, got ", batch, ", ", channels,
        " and ", c.integer(5));
  check(batch * channels * c.integer(5) == t.numel(), "group_norm: ", batch, " samples, ", channels, " channels and ",
        c.integer(5), " places are not the ", t.numel(), " elements of an input of shape ", list(t.sizes()));
  check(channels % groups == 0,
        "Expected number of channels in input to be divisible by num_groups, but got input of shape ", list(t.sizes()),
        " and num_groups=", groups);
  for (int i : {1, 2})
    check(!c.has(i) || (c.tensor(i).dim() == 1 && c.tensor(i).numel() == channels), "Expected ",
          i == 1 ? "weight" : "bias", " to be a vector of size equal to the number of channels in input, but got ",
          i == 1 ? "weight" : "bias", " of shape ", list(c.has(i) ? DimsView(c.tensor(i).sizes()) : DimsView()),
          " and input of shape ", list(t.sizes()));
  check_implemented(is_floating(t.dtype()), "\"GroupNormKernelImpl\" not implemented for '", legacy_name(t.dtype()),
                    "'");
  check_parameter_dtypes(c, t, {1, 2});
  promise_in_order(c, t, is_channels_last(t));
  const int64_t sizes[] = {batch, groups};
  const Dtype dtype = statistics_dtype(c, t, {1, 2});
  c.promise(sizes, dtype, t.device());
  c.promise(sizes, dtype, t.device());
}

template <class T>
Tensor plain_result(const Tensor& out) {
  return out.dtype() == dtype_of<T> && out.is_contiguous() ? out : empty(out.sizes(), dtype_of<T>);
}

void run_group_norm(Call& c) {
  const Tensor t = c.tensor(0);
  const int64_t batch = c.integer(3), channels = c.integer(4), space = c.integer(5), groups = c.integer(6),
                wide = groups ? channels / groups : 0;
  const double eps = c.real(7);
  visit_computed(t.dtype(), "group_norm", [&]<class T>() {
    const Tensor x = ready<T>(t), y = plain_result<T>(c.out(0)), mean = made<T>(c.out(1)), rstd = made<T>(c.out(2));
    const auto weight = vector_or<T>(c, 1, channels, T(1)), bias = vector_or<T>(c, 2, channels, T(0));
    std::vector<T> center(static_cast<size_t>(batch * channels)), scale(center), shift(center);
    const auto settle = [&](int64_t i, double variance) {
      const T r = static_cast<T>(variance == INFINITY ? NAN : 1 / std::sqrt(variance + eps)), m = mean.data<T>()[i];
      rstd.data<T>()[i] = r;
      for (int64_t k = 0; k < wide; ++k) {
        const size_t row = static_cast<size_t>(i * wide + k), channel = row % static_cast<size_t>(channels);
        center[row] = m;
        scale[row] = r * weight[channel];
        shift[row] = bias[channel];
      }
    };
    const bool streams = streams_rows(y.data<T>(), batch * channels, space, sizeof(T));
    const auto scale_rows = [&](int64_t begin, int64_t end) {
      run_vectorized<ScaleRows<T>>(static_cast<const T*>(x.data<T>()), y.data<T>(),
                                   static_cast<const T*>(center.data()), static_cast<const T*>(scale.data()),
                                   static_cast<const T*>(shift.data()), begin, end - begin, batch * channels, space,
                                   streams);
    };
    if (wide * space <= kCachedGroup) {
      parallel_for(batch * groups, grain(wide * space), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          double variance;
          run_vectorized<MomentsOfRow<T>>(static_cast<const T*>(x.data<T>() + i * wide * space), wide * space,
                                          mean.data<T>() + i, &variance);
          settle(i, variance);
          scale_rows(i * wide, (i + 1) * wide);
        }
      });
    } else {
      const int64_t sizes[] = {batch * groups, wide * space}, strides[] = {wide * space, 1},
                    results[] = {batch * groups};
      const Tensor variance = empty(results, dtype_of<T>),
                   flat_mean = view_of(mean, results, contiguous_strides(results), mean.offset());
      variance_and_mean(view_of(x, sizes, strides, x.offset()), 2, 0, variance, flat_mean);
      for (int64_t i = 0; i < batch * groups; ++i) settle(i, static_cast<double>(variance.data<T>()[i]));
      parallel_for(batch * channels, grain(space), scale_rows);
    }
    store(c.out(0), y);
    store(c.out(1), mean);
    store(c.out(2), rstd);
  });
}

// (grad, input, mean, rstd, weight?, N, C, HxW, group) -> (grad of the input, of the weight, of the bias)
void infer_group_norm_backward(Call& c) {
  const Tensor t = c.tensor(1);
  const int64_t batch = c.integer(5), width = c.integer(6), space = c.integer(7), groups = c.integer(8);
  check(batch >= 0 && width >= 0 && space >= 0 && groups > 0 && width % groups == 0 &&
            t.numel() == checked_product("group_norm", checked_product("group_norm", batch, width), space),
        "group_norm: the input has shape ", list(t.sizes()), "; expected ", batch, " x ", width, " x ", space,
        " elements in ", groups, " groups");
  check_sizes(c, "group_norm", {{0, t.numel()}, {2, batch * groups}, {3, batch * groups}, {4, width}});
  const int64_t channels[] = {c.integer(6)};
  c.promise_like(t);
  c.promise(channels, c.has(4) ? c.tensor(4).dtype() : t.dtype(), t.device());
  c.promise(channels, c.has(4) ? c.tensor(4).dtype() : t.dtype(), t.device());
}
void run_group_norm_backward(Call& c) {
  const Tensor t = c.tensor(1);
  const int64_t batch = c.integer(5), channels = c.integer(6), space = c.integer(7), groups = c.integer(8),
                wide = channels / groups;
  visit_computed(t.dtype(), "group_norm_backward", [&]<class T>() {
    const Tensor g = ready<T>(c.tensor(0)), x = ready<T>(t), mean = ready<T>(c.tensor(2)), rstd = ready<T>(c.tensor(3));
    const Tensor dx = made<T>(c.out(0)), dw = made<T>(c.out(1)), db = made<T>(c.out(2));
    const auto weight = vector_or<T>(c, 4, channels, T(1));
    const int64_t rows = batch * channels;
    std::vector<GradSums> sums(static_cast<size_t>(rows));
    const auto sum_rows = [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r)
        run_vectorized<GradSumsOfRow<T>>(static_cast<const T*>(g.data<T>() + r * space),
                                         static_cast<const T*>(x.data<T>() + r * space), mean.data<T>()[r / wide],
                                         space, &sums[static_cast<size_t>(r)]);
    };
    GradCoefficients<T> k(rows);
    const double share = 1 / static_cast<double>(wide * space);
    const auto settle = [&](int64_t i) {
      double level = 0, slope = 0;
      for (int64_t r = i * wide; r < (i + 1) * wide; ++r) {
        level += sums[static_cast<size_t>(r)].level * static_cast<double>(weight[static_cast<size_t>(r % channels)]);
        slope += sums[static_cast<size_t>(r)].slope * static_cast<double>(weight[static_cast<size_t>(r % channels)]);
      }
      const double rs = rstd.data<T>()[i];
      for (int64_t r = i * wide; r < (i + 1) * wide; ++r) {
        const size_t at = static_cast<size_t>(r);
        k.a[at] = static_cast<T>(rs * static_cast<double>(weight[static_cast<size_t>(r % channels)]));
        k.p[at] = static_cast<T>(rs * level * share);
        k.q[at] = static_cast<T>(rs * rs * rs * slope * share);
        k.mean[at] = mean.data<T>()[i];
      }
    };
    const bool streams = streams_rows(dx.data<T>(), rows, space, sizeof(T));
    const auto grad_rows = [&](int64_t begin, int64_t end) {
      run_vectorized<GradRows<T>>(static_cast<const T*>(g.data<T>()), static_cast<const T*>(x.data<T>()), dx.data<T>(),
                                  static_cast<const GradCoefficients<T>*>(&k), begin, end - begin, rows, space,
                                  streams);
    };
    if (wide * space <= kCachedGroup) {
      parallel_for(batch * groups, grain(wide * space), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          sum_rows(i * wide, (i + 1) * wide);
          settle(i);
          grad_rows(i * wide, (i + 1) * wide);
        }
      });
    } else {
      parallel_for(rows, grain(space), sum_rows);
      for (int64_t i = 0; i < batch * groups; ++i) settle(i);
      parallel_for(rows, grain(space), grad_rows);
    }
    for (int64_t channel = 0; channel < channels; ++channel) {
      double w = 0, b = 0;
      for (int64_t n = 0; n < batch; ++n) {
        const size_t r = static_cast<size_t>(n * channels + channel);
        w += sums[r].slope * static_cast<double>(rstd.data<T>()[static_cast<int64_t>(r) / wide]);
        b += sums[r].level;
      }
      dw.data<T>()[channel] = static_cast<T>(w);
      db.data<T>()[channel] = static_cast<T>(b);
    }
    store(c.out(0), dx);
    store(c.out(1), dw);
    store(c.out(2), db);
  });
}

// ---------------------------------------------------------------- batch normalization

// Whether a result of these images, made row by row, is streamed.
bool streams_images(const ChannelImages& s, const void* result, int64_t width) {
  return s.inside ? streams_rows(result, s.each(), s.channels, width)
                  : streams_rows(result, s.images * s.channels, s.points, width);
}
ChannelImages channels_of(const Tensor& t) {
  ChannelImages s{t.size(0), t.size(1), 1, false};
  for (int64_t d = 2; d < t.dim(); ++d) s.points *= t.size(d);
  s.inside = s.points == 1 || is_channels_last_batch(t);
  return s;
}
// In T and in the memory order of the input.
template <class T>
Tensor in_layout_of(const Tensor& input, const Tensor& t) {
  return in_order(convert(t, dtype_of<T>), is_channels_last_batch(input));
}

// (input, weight?, bias?, running_mean?, running_var?, training, momentum, eps) -> (output, mean, rstd); in evaluation
// the latter are empty.
void infer_batch_norm(Call& c) {
  const Tensor t = c.tensor(0);
  check_index(t.dim() >= 2, "Dimension out of range (expected to be in range of [-1, 0], but got 1)");
  static constexpr const char* kNames[] = {"", "weight", "bias", "running_mean", "running_var"};
  const bool training = c.boolean(5);
  for (int i = 1; i < 5; ++i) {
    check(!c.has(i) || c.tensor(i).numel() == t.size(1), kNames[i], " should contain ", t.size(1), " elements not ",
          c.has(i) ? c.tensor(i).numel() : 0);
    check(i < 3 || training || c.has(i), kNames[i], " must be defined in evaluation mode");
  }
  check_implemented(is_floating(t.dtype()), "\"batch_norm\" not implemented for '", legacy_name(t.dtype()), "'");
  check_parameter_dtypes(c, t, {1, 2, 3, 4});
  promise_in_order(c, t, is_channels_last_batch(t));
  const int64_t sizes[] = {training ? t.size(1) : 0};
  const Dtype dtype = statistics_dtype(c, t, {1, 2, 3});
  c.promise(sizes, dtype, t.device());
  c.promise(sizes, dtype, t.device());
}

// running = (1 - momentum) running + momentum now. Not counted as a change of the tensor: backward never reads it in
// training.
template <class T>
void update_running(const Tensor& running, const std::vector<T>& now, double momentum) {
  const Tensor before = ready<double>(running), after = empty(running.sizes(), Dtype::f64);
  for (int64_t i = 0; i < before.numel(); ++i)
    after.data<double>()[i] =
        (1 - momentum) * before.data<double>()[i] + momentum * static_cast<double>(now[static_cast<size_t>(i)]);
  copy_into(running, after);
}

void run_batch_norm(Call& c) {
  const Tensor t = c.tensor(0);
  const ChannelImages s = channels_of(t);
  const bool training = c.boolean(5);
  const double momentum = c.real(6), eps = c.real(7);
  if (training) {
    fill(c.out(1), Scalar(0));
    fill(c.out(2), Scalar(0));
  }
  if (t.numel() == 0) return;
  visit_computed(t.dtype(), "batch_norm", [&]<class T>() {
    const Tensor x = in_layout_of<T>(t, t), y = made<T>(c.out(0));
    const size_t channels = static_cast<size_t>(s.channels);
    std::vector<T> mean, rstd(channels);
    if (training) {
      const double count = static_cast<double>(s.each());
      std::vector<double> means(channels), squares(channels);
      channel_moments(s, static_cast<const T*>(x.data<T>()), means.data(), squares.data());
      mean.assign(means.begin(), means.end());
      for (size_t i = 0; i < channels; ++i) {
        const double variance = squares[i] / count;
        rstd[i] = static_cast<T>(
            variance == 0 && eps == 0 ? 0 : 1 / std::sqrt(variance + eps));  // what is constant becomes zero, not nan
      }
      if (c.has(3)) update_running(c.tensor(3), mean, momentum);
      if (c.has(4)) {
        std::vector<T> unbiased(channels);
        for (size_t i = 0; i < channels; ++i) unbiased[i] = static_cast<T>(squares[i] / (count - 1));
        update_running(c.tensor(4), unbiased, momentum);
      }
      const Tensor kept_mean = made<T>(c.out(1)), kept_rstd = made<T>(c.out(2));
      std::copy(mean.begin(), mean.end(), kept_mean.data<T>());
      std::copy(rstd.begin(), rstd.end(), kept_rstd.data<T>());
      store(c.out(1), kept_mean);
      store(c.out(2), kept_rstd);
      // Kept in half precision, they are used so: backward must see the statistics that forward used.
      mean = vector_of<T>(c.out(1));
      rstd = vector_of<T>(c.out(2));
    } else {
      mean = vector_or<T>(c, 3, s.channels, T(0));
      const auto variance = vector_or<T>(c, 4, s.channels, T(1));
      for (size_t i = 0; i < channels; ++i)
        rstd[i] = static_cast<T>(1 / std::sqrt(static_cast<double>(variance[i]) + eps));
    }
    std::vector<T> scale = vector_or<T>(c, 1, s.channels, T(1)), shift = vector_or<T>(c, 2, s.channels, T(0));
    for (size_t i = 0; i < channels; ++i) {
      scale[i] *= rstd[i];
      shift[i] -= mean[i] * scale[i];
    }
    const T *from = x.data<T>(), *a = scale.data(), *b = shift.data();
    T* to = y.data<T>();
    const bool streams = streams_images(s, to, sizeof(T));
    if (s.inside) {
      parallel_for(s.each(), grain(s.channels), [&](int64_t begin, int64_t end) {
        run_vectorized<ScaleColumns<T>>(from, to, a, b, begin, end - begin, s.channels, streams);
      });
    } else {
      parallel_for(s.images * s.channels, grain(s.points), [&](int64_t begin, int64_t end) {
        run_vectorized<ScaleRows<T>>(from, to, static_cast<const T*>(nullptr), a, b, begin, end - begin, s.channels,
                                     s.points, streams);
      });
    }
    store(c.out(0), y);
  });
}

// (grad, input, mean, rstd, weight?, training) -> (grad of the input, of the weight, of the bias)
void infer_batch_norm_backward(Call& c) {
  const Tensor t = c.tensor(1);
  check(t.dim() > 1, "batch_norm: expected an input of at least two dimensions, got shape ", list(t.sizes()));
  check(c.tensor(0).sizes() == t.sizes(), "batch_norm: the gradient has shape ", list(c.tensor(0).sizes()),
        ", the input ", list(t.sizes()));
  check_sizes(c, "batch_norm", {{2, t.size(1)}, {3, t.size(1)}, {4, t.size(1)}});
  promise_in_order(c, t, is_channels_last_batch(t));
  const int64_t channels[] = {t.size(1)};
  c.promise(channels, c.has(4) ? c.tensor(4).dtype() : t.dtype(), t.device());
  c.promise(channels, c.has(4) ? c.tensor(4).dtype() : t.dtype(), t.device());
}

void run_batch_norm_backward(Call& c) {
  const Tensor t = c.tensor(1);
  const ChannelImages s = channels_of(t);
  if (t.numel() == 0) {
    fill(c.out(1), Scalar(0));
    fill(c.out(2), Scalar(0));
    return;
  }
  visit_computed(t.dtype(), "batch_norm_backward", [&]<class T>() {
    const Tensor g = in_layout_of<T>(t, c.tensor(0)), x = in_layout_of<T>(t, t), dx = made<T>(c.out(0)),
                 dw = made<T>(c.out(1)), db = made<T>(c.out(2));
    const auto mean = vector_or<T>(c, 2, s.channels, T(0)), rstd = vector_or<T>(c, 3, s.channels, T(1)),
               weight = vector_or<T>(c, 4, s.channels, T(1));
    std::vector<double> level(mean.size()), slope(mean.size());
    channel_sums(s, static_cast<const T*>(g.data<T>()), static_cast<const T*>(x.data<T>()), mean.data(), level.data(),
                 slope.data());
    GradCoefficients<T> k(s.channels);
    k.mean = mean;
    const double share =
        c.boolean(5) ? 1 / static_cast<double>(s.each()) : 0.0;  // in evaluation the statistics are constants
    for (size_t i = 0; i < static_cast<size_t>(s.channels); ++i) {
      const double r = rstd[i], a = r * static_cast<double>(weight[i]);
      k.a[i] = static_cast<T>(a);
      k.p[i] = static_cast<T>(a * level[i] * share);
      k.q[i] = static_cast<T>(a * r * r * slope[i] * share);
      dw.data<T>()[i] = static_cast<T>(slope[i] * r);
      db.data<T>()[i] = static_cast<T>(level[i]);
    }
    const T *grad = g.data<T>(), *from = x.data<T>();
    T* to = dx.data<T>();
    const bool streams = streams_images(s, to, sizeof(T));
    if (s.inside) {
      parallel_for(s.each(), grain(s.channels), [&](int64_t begin, int64_t end) {
        run_vectorized<GradColumns<T>>(grad, from, to, static_cast<const T*>(k.a.data()),
                                       static_cast<const T*>(k.p.data()), static_cast<const T*>(k.q.data()),
                                       static_cast<const T*>(k.mean.data()), begin, end - begin, s.channels, streams);
      });
    } else {
      parallel_for(s.images * s.channels, grain(s.points), [&](int64_t begin, int64_t end) {
        run_vectorized<GradRows<T>>(grad, from, to, static_cast<const GradCoefficients<T>*>(&k), begin, end - begin,
                                    s.channels, s.points, streams);
      });
    }
    store(c.out(0), dx);
    store(c.out(1), dw);
    store(c.out(2), db);
  });
}

}  // namespace

REGISTER(normalization) {
  const uint32_t kInternal = kFunctionOnly | kNotDifferentiable;
  r.add(
      "native_group_norm(Tensor input, Tensor? weight, Tensor? bias, int N, int C, int HxW, int group, float eps) -> "
      "(Tensor, Tensor mean, Tensor rstd)",
      infer_group_norm, run_group_norm, kFunctionOnly);
  r.add(
      "_group_norm_backward(Tensor grad, Tensor input, Tensor mean, Tensor rstd, Tensor? weight, int N, int C, int "
      "HxW, int group) -> (Tensor, Tensor, Tensor)",
      infer_group_norm_backward, run_group_norm_backward, kInternal);
  r.add(
      "native_batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool "
      "training, float momentum, float eps) -> (Tensor, Tensor mean, Tensor rstd)",
      infer_batch_norm, run_batch_norm, kFunctionOnly | kFirstResultOnly | kKnowsLayout);
  r.add(
      "_batch_norm_backward(Tensor grad, Tensor input, Tensor mean, Tensor rstd, Tensor? weight, bool training) -> "
      "(Tensor, Tensor, Tensor)",
      infer_batch_norm_backward, run_batch_norm_backward, kInternal | kKnowsLayout);
}

}  // namespace cresset
