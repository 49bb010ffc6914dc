// Lists of indices: several joined to one list of offsets, or each an element read right away, and positions repeated.
// OFFSETS, ELEMENTS, BAGS, REPEAT: which kernel is
// wanted.
#pragma once
#include "divider.cuh"
#include "fault.cuh"

constexpr int kMostDims = 8;

#if defined(OFFSETS) || defined(ELEMENTS)
struct List {
  const int64_t* index;
  int64_t scale, bound, wrap;
  int64_t strides[kMostDims];
};
struct Lists {
  int64_t count;
  int64_t* offsets;
  Fault* fault;
  int64_t operation;
  Divider sizes[kMostDims];
  List lists[LISTS];
};
// The offset that an index of list k, at position `at`, stands for.
__device__ __forceinline__ int64_t offset_of(const Lists& l, int k, int64_t value, int64_t at) {
  const int64_t place = value < 0 ? value + l.lists[k].wrap : value;
  if (static_cast<uint64_t>(place) < static_cast<uint64_t>(l.lists[k].bound)) return place * l.lists[k].scale;
  report(l.fault, static_cast<int32_t>(l.operation), value, at, l.lists[k].bound);
  return 0;
}
#endif

#ifdef ELEMENTS
// x[i, j, k] where each dimension has a list and all lists lie alike: a thread reads four neighbors of each.
extern "C" __global__ void __launch_bounds__(256)
    index_elements(const Lists l, const typename Words<WORD>::type* x, typename Words<WORD>::type* out) {
  after_earlier_work();
  constexpr int kEach = 4;
  using Word = typename Words<WORD>::type;
  const int64_t first = (static_cast<int64_t>(blockIdx.x) * 256 + threadIdx.x) * kEach;
  if (first >= l.count) return;
  int64_t offset[kEach] = {};
  if (first + kEach <= l.count) {
    Vector<int64_t, kEach> value[LISTS];
#pragma unroll
    for (int k = 0; k < LISTS; ++k) value[k] = load_vector<kEach>(l.lists[k].index + first);
#pragma unroll
    for (int k = 0; k < LISTS; ++k)
#pragma unroll
      for (int u = 0; u < kEach; ++u) offset[u] += offset_of(l, k, value[k][u], first + u);
    Vector<Word, kEach> words;
#pragma unroll
    for (int u = 0; u < kEach; ++u) words[u] = x[offset[u]];
    store_vector(out + first, words);
    return;
  }
  for (int64_t i = first; i < l.count; ++i) {
    int64_t at = 0;
#pragma unroll
    for (int k = 0; k < LISTS; ++k) at += offset_of(l, k, l.lists[k].index[i], i);
    out[i] = x[at];
  }
}
#endif

#ifdef OFFSETS
// x[i, j, k]: the sum of what each index stands for.
extern "C" __global__ void __launch_bounds__(256) index_offsets(const Lists l) {
  after_earlier_work();
  const int64_t i = static_cast<int64_t>(blockIdx.x) * 256 + threadIdx.x;
  if (i >= l.count) return;
  int64_t at[LISTS] = {};
  uint64_t rest = static_cast<uint64_t>(i);
#pragma unroll
  for (int d = RANK - 1; d >= 0; --d) {
    uint64_t along = rest;
    if (d > 0) {
      rest = rest < 0x7fffffffu ? divided(static_cast<uint32_t>(rest), l.sizes[d]) : rest / l.sizes[d].divisor;
      along -= rest * l.sizes[d].divisor;
    }
#pragma unroll
    for (int k = 0; k < LISTS; ++k) at[k] += static_cast<int64_t>(along) * l.lists[k].strides[d];
  }
  int64_t offset = 0;
#pragma unroll
  for (int k = 0; k < LISTS; ++k) offset += offset_of(l, k, l.lists[k].index[at[k]], at[k]);
  l.offsets[i] = offset;
}
#endif

#ifdef BAGS
// out[bag] = the sum of the rows that the bag's indices name, or their mean. A bag has `length` indices, or with
// `starts` those between two of them. A thread has VECTOR neighbors of a row.
extern "C" __global__ void __launch_bounds__(256)
    bags_of_rows(const T* table, const int64_t* indices, const int64_t* starts, T* out, int64_t count, int64_t width,
                 int64_t length, int64_t all, int64_t rows, int32_t mean, Fault* fault, int32_t operation) {
  after_earlier_work();
  using A = opmath<T>;
  constexpr int kUnroll = 4;
  const int64_t at = (static_cast<int64_t>(blockIdx.x) * 256 + threadIdx.x) * VECTOR;
  if (at >= count) return;
  const int64_t bag = at / width, column = at - bag * width;
  int64_t begin = bag * length;
  if (starts) {
    begin = min(max(starts[bag], int64_t{0}), all);
    length = min(max(starts[bag + 1], begin), all) - begin;
  }
  const int64_t* own = indices + begin;
  A sums[VECTOR] = {};
  for (int64_t first = 0; first < length; first += kUnroll) {
    Vector<T, VECTOR> row[kUnroll];
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      if (first + u >= length) continue;
      int64_t index = own[first + u];
      if (static_cast<uint64_t>(index) >= static_cast<uint64_t>(rows)) {
        report(fault, operation, index, begin + first + u, rows);
        index = 0;
      }
      row[u] = load_vector<VECTOR>(table + index * width + column);
    }
#pragma unroll
    for (int u = 0; u < kUnroll; ++u)
      if (first + u < length)
#pragma unroll
        for (int k = 0; k < VECTOR; ++k) sums[k] += convert<A>(row[u][k]);
  }
  const A divisor = mean && length > 1 ? static_cast<A>(length) : A(1);
  Vector<T, VECTOR> result;
#pragma unroll
  for (int k = 0; k < VECTOR; ++k) result[k] = convert<T>(sums[k] / divisor);
  store_vector(out + at, result);
}
#endif

#ifdef REPEAT
// out[i] = the first position whose end lies beyond i. ends: the sums of the repeats up to each position.
extern "C" __global__ void __launch_bounds__(256)
    repeat_positions(const int64_t* ends, int64_t n, T* out, int64_t total) {
  after_earlier_work();
  const int64_t i = static_cast<int64_t>(blockIdx.x) * 256 + threadIdx.x;
  if (i >= total) return;
  int64_t low = 0, high = n;
  while (low < high) {
    const int64_t middle = (low + high) / 2;
    if (ends[middle] > i)
      high = middle;
    else
      low = middle + 1;
  }
  out[i] = static_cast<T>(low);
}
#endif
