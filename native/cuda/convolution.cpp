// Convolutions on CUDA: how tensors reach cuDNN. Images and weights lie with the channels innermost, which is what
// tensor cores want; a result that the user expects contiguous keeps that order privately (Note [Private layout]).
#include <algorithm>

#include "cuda/backend.h"
#include "cuda/cudnn.h"
#include "dispatch/on_host.h"
#include "dispatch/registration.h"
#include "tensor/private_layout.h"

namespace cresset::cuda {
namespace {

using Kind = CudnnConvolution;

// One spatial dimension becomes two, of which the first has size 1.
Tensor with_two_dimensions(const Tensor& t) {
  if (!t.defined() || t.dim() != 3) return t;
  return view_of(t, Dims{t.size(0), t.size(1), 1, t.size(2)},
                 Dims{t.stride(0), t.stride(1), t.stride(2) * t.size(2), t.stride(2)}, t.offset());
}
Dims with_two_dimensions(DimsView sizes) {
  return sizes.size() == 3 ? Dims{sizes[0], sizes[1], 1, sizes[2]} : Dims(sizes);
}

bool lies(const Tensor& t, const Dims& strides) {
  for (int64_t d = 0; d < t.dim(); ++d)
    if (t.size(d) != 1 && t.stride(d) != strides[d]) return false;
  return reinterpret_cast<uintptr_t>(t.bytes()) % 16 == 0;
}
Dims strides_of(const Dims& sizes, bool inside) {
  return inside ? channels_last_strides(sizes) : contiguous_strides(sizes);
}
Tensor fresh(const Dims& sizes, bool inside, const Tensor& like) {
  return empty(TensorInfo{sizes, strides_of(sizes, inside), like.dtype(), like.device()});
}

// The tensor in the order that the library is told; copied when it lies otherwise.
Tensor ordered(const Tensor& given, bool inside) {
  const Tensor t = with_two_dimensions(given);
  if (lies(t, strides_of(t.sizes(), inside))) return t;
  Tensor copy = fresh(t.sizes(), inside, t);
  copy_into(copy, t);
  return copy;
}

void spread(DimsView values, int64_t rank, int64_t* to, int64_t before) {
  const int64_t missing = rank == 1 ? 1 : 0;  // the added dimension
  if (missing) to[0] = before;
  for (int64_t d = 0; d < rank; ++d) to[missing + d] = values[values.size() == 1 ? 0 : static_cast<size_t>(d)];
}

bool is_supported(const Tensor& t) {
  return t.dtype() == Dtype::f32 || t.dtype() == Dtype::f64 || t.dtype() == Dtype::f16 || t.dtype() == Dtype::bf16;
}

ConvolutionSizes sizes_of(Kind kind, const Dims& x, const Dims& w, const Dims& y, DimsView stride, DimsView padding,
                          DimsView dilation, int64_t groups, Dtype dtype) {
  ConvolutionSizes s{};
  const int64_t rank = x.size() - 2;
  s.kind = kind;
  s.dtype = static_cast<int64_t>(dtype);
  // Signals of float32 stay as they lie: they cannot hide another order, and laying them out anew takes as long as the
  // convolution.
  s.channels_inside = dtype != Dtype::f64 && !(rank == 1 && dtype == Dtype::f32);
  s.rank = std::max<int64_t>(rank, 2);
  s.images = x[0], s.in_channels = x[1], s.out_channels = y[1], s.groups = groups;
  const Dims x2 = with_two_dimensions(x), w2 = with_two_dimensions(w), y2 = with_two_dimensions(y);
  for (int64_t d = 0; d < s.rank; ++d) s.in[d] = x2[2 + d], s.kernel[d] = w2[2 + d], s.out[d] = y2[2 + d];
  spread(stride, rank, s.stride, 1), spread(padding, rank, s.padding, 0), spread(dilation, rank, s.dilation, 1);
  return s;
}

void add_bias(const Tensor& images, const Tensor& bias) {
  static const Operator* const add = Registry::instance().find("add_");
  Dims sizes(images.dim(), 1), steps(images.dim(), 0);
  sizes[1] = bias.size(0), steps[1] = bias.stride(0);
  const Tensor spread_bias = view_of(bias, sizes, steps, bias.offset());
  Call c(*add);
  c.args[0] = Value(images), c.args[1] = Value(spread_bias);
  for (size_t k = 2; k < add->signature.parameters.size(); ++k) c.args[k] = add->signature.parameters[k].default_value;
  execute(c);
}

void on_host(Call& c) {
  static bool warned = false;
  if (!warned && !cudnn_problem().empty() && warn && !refuses_host) {
    warned = true;
    warn(join("convolution: cuDNN is not there, so convolutions are computed on the CPU: ", cudnn_problem(),
              ". pip install cresset[cuda] brings it"));
  }
  execute_on_host(c, c.out().device());
}

// Images from images: forward, or the gradient of the input. The result is c.out().
void run_images(Call& c, const ConvolutionSizes& s, const Tensor& from, const Tensor& weight, const Tensor& bias) {
  const Tensor& out = c.out();
  if (out.numel() == 0) return;
  if (from.numel() == 0 || weight.numel() == 0 || !is_supported(out) || !cudnn_settings.enabled) return on_host(c);
  const bool inside = s.channels_inside;
  const Tensor source = ordered(from, inside), kernel = ordered(weight, inside), shape = with_two_dimensions(out);
  const bool as_it_lies = lies(shape, strides_of(shape.sizes(), inside));
  const bool hides = !as_it_lies && inside && out.is_contiguous() && !c.given_out && out.dim() >= 4;
  const Tensor result = as_it_lies ? shape
                        : hides    ? view_of(out, out.sizes(), channels_last_strides(out.sizes()), out.offset())
                                   : fresh(shape.sizes(), inside, out);
  const bool forward = s.kind == Kind::forward;
  const Place place(out.device());
  if (!convolve(place, s, forward ? source.bytes() : result.bytes(), kernel.bytes(),
                forward ? result.bytes() : source.bytes()))
    return on_host(c);
  if (bias.defined()) add_bias(result, bias);
  if (hides)
    keep_private(out);
  else if (!as_it_lies)
    copy_into(shape, result);
}

// (input, weight, bias, stride, padding, dilation, transposed, output_padding, groups)
void run_convolution(Call& c) {
  const Tensor input = c.tensor(0), weight = c.tensor(1), bias = c.has(2) ? c.tensor(2) : Tensor();
  const bool transposed = c.boolean(6);
  const Dims &x = transposed ? c.out().sizes() : input.sizes(), &y = transposed ? input.sizes() : c.out().sizes();
  const ConvolutionSizes s = sizes_of(transposed ? Kind::input_gradient : Kind::forward, x, weight.sizes(), y,
                                      c.integers(3), c.integers(4), c.integers(5), c.integer(8), input.dtype());
  run_images(c, s, input, weight, bias);
}

// (grad_output, weight, input_size, stride, padding, dilation, groups)
void run_input_gradient(Call& c) {
  const Tensor grad = c.tensor(0), weight = c.tensor(1);
  const ConvolutionSizes s = sizes_of(Kind::input_gradient, c.out().sizes(), weight.sizes(), grad.sizes(),
                                      c.integers(3), c.integers(4), c.integers(5), c.integer(6), grad.dtype());
  run_images(c, s, grad, weight, {});
}

// (grad_output, input, weight_size, stride, padding, dilation, groups)
void run_weight_gradient(Call& c) {
  const Tensor grad = c.tensor(0), input = c.tensor(1);
  const Tensor& out = c.out();
  if (out.numel() == 0) return;
  if (grad.numel() == 0 || input.numel() == 0) return fill(out, 0);
  if (!is_supported(out) || !cudnn_settings.enabled) return on_host(c);
  const ConvolutionSizes s = sizes_of(Kind::weight_gradient, input.sizes(), out.sizes(), grad.sizes(), c.integers(3),
                                      c.integers(4), c.integers(5), c.integer(6), grad.dtype());
  const bool inside = s.channels_inside;
  const Tensor x = ordered(input, inside), y = ordered(grad, inside), shape = with_two_dimensions(out);
  const bool as_it_lies = lies(shape, strides_of(shape.sizes(), inside));
  const Tensor result = as_it_lies ? shape : fresh(shape.sizes(), inside, out);
  const Place place(out.device());
  if (!convolve(place, s, x.bytes(), result.bytes(), y.bytes())) return on_host(c);
  if (!as_it_lies) copy_into(shape, result);
}

// The sum of each channel.
void run_bias_gradient(Call& c) {
  static const Operator* const sum = Registry::instance().find("sum");
  const Tensor grad = c.tensor(0);
  Dims dims{0};
  for (int64_t d = 2; d < grad.dim(); ++d) dims.push_back(d);
  Call inner(*sum);
  for (size_t k = 0; k < sum->signature.parameters.size(); ++k)
    inner.args[k] = sum->signature.parameters[k].default_value;
  inner.args[0] = Value(grad), inner.args[1] = Value(DimsView(dims));
  inner.given_out = true;
  inner.give(c.out());
  execute(inner);
}

}  // namespace

REGISTER_KERNELS(convolution) {
  r.set_kernel("convolution", DeviceType::cuda, run_convolution);
  r.set_kernel("_convolution_input_gradient", DeviceType::cuda, run_input_gradient);
  r.set_kernel("_convolution_weight_gradient", DeviceType::cuda, run_weight_gradient);
  r.set_kernel("_convolution_bias_gradient", DeviceType::cuda, run_bias_gradient);
}

}  // namespace cresset::cuda
