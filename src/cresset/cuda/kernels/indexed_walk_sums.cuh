// Sums of float32 by atomics, the same bits on every run.
//
// Note [Sums of whole numbers]
// Floats that are added in any order give any of several sums; whole numbers give one. A finite float is m * 2^(e -
// 150) with 0 <= m < 2^24 and 1 <= e < 255, so that those of similar exponents can be added as whole numbers, by
// atomics.
//
// Where few elements get many each (STEP 0, 1): an element has 32 sums, each of the floats of eight neighboring
// exponents. The sum is exact: 24 + 7 bits of a summand leave room for 2^32 of them.
// Otherwise the summands are put into buckets (STEP 2 to 5; one block adds a few up as they are, STEP 6), each for some
// neighboring elements, whose sums fit into shared memory: they are counted, the counts summed, the buckets filled, in
// any order, and each is added up by a block. It finds the largest exponent of each element, and then adds in units
// that are `room` bits finer than that of the largest, as many as the number of summands leaves in 63. What is cut off
// is less than the rounding of a sum of floats. Infinities and nan are noted by bits: 1, 2 and 4.
#pragma once
#include "indexed_walk.cuh"

struct Decoded {
  uint32_t mantissa, exponent, special;
  bool negative;
};
__device__ __forceinline__ Decoded decoded(float v) {
  const uint32_t bits = __builtin_bit_cast(uint32_t, v), e = bits >> 23 & 255, m = bits & 0x7fffffu;
  const bool negative = bits >> 31;
  return {e ? m | 0x800000u : m, e ? e : 1u, e < 255 ? 0u : m ? 4u : negative ? 2u : 1u, negative};
}
__device__ __forceinline__ float with_special(uint32_t special, float start) {
  const float infinite = special == 1 ? INFINITY : -INFINITY;
  return special & 4 || (special & 3) == 3 ? NAN : start + infinite;
}
// 2^n, for n in the range of normal doubles.
__device__ __forceinline__ double two_to(int n) {
  return __builtin_bit_cast(double, static_cast<uint64_t>(static_cast<int64_t>(n + 1023)) << 52);
}
constexpr int kParts = 32;
constexpr int kThreads = 1024, kMostBuckets = 4096;  // of STEP 2 to 6

struct Summand {
  uint32_t to;
  float value;
};
extern __shared__ uint4 shared_memory[];

#if STEP == 0
// sums[part][element]
extern "C" __global__ void __launch_bounds__(256)
    whole_numbers(const Walk w, unsigned long long* sums, uint32_t* specials, int64_t span) {
  after_earlier_work();
  constexpr int kUnroll = 4;
  const int64_t first = static_cast<int64_t>(blockIdx.x) * (256 * kUnroll) + threadIdx.x;
  Offsets at[kUnroll];
  int64_t value[kUnroll];
  float source[kUnroll];
#pragma unroll
  for (int u = 0; u < kUnroll; ++u) {
    const int64_t i = first + u * 256;
    if (i >= w.count) continue;
    at[u] = offsets_at(w, i);
    value[u] = index_at(w, at[u].index);
    source[u] = reinterpret_cast<const float*>(w.plain)[at[u].plain];
  }
#pragma unroll
  for (int u = 0; u < kUnroll; ++u) {
    if (first + u * 256 >= w.count) continue;
    const int64_t place = place_of(w, value[u], at[u].index), to = at[u].indexed + place * w.scale;
    const Decoded d = decoded(source[u]);
    if (place < 0) continue;
    if (d.special) {
      atomicOr(specials + to, d.special);
    } else if (d.mantissa) {
      const int64_t summand = static_cast<int64_t>(d.mantissa) << (d.exponent & 7);
      atomicAdd(sums + (d.exponent >> 3) * span + to, static_cast<unsigned long long>(d.negative ? -summand : summand));
    }
  }
}
#elif STEP == 1
extern "C" __global__ void __launch_bounds__(256)
    whole_numbers(float* target, const int64_t* sums, const uint32_t* specials, int64_t span) {
  after_earlier_work();
  const int64_t i = static_cast<int64_t>(blockIdx.x) * 256 + threadIdx.x;
  if (i >= span) return;
  // Each part below 2^8, what is above carried into the next: the highest part has the sign.
  int64_t parts[kParts], carry = 0;
  bool any = false;
#pragma unroll
  for (int p = 0; p < kParts; ++p) {
    const int64_t sum = sums[p * span + i] + carry;
    any = any || sum != 0;
    carry = p + 1 < kParts ? sum >> 8 : 0;
    parts[p] = p + 1 < kParts ? sum & 255 : sum;
  }
  if (specials[i]) {
    target[i] = with_special(specials[i], target[i]);
    return;
  }
  if (!any) return;
  double total = 0;
#pragma unroll
  for (int p = kParts - 1; p >= 0; --p) total += static_cast<double>(parts[p]) * two_to(8 * p - 150);
  target[i] = static_cast<float>(static_cast<double>(target[i]) + total);
}
#elif STEP == 2
// How many summands go to each bucket. A block counts in shared memory first.
extern "C" __global__ void __launch_bounds__(kThreads)
    whole_numbers(const Walk w, uint32_t* counts, int32_t shift, int32_t buckets) {
  after_earlier_work();
  auto* own = reinterpret_cast<uint32_t*>(shared_memory);
  for (int32_t k = static_cast<int32_t>(threadIdx.x); k < buckets; k += kThreads) own[k] = 0;
  __syncthreads();
  constexpr int kUnroll = 4;
  for (int64_t begin = static_cast<int64_t>(blockIdx.x) * (kThreads * kUnroll) + threadIdx.x; begin < w.count;
       begin += static_cast<int64_t>(gridDim.x) * (kThreads * kUnroll)) {
    Offsets at[kUnroll];
    int64_t value[kUnroll];
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      if (begin + u * kThreads >= w.count) continue;
      at[u] = offsets_at(w, begin + u * kThreads);
      value[u] = index_at(w, at[u].index);
    }
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      if (begin + u * kThreads >= w.count) continue;
      const int64_t place = place_of(w, value[u], at[u].index);
      if (place >= 0) atomicAdd(own + (static_cast<uint32_t>(at[u].indexed + place * w.scale) >> shift), 1u);
    }
  }
  __syncthreads();
  for (int32_t k = static_cast<int32_t>(threadIdx.x); k < buckets; k += kThreads)
    if (own[k]) atomicAdd(counts + k, own[k]);
}
#elif STEP == 3 || STEP == 4
// Sums before each of `buckets` numbers: before[k] = numbers[0] + ... + numbers[k - 1]; they may be the same memory.
// The sum of all is given. `of_warps`: shared memory for a number of each warp.
__device__ __forceinline__ uint32_t sums_before(const uint32_t* numbers, uint32_t* before, int32_t buckets,
                                                uint32_t* of_warps) {
  constexpr int kEach = kMostBuckets / kThreads;
  const int lane = static_cast<int>(threadIdx.x % 32), warp = static_cast<int>(threadIdx.x / 32);
  const int32_t first = static_cast<int32_t>(threadIdx.x) * kEach;
  uint32_t own[kEach], sum = 0;
#pragma unroll
  for (int k = 0; k < kEach; ++k) {
    own[k] = first + k < buckets ? numbers[first + k] : 0;
    sum += own[k];
  }
  uint32_t up_to = sum;
#pragma unroll
  for (int by = 1; by < 32; by *= 2) {
    const uint32_t left = __shfl_up_sync(0xffffffffu, up_to, by);
    if (lane >= by) up_to += left;
  }
  if (lane == 31) of_warps[warp] = up_to;
  __syncthreads();
  uint32_t start = up_to - sum, all = 0;
#pragma unroll 1
  for (int k = 0; k < kThreads / 32; ++k) {
    if (k < warp) start += of_warps[k];
    all += of_warps[k];
  }
#pragma unroll
  for (int k = 0; k < kEach; ++k) {
    if (first + k < buckets) before[first + k] = start;
    start += own[k];
  }
  return all;
}
#if STEP == 3
// One block: where each bucket begins, and after the last one its end; `next` is where it is filled on.
extern "C" __global__ void __launch_bounds__(kThreads)
    whole_numbers(const uint32_t* counts, uint32_t* starts, uint32_t* next, int32_t buckets) {
  after_earlier_work();
  const uint32_t all = sums_before(counts, starts, buckets, reinterpret_cast<uint32_t*>(shared_memory));
  if (threadIdx.x == 0) starts[buckets] = all;
  __syncthreads();
  for (int32_t k = static_cast<int32_t>(threadIdx.x); k < buckets; k += kThreads) next[k] = starts[k];
}
#else
constexpr int kItems = ITEMS, kTile = kThreads * kItems;  // a thread's, a block's
// A block orders a tile by bucket in shared memory, so that what goes to a bucket is written side by side. Memory: a
// tile of summands, two numbers for each bucket and one for each warp.
extern "C" __global__ void __launch_bounds__(kThreads)
    whole_numbers(const Walk w, uint32_t* next, Summand* filled, int32_t shift, int32_t buckets) {
  after_earlier_work();
  auto* const tile = reinterpret_cast<Summand*>(shared_memory);
  auto* const begins = reinterpret_cast<uint32_t*>(tile + kTile);  // counts, then where a bucket begins in the tile
  uint32_t* const moved = begins + buckets;                        // how much further on it goes in `filled`
  for (int32_t k = static_cast<int32_t>(threadIdx.x); k < buckets; k += kThreads) begins[k] = 0;
  __syncthreads();
  const int64_t first = static_cast<int64_t>(blockIdx.x) * kTile + threadIdx.x;
  uint32_t to[kItems], ranks[(kItems + 1) / 2] = {}, there = 0;  // two ranks a word
  constexpr int kUnroll = 4;
#pragma unroll
  for (int start = 0; start < kItems; start += kUnroll) {
    Offsets at[kUnroll];
    int64_t value[kUnroll];
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      const int64_t i = first + (start + u) * kThreads;
      if (i >= w.count) continue;
      at[u] = offsets_at(w, i);
      value[u] = index_at(w, at[u].index);
    }
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      const int k = start + u;
      if (first + k * kThreads >= w.count) continue;
      const int64_t place = place_of(w, value[u], at[u].index);
      if (place < 0) continue;
      to[k] = static_cast<uint32_t>(at[u].indexed + place * w.scale);
      ranks[k / 2] |= atomicAdd(begins + (to[k] >> shift), 1u) << k % 2 * 16;
      there |= 1u << k;
    }
  }
  __syncthreads();
  for (int32_t k = static_cast<int32_t>(threadIdx.x); k < buckets; k += kThreads)
    moved[k] = begins[k] ? atomicAdd(next + k, begins[k]) : 0;
  __syncthreads();
  const uint32_t count = sums_before(begins, begins, buckets, moved + buckets);
  __syncthreads();
#pragma unroll
  for (int start = 0; start < kItems; start += kUnroll) {
    float value[kUnroll];
#pragma unroll
    for (int u = 0; u < kUnroll; ++u)
      if (there >> (start + u) & 1)
        value[u] = reinterpret_cast<const float*>(w.plain)[offsets_at(w, first + (start + u) * kThreads).plain];
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      const int k = start + u;
      if (there >> k & 1) tile[begins[to[k] >> shift] + (ranks[k / 2] >> k % 2 * 16 & 0xffff)] = {to[k], value[u]};
    }
  }
  for (int32_t k = static_cast<int32_t>(threadIdx.x); k < buckets; k += kThreads) moved[k] -= begins[k];
  __syncthreads();
  for (uint32_t i = threadIdx.x; i < count; i += kThreads) {
    const Summand s = tile[i];
    filled[moved[s.to >> shift] + i] = s;
  }
}
#endif
#else
// The largest exponent and the sum, in two words, of each of some neighboring elements, in shared memory.
struct Sums {
  uint32_t *largest, *low, *high;
  int32_t count;
  __device__ __forceinline__ Sums(int32_t count)
      : largest(reinterpret_cast<uint32_t*>(shared_memory)), low(largest + count), high(low + count), count(count) {
    for (int32_t k = static_cast<int32_t>(threadIdx.x); k < 3 * count; k += static_cast<int32_t>(blockDim.x))
      largest[k] = 0;
    __syncthreads();
  }
  __device__ __forceinline__ void note(const Decoded& d, uint32_t to) const {
    if (d.mantissa || d.special) atomicMax(largest + to, d.exponent);
  }
  __device__ __forceinline__ void add(const Decoded& d, uint32_t to, int32_t room) const {
    const uint32_t top = largest[to];
    if (top == 255) {
      if (d.special) atomicOr(low + to, d.special);
      return;
    }
    const int finer = room - static_cast<int>(top - d.exponent);
    const int64_t m = static_cast<int64_t>(d.mantissa),
                  size = finer >= 0    ? m << finer
                         : finer > -24 ? m >> -finer
                                       : 0,
                  summand = d.negative ? -size : size;
    const auto below = static_cast<uint32_t>(summand);
    const uint32_t before = below ? atomicAdd(low + to, below) : 0;
    const uint32_t above = static_cast<uint32_t>(summand >> 32) + (before + below < below);
    if (above) atomicAdd(high + to, above);
  }
  // To the `count` elements from `target` on, or as many as there are up to `end`.
  __device__ __forceinline__ void give(float* target, const float* end, int32_t room) const {
    for (int32_t k = static_cast<int32_t>(threadIdx.x); k < count && target + k < end;
         k += static_cast<int32_t>(blockDim.x)) {
      const uint32_t top = largest[k];
      if (!top) continue;
      float& t = target[k];
      const auto sum = static_cast<int64_t>(static_cast<uint64_t>(high[k]) << 32 | low[k]);
      t = top == 255 ? with_special(low[k], t)
                     : static_cast<float>(static_cast<double>(t) +
                                          static_cast<double>(sum) * two_to(static_cast<int>(top) - 150 - room));
    }
  }
};
#if STEP == 5
// A block adds up a bucket.
extern "C" __global__ void __launch_bounds__(kThreads)
    whole_numbers(float* target, const uint32_t* starts, const Summand* filled, int64_t span, int32_t shift,
                  int32_t room) {
  after_earlier_work();
  const uint32_t begin = starts[blockIdx.x], end = starts[blockIdx.x + 1];
  if (begin == end) return;
  const Sums sums(1 << shift);
  const uint32_t mask = (1u << shift) - 1;
  constexpr uint32_t kUnroll = 4;
  const auto each = [&](auto&& f) {
    for (uint32_t i = begin + threadIdx.x; i < end; i += blockDim.x * kUnroll) {
      Summand s[kUnroll];
#pragma unroll
      for (uint32_t u = 0; u < kUnroll; ++u)
        if (i + u * blockDim.x < end) s[u] = filled[i + u * blockDim.x];
#pragma unroll
      for (uint32_t u = 0; u < kUnroll; ++u)
        if (i + u * blockDim.x < end) f(decoded(s[u].value), s[u].to & mask);
    }
    __syncthreads();
  };
  each([&](const Decoded& d, uint32_t to) { sums.note(d, to); });
  each([&](const Decoded& d, uint32_t to) { sums.add(d, to, room); });
  sums.give(target + (static_cast<int64_t>(blockIdx.x) << shift), target + span, room);
}
#else
// One block adds up all, where there are few.
extern "C" __global__ void __launch_bounds__(kThreads)
    whole_numbers(const Walk w, float* target, int32_t span, int32_t room) {
  after_earlier_work();
  const Sums sums(span);
  constexpr int kUnroll = 4;
  const auto each = [&](auto&& f) {
    for (int64_t first = threadIdx.x; first < w.count; first += kThreads * kUnroll) {
      Offsets at[kUnroll];
      int64_t value[kUnroll];
      float source[kUnroll];
#pragma unroll
      for (int u = 0; u < kUnroll; ++u) {
        if (first + u * kThreads >= w.count) continue;
        at[u] = offsets_at(w, first + u * kThreads);
        value[u] = index_at(w, at[u].index);
        source[u] = reinterpret_cast<const float*>(w.plain)[at[u].plain];
      }
#pragma unroll
      for (int u = 0; u < kUnroll; ++u) {
        if (first + u * kThreads >= w.count) continue;
        const int64_t place = place_of(w, value[u], at[u].index);
        if (place >= 0) f(decoded(source[u]), static_cast<uint32_t>(at[u].indexed + place * w.scale));
      }
    }
    __syncthreads();
  };
  each([&](const Decoded& d, uint32_t to) { sums.note(d, to); });
  each([&](const Decoded& d, uint32_t to) { sums.add(d, to, room); });
  sums.give(target, target + span, room);
}
#endif
#endif
