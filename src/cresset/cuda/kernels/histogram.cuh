// Counts of elements. COUNT, INTERVALS: which kernel is wanted.
#pragma once
#include "types.cuh"

#ifdef COUNT
// counts[x] += 1
extern "C" __global__ void __launch_bounds__(256)
    count_numbers(const int64_t* x, int64_t n, unsigned long long* counts) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * 256 + threadIdx.x;
  if (i < n) atomicAdd(counts + x[i], 1ull);
}
#endif

#ifdef INTERVALS
// Equal intervals from low to high; the last has both its edges. Each step in the elements' own precision, as the edges
// of the bins are.
__device__ __forceinline__ opmath<T> rounded(opmath<T> v) { return convert<opmath<T>>(convert<T>(v)); }
extern "C" __global__ void __launch_bounds__(256)
    count_intervals(const T* x, int64_t n, unsigned long long* counts, int64_t bins, double lowest, double highest) {
  using A = opmath<T>;
  const int64_t i = static_cast<int64_t>(blockIdx.x) * 256 + threadIdx.x;
  if (i >= n) return;
  const A v = convert<A>(x[i]), low = static_cast<A>(lowest), high = static_cast<A>(highest);
  if (!(v >= low && v <= high)) return;
  const A place = rounded(rounded(rounded(v - low) * static_cast<A>(bins)) / rounded(high - low));
  const int64_t bin = static_cast<int64_t>(place);
  atomicAdd(counts + (bin < bins - 1 ? bin : bins - 1), 1ull);
}
#endif
