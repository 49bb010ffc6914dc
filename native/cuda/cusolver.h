// Factorizations of matrices by NVIDIA's cuSOLVER, and equations of triangles and of small batches by cuBLAS, opened
// when the first one is asked for.
//
// Matrices lie column after column, those of a batch one after the other. A routine overwrites what it is given, as
// LAPACK's of the same name does; numbers of success (`info`) are int32 on the device, one a matrix.
#pragma once
#include <string>

#include "tensor/tensor.h"

namespace cresset::cuda {

const std::string& cusolver_problem();  // why it is not there; empty when it is
bool has_geev();                        // since cuSOLVER 11.7

struct Matrices {
  Dtype dtype;
  int64_t rows, columns, count;
  char* data;
  int device;
  explicit Matrices(const Tensor& t);  // raises unless they lie as it is said above
  char* at(int64_t i) const { return data + i * rows * columns * size_of(dtype); }
};

enum class Form : int { plain, transposed, adjoint };

void potrf(const Matrices& a, bool upper, int* info);
// Pivots count from 1: int64 for one matrix at a time, int32 for a batch. Null for getrf: rows are not exchanged.
void getrf(const Matrices& a, int64_t* pivots, int* info);
void getrf_batched(const Matrices& a, int* pivots, int* info);
void getrs(const Matrices& lu, const int64_t* pivots, const Matrices& b, Form form);
void trsm(const Matrices& a, const Matrices& b, bool upper, bool left, bool unit, Form form);
void geqrf(const Matrices& a, char* tau);
void orgqr(const Matrices& a, const char* tau, int64_t reflectors);
void ormqr(const Matrices& a, const char* tau, int64_t reflectors, const Matrices& c, bool left, Form form);
// Symmetric matrices, of which the lower triangle is read; a pivot of a block of two is negative.
void sytrf(const Matrices& a, int* pivots, int* info);
void sytrs(const Matrices& a, const int64_t* pivots, const Matrices& b);
void syevd(const Matrices& a, char* values, bool upper, bool vectors, int* info);
// By Jacobi's rotations: v is V, not its adjoint. Null: only values.
void gesvdj(const Matrices& a, char* values, const Matrices* u, const Matrices* v, int* info);
// By bidiagonal QR, for matrices that are not wide: vh is the adjoint of V.
void gesvd(const Matrices& a, char* values, const Matrices* u, const Matrices* vh, int* info);
// Values are two rows for real matrices, of the real and of the imaginary parts; vectors of a pair of conjugate values
// are its real and its imaginary part.
void geev(const Matrices& a, char* values, const Matrices* vectors, int* info);

}  // namespace cresset::cuda
