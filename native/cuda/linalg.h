// Linear algebra on CUDA that takes more than one routine of a library: how A = P L U is computed and used, and what
// its row exchanges mean.
#pragma once
#include "cuda/cusolver.h"

namespace cresset::cuda {

// A becomes L and U in one matrix; pivots (int32, from 1) and info are written. Undefined pivots: rows are not
// exchanged.
void lu_factor(const Tensor& a, const Tensor& pivots, const Tensor& info);
// b becomes the solution of A X = b, or of the transposed or adjoint equation.
void lu_solve(const Tensor& lu, const Tensor& pivots, const Tensor& b, Form form);
// Which row stands where after the exchanges: order (int64) is written.
void row_order(const Tensor& pivots, const Tensor& order);

}  // namespace cresset::cuda
