// Packing of patches for any processor.
#include "ops/patches_pack.h"

namespace cresset {

template <class T>
PatchKernels<T> patch_kernels_baseline() {
  return {PatchPacking<T>::points, PatchPacking<T>::taps};
}
template PatchKernels<float> patch_kernels_baseline();
template PatchKernels<double> patch_kernels_baseline();
template PatchKernels<uint32_t> patch_kernels_baseline();
template PatchKernels<uint64_t> patch_kernels_baseline();

}  // namespace cresset
