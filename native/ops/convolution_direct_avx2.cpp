// Convolutions by the definition for processors with AVX2.
#include "ops/convolution_direct_tiles.h"

namespace cresset {

DirectKernels direct_kernels_avx2() { return kDirectKernels; }

}  // namespace cresset
