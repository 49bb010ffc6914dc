// Fourier transforms as operators: of complex tensors, of real ones, and to real ones. fourier_lines.h transforms along
// one dimension.
#include "dispatch/registration.h"
#include "ops/fourier_lines.h"

namespace cresset {
namespace {

LineShape lines_along(const Tensor& t, int64_t d) {
  LineShape shape{1, t.size(d), 1};
  for (int64_t i = 0; i < t.dim(); ++i) (i < d ? shape.outer : shape.inner) *= i == d ? 1 : t.size(i);
  return shape;
}

// The tensors are contiguous, complex, of the same shape, and perhaps the same.
void transform_dim(const Tensor& in, const Tensor& out, int64_t d, bool forward, double scale) {
  if (out.dtype() == Dtype::c64)
    transform_complex(in.data<float>(), out.data<float>(), lines_along(out, d), forward, static_cast<float>(scale));
  else
    transform_complex(in.data<double>(), out.data<double>(), lines_along(out, d), forward, scale);
}

// The last dimension first: its lines are those that the input's memory has in order.
void transform_dims(const Tensor& t, const Tensor& out, DimsView dims, bool forward, double scale) {
  const Tensor in = contiguous(t);
  if (dims.empty()) {
    if (in.data<char>() != out.data<char>()) copy_into(out, in);
    return;
  }
  for (int64_t k = static_cast<int64_t>(dims.size()) - 1, first = k; k >= 0; --k)
    transform_dim(k == first ? in : out, out, dims[k], forward, k == first ? scale : 1);
}

// Half precision is for devices that have such transforms.
void check_complex(const Tensor& t) {
  check(t.dtype() == Dtype::c64 || t.dtype() == Dtype::c128 || (t.dtype() == Dtype::c32 && !t.device().is_cpu()),
        "fft: expected a complex64 or complex128 tensor, got ", name_of(t.dtype()), " on ", t.device());
}

void infer_complex(Call& c) {
  const Tensor t = c.tensor(0);
  check_complex(t);
  wrap_dims(c.integers(1), t.dim());
  c.promise(t.sizes(), t.dtype(), t.device());
}

void run_complex(Call& c) {
  const Tensor t = c.tensor(0), out = c.out();
  if (out.numel()) transform_dims(t, out, wrap_dims(c.integers(1), t.dim()), c.boolean(2), c.real(3));
}

// The half of a real signal's spectrum that determines the rest: the last of the dimensions is halved.
void infer_from_real(Call& c) {
  const Tensor t = c.tensor(0);
  check(t.dtype() == Dtype::f32 || t.dtype() == Dtype::f64 || (t.dtype() == Dtype::f16 && !t.device().is_cpu()),
        "fft: expected a float32 or float64 tensor, got ", name_of(t.dtype()), " on ", t.device());
  const Dims dims = wrap_dims(c.integers(1), t.dim());
  check(!dims.empty(), "fft: a real transform is along at least one dimension");
  Dims sizes = t.sizes();
  sizes[dims.back()] = sizes[dims.back()] / 2 + 1;
  c.promise(sizes,
            t.dtype() == Dtype::f32   ? Dtype::c64
            : t.dtype() == Dtype::f64 ? Dtype::c128
                                      : Dtype::c32,
            t.device());
}

void run_from_real(Call& c) {
  const Tensor t = contiguous(c.tensor(0)), out = c.out();
  if (out.numel() == 0) return;
  Dims dims = wrap_dims(c.integers(1), t.dim());
  const LineShape shape = lines_along(t, dims.back());
  dims.pop_back();
  const bool forward = c.boolean(2);
  if (t.dtype() == Dtype::f32)
    transform_from_real(t.data<float>(), out.data<float>(), shape, forward, static_cast<float>(c.real(3)));
  else
    transform_from_real(t.data<double>(), out.data<double>(), shape, forward, c.real(3));
  transform_dims(out, out, dims, forward, 1);
}

// A real signal of `size` elements along the last of the dimensions from the half of its spectrum.
void infer_to_real(Call& c) {
  const Tensor t = c.tensor(0);
  check_complex(t);
  const Dims dims = wrap_dims(c.integers(1), t.dim());
  check(!dims.empty(), "fft: a real transform is along at least one dimension");
  Dims sizes = t.sizes();
  check(c.integer(2) >= 1 && sizes[dims.back()] == c.integer(2) / 2 + 1, "fft: a real signal of ", c.integer(2),
        " elements has a spectrum of ", c.integer(2) / 2 + 1, ", got ", sizes[dims.back()]);
  sizes[dims.back()] = c.integer(2);
  c.promise(sizes,
            t.dtype() == Dtype::c64    ? Dtype::f32
            : t.dtype() == Dtype::c128 ? Dtype::f64
                                       : Dtype::f16,
            t.device());
}

void run_to_real(Call& c) {
  Tensor t = c.tensor(0);
  const Tensor out = c.out();
  if (out.numel() == 0) return;
  Dims dims = wrap_dims(c.integers(1), t.dim());
  const LineShape shape = lines_along(out, dims.back());
  dims.pop_back();
  const bool forward = c.boolean(3);
  if (!dims.empty()) {
    const Tensor partly = empty(t.sizes(), t.dtype());
    transform_dims(t, partly, dims, forward, 1);
    t = partly;
  }
  t = contiguous(t);
  if (t.dtype() == Dtype::c64)
    transform_to_real(t.data<float>(), out.data<float>(), shape, forward, static_cast<float>(c.real(4)));
  else
    transform_to_real(t.data<double>(), out.data<double>(), shape, forward, c.real(4));
}

}  // namespace

REGISTER(fourier) {
  r.add("fft_complex(Tensor input, int[] dim, bool forward, float scale) -> Tensor", infer_complex, run_complex,
        kFunctionOnly, "FftC2CBackward0");
  r.add("fft_from_real(Tensor input, int[] dim, bool forward, float scale) -> Tensor", infer_from_real, run_from_real,
        kFunctionOnly, "FftR2CBackward0");
  r.add("fft_to_real(Tensor input, int[] dim, int size, bool forward, float scale) -> Tensor", infer_to_real,
        run_to_real, kFunctionOnly, "FftC2RBackward0");
}

}  // namespace cresset
