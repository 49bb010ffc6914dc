// Batch and group normalization and their gradients on the device.
#include <limits>

#include "cuda/backend.h"
#include "cuda/normalization.h"
#include "cuda/reduction.h"
#include "cuda/rows.h"
#include "dispatch/on_host.h"
#include "dispatch/registration.h"
#include "ops/memory_format.h"
#include "ops/reduction.h"

namespace cresset::cuda {
namespace {

const std::initializer_list<const char*> kOptions = {"--fmad=true"};

// ---------------------------------------------------------------- channels

const std::initializer_list<const char*> kChannelMacros = {"ELEMENT", "PARAMETER", "STATISTIC", "RUNNING",
                                                           "KERNEL",  "VECTOR",    "INSIDE"};
const KernelFamily kCoefficients("normalization_channels.cuh", "channel_coefficients", kChannelMacros, kOptions);
const KernelFamily kEvaluation("normalization_channels.cuh", "channel_evaluation", kChannelMacros, kOptions);
const KernelFamily kGradients("normalization_channels.cuh", "channel_gradients", kChannelMacros, kOptions);
const KernelFamily kScale("normalization_channels.cuh", "channel_scale", kChannelMacros, kOptions);
const KernelFamily kGradient("normalization_channels.cuh", "channel_gradient", kChannelMacros, kOptions);
constexpr int64_t kBlock = 256, kUnroll = 4;  // as in normalization_channels.cuh

// How the elements of a tensor belong to rows with coefficients of their own: `space` neighbors to each of `period`
// rows, or, with the channels inside, one to each in turn.
struct Rows {
  int64_t space, period;
  bool inside;
  int vector(Dtype d, std::initializer_list<const void*> addresses) const {
    const int64_t width = size_of(d);
    auto bits = static_cast<uintptr_t>(16 / width);
    if (inside) bits |= static_cast<uintptr_t>(period);
    for (const void* p : addresses) bits |= reinterpret_cast<uintptr_t>(p) / static_cast<uintptr_t>(width);
    auto most = static_cast<int>(bits & -bits);
    while (!inside && most > space) most /= 2;
    return most;
  }
};
int64_t blocks_of(int64_t count, int vector) { return divide_up(count, kBlock * kUnroll * vector); }

void scale_elements(const Place& place, const Rows& rows, const Tensor& x, const Tensor& y, const Twins& coefficients) {
  const int vector = rows.vector(x.dtype(), {x.bytes(), y.bytes()});
  kScale.launch(place, {x.dtype(), Dtype::f32, Dtype::f32, Dtype::f32, 3, vector, rows.inside},
                blocks_of(x.numel(), vector), kBlock, 0, x.bytes(), y.bytes(), coefficients.first, coefficients.second,
                x.numel(), rows.space, rows.period);
}

// The gradients from the sums of each row: see channel_gradients in normalization_channels.cuh.
struct RowSums {
  Twins sums;  // levels and slopes
  int64_t rows, channels, wide;
  double share;
};
void gradients_of(Call& c, const Place& place, const RowSums& s, const Rows& rows, const Tensor& g, const Tensor& x,
                  const Tensor& dx, const Tensor& mean, const Tensor& rstd, const Tensor& weight) {
  const Dtype type = x.dtype(), parameter = c.out(1).dtype();
  const Tensor coefficients = scratch(3 * s.rows, computed_dtype(type), x.device());
  const int64_t step = s.rows * size_of(computed_dtype(type));
  char *a = coefficients.bytes(), *b = a + step, *d = b + step;
  kGradients.launch(place, {type, parameter, mean.dtype(), Dtype::f32, 2, 1, false},
                    divide_up(s.rows / s.wide + s.channels, kBlock), kBlock, 0, s.sums.first, s.sums.second,
                    mean.bytes(), rstd.bytes(), address_of(weight), a, b, d, c.out(1).bytes(), c.out(2).bytes(), s.rows,
                    s.channels, s.wide, s.share);
  const int vector = rows.vector(type, {g.bytes(), x.bytes(), dx.bytes()});
  kGradient.launch(place, {type, Dtype::f32, Dtype::f32, Dtype::f32, 4, vector, rows.inside},
                   blocks_of(x.numel(), vector), kBlock, 0, g.bytes(), x.bytes(), dx.bytes(), a, b, d, x.numel(),
                   rows.space, rows.period);
}

// ---------------------------------------------------------------- batch normalization

Rows rows_of(const Tensor& t) {
  int64_t points = 1;
  for (int64_t d = 2; d < t.dim(); ++d) points *= t.size(d);
  return {points, t.size(1), points == 1 || is_channels_last_batch(t)};
}
// In the memory order of the input.
Tensor in_layout_of(const Tensor& input, const Tensor& t) {
  return is_channels_last_batch(input) ? in_order(t, true) : contiguous_on_device(t);
}
uint64_t all_but_channels(const Tensor& t) { return all_dims(t) & ~uint64_t{2}; }

// (input, weight?, bias?, running_mean?, running_var?, training, momentum, eps)
void run_batch_norm(Call& c) {
  const Tensor t = c.tensor(0);
  const bool training = c.boolean(5);
  const double momentum = c.real(6), eps = c.real(7);
  const Dtype type = t.dtype();
  const Parameters p(c, 1, 2, type);
  const Tensor running_mean = c.has(3) ? c.tensor(3) : Tensor(), running_variance = c.has(4) ? c.tensor(4) : Tensor();
  const Dtype running = running_mean.defined()       ? running_mean.dtype()
                        : running_variance.defined() ? running_variance.dtype()
                                                     : Dtype::f32;
  bool fits = has_kernel(type) && has_kernel(p.dtype) && has_kernel(running);
  for (const Tensor& r : {running_mean, running_variance})
    fits = fits && (!r.defined() || (r.dtype() == running && r.is_contiguous()));
  if (!fits) return execute_on_host(c, t.device());
  if (t.numel() == 0) return fill_parameters(c);
  const Place place(t.device());
  const Rows rows = rows_of(t);
  const int64_t channels = t.size(1), count = t.numel() / channels;
  const Tensor x = in_layout_of(t, t), y = c.out(0);
  const Dtype computed = computed_dtype(type);
  const Twins coefficients(channels, computed, t.device());
  const int64_t blocks = divide_up(channels, kBlock);
  if (training) {
    const Twins moments(channels, Dtype::f64, t.device());
    reduce(x, all_but_channels(x), {Operation::moments, computed, type, moments.first, moments.second});
    kCoefficients.launch(place, {type, p.dtype, c.out(1).dtype(), running, 0, 1, false}, blocks, kBlock, 0,
                         moments.first, moments.second, c.out(1).bytes(), c.out(2).bytes(), address_of(running_mean),
                         address_of(running_variance), address_of(p.weight), address_of(p.bias), coefficients.first,
                         coefficients.second, channels, channels, int64_t{1}, static_cast<double>(count), momentum,
                         eps);
  } else {
    kEvaluation.launch(place, {type, p.dtype, Dtype::f32, running, 1, 1, false}, blocks, kBlock, 0,
                       running_mean.bytes(), running_variance.bytes(), address_of(p.weight), address_of(p.bias),
                       coefficients.first, coefficients.second, channels, eps);
  }
  scale_elements(place, rows, x, y, coefficients);
}

// (grad, input, mean, rstd, weight?, training)
void run_batch_norm_backward(Call& c) {
  const Tensor t = c.tensor(1);
  const Dtype type = t.dtype(), kept = promote(c.tensor(2).dtype(), c.tensor(3).dtype());
  const Tensor weight = c.has(4) ? contiguous_on_device(c.tensor(4)) : Tensor();
  if (t.numel() == 0) return fill_parameters(c);
  if (!has_kernel(type) || !has_kernel(kept) || !has_kernel(c.out(1).dtype())) return execute_on_host(c, t.device());
  const Place place(t.device());
  const int64_t channels = t.size(1);
  const Tensor x = in_layout_of(t, t), g = in_layout_of(t, convert(c.tensor(0), type)),
               mean = contiguous_on_device(convert(c.tensor(2), kept)),
               rstd = contiguous_on_device(convert(c.tensor(3), kept));
  RowSums s{Twins(channels, Dtype::f64, t.device()), channels, channels, 1,
            c.boolean(5) ? static_cast<double>(channels) / static_cast<double>(t.numel()) : 0.0};
  // Seen with the strides of the input: a dimension of one element may have any.
  const Tensor seen = view_of(g, x.sizes(), x.strides(), g.offset());
  reduce(seen, all_but_channels(x),
         {Operation::gradient_sums, computed_dtype(type), kept, s.sums.first, s.sums.second, 0, 0, x.bytes(),
          mean.bytes()});
  gradients_of(c, place, s, rows_of(t), g, x, c.out(0), mean, rstd, weight);
}

// ---------------------------------------------------------------- group normalization

Tensor as_rows(const Tensor& t, int64_t rows, int64_t n) {
  const int64_t sizes[] = {rows, n}, strides[] = {n, 1};
  return view_of(t, sizes, strides, t.offset());
}

// (input, weight?, bias?, N, C, HxW, group, eps)
void run_group_norm(Call& c) {
  const Tensor t = c.tensor(0);
  const int64_t batch = c.integer(3), channels = c.integer(4), space = c.integer(5), groups = c.integer(6),
                wide = groups ? channels / groups : 0;
  const Dtype type = t.dtype(), computed = computed_dtype(type);
  const Parameters p(c, 1, 2, type);
  if (t.numel() == 0 || !has_kernel(type) || !has_kernel(p.dtype)) return execute_on_host(c, t.device());
  const Place place(t.device());
  const Tensor x = contiguous_on_device(t),
               y = c.out(0).is_contiguous() ? c.out(0) : empty(t.sizes(), type, t.device());
  const int64_t rows = batch * channels;
  const Twins moments(batch * groups, Dtype::f64, t.device());
  const Twins coefficients(rows, computed, t.device());
  reduce(as_rows(x, batch * groups, wide * space), 2,
         {Operation::moments, computed, type, moments.first, moments.second});
  void* const none = nullptr;
  kCoefficients.launch(place, {type, p.dtype, c.out(1).dtype(), Dtype::f32, 0, 1, false}, divide_up(rows, kBlock),
                       kBlock, 0, moments.first, moments.second, c.out(1).bytes(), c.out(2).bytes(), none, none,
                       address_of(p.weight), address_of(p.bias), coefficients.first, coefficients.second, rows,
                       channels, wide, static_cast<double>(wide * space), 0.0, c.real(7));
  scale_elements(place, {space, rows, false}, x, y, coefficients);
  if (y.get() != c.out(0).get()) copy_into(c.out(0), y);
}

// (grad, input, mean, rstd, weight?, N, C, HxW, group)
void run_group_norm_backward(Call& c) {
  const Tensor t = c.tensor(1);
  const int64_t batch = c.integer(5), channels = c.integer(6), space = c.integer(7), groups = c.integer(8),
                wide = groups ? channels / groups : 0, rows = batch * channels;
  const Dtype type = t.dtype(), kept = promote(c.tensor(2).dtype(), c.tensor(3).dtype());
  const Tensor weight = c.has(4) ? contiguous_on_device(c.tensor(4)) : Tensor();
  if (t.numel() == 0 || !has_kernel(type) || !has_kernel(kept) || !has_kernel(c.out(1).dtype()))
    return execute_on_host(c, t.device());
  const Place place(t.device());
  const Tensor x = contiguous_on_device(t), g = contiguous_on_device(convert(c.tensor(0), type)),
               mean = contiguous_on_device(convert(c.tensor(2), kept)),
               rstd = contiguous_on_device(convert(c.tensor(3), kept));
  RowSums s{Twins(rows, Dtype::f64, t.device()), rows, channels, wide, 1 / static_cast<double>(wide * space)};
  reduce(as_rows(g, rows, space), 2,
         {Operation::gradient_sums, computed_dtype(type), kept, s.sums.first, s.sums.second, 0, 0, x.bytes(),
          mean.bytes(), wide});
  gradients_of(c, place, s, {space, rows, false}, g, x, c.out(0), mean, rstd, weight);
}

}  // namespace

REGISTER_KERNELS(normalization) {
  const auto set = [&](const char* name, Run run) { r.set_kernel(name, DeviceType::cuda, run); };
  set("native_batch_norm", run_batch_norm);
  set("_batch_norm_backward", run_batch_norm_backward);
  set("native_group_norm", run_group_norm);
  set("_group_norm_backward", run_group_norm_backward);
}

}  // namespace cresset::cuda
