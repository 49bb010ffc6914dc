// What the product of matrices needs from one instruction set: see Note [How a product is computed] in gemm.h.
#pragma once
#include <cstddef>

#include "ops/gemm.h"

namespace cresset {

// k in blocks so long that a panel of b stays in the first-level cache beside one of a; m in blocks whose panels stay in the second.
inline constexpr int64_t kBlockK = 192, kBlockM = 384, kBlockN = 3072;
inline constexpr int64_t kFewLines = 4;
inline constexpr int64_t kMostRows = 8;  // of a tile, in any instruction set

// Serial products. No dimension is zero.
template <class T>
struct ProductKernels {
  void (*tiles)(const Product<T>&);      // any
  void (*few_lines)(const Product<T>&);  // a or b has at most kFewLines lines; the lines of both are contiguous
  void (*one_line)(const Product<T>&);   // a or b has one line, the other's lie side by side; if it is b's, c is contiguous
  void (*pack_rows)(const Factor<T>& a, int64_t m, int64_t k, T* to);
};

template <class T>
ProductKernels<T> product_kernels_baseline();
template <class T>
ProductKernels<T> product_kernels_avx2();
template <class T>
ProductKernels<T> product_kernels_avx512();

// Memory for panels: one piece per thread, kept, valid until the next call.
void* gemm_scratch(size_t bytes);

}  // namespace cresset
