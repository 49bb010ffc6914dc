// The product of matrices of bfloat16 for processors whose AVX-512 adds the products of pairs of them.
#include <immintrin.h>

#pragma GCC target("avx512bf16")
#define CRESSET_PAIRS
#include "ops/gemm_tiles.h"

namespace cresset {

ProductKernels<float> product_kernels_of_pairs() {
  return {Kernels<float>::tiles, Kernels<float>::few_lines, Kernels<float>::one_line, Kernels<float>::pack_rows};
}

}  // namespace cresset
