// Products of matrices of small integers, summed exactly: int8 or uint8 times int8 to int32, of which quantized layers
// are made.
#include <algorithm>

#include "base/parallel.h"
#include "dispatch/call.h"
#include "dispatch/registration.h"
#include "ops/gemm.h"

namespace cresset {
namespace {

void infer_int_mm(Call& c) {
  const Tensor a = c.tensor(0), b = c.tensor(1);
  check(a.dim() == 2, "_int_mm: Expected self to be of dimension 2 but got ", a.dim());
  check(b.dim() == 2, "_int_mm: Expected mat2 to be of dimension 2 but got ", b.dim());
  check(a.size(1) == b.size(0), "_int_mm: self.size(1) needs to match mat2.size(0) but got ", a.size(1), " and ",
        b.size(0));
  check(a.dtype() == Dtype::i8 || a.dtype() == Dtype::u8,
        "_int_mm: Expected self dtype to be of type int8 or uint8 but got ", a.dtype());
  check(b.dtype() == Dtype::i8, "_int_mm: Expected mat2 dtype to be of type int8 but got ", b.dtype());
  check(a.device() == b.device(),
        "_int_mm: Expected all tensors to be on the same device, but found at least two devices, ", a.device(), " and ",
        b.device(), "!");
  c.promise({{a.size(0), b.size(1)}}, Dtype::i32, a.device());
}

// So many products of uint8 or int8 and int8 have a sum that a float holds exactly, in any order.
constexpr int64_t kExactInFloat = (1 << 24) / (256 * 128);

void run_int_mm(Call& c) {
  const Tensor a = c.tensor(0), b = c.tensor(1), out = c.out();
  if (out.numel() == 0) return;
  if (a.size(1) == 0) return fill(out, 0);
  const Tensor wide_a = convert(a, Dtype::f32), wide_b = convert(b, Dtype::f32), sums = empty(out.sizes(), Dtype::f32);
  Product<float> p;
  p.m = a.size(0), p.n = b.size(1);
  p.a.line_step = wide_a.stride(0), p.a.k_step = wide_a.stride(1);
  p.b.line_step = wide_b.stride(1), p.b.k_step = wide_b.stride(0);
  p.c = sums.data<float>(), p.c_row = p.n;
  int32_t* const to = out.data<int32_t>();
  for (int64_t first = 0; first < a.size(1); first += kExactInFloat) {
    p.k = std::min(kExactInFloat, a.size(1) - first);
    p.a.data = wide_a.data<float>() + first * p.a.k_step;
    p.b.data = wide_b.data<float>() + first * p.b.k_step;
    multiply(p);
    parallel_for(out.numel(), kParallelGrain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const auto sum = static_cast<uint32_t>(static_cast<int32_t>(p.c[i]));
        to[i] = static_cast<int32_t>(first ? static_cast<uint32_t>(to[i]) + sum : sum);  // wraps around
      }
    });
  }
}

}  // namespace

REGISTER(matmul_integer) {
  r.add("_int_mm(Tensor input, Tensor mat2) -> Tensor", infer_int_mm, run_int_mm, kNotDifferentiable | kFunctionOnly);
}

}  // namespace cresset
