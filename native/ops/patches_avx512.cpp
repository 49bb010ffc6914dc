// Products with patches for processors with AVX-512.
#include "ops/patches_direct.h"

namespace cresset {

template <class T>
PatchKernels<T> patch_kernels_avx512() {
  return {PatchPacking<T>::points, DirectPatches<T>::rows, DirectPatches<T>::sums, Kernels<T>::kLanes};
}
template PatchKernels<float> patch_kernels_avx512();
template PatchKernels<double> patch_kernels_avx512();
template PatchKernels<uint64_t> patch_kernels_avx512();

}  // namespace cresset
