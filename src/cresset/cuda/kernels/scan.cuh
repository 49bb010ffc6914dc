// Scans: cumulative sums, products, log-sum-exps and extremes. A block scans a row tile by tile; the tiles of long rows
// among few are many blocks' (Note [Looking back] in look_back.cuh). Along another dimension than the last, a thread
// has a column.
//
// -D options: OPERATION (0 sum, 1 product, 2 log-sum-exp, 3 largest, 4 smallest), ELEMENT, COMPUTED, RESULT, KERNEL (0
// rows, 1 columns), LOOKS_BACK, TIMES (vectors that a thread has of a tile), VECTOR (their elements), ALIGNED (they can
// be loaded and stored whole).
#pragma once
#include "look_back.cuh"

using T = ELEMENT;
using C = COMPUTED;
using R = RESULT;
constexpr int kBlock = 256, kWarps = kBlock / 32;
constexpr int kResident = LOOKS_BACK ? 3 : 4;  // blocks of a multiprocessor at a time

// ---------------------------------------------------------------- values
// `joined` takes a run of elements and the run behind it.

#if OPERATION <= 1
struct Value {
  wide<C> value;
};
CRESSET_INLINE Value neutral() { return {wide<C>(static_cast<part<wide<C>>>(OPERATION))}; }
CRESSET_INLINE Value value_of(C x, int64_t) { return {convert<wide<C>>(x)}; }
template <class A>
CRESSET_INLINE A combined(A a, A b) {
  if constexpr (is_same<A, int64_t>)
    return OPERATION == 0 ? math::add(a, b) : math::mul(a, b);
  else
    return OPERATION == 0 ? a + b : a * b;
}
CRESSET_INLINE Value joined(const Value& a, const Value& b) { return {combined(a.value, b.value)}; }
CRESSET_INLINE void store(const Value& v, R* y, int64_t*, int64_t at) { y[at] = convert<R>(convert<C>(v.value)); }
#elif OPERATION == 2
// The sum of exp(x - largest) beside the largest, in the precision that is computed in: a sum of positive numbers loses
// no digits, and its logarithm needs fewer than it has.
struct Value {
  C largest, sum;
};
CRESSET_INLINE Value neutral() { return {static_cast<C>(-INFINITY), C(0)}; }
CRESSET_INLINE Value value_of(C x, int64_t) { return {x, C(1)}; }
CRESSET_INLINE Value joined(const Value& a, const Value& b) {
  const bool falls = a.largest >= b.largest;  // a nan makes the sum one, for good
  const C high = falls ? a.largest : b.largest, low = falls ? b.largest : a.largest;
  const C e = math::exp(low == high ? C(0) : low - high);
  return {high, (falls ? a.sum : b.sum) + (falls ? b.sum : a.sum) * e};
}
CRESSET_INLINE void store(const Value& v, R* y, int64_t*, int64_t at) {
  y[at] = convert<R>(v.largest + math::log(v.sum));
}
#else
// The last of equal values counts, and nan wins for good.
struct Value {
  C value;
  int64_t index;  // -1: of no element
};
CRESSET_INLINE Value neutral() { return {C(0), -1}; }
CRESSET_INLINE Value value_of(C x, int64_t index) { return {x, index}; }
CRESSET_INLINE Value joined(const Value& a, const Value& b) {
  if (a.index < 0 || b.index < 0) return a.index < 0 ? b : a;
  const bool takes =
      b.value != b.value || (a.value == a.value && (OPERATION == 3 ? b.value >= a.value : b.value <= a.value));
  return takes ? b : a;
}
CRESSET_INLINE void store(const Value& v, R* y, int64_t* indices, int64_t at) {
  y[at] = convert<R>(v.value);
  indices[at] = v.index;
}
#endif

// ---------------------------------------------------------------- rows

#if KERNEL == 0
constexpr int kTile = kBlock * VECTOR * TIMES;

// What a thread has of a tile: a warp has neighboring elements, and its lanes take vectors of them by turns. Beyond the
// end nothing is read.
struct Loaded {
  Vector<T, VECTOR> vectors[TIMES];
};
CRESSET_INLINE Loaded loaded_from(const T* row, int64_t at, int64_t n) {
  Loaded loaded;
#pragma unroll
  for (int j = 0; j < TIMES; ++j, at += 32 * VECTOR) {
    if (ALIGNED && at + VECTOR <= n) {
      loaded.vectors[j] = load_vector<VECTOR>(row + at);
      continue;
    }
#pragma unroll
    for (int k = 0; k < VECTOR; ++k)
      if (at + k < n) loaded.vectors[j][k] = row[at + k];
  }
  return loaded;
}

// With LOOKS_BACK blocks take tiles of all rows by tickets; without, a block has a row, tile by tile. The next tile is
// on its way while one is scanned.
extern "C" __global__ void __launch_bounds__(kBlock, OPERATION <= 2 ? kResident : 1)
    scan_rows(const T* x, R* y, int64_t* indices, unsigned long long* tickets, const LookBack back, int64_t rows,
              int64_t n, int64_t tiles) {
  after_earlier_work();
  __shared__ __align__(16) char bytes[(kWarps + 1) * sizeof(Value)];
  __shared__ int64_t taken;
  auto* parts = reinterpret_cast<Value*>(bytes);
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int64_t units = rows * tiles, first = warp * (32 * VECTOR * TIMES) + lane * VECTOR;
  int64_t unit = blockIdx.x * tiles;
  if (LOOKS_BACK) {
    if (threadIdx.x == 0) taken = static_cast<int64_t>(atomicAdd(tickets, 1ull));
    __syncthreads();
    unit = taken;
    __syncthreads();
    if (unit >= units) return;
  }
  int64_t row = unit / tiles, tile = unit - row * tiles;
  Loaded next = loaded_from(x + row * n, tile * kTile + first, n);
  Value carry = neutral();
  for (bool more = true; more;) {
    const Loaded loaded = next;
    const int64_t this_row = row, this_tile = tile, begin = tile * kTile + first;
    int64_t ticket = 0;
    if (LOOKS_BACK && threadIdx.x == 0) ticket = static_cast<int64_t>(atomicAdd(tickets, 1ull));
    Value before[TIMES], sum = neutral();  // of the warp's elements
#pragma unroll
    for (int j = 0; j < TIMES; ++j) {
      Value mine = neutral();
#pragma unroll
      for (int k = 0; k < VECTOR; ++k) {
        const int64_t at = begin + j * 32 * VECTOR + k;
        if (at >= n) continue;
        const Value value = value_of(convert<C>(loaded.vectors[j][k]), at);
        mine = k == 0 ? value : joined(mine, value);
      }
#pragma unroll
      for (int by = 1; by < 32; by *= 2) {
        const Value other = shuffle_up(mine, by);
        if (lane >= by) mine = joined(other, mine);
      }
      const Value left = shuffle_up(mine, 1);
      before[j] = lane > 0 ? joined(sum, left) : sum;
      sum = joined(sum, shuffle_from(mine, 31));
    }
    if (lane == 0) parts[warp] = sum;
    if (threadIdx.x == 0) taken = ticket;
    __syncthreads();
    Value ahead = neutral(), all = neutral();
#pragma unroll 1
    for (int w = 0; w < kWarps; ++w) {
      if (w == warp) ahead = all;
      all = joined(all, parts[w]);
    }
    if (LOOKS_BACK) {
      unit = taken;
      more = unit < units;
      row = unit / tiles;
      tile = unit - row * tiles;
    } else {
      more = ++tile < tiles;
    }
    if (more) next = loaded_from(x + row * n, tile * kTile + first, n);
#if LOOKS_BACK
    if (warp == 0) {
      const Value found = back.before(this_row, this_tile, all, neutral());
      if (lane == 0) parts[kWarps] = found;
    }
    __syncthreads();
    carry = parts[kWarps];
#endif
    ahead = joined(carry, ahead);
#pragma unroll
    for (int j = 0; j < TIMES; ++j) {
      const int64_t at = begin + j * 32 * VECTOR, place = this_row * n + at;
      Value value = joined(ahead, before[j]);
      Vector<R, VECTOR> out;
      Vector<int64_t, VECTOR> places;
#pragma unroll
      for (int k = 0; k < VECTOR; ++k) {
        if (at + k >= n) continue;
        value = joined(value, value_of(convert<C>(loaded.vectors[j][k]), at + k));
        store(value, out.values, places.values, k);
      }
      if (ALIGNED && at + VECTOR <= n) {
        store_vector(y + place, out);
        if (OPERATION > 2) store_vector(indices + place, places);
        continue;
      }
#pragma unroll
      for (int k = 0; k < VECTOR; ++k) {
        if (at + k >= n) continue;
        y[place + k] = out[k];
        if (OPERATION > 2) indices[place + k] = places[k];
      }
    }
    if (LOOKS_BACK) continue;
    carry = joined(carry, all);
    __syncthreads();
  }
}
#endif

// ---------------------------------------------------------------- columns

#if KERNEL == 1
extern "C" __global__ void __launch_bounds__(kBlock)
    scan_columns(const T* x, R* y, int64_t* indices, int64_t columns, int64_t n, int64_t inner) {
  after_earlier_work();
  const int64_t column = static_cast<int64_t>(blockIdx.x) * kBlock + threadIdx.x;
  if (column >= columns) return;
  const int64_t first = column / inner * n * inner + column % inner;
  Value value = neutral();
  for (int64_t i = 0; i < n; ++i) {
    value = joined(value, value_of(convert<C>(x[first + i * inner]), i));
    store(value, y, indices, first + i * inner);
  }
}
#endif
