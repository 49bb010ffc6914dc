// Products with patches for any processor.
#include "ops/patches_direct.h"

namespace cresset {

template <class T>
PatchKernels<T> patch_kernels_baseline() {
  return {PatchPacking<T>::points, DirectPatches<T>::rows, DirectPatches<T>::sums, Kernels<T>::kLanes};
}
template PatchKernels<float> patch_kernels_baseline();
template PatchKernels<double> patch_kernels_baseline();
template PatchKernels<uint32_t> patch_kernels_baseline();
template PatchKernels<uint64_t> patch_kernels_baseline();

}  // namespace cresset
