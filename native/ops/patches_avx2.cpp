// Products with patches for processors with AVX2.
#include "ops/patches_direct.h"

namespace cresset {

template <class T>
PatchKernels<T> patch_kernels_avx2() {
  return {PatchPacking<T>::points, DirectPatches<T>::rows, DirectPatches<T>::sums, Kernels<T>::kLanes};
}
template PatchKernels<float> patch_kernels_avx2();
template PatchKernels<double> patch_kernels_avx2();
template PatchKernels<uint32_t> patch_kernels_avx2();
template PatchKernels<uint64_t> patch_kernels_avx2();

}  // namespace cresset
