// The product of matrices for processors with AVX-512.
#include "ops/gemm_tiles.h"

namespace cresset {

template <class T>
ProductKernels<T> product_kernels_avx512() {
  return {Kernels<T>::tiles, Kernels<T>::few_lines, Kernels<T>::one_line, Kernels<T>::pack_rows};
}
template ProductKernels<float> product_kernels_avx512();
template ProductKernels<double> product_kernels_avx512();
template ProductKernels<uint64_t> product_kernels_avx512();  // which has a product of 64 bits

}  // namespace cresset
