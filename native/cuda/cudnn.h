// Convolutions and attention by NVIDIA's cuDNN (version 9), opened when the first one is asked for, through its
// interface of graphs (cudnn_graph.h).
//
// Each is planned once: the execution plan that the library's heuristic finds best (or the fastest of several
// convolutions, with cresset.backends.cudnn.benchmark) is kept by what it depends on.
#pragma once
#include <atomic>
#include <string>

#include "cuda/launch.h"

namespace cresset::cuda {

// cresset.backends.cudnn; `attention` is cresset.backends.cuda.enable_cudnn_sdp, `all_deterministic` is
// cresset.use_deterministic_algorithms.
struct CudnnSettings {
  std::atomic<bool> enabled = true, benchmark = false, deterministic = false, tf32 = true, attention = true,
                    all_deterministic = false;
  std::atomic<int64_t> candidates = 10;  // so many plans does `benchmark` try; 0: all
  std::atomic<int64_t> attention_from = int64_t{1}
                                        << 29;  // so many products of numbers: smaller problems do not pay for a plan
  bool wants_deterministic() const { return deterministic || all_deterministic; }
};
extern CudnnSettings cudnn_settings;

const std::string& cudnn_problem();  // why it is not there; empty when it is
int64_t cudnn_version();             // 91500; 0 without it

enum class CudnnConvolution : int64_t { forward, input_gradient, weight_gradient };

// y = w * x, or the gradient of x or of w. Two or three spatial dimensions. All images and the weight lie with the
// channels innermost, or all contiguous. Numbers only: it is the key of a cache.
struct ConvolutionSizes {
  CudnnConvolution kind;
  int64_t dtype, channels_inside, rank, images, in_channels, out_channels, groups;
  int64_t in[3], out[3], kernel[3], stride[3], padding[3], dilation[3];
};

// Whether it was done: false when the library has no plan for it, and nothing was done then. The memory is that of x, w
// and y; which of them is written, the kind says.
bool convolve(const Place& place, const ConvolutionSizes& sizes, void* x, void* w, void* y);

// Of a tensor (batch, heads, rows, width), in elements; the elements of a row lie side by side.
struct HeadStrides {
  int64_t batch, head, row;
};
// Attention in half precision. Numbers only: it is the key of a cache. Several heads may share one of the keys and
// values. A mask is of numbers of the same dtype, which are added to the scores; there is one for each of so many
// batches and heads (all of them or 1), or none (0).
struct AttentionSizes {
  int64_t dtype, batches, heads, key_heads, queries, keys, width, causal, mask_batches, mask_heads;
  HeadStrides mask;
  HeadStrides query, key, value, output, grad, query_grad, key_grad,
      value_grad;  // the last four are the backward pass's
};
struct AttentionMemory {
  void *query, *key, *value, *mask, *output, *rows, *grad, *query_grad, *key_grad, *value_grad;
};
// As convolve. `rows` are float32, one for each query: the logarithm of the sum of its exponentials.
bool attend(const Place& place, const AttentionSizes& sizes, double scale, const AttentionMemory& memory);
bool attend_backward(const Place& place, const AttentionSizes& sizes, double scale, const AttentionMemory& memory);

}  // namespace cresset::cuda
