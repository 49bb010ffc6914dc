// Pooling: the maximum or the mean over windows of the last one to three dimensions, their gradients, and the way back
// (max_unpool). Windows are the same for every plane, so they are described by one Axis for each dimension.
#include <algorithm>
#include <limits>

#include "base/checked.h"
#include "base/parallel.h"
#include "dispatch/call.h"
#include "dispatch/registration.h"
#include "ops/memory_format.h"
#include "ops/pooling_channels.h"
#include "ops/pooling_planes.h"

namespace cresset {
namespace {

struct Planes {
  int64_t count, in, out;  // planes, and the elements of one
};

int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

int64_t pooled_size(int64_t in, int64_t kernel, int64_t stride, int64_t padding, int64_t dilation, bool ceil_mode) {
  int64_t out = floor_div(in + 2 * padding - dilation * (kernel - 1) - 1 + (ceil_mode ? stride - 1 : 0), stride) + 1;
  // The last window must start inside the input or the padding on the left.
  if (ceil_mode && (out - 1) * stride >= in + padding) --out;
  return out;
}

Axis sliding(int64_t in, int64_t out, int64_t kernel, int64_t stride, int64_t padding, int64_t dilation) {
  Axis a{in, out, dilation, {}, {}, {}};
  a.stride = stride, a.taps = kernel;
  a.first_whole = std::min((padding + stride - 1) / stride, out);
  a.last_whole = std::clamp((in - 1 - dilation * (kernel - 1) + padding) / stride + 1, a.first_whole, out);
  for (int64_t o = 0; o < out; ++o) {
    const int64_t start = o * stride - padding, stop = start + dilation * (kernel - 1) + 1;
    a.begin.push_back(start >= 0 ? start : start + (-start + dilation - 1) / dilation * dilation);
    a.end.push_back(std::min(stop, in));
    a.length.push_back(std::min(stop, in + padding) - start);
  }
  return a;
}

Axis adaptive(int64_t in, int64_t out) {
  Axis a{in, out, 1, {}, {}, {}};
  for (int64_t o = 0; o < out; ++o) {
    a.begin.push_back(o * in / out);
    a.end.push_back(((o + 1) * in + out - 1) / out);
    a.length.push_back(a.end.back() - a.begin.back());
  }
  return a;
}

Planes planes_of(DimsView in, DimsView out, size_t rank) {
  Planes p{1, 1, 1};
  for (size_t d = 0; d < in.size(); ++d) {
    if (d + rank < in.size())
      p.count *= in[d];
    else
      p.in *= in[d], p.out *= out[d];
  }
  return p;
}

template <class F>
void for_planes(const Planes& p, F&& f) {
  parallel_for(p.count, std::max<int64_t>(kParallelGrain / 4 / std::max<int64_t>(p.in + p.out, 1), 1),
               [&](int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end; ++i) f(i);
               });
}

// ---------------------------------------------------------------- operators

std::string x_list(DimsView sizes) {
  std::string text;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (i) text += 'x';
    text += std::to_string(sizes[i]);
  }
  return text;
}

// The arguments of a sliding window, with one number for each dimension.
struct Sliding {
  Dims kernel, stride, padding, dilation;
  bool ceil_mode;
  size_t rank;
};

Dims each(const std::string& who, const char* name, DimsView values, size_t rank) {
  static const char* const count[] = {"", "one int", "two ints", "three ints"};
  check(values.size() == rank || values.size() == 1, who, ": ", name, " must either be a single int, or a tuple of ",
        count[rank], ", got ", list(values));
  return values.size() == 1 ? Dims(static_cast<int64_t>(rank), values[0]) : Dims(values);
}

size_t rank_of(const Operator& op) { return static_cast<size_t>(op.name()[op.name().size() - 2] - '0'); }  // ..._pool2d
std::string public_name(const Operator& op) { return op.name().substr(1); }

Sliding sliding_of(const Call& c, int kernel, int stride, int padding, int dilation, int ceil_mode) {
  const std::string who = public_name(c.op);
  Sliding s;
  s.rank = rank_of(c.op);
  s.kernel = each(who, "kernel_size", c.integers(kernel), s.rank);
  s.stride = c.integers(stride).empty() ? s.kernel : each(who, "stride", c.integers(stride), s.rank);
  s.padding = each(who, "padding", c.integers(padding), s.rank);
  s.dilation =
      dilation < 0 ? Dims(static_cast<int64_t>(s.rank), 1) : each(who, "dilation", c.integers(dilation), s.rank);
  s.ceil_mode = c.boolean(ceil_mode);
  return s;
}

// The result's sizes, after all checks.
Dims check_sliding(const Call& c, const Tensor& input, const Sliding& s) {
  const std::string who = public_name(c.op);
  const int64_t rank = static_cast<int64_t>(s.rank);
  if (rank > 1 || who == "avg_pool1d")  // max_pool1d counts in 64 bits
    for (const Dims* all : {&s.kernel, &s.stride, &s.padding, &s.dilation})
      for (int64_t v : *all)
        check(v == static_cast<int32_t>(v), who, ": value cannot be converted to type int without overflow, got ", v);
  for (int64_t v : s.stride) check(v != 0, who, ": stride should not be zero");
  for (int64_t d = 0; d < rank; ++d) {
    check(s.kernel[d] > 0, who, ": kernel size should be greater than zero, but got ", list(s.kernel));
    check(s.stride[d] > 0, who, ": stride should be greater than zero, but got ", list(s.stride));
    check(s.dilation[d] > 0, who, ": dilation should be greater than zero, but got ", list(s.dilation));
    check(s.padding[d] >= 0, who, ": pad must be non-negative, but got pad: ", s.padding[d]);
    const int64_t reach = checked_sum(who.c_str(), checked_product(who.c_str(), s.dilation[d], s.kernel[d] - 1), 1);
    check(s.padding[d] <= reach / 2, who,
          ": pad should be at most half of effective kernel size, but got pad=", s.padding[d],
          ", kernel_size=", s.kernel[d], " and dilation=", s.dilation[d]);
  }
  check(input.dim() == rank + 1 || input.dim() == rank + 2, who, ": non-empty ", rank + 1, "D or ", rank + 2,
        "D (batch mode) tensor expected for input, but got: ", list(input.sizes()));
  for (int64_t d = input.dim() == rank + 2; d < input.dim(); ++d)
    check(input.size(d) > 0, who, ": Expected ", rank + 1, "D or ", rank + 2,
          "D (batch mode) tensor with optional 0 dim batch size for input, but got:", list(input.sizes()));
  Dims sizes = input.sizes();
  const int64_t lead = input.dim() - rank;
  for (int64_t d = 0; d < rank; ++d)
    sizes[lead + d] =
        pooled_size(input.size(lead + d), s.kernel[d], s.stride[d], s.padding[d], s.dilation[d], s.ceil_mode);
  for (int64_t d = lead; d < input.dim(); ++d)
    check(sizes[d] > 0, who, ": Given input size: (",
          x_list(DimsView(input.sizes()).subspan(static_cast<size_t>(lead - 1))), "). Calculated output size: (",
          x_list(DimsView(sizes).subspan(static_cast<size_t>(lead - 1))), "). Output size is too small");
  return sizes;
}

Axes sliding_axes(DimsView in, DimsView out, const Sliding& s) {
  Axes a;
  for (size_t d = 0; d < s.rank; ++d) {
    const auto i = static_cast<int64_t>(d);
    a[3 - s.rank + d] = sliding(in[in.size() - s.rank + d], out[out.size() - s.rank + d], s.kernel[i], s.stride[i],
                                s.padding[i], s.dilation[i]);
  }
  return a;
}
Axes adaptive_axes(DimsView in, DimsView out, size_t rank) {
  Axes a;
  for (size_t d = 0; d < rank; ++d) a[3 - rank + d] = adaptive(in[in.size() - rank + d], out[out.size() - rank + d]);
  return a;
}

void no_bool(const Operator& op, Dtype d) {
  check_implemented(d != Dtype::b8, '"', public_name(op), "\" not implemented for 'Bool'");
}

// A batch whose channels are innermost. Results are then laid out alike.
bool is_channels_last(const Tensor& t, size_t rank) {
  return t.dim() == static_cast<int64_t>(rank) + 2 && is_channels_last(t);
}
void promise_alike(Call& c, DimsView sizes, Dtype dtype, const Tensor& like, size_t rank) {
  TensorInfo info{Dims(sizes), {}, dtype, like.device()};
  if (is_channels_last(like, rank)) info.strides = channels_last_strides(sizes);
  c.promise(std::move(info));
}

void max_over(const Call& c, const Axes& axes, size_t rank) {
  if (is_channels_last(c.tensor(0), rank)) {
    const Tensor x = in_order_of(c.tensor(0), c.tensor(0));
    return visit_real(x.dtype(), c.op.name().c_str() + 1, [&]<class T>() {
      // Places are counted in elements as wide as the values, so that both fill vectors alike.
      const bool narrow = sizeof(opmath<T>) <= 4 && axes[0].in * axes[1].in * axes[2].in <= INT32_MAX;
      (narrow ? max_of_channels<T, int32_t> : max_of_channels<T, int64_t>)(axes, x.size(0), x.size(1), x.data<T>(),
                                                                           c.out(0).data<T>(),
                                                                           c.out(1).data<int64_t>());
    });
  }
  const Tensor x = contiguous(c.tensor(0));
  const Planes p = planes_of(x.sizes(), c.out().sizes(), rank);
  visit_real(x.dtype(), c.op.name().c_str() + 1, [&]<class T>() {
    if constexpr (!std::is_same_v<T, bool>)  // which no_bool refuses
      for_planes(p, [&](int64_t i) {
        // Places are counted in elements as wide as the values, so that both fill vectors alike.
        const bool narrow = sizeof(opmath<T>) <= 4 && p.in <= INT32_MAX;
        (narrow ? max_plane<T, int32_t> : max_plane<T, int64_t>)(axes, x.data<T>() + i * p.in,
                                                                 c.out(0).data<T>() + i * p.out,
                                                                 c.out(1).data<int64_t>() + i * p.out);
      });
  });
}

void infer_max_pool(Call& c) {
  const Tensor x = c.tensor(0);
  no_bool(c.op, x.dtype());
  const Dims sizes = check_sliding(c, x, sliding_of(c, 1, 2, 3, 4, 5));
  promise_alike(c, sizes, x.dtype(), x, rank_of(c.op));
  promise_alike(c, sizes, Dtype::i64, x, rank_of(c.op));
}
void run_max_pool(Call& c) {
  const Sliding s = sliding_of(c, 1, 2, 3, 4, 5);
  max_over(c, sliding_axes(c.tensor(0).sizes(), c.out().sizes(), s), s.rank);
}

Divisor divisor_argument(const Call& c, int include, int override_with) {
  check(!c.has(override_with) || c.integer(override_with) != 0, public_name(c.op), ": divisor must be not zero");
  return {c.boolean(include), c.has(override_with) ? c.integer(override_with) : 0};
}
void infer_avg_pool(Call& c) {
  const Tensor x = c.tensor(0);
  divisor_argument(c, 5, 6);
  check_implemented(is_floating(x.dtype()) || is_complex(x.dtype()) || x.dtype() == Dtype::i64, '"', public_name(c.op),
                    "\" not implemented for '", facts(x.dtype()).legacy, "'");
  promise_alike(c, check_sliding(c, x, sliding_of(c, 1, 2, 3, -1, 4)), x.dtype(), x, rank_of(c.op));
}

template <class F>
void visit_mean(Dtype d, const std::string& who, F&& f) {
  if (d == Dtype::i64) return f.template operator()<int64_t>();
  visit_floating_or_complex(d, who.c_str(), f);
}
void mean_over(const Call& c, const Axes& axes, const Divisor& by, size_t rank) {
  if (is_channels_last(c.tensor(0), rank)) {
    const Tensor x = in_order_of(c.tensor(0), c.tensor(0));
    return visit_mean(x.dtype(), public_name(c.op), [&]<class T>() {
      mean_of_channels<T>(axes, by, x.size(0), x.size(1), x.data<T>(), c.out().data<T>());
    });
  }
  const Tensor x = contiguous(c.tensor(0));
  const Planes p = planes_of(x.sizes(), c.out().sizes(), rank);
  visit_mean(x.dtype(), public_name(c.op), [&]<class T>() {
    for_planes(p, [&](int64_t i) { mean_plane<T>(axes, by, x.data<T>() + i * p.in, c.out().data<T>() + i * p.out); });
  });
}
void mean_gradient_over(const Call& c, const Axes& axes, const Divisor& by, size_t rank) {
  if (is_channels_last(c.tensor(0), rank)) {
    const Tensor dy = in_order_of(c.tensor(0), c.tensor(0));
    return visit_mean(dy.dtype(), public_name(c.op), [&]<class T>() {
      mean_gradient_of_channels<T>(axes, by, dy.size(0), dy.size(1), dy.data<T>(), c.out().data<T>());
    });
  }
  const Tensor dy = contiguous(c.tensor(0));
  const Planes p = planes_of(c.out().sizes(), dy.sizes(), rank);
  visit_mean(dy.dtype(), public_name(c.op), [&]<class T>() {
    for_planes(p, [&](int64_t i) {
      mean_plane_gradient<T>(axes, by, dy.data<T>() + i * p.out, c.out().data<T>() + i * p.in);
    });
  });
}
void run_avg_pool(Call& c) {
  const Sliding s = sliding_of(c, 1, 2, 3, -1, 4);
  mean_over(c, sliding_axes(c.tensor(0).sizes(), c.out().sizes(), s), divisor_argument(c, 5, 6), s.rank);
}

// Gradients are told the input's sizes; windows are counted from the gradient's. (ceil_mode is for the derivative.)
void infer_avg_pool_gradient(Call& c) {
  const Tensor dy = c.tensor(0);
  const size_t rank = c.integers(2).size();
  check(c.integers(1).size() == static_cast<size_t>(dy.dim()) && rank >= 1 && rank <= 3 &&
            rank < static_cast<size_t>(dy.dim()),
        "_avg_pool_gradient: input_size ", list(c.integers(1)), " does not fit a gradient of size ", list(dy.sizes()));
  for (size_t d = 0; d + rank < static_cast<size_t>(dy.dim()); ++d)
    check(c.integers(1)[d] == dy.size(static_cast<int64_t>(d)), "_avg_pool_gradient: input_size ", list(c.integers(1)),
          " does not fit a gradient of size ", list(dy.sizes()));
  promise_alike(c, c.integers(1), dy.dtype(), dy, rank);
}
void run_avg_pool_gradient(Call& c) {
  Sliding s{Dims(c.integers(2)), Dims(c.integers(3)), Dims(c.integers(4)), {}, false, c.integers(2).size()};
  s.dilation = Dims(static_cast<int64_t>(s.rank), 1);
  mean_gradient_over(c, sliding_axes(c.integers(1), c.tensor(0).sizes(), s), divisor_argument(c, 6, 7), s.rank);
}

Dims check_adaptive(const Call& c) {
  const Tensor x = c.tensor(0);
  const std::string who = public_name(c.op);
  const int64_t rank = static_cast<int64_t>(rank_of(c.op));
  const DimsView wanted = c.integers(1);
  check(static_cast<int64_t>(wanted.size()) == rank, who, "(): internal error: output_size.size() must be ", rank);
  check(x.dim() == rank + 1 || x.dim() == rank + 2, who, "(): Expected ", rank + 1, "D or ", rank + 2,
        "D tensor, but got: ", list(x.sizes()));
  // There is nothing to take a mean or maximum of. Samples may be missing, and so may channels under a mean of one or
  // two dimensions.
  const bool channels_may_miss = rank < 3 && who.find("avg") != std::string::npos;
  for (int64_t d = channels_may_miss ? x.dim() - rank : 1; d < x.dim(); ++d)
    check(x.size(d) > 0, who, "(): Expected input to have non-zero size for non-batch dimensions, but input has sizes ",
          list(x.sizes()), " with dimension ", d, " being empty");
  Dims sizes = x.sizes();
  for (int64_t d = 0; d < rank; ++d) {
    check(wanted[static_cast<size_t>(d)] >= 0, who,
          ": elements of output_size must be greater than or equal to 0 but received ", list(wanted));
    sizes[x.dim() - rank + d] = wanted[static_cast<size_t>(d)];
  }
  return sizes;
}
void infer_adaptive_avg_pool(Call& c) {
  const Tensor x = c.tensor(0);
  check_implemented(is_floating(x.dtype()) || is_complex(x.dtype()), '"', public_name(c.op), "\" not implemented for '",
                    facts(x.dtype()).legacy, "'");
  promise_alike(c, check_adaptive(c), x.dtype(), x, rank_of(c.op));
}
void run_adaptive_avg_pool(Call& c) {
  const size_t rank = rank_of(c.op);
  mean_over(c, adaptive_axes(c.tensor(0).sizes(), c.out().sizes(), rank), {false, 0}, rank);
}
void infer_adaptive_avg_pool_gradient(Call& c) {
  const Tensor dy = c.tensor(0);
  const int64_t rank = c.integer(2);
  const DimsView sizes = c.integers(1);
  check(static_cast<int64_t>(sizes.size()) == dy.dim() && rank >= 1 && rank <= 3 && rank < dy.dim(),
        "_adaptive_avg_pool_gradient: input_size ", list(sizes), " does not fit a gradient of size ", list(dy.sizes()));
  for (int64_t d = 0; d + rank < dy.dim(); ++d)
    check(sizes[static_cast<size_t>(d)] == dy.size(d), "_adaptive_avg_pool_gradient: input_size ", list(sizes),
          " does not fit a gradient of size ", list(dy.sizes()));
  promise_alike(c, sizes, dy.dtype(), dy, static_cast<size_t>(rank));
}
void run_adaptive_avg_pool_gradient(Call& c) {
  const auto rank = static_cast<size_t>(c.integer(2));
  mean_gradient_over(c, adaptive_axes(c.integers(1), c.tensor(0).sizes(), rank), {false, 0}, rank);
}

void infer_adaptive_max_pool(Call& c) {
  const Tensor x = c.tensor(0);
  check_implemented(is_floating(x.dtype()), '"', public_name(c.op), "\" not implemented for '", facts(x.dtype()).legacy,
                    "'");
  const Dims sizes = check_adaptive(c);
  promise_alike(c, sizes, x.dtype(), x, rank_of(c.op));
  promise_alike(c, sizes, Dtype::i64, x, rank_of(c.op));
}
void run_adaptive_max_pool(Call& c) {
  const size_t rank = rank_of(c.op);
  max_over(c, adaptive_axes(c.tensor(0).sizes(), c.out().sizes(), rank), rank);
}

// Windows that start where a random sequence says: the last one ends at the end, and the steps between them vary.
void infer_fractional(Call& c) {
  const Tensor x = c.tensor(0), samples = c.tensor(3);
  const std::string who = public_name(c.op);
  const int64_t rank = static_cast<int64_t>(rank_of(c.op));
  check_implemented(is_floating(x.dtype()), '"', who, "\" not implemented for '", facts(x.dtype()).legacy, "'");
  check(x.dim() == rank + 1 || x.dim() == rank + 2, who, "(): Expected ", rank + 1, "D or ", rank + 2,
        "D tensor, but got ", list(x.sizes()));
  const Dims kernel = each(who, "kernel_size", c.integers(1), static_cast<size_t>(rank)),
             wanted = each(who, "output_size", c.integers(2), static_cast<size_t>(rank));
  Dims sizes = x.sizes();
  const int64_t lead = x.dim() - rank;
  constexpr const char* sides[] = {"time", "height", "width"};
  for (int64_t d = 0; d < rank; ++d) {
    check(kernel[d] > 0 && wanted[d] > 0, who, ": kernel_size and output_size should be greater than zero, but got ",
          list(kernel), " and ", list(wanted));
    const char* const side = sides[3 - rank + d];
    check(checked_sum(who.c_str(), wanted[d], kernel[d]) - 1 <= x.size(lead + d), who, "(): pool ", side, " ",
          kernel[d], " too large relative to input ", side, " ", x.size(lead + d), " for an output of ", wanted[d]);
    sizes[lead + d] = wanted[d];
  }
  check(samples.dtype() == x.dtype(), who, ": Expect _random_samples to have the same dtype as input");
  check(samples.dim() == 3 && samples.size(0) == (lead == 2 ? x.size(0) : 1) && samples.size(1) == x.size(lead - 1) &&
            samples.size(2) == rank,
        who, ": Expect _random_samples of size (batch, channels, ", rank, "), got ", list(samples.sizes()));
  c.promise(sizes, x.dtype(), x.device());
  c.promise(sizes, Dtype::i64, x.device());
}
template <class T>
Axis fractional(int64_t in, int64_t out, int64_t kernel, T sample) {
  Axis a{in, out, 1, {}, {}, {}};
  const T alpha = out > 1 ? static_cast<T>(in - kernel) / static_cast<T>(out - 1) : T(0);
  for (int64_t o = 0; o < out; ++o) {
    const int64_t start = o == out - 1 ? in - kernel
                                       : static_cast<int64_t>((static_cast<T>(o) + sample) * alpha) -
                                             static_cast<int64_t>(sample * alpha);
    a.begin.push_back(start);
    a.end.push_back(start + kernel);
    a.length.push_back(kernel);
  }
  return a;
}
void run_fractional(Call& c) {
  const Tensor x = contiguous(c.tensor(0)), samples = contiguous(c.tensor(3));
  const size_t rank = rank_of(c.op);
  const std::string who = public_name(c.op);
  const Dims kernel = each(who, "kernel_size", c.integers(1), rank);
  const Planes p = planes_of(x.sizes(), c.out().sizes(), rank);
  visit_floating(x.dtype(), who.c_str(), [&]<class T>() {
    for_planes(p, [&](int64_t i) {
      Axes axes;
      for (size_t d = 0; d < rank; ++d) {
        const auto k = static_cast<int64_t>(d), at = x.dim() - static_cast<int64_t>(rank) + k;
        // Samples name the last dimension first in two dimensions, the first one first in three.
        const auto sample =
            static_cast<opmath<T>>(samples.data<T>()[i * static_cast<int64_t>(rank) + (rank == 2 ? 1 - k : k)]);
        axes[3 - rank + d] = fractional<opmath<T>>(x.size(at), c.out().size(at), kernel[k], sample);
      }
      // Places are counted in elements as wide as the values, so that both fill vectors alike.
      const bool narrow = sizeof(opmath<T>) <= 4 && p.in <= INT32_MAX;
      (narrow ? max_plane<T, int32_t> : max_plane<T, int64_t>)(axes, x.data<T>() + i * p.in,
                                                               c.out(0).data<T>() + i * p.out,
                                                               c.out(1).data<int64_t>() + i * p.out);
    });
  });
}

// ---- indices: to[plane][index] = or += from, and back

void check_index_sizes(const char* who, const Tensor& t, const Tensor& indices, DimsView sizes, int64_t rank) {
  check(indices.dtype() == Dtype::i64, who,
        ": elements in indices should be type int64 but got: ", facts(indices.dtype()).legacy);
  check(t.sizes() == indices.sizes(), who, ": Expected shape of indices to be same as that of the input tensor (",
        list(t.sizes()), ") but got indices tensor with shape: ", list(indices.sizes()));
  check(rank >= 1 && rank < t.dim() && static_cast<int64_t>(sizes.size()) == t.dim(), who, ": sizes ", list(sizes),
        " do not fit an input of size ", list(t.sizes()));
  for (int64_t d = 0; d + rank < t.dim(); ++d)
    check(sizes[static_cast<size_t>(d)] == t.size(d), who, ": sizes ", list(sizes), " do not fit an input of size ",
          list(t.sizes()));
}
int64_t checked(int64_t index, int64_t size, DimsView sizes, int64_t rank) {
  check(index >= 0 && index < size, "Found an invalid max index: ", index, " (output volumes are of size ",
        x_list(sizes.subspan(sizes.size() - static_cast<size_t>(rank))), ")");
  return index;
}

void infer_unpool(Call& c) {
  const Tensor t = c.tensor(0), indices = c.tensor(1);
  check_index_sizes("max_unpool", t, indices, c.integers(2), c.integer(3));
  promise_alike(c, c.integers(2), t.dtype(), indices, static_cast<size_t>(c.integer(3)));
}
void unpool_channels(Call& c, bool add) {
  const Tensor indices = in_order_of(c.tensor(1), c.tensor(1)), t = in_order_of(c.tensor(1), c.tensor(0));
  const DimsView sizes = c.integers(2);
  const int64_t rank = c.integer(3), channels = t.size(1);
  const Planes p = planes_of(t.sizes(), sizes, static_cast<size_t>(rank));
  visit_all(t.dtype(), "max_unpool", [&]<class T>() {
    using M = opmath<T>;
    sum_images(t.size(0), p.out * channels, c.out().data<T>(), [&](int64_t image, M* sums) {
      const T* from = t.data<T>() + image * p.in * channels;
      const int64_t* index = indices.data<int64_t>() + image * p.in * channels;
      for (int64_t j = 0; j < p.in; ++j, from += channels, index += channels) {
        uint64_t largest = 0;
        for (int64_t k = 0; k < channels; ++k) largest = std::max(largest, static_cast<uint64_t>(index[k]));
        if (largest >= static_cast<uint64_t>(p.out))
          for (int64_t k = 0; k < channels; ++k) checked(index[k], p.out, sizes, rank);
        if (add)
          for (int64_t k = 0; k < channels; ++k) sums[index[k] * channels + k] += static_cast<M>(from[k]);
        else
          for (int64_t k = 0; k < channels; ++k) sums[index[k] * channels + k] = static_cast<M>(from[k]);
      }
    });
  });
}
// add: several windows may have found the same maximum (the gradient of max_pool); otherwise the last one stays.
void run_unpool_with(Call& c, bool add) {
  const DimsView sizes = c.integers(2);
  const int64_t rank = c.integer(3);
  if (is_channels_last(c.tensor(1), static_cast<size_t>(rank))) return unpool_channels(c, add);
  const Tensor t = contiguous(c.tensor(0)), indices = contiguous(c.tensor(1));
  const Planes p = planes_of(t.sizes(), sizes, static_cast<size_t>(rank));
  visit_all(t.dtype(), "max_unpool", [&]<class T>() {
    for_planes(p, [&](int64_t i) {
      const T* from = t.data<T>() + i * p.in;
      const int64_t* index = indices.data<int64_t>() + i * p.in;
      T* to = c.out().data<T>() + i * p.out;
      using M = opmath<T>;
      if constexpr (!std::is_same_v<M, T>) {
        if (add) {
          std::vector<M> sums(static_cast<size_t>(p.out), M(0));
          for (int64_t j = 0; j < p.in; ++j)
            sums[static_cast<size_t>(checked(index[j], p.out, sizes, rank))] += static_cast<M>(from[j]);
          for (int64_t j = 0; j < p.out; ++j) to[j] = T(sums[static_cast<size_t>(j)]);
          return;
        }
      }
      std::fill_n(to, p.out, T(0));
      for (int64_t j = 0; j < p.in; ++j) {
        T& place = to[checked(index[j], p.out, sizes, rank)];
        place = add ? T(static_cast<M>(place) + static_cast<M>(from[j])) : from[j];
      }
    });
  });
}
void run_unpool(Call& c) { run_unpool_with(c, false); }
void run_max_pool_gradient(Call& c) { run_unpool_with(c, true); }

}  // namespace

// PyTorch pools a signal as an image of one row, and takes a mean of everything where one number is wanted.
static const char* name_of_adaptive_mean(const Call& c) {
  const auto wanted = c.integers(1);
  const bool one = std::all_of(wanted.begin(), wanted.end(), [](int64_t n) { return n == 1; });
  return wanted.size() == 1 ? "SqueezeBackward1" : one ? "MeanBackward1" : nullptr;
}
static const char* name_of_unpooled(const Call& c) {
  return c.integer(3) == 3 ? "MaxUnpool3DBackward0" : "MaxUnpool2DBackward0";
}

REGISTER(pooling) {
  const auto add = [&](const std::string& signature, Infer infer, Run run, const std::string& node) -> Operator& {
    Operator& op = r.add(signature.c_str(), infer, run, kFunctionOnly | kKnowsLayout, node.c_str());
    if (node.ends_with("1DBackward0") || node.ends_with("1DWithIndicesBackward0"))
      op.node_name_of = [](const Call&) { return "SqueezeBackward1"; };
    return op;
  };
  for (const char* dim : {"1", "2", "3"}) {
    const std::string d = dim;
    add("_max_pool" + d +
            "d(Tensor input, int[1] kernel_size, int[1] stride, int[1] padding, int[1] dilation, bool ceil_mode) -> "
            "(Tensor output, Tensor indices)",
        infer_max_pool, run_max_pool, "MaxPool" + d + "DWithIndicesBackward0");
    add("_avg_pool" + d +
            "d(Tensor input, int[1] kernel_size, int[1] stride, int[1] padding, bool ceil_mode, bool "
            "count_include_pad, int? divisor_override=None) -> Tensor",
        infer_avg_pool, run_avg_pool, "AvgPool" + d + "DBackward0");
    add("_adaptive_avg_pool" + d + "d(Tensor input, int[] output_size) -> Tensor", infer_adaptive_avg_pool,
        run_adaptive_avg_pool, "AdaptiveAvgPool" + d + "DBackward0")
        .node_name_of = name_of_adaptive_mean;
    add("_adaptive_max_pool" + d + "d(Tensor input, int[] output_size) -> (Tensor output, Tensor indices)",
        infer_adaptive_max_pool, run_adaptive_max_pool, "AdaptiveMaxPool" + d + "DBackward0");
    if (d != "1")
      add("_fractional_max_pool" + d +
              "d(Tensor input, int[1] kernel_size, int[1] output_size, Tensor random_samples) -> (Tensor output, "
              "Tensor indices)",
          infer_fractional, run_fractional, "FractionalMaxPool" + d + "DBackward0");
  }
  // The windows where they are known (kernel, stride, padding, dilation of each dimension, one list after the other)
  // are for devices that gather gradients instead of adding them up in order.
  r.add("_max_pool_gradient(Tensor grad_output, Tensor indices, int[] input_size, int rank, int[] window=[]) -> Tensor",
        infer_unpool, run_max_pool_gradient, kKnowsLayout, "MaxPoolBackwardBackward0");
  r.add("_max_unpool(Tensor values, Tensor indices, int[] output_size, int rank) -> Tensor", infer_unpool, run_unpool,
        kKnowsLayout)
      .node_name_of = name_of_unpooled;
  r.add(
      "_avg_pool_gradient(Tensor grad_output, int[] input_size, int[] kernel_size, int[] stride, int[] padding, bool "
      "ceil_mode, bool count_include_pad, int? divisor_override=None) -> Tensor",
      infer_avg_pool_gradient, run_avg_pool_gradient, kKnowsLayout, "AvgPoolBackwardBackward0");
  r.add("_adaptive_avg_pool_gradient(Tensor grad_output, int[] input_size, int rank) -> Tensor",
        infer_adaptive_avg_pool_gradient, run_adaptive_avg_pool_gradient, kKnowsLayout,
        "AdaptiveAvgPoolBackwardBackward0");
}

}  // namespace cresset
