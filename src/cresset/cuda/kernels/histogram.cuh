// Counts of elements. COUNT, INTERVALS: which kernel is wanted. With SHARED a block counts up to kMostBins in its
// shared memory first: many elements of few kinds would wait for each other.
#pragma once
#include "types.cuh"

constexpr int kMostBins = 8192;  // as in native/cuda/histogram.cpp

// counts[bin of element i] += 1 for all i; a bin below zero is none.
template <class F>
__device__ __forceinline__ void count_elements(int64_t n, unsigned long long* counts, int64_t bins, F bin_of) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * 256,
                first = static_cast<int64_t>(blockIdx.x) * 256 + threadIdx.x;
#if SHARED
  __shared__ uint32_t own[kMostBins];
  for (int b = static_cast<int>(threadIdx.x); b < bins; b += 256) own[b] = 0;
  __syncthreads();
#pragma unroll 4
  for (int64_t i = first; i < n; i += step) {
    const int64_t bin = bin_of(i);
    if (bin >= 0) atomicAdd(&own[bin], 1u);
  }
  __syncthreads();
  for (int b = static_cast<int>(threadIdx.x); b < bins; b += 256)
    if (own[b]) atomicAdd(counts + b, static_cast<unsigned long long>(own[b]));
#else
  for (int64_t i = first; i < n; i += step) {
    const int64_t bin = bin_of(i);
    if (bin >= 0) atomicAdd(counts + bin, 1ull);
  }
#endif
}

#ifdef COUNT
extern "C" __global__ void __launch_bounds__(256)
    count_numbers(const int64_t* x, int64_t n, unsigned long long* counts, int64_t bins) {
  after_earlier_work();
  count_elements(n, counts, bins, [&](int64_t i) { return x[i]; });
}
#endif

#ifdef INTERVALS
// Equal intervals from low to high; the last has both its edges. Each step in the elements' own precision, as the edges
// of the bins are.
__device__ __forceinline__ opmath<T> rounded(opmath<T> v) { return convert<opmath<T>>(convert<T>(v)); }
extern "C" __global__ void __launch_bounds__(256)
    count_intervals(const T* x, int64_t n, unsigned long long* counts, int64_t bins, double lowest, double highest) {
  after_earlier_work();
  using A = opmath<T>;
  const A low = static_cast<A>(lowest), high = static_cast<A>(highest);
  count_elements(n, counts, bins, [&](int64_t i) -> int64_t {
    const A v = convert<A>(x[i]);
    if (!(v >= low && v <= high)) return -1;
    const A place = rounded(rounded(rounded(v - low) * static_cast<A>(bins)) / rounded(high - low));
    const int64_t bin = static_cast<int64_t>(place);
    return bin < bins - 1 ? bin : bins - 1;
  });
}
#endif
