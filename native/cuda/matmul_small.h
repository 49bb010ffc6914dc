// Products of small matrices by a kernel of our own, which starts faster than those of cuBLASLt.
#pragma once
#include "cuda/cublas.h"

namespace cresset::cuda {

// Whether it was one.
bool multiply_small(const Place& place, const MatrixProduct& p);

}  // namespace cresset::cuda
