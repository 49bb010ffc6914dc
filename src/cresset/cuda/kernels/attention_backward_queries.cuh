// Attention on tensor cores, backward for the queries: a block owns queries, and keys with their values come by.
// WARP_TILES is 1.
#include "attention_tiles.cuh"

extern "C" __global__ void __launch_bounds__(THREADS) attention_backward_queries(const Problem p) {
  after_earlier_work();
  T* const queries = reinterpret_cast<T*>(shared_memory);
  T* const grads = queries + BLOCK_ROWS * STRIDE;
  T* const tiles = grads + BLOCK_ROWS * STRIDE;
  const auto [batch, head, first] = place_of(p.heads, p.queries, CAUSAL);
  const T* key = matrix_of<T>(p.key, batch, head / p.group);
  const T* value = matrix_of<T>(p.value, batch, head / p.group);
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, g = lane / 4, t = lane % 4;
  const int seen = CAUSAL ? min(p.keys, first + BLOCK_ROWS) : p.keys, steps = (seen + TILE - 1) / TILE;
  const auto copy_tile = [&](int step) {
    T* const to = tiles + step % 2 * (2 * TILE * STRIDE);
    copy_rows<TILE>(to, key, p.key.row, step * TILE, p.keys, p.width);
    copy_rows<TILE>(to + TILE * STRIDE, value, p.value.row, step * TILE, p.keys, p.width);
  };
  copy_rows<BLOCK_ROWS>(queries, matrix_of<T>(p.query, batch, head), p.query.row, first, p.queries, p.width);
  copy_rows<BLOCK_ROWS>(grads, matrix_of<T>(p.grad, batch, head), p.grad.row, first, p.queries, p.width);
  copy_tile(0);
  const int start = first + warp * 16;
  float greatest[2], inverse[2], dots[2];
  for (int r = 0; r < 2; ++r) {
    const int row = start + g + r * 8;
    const int64_t at = (static_cast<int64_t>(batch) * p.heads + head) * p.queries + row;
    const bool there = row < p.queries;
    greatest[r] = there ? static_cast<const float*>(p.rows)[at * 2] * LOG2_E : INFINITY;
    inverse[r] = there ? static_cast<const float*>(p.rows)[at * 2 + 1] : 0.0f;
    dots[r] = there ? static_cast<const float*>(p.dots)[at] : 0.0f;
  }
  const float factor = factor_of(p);
  float sum[1][WIDTH / 8][4] = {};
  for (int step = 0; step < steps; ++step) {
    wait_for_copies();
    __syncthreads();
    if (step + 1 < steps) copy_tile(step + 1);
    const T* const keys = tiles + step % 2 * (2 * TILE * STRIDE);
    float scores[1][TILE / 8][4] = {}, products[1][TILE / 8][4] = {};
    multiply_rows(scores, queries + warp * 16 * STRIDE, keys);
    multiply_rows(products, grads + warp * 16 * STRIDE, keys + TILE * STRIDE);
    const bool at_border = MASK || (step + 1) * TILE > p.keys || (CAUSAL && (step + 1) * TILE > first + 1);
#pragma unroll
    for (int n = 0; n < TILE / 8; ++n)
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const int r = e / 2;
        const float weight = weight_of(p, batch, head, start + g + r * 8, step * TILE + n * 8 + t * 2 + e % 2,
                                       scores[0][n][e], factor, greatest[r], inverse[r], at_border);
        scores[0][n][e] = weight * (products[0][n][e] - dots[r]);
      }
    add_weighted(sum, scores, keys);
  }
  const float scale = static_cast<float>(p.scale);
  store_rows(sum[0], scale, scale, queries + warp * 16 * STRIDE, matrix_of<T>(p.query_grad, batch, head),
             p.query_grad.row, start, p.queries, p.width);
}
