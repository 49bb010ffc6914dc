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

// A step of a block: which tile comes by, and whether some of it is hidden.
struct Step {
  int at;
  bool partly;
};

// The steps whose tiles are seen, one after the other; `state` tells that of a step. A warp asks about 32 at once.
template <class State>
struct Steps {
  const State& state;
  int count, from = -64;  // of those that were asked about
  unsigned seen = 0, partly = 0;

  __device__ __forceinline__ Step after(int step) {
    ++step;
#if BLOCKED
    while (step < count) {
      if (step - from >= 32) {
        from = step / 32 * 32;
        const int at = from + static_cast<int>(threadIdx.x % 32), own = at < count ? state(at) : 0;
        seen = __ballot_sync(0xffffffffu, own != 0), partly = __ballot_sync(0xffffffffu, own == 1);
      }
      const unsigned rest = seen >> (step - from);
      if (rest) {
        step += __ffs(static_cast<int>(rest)) - 1;
        return {step, (partly >> (step - from) & 1) != 0};
      }
      step = from + 32;
    }
#endif
    return {min(step, count), false};
  }
};
template <class State>
__device__ __forceinline__ Steps<State> steps_of(int count, const State& state) {
  return {state, count};
}

// The score as the functions want it, minus infinity for who is not seen: at a place within the matrix. A CAREFUL one
// may be hidden, `partly`, or not be there at all.
template <bool CAREFUL>
__device__ __forceinline__ float changed(const FlexWords& words, const Blocks& blocks, int batch, int head, int query,
                                         int key, bool partly, bool there, float score) {
#if SCORED
  score = flex_score(words, score, batch, head, query, key);
#endif
  if constexpr (CAREFUL) {
#if BLOCKED
    bool seen = flex_mask(words, 0.0f, batch, head, query, key);
#if !ALIGNED
    const int state = state_of(blocks, batch, head, query, 1, key, 1);
    seen = state == 2 || (state == 1 && seen);
#endif
    there &= seen | !partly;
#endif
    score = there ? score : -INFINITY;
  }
  return score;
}
__device__ __forceinline__ float flex_factor(const Problem& p) {
  return SCORED ? LOG2_E : static_cast<float>(p.scale) * LOG2_E;
}
__device__ __forceinline__ float scaled(const Problem& p, float score) {
  return SCORED ? score * static_cast<float>(p.scale) : score;
}

#if ENTRY != 2
// A block that owns queries, and the keys with their values that come by, in two stages of `tiles`.
struct OwnedQueries {
  const Problem& p;
  const Blocks& blocks;
  Place place;
  const T *key, *value;
  T* tiles;

  __device__ __forceinline__ OwnedQueries(const Problem& problem, const Blocks& of_keys, T* memory)
      : p(problem), blocks(of_keys), place(place_of(p.heads, p.queries, BLOCKED)), tiles(memory) {
    key = matrix_of<T>(p.key, place.batch, place.head / p.group);
    value = matrix_of<T>(p.value, place.batch, place.head / p.group);
  }
  __device__ __forceinline__ int steps() const { return (p.keys + TILE - 1) / TILE; }
  __device__ __forceinline__ int operator()(int step) const {  // the tile's state
    return state_of(blocks, place.batch, place.head, place.first, min(BLOCK_ROWS, p.queries - place.first), step * TILE,
                    min(TILE, p.keys - step * TILE));
  }
  __device__ __forceinline__ T* stage(int which) const { return tiles + which * (2 * TILE * STRIDE); }
  __device__ __forceinline__ void copy(int step, int which) const {
    T* const to = stage(which);
    copy_rows<TILE>(to, key, p.key.row, step * TILE, p.keys, p.width);
    copy_rows<TILE>(to + TILE * STRIDE, value, p.value.row, step * TILE, p.keys, p.width);
  }
  __device__ __forceinline__ void copy_own(T* to, const HeadRows& rows) const {
    copy_rows<BLOCK_ROWS>(to, matrix_of<T>(rows, place.batch, place.head), rows.row, place.first, p.queries, p.width);
  }
  __device__ __forceinline__ int64_t row_at(int row) const {
    return (static_cast<int64_t>(place.batch) * p.heads + place.head) * p.queries + row;
  }
};
#endif

#if ENTRY != 0
constexpr int LEAST_BLOCKS = WARPGROUP && WIDTH == 64 ? 3 : 1;  // of a multiprocessor: one works while others wait

// Of a row, in backward: m + log l in powers of two, and what is subtracted from the gradient of a weight.
struct RowFacts {
  float logarithm, dot;
};
__device__ __forceinline__ RowFacts facts_of(const Problem& p, const Blocks& blocks, int64_t at, bool there) {
  if (!there) return {INFINITY, 0.0f};
  const float* const kept = static_cast<const float*>(p.rows) + at * 2;
  return {kept[0] * LOG2_E - log_of_two(kept[1]),
          static_cast<const float*>(p.dots)[at] - (blocks.logarithms ? blocks.logarithms[at] : 0.0f)};
}

// A weight, and in `product` what comes to the score's gradient by way of it.
template <bool CAREFUL>
__device__ __forceinline__ float weight_at(const Problem& p, const FlexWords& words, const Blocks& blocks, int batch,
                                           int head, int query, int key, bool partly, bool there, float score,
                                           float factor, const RowFacts& row, float& product) {
  score = scaled(p, score);
  const float weight = power_of_two(
      changed<CAREFUL>(words, blocks, batch, head, query, key, partly, there, score) * factor - row.logarithm);
  product = weight * (product - row.dot);
#if SCORED
  product = weight > 0.0f ? product * flex_slope(words, score, batch, head, query, key) : 0.0f;
#endif
  return weight;
}
#endif

#if ENTRY == 0

extern "C" __global__ void __launch_bounds__(THREADS)
    flex_attention(const Problem p, const FlexWords words, const Blocks blocks) {
  after_earlier_work();
  T* const queries = begin_of_tiles(shared_memory);
  const OwnedQueries block(p, blocks, queries + BLOCK_ROWS * STRIDE);
  const auto [batch, head, first] = block.place;
  const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
  auto steps = steps_of(block.steps(), block);
  Step step = steps.after(-1);
  int stage = 0;
  block.copy_own(queries, p.query);
  if (step.at < steps.count) block.copy(step.at, 0);

  float out[WARP_TILES][WIDTH / 8][4] = {};
  float greatest[WARP_TILES][2], total[WARP_TILES][2] = {};
  for (auto& pair : greatest) pair[0] = pair[1] = -INFINITY;
  const float factor = flex_factor(p);
  T* const own = own_rows(queries);
  while (step.at < steps.count) {
    const Step next = steps.after(step.at);
    wait_for_tiles();
    __syncthreads();
    if (next.at < steps.count) block.copy(next.at, stage ^ 1);
    const T* const keys = block.stage(stage);
    float scores[WARP_TILES][TILE / 8][4] = {};
    multiply_rows(scores, own, keys);
    const auto change = [&](auto careful) {
#pragma unroll
      for (int i = 0; i < WARP_TILES; ++i)
#pragma unroll
        for (int n = 0; n < TILE / 8; ++n)
#pragma unroll
          for (int e = 0; e < 4; ++e) {
            const int query = min(first + own_row(i) + g + e / 2 * 8, p.queries - 1),
                      key = step.at * TILE + n * 8 + t * 2 + e % 2;
            scores[i][n][e] =
                changed<careful.value>(words, blocks, batch, head, query, careful.value ? min(key, p.keys - 1) : key,
                                       step.partly, key < p.keys, scaled(p, scores[i][n][e]));
          }
    };
    if (step.partly || (step.at + 1) * TILE > p.keys)
      change(Constant<true>());
    else if (SCORED)
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
        const int64_t at = block.row_at(row);
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
  const OwnedQueries block(p, blocks, grads + BLOCK_ROWS * STRIDE);
  const auto [batch, head, first] = block.place;
  const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
  auto steps = steps_of(block.steps(), block);
  Step step = steps.after(-1);
  int stage = 0;
  block.copy_own(queries, p.query);
  block.copy_own(grads, p.grad);
  if (step.at < steps.count) block.copy(step.at, 0);
  const int start = first + own_row(0);
  int query[2];
  RowFacts facts[2];
  for (int r = 0; r < 2; ++r) {
    const int row = start + g + r * 8;
    query[r] = min(row, p.queries - 1);
    facts[r] = facts_of(p, blocks, block.row_at(row), row < p.queries);
  }
  const float factor = flex_factor(p);
  float sum[1][WIDTH / 8][4] = {};
  while (step.at < steps.count) {
    const Step next = steps.after(step.at);
    wait_for_tiles();
    __syncthreads();
    if (next.at < steps.count) block.copy(next.at, stage ^ 1);
    const T* const keys = block.stage(stage);
    float scores[1][TILE / 8][4] = {}, products[1][TILE / 8][4] = {};
    multiply_rows(scores, own_rows(queries), keys, products, own_rows(grads), keys + TILE * STRIDE);
    const auto weigh = [&](auto careful) {
#pragma unroll
      for (int n = 0; n < TILE / 8; ++n)
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          const int key = step.at * TILE + n * 8 + t * 2 + e % 2;
          weight_at<careful.value>(p, words, blocks, batch, head, query[e / 2],
                                   careful.value ? min(key, p.keys - 1) : key, step.partly, key < p.keys,
                                   scores[0][n][e], factor, facts[e / 2], products[0][n][e]);
        }
    };
    if (step.partly || (step.at + 1) * TILE > p.keys)
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
  float* const facts = reinterpret_cast<float*>(tiles + 4 * TILE * STRIDE);  // and of the facts of their rows
  const auto [batch, shared_head, first] = place_of(p.heads / p.group, p.keys, false);
  const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
  const int tiles_of_head = (p.queries + TILE - 1) / TILE;
  const auto head_of = [&](int step) { return p.group == 1 ? 0 : step / tiles_of_head; };  // of those with these keys
  const auto state = [&](int step) {
    const int from = (step - head_of(step) * tiles_of_head) * TILE;
    return state_of(blocks, batch, shared_head * p.group + head_of(step), from, min(TILE, p.queries - from), first,
                    min(BLOCK_ROWS, p.keys - first));
  };
  const auto copy_tile = [&](int step, int stage) {
    const int head = shared_head * p.group + head_of(step), start = (step - head_of(step) * tiles_of_head) * TILE;
    T* const to = tiles + stage * (2 * TILE * STRIDE);
    copy_rows<TILE>(to, matrix_of<T>(p.query, batch, head), p.query.row, start, p.queries, p.width);
    copy_rows<TILE>(to + TILE * STRIDE, matrix_of<T>(p.grad, batch, head), p.grad.row, start, p.queries, p.width);
    if (threadIdx.x < TILE) {
      const int row = start + threadIdx.x;
      const int64_t at = (static_cast<int64_t>(batch) * p.heads + head) * p.queries + row;
      const RowFacts fact = facts_of(p, blocks, at, row < p.queries);
      store_vector(facts + (stage * TILE + threadIdx.x) * 2, Vector<float, 2>{{fact.logarithm, fact.dot}});
    }
  };
  auto steps = steps_of(tiles_of_head * p.group, state);
  Step step = steps.after(-1);
  int stage = 0;
  copy_rows<BLOCK_ROWS>(keys, matrix_of<T>(p.key, batch, shared_head), p.key.row, first, p.keys, p.width);
  copy_rows<BLOCK_ROWS>(values, matrix_of<T>(p.value, batch, shared_head), p.value.row, first, p.keys, p.width);
  if (step.at < steps.count) copy_tile(step.at, 0);
  const int start = first + own_row(0);
  const int key[2] = {min(start + g, p.keys - 1), min(start + g + 8, p.keys - 1)};
  const float factor = flex_factor(p);
  float key_sum[1][WIDTH / 8][4] = {}, value_sum[1][WIDTH / 8][4] = {};
  while (step.at < steps.count) {
    const Step next = steps.after(step.at);
    wait_for_tiles();
    __syncthreads();
    if (next.at < steps.count) copy_tile(next.at, stage ^ 1);
    const T* const queries = tiles + stage * (2 * TILE * STRIDE);
    const float* const fact = facts + stage * (2 * TILE);
    const int head = shared_head * p.group + head_of(step.at),
              row = (step.at - head_of(step.at) * tiles_of_head) * TILE;
    float weights[1][TILE / 8][4] = {}, products[1][TILE / 8][4] = {};
    multiply_rows(weights, own_rows(keys), queries, products, own_rows(values), queries + TILE * STRIDE);
    const auto weigh = [&](auto careful) {
#pragma unroll
      for (int n = 0; n < TILE / 8; ++n) {
        const int column = n * 8 + t * 2;
        const Vector<float, 4> pair = load_vector<4>(fact + column * 2);
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          const int query = row + column + e % 2;
          weights[0][n][e] = weight_at<careful.value>(
              p, words, blocks, batch, head, careful.value ? min(query, p.queries - 1) : query, key[e / 2], step.partly,
              true, weights[0][n][e], factor, {pair[e % 2 * 2], pair[e % 2 * 2 + 1]}, products[0][n][e]);
        }
      }
    };
    if (step.partly || row + TILE > p.queries)
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
