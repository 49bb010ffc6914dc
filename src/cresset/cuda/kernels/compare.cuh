// Places in sorted sequences, and counts of elements. SEARCH, EXTREMES, COUNT, INTERVALS: which kernel is wanted.
#pragma once
#include "ordered_keys.cuh"

#ifdef SEARCH
// How many elements of a row of the sequence are below the element, or with RIGHT not above it. Said with `not`, so that nan comes after everything.
extern "C" __global__ void __launch_bounds__(256) search_sorted(const T* sequence, const int64_t* sorter, const T* input, R* out, int64_t n, int64_t length, int64_t per_row, int32_t right) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * 256 + threadIdx.x;
  if (i >= n) return;
  const int64_t start = per_row ? i / per_row * length : 0;  // per_row 0: one sequence for all
  const T v = input[i];
  int64_t low = 0, high = length;
  while (low < high) {
    const int64_t middle = (low + high) / 2;
    const T other = sequence[start + (sorter ? sorter[start + middle] : middle)];
    if (right ? !(other > v) : !(other >= v)) low = middle + 1;
    else high = middle;
  }
  out[i] = static_cast<R>(low);
}
#endif

#ifdef EXTREMES
// extremes[0]: the lowest key, extremes[1]: the highest; both start from what the host put there. A nan has the highest key.
extern "C" __global__ void __launch_bounds__(256) key_extremes(const T* x, int64_t n, unsigned long long* extremes) {
  unsigned long long low = ~0ull, high = 0;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * 256 + threadIdx.x; i < n; i += static_cast<int64_t>(gridDim.x) * 256) {
    const unsigned long long key = key_of(x[i], false);
    low = key < low ? key : low;
    high = key > high ? key : high;
  }
  for (int lanes = 16; lanes > 0; lanes /= 2) {
    const unsigned long long other_low = __shfl_xor_sync(0xffffffffu, low, lanes), other_high = __shfl_xor_sync(0xffffffffu, high, lanes);
    low = other_low < low ? other_low : low;
    high = other_high > high ? other_high : high;
  }
  if (threadIdx.x % 32 == 0) {
    atomicMin(extremes, low);
    atomicMax(extremes + 1, high);
  }
}
#endif

#ifdef COUNT
// counts[x] += 1
extern "C" __global__ void __launch_bounds__(256) count_numbers(const int64_t* x, int64_t n, unsigned long long* counts) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * 256 + threadIdx.x;
  if (i < n) atomicAdd(counts + x[i], 1ull);
}
#endif

#ifdef INTERVALS
// Equal intervals from low to high; the last has both its edges. Each step in the elements' own precision, as the edges of the bins are.
__device__ __forceinline__ opmath<T> rounded(opmath<T> v) { return convert<opmath<T>>(convert<T>(v)); }
extern "C" __global__ void __launch_bounds__(256) count_intervals(const T* x, int64_t n, unsigned long long* counts, int64_t bins, double lowest, double highest) {
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
