// What the operators on matrices share: checks, matrices as LAPACK wants them, errors.
#pragma once
#include "dispatch/call.h"
#include "ops/lapack.h"
#include "tensor/allocator.h"

namespace cresset {

// ---- checks, with PyTorch's classes

enum class MatrixShape { any, square };
void check_floating(const char* who, const Tensor& t);
void check_matrix(const char* who, const Tensor& t, MatrixShape shape, const char* name = "A");
void check_same_dtype(const char* who, const Tensor& a, const Tensor& b, const char* first = "A",
                      const char* second = "B");
// The batch of A X = B (X A = B unless `left`), whose sizes have to fit.
Dims check_equation(const char* who, const Tensor& a, const Tensor& b, bool left);
void check_pivots(const char* who, const Tensor& factor, const Tensor& pivots);
void check_pivots_range(const char* who, const Tensor& pivots, int64_t rows);  // contiguous ones
// An error if out= has a dtype that the result `name` cannot be cast to.
void check_target(const Call& c, const char* who, const char* name, Dtype dtype, int at = 0);

// A LinAlgError for the first matrix whose number is not zero, in the words of `who`. Also of a batch of vmap, of a
// device, and of tensors that answer for themselves.
void check_errors(const char* who, const Tensor& info, bool single);

// ---- matrices

inline DimsView batch_of(const Tensor& t) { return {t.sizes().data(), static_cast<size_t>(t.dim() - 2)}; }
int64_t count_of(DimsView batch);
Dims with(DimsView batch, std::initializer_list<int64_t> more);
// Matrices that lie column after column (or row after row), and numbers for each of a batch.
TensorInfo matrices(DimsView batch, int64_t rows, int64_t columns, const Tensor& like, bool by_rows = false);
TensorInfo vectors(DimsView batch, int64_t size, Dtype dtype, const Tensor& like);

// A batch of matrices in memory: column after column, one after the other.
struct MatrixColumns {
  char* data;
  int64_t rows, columns, count;
  Dtype dtype;
  explicit MatrixColumns(const Tensor& t)
      : data(t.bytes()), rows(t.size(-2)), columns(t.size(-1)), count(count_of(batch_of(t))), dtype(t.dtype()) {}
  int64_t width() const { return size_of(dtype); }
  int64_t bytes() const { return rows * columns * width(); }  // of one
  char* at(int64_t i) const { return data + i * bytes(); }
};
// The same matrices to read: where they lie so, or a copy.
Tensor in_columns(const Tensor& t);
// Zeros below the diagonal, or above it.
void clear_triangle(const MatrixColumns& a, bool upper);
// A copy of what stands on the diagonal and on one side of it, into matrices of as many columns; zeros elsewhere.
void copy_upper(const MatrixColumns& to, const MatrixColumns& from);

// Memory for the time of a call.
class Workspace {
 public:
  Workspace(int64_t count, int64_t width) : bytes_(static_cast<size_t>(std::max<int64_t>(count * width, 1))) {
    data_ = static_cast<char*>(allocate_host(bytes_));
  }
  ~Workspace() { free_host(data_, bytes_); }
  Workspace(const Workspace&) = delete;
  char* data() const { return data_; }

 private:
  size_t bytes_;
  char* data_;
};

// Where each matrix of a batch lies among those that are broadcast to it: in elements of `step` each.
class BroadcastPlaces {
 public:
  BroadcastPlaces(DimsView sizes, DimsView own, int64_t step);
  int64_t operator()(int64_t i) const;

 private:
  Dims sizes_, steps_;
  int64_t step_;
  bool in_order_;
};

// Whether plain loops factorize matrices, or solve for `columns` with a factor of n rows, faster than LAPACK's
// routines.
bool factorizes_fast(Dtype dtype, int64_t rows, int64_t columns);
bool solves_fast(Dtype dtype, int64_t n, int64_t columns);

// ---- steps that several operators take; each of one matrix

// LU = P A in place, pivots from 1; gives the first zero on U's diagonal, or 0.
void factor_lu(const MatrixColumns& lu, int32_t* pivots, int32_t* info);
// Solves with a factor of n rows for the `columns` columns of x, in place. form: 'N' A X = B, 'T' or 'C' with A
// transposed, also conjugated.
void solve_lu(Dtype dtype, char form, int64_t n, int64_t columns, const char* lu, const int32_t* pivots, char* x);

// A triangle in memory: how far rows and columns are apart, one of the two by one element.
struct Triangle {
  const char* data;
  int64_t row_step, column_step;
  bool lower, unit, conjugated;
};
// Solves A X = B (X A = B unless `left`) in place: x has its columns one after the other.
void solve_triangle(Dtype dtype, const Triangle& a, bool left, char* x, int64_t rows, int64_t columns);

// Calls an operator whose last result says which matrices failed, and raises for those; the first `results` of its
// results are what is given.
void call_checked(Call& c, const Operator& op, const char* who, std::initializer_list<Value> arguments, int results);
// Calls an operator through the whole path with arguments in order; the rest have their defaults.
void call_with(Call& inner, std::initializer_list<Value> arguments);

// Whether a derivative of the result may be asked for. If not, a cheaper routine can do.
inline bool is_differentiated(const Tensor& t) {
  return (t->requires_grad && modes.grad_enabled && !modes.inference) || t->has_tangent;
}

// f<T>() with the type behind one of the four dtypes that LAPACK knows.
template <class F>
decltype(auto) visit_lapack(Dtype d, F&& f) {
  switch (d) {
    case Dtype::f32: return f.template operator()<float>();
    case Dtype::f64: return f.template operator()<double>();
    case Dtype::c64: return f.template operator()<complex64>();
    default: return f.template operator()<complex128>();
  }
}

}  // namespace cresset
