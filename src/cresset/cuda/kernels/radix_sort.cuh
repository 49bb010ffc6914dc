// Sorting keys with their positions, one digit of eight bits a pass from the lowest to the highest: count the digits of
// each tile, sum the counts, move. Each pass keeps the order of equal digits.
//
// KEY is dtype_u32 or dtype_u64. COUNT, SUM, MOVE: which kernel is wanted. FIRST: the positions are 0, 1, 2, ... and
// not in memory. BY_ROW: the digit is one of position / length. LEAVES_OUT: passes may be left out, see the note below.
// FEW: one block makes all passes, in shared memory, ITEMS keys a thread.
#pragma once
#include "digits.cuh"
#include "divider.cuh"

#ifdef FEW
extern "C" __global__ void __launch_bounds__(kSortBlock)
    sort_few(const KEY* keys, KEY* to_keys, int32_t* to_positions, int32_t n, int32_t bits) {
  after_earlier_work();
  __shared__ DigitCounts places_of;
  __shared__ KEY staged[kSortBlock * ITEMS];
  __shared__ uint16_t from[kSortBlock * ITEMS];
  const int32_t first = static_cast<int32_t>(threadIdx.x / 32 * ITEMS * 32 + threadIdx.x % 32);
  KEY key[ITEMS];
  uint16_t position[ITEMS];
  uint32_t digit[ITEMS], place[ITEMS];
#pragma unroll
  for (int j = 0; j < ITEMS; ++j) {
    key[j] = first + j * 32 < n ? keys[first + j * 32] : KEY(0);
    position[j] = static_cast<uint16_t>(first + j * 32);
  }
#pragma unroll 1
  for (int32_t shift = 0; shift < bits; shift += 8) {
#pragma unroll
    for (int j = 0; j < ITEMS; ++j)  // those beyond the end stay behind all others
      digit[j] = first + j * 32 < n ? static_cast<uint32_t>(key[j] >> shift) & 255 : 255;
    place_by_digit(digit, place, places_of);
#pragma unroll
    for (int j = 0; j < ITEMS; ++j) staged[place[j]] = key[j], from[place[j]] = position[j];
    __syncthreads();
#pragma unroll
    for (int j = 0; j < ITEMS; ++j) key[j] = staged[first + j * 32], position[j] = from[first + j * 32];
    __syncthreads();
  }
#pragma unroll
  for (int j = 0; j < ITEMS; ++j)
    if (first + j * 32 < n) to_keys[first + j * 32] = key[j], to_positions[first + j * 32] = position[j];
}
#else
constexpr int kItems = 16, kTile = kSortBlock * kItems;

struct Pass {
  const KEY* from_keys;
  const int32_t* from_positions;
  KEY* to_keys;
  int32_t* to_positions;
};
#if LEAVES_OUT
// Note [Passes that are left out]
// A digit that all keys share needs no pass. Which these are only the device knows, so each kernel finds by itself
// whether its pass is left out, from where it reads and to where it writes: the passes that are made alternate between
// two rooms so that the last one writes to the first room. Where all digits are shared the first pass is made still,
// which writes the positions down. To ask costs each pass some 10 %, which integers of eight bytes win back, of which
// few use all digits; other keys use all of theirs.
struct Passes {
  const KEY* given;
  KEY* keys[2];
  int32_t* positions[2];
  const uint32_t* differing;  // the bits in which the keys are not all alike, in two words
  int32_t number, by_key, by_row;
};
// False: it is left out. No positions: 0, 1, 2, ...
__device__ __forceinline__ bool is_made(const Passes& p, Pass& own) {
  const uint64_t bits = p.differing[0] | static_cast<uint64_t>(p.differing[1]) << 32;
  int before = 0, all = p.by_row;
  bool made = false;
  for (int pass = p.by_key - 1; pass >= 0; --pass) {
    if ((bits >> (8 * pass) & 255) == 0 && (pass > 0 || all > p.by_row)) continue;
    all += 1;
    before += pass < p.number ? 1 : 0;
    made = made || pass == p.number;
  }
  if (p.number >= p.by_key) made = true, before += p.number - p.by_key;
  const bool to = ((all - 1 - before) & 1) != 0;
  KEY *const to_keys = to ? p.keys[1] : p.keys[0], *const other_keys = to ? p.keys[0] : p.keys[1];
  int32_t *const to_positions = to ? p.positions[1] : p.positions[0], *const other_positions =
                                                                          to ? p.positions[0] : p.positions[1];
  own = {before ? other_keys : p.given, before ? other_positions : nullptr, to_keys, to_positions};
  return made;
}
#else
using Passes = Pass;
__device__ __forceinline__ bool is_made(const Passes& p, Pass& own) {
  own = p;
  return true;
}
#endif

__device__ __forceinline__ uint32_t digit_of(KEY key, int32_t position, int32_t shift, const Divider& length) {
#if BY_ROW
  return divided(static_cast<uint32_t>(position), length) >> shift & 255;
#else
  return static_cast<uint32_t>(key >> shift) & 255;
#endif
}

#ifdef COUNT
// counts[digit][tile]
extern "C" __global__ void __launch_bounds__(kSortBlock)
    count_digits(const Passes passes, int32_t n, int32_t shift, const Divider length, uint32_t* counts, int32_t tiles) {
  after_earlier_work();
  Pass pass;
  if (!is_made(passes, pass)) return;
  __shared__ uint32_t bins[kSortWarps][kDigits];
  const int32_t first = static_cast<int32_t>(blockIdx.x) * kTile;
  for (int w = 0; w < kSortWarps; ++w) bins[w][threadIdx.x] = 0;
  __syncthreads();
#pragma unroll
  for (int j = 0; j < kItems; ++j) {
    const int64_t i = static_cast<int64_t>(first) + j * kSortBlock + threadIdx.x;
    if (i >= n) break;
#if BY_ROW
    const uint32_t digit = digit_of(0, pass.from_positions[i], shift, length);
#else
    const uint32_t digit = digit_of(pass.from_keys[i], 0, shift, length);
#endif
    atomicAdd(&bins[threadIdx.x / 32][digit], 1u);
  }
  __syncthreads();
  uint32_t sum = 0;
  for (int w = 0; w < kSortWarps; ++w) sum += bins[w][threadIdx.x];
  counts[static_cast<int64_t>(threadIdx.x) * tiles + blockIdx.x] = sum;
}

#endif

#ifdef SUM
// A block for each digit: how many keys of earlier tiles have it, and how many there are in all.
extern "C" __global__ void __launch_bounds__(kSortBlock) sum_counts(uint32_t* counts, uint32_t* totals, int32_t tiles) {
  after_earlier_work();
  __shared__ uint32_t sums[kSortWarps], carried;
  uint32_t* row = counts + static_cast<int64_t>(blockIdx.x) * tiles;
  uint32_t carry = 0;
  for (int32_t first = 0; first < tiles; first += kSortBlock) {
    const int32_t i = first + static_cast<int32_t>(threadIdx.x);
    const uint32_t count = i < tiles ? row[i] : 0;
    const uint32_t before = carry + sum_before(count, sums);
    if (i < tiles) row[i] = before;
    if (threadIdx.x == kSortBlock - 1) carried = before + count;
    __syncthreads();
    carry = carried;
    __syncthreads();
  }
  if (threadIdx.x == 0) totals[blockIdx.x] = carry;
}

#endif

#ifdef MOVE
#if LEAVES_OUT
#define BOUNDS __launch_bounds__(kSortBlock, 2)
#else
#define BOUNDS __launch_bounds__(kSortBlock)  // a second number changes the code of the others for the worse
#endif
extern "C" __global__ void BOUNDS move_by_digit(const Passes passes, int32_t n, int32_t shift, const Divider length,
                                                const uint32_t* counts, const uint32_t* totals, int32_t tiles) {
  after_earlier_work();
  Pass pass;
  if (!is_made(passes, pass)) return;
  __shared__ DigitCounts places_of;
  __shared__ uint32_t target[kDigits], sums[kSortWarps];
  __shared__ KEY staged[kTile];
  const int64_t first = static_cast<int64_t>(blockIdx.x) * kTile;
  const int32_t valid = static_cast<int32_t>(n - first < kTile ? n - first : kTile);
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  KEY key[kItems];
  int32_t position[kItems];
  uint32_t digit[kItems], place[kItems];
#pragma unroll
  for (int j = 0; j < kItems; ++j) {
    const int32_t i = static_cast<int32_t>((warp * kItems + j) * 32 + lane);
    const bool is_there = i < valid;
    key[j] = is_there ? pass.from_keys[first + i] : KEY(0);
    if (LEAVES_OUT ? !pass.from_positions : FIRST)
      position[j] = static_cast<int32_t>(first + i);
    else
      position[j] = is_there ? pass.from_positions[first + i] : 0;
    digit[j] =
        is_there ? digit_of(key[j], position[j], shift, length) : 255;  // those beyond the end stay behind all others
  }
  // Where the digit's keys of this tile go, less where they stand in the tile.
  const uint32_t base =
      sum_before(totals[threadIdx.x], sums) + counts[static_cast<int64_t>(threadIdx.x) * tiles + blockIdx.x];
  place_by_digit(digit, place, places_of);
  target[threadIdx.x] = base - places_of.start[threadIdx.x];
#pragma unroll
  for (int j = 0; j < kItems; ++j) staged[place[j]] = key[j];
  __syncthreads();
  // The digits of the staged items tell where they go: by key they can be read again, by row they are kept aside.
  uint32_t to[kItems];
#if BY_ROW
  uint16_t* const kept = reinterpret_cast<uint16_t*>(&places_of.of_warp[0][0]);
#pragma unroll
  for (int j = 0; j < kItems; ++j) kept[place[j]] = static_cast<uint16_t>(digit[j]);
  __syncthreads();
#endif
#pragma unroll
  for (int j = 0; j < kItems; ++j) {
    const int32_t i = static_cast<int32_t>(j * kSortBlock + threadIdx.x);
    if (i >= valid) continue;
    const KEY k = staged[i];
#if BY_ROW
    to[j] = target[kept[i]] + static_cast<uint32_t>(i);
#else
    to[j] = target[digit_of(k, 0, shift, length)] + static_cast<uint32_t>(i);
#endif
    pass.to_keys[to[j]] = k;
  }
  __syncthreads();
  int32_t* const staged_positions = reinterpret_cast<int32_t*>(staged);
#pragma unroll
  for (int j = 0; j < kItems; ++j) staged_positions[place[j]] = position[j];
  __syncthreads();
#pragma unroll
  for (int j = 0; j < kItems; ++j) {
    const int32_t i = static_cast<int32_t>(j * kSortBlock + threadIdx.x);
    if (i < valid) pass.to_positions[to[j]] = staged_positions[i];
  }
}
#endif
#endif
