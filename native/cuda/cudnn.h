// Convolutions by NVIDIA's cuDNN (version 9), opened when the first one is asked for, through its interface of graphs.
//
// A convolution is planned once: the execution plan that the library's heuristic finds best (or the fastest of several, with
// cresset.backends.cudnn.benchmark) is kept by what it depends on.
#pragma once
#include <atomic>
#include <string>

#include "cuda/launch.h"

namespace cresset::cuda {

// cresset.backends.cudnn.
struct CudnnSettings {
  std::atomic<bool> enabled = true, benchmark = false, deterministic = false, tf32 = true;
};
extern CudnnSettings cudnn_settings;

const std::string& cudnn_problem();  // why it is not there; empty when it is
int64_t cudnn_version();             // 91500; 0 without it

enum class CudnnConvolution : int64_t { forward, input_gradient, weight_gradient };

// y = w * x, or the gradient of x or of w. Two or three spatial dimensions. All images and the weight lie with the channels innermost, or all contiguous.
// Numbers only: it is the key of a cache.
struct ConvolutionSizes {
  CudnnConvolution kind;
  int64_t dtype, channels_inside, rank, images, in_channels, out_channels, groups;
  int64_t in[3], out[3], kernel[3], stride[3], padding[3], dilation[3];
};

// Whether it was done: false when the library has no plan for it, and nothing was done then. The memory is that of x, w and y; which of them is written, the
// kind says.
bool convolve(const Place& place, const ConvolutionSizes& sizes, void* x, void* w, void* y);

}  // namespace cresset::cuda
