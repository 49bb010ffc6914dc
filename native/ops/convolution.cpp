// Convolution, forward and backward: shape rules, errors, and the choice of how to compute. Most floats go with the
// channels innermost (convolution_pieces.h), everything else as products of matrices with patches
// (convolution_patches.h).
#include <algorithm>
#include <vector>

#include "dispatch/call.h"
#include "dispatch/late.h"
#include "dispatch/registration.h"
#include "ops/channel_sums.h"
#include "ops/convolution_patches.h"
#include "ops/convolution_pieces.h"
#include "ops/memory_format.h"
#include "tensor/private_layout.h"

namespace cresset {
namespace {

// A longer stride than the padded image leads nowhere.
ConvolutionSizes sizes_of(ConvolutionKind kind, DimsView x, DimsView weight, DimsView y, DimsView stride,
                          DimsView padding, DimsView dilation, int64_t groups, bool has_bias = false) {
  ConvolutionSizes s{kind, x[0], x[1], y[1], groups, has_bias};
  const size_t rank = x.size() - 2, skip = 3 - rank;
  for (size_t d = 0; d < rank; ++d) {
    s.in[skip + d] = x[2 + d];
    s.out[skip + d] = y[2 + d];
    s.kernel[skip + d] = weight[2 + d];
    s.stride[skip + d] = std::min(stride[d], x[2 + d] + 2 * padding[d] + 1);
    s.before[skip + d] = s.after[skip + d] = padding[d];
    s.dilation[skip + d] = dilation[d];
  }
  return s;
}

// Weights and biases are read as contiguous; images lie as they like.
Tensor plain(const Tensor& t) { return t.defined() ? contiguous(t) : t; }

bool run_in_pieces(const ConvolutionSizes& sizes, const Tensor& a, const Tensor& b, const Tensor& bias,
                   const Tensor& out, bool may_hide) {
  if (out.dtype() == Dtype::f32) return convolve_in_pieces(sizes, a, b, bias, out, may_hide);
  if ((out.dtype() != Dtype::f16 && out.dtype() != Dtype::bf16) || !goes_in_pieces(sizes)) return false;
  // Halves: computed in float and rounded once.
  const bool hides = may_hide && sizes.kind != ConvolutionKind::weight_gradient;
  TensorInfo info{out.sizes(), {}, Dtype::f32, out.device()};
  if (hides || !out.is_contiguous()) info.strides = channels_last_strides(out.sizes());
  const Tensor wide = empty(info);
  if (!convolve_in_pieces(sizes, convert(a, Dtype::f32), convert(b, Dtype::f32),
                          bias.defined() ? convert(bias, Dtype::f32) : bias, wide, false))
    return false;
  if (hides) {
    out->strides = info.strides;
    out->update_numel_and_contiguity();
  }
  copy_into(out, wide);
  if (hides) keep_private(out);
  return true;
}

void run(const Call& c, const ConvolutionSizes& sizes, const Tensor& a, const Tensor& b, const Tensor& bias) {
  const Tensor& out = c.out();
  if (out.numel() > 0 && run_in_pieces(sizes, a, b, bias, out, !c.given_out && out.dim() >= 4)) return;
  if (out.is_contiguous()) return convolve_patches(sizes, a, b, bias, out);
  const Tensor result = empty(out.sizes(), out.dtype());
  convolve_patches(sizes, a, b, bias, result);
  copy_into(out, result);
}

// ---------------------------------------------------------------- shape rules and errors

Dims for_each_dimension(DimsView values, int64_t rank, const char* name) {
  check(static_cast<int64_t>(values.size()) == rank || values.size() == 1, "convolution: expected ", name,
        " to be a single integer value or a list of ", rank, " values to match the convolution dimensions, but got ",
        name, "=", list(values));
  return values.size() == 1 ? Dims(rank, values[0]) : Dims(values);
}

void promise_images(Call& c, DimsView sizes, const Tensor& like, bool channels_last) {
  TensorInfo info{Dims(sizes), {}, like.dtype(), like.device()};
  if (channels_last) info.strides = channels_last_strides(sizes);
  c.promise(std::move(info));
}

struct Arguments {
  Dims stride, padding, dilation, output_padding;
  bool transposed;
  int64_t groups;
};
// Positions of the arguments in the signature of convolution.
Arguments read(const Call& c) {
  const int64_t rank = c.tensor(1).dim() - 2;
  return {for_each_dimension(c.integers(3), rank, "stride"),
          for_each_dimension(c.integers(4), rank, "padding"),
          for_each_dimension(c.integers(5), rank, "dilation"),
          for_each_dimension(c.integers(7), rank, "output_padding"),
          c.boolean(6),
          c.integer(8)};
}

std::string times(DimsView sizes) {
  std::string text = "(";
  for (size_t i = 0; i < sizes.size(); ++i) text += (i ? " x " : "") + std::to_string(sizes[i]);
  return text + ")";
}

void check_dtypes(const Tensor& input, const Tensor& weight, const Tensor& bias, bool transposed = false) {
  check(input.device() == weight.device(),
        "convolution: Expected all tensors to be on the same device, but found at least two devices, ", input.device(),
        " and ", weight.device(), "!");
  // Programs that try another dtype catch the class that PyTorch raises for the one that they have.
  const bool integer = !is_floating(input.dtype()) && !is_complex(input.dtype()) && input.dtype() != Dtype::i64;
  check_implemented(input.dtype() == weight.dtype() || !transposed || !integer,
                    "convolution: \"conv_transpose\" not implemented for '", facts(input.dtype()).legacy,
                    "' with a weight of dtype '", facts(weight.dtype()).legacy, "'");
  check(input.dtype() == weight.dtype(), "convolution: expected scalar type ", facts(input.dtype()).legacy,
        " but found ", facts(weight.dtype()).legacy);
  check(!bias.defined() || bias.dtype() == input.dtype(), "convolution: Input type (", name_of(input.dtype()),
        ") and bias type (", name_of(bias.dtype()), ") should be the same");
}

void infer_convolution(Call& c) {
  const Tensor input = c.tensor(0), weight = c.tensor(1), bias = c.has(2) ? c.tensor(2) : Tensor();
  check(weight.dim() >= 3 && weight.dim() <= 5, "convolution: weight should have 3 to 5 dimensions, got ",
        weight.dim());
  const Arguments a = read(c);
  const int64_t rank = weight.dim() - 2, groups = a.groups;
  for (int64_t p : a.padding) check(p >= 0, "convolution: negative padding is not supported");
  for (int64_t s : a.stride) check(s > 0, "convolution: non-positive stride is not supported");
  const bool nothing =
      input.dim() >= 2 &&
      (input.size(0) == 0 || input.size(1) == 0);  // then any dilation and output padding will do that is not negative
  for (int64_t d : a.dilation)
    check(d > 0 || (nothing && d == 0), "convolution: dilation should be greater than zero, but got ",
          list(a.dilation));
  check(groups > 0, "convolution: non-positive groups is not supported");
  check(input.dim() == weight.dim(), "convolution: Expected ", weight.dim(), "-dimensional input for ", weight.dim(),
        "-dimensional weight ", list(weight.sizes()), ", but got ", input.dim(), "-dimensional input of size ",
        list(input.sizes()), " instead");
  check(groups <= weight.size(0), "convolution: Given groups=", groups, ", expected weight to be at least ", groups,
        " at dimension 0, but got weight of size ", list(weight.sizes()), " instead");
  check(weight.size(0) % groups == 0, "convolution: Given groups=", groups, ", expected weight to be divisible by ",
        groups, " at dimension 0, but got weight of size [", list(weight.sizes()), "] instead");
  const int64_t in_channels = a.transposed ? weight.size(0) : weight.size(1) * groups,
                out_channels = a.transposed ? weight.size(1) * groups : weight.size(0);
  const auto given = a.transposed ? join("Given transposed=1, weight of size ", list(weight.sizes()))
                                  : join("Given groups=", groups, ", weight of size ", list(weight.sizes()));
  check(input.size(1) == in_channels, "convolution: ", given, ", expected input", list(input.sizes()), " to have ",
        in_channels, " channels, but got ", input.size(1), " channels instead");
  check(!bias.defined() || (bias.dim() == 1 && bias.size(0) == out_channels),
        "convolution: ", a.transposed ? given : join("Given weight of size ", list(weight.sizes())),
        ", expected bias to be 1-dimensional with ", out_channels, " elements, but got bias of size ",
        list(bias.defined() ? DimsView(bias.sizes()) : DimsView{}), " instead");
  check_dtypes(input, weight, bias, a.transposed);
  Dims sizes = {input.size(0), out_channels}, padded;
  for (int64_t d = 0; d < rank; ++d) {
    const int64_t size = input.size(2 + d);
    const __int128 wide_reach = static_cast<__int128>(a.dilation[d]) * (weight.size(2 + d) - 1) + 1;
    const __int128 longest = a.transposed ? static_cast<__int128>(a.stride[d]) * std::max<int64_t>(size - 1, 1) +
                                                wide_reach + a.output_padding[d]
                                          : wide_reach;
    constexpr int64_t kMostPadding = (int64_t{1} << 61) - 1;
    check(a.padding[d] <= kMostPadding, "convolution: Given padding=", a.padding[d], " at dimension ", d,
          " , expected padding to be at most ", kMostPadding);
    check(longest < (int64_t{1} << 62), "convolution: stride ", list(a.stride), ", padding ", list(a.padding),
          ", dilation ", list(a.dilation), " and output_padding ", list(a.output_padding),
          " give a size that does not fit in 64 bits");
    const auto reach = static_cast<int64_t>(wide_reach);
    padded.push_back(size + 2 * a.padding[d]);
    if (a.transposed) {
      check(a.output_padding[d] >= 0, "convolution: negative output_padding is not supported");
      check(nothing || a.output_padding[d] < a.stride[d] || a.output_padding[d] < a.dilation[d],
            "convolution: output padding must be smaller than either stride or dilation, but got output_padding: ",
            list(a.output_padding), " stride: ", list(a.stride), " dilation: ", list(a.dilation));
      sizes.push_back((size - 1) * a.stride[d] - 2 * a.padding[d] + reach + a.output_padding[d]);
    } else {
      sizes.push_back(padded[d] < reach ? 0 : (padded[d] - reach) / a.stride[d] + 1);
    }
  }
  const DimsView spatial = DimsView(sizes).subspan(2);
  if (const int64_t low = input.size(0) ? 1 : 0; a.transposed) {
    for (int64_t s : spatial)
      check(s >= low, "convolution: Given input size per channel: ", times(DimsView(input.sizes()).subspan(2)),
            ". Calculated output size per channel: ", times(spatial), ". Output size is too small");
  } else {
    Dims reach;
    for (int64_t d = 0; d < rank; ++d) reach.push_back(a.dilation[d] * (weight.size(2 + d) - 1) + 1);
    for (int64_t d = 0; d < rank; ++d)
      check(padded[d] >= reach[d] && weight.size(2 + d) > 0,
            "convolution: Calculated padded input size per channel: ", times(padded), ". Kernel size: ", times(reach),
            ". Kernel size can't be greater than actual input size");
  }
  promise_images(c, sizes, input, is_channels_last(input) || is_channels_last(weight));
}

void run_convolution(Call& c) {
  const Tensor input = c.tensor(0), weight = plain(c.tensor(1)), bias = plain(c.has(2) ? c.tensor(2) : Tensor());
  const Arguments a = read(c);
  if (a.transposed) {
    const ConvolutionSizes sizes = sizes_of(ConvolutionKind::input_gradient, c.out().sizes(), weight.sizes(),
                                            input.sizes(), a.stride, a.padding, a.dilation, a.groups);
    return run(c, sizes, input, weight, bias);
  }
  const ConvolutionSizes sizes = sizes_of(ConvolutionKind::forward, input.sizes(), weight.sizes(), c.out().sizes(),
                                          a.stride, a.padding, a.dilation, a.groups, bias.defined());
  run(c, sizes, input, weight, bias);
}

// The sizes of the result are given; they are not checked beyond what keeps memory safe.
void check_sizes(const char* who, DimsView x, DimsView weight, DimsView y, const Call& c) {
  const int64_t groups = c.integer(6);
  const size_t rank = x.size();
  check(rank >= 3 && rank <= 5 && weight.size() == rank && y.size() == rank, who, ": sizes ", list(x), ", ",
        list(weight), " and ", list(y), " do not belong to one convolution");
  check(groups > 0 && x[0] == y[0] && x[1] == weight[1] * groups && y[1] == weight[0] && y[1] % groups == 0, who,
        ": sizes ", list(x), ", ", list(weight), " and ", list(y), " with ", groups,
        " groups do not belong to one convolution");
  for (int i = 3; i <= 5; ++i)
    check(c.integers(i).size() == rank - 2, who, ": expected ", rank - 2, " numbers for stride, padding and dilation");
  for (int64_t s : c.integers(3)) check(s > 0, who, ": non-positive stride is not supported");
}

void infer_input_gradient(Call& c) {
  const Tensor grad = c.tensor(0), weight = c.tensor(1);
  check_sizes("_convolution_input_gradient", c.integers(2), weight.sizes(), grad.sizes(), c);
  check_dtypes(grad, weight, {});
  promise_images(c, c.integers(2), grad, is_channels_last(grad));
}
void run_input_gradient(Call& c) {
  const Tensor grad = c.tensor(0), weight = plain(c.tensor(1));
  const ConvolutionSizes sizes = sizes_of(ConvolutionKind::input_gradient, c.integers(2), weight.sizes(), grad.sizes(),
                                          c.integers(3), c.integers(4), c.integers(5), c.integer(6));
  run(c, sizes, grad, weight, {});
}

void infer_weight_gradient(Call& c) {
  const Tensor grad = c.tensor(0), input = c.tensor(1);
  check_sizes("_convolution_weight_gradient", input.sizes(), c.integers(2), grad.sizes(), c);
  check_dtypes(grad, input, {});
  c.promise(c.integers(2), grad.dtype(), grad.device());
}
void run_weight_gradient(Call& c) {
  const Tensor grad = c.tensor(0), input = c.tensor(1);
  const ConvolutionSizes sizes = sizes_of(ConvolutionKind::weight_gradient, input.sizes(), c.integers(2), grad.sizes(),
                                          c.integers(3), c.integers(4), c.integers(5), c.integer(6));
  run(c, sizes, grad, input, {});
}

// The gradient of a bias: the sum of each channel.
void infer_bias_gradient(Call& c) {
  const Tensor grad = c.tensor(0);
  check(grad.dim() >= 2, "_convolution_bias_gradient: expected a gradient with channels, got ", grad.dim(),
        " dimensions");
  check_implemented(is_floating(grad.dtype()), "_convolution_bias_gradient: not implemented for '",
                    facts(grad.dtype()).legacy, "'");
  c.promise(Dims{grad.size(1)}, grad.dtype(), grad.device());
}
template <class T>
void sum_channels(const Tensor& given, const Tensor& out) {
  const Tensor wide = convert(given, dtype_of<T>), grad = in_order_of(wide, wide);
  const int64_t images = grad.size(0), channels = grad.size(1);
  const ChannelImages sizes{images, channels, grad.numel() / std::max<int64_t>(images * channels, 1),
                            is_channels_last(wide)};
  std::vector<double> sums(static_cast<size_t>(channels), 0.0);
  if (grad.numel() > 0) channel_sums<T>(sizes, grad.data<T>(), nullptr, nullptr, sums.data(), nullptr);
  const Tensor result = empty(out.sizes(), dtype_of<T>);
  for (int64_t i = 0; i < channels; ++i) result.data<T>()[i] = static_cast<T>(sums[static_cast<size_t>(i)]);
  copy_into(out, result);
}
void run_bias_gradient(Call& c) {
  c.out().dtype() == Dtype::f64 ? sum_channels<double>(c.tensor(0), c.out())
                                : sum_channels<float>(c.tensor(0), c.out());
}
// Of a gradient that is still to be computed: see dispatch/late.h.
bool bias_gradient_late(Call& c) {
  const Tensor grad = c.tensor(0);
  if (grad.dtype() != Dtype::f32 || grad.dim() < 3 || !has_plain_tensors(c)) return false;
  const int64_t images = grad.size(0), channels = grad.size(1);
  const ChannelImages sizes{images, channels, grad.numel() / (images * channels), true};
  std::vector<double> sums(static_cast<size_t>(channels));
  if (!channel_sums_late(sizes, grad, nullptr, nullptr, sums.data(), nullptr)) return false;
  const Tensor out = empty(Dims{channels}, Dtype::f32);
  for (int64_t i = 0; i < channels; ++i) out.data<float>()[i] = static_cast<float>(sums[static_cast<size_t>(i)]);
  c.give(out);
  return true;
}

}  // namespace

REGISTER(convolution) {
  r.add(
      "convolution(Tensor input, Tensor weight, Tensor? bias, int[] stride, int[] padding, int[] dilation, bool "
      "transposed, int[] output_padding, SymInt groups) -> Tensor",
      infer_convolution, run_convolution, kFunctionOnly | kKnowsLayout);
  r.add(
      "_convolution_input_gradient(Tensor grad_output, Tensor weight, int[] input_size, int[] stride, int[] padding, "
      "int[] dilation, int groups) -> Tensor",
      infer_input_gradient, run_input_gradient, kKnowsLayout, "ConvolutionBackwardBackward0");
  r.add(
      "_convolution_weight_gradient(Tensor grad_output, Tensor input, int[] weight_size, int[] stride, int[] padding, "
      "int[] dilation, int groups) -> Tensor",
      infer_weight_gradient, run_weight_gradient, kKnowsLayout, "ConvolutionBackwardBackward0");
  r.add("_convolution_bias_gradient(Tensor grad_output) -> Tensor", infer_bias_gradient, run_bias_gradient,
        kKnowsLayout, "ConvolutionBackwardBackward0");
  let_compute_late("_convolution_bias_gradient", DeviceType::cpu, bias_gradient_late);
}

}  // namespace cresset
