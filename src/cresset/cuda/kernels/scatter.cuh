// Means of what was counted.
#pragma once
#include "types.cuh"

// sum / count; whole numbers are rounded down.
template <class Element>
__device__ __forceinline__ Element mean(Element sum, int64_t count) {
  if constexpr (is_same<Element, bool>) {
    return sum && count == 1;
  } else if constexpr (is_integer<Element>) {
    const Element by = static_cast<Element>(count), quotient = static_cast<Element>(sum / by);
    return static_cast<Element>(quotient - (sum % by != 0 && (sum < 0) != (by < 0) ? 1 : 0));
  } else if constexpr (is_complex<Element>) {
    return sum / static_cast<part<Element>>(count);
  } else {
    return convert<Element>(convert<opmath<Element>>(sum) / static_cast<opmath<Element>>(count));
  }
}
extern "C" __global__ void __launch_bounds__(256)
    mean_of_counts(T* sums, const int64_t* counts, int64_t self, int64_t n) {
  after_earlier_work();
  const int64_t i = static_cast<int64_t>(blockIdx.x) * 256 + threadIdx.x;
  if (i < n) sums[i] = mean(sums[i], counts[i] + self > 1 ? counts[i] + self : 1);
}
