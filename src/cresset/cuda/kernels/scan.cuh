// Scans: cumulative sums, products, log-sum-exps and extremes. A block scans a row tile by tile; of a long row among
// few each block has one tile, and learns from those before it what they have together, in an order that is always the
// same. Along another dimension than the last, a thread has a column.
//
// -D options: OPERATION (0 sum, 1 product, 2 log-sum-exp, 3 largest, 4 smallest), ELEMENT, COMPUTED, RESULT, KERNEL (0
// rows, 1 columns, 2 long rows), ALIGNED (the elements that a thread has of a row can be loaded and stored in vectors).
#pragma once
#include "block.cuh"
#include "copies.cuh"
#include "lookback.cuh"

using T = ELEMENT;
using C = COMPUTED;
using R = RESULT;
constexpr bool kAlike = sizeof(T) == sizeof(R);  // a result has the room of its element
// Of a long row a thread has 128 bytes, or of results of another size 64.
constexpr int kWidest = sizeof(T) > sizeof(R) ? sizeof(T) : sizeof(R);
constexpr int kBlock = 256, kWarps = kBlock / 32, kItems = KERNEL == 2 ? (kAlike ? 128 : 64) / kWidest : 8;

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

#if KERNEL != 1
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
#pragma unroll(KERNEL == 2 && sizeof(Value) <= 8 ? kWarps : 1)
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

#if KERNEL == 0
// A thread's values with each other, and how those up to each of them are stored.
CRESSET_INLINE void scan_items(const Vector<T, kItems>& loaded, int64_t at, int64_t end, Value (&values)[kItems]) {
#pragma unroll
  for (int k = 0; k < kItems; ++k) {
    values[k] = at + k < end ? value_of(convert<C>(loaded[k]), at + k) : neutral();
    if (k > 0) values[k] = joined(values[k - 1], values[k]);
  }
}
CRESSET_INLINE void store_items(const Value& before, const Value (&values)[kItems], R* y, int64_t* indices, int64_t at,
                                int64_t end) {
  if (ALIGNED && at + kItems <= end) {
    Vector<R, kItems> out;
    Vector<int64_t, kItems> places;
#pragma unroll
    for (int k = 0; k < kItems; ++k) store(joined(before, values[k]), out.values, places.values, k);
    store_vector(y + at, out);
    if (indices) store_vector(indices + at, places);
  } else {
#pragma unroll
    for (int k = 0; k < kItems; ++k)
      if (at + k < end) store(joined(before, values[k]), y, indices, at + k);
  }
}

extern "C" __global__ void __launch_bounds__(kBlock, OPERATION <= 2 ? 4 : 1)
    scan_rows(const T* x, R* y, int64_t* indices, int64_t n) {
  after_earlier_work();
  __shared__ __align__(16) char bytes[kWarps * sizeof(Value)];
  auto* parts = reinterpret_cast<Value*>(bytes);
  const int64_t row = blockIdx.x;
  x += row * n, y += row * n;
  if (indices) indices += row * n;
  Value carry = neutral();
  Vector<T, kItems> next = items_at(x, threadIdx.x * kItems, n);
  for (int64_t tile = 0; tile < n; tile += kBlock * kItems) {
    const int64_t at = tile + threadIdx.x * kItems;
    const Vector<T, kItems> loaded = next;
    next = items_at(x, at + kBlock * kItems, n);  // on its way while this tile is scanned
    Value values[kItems];
    scan_items(loaded, at, n, values);
    const Around a = around(values[kItems - 1], parts);
    store_items(joined(carry, a.before), values, y, indices, at, n);
    carry = joined(carry, a.all);
  }
}
#endif
#endif

#if KERNEL == 2
// A tile of a long row on its way between memory, where neighboring threads have neighboring elements, and the threads
// that compute, which have kItems each. It lies in shared memory, with a gap behind each thread's, so that they lie in
// different banks. The threads read it twice: registers would hold less of it.
template <class E>
struct Tile {
  static constexpr int kOwn = kItems * sizeof(E), kGap = kOwn % 32 == 0 ? 16 : 0, kBytes = kBlock * (kOwn + kGap),
                       kPiece = 16 / sizeof(E);
  char* const shared;
  CRESSET_INLINE E& operator[](int at) const {
    const int byte = at * static_cast<int>(sizeof(E));
    return *reinterpret_cast<E*>(shared + byte + byte / kOwn * kGap);
  }
  CRESSET_INLINE void read(const E* tile, int64_t count) const {
    const int thread = static_cast<int>(threadIdx.x);
    if (ALIGNED && kOwn >= 16 && count >= kBlock * kItems) {
#pragma unroll
      for (int at = thread * kPiece; at < kBlock * kItems; at += kBlock * kPiece)
        copy_16_bytes(&(*this)[at], tile + at);
      wait_for_copies();
    } else {
      for (int at = thread; at < kBlock * kItems && at < count; at += kBlock) (*this)[at] = tile[at];
    }
  }
  CRESSET_INLINE void write(E* tile, int64_t count) const {
    const int thread = static_cast<int>(threadIdx.x);
    if (ALIGNED && kOwn >= 16 && count >= kBlock * kItems) {
#pragma unroll
      for (int at = thread * kPiece; at < kBlock * kItems; at += kBlock * kPiece)
        store_vector(tile + at, load_vector<kPiece>(&(*this)[at]));
    } else {
      for (int at = thread; at < kBlock * kItems && at < count; at += kBlock) tile[at] = (*this)[at];
    }
  }
};

// Note [Widened by integers]
// A card converts floats to doubles at a quarter of the rate of its additions, and each element is added twice. The
// bits of a float, moved to where those of a double are, are the double that is 2^-896 of it (denormal numbers, too),
// and a fused product and sum puts the power back without another rounding. Infinities and nan would become numbers:
// threads that have some convert.
constexpr bool kShifts = OPERATION == 0 && is_same<C, float>;
CRESSET_INLINE double moved(float x) {
  const int64_t bits = __builtin_bit_cast(int32_t, x);
  return __builtin_bit_cast(double, static_cast<int64_t>(static_cast<uint64_t>(bits) << 29) & ~(int64_t{7} << 60));
}
// The sum of a run and one more element; `finite` stays zero as long as all of them are.
template <bool PLAIN, class V, class E>
CRESSET_INLINE void join_next(V& run, E element, int64_t at, int64_t end, float& finite) {
  if constexpr (PLAIN && kShifts) {
    run.value = ::fma(moved(element), 0x1p896, run.value);
    finite = ::fmaf(element, 0.0f, finite);
  } else {
    run = joined(run, PLAIN || at < end ? value_of(element, at) : neutral());
  }
}

// Each row has `tiles`, of which 256 make a group. `left` has a place for each tile of a row, then one for each of its
// groups; it and the ticket were zero before the kernel.
extern "C" __global__ void __launch_bounds__(kBlock, kShifts&& is_same<T, float>&& is_same<R, float> ? 5 : 1)
    scan_long_rows(const T* x, R* y, int64_t* indices, Left<Value>* left, uint32_t* tickets, int64_t n, int32_t tiles) {
  after_earlier_work();
  __shared__ __align__(16) char bytes[kWarps * sizeof(Value)], elements[Tile<T>::kBytes],
      results[kAlike ? 16 : Tile<R>::kBytes];
  auto* parts = reinterpret_cast<Value*>(bytes);
  const Tile<T> read{elements};
  const Tile<R> written{kAlike ? elements : results};
  const uint32_t ticket = draw_ticket(tickets);
  const int64_t row = ticket / static_cast<uint32_t>(tiles);
  const int32_t number = static_cast<int32_t>(ticket % static_cast<uint32_t>(tiles)), group = number / kBlock,
                in_group = number % kBlock, thread = static_cast<int32_t>(threadIdx.x);
  left += row * (tiles + (tiles + kBlock - 1) / kBlock);
  const int64_t tile = static_cast<int64_t>(number) * (kBlock * kItems), at = tile + thread * kItems;
  x += row * n + tile, y += row * n + tile;
  if (indices) indices += row * n;
  read.read(x, n - tile);
  __syncthreads();
  constexpr int kStep = 16 / kWidest;  // elements of which those and their results can be read and written at once
  const int own = thread * kItems;
  const auto sum_of = [&]<bool PLAIN>(Value sum, float& finite) {
#pragma unroll(PLAIN ? 4 : 1)
    for (int k = 0; k < kItems; k += kStep) {
      const Vector<T, kStep> loaded = load_vector<kStep>(&read[own + k]);
#pragma unroll
      for (int i = 0; i < kStep; ++i) join_next<PLAIN>(sum, convert<C>(loaded[i]), at + k + i, n, finite);
    }
    return sum;
  };
  float finite = 0;
  const bool whole = n - tile >= kBlock * kItems;
  Value sum = whole ? sum_of.template operator()<true>(neutral(), finite) : neutral();
  const bool plain = whole && finite == 0;
  if (!plain) sum = sum_of.template operator()<false>(neutral(), finite);
  const Around a = around(sum, parts);
  if (thread == 0) leave_value(left + number, a.all);
  const auto waited_for = [&](int32_t place, bool wanted) {
    return around(wanted ? wait_for_value(left + place) : neutral(), parts).all;
  };
  const Value beside = waited_for(group * kBlock + thread, thread < in_group);
  if (in_group == kBlock - 1 && thread == 0) leave_value(left + tiles + group, joined(beside, a.all));
  sum = neutral();
  for (int32_t first = 0; first < group; first += kBlock)
    sum = joined(sum, waited_for(tiles + first + thread, first + thread < group));
  sum = joined(joined(sum, beside), a.before);
  const auto write = [&]<bool PLAIN>() {
#pragma unroll(PLAIN ? 4 : 1)
    for (int k = 0; k < kItems; k += kStep) {
      const Vector<T, kStep> loaded = load_vector<kStep>(&read[own + k]);
      Vector<R, kStep> stored;
      Vector<int64_t, kStep> found;
#pragma unroll
      for (int i = 0; i < kStep; ++i) {
        join_next<PLAIN>(sum, convert<C>(loaded[i]), at + k + i, n, finite);
        store(sum, stored.values, found.values, i);
        if (indices && (PLAIN || at + k + i < n)) indices[at + k + i] = found[i];
      }
      store_vector(&written[own + k], stored);
    }
  };
  if (plain)
    write.template operator()<true>();
  else
    write.template operator()<false>();
  __syncthreads();
  written.write(y, n - tile);
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
