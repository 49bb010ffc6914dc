// Convolutions with 3 x 3 taps, step 1, of float images that lie [image][point][channel], with fewer multiplications.
//
// Note [Fewer multiplications]
// Two neighboring results of three taps need four products instead of six (Winograd, 1980): with F = filter, d = four
// neighbors of the image, y = A'[(G F) (B' d)], where A, B and G hold only 0, 1, -1 and 1/2. In two dimensions, 2 x 2
// results of a tile take 16 products instead of 36, for each pair of channels. So the images are turned into tiles (B'
// d B), the filters likewise (G F G'), 16 products of matrices [tile][channel] x [channel][channel] are computed, and
// A' m A gives the results. The gradient of the filter is the transposed of all that: G'[(B' d B)(A dy A')]G, summed
// over the tiles. The sums go in the order of the channels, tile by tile, whatever the piece of work that a thread has.
// They are about as exact as the plain ones, except that an infinity or NaN reaches all results of its tile, and that
// huge numbers overflow sooner: so where a result is not finite, everything is computed again by the definition.
#pragma once
#include <cstdint>
#include <memory>

namespace cresset {

struct WinogradSizes {
  int64_t images, from, to;          // channels
  int64_t in[2], out[2], before[2];  // rows and columns; before: padding
};

// A weight of (3, 3) taps for each pair of channels (i, j), at weight + i * from_step + j * to_step; `turned`: from the
// last tap to the first.
struct WinogradFilter {
  const float* weight;
  int64_t from_step, to_step;
  bool turned;
};

// For one instruction set, on one thread. Sizes are in floats.
struct WinogradKernels {
  int64_t (*scratch)(const WinogradSizes&, bool sums);  // sums: for the gradient of the filter
  int64_t (*packed)(const WinogradSizes&);
  void (*pack)(const WinogradSizes&, const WinogradFilter&, int64_t begin, int64_t end,
               float* packed);  // of some channels of the results
  void (*images)(const WinogradSizes&, const float* x, const WinogradFilter&, const float* packed, const float* bias,
                 float* y, float* scratch);
  void (*sums)(const WinogradSizes&, const float* dy, const float* x, float* to,
               float* scratch);  // to: [tap][from][to]
};

WinogradKernels winograd_kernels_avx2();
WinogradKernels winograd_kernels_avx512();

// The choice depends on sizes only (and on the processor).
struct ConvolutionSizes;
class ConvolutionKernel;
bool winograd_does(const ConvolutionSizes&);
std::shared_ptr<const ConvolutionKernel> winograd_convolution(const ConvolutionSizes&);

}  // namespace cresset
