// The product of matrices for processors with AVX-512.
#include <algorithm>
#include <cstring>
#include <utility>

#include "ops/gemm_kernels.h"

#pragma GCC target("avx2,fma,avx512f,avx512dq,avx512bw,avx512vl,prefer-vector-width=512")
#pragma GCC optimize("fp-contract=fast")

namespace cresset {
namespace {

constexpr int kBytes = 64;
#include "ops/gemm_kernels.inc"

}  // namespace

template <class T>
Multiply<T> multiply_avx512() {
  return Kernels<T>::product;
}
template Multiply<float> multiply_avx512();
template Multiply<double> multiply_avx512();
template Multiply<uint32_t> multiply_avx512();
template Multiply<uint64_t> multiply_avx512();

}  // namespace cresset
