// Group normalization, y = (x - mean) rstd weight + bias, with fused gradients. It works on [batch][channel][space],
// with a weight for each channel. Beside it stands what all normalizations share.
#include <cmath>
#include <vector>

#include "base/checked.h"
#include "base/parallel.h"
#include "dispatch/registration.h"
#include "ops/computed.h"
#include "ops/memory_format.h"
#include "ops/normalization.h"
#include "ops/normalization_channels.h"
#include "ops/normalization_moments.h"
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

void promise_in_order(Call& c, const Tensor& t, bool channels_last) {
  TensorInfo info{t.sizes(), {}, t.dtype(), t.device()};
  if (channels_last) info.strides = channels_last_strides(t.sizes());
  c.promise(std::move(info));
}

}  // namespace normalization

using namespace normalization;

namespace {

constexpr int64_t kCachedGroup = 65536;  // elements that stay in the cache between statistics and result

// ---------------------------------------------------------------- channels

// The mean and the mean square distance from it.
template <class T>
struct MomentsOfRow {
  template <class Fma>
  CRESSET_INLINE void run(const T* x, int64_t n, T* mean, double* variance) {
    const double share = n ? 1 / static_cast<double>(n) : 0;
    const RowMoments<T> moments = moments_of_row(x, n, share);
    *mean = moments.mean;
    *variance = moments.squares * share;
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
// ---------------------------------------------------------------- group normalization

// (input, weight?, bias?, N, C, HxW, group, eps) -> (output, mean, rstd)
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

Tensor plain_result(const Tensor& out) { return out.is_contiguous() ? out : empty(out.sizes(), out.dtype()); }

void run_group_norm(Call& c) {
  const Tensor t = c.tensor(0);
  const int64_t batch = c.integer(3), channels = c.integer(4), space = c.integer(5), groups = c.integer(6),
                wide = groups ? channels / groups : 0;
  const double eps = c.real(7);
  visit_computed(t.dtype(), "group_norm", [&]<class T>() {
    const Tensor plain = contiguous(t), y = plain_result(c.out(0)), mean = made<T>(c.out(1)), rstd = made<T>(c.out(2));
    const bool converts = t.dtype() != dtype_of<T>;
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
    const bool streams = !converts && streams_rows(y.bytes(), batch * channels, space, sizeof(T), 1);
    const auto scale_rows = [&](const T* from, T* to, int64_t first, int64_t count) {
      run_vectorized<ScaleRows<T>>(from, to, static_cast<const T*>(center.data()), static_cast<const T*>(scale.data()),
                                   static_cast<const T*>(shift.data()), first, count, batch * channels, space, streams);
    };
    if (wide * space <= kCachedGroup) {
      const ConvertedRows<T> from{plain, wide * space}, result{y, wide * space};
      parallel_for(batch * groups, grain(wide * space), [&](int64_t begin, int64_t end) {
        for_converted_rows<T, 2>(begin, end, wide * space, converts,
                                 [&](int64_t first, int64_t count, const std::array<T*, 2>& space_of) {
                                   const T* x = from.read(first, count, space_of[0]);
                                   T* to = result.place(first, space_of[1]);
                                   for (int64_t i = 0; i < count; ++i) {
                                     double variance;
                                     run_vectorized<MomentsOfRow<T>>(x + i * wide * space, wide * space,
                                                                     mean.data<T>() + first + i, &variance);
                                     settle(first + i, variance);
                                     scale_rows(x + i * wide * space, to + i * wide * space, (first + i) * wide, wide);
                                   }
                                   result.write(first, count, to);
                                 });
      });
    } else {
      const Tensor x = convert(plain, dtype_of<T>);
      const ConvertedRows<T> from{plain, space}, result{y, space};
      const int64_t sizes[] = {batch * groups, wide * space}, strides[] = {wide * space, 1},
                    results[] = {batch * groups};
      const Tensor variance = empty(results, dtype_of<T>),
                   flat_mean = view_of(mean, results, contiguous_strides(results), mean.offset());
      variance_and_mean(view_of(x, sizes, strides, x.offset()), 2, 0, variance, flat_mean);
      for (int64_t i = 0; i < batch * groups; ++i) settle(i, static_cast<double>(variance.data<T>()[i]));
      parallel_for(batch * channels, grain(space), [&](int64_t begin, int64_t end) {
        for_converted_rows<T, 2>(begin, end, space, converts,
                                 [&](int64_t first, int64_t count, const std::array<T*, 2>& space_of) {
                                   T* to = result.place(first, space_of[1]);
                                   scale_rows(from.read(first, count, space_of[0]), to, first, count);
                                   result.write(first, count, to);
                                 });
      });
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
    const Tensor grads = contiguous(c.tensor(0)), plain = contiguous(t), mean = ready<T>(c.tensor(2)),
                 rstd = ready<T>(c.tensor(3));
    const bool converts = grads.dtype() != dtype_of<T> || t.dtype() != dtype_of<T>;
    const Tensor dw = made<T>(c.out(1)), db = made<T>(c.out(2));
    const auto weight = vector_or<T>(c, 4, channels, T(1));
    const int64_t rows = batch * channels;
    std::vector<GradSums> sums(static_cast<size_t>(rows));
    const auto sum_rows = [&](const T* g, const T* x, int64_t first, int64_t count) {
      for (int64_t r = first; r < first + count; ++r, g += space, x += space)
        run_vectorized<GradSumsOfRow<T>>(g, x, mean.data<T>()[r / wide], space, &sums[static_cast<size_t>(r)]);
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
    const bool streams = !converts && streams_rows(c.out(0).bytes(), rows, space, sizeof(T), 2);
    const auto grad_rows = [&](const T* g, const T* x, T* dx, int64_t first, int64_t count) {
      run_vectorized<GradRows<T>>(g, x, dx, static_cast<const GradCoefficients<T>*>(&k), first, count, rows, space,
                                  streams);
    };
    // f(first row, how many, grad, input, result), of rows of n elements.
    const auto for_rows = [&](int64_t count, int64_t n, auto&& f) {
      const ConvertedRows<T> g{grads, n}, x{plain, n}, dx{c.out(0), n};
      parallel_for(count, grain(n), [&](int64_t begin, int64_t end) {
        for_converted_rows<T, 3>(
            begin, end, n, converts, [&](int64_t first, int64_t some, const std::array<T*, 3>& space_of) {
              T* to = dx.place(first, space_of[2]);
              f(first, some, g.read(first, some, space_of[0]), x.read(first, some, space_of[1]), to);
              dx.write(first, some, to);
            });
      });
    };
    if (wide * space <= kCachedGroup) {
      for_rows(batch * groups, wide * space, [&](int64_t first, int64_t count, const T* g, const T* x, T* dx) {
        for (int64_t i = first; i < first + count; ++i, g += wide * space, x += wide * space, dx += wide * space) {
          sum_rows(g, x, i * wide, wide);
          settle(i);
          grad_rows(g, x, dx, i * wide, wide);
        }
      });
    } else {
      const ConvertedRows<T> g{convert(grads, dtype_of<T>), space}, x{convert(plain, dtype_of<T>), space};
      parallel_for(rows, grain(space), [&](int64_t begin, int64_t end) {
        sum_rows(g.read(begin, end - begin, nullptr), x.read(begin, end - begin, nullptr), begin, end - begin);
      });
      for (int64_t i = 0; i < batch * groups; ++i) settle(i);
      for_rows(rows, space,
               [&](int64_t first, int64_t count, const T* g, const T* x, T* dx) { grad_rows(g, x, dx, first, count); });
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
    store(c.out(1), dw);
    store(c.out(2), db);
  });
}

}  // namespace

REGISTER(normalization) {
  const uint32_t kInternal = kFunctionOnly | kNotDifferentiable;
  r.add(
      "native_group_norm(Tensor input, Tensor? weight, Tensor? bias, SymInt N, SymInt C, SymInt HxW, int group, float "
      "eps) -> "
      "(Tensor, Tensor mean, Tensor rstd)",
      infer_group_norm, run_group_norm, kFunctionOnly);
  r.add(
      "_group_norm_backward(Tensor grad, Tensor input, Tensor mean, Tensor rstd, Tensor? weight, int N, int C, int "
      "HxW, int group) -> (Tensor, Tensor, Tensor)",
      infer_group_norm_backward, run_group_norm_backward, kInternal);
}

}  // namespace cresset
