// Convolutions by the definition for any processor.
#include "ops/convolution_direct_tiles.h"

namespace cresset {

DirectKernels direct_kernels_baseline() { return kDirectKernels; }

}  // namespace cresset
