// Where flags are set: counting them tile by tile, and writing down their places or ranks. COUNT, SUM, PLACES, RANKS,
// COORDINATES: which kernel is wanted. A thread looks at 16 neighboring flags (bytes, zero or not), a block at a tile
// of 4096.
#pragma once
#include "digits.cuh"
#include "divider.cuh"

constexpr int kFlags = 16, kTile = kSortBlock * kFlags, kMostDims = 8;

struct Flags {
  uint32_t bits;  // bit k: flag k of this thread is set
  int64_t first;
};
__device__ __forceinline__ Flags flags_of(const uint8_t* flags, int64_t n) {
  Flags f{0, static_cast<int64_t>(blockIdx.x) * kTile + threadIdx.x * kFlags};
  if (f.first + kFlags <= n && reinterpret_cast<uint64_t>(flags) % 16 == 0) {
    const Vector<uint8_t, 16> v = load_vector<16>(flags + f.first);
#pragma unroll
    for (int k = 0; k < kFlags; ++k) f.bits |= v[k] ? 1u << k : 0;
  } else {
    for (int k = 0; k < kFlags; ++k)
      if (f.first + k < n && flags[f.first + k]) f.bits |= 1u << k;
  }
  return f;
}

#ifdef COUNT
extern "C" __global__ void __launch_bounds__(kSortBlock) count_flags(const uint8_t* flags, int64_t n, int64_t* counts) {
  __shared__ uint32_t sums[kSortWarps];
  const uint32_t own = static_cast<uint32_t>(__popc(flags_of(flags, n).bits));
  const uint32_t before = sum_before(own, sums);
  if (threadIdx.x == kSortBlock - 1) counts[blockIdx.x] = before + own;
}
#endif

#ifdef SUM
// One block: counts[i] becomes the sum of those before it, counts[tiles] the sum of all.
extern "C" __global__ void __launch_bounds__(kSortBlock) sum_flags(int64_t* counts, int64_t tiles) {
  __shared__ uint32_t sums[kSortWarps];
  __shared__ int64_t carried;
  int64_t carry = 0;
  for (int64_t first = 0; first < tiles; first += kSortBlock) {
    const int64_t i = first + threadIdx.x;
    const uint32_t count = i < tiles ? static_cast<uint32_t>(counts[i]) : 0;
    const int64_t before = carry + sum_before(count, sums);
    if (i < tiles) counts[i] = before;
    if (threadIdx.x == kSortBlock - 1) carried = before + count;
    __syncthreads();
    carry = carried;
    __syncthreads();
  }
  if (threadIdx.x == 0) counts[tiles] = carry;
}
#endif

struct Shape {
  Divider sizes[kMostDims];
  int64_t strides[kMostDims];
};

#ifdef PLACES
#if BIG
using Index = uint64_t;
#else
using Index = uint32_t;
#endif
// The offsets of the flags that are set, by the strides of a tensor of the flags' shape.
extern "C" __global__ void __launch_bounds__(kSortBlock)
    flag_places(const uint8_t* flags, int64_t n, const int64_t* counts, int64_t* places, const Shape shape) {
  __shared__ uint32_t sums[kSortWarps];
  const Flags f = flags_of(flags, n);
  int64_t to = counts[blockIdx.x] + sum_before(static_cast<uint32_t>(__popc(f.bits)), sums);
  for (uint32_t bits = f.bits; bits; bits &= bits - 1) {
    Index rest = static_cast<Index>(f.first + __ffs(static_cast<int>(bits)) - 1);
    int64_t offset = 0;
#pragma unroll
    for (int d = RANK - 1; d >= 0; --d) {
      Index at = rest;
      if (d > 0) {
        rest = divided(rest, shape.sizes[d]);
        at -= rest * shape.sizes[d].divisor;
      }
      offset += static_cast<int64_t>(at) * shape.strides[d];
    }
    places[to++] = offset;
  }
}
#endif

#ifdef RANKS
// For each flag how many are set before it, with INCLUDING also it itself.
extern "C" __global__ void __launch_bounds__(kSortBlock)
    flag_ranks(const uint8_t* flags, int64_t n, const int64_t* counts, int64_t* ranks) {
  __shared__ uint32_t sums[kSortWarps];
  const Flags f = flags_of(flags, n);
  int64_t rank = counts[blockIdx.x] + sum_before(static_cast<uint32_t>(__popc(f.bits)), sums);
  for (int k = 0; k < kFlags && f.first + k < n; ++k) {
    const int64_t set = f.bits >> k & 1;
    ranks[f.first + k] = rank + (INCLUDING ? set : 0);
    rank += set;
  }
}
#endif

#ifdef COORDINATES
// coordinates[i * of_place + d * of_dim]: where the i-th place lies along dimension d.
extern "C" __global__ void __launch_bounds__(256)
    place_coordinates(const int64_t* places, int64_t n, int64_t* coordinates, int64_t of_place, int64_t of_dim,
                      int32_t rank, const Shape shape) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * 256 + threadIdx.x;
  if (i >= n) return;
  int64_t rest = places[i];
  for (int d = rank - 1; d >= 0; --d) {
    const int64_t size = shape.strides[d];
    coordinates[i * of_place + d * of_dim] = d > 0 ? rest % size : rest;
    rest /= size;
  }
}
#endif
