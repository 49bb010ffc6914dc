// What surrounds the library of linear algebra: where the matrices of a batch start, and the order of rows after row
// exchanges. ADDRESSES, ROW_ORDER, EXCHANGE, WIDEN, CHECK: which kernel is wanted.
#pragma once
#include "fault.cuh"

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

#ifdef EXCHANGE
// The exchanges themselves, or backward the last one first: a block has a column of words of so many bytes, of which a
// matrix has `width`, and makes them in shared memory, one after the other.
extern __shared__ __align__(16) char exchanged[];
extern "C" __global__ void __launch_bounds__(256)
    exchange_rows(typename Words<WORD>::type* columns, const int32_t* pivots, int32_t rows, int32_t width,
                  int32_t backward) {
  after_earlier_work();
  using Word = typename Words<WORD>::type;
  Word* const column = reinterpret_cast<Word*>(exchanged);
  int32_t* const others = reinterpret_cast<int32_t*>(column + rows);
  columns += static_cast<int64_t>(blockIdx.x) * rows;
  pivots += static_cast<int64_t>(blockIdx.x / static_cast<uint32_t>(width)) * rows;
  for (int32_t i = static_cast<int32_t>(threadIdx.x); i < rows; i += 256)
    column[i] = columns[i], others[i] = min(max(pivots[i], 1), rows) - 1;
  __syncthreads();
  if (threadIdx.x == 0)
    for (int32_t k = 0; k < rows; ++k) {
      const int32_t i = backward ? rows - 1 - k : k;
      const Word kept = column[i];
      column[i] = column[others[i]];
      column[others[i]] = kept;
    }
  __syncthreads();
  for (int32_t i = static_cast<int32_t>(threadIdx.x); i < rows; i += 256) columns[i] = column[i];
}
#endif

#ifdef WIDEN
// Pivots as the library wants them, which looks at none: bad ones are of no other matrix's rows.
extern "C" __global__ void widen_pivots(int64_t* wide, const int32_t* pivots, int64_t count, int32_t rows) {
  after_earlier_work();
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < count) wide[i] = min(max(pivots[i], 1), rows);
}
#endif

#ifdef CHECK
// Whether all pivots are among the rows, counted from 1.
extern "C" __global__ void check_pivots(const int32_t* pivots, int64_t count, int64_t rows, Fault* fault,
                                        int32_t operation) {
  after_earlier_work();
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < count && (pivots[i] < 1 || pivots[i] > rows)) report(fault, operation, pivots[i], i, rows);
}
#endif
