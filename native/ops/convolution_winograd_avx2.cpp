// Winograd's convolution for processors with AVX2.
#include "ops/convolution_winograd_tiles.h"

namespace cresset {

WinogradKernels winograd_kernels_avx2() { return {scratch, packed, pack, images, sums}; }

}  // namespace cresset
