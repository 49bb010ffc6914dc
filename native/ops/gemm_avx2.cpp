// The product of matrices for processors with AVX2.
#include "ops/gemm_tiles.h"

namespace cresset {

template <class T>
ProductKernels<T> product_kernels_avx2() {
  return {Kernels<T>::tiles, Kernels<T>::few_lines, Kernels<T>::one_line, Kernels<T>::pack_rows};
}
template ProductKernels<float> product_kernels_avx2();
template ProductKernels<double> product_kernels_avx2();
template ProductKernels<uint32_t> product_kernels_avx2();
template ProductKernels<uint64_t> product_kernels_avx2();

}  // namespace cresset
