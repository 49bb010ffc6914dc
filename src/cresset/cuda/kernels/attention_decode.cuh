// Attention of few queries, forward, in half precision: what a token costs that is said with a cache of keys and
// values. Reading keys and values is all that takes time, so they are split over the card in parts of PART keys, and
// the parts of a row are brought together in their order. What a row gets does not depend on its neighbors, nor on how
// many they are.
//
// ENTRY: 0 a block computes a part for ROWS rows, queries of heads that share keys; 1 a block joins the parts of a row.
// PART: 64 where WIDTH is 64 or more, or 128. WIDTH: the length of a row of keys, rounded up to a power of two; in
// memory p.width elements. With several parts p.dots has for each row and part first p.width sums, then, behind all of
// these, the greatest score and the total.
#include "attention_problem.cuh"
#include "tensor_core.cuh"

constexpr float LOG2_E = 1.4426950408889634f;
#if MASK
#define FACTOR LOG2_E
#else
#define FACTOR (static_cast<float>(p.scale) * LOG2_E)
#endif

__device__ __forceinline__ int parts_of(const Problem& p) { return p.keys > PART ? (p.keys + PART - 1) / PART : 1; }
__device__ __forceinline__ float* pairs_of(const Problem& p) {
  return static_cast<float*>(p.dots) + static_cast<int64_t>(p.batches) * p.heads * p.queries * parts_of(p) * p.width;
}
// What backward wants of a row: the greatest score, and one over the total.
__device__ __forceinline__ void keep_row(const Problem& p, int64_t row, float greatest, float inverse) {
  float* const kept = static_cast<float*>(p.rows) + row * 2;
  kept[0] = greatest == -INFINITY ? INFINITY : greatest * (FACTOR / LOG2_E);
  kept[1] = inverse;
}

#if ENTRY == 0

constexpr int THREADS = 256, WARPS = THREADS / 32;
constexpr int LANES = WIDTH / 8;          // a row of keys has so many threads
constexpr int AT_ONCE = THREADS / LANES;  // so many rows are read at a time
constexpr int PASSES = PART / AT_ONCE;

// All are asked for before the first is looked at: there is no branch around a load. What is not there is read from the
// last row that is, and counts as zero.
__device__ __forceinline__ void load_rows(uint4 (&to)[PASSES], const HeadRows& rows, int batch, int head, int first,
                                          int count, int column, int width) {
  const T* const from = matrix_of<T>(rows, batch, head) + (column < width ? column : 0);
#pragma unroll
  for (int i = 0; i < PASSES; ++i) {
    const int row = first + i * AT_ONCE + static_cast<int>(threadIdx.x) / LANES;
    to[i] = *reinterpret_cast<const uint4*>(from + min(row, count - 1) * rows.row);
  }
}
__device__ __forceinline__ void numbers_of(float (&to)[8], const uint4& from, bool there) {
  unpack<T>(from, to);
#pragma unroll
  for (int e = 0; e < 8; ++e) to[e] = there ? to[e] : 0.0f;
}

extern "C" __global__ void __launch_bounds__(THREADS) attention_decode(const Problem p) {
  __shared__ float queries[ROWS][WIDTH], weights[ROWS][PART], sums[WARPS][ROWS][WIDTH], pairs[ROWS][2];
  const int parts = parts_of(p), all_rows = p.group * p.queries, groups = (all_rows + ROWS - 1) / ROWS,
            shared_heads = p.heads / p.group;
  const int part = blockIdx.x % parts, first_row = blockIdx.x / parts % groups * ROWS,
            item = blockIdx.x / parts / groups, shared_head = item % shared_heads, batch = item / shared_heads;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, slot = threadIdx.x / LANES,
            column = threadIdx.x % LANES * 8;
  if (lane == 0 && warp < 2) {
    const HeadRows& rows = warp == 0 ? p.key : p.value;
    const T* const first = matrix_of<T>(rows, batch, shared_head) + part * PART * rows.row;
    const int there = min(PART, p.keys - part * PART);
    if (rows.row == p.width && there > 0) prefetch(first, there * p.width * static_cast<int>(sizeof(T)));
  }
  after_earlier_work();
  uint4 keys[PASSES] = {}, values[PASSES] = {};
  if (p.keys > 0) {
    load_rows(keys, p.key, batch, shared_head, part * PART, p.keys, column, p.width);
    load_rows(values, p.value, batch, shared_head, part * PART, p.keys, column, p.width);
  }
#if MASK  // read early, too; a warp masks one row
  static_assert(ROWS <= WARPS);
  const int masked_row = min(first_row + warp, all_rows - 1);
  const int64_t mask_row = batch * p.mask.batch + (shared_head * p.group + masked_row / p.queries) * p.mask.head +
                           masked_row % p.queries * p.mask.row;
  MASK_TYPE mask[PART / 32] = {};
  if (warp < ROWS && p.keys > 0) {
#pragma unroll
    for (int i = 0; i < PART / 32; ++i)
      mask[i] = reinterpret_cast<const MASK_TYPE*>(
          p.mask.data)[mask_row + min(part * PART + i * 32 + lane, p.keys - 1) * p.mask.column];
  }
#endif
  const auto is_there = [&](int i) { return part * PART + i * AT_ONCE + slot < p.keys && column < p.width; };
  for (int at = threadIdx.x; at < ROWS * WIDTH; at += THREADS) {
    const int row = first_row + at / WIDTH, d = at % WIDTH;
    queries[at / WIDTH][d] =
        row < all_rows && d < p.width
            ? convert<float>(matrix_of<T>(p.query, batch,
                                          shared_head * p.group + row / p.queries)[row % p.queries * p.query.row + d])
            : 0.0f;
  }
  __syncthreads();
#pragma unroll
  for (int i = 0; i < PASSES; ++i) {
    float key[8];
    numbers_of(key, keys[i], is_there(i));
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
      float score = 0;
#pragma unroll
      for (int e = 0; e < 8; ++e) score += key[e] * queries[r][column + e];
#pragma unroll
      for (int d = LANES / 2; d > 0; d /= 2) score += __shfl_xor_sync(0xffffffffu, score, d);
      if (column == 0) weights[r][i * AT_ONCE + slot] = score;
    }
  }
  __syncthreads();
  if (warp < ROWS) {
    const int r = warp;
    float scores[PART / 32], greatest = -INFINITY, total = 0;
#pragma unroll
    for (int i = 0; i < PART / 32; ++i) {
      const int key = part * PART + i * 32 + lane;
      scores[i] = weights[r][i * 32 + lane];
#if MASK == 1
      scores[i] = mask[i] ? scores[i] * static_cast<float>(p.scale) : -INFINITY;
#elif MASK
      scores[i] = scores[i] * static_cast<float>(p.scale) + convert<float>(convert<opmath<MASK_TYPE>>(mask[i]));
#endif
      if (key >= p.keys || (CAUSAL && key > (first_row + r) % p.queries)) scores[i] = -INFINITY;
      greatest = fmaxf(greatest, scores[i]);
    }
#pragma unroll
    for (int d = 16; d > 0; d /= 2) greatest = fmaxf(greatest, __shfl_xor_sync(0xffffffffu, greatest, d));
    const float shift = greatest == -INFINITY ? 0.0f : greatest * FACTOR;
#pragma unroll
    for (int i = 0; i < PART / 32; ++i) {
      const float weight = power_of_two(scores[i] * FACTOR - shift);
      weights[r][i * 32 + lane] = weight;
      total += weight;
    }
#pragma unroll
    for (int d = 16; d > 0; d /= 2) total += __shfl_xor_sync(0xffffffffu, total, d);
    if (lane == 0) pairs[r][0] = greatest, pairs[r][1] = total;
  }
  __syncthreads();
  float sum[ROWS][8] = {};
#pragma unroll
  for (int i = 0; i < PASSES; ++i) {
    float value[8];
    numbers_of(value, values[i], is_there(i));
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
      const float weight = weights[r][i * AT_ONCE + slot];
#pragma unroll
      for (int e = 0; e < 8; ++e) sum[r][e] += weight * value[e];
    }
  }
#pragma unroll
  for (int r = 0; r < ROWS; ++r)
#pragma unroll
    for (int e = 0; e < 8; ++e) {
#pragma unroll
      for (int d = LANES; d < 32; d *= 2) sum[r][e] += __shfl_xor_sync(0xffffffffu, sum[r][e], d);
      if (lane < LANES) sums[warp][r][column + e] = sum[r][e];
    }
  __syncthreads();
  for (int at = threadIdx.x; at < ROWS * WIDTH; at += THREADS) {
    const int r = at / WIDTH, d = at % WIDTH, row = first_row + r;
    if (row >= all_rows || d >= p.width) continue;
    float out = 0;
#pragma unroll
    for (int w = 0; w < WARPS; ++w) out += sums[w][r][d];
    const int head = shared_head * p.group + row / p.queries, query = row % p.queries;
    const int64_t place = (static_cast<int64_t>(batch) * p.heads + head) * p.queries + query;
    if (parts > 1) {
      static_cast<float*>(p.dots)[(place * parts + part) * p.width + d] = out;
      if (d < 2) pairs_of(p)[(place * parts + part) * 2 + d] = pairs[r][d];
    } else {
      const float inverse = pairs[r][0] == -INFINITY ? 0.0f : 1.0f / pairs[r][1];
      matrix_of<T>(p.output, batch, head)[query * p.output.row + d] = convert<T>(out * inverse);
      if (d == 0) keep_row(p, place, pairs[r][0], inverse);
    }
  }
}

#else

extern "C" __global__ void __launch_bounds__(WIDTH) attention_decode(const Problem p) {
  after_earlier_work();
  const int64_t place = blockIdx.x;
  const int parts = parts_of(p), d = threadIdx.x, query = static_cast<int>(place % p.queries),
            head = static_cast<int>(place / p.queries % p.heads), batch = static_cast<int>(place / p.queries / p.heads);
  const float* const pairs = pairs_of(p) + place * parts * 2;
  const float* const sums = static_cast<const float*>(p.dots) + place * parts * p.width + (d < p.width ? d : 0);
  // The parts of AT_ONCE at a time, which are all asked for before the first is looked at.
  constexpr int AT_ONCE = 8;
  float greatest = -INFINITY, total = 0, out = 0;
  for (int first = 0; first < parts; first += AT_ONCE) {
    float highest[AT_ONCE], totals[AT_ONCE], outs[AT_ONCE], raised = greatest;
#pragma unroll
    for (int i = 0; i < AT_ONCE; ++i) {
      const int64_t part = min(first + i, parts - 1);
      highest[i] = pairs[part * 2], totals[i] = pairs[part * 2 + 1], outs[i] = sums[part * p.width];
    }
#pragma unroll
    for (int i = 0; i < AT_ONCE; ++i) raised = fmaxf(raised, highest[i]);
    const float shift = raised == -INFINITY ? 0.0f : raised * FACTOR, shrink = power_of_two(greatest * FACTOR - shift);
    greatest = raised, total *= shrink, out *= shrink;
#pragma unroll
    for (int i = 0; i < AT_ONCE; ++i) {
      const float weight = first + i < parts ? power_of_two(highest[i] * FACTOR - shift) : 0.0f;
      total += weight * totals[i];
      out += weight * outs[i];
    }
  }
  const float inverse = greatest == -INFINITY ? 0.0f : 1.0f / total;
  if (d < p.width) matrix_of<T>(p.output, batch, head)[query * p.output.row + d] = convert<T>(out * inverse);
  if (d == 0) keep_row(p, place, greatest, inverse);
}

#endif
