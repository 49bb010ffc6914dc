// Fourier transforms on CUDA: how tensors reach cuFFT, which takes up to three dimensions at a time, the innermost ones
// of dense memory.
#include <algorithm>

#include "cuda/backend.h"
#include "cuda/cufft.h"
#include "dispatch/on_host.h"
#include "dispatch/registration.h"
#include "tensor/convert.h"

namespace cresset::cuda {
namespace {

constexpr size_t kMostDims = 3;  // of one transform

void on_host(Call& c) {
  static bool warned = false;
  if (!warned && warn && !refuses_host) {
    warned = true;
    warn(join("fft: cuFFT is not there, so Fourier transforms are computed on the CPU: ", cufft_problem(),
              ". pip install cresset[cuda] brings it"));
  }
  execute_on_host(c, c.out().device());
}

void multiply_by(const Tensor& t, double scale) {
  static const Operator* const multiply = Registry::instance().find("mul_");
  if (scale == 1) return;
  Call c(*multiply);
  c.args[0] = Value(t), c.args[1] = Value(Scalar(scale));
  for (size_t k = 2; k < multiply->signature.parameters.size(); ++k)
    c.args[k] = multiply->signature.parameters[k].default_value;
  execute(c);
}
Tensor multiplied_by(const Tensor& t, double scale) {
  static const Operator* const multiply = Registry::instance().find("mul");
  Call c(*multiply);
  c.args[0] = Value(t), c.args[1] = Value(Scalar(scale));
  execute(c);
  return c.out();
}
void conjugate(const Tensor& t) {
  static const Operator* const conjugate = Registry::instance().find("conj_physical_");
  Call c(*conjugate);
  c.args[0] = Value(t);
  execute(c);
}

// The tensor with these dimensions last.
Tensor with_last(const Tensor& t, const Dims& dims) {
  Dims sizes, strides;
  for (int64_t d = 0; d < t.dim(); ++d)
    if (std::find(dims.begin(), dims.end(), d) == dims.end())
      sizes.push_back(t.size(d)), strides.push_back(t.stride(d));
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
  if (last ||
      (dims.size() == 1 && s.batch == inner && to.dtype() != Dtype::c32)) {  // one after the other, or all side by side
    if (!last) s.step = inner, s.batch_step = 1;
    const Tensor source = contiguous_on_device(from);
    return transform(to.device().index, s, source.bytes(), to.bytes(), forward);
  }
  const Tensor target = with_last(to, dims), between = empty(target.sizes(), to.dtype(), to.device());
  copy_into(between, with_last(from, dims));
  transform(to.device().index, s, between.bytes(), between.bytes(), forward);
  copy_into(target, between);
}

// From any tensor to a contiguous one. They may be the same tensor.
void transform_all(const Tensor& input, const Tensor& out, DimsView given, bool forward) {
  Dims dims;
  for (const int64_t d : given)
    if (input.size(d) > 1) dims.push_back(d);
  std::sort(dims.begin(), dims.end());
  if (dims.empty() && input.get() != out.get()) copy_into(out, input);
  Tensor from = input;
  for (auto end = dims.end(); end != dims.begin();) {
    const auto begin = end - std::min<int64_t>(kMostDims, end - dims.begin());
    transform_some(from, out, Dims(begin, end), forward);
    from = out;
    end = begin;
  }
}

// The lines of a dimension, one after the other in memory that cuFFT may take for complex numbers. `fresh`: they may be
// destroyed.
Tensor in_lines(const Tensor& t, int64_t d, bool fresh) {
  const Tensor moved = with_last(t, {d});
  if (!fresh && moved.is_contiguous() && reinterpret_cast<uintptr_t>(moved.bytes()) % 16 == 0) return moved;
  const Tensor copy = empty(moved.sizes(), moved.dtype(), moved.device());
  copy_into(copy, moved);
  return copy;
}

// Whether one transform does: the dimensions are the last ones of the tensor, and `last`, of which the spectrum has
// half, is the innermost.
bool is_one_transform(const Tensor& t, const Dims& others, int64_t last) {
  Dims dims = others;
  dims.push_back(last);
  if (dims.size() > static_cast<int64_t>(kMostDims) || last != t.dim() - 1) return false;
  std::sort(dims.begin(), dims.end());
  return dims[0] == t.dim() - dims.size();
}

// Along `d`, of which the spectrum has half, and the `rank` - 1 dimensions before it. What is read may be destroyed.
void transform_lines(FourierSizes::Kind kind, const Tensor& lines, const Tensor& to, int64_t d, int64_t rank,
                     bool forward) {
  const Tensor target = with_last(to, {d});
  const Tensor result = target.is_contiguous() ? target : empty(target.sizes(), to.dtype(), to.device());
  const bool to_real = is_complex(lines.dtype());
  FourierSizes s;
  s.kind = kind;
  s.dtype = static_cast<int64_t>(to_real ? lines.dtype() : to.dtype());
  s.rank = rank;
  s.batch = lines.numel();
  for (int64_t i = 0; i < rank; ++i) {
    s.sizes[i] = (to_real ? target : lines).size(i - rank);
    s.batch /= lines.size(i - rank);
  }
  transform(to.device().index, s, lines.bytes(), result.bytes(), forward);
  if (result.get() != target.get()) copy_into(target, result);
}

// (input, dim, forward, scale)
void run_complex(Call& c) {
  const Tensor& out = c.out();
  if (out.numel() == 0) return;
  if (!cufft_problem().empty()) return on_host(c);
  transform_all(c.tensor(0), out, wrap_dims(c.integers(1), out.dim()), c.boolean(2));
  multiply_by(out, c.real(3));
}

// (input, dim, forward, scale)
void run_from_real(Call& c) {
  const Tensor input = c.tensor(0);
  const Tensor& out = c.out();
  if (out.numel() == 0) return;
  if (!cufft_problem().empty()) return on_host(c);
  Dims dims = wrap_dims(c.integers(1), input.dim());
  const int64_t last = dims.back();
  dims.pop_back();
  const bool at_once = input.size(last) > 1 && is_one_transform(input, dims, last);
  if (input.size(last) == 1)
    copy_into(out, convert(input, out.dtype()));
  else
    transform_lines(FourierSizes::from_real, in_lines(input, last, false), out, last, at_once ? dims.size() + 1 : 1,
                    true);
  if (!at_once) transform_all(out, out, dims, true);
  if (!c.boolean(2)) conjugate(out);  // backwards, the spectrum of a real signal is the conjugate one
  multiply_by(out, c.real(3));
}

// (input, dim, size, forward, scale)
void run_to_real(Call& c) {
  const Tensor input = c.tensor(0);
  const Tensor& out = c.out();
  if (out.numel() == 0) return;
  if (!cufft_problem().empty()) return on_host(c);
  Dims dims = wrap_dims(c.integers(1), input.dim());
  const int64_t last = dims.back();
  dims.pop_back();
  Tensor half = input;
  const bool at_once = c.integer(2) > 1 && is_one_transform(input, dims, last);
  if (!dims.empty() && !at_once) {
    half = empty(input.sizes(), input.dtype(), input.device());
    transform_all(input, half, dims, c.boolean(3));
  }
  double scale = c.real(4);
  if (c.integer(2) == 1) {
    copy_into(out, convert(half, out.dtype()));
  } else {
    const bool is_given = dims.empty() || at_once;  // and must not be destroyed
    const Tensor moved = with_last(half, {last});
    const bool scales = is_given && scale != 1 && moved.is_contiguous() && half.dtype() != Dtype::c32;
    // The copy is made with the product; halves might not hold it.
    const Tensor lines = scales ? multiplied_by(moved, std::exchange(scale, 1)) : in_lines(half, last, is_given);
    if (c.boolean(3)) conjugate(lines);
    transform_lines(FourierSizes::to_real, lines, out, last, at_once ? dims.size() + 1 : 1, false);
  }
  multiply_by(out, scale);
}

}  // namespace

REGISTER_KERNELS(fourier) {
  r.set_kernel("fft_complex", DeviceType::cuda, run_complex);
  r.set_kernel("fft_from_real", DeviceType::cuda, run_from_real);
  r.set_kernel("fft_to_real", DeviceType::cuda, run_to_real);
}

}  // namespace cresset::cuda
