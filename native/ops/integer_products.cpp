// Products of matrices of small integers, summed exactly: int8 times int8 to int32, of which quantised layers are made.
#include "dispatch/call.h"
#include "ops/gemm.h"
#include "ops/register.h"

namespace cresset {

void (*library_integer_product)(const LibraryIntegerProduct&) = nullptr;

namespace {

void infer_int_mm(Call& c) {
  const Tensor a = c.tensor(0), b = c.tensor(1);
  check(a.dim() == 2, "_int_mm: Expected self to be of dimension 2 but got ", a.dim());
  check(b.dim() == 2, "_int_mm: Expected mat2 to be of dimension 2 but got ", b.dim());
  check(a.size(1) == b.size(0), "_int_mm: self.size(1) needs to match mat2.size(0) but got ", a.size(1), " and ", b.size(0));
  for (const auto& [t, name] : {std::pair(&a, "self"), std::pair(&b, "mat2")})
    check(t->dtype() == Dtype::i8, "_int_mm: Expected ", name, " dtype to be of type int8 but got ", t->dtype());
  check(a.device() == b.device(), "_int_mm: Expected all tensors to be on the same device, but found at least two devices, ", a.device(), " and ", b.device(), "!");
  c.promise({{a.size(0), b.size(1)}}, Dtype::i32, a.device());
}

// The library takes matrices of which one side is contiguous.
bool is_plain(const Tensor& t) {
  const int64_t row = t.stride(0), column = t.stride(1);
  return (column == 1 && row >= t.size(1)) || (row == 1 && column >= t.size(0));
}

void run_int_mm(Call& c) {
  Tensor a = c.tensor(0), b = c.tensor(1);
  const Tensor out = c.out();
  if (out.numel() == 0) return;
  if (a.size(1) == 0) return fill(out, 0);
  if (library_integer_product) {
    if (!is_plain(a)) a = contiguous(a);
    if (!is_plain(b)) b = contiguous(b);
    LibraryIntegerProduct p;
    p.transpose_a = a.stride(1) != 1, p.transpose_b = b.stride(1) != 1;
    p.m = a.size(0), p.n = b.size(1), p.k = a.size(1);
    p.a = a.data<int8_t>(), p.a_row = p.transpose_a ? a.stride(1) : a.stride(0);
    p.b = b.data<int8_t>(), p.b_row = p.transpose_b ? b.stride(1) : b.stride(0);
    p.c = out.data<int32_t>();
    p.a_row = std::max(p.a_row, p.transpose_a ? p.m : p.k), p.b_row = std::max(p.b_row, p.transpose_b ? p.k : p.n);  // of a single line
    return library_integer_product(p);
  }
  const Tensor wide_a = convert(a, Dtype::i32), wide_b = convert(b, Dtype::i32);
  Product<uint32_t> p;
  p.m = a.size(0), p.n = b.size(1), p.k = a.size(1);
  p.a.data = wide_a.data<uint32_t>(), p.a.line_step = wide_a.stride(0), p.a.k_step = wide_a.stride(1);
  p.b.data = wide_b.data<uint32_t>(), p.b.line_step = wide_b.stride(1), p.b.k_step = wide_b.stride(0);
  p.c = out.data<uint32_t>(), p.c_row = p.n;
  multiply(p);
}

}  // namespace

void register_integer_products(Registry& r) { r.add("_int_mm(Tensor input, Tensor mat2) -> Tensor", infer_int_mm, run_int_mm, kNotDifferentiable | kFunctionOnly); }

}  // namespace cresset
