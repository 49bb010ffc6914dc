// Convolutions of float images that lie [image][point][channel], in pieces.
//
// Note [Pieces of a convolution]
// A kernel runs on one thread, on a piece of the work: some images, or some rows of one image. How the work is cut
// depends on its sizes alone, and partial sums of a weight gradient are added in the order of the pieces, so that
// results do not depend on the number of threads. Images that lie channel by channel are turned piece by piece, while
// they are in the cache. Most convolutions with 3 x 3 taps have a kernel with fewer multiplications
// (convolution_winograd.h), the others multiply by the definition (convolution_direct.h).
#pragma once
#include <cstdint>
#include <memory>

#include "ops/convolution.h"
#include "tensor/tensor.h"

namespace cresset {

// One convolution, ready to run on one thread. The weight is packed as the kernel likes it.
class ConvolutionKernel {
 public:
  virtual ~ConvolutionKernel() = default;
  int64_t weight_bytes = 0, scratch_bytes = 0;
  virtual bool packs_like(const ConvolutionKernel& other) const = 0;
  virtual void pack(const float* weight,
                    char* packed) const = 0;  // from (out channels, in channels of a group, kernel...)
  virtual void unpack(const char* packed, float* weight) const = 0;
  // forward: input, packed weight, bias -> output. input_gradient: gradient, packed weight -> input's.
  virtual void run(const float* from, const char* packed, const float* bias, float* to, char* scratch) const = 0;
  // weight_gradient: gradient, input -> packed weight's.
  virtual void run_weight(const float* grad, const float* input, char* packed, char* scratch) const = 0;
};

bool goes_in_pieces(const ConvolutionSizes& sizes);
// Returns false when the convolution is better done another way (patches.h). The result may lie either way: where `out`
// is contiguous and `may_hide` is set, its memory becomes private.
bool convolve_in_pieces(const ConvolutionSizes& sizes, const Tensor& a, const Tensor& b, const Tensor& bias,
                        const Tensor& out, bool may_hide);

}  // namespace cresset
