// Batch normalization, y = (x - mean) rstd weight + bias, with fused gradients: a mean, a deviation and a weight for
// each channel. It walks [batch][channel][space], or [row][channel] with the channels innermost in memory
// (channels_last, or no space at all).
//
// Inside a compiled region, images in private layout are normalized late (dispatch/late.h): the statistics are computed
// now, the result is computed together with the activation that follows. In backward the gradient is summed as it is
// made, and that of the input is late as well.
#include <array>
#include <cmath>
#include <vector>

#include "base/parallel.h"
#include "dispatch/late.h"
#include "dispatch/registration.h"
#include "ops/channel_sums.h"
#include "ops/computed.h"
#include "ops/memory_format.h"
#include "ops/normalization.h"
#include "ops/normalization_channels.h"
#include "tensor/private_layout.h"

namespace cresset {

using namespace normalization;

namespace {

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

ChannelImages channels_of(const Tensor& t) {
  ChannelImages s{t.size(0), t.size(1), 1, false};
  for (int64_t d = 2; d < t.dim(); ++d) s.points *= t.size(d);
  s.inside = s.points == 1 || is_channels_last_batch(t);
  return s;
}
// In the memory order of the input.
Tensor in_layout_of(const Tensor& input, const Tensor& t) { return in_order(t, is_channels_last_batch(input)); }

// What channel_sums.h reads.
template <class T>
Tensor elements_of(const ChannelImages& s, const Tensor& images) {
  return s.inside ? convert(images, dtype_of<T>) : images;
}

// A result of these images, made row by row from others: f(first row, how many, rows of the inputs, rows of the result,
// whether they are streamed). Rows are those of channels where they are innermost, otherwise of points.
template <class T, size_t kInputs, class F>
void make_image_rows(const ChannelImages& s, const std::array<Tensor, kInputs>& inputs, const Tensor& out, F&& f) {
  const int64_t n = s.inside ? s.channels : s.points, rows = s.inside ? s.each() : s.images * s.channels;
  const ConvertedRows<T> result{out, n};
  bool converts = result.converts();
  for (const Tensor& t : inputs) converts |= t.dtype() != dtype_of<T>;
  const bool streams = !converts && streams_rows(out.bytes(), rows, n, sizeof(T), kInputs);
  using Space = std::array<T*, kInputs + 1>;
  parallel_for(rows, grain(n), [&](int64_t begin, int64_t end) {
    for_converted_rows<T, kInputs + 1>(begin, end, n, converts, [&](int64_t first, int64_t count, const Space& space) {
      std::array<const T*, kInputs> from;
      for (size_t k = 0; k < kInputs; ++k) from[k] = ConvertedRows<T>{inputs[k], n}.read(first, count, space[k]);
      T* to = result.place(first, space[kInputs]);
      f(first, count, from, to, streams);
      result.write(first, count, to);
    });
  });
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

// y = x scale + shift.
template <class T>
struct Scaling {
  std::vector<T> scale, shift;
};

// The statistics of x, which is the input, in training; they are the call's second and third result.
template <class T>
Scaling<T> find_scaling(const Call& c, const ChannelImages& s, const ImageElements<T>& x) {
  const double momentum = c.real(6), eps = c.real(7);
  const size_t channels = static_cast<size_t>(s.channels);
  std::vector<T> mean, rstd(channels);
  if (c.boolean(5)) {
    const double count = static_cast<double>(s.each());
    std::vector<double> means(channels), squares(channels);
    channel_moments<T>(s, x, means.data(), squares.data());
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
  Scaling<T> y{vector_or<T>(c, 1, s.channels, T(1)), vector_or<T>(c, 2, s.channels, T(0))};
  for (size_t i = 0; i < channels; ++i) {
    y.scale[i] *= rstd[i];
    y.shift[i] -= mean[i] * y.scale[i];
  }
  return y;
}

void run_batch_norm(Call& c) {
  const Tensor t = c.tensor(0);
  const ChannelImages s = channels_of(t);
  if (c.boolean(5)) {
    fill(c.out(1), Scalar(0));
    fill(c.out(2), Scalar(0));
  }
  if (t.numel() == 0) return;
  visit_computed(t.dtype(), "batch_norm", [&]<class T>() {
    const Tensor images = in_layout_of(t, t);
    const Scaling<T> by = find_scaling<T>(c, s, c.boolean(5) ? elements_of<T>(s, images) : Tensor());
    const T *a = by.scale.data(), *b = by.shift.data();
    make_image_rows<T, 1>(s, {images}, c.out(0),
                          [&](int64_t first, int64_t count, const std::array<const T*, 1>& from, T* to, bool streams) {
                            if (s.inside)
                              run_vectorized<ScaleColumns<T>>(from[0], to, a, b, int64_t{0}, count, s.channels,
                                                              streams);
                            else
                              run_vectorized<ScaleRows<T>>(from[0], to, static_cast<const T*>(nullptr), a, b, first,
                                                           count, s.channels, s.points, streams);
                          });
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

// The gradients of weight and bias, the call's second and third result, and what that of the input is made with. The
// sums are those of the gradient, and of the gradient times the distance from the mean.
template <class T>
GradCoefficients<T> find_coefficients(const Call& c, const ChannelImages& s, const std::vector<T>& mean,
                                      const std::vector<double>& level, const std::vector<double>& slope) {
  const auto rstd = vector_or<T>(c, 3, s.channels, T(1)), weight = vector_or<T>(c, 4, s.channels, T(1));
  const Tensor dw = made<T>(c.out(1)), db = made<T>(c.out(2));
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
  store(c.out(1), dw);
  store(c.out(2), db);
  return k;
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
    const Tensor grads = in_layout_of(t, c.tensor(0)), images = in_layout_of(t, t);
    const auto mean = vector_or<T>(c, 2, s.channels, T(0));
    std::vector<double> level(mean.size()), slope(mean.size());
    channel_sums<T>(s, elements_of<T>(s, grads), elements_of<T>(s, images), mean.data(), level.data(), slope.data());
    const GradCoefficients<T> k = find_coefficients(c, s, mean, level, slope);
    make_image_rows<T, 2>(s, {grads, images}, c.out(0),
                          [&](int64_t first, int64_t count, const std::array<const T*, 2>& from, T* to, bool streams) {
                            if (s.inside)
                              run_vectorized<GradColumns<T>>(from[0], from[1], to, k.a.data(), k.p.data(), k.q.data(),
                                                             k.mean.data(), int64_t{0}, count, s.channels, streams);
                            else
                              run_vectorized<GradRows<T>>(from[0], from[1], to, &k, first, count, s.channels, s.points,
                                                          streams);
                          });
  });
}

// ---------------------------------------------------------------- late

// Elements [at, at + n) of rows of channels, as whole rows and parts of one: f(from where, its channel, rows, how
// wide).
template <class F>
void for_columns(int64_t at, int64_t n, int64_t channels, F&& f) {
  for (int64_t done = 0; done < n;) {
    const int64_t channel = (at + done) % channels, rows = channel ? 0 : (n - done) / channels,
                  width = rows ? channels : std::min(channels - channel, n - done);
    f(done, channel, std::max<int64_t>(rows, 1), width);
    done += std::max<int64_t>(rows, 1) * width;
  }
}

struct LateNormalization final : PlacedWork {
  explicit LateNormalization(Scaling<float> scaling) : by(std::move(scaling)) {}
  void run(char* result, char* const* inputs, int64_t at, int64_t n) const override {
    const auto* x = reinterpret_cast<const float*>(inputs[0]);
    auto* y = reinterpret_cast<float*>(result);
    for_columns(at, n, std::ssize(by.scale), [&](int64_t first, int64_t channel, int64_t rows, int64_t width) {
      run_vectorized<ScaleColumns<float>>(x + first, y + first, by.scale.data() + channel, by.shift.data() + channel,
                                          int64_t{0}, rows, width, false);
    });
  }
  const Scaling<float> by;
};

struct LateGradient final : PlacedWork {
  explicit LateGradient(GradCoefficients<float> coefficients) : k(std::move(coefficients)) {}
  void run(char* result, char* const* inputs, int64_t at, int64_t n) const override {
    const auto *g = reinterpret_cast<const float*>(inputs[0]), *x = reinterpret_cast<const float*>(inputs[1]);
    auto* dx = reinterpret_cast<float*>(result);
    for_columns(at, n, std::ssize(k.a), [&](int64_t first, int64_t channel, int64_t rows, int64_t width) {
      run_vectorized<GradColumns<float>>(g + first, x + first, dx + first, k.a.data() + channel, k.p.data() + channel,
                                         k.q.data() + channel, k.mean.data() + channel, int64_t{0}, rows, width, false);
    });
  }
  const GradCoefficients<float> k;
};

TensorInfo info_of(const Tensor& t) { return {t.sizes(), {}, t.dtype(), t.device()}; }

// The results but the first, which is late.
void give_statistics(Call& c) {
  c.op.infer(c);
  c.give({});
  for (int64_t i = 1; i < c.promised.size(); ++i) c.give(empty(c.promised[i]));
  c.promised.clear();
}

bool batch_norm_late(Call& c) {
  const Tensor t = c.tensor(0);
  if (t.dtype() != Dtype::f32 || !has_plain_tensors(c)) return false;
  settle_arguments(c);
  const Tensor x = physical(t);
  if (!x.defined() || !channels_of(x).inside) return false;
  give_statistics(c);
  const auto scaling = [&] {
    const LongWork work(t.numel());
    return find_scaling<float>(c, channels_of(x), x.data<float>());
  };
  c.outputs[0] = placed_late(c.op, {&t, 1}, info_of(t), RefPtr<PlacedWork>(new LateNormalization(scaling())));
  return true;
}

bool batch_norm_backward_late(Call& c) {
  const Tensor g = c.tensor(0), t = c.tensor(1);
  if (g.dtype() != Dtype::f32 || t.dtype() != Dtype::f32 || !has_plain_tensors(c)) return false;
  const auto settle = [](const Tensor& waits) {
    if (const RefPtr<Pending> values = pending_of(*waits.storage())) values->settle();
  };
  for (int i = 1; i < 5; ++i)
    if (c.has(i)) settle(c.tensor(i));
  c.op.infer(c);
  c.promised.clear();
  const Tensor x = physical(t);
  if (!x.defined() || !channels_of(x).inside) return false;
  const ChannelImages s = channels_of(x);
  const float* from = x.data<float>();
  const auto mean = vector_of<float>(c.tensor(2));
  std::vector<double> level(mean.size()), slope(mean.size());
  if (!channel_sums_late(s, g, from, mean.data(), level.data(), slope.data())) {
    settle(g);
    const Tensor lying = physical(g);
    if (!lying.defined()) return false;
    const LongWork work(t.numel());
    channel_sums<float>(s, lying.data<float>(), from, mean.data(), level.data(), slope.data());
  }
  give_statistics(c);
  const Tensor inputs[] = {g, t};
  const RefPtr<PlacedWork> work(new LateGradient(find_coefficients(c, s, mean, level, slope)));
  c.outputs[0] = placed_late(c.op, inputs, info_of(t), work);
  return true;
}

}  // namespace

REGISTER(normalization_batch) {
  r.add(
      "native_batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool "
      "training, float momentum, float eps) -> (Tensor, Tensor mean, Tensor rstd)",
      infer_batch_norm, run_batch_norm, kFunctionOnly | kFirstResultOnly | kKnowsLayout);
  r.add(
      "_batch_norm_backward(Tensor grad, Tensor input, Tensor mean, Tensor rstd, Tensor? weight, bool training) -> "
      "(Tensor, Tensor, Tensor)",
      infer_batch_norm_backward, run_batch_norm_backward, kFunctionOnly | kNotDifferentiable | kKnowsLayout);
  let_compute_late("native_batch_norm", DeviceType::cpu, batch_norm_late);
  let_compute_late("_batch_norm_backward", DeviceType::cpu, batch_norm_backward_late);
}

}  // namespace cresset
