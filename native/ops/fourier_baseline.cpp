// Fourier transforms of blocks of lines for any processor.
#include "ops/fourier_blocks.h"

namespace cresset {

template <>
FourierKernels<float> fourier_kernels_baseline<float>() {
  return Blocks<float>::kernels();
}
template <>
FourierKernels<double> fourier_kernels_baseline<double>() {
  return Blocks<double>::kernels();
}

}  // namespace cresset
