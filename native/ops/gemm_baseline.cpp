// The product of matrices for any processor.
#include <algorithm>
#include <cstring>
#include <utility>

#include "ops/gemm_kernels.h"


#pragma GCC optimize("fp-contract=fast")

namespace cresset {
namespace {

constexpr int kBytes = 16;
#include "ops/gemm_kernels.inc"

}  // namespace

template <class T>
Multiply<T> multiply_baseline() {
  return Kernels<T>::product;
}
template Multiply<float> multiply_baseline();
template Multiply<double> multiply_baseline();
template Multiply<uint32_t> multiply_baseline();
template Multiply<uint64_t> multiply_baseline();

}  // namespace cresset
