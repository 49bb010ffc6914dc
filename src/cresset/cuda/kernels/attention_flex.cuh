// Attention with functions of the program on tensor cores: what attention_forward.cuh and attention_backward_*.cuh do,
// with scores that a function changes, and with blocks of keys that nobody sees left out. The text before this file has
// the functions, each where it is asked for:
//   SCORED   float flex_score(words, score, batch, head, query, key) and its derivative by the score, flex_slope
//   BLOCKED  bool flex_mask(words, 0, batch, head, query, key), for blocks that are seen in part
// ALIGNED: tiles lie within blocks. ENTRY: 0 forward, 1 backward for the queries, 2 backward for keys and values.
// WARP_TILES is 1 in backward. WARPGROUP: by products of a warpgroup, rows of 64 or 128 halves in tiles of 64.
#define MASK 0
#define CAUSAL 0
#include "attention_flex_words.cuh"
#include "attention_tiles.cuh"

// The same as in native/cuda/attention.cpp.
struct Blocks {
  const uint8_t* states;                 // of a block of queries and of keys: 0 not seen, 1 seen in part, 2 wholly
  float* logarithms;                     // of the sums of a row's exponentials; in backward their gradients, or null
  int64_t batch, head;                   // steps of the states
  int32_t rows, columns, queries, keys;  // how many blocks, and their sizes
};
template <bool kValue>
struct Constant {
  static constexpr bool value = kValue;
};
// What is subtracted from the gradient of a weight.
__device__ __forceinline__ float dot_of(const Problem& p, const Blocks& blocks, int64_t row) {
  return static_cast<const float*>(p.dots)[row] - (blocks.logarithms ? blocks.logarithms[row] : 0.0f);
}

__device__ __forceinline__ int state_of(const Blocks& blocks, int batch, int head, int query, int queries, int key,
                                        int keys) {
#if BLOCKED
  const uint8_t* const states = blocks.states + batch * blocks.batch + head * blocks.head;
  const int first_row = query / blocks.queries, first_column = key / blocks.keys;
#if ALIGNED
  return states[static_cast<int64_t>(first_row) * blocks.columns + first_column];
#else
  const int last_row = min((query + queries - 1) / blocks.queries, blocks.rows - 1),
            last_column = min((key + keys - 1) / blocks.keys, blocks.columns - 1);
  bool any = false, all = true;
  for (int row = first_row; row <= last_row; ++row)
    for (int column = first_column; column <= last_column; ++column) {
      const int state = states[static_cast<int64_t>(row) * blocks.columns + column];
      any |= state != 0, all &= state == 2;
    }
  return any ? all ? 2 : 1 : 0;
#endif
#else
  return 2;
#endif
}

// The next step, up to `steps`, whose tile is seen; `state` tells that of a step. A warp asks about 32 at once.
template <class State>
__device__ __forceinline__ int next_step(int step, int steps, const State& state) {
#if BLOCKED
  for (int from = step + 1; from < steps; from += 32) {
    const int at = from + static_cast<int>(threadIdx.x % 32);
    const unsigned seen = __ballot_sync(0xffffffffu, at < steps && state(at) != 0);
    if (seen) return from + __ffs(static_cast<int>(seen)) - 1;
  }
  return steps;
#else
  return min(step + 1, steps);
#endif
}

// A place within the matrix, for functions that read by it.
struct Element {
  int query, key;
  bool there;
};
__device__ __forceinline__ Element element_at(const Problem& p, int query, int key) {
  return {min(query, p.queries - 1), min(key, p.keys - 1), key < p.keys};
}

// The score as the functions want it; minus infinity for who is not seen.
template <bool PARTLY>
__device__ __forceinline__ float changed(const Problem& p, const FlexWords& words, const Blocks& blocks, int batch,
                                         int head, const Element& e, float score) {
#if SCORED
  score = flex_score(words, score, batch, head, e.query, e.key);
#endif
#if BLOCKED
  if constexpr (PARTLY) {
    bool seen = flex_mask(words, 0.0f, batch, head, e.query, e.key);
#if !ALIGNED
    const int state = state_of(blocks, batch, head, e.query, 1, e.key, 1);
    seen = state == 2 || (state == 1 && seen);
#endif
    score = seen ? score : -INFINITY;
  }
#endif
  return e.there ? score : -INFINITY;
}
__device__ __forceinline__ float flex_factor(const Problem& p) {
  return SCORED ? LOG2_E : static_cast<float>(p.scale) * LOG2_E;
}
__device__ __forceinline__ float scaled(const Problem& p, float score) {
  return SCORED ? score * static_cast<float>(p.scale) : score;
}

#if ENTRY != 0
constexpr int LEAST_BLOCKS = WARPGROUP && WIDTH == 64 ? 3 : 1;  // of a multiprocessor: one works while others wait

// A weight, and in `product` what comes to the score's gradient by way of it.
template <bool PARTLY>
__device__ __forceinline__ float weight_at(const Problem& p, const FlexWords& words, const Blocks& blocks, int batch,
                                           int head, int query, int key, float score, float factor, float greatest,
                                           float inverse, float dot, float& product) {
  const Element e = element_at(p, query, key);
  score = scaled(p, score);
  const float weight =
      power_of_two(changed<PARTLY>(p, words, blocks, batch, head, e, score) * factor - greatest) * inverse;
  product = weight * (product - dot);
#if SCORED
  product = weight > 0.0f ? product * flex_slope(words, score, batch, head, e.query, e.key) : 0.0f;
#endif
  return weight;
}
#endif

#if ENTRY == 0

extern "C" __global__ void __launch_bounds__(THREADS)
    flex_attention(const Problem p, const FlexWords words, const Blocks blocks) {
  after_earlier_work();
  T* const queries = begin_of_tiles(shared_memory);
  T* const tiles = queries + BLOCK_ROWS * STRIDE;  // two stages of keys and values
  const auto [batch, head, first] = place_of(p.heads, p.queries, BLOCKED);
  const T* key = matrix_of<T>(p.key, batch, head / p.group);
  const T* value = matrix_of<T>(p.value, batch, head / p.group);
  const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
  const int steps = (p.keys + TILE - 1) / TILE;
  const auto state = [&](int step) {
    return state_of(blocks, batch, head, first, min(BLOCK_ROWS, p.queries - first), step * TILE,
                    min(TILE, p.keys - step * TILE));
  };
  const auto copy_tile = [&](int step, int stage) {
    T* const to = tiles + stage * (2 * TILE * STRIDE);
    copy_rows<TILE>(to, key, p.key.row, step * TILE, p.keys, p.width);
    copy_rows<TILE>(to + TILE * STRIDE, value, p.value.row, step * TILE, p.keys, p.width);
  };
  copy_rows<BLOCK_ROWS>(queries, matrix_of<T>(p.query, batch, head), p.query.row, first, p.queries, p.width);
  int step = next_step(-1, steps, state), stage = 0;
  if (step < steps) copy_tile(step, 0);

  float out[WARP_TILES][WIDTH / 8][4] = {};
  float greatest[WARP_TILES][2], total[WARP_TILES][2] = {};
  for (auto& pair : greatest) pair[0] = pair[1] = -INFINITY;
  const float factor = flex_factor(p);
  T* const own = own_rows(queries);
  while (step < steps) {
    const int next = next_step(step, steps, state);
    wait_for_tiles();
    __syncthreads();
    if (next < steps) copy_tile(next, stage ^ 1);
    const T* const keys = tiles + stage * (2 * TILE * STRIDE);
    float scores[WARP_TILES][TILE / 8][4] = {};
    multiply_rows(scores, own, keys);
    const auto change = [&](auto partly) {
#pragma unroll
      for (int i = 0; i < WARP_TILES; ++i)
#pragma unroll
        for (int n = 0; n < TILE / 8; ++n)
#pragma unroll
          for (int e = 0; e < 4; ++e) {
            const Element at = element_at(p, first + own_row(i) + g + e / 2 * 8, step * TILE + n * 8 + t * 2 + e % 2);
            scores[i][n][e] = changed<partly.value>(p, words, blocks, batch, head, at, scaled(p, scores[i][n][e]));
          }
    };
    if (BLOCKED && state(step) == 1)
      change(Constant<true>());
    else if (SCORED || (step + 1) * TILE > p.keys)
      change(Constant<false>());
#pragma unroll
    for (int i = 0; i < WARP_TILES; ++i) {
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
    step = next, stage ^= 1;
  }
  wait_for_tiles();  // where nobody is seen, the queries may still be on their way
  __syncthreads();
#pragma unroll
  for (int i = 0; i < WARP_TILES; ++i) {
    const int start = first + own_row(i);
    float inverse[2];
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const float sum = quad_sum(total[i][r]);
      const bool sees = greatest[i][r] != -INFINITY;
      inverse[r] = sees ? 1.0f / sum : 0.0f;
      const int row = start + g + r * 8;
      if (t == 0 && row < p.queries) {
        const int64_t at = (static_cast<int64_t>(batch) * p.heads + head) * p.queries + row;
        float* const kept = static_cast<float*>(p.rows) + at * 2;
        const float most = greatest[i][r] * (factor / LOG2_E);
        kept[0] = sees ? most : INFINITY;
        kept[1] = inverse[r];
        blocks.logarithms[at] = sees ? most + logf(sum) : -INFINITY;
      }
    }
    store_rows(out[i], inverse[0], inverse[1], own + i * 16 * STRIDE, matrix_of<T>(p.output, batch, head), p.output.row,
               start, p.queries, p.width);
  }
}

#elif ENTRY == 1

extern "C" __global__ void __launch_bounds__(THREADS, LEAST_BLOCKS)
    flex_attention(const Problem p, const FlexWords words, const Blocks blocks) {
  after_earlier_work();
  T* const queries = begin_of_tiles(shared_memory);
  T* const grads = queries + BLOCK_ROWS * STRIDE;
  T* const tiles = grads + BLOCK_ROWS * STRIDE;
  const auto [batch, head, first] = place_of(p.heads, p.queries, BLOCKED);
  const T* key = matrix_of<T>(p.key, batch, head / p.group);
  const T* value = matrix_of<T>(p.value, batch, head / p.group);
  const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
  const int steps = (p.keys + TILE - 1) / TILE;
  const auto state = [&](int step) {
    return state_of(blocks, batch, head, first, min(BLOCK_ROWS, p.queries - first), step * TILE,
                    min(TILE, p.keys - step * TILE));
  };
  const auto copy_tile = [&](int step, int stage) {
    T* const to = tiles + stage * (2 * TILE * STRIDE);
    copy_rows<TILE>(to, key, p.key.row, step * TILE, p.keys, p.width);
    copy_rows<TILE>(to + TILE * STRIDE, value, p.value.row, step * TILE, p.keys, p.width);
  };
  copy_rows<BLOCK_ROWS>(queries, matrix_of<T>(p.query, batch, head), p.query.row, first, p.queries, p.width);
  copy_rows<BLOCK_ROWS>(grads, matrix_of<T>(p.grad, batch, head), p.grad.row, first, p.queries, p.width);
  int step = next_step(-1, steps, state), stage = 0;
  if (step < steps) copy_tile(step, 0);
  const int start = first + own_row(0);
  float greatest[2], inverse[2], dots[2];
  for (int r = 0; r < 2; ++r) {
    const int row = start + g + r * 8;
    const int64_t at = (static_cast<int64_t>(batch) * p.heads + head) * p.queries + row;
    const bool there = row < p.queries;
    greatest[r] = there ? static_cast<const float*>(p.rows)[at * 2] * LOG2_E : INFINITY;
    inverse[r] = there ? static_cast<const float*>(p.rows)[at * 2 + 1] : 0.0f;
    dots[r] = there ? dot_of(p, blocks, at) : 0.0f;
  }
  const float factor = flex_factor(p);
  float sum[1][WIDTH / 8][4] = {};
  while (step < steps) {
    const int next = next_step(step, steps, state);
    wait_for_tiles();
    __syncthreads();
    if (next < steps) copy_tile(next, stage ^ 1);
    const T* const keys = tiles + stage * (2 * TILE * STRIDE);
    float scores[1][TILE / 8][4] = {}, products[1][TILE / 8][4] = {};
    multiply_rows(scores, own_rows(queries), keys, products, own_rows(grads), keys + TILE * STRIDE);
    const auto weigh = [&](auto partly) {
#pragma unroll
      for (int n = 0; n < TILE / 8; ++n)
#pragma unroll
        for (int e = 0; e < 4; ++e)
          weight_at<partly.value>(p, words, blocks, batch, head, start + g + e / 2 * 8,
                                  step * TILE + n * 8 + t * 2 + e % 2, scores[0][n][e], factor, greatest[e / 2],
                                  inverse[e / 2], dots[e / 2], products[0][n][e]);
    };
    if (BLOCKED && state(step) == 1)
      weigh(Constant<true>());
    else
      weigh(Constant<false>());
    add_weighted(sum, products, keys);
    step = next, stage ^= 1;
  }
  wait_for_tiles();
  __syncthreads();
  const float scale = static_cast<float>(p.scale);
  store_rows(sum[0], scale, scale, own_rows(queries), matrix_of<T>(p.query_grad, batch, head), p.query_grad.row, start,
             p.queries, p.width);
}

#elif ENTRY == 2

extern "C" __global__ void __launch_bounds__(THREADS, LEAST_BLOCKS)
    flex_attention(const Problem p, const FlexWords words, const Blocks blocks) {
  after_earlier_work();
  T* const keys = begin_of_tiles(shared_memory);
  T* const values = keys + BLOCK_ROWS * STRIDE;
  T* const tiles = values + BLOCK_ROWS * STRIDE;                             // two stages of queries and gradients
  float* const facts = reinterpret_cast<float*>(tiles + 4 * TILE * STRIDE);  // two stages of m, 1 / l and the dots
  const auto [batch, shared_head, first] = place_of(p.heads / p.group, p.keys, false);
  const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
  const int tiles_of_head = (p.queries + TILE - 1) / TILE, steps = tiles_of_head * p.group;
  const auto head_of = [&](int step) { return shared_head * p.group + step / tiles_of_head; };
  const auto state = [&](int step) {
    const int from = step % tiles_of_head * TILE;
    return state_of(blocks, batch, head_of(step), from, min(TILE, p.queries - from), first,
                    min(BLOCK_ROWS, p.keys - first));
  };
  const auto copy_tile = [&](int step, int stage) {
    const int head = head_of(step), start = step % tiles_of_head * TILE;
    T* const to = tiles + stage * (2 * TILE * STRIDE);
    copy_rows<TILE>(to, matrix_of<T>(p.query, batch, head), p.query.row, start, p.queries, p.width);
    copy_rows<TILE>(to + TILE * STRIDE, matrix_of<T>(p.grad, batch, head), p.grad.row, start, p.queries, p.width);
    float* const fact = facts + stage * (3 * TILE);
    if (threadIdx.x < TILE) {
      const int row = start + threadIdx.x;
      const int64_t at = (static_cast<int64_t>(batch) * p.heads + head) * p.queries + row;
      const bool there = row < p.queries;
      fact[threadIdx.x] = there ? static_cast<const float*>(p.rows)[at * 2] * LOG2_E : INFINITY;
      fact[TILE + threadIdx.x] = there ? static_cast<const float*>(p.rows)[at * 2 + 1] : 0.0f;
      fact[2 * TILE + threadIdx.x] = there ? dot_of(p, blocks, at) : 0.0f;
    }
  };
  copy_rows<BLOCK_ROWS>(keys, matrix_of<T>(p.key, batch, shared_head), p.key.row, first, p.keys, p.width);
  copy_rows<BLOCK_ROWS>(values, matrix_of<T>(p.value, batch, shared_head), p.value.row, first, p.keys, p.width);
  int step = next_step(-1, steps, state), stage = 0;
  if (step < steps) copy_tile(step, 0);
  const int start = first + own_row(0);
  const float factor = flex_factor(p);
  float key_sum[1][WIDTH / 8][4] = {}, value_sum[1][WIDTH / 8][4] = {};
  while (step < steps) {
    const int next = next_step(step, steps, state);
    wait_for_tiles();
    __syncthreads();
    if (next < steps) copy_tile(next, stage ^ 1);
    const T* const queries = tiles + stage * (2 * TILE * STRIDE);
    const float* const fact = facts + stage * (3 * TILE);
    const int head = head_of(step), row = step % tiles_of_head * TILE;
    float weights[1][TILE / 8][4] = {}, products[1][TILE / 8][4] = {};
    multiply_rows(weights, own_rows(keys), queries, products, own_rows(values), queries + TILE * STRIDE);
    const auto weigh = [&](auto partly) {
#pragma unroll
      for (int n = 0; n < TILE / 8; ++n)
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          const int column = n * 8 + t * 2 + e % 2;
          weights[0][n][e] = weight_at<partly.value>(p, words, blocks, batch, head, row + column, start + g + e / 2 * 8,
                                                     weights[0][n][e], factor, fact[column], fact[TILE + column],
                                                     fact[2 * TILE + column], products[0][n][e]);
        }
    };
    if (BLOCKED && state(step) == 1)
      weigh(Constant<true>());
    else
      weigh(Constant<false>());
    add_weighted(value_sum, weights, queries + TILE * STRIDE, key_sum, products, queries);
    step = next, stage ^= 1;
  }
  wait_for_tiles();
  __syncthreads();
  const float scale = static_cast<float>(p.scale);
  store_rows(key_sum[0], scale, scale, own_rows(keys), matrix_of<T>(p.key_grad, batch, shared_head), p.key_grad.row,
             start, p.keys, p.width);
  store_rows(value_sum[0], 1.0f, 1.0f, own_rows(values), matrix_of<T>(p.value_grad, batch, shared_head),
             p.value_grad.row, start, p.keys, p.width);
}

#endif
