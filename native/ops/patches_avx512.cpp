// Packing of patches for processors with AVX-512.
#include "ops/patches_pack.h"

namespace cresset {

template <class T>
PatchKernels<T> patch_kernels_avx512() {
  return {PatchPacking<T>::points, PatchPacking<T>::taps};
}
template PatchKernels<float> patch_kernels_avx512();
template PatchKernels<double> patch_kernels_avx512();

}  // namespace cresset
