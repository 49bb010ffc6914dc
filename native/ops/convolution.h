// What a convolution is: its kind and its sizes.
//
// Note [Three convolutions]
// y = forward(x, w), dx = input_gradient(dy, w) and dw = weight_gradient(dy, x) are linear in each argument, and each
// one's derivatives are the other two. A transposed convolution is an input_gradient. Images are plain (N, C, D, H, W)
// here; with fewer spatial dimensions, the first ones have size 1.
#pragma once
#include <cstdint>

namespace cresset {

enum class ConvolutionKind : int64_t { forward, input_gradient, weight_gradient };

// From `in` to `out`; a transposed convolution goes from out to in. Numbers only: they are compared as such.
struct ConvolutionSizes {
  ConvolutionKind kind;
  int64_t images, in_channels, out_channels, groups, has_bias = 0;
  int64_t in[3] = {1, 1, 1}, out[3] = {1, 1, 1}, kernel[3] = {1, 1, 1}, stride[3] = {1, 1, 1};
  int64_t before[3] = {0, 0, 0}, after[3] = {0, 0, 0}, dilation[3] = {1, 1, 1};  // before, after: padding

  int64_t in_points() const { return in[0] * in[1] * in[2]; }
  int64_t out_points() const { return out[0] * out[1] * out[2]; }
  int64_t volume() const { return kernel[0] * kernel[1] * kernel[2]; }
  int64_t in_group() const { return in_channels / groups; }
  int64_t out_group() const { return out_channels / groups; }
};

}  // namespace cresset
