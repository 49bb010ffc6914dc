// Attention on tensor cores, backward for keys and values: a block owns keys, and queries with their gradients come by,
// of every head that shares the keys. WARP_TILES is 1.
#include "attention_tiles.cuh"

extern "C" __global__ void __launch_bounds__(THREADS) attention_backward_keys(const Problem p) {
  after_earlier_work();
  T* const keys = reinterpret_cast<T*>(shared_memory);
  T* const values = keys + BLOCK_ROWS * STRIDE;
  T* const tiles = values + BLOCK_ROWS * STRIDE;                             // two stages of queries and gradients
  float* const facts = reinterpret_cast<float*>(tiles + 4 * TILE * STRIDE);  // two stages of m, 1 / l and the dots
  const auto [batch, shared_head, first] = place_of(p.heads / p.group, p.keys, false);
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, g = lane / 4, t = lane % 4;
  const int from = CAUSAL ? min(first, p.queries) / TILE : 0, tiles_of_head = (p.queries + TILE - 1) / TILE - from,
            steps = tiles_of_head * p.group;
  const auto copy_tile = [&](int step) {
    const int head = shared_head * p.group + step / tiles_of_head, start = (from + step % tiles_of_head) * TILE;
    T* const to = tiles + step % 2 * (2 * TILE * STRIDE);
    copy_rows<TILE>(to, matrix_of<T>(p.query, batch, head), p.query.row, start, p.queries, p.width);
    copy_rows<TILE>(to + TILE * STRIDE, matrix_of<T>(p.grad, batch, head), p.grad.row, start, p.queries, p.width);
    float* const fact = facts + step % 2 * (3 * TILE);
    if (threadIdx.x < TILE) {
      const int row = start + threadIdx.x;
      const int64_t at = (static_cast<int64_t>(batch) * p.heads + head) * p.queries + row;
      const bool there = row < p.queries;
      fact[threadIdx.x] = there ? static_cast<const float*>(p.rows)[at * 2] * LOG2_E : INFINITY;
      fact[TILE + threadIdx.x] = there ? static_cast<const float*>(p.rows)[at * 2 + 1] : 0.0f;
      fact[2 * TILE + threadIdx.x] = there ? static_cast<const float*>(p.dots)[at] : 0.0f;
    }
  };
  copy_rows<BLOCK_ROWS>(keys, matrix_of<T>(p.key, batch, shared_head), p.key.row, first, p.keys, p.width);
  copy_rows<BLOCK_ROWS>(values, matrix_of<T>(p.value, batch, shared_head), p.value.row, first, p.keys, p.width);
  if (steps > 0) copy_tile(0);
  const int start = first + warp * 16;
  const float factor = factor_of(p);
  float key_sum[1][WIDTH / 8][4] = {}, value_sum[1][WIDTH / 8][4] = {};
  for (int step = 0; step < steps; ++step) {
    wait_for_copies();
    __syncthreads();
    if (step + 1 < steps) copy_tile(step + 1);
    const T* const queries = tiles + step % 2 * (2 * TILE * STRIDE);
    const float* const fact = facts + step % 2 * (3 * TILE);
    const int head = shared_head * p.group + step / tiles_of_head, row = (from + step % tiles_of_head) * TILE;
    float weights[1][TILE / 8][4] = {}, products[1][TILE / 8][4] = {};
    multiply_rows(weights, keys + warp * 16 * STRIDE, queries);
    multiply_rows(products, values + warp * 16 * STRIDE, queries + TILE * STRIDE);
    const bool at_border =
        MASK || row + TILE > p.queries || first + BLOCK_ROWS > p.keys || (CAUSAL && first + BLOCK_ROWS > row + 1);
#pragma unroll
    for (int n = 0; n < TILE / 8; ++n)
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const int column = n * 8 + t * 2 + e % 2;
        const float weight = weight_of(p, batch, head, row + column, start + g + e / 2 * 8, weights[0][n][e], factor,
                                       fact[column], fact[TILE + column], at_border);
        weights[0][n][e] = weight;
        products[0][n][e] = weight * (products[0][n][e] - fact[2 * TILE + column]);
      }
    add_weighted(value_sum, weights, queries + TILE * STRIDE);
    add_weighted(key_sum, products, queries);
  }
  if (steps == 0) {
    wait_for_copies();
    __syncthreads();
  }
  const float scale = static_cast<float>(p.scale);
  store_rows(key_sum[0], scale, scale, keys + warp * 16 * STRIDE, matrix_of<T>(p.key_grad, batch, shared_head),
             p.key_grad.row, start, p.keys, p.width);
  store_rows(value_sum[0], 1.0f, 1.0f, values + warp * 16 * STRIDE, matrix_of<T>(p.value_grad, batch, shared_head),
             p.value_grad.row, start, p.keys, p.width);
}
