// What surrounds the library of linear algebra: where the matrices of a batch start, and the order of rows after row
// exchanges. ADDRESSES, ROW_ORDER: which kernel is wanted.
#pragma once
#include "types.cuh"

#ifdef ADDRESSES
extern "C" __global__ void addresses(int64_t* out, int64_t first, int64_t step, int64_t count) {
  after_earlier_work();
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < count) out[i] = first + i * step;
}
#endif

#ifdef ROW_ORDER
// A thread has one matrix: exchange i is of the rows i and pivots[i], which counts from 1.
extern "C" __global__ void row_order(int64_t* order, const int32_t* pivots, int64_t rows, int64_t exchanges,
                                     int64_t count) {
  after_earlier_work();
  const int64_t matrix = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (matrix >= count) return;
  order += matrix * rows;
  pivots += matrix * exchanges;
  for (int64_t i = 0; i < rows; ++i) order[i] = i;
  for (int64_t i = 0; i < exchanges; ++i) {
    const int64_t other = pivots[i] - 1;
    if (other < 0 || other >= rows) continue;  // of a matrix with nan
    const int64_t kept = order[i];
    order[i] = order[other];
    order[other] = kept;
  }
}
#endif
