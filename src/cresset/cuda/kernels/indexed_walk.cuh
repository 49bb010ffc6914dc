// Moving and combining elements through indices: gather, index_select, x[i], scatter, index_add and their kind.
//
// At each position p of the walk the element plain[p · plain_strides] meets indexed[p · indexed_strides + place *
// scale], where `place` is what index[p · index_strides] stands for. The same structs as in
// native/cuda/indexed_walk.cpp. MOVE, SERIAL, STAGED, KEYS, SORTED, SLICES, CROSSING, FEW, RUNS, GATHER: which kernel
// is wanted. Sums by atomics are in indexed_walk_sums.cuh.
//
// Where an index occurs twice, combining goes in the order of the index, or for long runs in a fixed tree, or adds
// whole numbers: the same bits on every run. Plain writes to one element happen in any order, as in PyTorch.
#pragma once
#include "divider.cuh"
#include "fault.cuh"

constexpr int kMostDims = 8;

struct Walk {
  int64_t count;
  char *plain, *indexed;
  const char* index;
  int64_t scale, bound, wrap;
  Fault* fault;
  int64_t operation;
  Divider sizes[kMostDims];
  int64_t plain_strides[kMostDims], indexed_strides[kMostDims], index_strides[kMostDims];
};

#if BIG
using Index = uint64_t;
#else
using Index = uint32_t;
#endif

struct Offsets {
  int64_t plain, indexed, index;
};
__device__ __forceinline__ Offsets offsets_at(const Walk& w, int64_t position) {
  Offsets o = {0, 0, 0};
  Index rest = static_cast<Index>(position);
#pragma unroll
  for (int d = RANK - 1; d >= 0; --d) {
    Index at = rest;
    if (d > 0) {
      rest = divided(rest, w.sizes[d]);
      at -= rest * w.sizes[d].divisor;
    }
    const int64_t i = static_cast<int64_t>(at);
    o.plain += i * w.plain_strides[d];
    o.indexed += i * w.indexed_strides[d];
    o.index += i * w.index_strides[d];
  }
  return o;
}

// What an index stands for; -1 for a bad one, which is reported.
__device__ __forceinline__ int64_t place_of(const Walk& w, int64_t value, int64_t position) {
  const int64_t place = value < 0 ? value + w.wrap : value;
  if (static_cast<uint64_t>(place) < static_cast<uint64_t>(w.bound)) return place;
  report(w.fault, static_cast<int32_t>(w.operation), value, position, w.bound);
  return -1;
}
__device__ __forceinline__ int64_t index_at(const Walk& w, int64_t i) {
  return static_cast<int64_t>(reinterpret_cast<const INDEX*>(w.index)[i]);
}

#ifdef MOVE
// plain = indexed, or with WRITE indexed = plain; in words of WORD bytes. A bad index reads the first place, and writes
// nothing. With NEIGHBORS (of reading) a thread has four that lie side by side, on the plain side as in the index.
#if NEIGHBORS
extern "C" __global__ void __launch_bounds__(256) indexed_move(const Walk w) {
  after_earlier_work();
  constexpr int kUnroll = 4;
  using Word = typename Words<WORD>::type;
  const int64_t first = (static_cast<int64_t>(blockIdx.x) * 256 + threadIdx.x) * kUnroll;
  if (first >= w.count) return;
  const Offsets at = offsets_at(w, first);
  const Vector<INDEX, kUnroll> value = load_vector<kUnroll>(reinterpret_cast<const INDEX*>(w.index) + at.index);
  Vector<Word, kUnroll> words;
#pragma unroll
  for (int u = 0; u < kUnroll; ++u) {
    const int64_t place = place_of(w, static_cast<int64_t>(value[u]), at.index + u);
    words[u] = reinterpret_cast<const Word*>(
        w.indexed)[at.indexed + u * w.indexed_strides[RANK - 1] + (place < 0 ? 0 : place * w.scale)];
  }
  store_vector(reinterpret_cast<Word*>(w.plain) + at.plain, words);
}
#else
extern "C" __global__ void __launch_bounds__(256) indexed_move(const Walk w) {
  after_earlier_work();
  constexpr int kUnroll = WORD >= 16 ? 2 : 4;  // as in native/cuda/indexed_walk.cpp
  using Word = typename Words<WORD>::type;
  const int64_t first = static_cast<int64_t>(blockIdx.x) * (256 * kUnroll) + threadIdx.x;
  Offsets at[kUnroll];
  int64_t value[kUnroll];
#pragma unroll
  for (int u = 0; u < kUnroll; ++u) {
    const int64_t i = first + u * 256;
    if (i >= w.count) continue;
    at[u] = offsets_at(w, i);
    value[u] = index_at(w, at[u].index);
  }
  Word words[kUnroll];
#pragma unroll
  for (int u = 0; u < kUnroll; ++u) {
    if (first + u * 256 >= w.count) continue;
    const int64_t place = place_of(w, value[u], at[u].index);
#if WRITE
    at[u].indexed = place < 0 ? -1 : at[u].indexed + place * w.scale;
    words[u] = reinterpret_cast<const Word*>(w.plain)[at[u].plain];
#else
    words[u] = reinterpret_cast<const Word*>(w.indexed)[at[u].indexed + (place < 0 ? 0 : place * w.scale)];
#endif
  }
#pragma unroll
  for (int u = 0; u < kUnroll; ++u) {
    if (first + u * 256 >= w.count) continue;
#if WRITE
    if (at[u].indexed >= 0) reinterpret_cast<Word*>(w.indexed)[at[u].indexed] = words[u];
#else
    reinterpret_cast<Word*>(w.plain)[at[u].plain] = words[u];
#endif
  }
}
#endif
#endif

#ifdef HOW
// 0: sum, 1: product, 2: maximum, 3: minimum; a nan wins.
template <class A>
__device__ __forceinline__ A combined(A a, A b) {
  if constexpr (HOW == 0)
    return static_cast<A>(a + b);
  else if constexpr (HOW == 1)
    return static_cast<A>(a * b);
  else if constexpr (is_complex<A>)
    return a;
  else if constexpr (HOW == 2)
    return b > a || b != b ? b : a;
  else
    return b < a || b != b ? b : a;
}
#endif

#ifdef SERIAL
// A thread walks the indexed dimension of its lane. `walk` goes over the other dimensions.
extern "C" __global__ void __launch_bounds__(256)
    combine_serial(const Walk w, int64_t along, int64_t plain_along, int64_t index_along) {
  after_earlier_work();
  using A = opmath<T>;
  const int64_t lane = static_cast<int64_t>(blockIdx.x) * 256 + threadIdx.x;
  if (lane >= w.count) return;
  const Offsets at = offsets_at(w, lane);
  const T* from = reinterpret_cast<const T*>(w.plain) + at.plain;
  T* to = reinterpret_cast<T*>(w.indexed) + at.indexed;
  for (int64_t i = 0; i < along; ++i) {
    const int64_t where = at.index + i * index_along, place = place_of(w, index_at(w, where), where);
    if (place < 0) continue;
    T& target = to[place * w.scale];
    target = convert<T>(combined<A>(convert<A>(target), convert<A>(from[i * plain_along])));
  }
}
#endif

#ifdef STAGED
// Lanes whose places all fit into shared memory: a warp has a lane, and walks its indexed dimension 32 elements at a
// time. Those of the 32 that meet take turns, in their order; where many meet and all of them are neighbors, as in
// sorted indices, the first of them takes all turns. Warps of a block have neighboring lanes; with COLUMNS these lie
// side by side in memory, otherwise the places of a lane do.
extern __shared__ uint4 shared_memory[];
extern "C" __global__ void __launch_bounds__(32 * WARPS)
    combine_staged(const Walk w, int64_t along, int64_t plain_along, int64_t index_along) {
  after_earlier_work();
  using A = opmath<T>;
  constexpr int kUnroll = 8;
  constexpr unsigned kAll = 0xffffffffu;
  const int warp = static_cast<int>(threadIdx.x / 32), thread = static_cast<int>(threadIdx.x % 32);
  const int64_t first = static_cast<int64_t>(blockIdx.x) * WARPS,
                lanes = w.count - first < WARPS ? w.count - first : WARPS;
  const bool mine = warp < lanes;
  const Offsets at = offsets_at(w, mine ? first + warp : first);
  const int places = static_cast<int>(w.bound);
  A* const row = reinterpret_cast<A*>(shared_memory) + warp * places;
  A* const beside = reinterpret_cast<A*>(shared_memory) + WARPS * places + warp * 32;
  // The lane of which this thread brings every 32nd place, and takes it back.
#if COLUMNS
  const int brought = static_cast<int>(threadIdx.x % WARPS), first_place = static_cast<int>(threadIdx.x / WARPS);
#else
  const int brought = warp, first_place = thread;
#endif
  const int end = brought < lanes ? places : 0;
  A* const here = reinterpret_cast<A*>(shared_memory) + brought * places;
  T* const there = reinterpret_cast<T*>(w.indexed) + offsets_at(w, end ? first + brought : first).indexed;
  for (int place = first_place; place < end; place += 32 * kUnroll) {
    T read[kUnroll];
#pragma unroll
    for (int u = 0; u < kUnroll; ++u)
      if (place + u * 32 < end) read[u] = there[(place + u * 32) * w.scale];
#pragma unroll
    for (int u = 0; u < kUnroll; ++u)
      if (place + u * 32 < end) here[place + u * 32] = convert<A>(read[u]);
  }
  __syncthreads();
  const T* const from = reinterpret_cast<const T*>(w.plain) + at.plain;
  for (int64_t start = 0; mine && start < along; start += 32 * kUnroll) {
    int64_t index[kUnroll];
    T value[kUnroll];
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {  // all that is read, before anything is reported
      const int64_t i = start + u * 32 + thread;
      if (i >= along) continue;
      index[u] = index_at(w, at.index + i * index_along);
      value[u] = from[i * plain_along];
    }
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      const int64_t i = start + u * 32 + thread;
      if (start + u * 32 >= along) break;
      const int place = i < along ? static_cast<int>(place_of(w, index[u], at.index + i * index_along)) : -1;
      const unsigned meeting = __match_any_sync(kAll, place);
      const int turn = place < 0 ? -1 : __popc(meeting & ((1u << thread) - 1));
      const unsigned run = meeting >> (__ffs(static_cast<int>(meeting)) - 1);
      if (__any_sync(kAll, turn > 3) && __all_sync(kAll, (run & (run + 1)) == 0)) {
        if (place >= 0) beside[thread] = convert<A>(value[u]);
        __syncwarp();
        if (turn == 0) {
          A all = row[place];
          for (int k = thread, end = thread + __popc(meeting); k < end; ++k) all = combined<A>(all, beside[k]);
          row[place] = all;
        }
        __syncwarp();
        continue;
      }
      int now = 0;
      do {
        if (turn == now) row[place] = combined<A>(row[place], convert<A>(value[u]));
        __syncwarp();
      } while (__any_sync(kAll, turn > now++));
    }
  }
  __syncthreads();
  for (int place = first_place; place < end; place += 32) there[place * w.scale] = convert<T>(here[place]);
}
#endif

#ifdef KEYS
// What the index stands for, as keys to sort by: the place along the indexed dimension for a list of slices (the walk
// is that list), or with WHOLE the offset of the element. A bad index, and `left_out`, get the key `none`, which comes
// last.
extern "C" __global__ void __launch_bounds__(256)
    index_keys(const Walk w, KEY* keys, uint64_t none, int64_t left_out, int32_t* counts) {
  after_earlier_work();
  const int64_t i = static_cast<int64_t>(blockIdx.x) * 256 + threadIdx.x;
  if (i >= w.count) return;
  const Offsets at = offsets_at(w, i);
  const int64_t value = index_at(w, at.index);
  KEY key = static_cast<KEY>(none);
  if (value != left_out) {
    const int64_t place = place_of(w, value, at.index);
    if (place >= 0) {
#if WHOLE
      key = static_cast<KEY>(at.indexed + place * w.scale);
#else
      key = static_cast<KEY>(place);
#endif
      if (counts) atomicAdd(counts + place, 1);
    }
  }
  keys[i] = key;
}
#endif

#ifdef SORTED
__device__ __forceinline__ opmath<T> element_at(const Walk& w, int32_t position) {
  return convert<opmath<T>>(reinterpret_cast<const T*>(w.plain)[offsets_at(w, position).plain]);
}
// Elements sorted by the offset they go to. A warp looks after the runs that begin among its 32: short ones a thread
// each, in order; one that goes on beyond them all lanes together.
extern "C" __global__ void __launch_bounds__(256)
    combine_sorted(const Walk w, const KEY* keys, const int32_t* positions, KEY none) {
  after_earlier_work();
  using A = opmath<T>;
  const unsigned lane = threadIdx.x % 32;
  const int64_t n = w.count, i = static_cast<int64_t>(blockIdx.x) * 256 + threadIdx.x, window = i - lane;
  if (window >= n) return;  // the whole warp
  const KEY key = i < n ? keys[i] : none;
  const bool is_head = i < n && key != none && (i == 0 || keys[i - 1] != key);
  const int64_t stop = window + 32 < n ? window + 32 : n;
  const KEY last = keys[stop - 1];
  const bool goes_on = stop < n && last != none && keys[stop] == last;
  T* const to = reinterpret_cast<T*>(w.indexed);
  const bool is_long = is_head && goes_on && key == last;
  if (is_head && !is_long) {
    A sum = convert<A>(to[key]);
    for (int64_t k = i; k < stop && keys[k] == key; ++k) sum = combined<A>(sum, element_at(w, positions[k]));
    to[key] = convert<T>(sum);
  }
  const uint32_t heads = __ballot_sync(0xffffffffu, is_long);
  if (heads == 0) return;
  const int64_t start = window + __ffs(static_cast<int>(heads)) - 1;
  // Every lane takes each 32nd element of the run. The run is longer than what remains of the window, but may be
  // shorter than the warp.
  __shared__ alignas(16) char room[256 * sizeof(A)];
  A* const sums = reinterpret_cast<A*>(room) + (threadIdx.x - lane);
  A sum{};
  bool any = false;
  for (int64_t k = start + lane; k < n && keys[k] == last; k += 32) {
    const A more = element_at(w, positions[k]);
    sum = any ? combined<A>(sum, more) : more;
    any = true;
  }
  const uint32_t with = __ballot_sync(0xffffffffu, any);  // the first lanes
  sums[lane] = sum;
  __syncwarp();
  if (lane == 0) {
    A total = convert<A>(to[last]);
    for (int k = 0; k < __popc(with); ++k) total = combined<A>(total, sums[k]);
    to[last] = convert<T>(total);
  }
}
#endif

#if defined(SLICES) || defined(CROSSING) || defined(FEW)
constexpr int kWindow = 32, kLanes = 128;

// Slices sorted by the place they go to, in windows of 32. A lane is VECTOR neighboring elements of a slice.
struct Slices {
  int64_t lanes, lane_blocks, n;
  T* target;
  const T* source;
  const uint32_t* keys;
  const int32_t* positions;
  const int32_t* counts;  // how often each place occurs, when each is to count by one over that; else null
  opmath<T>* partial;     // of runs that cross windows: [window][0: from before, 1: to be continued][lanes * VECTOR]
  int64_t target_step, source_step, none;
  Divider sizes[kMostDims];
  int64_t target_strides[kMostDims], source_strides[kMostDims];
};

using A = opmath<T>;
using Lane = Vector<A, VECTOR>;

__device__ __forceinline__ Lane load_lane(const T* p) {
  const Vector<T, VECTOR> stored = load_vector<VECTOR>(p);
  Lane lane;
#pragma unroll
  for (int k = 0; k < VECTOR; ++k) lane[k] = convert<A>(stored[k]);
  return lane;
}
__device__ __forceinline__ void store_lane(T* p, const Lane& lane) {
  Vector<T, VECTOR> stored;
#pragma unroll
  for (int k = 0; k < VECTOR; ++k) stored[k] = convert<T>(lane[k]);
  store_vector(p, stored);
}
__device__ __forceinline__ void combine_into(Lane& a, const Lane& b) {
#pragma unroll
  for (int k = 0; k < VECTOR; ++k) a[k] = combined<A>(a[k], b[k]);
}
__device__ __forceinline__ void find_lane(const Slices& s, int64_t lane, int64_t& target, int64_t& source) {
  target = source = 0;
  Index rest = static_cast<Index>(lane);
#pragma unroll
  for (int d = RANK - 1; d >= 0; --d) {
    Index at = rest;
    if (d > 0) {
      rest = divided(rest, s.sizes[d]);
      at -= rest * s.sizes[d].divisor;
    }
    target += static_cast<int64_t>(at) * s.target_strides[d];
    source += static_cast<int64_t>(at) * s.source_strides[d];
  }
}
// What the target's elements are before anything is added: themselves, or with FRESH zero.
__device__ __forceinline__ Lane start_of(const T* target) {
#if FRESH
  Lane lane;
#pragma unroll
  for (int k = 0; k < VECTOR; ++k) lane[k] = A(0);
  return lane;
#else
  return load_lane(target);
#endif
}
#endif

#ifdef SLICES
extern "C" __global__ void __launch_bounds__(kLanes) combine_slices(const Slices s) {
  after_earlier_work();
  __shared__ int64_t keys[kWindow + 2];  // the one before, the window's, the one after
  __shared__ int32_t positions[kWindow];
  const int64_t window = blockIdx.x / s.lane_blocks, lane = (blockIdx.x % s.lane_blocks) * kLanes + threadIdx.x;
  const int64_t first = window * kWindow;
  const int count = static_cast<int>(s.n - first < kWindow ? s.n - first : kWindow);
  for (int i = static_cast<int>(threadIdx.x); i < kWindow + 2; i += kLanes) {
    const int64_t at = first + i - 1;
    keys[i] = at >= 0 && at < s.n ? static_cast<int64_t>(s.keys[at]) : -1;
    if (i >= 1 && i <= count) positions[i - 1] = s.positions[at];
  }
  __syncthreads();
  if (lane >= s.lanes) return;
  int64_t to, from;
  find_lane(s, lane, to, from);
  for (int start = 0; start < count;) {
    const int64_t key = keys[start + 1];
    int stop = start + 1;
    while (stop < count && keys[stop + 1] == key) ++stop;
    if (key == s.none) return;  // the last
    const bool from_before = start == 0 && keys[0] == key, goes_on = stop == count && keys[count + 1] == key;
    T* const target = s.target + to + key * s.target_step;
    Lane sum;
    bool any = false;
    if (!from_before && !goes_on) {
      sum = start_of(target);
      any = true;
    }
    A scale = A(1);
    if constexpr (!is_complex<A> && HOW == 0)
      if (s.counts) scale = A(1) / static_cast<A>(s.counts[key]);
    for (int k = start; k < stop;) {
      constexpr int kUnroll = 4;
      Lane more[kUnroll];
#pragma unroll
      for (int u = 0; u < kUnroll; ++u)
        if (k + u < stop) more[u] = load_lane(s.source + from + positions[k + u] * s.source_step);
#pragma unroll
      for (int u = 0; u < kUnroll; ++u) {
        if (k + u >= stop) continue;
        if constexpr (!is_complex<A> && HOW == 0)
          if (s.counts)
#pragma unroll
            for (int e = 0; e < VECTOR; ++e) more[u][e] = more[u][e] * scale;
        if (any)
          combine_into(sum, more[u]);
        else
          sum = more[u];
        any = true;
      }
      k += kUnroll;
    }
    if (!from_before && !goes_on) {
      store_lane(target, sum);
    } else {
      A* const aside = s.partial + ((window * 2 + (from_before ? 0 : 1)) * s.lanes + lane) * VECTOR;
#pragma unroll
      for (int k = 0; k < VECTOR; ++k) aside[k] = sum[k];
    }
    start = stop;
  }
}
#endif

#ifdef CROSSING
// Runs that cross windows: the window in which a run begins sums what the windows have put aside.
extern "C" __global__ void __launch_bounds__(kLanes) combine_crossing(const Slices s) {
  after_earlier_work();
  const int64_t window = blockIdx.x / s.lane_blocks, lane = (blockIdx.x % s.lane_blocks) * kLanes + threadIdx.x;
  const int64_t end = (window + 1) * kWindow;
  if (lane >= s.lanes || end >= s.n) return;
  const uint32_t key = s.keys[end];
  if (key != s.keys[end - 1] || key == static_cast<uint32_t>(s.none)) return;
  if (window > 0 && s.keys[window * kWindow - 1] == key) return;  // it began earlier
  int64_t to, from;
  find_lane(s, lane, to, from);
  T* const target = s.target + to + key * s.target_step;
  Lane sum = start_of(target);
  const auto add = [&](int64_t slot) {
    const A* aside = s.partial + (slot * s.lanes + lane) * VECTOR;
    Lane more;
#pragma unroll
    for (int k = 0; k < VECTOR; ++k) more[k] = aside[k];
    combine_into(sum, more);
  };
  add(window * 2 + 1);
  for (int64_t next = window + 1; next * kWindow < s.n && s.keys[next * kWindow] == key; ++next) add(next * 2);
  store_lane(target, sum);
}
#endif

#ifdef FEW
// Few slices, unsorted: a block has some lanes of one of them. Unless an earlier one goes to the same place, it
// combines all that go there, in their order.
constexpr int kFew = 1024, kFewLanes = 256, kEach = kFew / kFewLanes;
extern "C" __global__ void __launch_bounds__(kFewLanes) combine_few(const Walk w, const Slices s, int64_t index_along) {
  after_earlier_work();
  __shared__ int32_t meeting[kFew], of_warp[kFewLanes / 32];
  const int64_t own = blockIdx.x / s.lane_blocks, thread = threadIdx.x,
                lane = (blockIdx.x % s.lane_blocks) * kFewLanes + thread;
  const int64_t place = place_of(w, index_at(w, own * index_along), own * index_along);
  if (place < 0) return;
  bool meets[kEach], is_late = false;
  int count = 0;
#pragma unroll
  for (int k = 0; k < kEach; ++k) {
    const int64_t i = thread * kEach + k, value = i < s.n ? index_at(w, i * index_along) : INT64_MIN;
    meets[k] = i < s.n && (value < 0 ? value + w.wrap : value) == place;
    is_late = is_late || (meets[k] && i < own);
    count += meets[k] ? 1 : 0;
  }
  if (__syncthreads_or(is_late ? 1 : 0)) return;
  int before = count;
#pragma unroll
  for (int by = 1; by < 32; by *= 2) {
    const int more = __shfl_up_sync(0xffffffffu, before, by);
    if (thread % 32 >= by) before += more;
  }
  if (thread % 32 == 31) of_warp[thread / 32] = before;
  __syncthreads();
  int all = 0, at = before - count;
#pragma unroll
  for (int k = 0; k < kFewLanes / 32; ++k) {
    if (k < thread / 32) at += of_warp[k];
    all += of_warp[k];
  }
#pragma unroll
  for (int k = 0; k < kEach; ++k)
    if (meets[k]) meeting[at++] = static_cast<int32_t>(thread * kEach + k);
  __syncthreads();
  if (lane >= s.lanes) return;
  int64_t to, from;
  find_lane(s, lane, to, from);
  T* const target = s.target + to + place * s.target_step;
  Lane sum = start_of(target);
  constexpr int kUnroll = 4;
#pragma unroll 1
  for (int first = 0; first < all; first += kUnroll) {
    Lane more[kUnroll];
#pragma unroll
    for (int u = 0; u < kUnroll; ++u)
      if (first + u < all) more[u] = load_lane(s.source + from + meeting[first + u] * s.source_step);
#pragma unroll
    for (int u = 0; u < kUnroll; ++u)
      if (first + u < all) combine_into(sum, more[u]);
  }
  store_lane(target, sum);
}
#endif

#ifdef RUNS
// Where the keys that are each place begin and end among the sorted ones; [places] begins, then [places] ends.
extern "C" __global__ void __launch_bounds__(256)
    key_runs(const uint32_t* keys, int32_t* runs, int64_t n, int64_t places) {
  after_earlier_work();
  const int64_t i = static_cast<int64_t>(blockIdx.x) * 256 + threadIdx.x;
  if (i >= n || keys[i] >= places) return;
  if (i == 0 || keys[i - 1] != keys[i]) runs[keys[i]] = static_cast<int32_t>(i);
  if (i + 1 == n || keys[i + 1] != keys[i]) runs[places + keys[i]] = static_cast<int32_t>(i + 1);
}
#endif

#ifdef GATHER
// Sorted slices whose places lie side by side: a thread has one element of the target and combines, in order, what goes
// there. The walk goes over the slice; its count is that of the target's elements.
extern "C" __global__ void __launch_bounds__(256)
    gather_runs(const Walk w, const int32_t* runs, const int32_t* positions, int64_t places, int64_t plain_along) {
  after_earlier_work();
  using A = opmath<T>;
  const int64_t i = static_cast<int64_t>(blockIdx.x) * 256 + threadIdx.x;
  if (i >= w.count) return;
  const int64_t lane = i / places, place = i - lane * places;
  const int32_t begin = runs[place], end = runs[places + place];
  if (begin == end) return;
  const Offsets at = offsets_at(w, lane);
  const T* from = reinterpret_cast<const T*>(w.plain) + at.plain;
  T* to = reinterpret_cast<T*>(w.indexed) + at.indexed + place * w.scale;
  A sum = convert<A>(*to);
  for (int32_t k = begin; k < end; ++k) sum = combined<A>(sum, convert<A>(from[positions[k] * plain_along]));
  *to = convert<T>(sum);
}
#endif
