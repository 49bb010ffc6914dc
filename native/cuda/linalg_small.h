// Linear algebra of matrices that fit into the shared memory of a block, by kernels of our own: a library takes them
// one after the other, or in several launches. Each function is false, and has done nothing, where they do not fit.
#pragma once
#include <span>

#include "cuda/cusolver.h"

namespace cresset::cuda {

struct Triangle {
  bool upper;  // as the matrix lies, before it is transposed
  bool unit;
  Form form;
};
// b becomes the solution of equations with one triangle of `a` after the other. Pivots: int32, from 1, or null; rows
// are exchanged before the equations, or behind them, backward.
bool solve_small(const Matrices& a, const Matrices& b, std::span<const Triangle> triangles, const int* pivots = nullptr,
                 bool exchanges_last = false);
bool geqrf_small(const Matrices& a, char* tau);
bool orgqr_small(const Matrices& q, const char* tau, int64_t reflectors);
// b, as tall as `a`, which is not wide: its first rows become the solution. info: as gels has it.
bool least_squares_small(const Matrices& a, const Matrices& b, int* info);

}  // namespace cresset::cuda
