// Where flags are set: counting them tile by tile, and writing down their places or ranks, or what stands there. COUNT,
// SUM, PLACES, TAKE, PUT, RANKS, COORDINATES, TAKE_RUNS: which kernel is wanted. A thread looks at 16 neighboring flags
// (bytes, zero or not), a block at a tile of 4096.
#pragma once
#include "digits.cuh"
#include "divider.cuh"
#include "fault.cuh"
#ifdef TAKE_RUNS
#include "lookback.cuh"
#endif

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
  after_earlier_work();
  __shared__ uint32_t sums[kSortWarps];
  const uint32_t own = static_cast<uint32_t>(__popc(flags_of(flags, n).bits));
  const uint32_t before = sum_before(own, sums);
  if (threadIdx.x == kSortBlock - 1) counts[blockIdx.x] = before + own;
}
#endif

#ifdef SUM
// One block: counts[i] becomes the sum of those before it, counts[tiles] the sum of all. A thread takes neighbors.
extern "C" __global__ void __launch_bounds__(kSortBlock) sum_flags(int64_t* counts, int64_t tiles) {
  after_earlier_work();
  constexpr int kEach = 16;
  __shared__ uint32_t sums[kSortWarps];
  __shared__ int64_t carried;
  int64_t carry = 0;
  for (int64_t first = 0; first < tiles; first += kSortBlock * kEach) {
    const int64_t start = first + threadIdx.x * kEach;
    uint32_t own[kEach], sum = 0;
#pragma unroll
    for (int k = 0; k < kEach; ++k) {
      own[k] = start + k < tiles ? static_cast<uint32_t>(counts[start + k]) : 0;
      sum += own[k];
    }
    int64_t before = carry + sum_before(sum, sums);
    if (threadIdx.x == kSortBlock - 1) carried = before + sum;
#pragma unroll
    for (int k = 0; k < kEach; ++k) {
      if (start + k < tiles) counts[start + k] = before;
      before += own[k];
    }
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

#if defined(PLACES) || defined(TAKE) || defined(PUT)
// Where in the tile its set flags are, in order, so that neighboring threads write neighbors; how many are in all.
struct Listed {
  uint16_t places[kTile];
  uint32_t sums[kSortWarps], count;
};
__device__ __forceinline__ int32_t list_flags(const Flags& f, Listed& listed) {
  const uint32_t own = static_cast<uint32_t>(__popc(f.bits));
  uint32_t to = sum_before(own, listed.sums);
  if (threadIdx.x == kSortBlock - 1) listed.count = to + own;
  for (uint32_t bits = f.bits; bits; bits &= bits - 1)
    listed.places[to++] = static_cast<uint16_t>(threadIdx.x * kFlags + __ffs(static_cast<int>(bits)) - 1);
  __syncthreads();
  return static_cast<int32_t>(listed.count);
}
#endif

#ifdef PLACES
#if BIG
using Index = uint64_t;
#else
using Index = uint32_t;
#endif
// The offsets of the flags that are set, by the strides of a tensor of the flags' shape.
extern "C" __global__ void __launch_bounds__(kSortBlock)
    flag_places(const uint8_t* flags, int64_t n, const int64_t* counts, int64_t* places, const Shape shape) {
  after_earlier_work();
  __shared__ Listed listed;
  const int32_t count = list_flags(flags_of(flags, n), listed);
  const int64_t first = static_cast<int64_t>(blockIdx.x) * kTile, to = counts[blockIdx.x];
  for (int32_t i = static_cast<int32_t>(threadIdx.x); i < count; i += kSortBlock) {
    Index rest = static_cast<Index>(first + listed.places[i]);
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
    places[to + i] = offset;
  }
}
#endif

#ifdef TAKE
// The elements, of WORD bytes, of a dense tensor of the flags' shape whose flags are set.
extern "C" __global__ void __launch_bounds__(kSortBlock)
    flagged_elements(const uint8_t* flags, int64_t n, const int64_t* counts, const typename Words<WORD>::type* x,
                     typename Words<WORD>::type* out) {
  after_earlier_work();
  __shared__ Listed listed;
  const int32_t count = list_flags(flags_of(flags, n), listed);
  const int64_t first = static_cast<int64_t>(blockIdx.x) * kTile, to = counts[blockIdx.x];
  for (int32_t i = static_cast<int32_t>(threadIdx.x); i < count; i += kSortBlock)
    out[to + i] = x[first + listed.places[i]];
}
#endif

#ifdef PUT
// The other way: the elements of `source`, of which there are `most`, go where flags are set.
extern "C" __global__ void __launch_bounds__(kSortBlock)
    put_elements(const uint8_t* flags, int64_t n, const int64_t* counts, const typename Words<WORD>::type* source,
                 int64_t most, typename Words<WORD>::type* out, Fault* fault, int32_t operation) {
  after_earlier_work();
  __shared__ Listed listed;
  const int32_t count = list_flags(flags_of(flags, n), listed);
  const int64_t first = static_cast<int64_t>(blockIdx.x) * kTile, from = counts[blockIdx.x];
  for (int32_t i = static_cast<int32_t>(threadIdx.x); i < count; i += kSortBlock) {
    const int64_t to = first + listed.places[i];
    if (from + i < most)
      out[to] = source[from + i];
    else
      report(fault, operation, from + i, to, most);
  }
}
#endif

#ifdef RANKS
// For each flag how many are set before it, with INCLUDING also it itself.
extern "C" __global__ void __launch_bounds__(kSortBlock)
    flag_ranks(const uint8_t* flags, int64_t n, const int64_t* counts, int64_t* ranks) {
  after_earlier_work();
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
  after_earlier_work();
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

#ifdef TAKE_RUNS
constexpr int kRunsAtOnce = sizeof(T) == 8 ? 3 : 4;  // blocks of a multiprocessor: more have no registers left

// What lane `lane` has.
__device__ __forceinline__ T of_lane(const T& value, int lane) {
  constexpr int kWords = (sizeof(T) + 3) / 4;
  uint32_t words[kWords] = {};
  T result;
  memcpy(words, &value, sizeof(T));
#pragma unroll
  for (int i = 0; i < kWords; ++i) words[i] = __shfl_sync(0xffffffffu, words[i], lane);
  memcpy(&result, words, sizeof(T));
  return result;
}

// The first element of each run of equal ones, in one pass: a block has a tile, counts where runs start in it and
// learns from the blocks before it how many start before. Of the tiles 256 make a group; `left` has a place for each
// tile and then one for each group; it and the ticket were zero before the kernel. A warp has 512 elements, 32 at a
// time.
extern "C" __global__ void __launch_bounds__(kSortBlock, kRunsAtOnce)
    take_runs(const T* x, int64_t n, Left<int64_t>* left, uint32_t* tickets, T* out, int64_t* total, int32_t tiles) {
  after_earlier_work();
  __shared__ uint32_t sums[kSortWarps], all[2];
  const auto number = static_cast<int32_t>(draw_ticket(tickets)), group = number / kSortBlock,
             in_group = number % kSortBlock, thread = static_cast<int32_t>(threadIdx.x), lane = thread % 32;
  const int64_t first = static_cast<int64_t>(number) * kTile + thread / 32 * (32 * kFlags) + lane;
  T values[kFlags]{}, before{};  // the one before the warp's first
#pragma unroll
  for (int j = 0; j < kFlags; ++j)
    if (first + j * 32 < n) values[j] = x[first + j * 32];
  if (lane == 0 && first > 0 && first <= n) before = x[first - 1];
  uint32_t starts[kFlags], count = 0;  // bit l of starts[j]: the element of lane l begins a run
#pragma unroll
  for (int j = 0; j < kFlags; ++j) {
    T earlier = of_lane(values[j], lane == 0 ? 0 : lane - 1);
    if (lane == 0) earlier = before;
    before = of_lane(values[j], 31);
    const int64_t i = first + j * 32;
    const bool begins = i < n && (i == 0 || convert<opmath<T>>(values[j]) != convert<opmath<T>>(earlier));
    starts[j] = __ballot_sync(0xffffffffu, begins);
    count += static_cast<uint32_t>(__popc(static_cast<int>(starts[j])));
  }
  // The sum of a number of each thread, of those before this one's; and of all.
  const auto sum_of = [&](uint32_t own, uint32_t which) {
    const uint32_t earlier = sum_before(own, sums);
    if (thread == kSortBlock - 1) all[which] = earlier + own;
    __syncthreads();
    return earlier;
  };
  const uint32_t warp_before = sum_of(lane == 31 ? count : 0, 0), mine = all[0];
  if (thread == 0) leave_value(left + number, static_cast<int64_t>(mine));
  const uint32_t beside =
      thread < in_group ? static_cast<uint32_t>(wait_for_value(left + group * kSortBlock + thread)) : 0;
  sum_of(beside, 1);
  int64_t place = all[1];
  if (in_group == kSortBlock - 1 && thread == 0) leave_value(left + tiles + group, place + mine);
  for (int32_t from = 0; from < group; from += 32) {  // each warp for itself
    int64_t sum = from + lane < group ? wait_for_value(left + tiles + from + lane) : 0;
#pragma unroll
    for (int by = 16; by > 0; by /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, by);
    place += sum;
  }
  if (number == tiles - 1 && thread == 0) *total = place + mine;
  out += place + warp_before;
  const uint32_t below = (1u << lane) - 1;
#pragma unroll
  for (int j = 0; j < kFlags; ++j) {
    if (starts[j] >> lane & 1) out[__popc(static_cast<int>(starts[j] & below))] = values[j];
    out += __popc(static_cast<int>(starts[j]));
  }
}
#endif
