// Convolutions by the definition for processors with AVX-512.
#include "ops/convolution_direct_tiles.h"

namespace cresset {

DirectKernels direct_kernels_avx512() { return kDirectKernels; }

}  // namespace cresset
