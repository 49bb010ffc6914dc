// Places in sorted sequences.
#pragma once
#include "types.cuh"

// How many elements of a row of the sequence are below the element, or with RIGHT not above it. Said with `not`, so
// that nan comes after everything.
extern "C" __global__ void __launch_bounds__(256)
    search_sorted(const T* sequence, const int64_t* sorter, const T* input, R* out, int64_t n, int64_t length,
                  int64_t per_row, int32_t right) {
  after_earlier_work();
  const int64_t i = static_cast<int64_t>(blockIdx.x) * 256 + threadIdx.x;
  if (i >= n) return;
  const int64_t start = per_row ? i / per_row * length : 0;  // per_row 0: one sequence for all
  const T v = input[i];
  int64_t low = 0, high = length;
  while (low < high) {
    const int64_t middle = (low + high) / 2;
    const T other = sequence[start + (sorter ? sorter[start + middle] : middle)];
    if (right ? !(other > v) : !(other >= v))
      low = middle + 1;
    else
      high = middle;
  }
  out[i] = static_cast<R>(low);
}
