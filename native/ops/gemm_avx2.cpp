// The product of matrices for processors with AVX2.
#include <algorithm>
#include <cstring>
#include <utility>

#include "ops/gemm_kernels.h"

#pragma GCC target("avx2,fma")
#pragma GCC optimize("fp-contract=fast")

namespace cresset {
namespace {

constexpr int kBytes = 32;
#include "ops/gemm_kernels.inc"

}  // namespace

template <class T>
Multiply<T> multiply_avx2() {
  return Kernels<T>::product;
}
template Multiply<float> multiply_avx2();
template Multiply<double> multiply_avx2();
template Multiply<uint32_t> multiply_avx2();
template Multiply<uint64_t> multiply_avx2();

}  // namespace cresset
