// Fourier transforms on CUDA: how tensors reach cuFFT, which takes up to three dimensions at a time, the innermost ones of dense memory.
#include <algorithm>

#include "cuda/backend.h"
#include "cuda/cufft.h"
#include "cuda/register.h"
#include "dispatch/on_host.h"

namespace cresset::cuda {
namespace {

constexpr size_t kMostDims = 3;  // of one transform

void on_host(Call& c) {
  static bool warned = false;
  if (!warned && warn && !refuses_host) {
    warned = true;
    warn(join("fft: cuFFT is not there, so Fourier transforms are computed on the CPU: ", cufft_problem(), ". pip install cresset[cuda] brings it"));
  }
  execute_on_host(c, c.out().device());
}

void multiply_by(const Tensor& t, double scale) {
  static const Operator* const multiply = Registry::instance().find("mul_");
  Call c(*multiply);
  c.args[0] = Value(t), c.args[1] = Value(Scalar(scale));
  for (size_t k = 2; k < multiply->signature.parameters.size(); ++k) c.args[k] = multiply->signature.parameters[k].default_value;
  execute(c);
}

// The tensor with these dimensions last.
Tensor with_last(const Tensor& t, const Dims& dims) {
  Dims sizes, strides;
  for (int64_t d = 0; d < t.dim(); ++d)
    if (std::find(dims.begin(), dims.end(), d) == dims.end()) sizes.push_back(t.size(d)), strides.push_back(t.stride(d));
  for (const int64_t d : dims) sizes.push_back(t.size(d)), strides.push_back(t.stride(d));
  return view_of(t, sizes, strides, t.offset());
}

// From any tensor to a contiguous one, along at most three dimensions, which rise. They may be the same tensor.
void transform_some(const Tensor& from, const Tensor& to, const Dims& dims, bool forward) {
  FourierSizes s;
  s.dtype = static_cast<int64_t>(to.dtype());
  s.rank = dims.size();
  s.batch = to.numel();
  for (int64_t i = 0; i < dims.size(); ++i) s.sizes[i] = to.size(dims[i]), s.batch /= s.sizes[i];
  const int64_t first = dims[0], inner = to.stride(first);
  const bool last = first == to.dim() - dims.size();
  if (last || (dims.size() == 1 && s.batch == inner)) {  // one after the other, or all side by side
    if (!last) s.step = inner, s.batch_step = 1;
    const Tensor source = contiguous_on_device(from);
    return transform(to.device().index, s, source.bytes(), to.bytes(), forward);
  }
  const Tensor target = with_last(to, dims), between = empty(target.sizes(), to.dtype(), to.device());
  copy_into(between, with_last(from, dims));
  transform(to.device().index, s, between.bytes(), between.bytes(), forward);
  copy_into(target, between);
}

// (input, dim, forward, scale)
void run_complex(Call& c) {
  const Tensor input = c.tensor(0);
  const Tensor& out = c.out();
  if (out.numel() == 0) return;
  if (!cufft_problem().empty()) return on_host(c);
  Dims dims;
  for (const int64_t d : wrap_dims(c.integers(1), input.dim()))
    if (input.size(d) > 1) dims.push_back(d);
  std::sort(dims.begin(), dims.end());
  if (dims.empty()) copy_into(out, input);
  Tensor from = input;
  for (auto end = dims.end(); end != dims.begin();) {
    const auto begin = end - std::min<int64_t>(kMostDims, end - dims.begin());
    transform_some(from, out, Dims(begin, end), c.boolean(2));
    from = out;
    end = begin;
  }
  if (c.real(3) != 1) multiply_by(out, c.real(3));
}

}  // namespace

void register_cuda_fourier(Registry& r) { r.set_kernel("fft_complex", DeviceType::cuda, run_complex); }

}  // namespace cresset::cuda
