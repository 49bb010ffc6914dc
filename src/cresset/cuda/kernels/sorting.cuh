// Sorting and selecting along rows of `length` elements that lie one after the other. ROWS, KEYS, TAKE, SELECT, ONE,
// MIDDLE, MODE, STARTS, GROUPS, COLUMN, SLICE_STARTS: which kernel is wanted. All sorts are stable.
#pragma once
#include "digits.cuh"
#include "ordered_keys.cuh"

using Key = key_type<T>;
// Few keys of integers so wide use all their digits: those that all share are left out, at a cost that others have for
// nothing.
constexpr bool kLeavesOut = is_integer<T> && sizeof(T) == 8;

#ifdef ROWS
// A block sorts a row of up to 256 * ITEMS elements. With CHOSEN the row is of those elements of a longer one that
// `chosen` names.
extern "C" __global__ void __launch_bounds__(kSortBlock)
    sort_rows(const T* x, const int32_t* chosen, T* values, int64_t* indices, int64_t length, int32_t count,
              int32_t descending) {
  after_earlier_work();
  __shared__ DigitCounts counts;
  __shared__ Key keys[kSortBlock * ITEMS];
  constexpr bool kShares = sizeof(Key) * ITEMS > 64;  // there is no room for both: the positions come second
  __shared__ int32_t own_positions[kShares ? 1 : kSortBlock * ITEMS];
  int32_t* const positions = kShares ? reinterpret_cast<int32_t*>(keys) : own_positions;
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const T* row = x + blockIdx.x * length;
  Key key[ITEMS];
  int32_t position[ITEMS];
#pragma unroll
  for (int j = 0; j < ITEMS; ++j) {
    const int32_t i = static_cast<int32_t>((warp * ITEMS + j) * 32 + lane);
    position[j] = 0;
    key[j] = all_ones<T>;  // those beyond the end stay behind all others
    if (i >= count) continue;
#if CHOSEN
    position[j] = chosen[static_cast<int64_t>(blockIdx.x) * count + i];
#else
    position[j] = i;
#endif
    key[j] = key_of(row[position[j]], descending != 0);
  }
#if CHOSEN
  const int64_t some = kLeavesOut ? chosen[static_cast<int64_t>(blockIdx.x) * count] : 0;
#else
  constexpr int64_t some = 0;
#endif
  const Key like = kLeavesOut ? key_of(row[some], descending != 0) : Key(0);
#pragma unroll 1
  for (int shift = 0; shift < static_cast<int>(8 * sizeof(T)); shift += 8) {
    uint32_t digit[ITEMS], place[ITEMS];
#pragma unroll
    for (int j = 0; j < ITEMS; ++j) digit[j] = static_cast<uint32_t>(key[j] >> shift) & 255;
    if constexpr (kLeavesOut) {
      bool differs = false;
#pragma unroll
      for (int j = 0; j < ITEMS; ++j)
        differs |= static_cast<int32_t>((warp * ITEMS + j) * 32 + lane) < count &&
                   digit[j] != (static_cast<uint32_t>(like >> shift) & 255);
      if (!__syncthreads_or(differs ? 1 : 0)) continue;  // all share it, but for those beyond the end
    }
    place_by_digit(digit, place, counts);
#pragma unroll
    for (int j = 0; j < ITEMS; ++j) {
      keys[place[j]] = key[j];
      if (!kShares) positions[place[j]] = position[j];
    }
    __syncthreads();
#pragma unroll
    for (int j = 0; j < ITEMS; ++j) {
      const unsigned i = (warp * ITEMS + j) * 32 + lane;
      key[j] = keys[i];
      if (!kShares) position[j] = positions[i];
    }
    __syncthreads();
    if constexpr (kShares) {
#pragma unroll
      for (int j = 0; j < ITEMS; ++j) positions[place[j]] = position[j];
      __syncthreads();
#pragma unroll
      for (int j = 0; j < ITEMS; ++j) position[j] = positions[(warp * ITEMS + j) * 32 + lane];
      __syncthreads();
    }
  }
#pragma unroll
  for (int j = 0; j < ITEMS; ++j) {
    const int32_t i = static_cast<int32_t>((warp * ITEMS + j) * 32 + lane);
    if (i >= count) continue;
    const int64_t to = static_cast<int64_t>(blockIdx.x) * count + i;
    values[to] = row[position[j]];
    indices[to] = position[j];
  }
}
#endif

#ifdef KEYS
// Keys less `base`, which is no larger than any; and, where digits may be left out, the bits in which they are not all
// like the first one, in two words that were zero.
extern "C" __global__ void __launch_bounds__(256)
    make_keys(const T* x, Key* keys, uint32_t* differing, int64_t n, int32_t descending, Key base) {
  after_earlier_work();
  const int64_t first = static_cast<int64_t>(blockIdx.x) * 1024 + threadIdx.x;
  if constexpr (!kLeavesOut) {
#pragma unroll
    for (int64_t i = first; i < first + 1024; i += 256)
      if (i < n) keys[i] = key_of(x[i], descending != 0) - base;
  } else {
    const Key like = key_of(x[0], descending != 0) - base;
    Key bits = 0;
#pragma unroll
    for (int64_t i = first; i < first + 1024; i += 256) {
      if (i >= n) continue;
      const Key key = key_of(x[i], descending != 0) - base;
      keys[i] = key;
      bits |= key ^ like;
    }
#pragma unroll
    for (int word = 0; word < 2; ++word) {
      auto own = static_cast<uint32_t>(bits >> (32 * word));
#pragma unroll
      for (int lanes = 16; lanes > 0; lanes /= 2) own |= __shfl_xor_sync(0xffffffffu, own, lanes);
      // Most warps find nothing new.
      if (threadIdx.x % 32 == 0 && (own & ~*static_cast<volatile uint32_t*>(differing + word)))
        atomicOr(differing + word, own);
    }
  }
}
#endif

#ifdef TAKE
// The first `count` of each sorted row; positions count over all rows. A key says what its element is, but for zeros
// and nan, of which there are several with one key.
extern "C" __global__ void __launch_bounds__(256)
    take_sorted(const T* x, const Key* keys, const int32_t* positions, T* values, int64_t* indices, int64_t n,
                int64_t length, int64_t count, int32_t descending) {
  after_earlier_work();
  const int64_t i = static_cast<int64_t>(blockIdx.x) * 256 + threadIdx.x;
  if (i >= n) return;
  const int64_t row = count == n ? 0 : i / count, from = row * length + (i - row * count), at = positions[from];
  const Key key = keys[from];
  values[i] = is_unique_key<T>(key, descending != 0) ? element_of<T>(key, descending != 0) : x[at];
  indices[i] = at - row * length;
}
#endif

#ifdef SELECT
// Which elements of a row, or of each of its `pieces` of `size`, are the first `count` in order: those before the last
// of them, then of those equal to it as many as are wanted, each as they come. The last one's key is found digit by
// digit from the highest on.
extern "C" __global__ void __launch_bounds__(kSortBlock)
    select_rows(const T* x, int32_t* chosen, int32_t row_length, int32_t pieces, int32_t size, int32_t count,
                int32_t descending) {
  after_earlier_work();
  __shared__ uint32_t bins[kDigits], sums[kSortWarps], found_digit, found_rest;
  const int32_t number = static_cast<int32_t>(blockIdx.x) / pieces,
                start = (static_cast<int32_t>(blockIdx.x) - number * pieces) * size;
  const int32_t length = row_length - start < size ? row_length - start : size;
  const T* row = x + static_cast<int64_t>(number) * row_length + start;
  int32_t* to = chosen + static_cast<int64_t>(blockIdx.x) * count;
  constexpr int kUnroll = 4;
  Key prefix = 0, mask = 0;
  uint32_t rest = static_cast<uint32_t>(count);  // how many are wanted of the keys that begin with `prefix`
  for (int shift = static_cast<int>(8 * sizeof(T)) - 8; shift >= 0; shift -= 8) {
    bins[threadIdx.x] = 0;
    __syncthreads();
    for (int32_t first = static_cast<int32_t>(threadIdx.x); first < length; first += kSortBlock * kUnroll) {
      T v[kUnroll];
#pragma unroll
      for (int u = 0; u < kUnroll; ++u)
        if (first + u * kSortBlock < length) v[u] = row[first + u * kSortBlock];
#pragma unroll
      for (int u = 0; u < kUnroll; ++u) {
        if (first + u * kSortBlock >= length) continue;
        const Key key = key_of(v[u], descending != 0);
        if ((key & mask) == prefix) atomicAdd(&bins[static_cast<uint32_t>(key >> shift) & 255], 1u);
      }
    }
    __syncthreads();
    const uint32_t own = bins[threadIdx.x], before = sum_before(own, sums);
    if (before < rest && rest <= before + own) {
      found_digit = threadIdx.x;
      found_rest = rest - before;
    }
    __syncthreads();
    prefix |= static_cast<Key>(found_digit) << shift;
    mask |= static_cast<Key>(255) << shift;
    rest = found_rest;
    __syncthreads();
  }
  // In order, 256 at a time: how many of either kind were seen so far.
  uint32_t lower = 0, equal = 0;
  const uint32_t all_lower = static_cast<uint32_t>(count) - rest;
  for (int32_t first = 0; first < length; first += kSortBlock) {
    const int32_t i = first + static_cast<int32_t>(threadIdx.x);
    const Key key = i < length ? key_of(row[i], descending != 0) : all_ones<T>;
    const bool is_lower = i < length && key < prefix, is_equal = i < length && key == prefix;
    // Both counts in one sum: 256 of each fit in 16 bits.
    const uint32_t own = (is_lower ? 1u : 0u) | (is_equal ? 1u << 16 : 0u), before = sum_before(own, sums);
    if (is_lower) to[lower + (before & 0xffff)] = start + i;
    if (is_equal && equal + (before >> 16) < rest) to[all_lower + equal + (before >> 16)] = start + i;
    if (threadIdx.x == kSortBlock - 1) found_digit = before + own;
    __syncthreads();
    lower += found_digit & 0xffff;
    equal += found_digit >> 16;
    __syncthreads();
  }
}
#endif

#ifdef ONE
// The element that stands at place k of its row's order, or where k is negative the median: the lower of the two middle
// ones of those that are not nan; the first nan where there is one, unless they are passed over. Its key is found digit
// by digit from the highest on. A row of up to 256 * ITEMS elements is read once; with ITEMS 0 a longer one as often as
// it has digits.
extern "C" __global__ void __launch_bounds__(kSortBlock)
    pick_from_rows(const T* x, T* value, int64_t* index, int32_t length, int64_t k, int32_t skip_nan) {
  after_earlier_work();
  __shared__ uint32_t bins[kDigits], sums[kSortWarps], found_digit, found_rest, found_count;
  const T* row = x + static_cast<int64_t>(blockIdx.x) * length;
  const int32_t self = static_cast<int32_t>(threadIdx.x);
#if ITEMS
  Key kept[ITEMS];
#pragma unroll
  for (int j = 0; j < ITEMS; ++j)
    if (j * kSortBlock + self < length) kept[j] = key_of(row[j * kSortBlock + self], false);
#endif
  // f(key, its place) for each of this thread's elements, in order.
  const auto each = [&](auto f) {
#if ITEMS
#pragma unroll
    for (int j = 0; j < ITEMS; ++j)
      if (j * kSortBlock + self < length) f(kept[j], j * kSortBlock + self);
#else
    for (int32_t i = self; i < length; i += kSortBlock) f(key_of(row[i], false), i);
#endif
  };
  if (k < 0) {
    uint32_t nans = 0;
    if constexpr (is_float<T> || is_half<T>) {
      uint32_t own = 0;
      each([&](Key key, int32_t) { own += key == all_ones<T> ? 1u : 0u; });
      const uint32_t before = sum_before(own, sums);
      if (threadIdx.x == kSortBlock - 1) found_count = before + own;
      __syncthreads();
      nans = found_count;
      __syncthreads();
    }
    const int32_t numbers = length - static_cast<int32_t>(nans);
    k = nans == 0 || (skip_nan && numbers > 0) ? (numbers - 1) / 2 : numbers;
  }
  Key prefix = 0, mask = 0;
  uint32_t rest = static_cast<uint32_t>(k) + 1;  // which of the keys that begin with `prefix` is wanted
  for (int shift = static_cast<int>(8 * sizeof(T)) - 8; shift >= 0; shift -= 8) {
    bins[threadIdx.x] = 0;
    __syncthreads();
    each([&](Key key, int32_t) {
      if ((key & mask) == prefix) atomicAdd(&bins[static_cast<uint32_t>(key >> shift) & 255], 1u);
    });
    __syncthreads();
    const uint32_t own = bins[threadIdx.x], before = sum_before(own, sums);
    if (before < rest && rest <= before + own) {
      found_digit = threadIdx.x;
      found_rest = rest - before;
      found_count = own;
    }
    __syncthreads();
    prefix |= static_cast<Key>(found_digit) << shift;
    mask |= static_cast<Key>(255) << shift;
    rest = found_rest;
  }
  const auto give = [&](int32_t i) {
    value[blockIdx.x] = row[i];
    if (index) index[blockIdx.x] = i;
  };
  if (found_count == 1)
    return each([&](Key key, int32_t i) {
      if (key == prefix) give(i);
    });
  // Of several equal ones that which comes so far behind the first, 256 at a time.
  uint32_t seen = 0;
  for (int32_t first = 0; first < length && seen < rest; first += kSortBlock) {
    const int32_t i = first + self;
    const uint32_t own = i < length && key_of(row[i], false) == prefix ? 1u : 0u, before = sum_before(own, sums);
    if (own && seen + before + 1 == rest) give(i);
    if (threadIdx.x == kSortBlock - 1) found_digit = before + own;
    __syncthreads();
    seen += found_digit;
    __syncthreads();
  }
}
#endif

#ifdef MIDDLE
template <class Element>
__device__ __forceinline__ bool is_nan(Element v) {
  if constexpr (is_half<Element>)
    return static_cast<float>(v) != static_cast<float>(v);
  else if constexpr (is_float<Element>)
    return v != v;
  else
    return false;
}
// One element of each sorted row, of `values` and `indices`: place k, or where k is negative the median: the lower of
// the two middle ones of those that are not nan, which come last; the first nan where there is one, unless they are
// passed over.
extern "C" __global__ void __launch_bounds__(256)
    pick_from_sorted(const T* values, const int64_t* indices, T* value, int64_t* index, int64_t rows, int64_t length,
                     int64_t k, int32_t skip_nan) {
  after_earlier_work();
  const int64_t row = static_cast<int64_t>(blockIdx.x) * 256 + threadIdx.x;
  if (row >= rows) return;
  const T* v = values + row * length;
  int64_t at = k;
  if (k < 0) {
    int64_t low = 0, high = length;  // the first nan
    while (low < high) {
      const int64_t middle = (low + high) / 2;
      if (is_nan(v[middle]))
        high = middle;
      else
        low = middle + 1;
    }
    at = low == length || (skip_nan && low > 0) ? (low - 1) / 2 : low;
    if (low == 0) at = 0;
  }
  value[row] = v[at];
  if (index) index[row] = indices[row * length + at];
}
#endif

#ifdef MODE
// The most frequent element of each sorted row, the smallest if there are several; nan are all different. A thread
// looks at every 256th element: where a run ends, its begin is found by halving.
extern "C" __global__ void __launch_bounds__(256)
    mode_of_sorted(const T* values, const int64_t* indices, T* value, int64_t* index, int64_t length) {
  after_earlier_work();
  using A = opmath<T>;
  __shared__ int64_t lengths[8], lasts[8];
  const T* v = values + blockIdx.x * length;
  int64_t most = 0, last = 0;
  for (int64_t i = threadIdx.x; i < length; i += 256) {
    const A own = convert<A>(v[i]);
    if (i + 1 < length && own == convert<A>(v[i + 1])) continue;
    int64_t low = 0, high = i;  // the first that is equal; a nan is equal to nothing
    while (low < high) {
      const int64_t middle = (low + high) / 2;
      if (convert<A>(v[middle]) == own)
        high = middle;
      else
        low = middle + 1;
    }
    const int64_t run = i - low + 1;
    if (run > most) most = run, last = i;
  }
  const auto take = [&](int64_t other, int64_t where) {
    if (other > most || (other == most && where < last)) most = other, last = where;
  };
#pragma unroll
  for (int step = 16; step > 0; step /= 2)
    take(__shfl_xor_sync(0xffffffffu, most, step), __shfl_xor_sync(0xffffffffu, last, step));
  if (threadIdx.x % 32 == 0) lengths[threadIdx.x / 32] = most, lasts[threadIdx.x / 32] = last;
  __syncthreads();
  if (threadIdx.x > 0) return;
  for (int w = 1; w < 8; ++w) take(lengths[w], lasts[w]);
  value[blockIdx.x] = v[last];
  index[blockIdx.x] = indices[blockIdx.x * length + last];
}
#endif

#ifdef STARTS
// Where a new group begins: among sorted keys where the key changes, or with PLAIN among elements where the element
// does. Every nan is a group.
extern "C" __global__ void __launch_bounds__(256)
    group_starts(const T* x, const Key* keys, uint8_t* starts, int64_t n, int32_t has_nan) {
  after_earlier_work();
  const int64_t i = static_cast<int64_t>(blockIdx.x) * 256 + threadIdx.x;
  if (i >= n) return;
#if PLAIN
  starts[i] = i == 0 || convert<opmath<T>>(x[i]) != convert<opmath<T>>(x[i - 1]);
#else
  starts[i] = i == 0 || keys[i] != keys[i - 1] || (has_nan && keys[i] == all_ones<T>);
#endif
}
#endif

#ifdef GROUPS
// inverse[position of i] = the group of i; counts[g] = where the next group begins, less where this one does.
extern "C" __global__ void __launch_bounds__(256)
    group_facts(const int64_t* ranks, const int32_t* positions, const int64_t* firsts, int64_t* inverse,
                int64_t* counts, int64_t n, int64_t groups) {
  after_earlier_work();
  const int64_t i = static_cast<int64_t>(blockIdx.x) * 256 + threadIdx.x;
  if (inverse && i < n) inverse[positions ? positions[i] : i] = ranks[i] - 1;
  if (counts && i < groups) counts[i] = (i + 1 < groups ? firsts[i + 1] : n) - firsts[i];
}
#endif

#ifdef COLUMN
// The keys of one column of a matrix, its rows in an order; order null: as they lie.
extern "C" __global__ void __launch_bounds__(256)
    column_keys(const T* x, const int32_t* order, Key* keys, int64_t n, int64_t length, int64_t column) {
  after_earlier_work();
  const int64_t i = static_cast<int64_t>(blockIdx.x) * 256 + threadIdx.x;
  if (i < n) keys[i] = key_of(x[(order ? order[i] : i) * length + column], false);
}
#endif

#ifdef SLICE_STARTS
// Where a row of a matrix differs from the one before it, in an order of the rows. A row with a nan differs from all.
extern "C" __global__ void __launch_bounds__(256)
    slice_starts(const T* x, const int32_t* order, uint8_t* starts, int64_t n, int64_t length, int32_t has_nan) {
  after_earlier_work();
  const int64_t i = static_cast<int64_t>(blockIdx.x) * 256 + threadIdx.x;
  if (i >= n) return;
  bool differs = i == 0;
  if (i > 0) {
    const T* own = x + (order ? order[i] : i) * length;
    const T* before = x + (order ? order[i - 1] : i - 1) * length;
    for (int64_t k = 0; k < length && !differs; ++k) {
      const Key key = key_of(own[k], false);
      differs = key != key_of(before[k], false) || (has_nan && key == all_ones<T>);
    }
  }
  starts[i] = differs;
}
#endif
