// What the kernels of attention are told: the same struct as in native/cuda/attention.cpp. The mathematics stands in
// native/ops/attention.h.
//
// T: the dtype of queries, keys and values. MASK: 0 none, 1 one of bools, 2 one of numbers, of the dtype MASK_TYPE.
// CAUSAL: a query sees the keys up to its own place.
#pragma once
#include "types.cuh"

// A matrix for each head; steps in elements, elements of a row side by side.
struct HeadRows {
  char* data;
  int64_t batch, head, row;
};
struct Mask {
  const char* data;
  int64_t batch, head, row, column;
};
struct Problem {
  HeadRows query, key, value, output, grad, query_grad, key_grad, value_grad;
  Mask mask;
  void *rows, *dots;  // for each query m and 1 / l; the product of the output's row with its gradient
  int32_t batches, heads, group, queries, keys, width, value_width, unused;
  double scale;
};

template <class E>
__device__ __forceinline__ E* matrix_of(const HeadRows& r, int batch, int head) {
  return reinterpret_cast<E*>(r.data) + batch * r.batch + head * r.head;
}

// The score of a query and a key, with the mask added; minus infinity for who is not seen.
template <class C>
__device__ __forceinline__ C masked(const Problem& p, int batch, int head, int query, int key, C score) {
#if MASK
  // Who is not there reads a neighbor's: no branch keeps the loads of other elements waiting.
  const int64_t at = batch * p.mask.batch + head * p.mask.head + min(query, p.queries - 1) * p.mask.row +
                     min(key, p.keys - 1) * p.mask.column;
#if MASK == 1
  score = reinterpret_cast<const bool*>(p.mask.data)[at] ? score : C(-INFINITY);
#else
  score += static_cast<C>(convert<opmath<MASK_TYPE>>(reinterpret_cast<const MASK_TYPE*>(p.mask.data)[at]));
#endif
  if (query >= p.queries) return -INFINITY;
#endif
  if (key >= p.keys || (CAUSAL && key > query)) return -INFINITY;
  return score;
}
