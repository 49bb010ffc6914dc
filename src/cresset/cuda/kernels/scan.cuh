// Scans: cumulative sums, products, log-sum-exps and extremes. A block scans a row tile by tile; a long row among few
// is split into chunks, whose totals are made first. Along another dimension than the last, a thread has a column.
//
// -D options: OPERATION (0 sum, 1 product, 2 log-sum-exp, 3 largest, 4 smallest), ELEMENT, COMPUTED, RESULT, KERNEL (0
// rows, 1 columns), ALIGNED (the elements that a thread has of a row can be loaded and stored in vectors).
#pragma once
#include "block.cuh"

using T = ELEMENT;
using C = COMPUTED;
using R = RESULT;
constexpr int kBlock = 256, kWarps = kBlock / 32, kItems = 8;
constexpr int kResident = 4;  // blocks of a multiprocessor at a time: a long row has a chunk for each of them

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
// What stands before this thread's value in the block, and what all threads have together.
struct Around {
  Value before, all;
};
CRESSET_INLINE Around around(const Value& mine, Value* parts) {
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  Value inclusive = mine;
#pragma unroll
  for (int by = 1; by < 32; by *= 2) {
    const Value other = shuffle_up(inclusive, by);
    if (lane >= by) inclusive = joined(other, inclusive);
  }
  const Value left = shuffle_up(inclusive, 1);
  __syncthreads();  // the memory may be in use from the call before
  if (lane == 31) parts[warp] = inclusive;
  __syncthreads();
  Around result{neutral(), neutral()};
#pragma unroll 1
  for (int w = 0; w < kWarps; ++w) {
    if (w == warp) result.before = result.all;
    result.all = joined(result.all, parts[w]);
  }
  if (lane > 0) result.before = joined(result.before, left);
  return result;
}

// The elements of a thread in a tile that begins at `at`; beyond the end nothing is read.
CRESSET_INLINE Vector<T, kItems> items_at(const T* row, int64_t at, int64_t end) {
  if (ALIGNED && at + kItems <= end) return load_vector<kItems>(row + at);
  Vector<T, kItems> loaded;
#pragma unroll
  for (int k = 0; k < kItems; ++k)
    if (at + k < end) loaded[k] = row[at + k];
  return loaded;
}

// Grid: chunks, rows. With `totals` null a row is one chunk. With `only_totals` the total of each chunk is stored;
// without, the totals of the chunks before are where a chunk begins.
extern "C" __global__ void __launch_bounds__(kBlock, OPERATION <= 2 ? kResident : 1)
    scan_rows(const T* x, R* y, int64_t* indices, Value* totals, int64_t rows, int64_t n, int64_t chunk, int32_t chunks,
              int32_t only_totals) {
  after_earlier_work();
  __shared__ __align__(16) char bytes[kWarps * sizeof(Value)];
  auto* parts = reinterpret_cast<Value*>(bytes);
  const int64_t row = blockIdx.x / chunks, number = blockIdx.x % chunks;
  const int64_t begin = number * chunk, end = begin + chunk < n ? begin + chunk : n;
  Value carry = neutral();
  if (totals && !only_totals)
    for (int64_t first = 0; first < number; first += kBlock) {
      const int64_t at = first + threadIdx.x;
      carry = joined(carry, around(at < number ? totals[row * chunks + at] : neutral(), parts).all);
    }
#if OPERATION <= 2
  if (only_totals) {  // in any order: a thread's own first
    Value mine = neutral();
#pragma unroll 2
    for (int64_t at = begin + threadIdx.x * kItems; at < end; at += kBlock * kItems) {
      const Vector<T, kItems> loaded = items_at(x + row * n, at, end);
#pragma unroll
      for (int k = 0; k < kItems; ++k)
        if (at + k < end) mine = joined(mine, value_of(convert<C>(loaded[k]), at + k));
    }
    const Value all = around(mine, parts).all;
    if (threadIdx.x == 0) totals[row * chunks + number] = all;
    return;
  }
#endif
  Vector<T, kItems> next = items_at(x + row * n, begin + threadIdx.x * kItems, end);
  for (int64_t tile = begin; tile < end; tile += kBlock * kItems) {
    const int64_t at = tile + threadIdx.x * kItems;
    const bool whole = ALIGNED && at + kItems <= end;
    const Vector<T, kItems> loaded = next;
    next = items_at(x + row * n, at + kBlock * kItems, end);  // on its way while this tile is scanned
    Value values[kItems];
#pragma unroll
    for (int k = 0; k < kItems; ++k) {
      values[k] = at + k < end ? value_of(convert<C>(loaded[k]), at + k) : neutral();
      if (k > 0) values[k] = joined(values[k - 1], values[k]);
    }
    const Around a = around(values[kItems - 1], parts);
    if (!only_totals) {
      const Value before = joined(carry, a.before);
      if (whole) {
        Vector<R, kItems> out;
        Vector<int64_t, kItems> places;
#pragma unroll
        for (int k = 0; k < kItems; ++k) store(joined(before, values[k]), out.values, places.values, k);
        store_vector(y + row * n + at, out);
        if (indices) store_vector(indices + row * n + at, places);
      } else {
#pragma unroll
        for (int k = 0; k < kItems; ++k)
          if (at + k < end) store(joined(before, values[k]), y, indices, row * n + at + k);
      }
    }
    carry = joined(carry, a.all);
  }
  if (only_totals && threadIdx.x == 0) totals[row * chunks + number] = carry;
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
