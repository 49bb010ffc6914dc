// Fourier transforms of blocks of lines for processors with AVX-512.
#include "ops/fourier_blocks.h"

namespace cresset {

template <>
FourierKernels<float> fourier_kernels_avx512<float>() {
  return Blocks<float>::kernels();
}
template <>
FourierKernels<double> fourier_kernels_avx512<double>() {
  return Blocks<double>::kernels();
}

}  // namespace cresset
