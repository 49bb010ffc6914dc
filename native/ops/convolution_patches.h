// Convolutions of every dtype as products of matrices with patches of the images (patches.h).
#pragma once
#include "ops/convolution.h"
#include "tensor/tensor.h"

namespace cresset {

// Of images a and weights b, which are contiguous, or of two images (weight_gradient). `out` is contiguous; the bias
// may be undefined.
void convolve_patches(const ConvolutionSizes& sizes, const Tensor& a, const Tensor& b, const Tensor& bias,
                      const Tensor& out);

}  // namespace cresset
