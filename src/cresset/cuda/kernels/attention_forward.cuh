// Attention on tensor cores, forward: a block owns queries, and keys with their values come by.
#include "attention_tiles.cuh"

extern "C" __global__ void __launch_bounds__(THREADS) attention_forward(const Problem p) {
  after_earlier_work();
  T* const queries = reinterpret_cast<T*>(shared_memory);
  T* const tiles = queries + BLOCK_ROWS * STRIDE;  // two stages of keys and values
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
  if (steps > 0) copy_tile(0);

  float out[WARP_TILES][WIDTH / 8][4] = {};
  float greatest[WARP_TILES][2], total[WARP_TILES][2] = {};
  for (auto& pair : greatest) pair[0] = pair[1] = -INFINITY;
  const float factor = factor_of(p);
  T* const own = queries + warp * 16 * WARP_TILES * STRIDE;
  for (int step = 0; step < steps; ++step) {
    wait_for_copies();
    __syncthreads();
    if (step + 1 < steps) copy_tile(step + 1);
    const T* const keys = tiles + step % 2 * (2 * TILE * STRIDE);
    float scores[WARP_TILES][TILE / 8][4] = {};
    multiply_rows(scores, own, keys);
    const bool at_border = MASK || (step + 1) * TILE > p.keys || (CAUSAL && (step + 1) * TILE > first + 1);
#pragma unroll
    for (int i = 0; i < WARP_TILES; ++i) {
      const int row = first + (warp * WARP_TILES + i) * 16 + g;
      if (at_border) {
#pragma unroll
        for (int n = 0; n < TILE / 8; ++n)
#pragma unroll
          for (int e = 0; e < 4; ++e) {
#if MASK
            scores[i][n][e] *= static_cast<float>(p.scale);
#endif
            scores[i][n][e] =
                masked(p, batch, head, row + e / 2 * 8, step * TILE + n * 8 + t * 2 + e % 2, scores[i][n][e]);
          }
      }
      float shift[2];
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        float most = greatest[i][r];
#pragma unroll
        for (int n = 0; n < TILE / 8; ++n) most = fmaxf(most, fmaxf(scores[i][n][r * 2], scores[i][n][r * 2 + 1]));
        most = quad_max(most);
        shift[r] = most == -INFINITY ? 0.0f : most * factor;
        const float shrink = power_of_two(greatest[i][r] * factor - shift[r]);
        greatest[i][r] = most;
        total[i][r] *= shrink;
#pragma unroll
        for (int d = 0; d < WIDTH / 8; ++d) out[i][d][r * 2] *= shrink, out[i][d][r * 2 + 1] *= shrink;
      }
#pragma unroll
      for (int n = 0; n < TILE / 8; ++n)
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          const float weight = power_of_two(scores[i][n][e] * factor - shift[e / 2]);
          scores[i][n][e] = weight;
          total[i][e / 2] += weight;
        }
    }
    add_weighted(out, scores, keys + TILE * STRIDE);
  }
  if (steps == 0) {  // the queries may still be on their way
    wait_for_copies();
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < WARP_TILES; ++i) {
    const int start = first + (warp * WARP_TILES + i) * 16;
    float inverse[2];
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const float sum = quad_sum(total[i][r]);
      const bool sees = greatest[i][r] != -INFINITY;
      inverse[r] = sees ? 1.0f / sum : 0.0f;
      const int row = start + g + r * 8;
      if (t == 0 && row < p.queries) {
        float* const kept =
            static_cast<float*>(p.rows) + ((static_cast<int64_t>(batch) * p.heads + head) * p.queries + row) * 2;
        kept[0] = sees ? greatest[i][r] * (factor / LOG2_E) : INFINITY;
        kept[1] = inverse[r];
      }
    }
    store_rows(out[i], inverse[0], inverse[1], own + i * 16 * STRIDE, matrix_of<T>(p.output, batch, head), p.output.row,
               start, p.queries, p.width);
  }
}
