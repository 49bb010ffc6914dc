// Filling and copying under a mask, and means of what was counted. MEAN, SCATTER: which kernel is wanted.
#pragma once
#include "fault.cuh"

#ifdef MEAN
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
  const int64_t i = static_cast<int64_t>(blockIdx.x) * 256 + threadIdx.x;
  if (i < n) sums[i] = mean(sums[i], counts[i] + self > 1 ? counts[i] + self : 1);
}
#endif

#ifdef SCATTER
// to[i] = source[ranks[i]] where the mask holds.
extern "C" __global__ void __launch_bounds__(256)
    masked_scatter(T* to, const uint8_t* mask, const int64_t* ranks, const T* source, int64_t n, int64_t most,
                   Fault* fault, int32_t operation) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * 256 + threadIdx.x;
  if (i >= n || !mask[i]) return;
  if (ranks[i] < most)
    to[i] = source[ranks[i]];
  else
    report(fault, operation, ranks[i], i, most);
}
#endif
