// The lowest and the highest element, by their keys.
#pragma once
#include "ordered_keys.cuh"

// extremes[0]: the lowest key, extremes[1]: the highest; both start from what the host put there. A nan has the highest
// key.
extern "C" __global__ void __launch_bounds__(256) key_extremes(const T* x, int64_t n, unsigned long long* extremes) {
  after_earlier_work();
  unsigned long long low = ~0ull, high = 0;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * 256 + threadIdx.x; i < n;
       i += static_cast<int64_t>(gridDim.x) * 256) {
    const unsigned long long key = key_of(x[i], false);
    low = key < low ? key : low;
    high = key > high ? key : high;
  }
  for (int lanes = 16; lanes > 0; lanes /= 2) {
    const unsigned long long other_low = __shfl_xor_sync(0xffffffffu, low, lanes),
                             other_high = __shfl_xor_sync(0xffffffffu, high, lanes);
    low = other_low < low ? other_low : low;
    high = other_high > high ? other_high : high;
  }
  if (threadIdx.x % 32 == 0) {
    atomicMin(extremes, low);
    atomicMax(extremes + 1, high);
  }
}
