// Linear algebra on CUDA that takes more than one routine of a library: how A = P L U is computed and used, what its
// row exchanges mean, and which matrices kernels of our own take.
#pragma once
#include "cuda/cusolver.h"

namespace cresset::cuda {

// A becomes L and U in one matrix; pivots (int32, from 1) and info are written. Undefined pivots: rows are not
// exchanged.
void lu_factor(const Tensor& a, const Tensor& pivots, const Tensor& info);
// b becomes the solution of A X = b, or of the transposed or adjoint equation.
void lu_solve(const Tensor& lu, const Tensor& pivots, const Tensor& b, Form form);
// An IndexError when the device is next waited for, unless all pivots are from 1 to `rows`.
void check_pivots(const char* who, const Tensor& pivots, int64_t rows);
// b becomes the solution of an equation with a triangle (`upper`: as it lies).
void solve_triangle(const Tensor& a, const Tensor& b, bool upper, bool left, bool unit, Form form);
// b becomes the solution of A X = b, from the lower factor of A = L Lᴴ or the upper one of Lᴴ L. by_rows: the factor is
// real and lies row after row.
void cholesky_solve(const Tensor& factor, const Tensor& b, bool upper, bool by_rows);
// A becomes R and reflectors, as geqrf has them; and reflectors become Q, as orgqr has it.
void householder(const Tensor& a, const Tensor& tau);
void householder_product(const Tensor& a, const Tensor& tau);
// The first rows of b, which is as tall as A, become the X that makes |A X - b| least. False, and nothing is done,
// where A is wide or does not fit into a block's shared memory.
bool least_squares(const Tensor& a, const Tensor& b, const Tensor& info);
// Which row stands where after the exchanges: order (int64) is written.
void row_order(const Tensor& pivots, const Tensor& order);

}  // namespace cresset::cuda
