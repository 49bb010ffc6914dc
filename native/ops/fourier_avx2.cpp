// Fourier transforms of blocks of lines for processors with AVX2 and FMA.
#include "ops/fourier_blocks.h"

namespace cresset {

template <>
FourierKernels<float> fourier_kernels_avx2<float>() {
  return Blocks<float>::kernels();
}
template <>
FourierKernels<double> fourier_kernels_avx2<double>() {
  return Blocks<double>::kernels();
}

}  // namespace cresset
