// How numbers are stored: frexp.
#include "base/float_parts.h"
#include "base/parallel.h"
#include "dispatch/registration.h"

namespace cresset {
namespace {

void infer_frexp(Call& c) {
  const Tensor t = c.tensor(0);
  check(is_floating(t.dtype()), "torch.frexp() only supports floating-point dtypes, got ", name_of(t.dtype()));
  const Dims strides = dense_strides_like(t.sizes(), t.strides());
  c.promise({t.sizes(), strides, t.dtype(), t.device()});
  c.promise({t.sizes(), strides, Dtype::i32, t.device()});
}

void run_frexp(Call& c) {
  const Tensor mantissa = c.out(0), exponent = c.out(1);
  Tensor input = c.tensor(0);
  if (!(input.strides() == mantissa.strides()))
    copy_into(input = empty_like_layout(mantissa, mantissa.dtype()), c.tensor(0));
  visit_floating(input.dtype(), "frexp", [&]<class T>() {
    const T* from = input.data<T>();
    T* to = mantissa.data<T>();
    int32_t* powers = exponent.data<int32_t>();
    parallel_for(input.numel(), kParallelGrain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const FloatParts<opmath<T>> parts = split(static_cast<opmath<T>>(from[i]));
        to[i] = static_cast<T>(parts.mantissa);
        powers[i] = parts.exponent;
      }
    });
  });
}

}  // namespace

REGISTER(bits) {
  r.add("frexp(Tensor input) -> (Tensor mantissa, Tensor exponent)", infer_frexp, run_frexp, kWritesApart);
}

}  // namespace cresset
