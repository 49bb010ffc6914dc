// Sorting by digits of eight bits: the stable place of each key in a tile, by the digit it has. Shared by the sorts.
//
// A block of 256 threads holds a tile of 256 * ITEMS keys; item j of lane l of warp w stands at place (w * ITEMS + j) *
// 32 + l.
#pragma once
#include "types.cuh"

constexpr int kSortBlock = 256, kSortWarps = kSortBlock / 32, kDigits = 256;

struct DigitCounts {
  uint32_t of_warp[kSortWarps]
                  [kDigits];  // how many keys of the warp have the digit; later, how many stand before the warp's
  uint32_t start[kDigits];    // where the digit's keys begin in the tile
  uint32_t sums[kSortWarps];
};

// The sum of the values of all threads before this one. 256 threads; `sums` is free again after the next barrier.
__device__ __forceinline__ uint32_t sum_before(uint32_t value, uint32_t* sums) {
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  uint32_t sum = value;
#pragma unroll
  for (int step = 1; step < 32; step *= 2) {
    const uint32_t more = __shfl_up_sync(0xffffffffu, sum, step);
    if (lane >= static_cast<unsigned>(step)) sum += more;
  }
  if (lane == 31) sums[warp] = sum;
  __syncthreads();
  uint32_t before = 0;
#pragma unroll
  for (int w = 0; w < kSortWarps; ++w) before += static_cast<unsigned>(w) < warp ? sums[w] : 0;
  return before + sum - value;
}

// places[j]: where item j goes in the tile when its keys are ordered by digit, equal ones as they came.
// All threads take part; the counts may be used again after the next barrier.
template <int each>
__device__ __forceinline__ void place_by_digit(const uint32_t (&digits)[each], uint32_t (&places)[each],
                                               DigitCounts& counts) {
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32, below = (1u << lane) - 1;
  uint32_t* own = counts.of_warp[warp];
  for (int d = static_cast<int>(lane); d < kDigits; d += 32) own[d] = 0;
  __syncwarp();
#pragma unroll
  for (int j = 0; j < each; ++j) {
    const uint32_t digit = digits[j];
    uint32_t peers = 0xffffffffu;  // the lanes with the same digit
#pragma unroll
    for (int b = 0; b < 8; ++b) {
      const bool bit = (digit >> b & 1) != 0;
      const uint32_t with = __ballot_sync(0xffffffffu, bit);
      peers &= bit ? with : ~with;
    }
    const uint32_t before = own[digit];
    places[j] = before + static_cast<uint32_t>(__popc(peers & below));
    __syncwarp();
    if ((peers & below) == 0) own[digit] = before + static_cast<uint32_t>(__popc(peers));
    __syncwarp();
  }
  __syncthreads();
  uint32_t total = 0;
#pragma unroll
  for (int w = 0; w < kSortWarps; ++w) {
    const uint32_t count = counts.of_warp[w][threadIdx.x];
    counts.of_warp[w][threadIdx.x] = total;
    total += count;
  }
  counts.start[threadIdx.x] = sum_before(total, counts.sums);
  __syncthreads();
#pragma unroll
  for (int j = 0; j < each; ++j) places[j] += counts.start[digits[j]] + own[digits[j]];
}
