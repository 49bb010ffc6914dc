// Attention in blocks: softmax(query key^T scale + mask) value, without ever holding the whole matrix of weights.
//
// Note [How attention is computed]
// For a block of queries the keys come by in blocks. Each row of scores keeps its greatest score m so far, the sum l of
// exp(score - m) and the sum o of exp(score - m) value; when m grows, l and o are scaled down. At the end the output is
// o / l. m and 1 / l are kept for backward, which computes any block of weights again from them (their logarithm alone
// would lose digits where scores are large):
//   p = exp(score - m) / l,  dv = p^T do,  ds = p (do v^T - rowsum(do o)) scale,  dq = ds k,  dk = ds^T q.
// The blocks follow one another in a fixed order, so the result does not depend on who computes which block.
#pragma once
#include "base/dtype.h"

namespace cresset {

// A matrix for each head, in memory of any strides.
struct HeadRows {
  char* data = nullptr;
  Dtype dtype = Dtype::f32;
  int64_t row = 0, step = 0;       // in elements
  const int64_t* heads = nullptr;  // where each head's matrix starts, in elements
  char* at(int64_t head, int64_t first) const { return data + (heads[head] + first * row) * size_of(dtype); }
};

// Everything is computed in C, which is float or double.
template <class C>
struct AttentionProblem {
  int64_t heads = 0, queries = 0, keys = 0, width = 0, value_width = 0;
  int64_t group = 1;  // so many heads of queries share a head of keys and values
  C scale = 1;
  bool causal = false;
  HeadRows query, key, value, mask, output;  // key and value have heads / group heads; a mask of bools says who is seen
  C* rows = nullptr;                         // [heads][queries][2]: m and 1 / l; infinity and 0 for who sees nobody
  // Backward.
  HeadRows grad, query_grad, key_grad, value_grad;
  C* row_dots = nullptr;  // [heads][queries]: the products of the output's rows with their gradients

  static constexpr int64_t kQueries = 64, kKeys = 240;  // of a block
  int64_t query_blocks() const { return (queries + kQueries - 1) / kQueries; }
  int64_t key_blocks() const { return (keys + kKeys - 1) / kKeys; }
};

// Each works on items [begin, end) on the calling thread.
template <class C>
struct AttentionKernels {
  using Run = void (*)(const AttentionProblem<C>&, int64_t begin, int64_t end);
  Run forward;           // heads * query_blocks items
  Run dots;              // heads items: row_dots
  Run backward;          // heads / group items: all gradients
  Run backward_queries;  // heads * query_blocks items: only the queries' gradient
  Run backward_keys;     // heads / group * key_blocks items: only the keys' and values' gradients
};
template <class C>
AttentionKernels<C> attention_kernels_baseline();
template <class C>
AttentionKernels<C> attention_kernels_avx2();
template <class C>
AttentionKernels<C> attention_kernels_avx512();

}  // namespace cresset
