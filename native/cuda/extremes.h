// The lowest and the highest element of a tensor on the device, by keys that keep their order
// (kernels/ordered_keys.cuh).
#pragma once
#include "tensor/tensor.h"

namespace cresset::cuda {

struct Extremes {
  uint64_t low, high;
};
Extremes extremes_of(const Tensor& dense);  // waits for the device
inline int64_t integer_of(uint64_t key) { return static_cast<int64_t>(key ^ (uint64_t{1} << 63)); }  // of int64

}  // namespace cresset::cuda
