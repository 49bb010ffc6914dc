// How numbers are stored: frexp.
#include "cuda/backend.h"
#include "cuda/launch.h"
#include "dispatch/on_host.h"
#include "dispatch/registration.h"

namespace cresset::cuda {
namespace {

const KernelText kText{R"cuda(// with T=dtype_f32, T=dtype_f64, T=dtype_bf16
#include "math.cuh"
#include "float_parts.h"

constexpr int kVector = 4;
extern "C" __global__ void __launch_bounds__(256)
    frexp_parts(const T* from, T* mantissas, int32_t* exponents, int64_t n) {
  after_earlier_work();
  const int64_t at = (static_cast<int64_t>(blockIdx.x) * 256 + threadIdx.x) * kVector;
  if (at + kVector <= n) {
    const Vector<T, kVector> x = load_vector<kVector>(from + at);
    Vector<T, kVector> mantissa;
    Vector<int32_t, kVector> exponent;
#pragma unroll
    for (int k = 0; k < kVector; ++k) {
      const FloatParts<opmath<T>> parts = split(convert<opmath<T>>(x.values[k]));
      mantissa.values[k] = convert<T>(parts.mantissa);
      exponent.values[k] = parts.exponent;
    }
    store_vector(mantissas + at, mantissa);
    store_vector(exponents + at, exponent);
    return;
  }
  for (int64_t i = at; i < n; ++i) {
    const FloatParts<opmath<T>> parts = split(convert<opmath<T>>(from[i]));
    mantissas[i] = convert<T>(parts.mantissa);
    exponents[i] = parts.exponent;
  }
}
)cuda"};
const KernelFamily kParts(kText, "frexp_parts", {"T"});

void run_frexp(Call& c) {
  const Tensor mantissa = c.out(0), exponent = c.out(1);
  if (mantissa.numel() == 0) return;
  if (size_of(mantissa.dtype()) == 1) return execute_on_host(c, mantissa.device());
  Tensor input = c.tensor(0);
  const auto misaligned = [](const Tensor& t) {
    return reinterpret_cast<uintptr_t>(t.bytes()) % static_cast<uintptr_t>(4 * size_of(t.dtype())) != 0;
  };
  if (!(input.strides() == mantissa.strides()) || misaligned(input))
    copy_into(input = empty_like_layout(mantissa, mantissa.dtype()), c.tensor(0));
  kParts.launch(Place(mantissa.device()), {mantissa.dtype()}, divide_up(mantissa.numel(), 1024), 256, 0, input.bytes(),
                mantissa.bytes(), exponent.bytes(), mantissa.numel());
}

}  // namespace

REGISTER_KERNELS(bits) { r.set_kernel("frexp", DeviceType::cuda, run_frexp); }

}  // namespace cresset::cuda
