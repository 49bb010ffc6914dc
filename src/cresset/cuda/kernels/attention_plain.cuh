// Attention without tensor cores, for every float dtype and row length: one warp owns a few rows, and 32 others come
// by, one a lane. The kernel is chosen by ENTRY: 0 forward, 1 backward for the queries, 2 backward for keys and values,
// 3 the products of the output's rows with their gradients.
//
// ITEMS: how many elements of a row a lane adds up. Rows in shared memory are read by four elements, and filled up with
// zeros.
#include "attention_problem.cuh"

using C = opmath<T>;
constexpr int THREADS = 128, WARPS = THREADS / 32, OWN = ITEMS <= 4 ? 8 : 4, BLOCK_ROWS = WARPS * OWN, TILE = 32;

__device__ __forceinline__ int rounded(int width) { return (width + 3) / 4 * 4; }
// Of rows that lanes read side by side: an odd number of vectors, so that they lie in different banks.
__device__ __forceinline__ int lane_stride(int width) { return ((width + 3) / 4 | 1) * 4; }

__device__ __forceinline__ float exponential(float x) { return expf(x); }
__device__ __forceinline__ double exponential(double x) { return exp(x); }
__device__ __forceinline__ C warp_sum(C x) {
  for (int d = 16; d > 0; d /= 2) x += __shfl_xor_sync(0xffffffffu, x, d);
  return x;
}
__device__ __forceinline__ C warp_max(C x) {
  for (int d = 16; d > 0; d /= 2) {
    const C other = __shfl_xor_sync(0xffffffffu, x, d);
    x = other > x ? other : x;
  }
  return x;
}

// Rows to shared memory, `stride` apart there, zeros behind the last one and behind their ends.
__device__ __forceinline__ void copy_rows(C* to, int stride, const T* from, int64_t step, int rows, int first,
                                          int count, int width) {
  const int length = rounded(width);
  for (int at = threadIdx.x; at < rows * length; at += THREADS) {
    const int row = at / length, column = at % length;
    to[row * stride + column] =
        first + row < count && column < width ? convert<C>(from[(first + row) * step + column]) : C(0);
  }
}
// Of each own row with the lane's row.
__device__ __forceinline__ void multiply_rows(C (&sum)[OWN], const C* own, const C* lane_row, int width) {
  const int length = rounded(width);
  for (int d = 0; d < length; d += 4) {
    const Vector<C, 4> x = load_vector<4>(lane_row + d);
#pragma unroll
    for (int r = 0; r < OWN; ++r) {
      const Vector<C, 4> y = load_vector<4>(own + r * length + d);
#pragma unroll
      for (int i = 0; i < 4; ++i) sum[r] += x[i] * y[i];
    }
  }
}
// sum[r] += the rows of the tile, each times the weight that its lane has for r; `kept` is the warp's own place for the
// weights.
__device__ __forceinline__ void add_weighted(C (&sum)[OWN][ITEMS], const C (&weights)[OWN], C* kept, const C* tile,
                                             int stride, int width) {
  const int lane = threadIdx.x % 32;
  __syncwarp();
#pragma unroll
  for (int r = 0; r < OWN; ++r) kept[r * TILE + lane] = weights[r];
  __syncwarp();
  for (int j = 0; j < TILE; j += 4) {
    Vector<C, 4> weight[OWN];
#pragma unroll
    for (int r = 0; r < OWN; ++r) weight[r] = load_vector<4>(kept + r * TILE + j);
#pragma unroll
    for (int k = 0; k < 4; ++k)
#pragma unroll
      for (int i = 0; i < ITEMS; ++i) {
        const int column = lane + i * 32;
        const C x = column < width ? tile[(j + k) * stride + column] : C(0);
#pragma unroll
        for (int r = 0; r < OWN; ++r) sum[r][i] += weight[r][k] * x;
      }
  }
}
__device__ __forceinline__ void store_row(const C (&sum)[ITEMS], C factor, T* to, int width) {
#pragma unroll
  for (int i = 0; i < ITEMS; ++i) {
    const int column = threadIdx.x % 32 + i * 32;
    if (column < width) to[column] = convert<T>(sum[i] * factor);
  }
}

extern __shared__ uint4 shared_memory[];

#if ENTRY == 0

extern "C" __global__ void __launch_bounds__(THREADS) attention_plain(const Problem p) {
  after_earlier_work();
  const int blocks = (p.queries + BLOCK_ROWS - 1) / BLOCK_ROWS, first = blockIdx.x % blocks * BLOCK_ROWS;
  const int batch = blockIdx.x / blocks / p.heads, head = blockIdx.x / blocks % p.heads;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, start = first + warp * OWN;
  const int stride = lane_stride(p.width), value_stride = lane_stride(p.value_width);
  C* const queries = reinterpret_cast<C*>(shared_memory);
  C* const keys = queries + BLOCK_ROWS * rounded(p.width);
  C* const values = keys + TILE * stride;
  C* const kept = values + TILE * value_stride + warp * OWN * TILE;
  copy_rows(queries, rounded(p.width), matrix_of<T>(p.query, batch, head), p.query.row, BLOCK_ROWS, first, p.queries,
            p.width);
  C out[OWN][ITEMS] = {}, total[OWN] = {}, greatest[OWN];
  for (C& m : greatest) m = -INFINITY;
  const int seen = CAUSAL ? min(p.keys, first + BLOCK_ROWS) : p.keys;
  for (int from = 0; from < seen; from += TILE) {
    __syncthreads();
    copy_rows(keys, stride, matrix_of<T>(p.key, batch, head / p.group), p.key.row, TILE, from, p.keys, p.width);
    copy_rows(values, value_stride, matrix_of<T>(p.value, batch, head / p.group), p.value.row, TILE, from, p.keys,
              p.value_width);
    __syncthreads();
    C scores[OWN] = {};
    multiply_rows(scores, queries + warp * OWN * rounded(p.width), keys + lane * stride, p.width);
#pragma unroll
    for (int r = 0; r < OWN; ++r) {
      const C score = masked(p, batch, head, start + r, from + lane, scores[r] * static_cast<C>(p.scale));
      const C most = warp_max(score), raised = most > greatest[r] ? most : greatest[r];
      const C shift = raised == C(-INFINITY) ? C(0) : raised, shrink = exponential(greatest[r] - shift);
      greatest[r] = raised;
      scores[r] = exponential(score - shift);
      total[r] = total[r] * shrink + scores[r];
#pragma unroll
      for (int i = 0; i < ITEMS; ++i) out[r][i] *= shrink;
    }
    add_weighted(out, scores, kept, values, value_stride, p.value_width);
  }
#pragma unroll
  for (int r = 0; r < OWN; ++r) {
    const C sum = warp_sum(total[r]);
    const int row = start + r;
    if (row >= p.queries) continue;
    const bool sees = greatest[r] != C(-INFINITY);
    const C inverse = sees ? C(1) / sum : C(0);
    if (lane == 0) {
      C* const kept = static_cast<C*>(p.rows) + ((static_cast<int64_t>(batch) * p.heads + head) * p.queries + row) * 2;
      kept[0] = sees ? greatest[r] : C(INFINITY);
      kept[1] = inverse;
    }
    store_row(out[r], inverse, matrix_of<T>(p.output, batch, head) + row * p.output.row, p.value_width);
  }
}

#elif ENTRY == 1

extern "C" __global__ void __launch_bounds__(THREADS) attention_plain(const Problem p) {
  after_earlier_work();
  const int blocks = (p.queries + BLOCK_ROWS - 1) / BLOCK_ROWS, first = blockIdx.x % blocks * BLOCK_ROWS;
  const int batch = blockIdx.x / blocks / p.heads, head = blockIdx.x / blocks % p.heads;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, start = first + warp * OWN;
  const int stride = lane_stride(p.width), value_stride = lane_stride(p.value_width);
  C* const queries = reinterpret_cast<C*>(shared_memory);
  C* const grads = queries + BLOCK_ROWS * rounded(p.width);
  C* const keys = grads + BLOCK_ROWS * rounded(p.value_width);
  C* const values = keys + TILE * stride;
  C* const kept = values + TILE * value_stride + warp * OWN * TILE;
  copy_rows(queries, rounded(p.width), matrix_of<T>(p.query, batch, head), p.query.row, BLOCK_ROWS, first, p.queries,
            p.width);
  copy_rows(grads, rounded(p.value_width), matrix_of<T>(p.grad, batch, head), p.grad.row, BLOCK_ROWS, first, p.queries,
            p.value_width);
  C greatest[OWN], inverse[OWN], dots[OWN], sum[OWN][ITEMS] = {};
#pragma unroll
  for (int r = 0; r < OWN; ++r) {
    const int row = min(start + r, p.queries - 1);
    const int64_t at = (static_cast<int64_t>(batch) * p.heads + head) * p.queries + row;
    greatest[r] = static_cast<const C*>(p.rows)[at * 2], inverse[r] = static_cast<const C*>(p.rows)[at * 2 + 1],
    dots[r] = static_cast<const C*>(p.dots)[at];
  }
  const int seen = CAUSAL ? min(p.keys, first + BLOCK_ROWS) : p.keys;
  for (int from = 0; from < seen; from += TILE) {
    __syncthreads();
    copy_rows(keys, stride, matrix_of<T>(p.key, batch, head / p.group), p.key.row, TILE, from, p.keys, p.width);
    copy_rows(values, value_stride, matrix_of<T>(p.value, batch, head / p.group), p.value.row, TILE, from, p.keys,
              p.value_width);
    __syncthreads();
    C scores[OWN] = {}, products[OWN] = {};
    multiply_rows(scores, queries + warp * OWN * rounded(p.width), keys + lane * stride, p.width);
    multiply_rows(products, grads + warp * OWN * rounded(p.value_width), values + lane * value_stride, p.value_width);
#pragma unroll
    for (int r = 0; r < OWN; ++r) {
      const C score = masked(p, batch, head, start + r, from + lane, scores[r] * static_cast<C>(p.scale));
      scores[r] = exponential(score - greatest[r]) * inverse[r] * (products[r] - dots[r]);
    }
    add_weighted(sum, scores, kept, keys, stride, p.width);
  }
#pragma unroll
  for (int r = 0; r < OWN; ++r)
    if (start + r < p.queries)
      store_row(sum[r], static_cast<C>(p.scale),
                matrix_of<T>(p.query_grad, batch, head) + (start + r) * p.query_grad.row, p.width);
}

#elif ENTRY == 2

extern "C" __global__ void __launch_bounds__(THREADS) attention_plain(const Problem p) {
  after_earlier_work();
  const int blocks = (p.keys + BLOCK_ROWS - 1) / BLOCK_ROWS, first = blockIdx.x % blocks * BLOCK_ROWS,
            shared_heads = p.heads / p.group;
  const int batch = blockIdx.x / blocks / shared_heads, shared_head = blockIdx.x / blocks % shared_heads;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, start = first + warp * OWN;
  const int stride = lane_stride(p.width), value_stride = lane_stride(p.value_width);
  C* const keys = reinterpret_cast<C*>(shared_memory);
  C* const values = keys + BLOCK_ROWS * rounded(p.width);
  C* const queries = values + BLOCK_ROWS * rounded(p.value_width);
  C* const grads = queries + TILE * stride;
  C* const kept = grads + TILE * value_stride + warp * OWN * TILE;
  copy_rows(keys, rounded(p.width), matrix_of<T>(p.key, batch, shared_head), p.key.row, BLOCK_ROWS, first, p.keys,
            p.width);
  copy_rows(values, rounded(p.value_width), matrix_of<T>(p.value, batch, shared_head), p.value.row, BLOCK_ROWS, first,
            p.keys, p.value_width);
  C key_sum[OWN][ITEMS] = {}, value_sum[OWN][ITEMS] = {};
  for (int head = shared_head * p.group; head < (shared_head + 1) * p.group; ++head)
    for (int from = CAUSAL ? first / TILE * TILE : 0; from < p.queries; from += TILE) {
      __syncthreads();
      copy_rows(queries, stride, matrix_of<T>(p.query, batch, head), p.query.row, TILE, from, p.queries, p.width);
      copy_rows(grads, value_stride, matrix_of<T>(p.grad, batch, head), p.grad.row, TILE, from, p.queries,
                p.value_width);
      __syncthreads();
      const int row = from + lane;
      const int64_t at = (static_cast<int64_t>(batch) * p.heads + head) * p.queries + min(row, p.queries - 1);
      const C greatest = static_cast<const C*>(p.rows)[at * 2],
              inverse = row < p.queries ? static_cast<const C*>(p.rows)[at * 2 + 1] : C(0),
              dot = static_cast<const C*>(p.dots)[at];
      C weights[OWN] = {}, products[OWN] = {};
      multiply_rows(weights, keys + warp * OWN * rounded(p.width), queries + lane * stride, p.width);
      multiply_rows(products, values + warp * OWN * rounded(p.value_width), grads + lane * value_stride, p.value_width);
#pragma unroll
      for (int r = 0; r < OWN; ++r) {
        const C score = row < p.queries ? masked(p, batch, head, row, start + r, weights[r] * static_cast<C>(p.scale))
                                        : C(-INFINITY);
        weights[r] = exponential(score - greatest) * inverse;
        products[r] = weights[r] * (products[r] - dot);
      }
      add_weighted(value_sum, weights, kept, grads, value_stride, p.value_width);
      add_weighted(key_sum, products, kept, queries, stride, p.width);
    }
#pragma unroll
  for (int r = 0; r < OWN; ++r) {
    if (start + r >= p.keys) continue;
    store_row(key_sum[r], static_cast<C>(p.scale),
              matrix_of<T>(p.key_grad, batch, shared_head) + (start + r) * p.key_grad.row, p.width);
    store_row(value_sum[r], C(1), matrix_of<T>(p.value_grad, batch, shared_head) + (start + r) * p.value_grad.row,
              p.value_width);
  }
}

#else

// A warp has a row, or with ITEMS of 16 bytes four of them.
extern "C" __global__ void __launch_bounds__(THREADS) attention_plain(const Problem p) {
  after_earlier_work();
  constexpr int LANES = ITEMS > 1 ? 8 : 32;
  const int64_t at = static_cast<int64_t>(blockIdx.x) * (THREADS / LANES) + threadIdx.x / LANES;
  const int row = static_cast<int>(at % p.queries), head = static_cast<int>(at / p.queries % p.heads);
  const int64_t batch = at / p.queries / p.heads;
  const bool there = batch < p.batches;
  C sum = 0;
  if (there) {
    const T* const out = matrix_of<T>(p.output, static_cast<int>(batch), head) + row * p.output.row;
    const T* const grad = matrix_of<T>(p.grad, static_cast<int>(batch), head) + row * p.grad.row;
    for (int d = threadIdx.x % LANES * ITEMS; d < p.value_width; d += LANES * ITEMS) {
      const Vector<T, ITEMS> a = load_vector<ITEMS>(out + d), b = load_vector<ITEMS>(grad + d);
#pragma unroll
      for (int k = 0; k < ITEMS; ++k) sum += convert<C>(a.values[k]) * convert<C>(b.values[k]);
    }
  }
#pragma unroll
  for (int by = LANES / 2; by > 0; by /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, by);
  if (there && threadIdx.x % LANES == 0) static_cast<C*>(p.dots)[at] = sum;
}

#endif
