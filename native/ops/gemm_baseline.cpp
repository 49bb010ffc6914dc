// The product of matrices for any processor.
#include "ops/gemm_tiles.h"

namespace cresset {

template <class T>
ProductKernels<T> product_kernels_baseline() {
  return {Kernels<T>::tiles, Kernels<T>::few_lines, Kernels<T>::one_line, Kernels<T>::pack_rows};
}
template ProductKernels<float> product_kernels_baseline();
template ProductKernels<double> product_kernels_baseline();
template ProductKernels<uint32_t> product_kernels_baseline();
template ProductKernels<uint64_t> product_kernels_baseline();

}  // namespace cresset
