// The product of integer matrices that quantized layers are made of: out[m][n] = sum over k of (input[m][k] - zero) *
// weight[n][k].
#include "base/instruction_set.h"
#include "base/parallel.h"
#include "dispatch/call.h"
#include "dispatch/registration.h"

namespace cresset {
namespace {

struct IntegerDot {
  template <class Fma>
  CRESSET_INLINE void run(const int16_t* a, const int16_t* b, int64_t n, int32_t* out) {
    int32_t sum = 0;
    for (int64_t k = 0; k < n; ++k)
      sum += static_cast<int32_t>(a[k]) * static_cast<int32_t>(b[k]);  // integers: any order gives the same
    *out = sum;
  }
};

void infer_quantized_product(Call& c) {
  const Tensor input = c.tensor(0), weight = c.tensor(1);
  const auto fits = [](const Tensor& t) { return t.dtype() == Dtype::i8 || t.dtype() == Dtype::u8; };
  check(input.dim() == 2 && weight.dim() == 2 && input.size(1) == weight.size(1), "quantized_product: shapes ",
        list(input.sizes()), " and ", list(weight.sizes()), " do not fit");
  check(fits(input) && fits(weight), "quantized_product: expected int8 or uint8, got ", name_of(input.dtype()), " and ",
        name_of(weight.dtype()));
  c.promise({{input.size(0), weight.size(0)}}, Dtype::i32, input.device());
}

void run_quantized_product(Call& c) {
  const Tensor wide = contiguous(convert(c.tensor(0), Dtype::i16)),
               weights = contiguous(convert(c.tensor(1), Dtype::i16)), out = c.out();
  const int16_t zero = static_cast<int16_t>(c.integer(2));
  const int64_t m = wide.size(0), k = wide.size(1), n = weights.size(0);
  const Tensor shifted = empty(wide.sizes(), Dtype::i16);
  for (int64_t i = 0; i < m * k; ++i) shifted.data<int16_t>()[i] = static_cast<int16_t>(wide.data<int16_t>()[i] - zero);
  constexpr int64_t kRows = 16;  // of the weight, kept in the cache while all inputs pass
  parallel_for((n + kRows - 1) / kRows, std::max<int64_t>(1, kParallelGrain / (m * k * kRows + 1)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t block = begin; block < end; ++block)
                   for (int64_t i = 0; i < m; ++i)
                     for (int64_t j = block * kRows; j < std::min(n, (block + 1) * kRows); ++j)
                       run_vectorized<IntegerDot>(static_cast<const int16_t*>(shifted.data<int16_t>() + i * k),
                                                  static_cast<const int16_t*>(weights.data<int16_t>() + j * k), k,
                                                  out.data<int32_t>() + i * n + j);
               });
}

}  // namespace

REGISTER(quantize) {
  constexpr uint32_t kInternal = kFunctionOnly | kMethodOnly;  // for cresset.ao, under no public name
  r.add("quantized_product(Tensor input, Tensor weight, int zero_point) -> Tensor", infer_quantized_product,
        run_quantized_product, kNotDifferentiable | kInternal);
}

}  // namespace cresset
