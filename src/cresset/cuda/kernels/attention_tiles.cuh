// Attention on tensor cores, in half precision and of floats: what its kernels share. Backward is two kernels, which
// each compute the weights again, so that every sum has one owner and one order.
//
// WIDTH: the length of a row of query, key and value, rounded up; in memory p.width elements. A warp works on
// WARP_TILES times 16 rows; the rows that come by (keys, or queries for the gradients of keys) come in tiles of TILE.
#pragma once
#include "attention_problem.cuh"
#include "tensor_core.cuh"

constexpr int THREADS = 128, WARPS = THREADS / 32;
constexpr int PIECE = 16 / sizeof(T);  // elements of 16 bytes
#if WARPGROUP
constexpr int STRIDE = WIDTH;  // Note [Tiles of a warpgroup]
#else
constexpr int STRIDE = WIDTH + PIECE;  // of rows in shared memory: eight rows of 16 bytes lie in different banks
#endif
constexpr int BLOCK_ROWS = WARPS * 16 * WARP_TILES;
constexpr float LOG2_E = 1.4426950408889634f;

#if WARPGROUP
#include "attention_warpgroup.cuh"
#else
template <int ROWS>
__device__ __forceinline__ int place_in_tile(int row, int column) {
  return row * STRIDE + column;
}
__device__ __forceinline__ void wait_for_tiles() { wait_for_copies(); }
__device__ __forceinline__ T* begin_of_tiles(uint4* memory) { return reinterpret_cast<T*>(memory); }
__device__ __forceinline__ int own_row(int tile) {
  return (static_cast<int>(threadIdx.x) / 32 * WARP_TILES + tile) * 16;
}
__device__ __forceinline__ T* own_rows(T* rows) { return rows + own_row(0) * STRIDE; }
#endif

// Rows of a matrix to shared memory, zeros behind the last one and behind `width`.
template <int ROWS>
__device__ __forceinline__ void copy_rows(T* to, const T* from, int64_t step, int first, int count, int width) {
  constexpr int PIECES = WIDTH / PIECE;
  if constexpr (THREADS % PIECES == 0) {  // a thread has one column
    constexpr int BETWEEN = THREADS / PIECES;
    const int row = static_cast<int>(threadIdx.x / PIECES), column = static_cast<int>(threadIdx.x % PIECES * PIECE);
    const int rows = column < width ? count - first - row : 0;
    from += (first + row) * step + column;
#pragma unroll
    for (int i = 0; i < ROWS / BETWEEN; ++i, from += BETWEEN * step)
      copy_16_bytes(to + place_in_tile<ROWS>(row + i * BETWEEN, column), from, i * BETWEEN < rows);
  } else {
#pragma unroll
    for (int i = 0; i < ROWS * PIECES / THREADS; ++i) {
      const int at = i * THREADS + threadIdx.x, row = at / PIECES, column = at % PIECES * PIECE;
      const bool there = first + row < count && column < width;
      copy_16_bytes(to + place_in_tile<ROWS>(row, column), there ? from + (first + row) * step + column : from, there);
    }
  }
}

#if T_IS_FLOAT
#ifndef CRESSET_EMULATED
// sum[rows of the warp][rows of `second`] += first second^T; both lie by rows in shared memory.
template <int M, int N>
__device__ __forceinline__ void multiply_rows(float (&sum)[M][N][4], const T* first, const T* second) {
  const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
  first += g * STRIDE + t;
  second += g * STRIDE + t;
#pragma unroll 2
  for (int d = 0; d < WIDTH; d += 8) {
    Split a[M][4];
#pragma unroll
    for (int m = 0; m < M; ++m)
#pragma unroll
      for (int i = 0; i < 4; ++i) a[m][i] = split(first[(m * 16 + i % 2 * 8) * STRIDE + d + i / 2 * 4]);
#pragma unroll
    for (int n = 0; n < N; ++n) {
      const Split b0 = split(second[n * 8 * STRIDE + d]), b1 = split(second[n * 8 * STRIDE + d + 4]);
#pragma unroll
      for (int m = 0; m < M; ++m) multiply_add_floats(sum[m][n], a[m], b0, b1);
    }
  }
}

// sum[rows of the warp][WIDTH] += weights second: the weights are in registers as `multiply_rows` leaves sums. A lane
// has columns 2t and 2t + 1 of them, which stand for t and t + 4: the order of a sum's terms is free.
template <int M, int N>
__device__ __forceinline__ void add_weighted(float (&sum)[M][WIDTH / 8][4], const float (&weights)[M][N][4],
                                             const T* second) {
  const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
  second += 2 * t * STRIDE + g;
#pragma unroll
  for (int n = 0; n < N; ++n) {
    Split a[M][4];
#pragma unroll
    for (int m = 0; m < M; ++m)
#pragma unroll
      for (int i = 0; i < 4; ++i) a[m][i] = split(weights[m][n][i % 2 * 2 + i / 2]);
#pragma unroll
    for (int d = 0; d < WIDTH / 8; ++d) {
      const Split b0 = split(second[n * 8 * STRIDE + d * 8]), b1 = split(second[(n * 8 + 1) * STRIDE + d * 8]);
#pragma unroll
      for (int m = 0; m < M; ++m) multiply_add_floats(sum[m][d], a[m], b0, b1);
    }
  }
}
#else  // the same sums, of floats themselves: a lane reads its rows and columns where they lie
template <int M, int N>
__device__ void multiply_rows(float (&sum)[M][N][4], const T* first, const T* second) {
  const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
  for (int m = 0; m < M; ++m)
    for (int n = 0; n < N; ++n)
      for (int e = 0; e < 4; ++e) {
        const T *row = first + (m * 16 + g + e / 2 * 8) * STRIDE, *column = second + (n * 8 + t * 2 + e % 2) * STRIDE;
        for (int d = 0; d < WIDTH; ++d) sum[m][n][e] += row[d] * column[d];
      }
}
template <int M, int N>
__device__ void add_weighted(float (&sum)[M][WIDTH / 8][4], const float (&weights)[M][N][4], const T* second) {
  const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
  for (int m = 0; m < M; ++m)
    for (int n = 0; n < N; ++n)
      for (int k = 0; k < 8; ++k)
        for (int r = 0; r < 2; ++r) {
          const float own[2] = {weights[m][n][r * 2], weights[m][n][r * 2 + 1]};
          const float weight = __shfl_sync(0xffffffffu, own[k % 2], g * 4 + k / 2);
          for (int d = 0; d < WIDTH / 8; ++d)
            for (int c = 0; c < 2; ++c)
              sum[m][d][r * 2 + c] += weight * second[(n * 8 + k) * STRIDE + d * 8 + t * 2 + c];
        }
}
#endif

// The warp's 16 rows to rows `first`... of a matrix of `count` rows.
__device__ __forceinline__ void store_rows(const float (&sum)[WIDTH / 8][4], float low, float high, T*, T* to,
                                           int64_t step, int first, int count, int width) {
  const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
#pragma unroll
  for (int d = 0; d < WIDTH / 8; ++d) {
    if (d * 8 + t * 2 >= width) continue;
    if (first + g < count)
      store_vector(to + (first + g) * step + d * 8 + t * 2, Vector<T, 2>{{sum[d][0] * low, sum[d][1] * low}});
    if (first + g + 8 < count)
      store_vector(to + (first + g + 8) * step + d * 8 + t * 2, Vector<T, 2>{{sum[d][2] * high, sum[d][3] * high}});
  }
}
#elif !WARPGROUP
// sum[rows of the warp][rows of `second`] += first second^T; both lie by rows in shared memory.
template <int M, int N>
__device__ __forceinline__ void multiply_rows(float (&sum)[M][N][4], const T* first, const T* second) {
  const int lane = threadIdx.x % 32;
  first += (lane & 15) * STRIDE + (lane >> 4) * 8;
  second += ((lane & 7) + (lane >> 4) * 8) * STRIDE + (lane >> 3 & 1) * 8;
#pragma unroll
  for (int d = 0; d < WIDTH; d += 16) {
    uint32_t a[M][4];
#pragma unroll
    for (int m = 0; m < M; ++m) load_matrices<false>(a[m], first + m * 16 * STRIDE + d);
#pragma unroll
    for (int n = 0; n < N; n += 2) {
      uint32_t b[4];
      load_matrices<false>(b, second + n * 8 * STRIDE + d);
#pragma unroll
      for (int m = 0; m < M; ++m) {
        multiply_add<T>(sum[m][n], a[m], b[0], b[1]);
        multiply_add<T>(sum[m][n + 1], a[m], b[2], b[3]);
      }
    }
  }
}

// sum[rows of the warp][WIDTH] += weights second: the weights are in registers as `multiply_rows` leaves sums.
template <int M, int N>
__device__ __forceinline__ void add_weighted(float (&sum)[M][WIDTH / 8][4], const float (&weights)[M][N][4],
                                             const T* second) {
  const int lane = threadIdx.x % 32;
  second += ((lane & 7) + (lane >> 3 & 1) * 8) * STRIDE + (lane >> 4) * 8;
#pragma unroll
  for (int n = 0; n < N; n += 2) {
    uint32_t a[M][4];
#pragma unroll
    for (int m = 0; m < M; ++m)
#pragma unroll
      for (int i = 0; i < 4; ++i)
        a[m][i] = pack<T>(weights[m][n + i / 2][i % 2 * 2], weights[m][n + i / 2][i % 2 * 2 + 1]);
#pragma unroll
    for (int d = 0; d < WIDTH / 8; d += 2) {
      uint32_t b[4];
      load_matrices<true>(b, second + n * 8 * STRIDE + d * 8);
#pragma unroll
      for (int m = 0; m < M; ++m) {
        multiply_add<T>(sum[m][d], a[m], b[0], b[1]);
        multiply_add<T>(sum[m][d + 1], a[m], b[2], b[3]);
      }
    }
  }
}

// The warp's 16 rows, through its own part of shared memory, to rows `first`... of a matrix of `count` rows.
__device__ __forceinline__ void store_rows(const float (&sum)[WIDTH / 8][4], float low, float high, T* own, T* to,
                                           int64_t step, int first, int count, int width) {
  const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
  __syncwarp();
#pragma unroll
  for (int d = 0; d < WIDTH / 8; ++d) {
    *reinterpret_cast<uint32_t*>(own + g * STRIDE + d * 8 + t * 2) = pack<T>(sum[d][0] * low, sum[d][1] * low);
    *reinterpret_cast<uint32_t*>(own + (g + 8) * STRIDE + d * 8 + t * 2) = pack<T>(sum[d][2] * high, sum[d][3] * high);
  }
  __syncwarp();
  constexpr int PIECES = WIDTH / 8;
#pragma unroll
  for (int i = 0; i < 16 * PIECES / 32; ++i) {
    const int at = i * 32 + lane, row = at / PIECES, column = at % PIECES * 8;
    if (first + row < count && column < width)
      store_vector(to + (first + row) * step + column, load_vector<8>(own + row * STRIDE + column));
  }
}

#endif

#if !WARPGROUP || defined(CRESSET_EMULATED)
// Two products, which wait for one another elsewhere.
template <int M, int N>
__device__ __forceinline__ void multiply_rows(float (&sum)[M][N][4], const T* first, const T* second,
                                              float (&other)[M][N][4], const T* other_first, const T* other_second) {
  multiply_rows(sum, first, second);
  multiply_rows(other, other_first, other_second);
}
template <int M, int N>
__device__ __forceinline__ void add_weighted(float (&sum)[M][WIDTH / 8][4], const float (&weights)[M][N][4],
                                             const T* second, float (&other)[M][WIDTH / 8][4],
                                             const float (&other_weights)[M][N][4], const T* other_second) {
  add_weighted(sum, weights, second);
  add_weighted(other, other_weights, other_second);
}
#endif

// Of the four lanes that share a row.
__device__ __forceinline__ float quad_sum(float x) {
  x += __shfl_xor_sync(0xffffffffu, x, 1);
  return x + __shfl_xor_sync(0xffffffffu, x, 2);
}
__device__ __forceinline__ float quad_max(float x) {
  x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 1));
  return fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 2));
}

// Which rows of which head a block works on. Under a causal mask the long rows come first.
struct Place {
  int batch, head, first;
};
__device__ __forceinline__ Place place_of(int heads, int rows, bool last_first) {
  const int blocks = (rows + BLOCK_ROWS - 1) / BLOCK_ROWS;
  const int block = blockIdx.x % blocks, item = blockIdx.x / blocks;
  return {item / heads, item % heads, (last_first ? blocks - 1 - block : block) * BLOCK_ROWS};
}

extern __shared__ uint4 shared_memory[];

// A weight from its score; m and 1 / l are kept in `rows`.
__device__ __forceinline__ float weight_of(const Problem& p, int batch, int head, int query, int key, float score,
                                           float factor, float greatest, float inverse, bool at_border) {
#if MASK
  score *= static_cast<float>(p.scale);
#endif
  if (at_border) score = masked(p, batch, head, query, key, score);
  return power_of_two(score * factor - greatest) * inverse;
}
__device__ __forceinline__ float factor_of(const Problem& p) {
#if MASK
  return LOG2_E;
#else
  return static_cast<float>(p.scale) * LOG2_E;
#endif
}
