// What a product of matrices needs from one instruction set: see Note [How a product is computed] in gemm.h.
#pragma once
#include "ops/gemm.h"

namespace cresset {

inline constexpr int64_t kBlockM = 384, kBlockN = 3072;

// The whole product on the calling thread; `vectors` computes n lines' products with one vector (m or n is 1).
template <class T>
using Multiply = void (*)(const Product<T>&);

template <class T>
Multiply<T> multiply_baseline();
template <class T>
Multiply<T> multiply_avx2();
template <class T>
Multiply<T> multiply_avx512();

// Memory for panels, one piece per thread, kept.
void* gemm_scratch(size_t bytes);

}  // namespace cresset
