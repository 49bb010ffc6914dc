// Winograd's convolution for processors with AVX-512.
#include "ops/convolution_winograd_tiles.h"

namespace cresset {

WinogradKernels winograd_kernels_avx512() { return {scratch, packed, pack, images, sums}; }

}  // namespace cresset
