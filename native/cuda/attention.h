// Attention whose scores pass through functions of the program: flex_attention, forward and backward on tensor cores.
#pragma once
#include <string>
#include <vector>

#include "tensor/tensor.h"

namespace cresset::cuda {

// Rows of query, key and value are as long as one another: of up to 256 elements in half precision, of up to 128
// floats, in pieces of 16 bytes.
struct FlexAttention {
  static constexpr size_t kMostWords = 96;

  std::string text;     // the functions and the kernel: see attention_flex.cuh
  bool scored = false;  // the scores are changed
  int32_t block_queries = 1, block_keys = 1;
  double scale = 1;
  Tensor states;                // of blocks, bytes (batch or 1, heads or 1, rows, columns); undefined: all are seen
  std::vector<Tensor> tensors;  // that the functions read
  // How many rows a block of threads owns (64 or 128) and how many come by at once (32 or 64), forward; how many come
  // by in backward, queries and keys. 0: what is usual for the problem.
  int32_t own_rows = 0, tile = 0, backward_queries = 0, backward_keys = 0;
  bool by_warpgroups = true;  // where the device and the problem are such

  // `rows` (batch, heads, queries, 2) and `logarithms` (batch, heads, queries) are floats that are written.
  void forward(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& out, const Tensor& rows,
               const Tensor& logarithms) const;
  // The gradient of the logarithms may be undefined.
  void backward(const Tensor& grad, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& out,
                const Tensor& rows, const Tensor& logarithm_grad, const Tensor& query_grad, const Tensor& key_grad,
                const Tensor& value_grad) const;
};

}  // namespace cresset::cuda
