// Dense linear algebra by textbook methods, in complex double precision, for the emulated cuBLAS and cuSOLVER.
// Conventions are LAPACK's.
#pragma once
#include <complex>
#include <cstdint>
#include <vector>

#include "number_types.h"

namespace emulator {

using Number = std::complex<double>;

// The form in which a matrix takes part: as it is, transposed, transposed and conjugated.
enum Form : int { plain = 0, transposed = 1, adjoint = 2 };

struct Matrix {
  int64_t rows = 0, columns = 0;
  std::vector<Number> elements;
  Matrix() = default;
  Matrix(int64_t rows, int64_t columns) : rows(rows), columns(columns), elements(size_t(rows * columns)) {}
  Matrix(int type, const void* data, int64_t rows, int64_t columns, int64_t leading);
  void store(int type, void* data, int64_t leading) const;
  Number& operator()(int64_t i, int64_t j) { return elements[size_t(j * rows + i)]; }
  Number operator()(int64_t i, int64_t j) const { return elements[size_t(j * rows + i)]; }
  Matrix in(Form form) const;
};
Matrix identity(int64_t n);
Matrix product(const Matrix& a, const Matrix& b);
Number read_number(int type, const void* data, int64_t at);
void write_number(int type, void* data, int64_t at, Number value);

int factor_cholesky(Matrix& a, bool upper);              // LAPACK's info
int factor_lu(Matrix& a, std::vector<int64_t>* pivots);  // null: without exchanges
void solve_lu(const Matrix& lu, const int64_t* pivots, Matrix& b, Form form);
void solve_triangle(const Matrix& a, Matrix& b, bool upper, bool left, bool unit, Form form);
void factor_qr(Matrix& a, std::vector<Number>& tau);
Matrix reflections(const Matrix& a, const std::vector<Number>& tau);  // the square product of the reflectors
int factor_symmetric(Matrix& a, std::vector<int64_t>& pivots);        // by Bunch and Kaufman, of the lower triangle
void solve_symmetric(const Matrix& a, const int64_t* pivots, Matrix& b);
std::vector<double> eigen_hermitian(Matrix& a, bool upper);  // a becomes the vectors; values rise
// False: they do not converge. U and V are square.
bool singular_values(const Matrix& a, Matrix& u, std::vector<double>& values, Matrix& v);
std::vector<Number> eigen_general(const Matrix& a, Matrix& vectors);

}  // namespace emulator
