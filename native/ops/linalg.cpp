// What the operators on matrices share, and the one that raises where a matrix has no answer.
#include "ops/linalg.h"

#include "base/dtype.h"
#include "dispatch/casting.h"
#include "dispatch/registration.h"

namespace cresset {

void check_floating(const char* who, const Tensor& t) {
  const Dtype d = t.dtype();
  check(is_differentiable(d), who, ": Expected a floating point or complex tensor as input. Got ", name_of(d));
  check_implemented(d == Dtype::f32 || d == Dtype::f64 || d == Dtype::c64 || d == Dtype::c128, who,
                    ": Low precision dtypes not supported. Got ", name_of(d));
}

void check_matrix(const char* who, const Tensor& t, MatrixShape shape, const char* name) {
  check(t.dim() >= 2, who, ": The input tensor ", name, " must have at least 2 dimensions, got shape ",
        tuple(t.sizes()), ".");
  check_floating(who, t);
  check(shape == MatrixShape::any || t.size(-1) == t.size(-2), who, ": ", name,
        " must be batches of square matrices, but they are ", t.size(-2), " by ", t.size(-1), " matrices");
}

void check_same_dtype(const char* who, const Tensor& a, const Tensor& b, const char* first, const char* second) {
  check(a.dtype() == b.dtype(), who, ": Expected ", first, " and ", second, " to have the same dtype, but found ",
        first, " of type ", name_of(a.dtype()), " and ", second, " of type ", name_of(b.dtype()), " instead");
}

Dims check_equation(const char* who, const Tensor& a, const Tensor& b, bool left) {
  check(a.size(-1) == b.size(left ? -2 : -1), who, ": Incompatible shapes of A and B for the equation ",
        left ? "AX = B" : "XA = B", " (", a.size(-2), "x", a.size(-1), " and ", b.size(-2), "x", b.size(-1), ")");
  return broadcast(who, batch_of(a), batch_of(b));
}

void check_pivots(const char* who, const Tensor& factor, const Tensor& pivots) {
  check(pivots.dtype() == Dtype::i32, who, ": pivots should be a Tensor of scalar type torch.int32, got torch.",
        name_of(pivots.dtype()));
  const int64_t rows = factor.size(-2), k = std::min(rows, factor.size(-1));
  check(pivots.sizes() == with(batch_of(factor), {k}), who,
        ": Number of pivots per batch should be same as the dimension of the matrix, and the batches equal; got "
        "shapes ",
        tuple(pivots.sizes()), " and ", tuple(factor.sizes()));
}

void check_pivots_range(const char* who, const Tensor& pivots, int64_t rows) {
  const int32_t* const numbers = pivots.data<int32_t>();
  for (int64_t i = 0; i < pivots.numel(); ++i)
    check(1 <= numbers[i] && numbers[i] <= rows, who, ": pivots given must all be between 1 and ", rows,
          ", the number of rows");
}

void check_target(const Call& c, const char* who, const char* name, Dtype dtype, int at) {
  if (c.target) check_cast_of(who, name, dtype, c.target[at].dtype());
}

// ---------------------------------------------------------------- matrices

int64_t count_of(DimsView batch) {
  int64_t count = 1;
  for (const int64_t size : batch) count *= size;
  return count;
}

Dims with(DimsView batch, std::initializer_list<int64_t> more) {
  Dims sizes(batch);
  for (const int64_t size : more) sizes.push_back(size);
  return sizes;
}

TensorInfo matrices(DimsView batch, int64_t rows, int64_t columns, const Tensor& like, bool by_rows) {
  TensorInfo info{with(batch, {rows, columns}), {}, like.dtype(), like.device()};
  if (by_rows) return info;
  info.strides = contiguous_strides(with(batch, {columns, rows}));
  const int64_t n = info.strides.size();
  std::swap(info.strides[n - 1], info.strides[n - 2]);
  return info;
}

TensorInfo vectors(DimsView batch, int64_t size, Dtype dtype, const Tensor& like) {
  return {with(batch, {size}), {}, dtype, like.device()};
}

Tensor in_columns(const Tensor& t) {
  const TensorInfo wanted = matrices(batch_of(t), t.size(-2), t.size(-1), t);
  bool as_it_lies = true;
  for (int64_t d = 0; d < t.dim(); ++d) as_it_lies &= t.size(d) == 1 || t.stride(d) == wanted.strides[d];
  if (as_it_lies) return t;
  const Tensor copy = empty(wanted);
  copy_into(copy, t);
  return copy;
}

// Measured on an EPYC beside OpenBLAS 0.3 and, through the whole call, MKL (cresset / PyTorch, us): Cholesky's factor
// of 8 x 8 floats 0.8 / 2.7, of 32 x 32 2.0 / 4.6, LU 0.9 / 3.2 and 2.9 / 6.7, QR 1.1 / 4.1 and 8.5 / 12.9; complex
// ones of 32 x 32 take longer in loops.
bool factorizes_fast(Dtype dtype, int64_t rows, int64_t columns) {
  return std::max(rows, columns) <= (is_complex(dtype) ? 16 : 32);
}
bool solves_fast(Dtype dtype, int64_t n, int64_t columns) {
  return n <= (is_complex(dtype) ? 16 : 32) && n * columns <= 512;
}

void clear_triangle(const MatrixColumns& a, bool upper) {
  const auto width = static_cast<size_t>(a.width());
  for (int64_t i = 0; i < a.count * a.columns; ++i) {
    const int64_t column = i % a.columns;
    char* const at = a.data + i * a.rows * a.width();
    if (upper)
      std::memset(at, 0, static_cast<size_t>(std::min(column, a.rows)) * width);
    else if (column + 1 < a.rows)
      std::memset(at + (column + 1) * a.width(), 0, static_cast<size_t>(a.rows - column - 1) * width);
  }
}

void copy_upper(const MatrixColumns& to, const MatrixColumns& from) {
  for (int64_t i = 0; i < to.count * to.columns; ++i) {
    const int64_t column = i % to.columns, kept = std::min({column + 1, to.rows, from.rows});
    char* const at = to.data + i * to.rows * to.width();
    const char* const source = from.at(i / to.columns) + column * from.rows * from.width();
    std::memcpy(at, source, static_cast<size_t>(kept * to.width()));
    std::memset(at + kept * to.width(), 0, static_cast<size_t>((to.rows - kept) * to.width()));
  }
}

BroadcastPlaces::BroadcastPlaces(DimsView sizes, DimsView own, int64_t step) : sizes_(sizes), step_(step) {
  const auto n = static_cast<int64_t>(sizes.size()), missing = n - static_cast<int64_t>(own.size());
  const Dims strides = contiguous_strides(own);
  in_order_ = true;
  for (int64_t d = 0; d < n; ++d) {
    const bool has = d >= missing && own[static_cast<size_t>(d - missing)] != 1;
    steps_.push_back(has ? strides[d - missing] : 0);
    in_order_ &= has || sizes_[d] == 1;
  }
}

int64_t BroadcastPlaces::operator()(int64_t i) const {
  if (in_order_) return i * step_;
  int64_t place = 0;
  for (int64_t d = sizes_.size() - 1; d >= 0; --d) {
    place += i % sizes_[d] * steps_[d];
    i /= sizes_[d];
  }
  return place * step_;
}

void call_with(Call& inner, std::initializer_list<Value> arguments) {
  size_t i = 0;
  for (const Value& value : arguments) inner.args[i++] = value;
  for (; i < inner.op.signature.parameters.size(); ++i) inner.args[i] = inner.op.signature.parameters[i].default_value;
  call(inner);
}

void call_checked(Call& c, const Operator& op, const char* who, std::initializer_list<Value> arguments, int results) {
  Call inner(op);
  if (c.given_out) {
    check_type(c.outputs.size() == results, c.op.name(), "(): out= must hold ", results, " tensors, got ",
               c.outputs.size());
    inner.given_out = true;
    inner.outputs = c.outputs;
    const Dtype own = arguments.begin()->tensor_->dtype;
    for (size_t i = static_cast<size_t>(results); i < op.signature.results.size(); ++i) {
      const bool counts = op.signature.results[i] == "info" || op.signature.results[i] == "pivots";
      inner.outputs.push_back(empty(Dims{0}, counts ? Dtype::i32 : own, Tensor(arguments.begin()->tensor_).device()));
    }
  }
  call_with(inner, arguments);
  const Tensor info = inner.outputs.back();
  c.outputs.clear();
  for (int64_t i = 0; i < results; ++i) c.give(inner.outputs[i]);
  check_errors(who, info, info.dim() == 0);
}

// ---------------------------------------------------------------- where there is no answer

namespace {

// What the number of a matrix that failed says, by who asks.
std::string reason(std::string_view who, int64_t number) {
  if (who.find("cholesky_inverse") != who.npos || who.find("inv") != who.npos)
    return join("The diagonal element ", number,
                " is zero, the inversion could not be completed because the input matrix is singular.");
  if (who.find("solve") != who.npos) return "The solver failed because the input matrix is singular.";
  if (who.find("cholesky") != who.npos)
    return join(
        "The factorization could not be completed because the input is not positive-definite (the leading minor of "
        "order ",
        number, " is not positive-definite).");
  if (who.find("lu_factor") != who.npos)
    return join("U[", number, ",", number,
                "] is zero and using it on lu_solve would result in a division by zero. If you still want to perform "
                "the factorization, consider calling linalg.lu(A, pivot) or linalg.lu_factor_ex(A, pivot)");
  if (who.find("ldl") != who.npos) return join("The diagonal element ", number, " is zero, D is exactly singular");
  if (who.find("gels") != who.npos)
    return join(
        "The least squares solution could not be computed because the input matrix does not have full rank (error "
        "code: ",
        number, ").");
  if (who.find("lstsq") != who.npos) return join("The algorithm failed to converge (error code: ", number, ").");
  if (who.find("svd") != who.npos && number < 0)
    return "The algorithm failed to converge because the input matrix contained non-finite values.";
  return join("The algorithm failed to converge because the input matrix is ill-conditioned or has too many repeated ",
              who.find("svd") != who.npos ? "singular" : "eigen", who.find("svd") != who.npos ? " " : "",
              "values (error code: ", number, ").");
}

void raise_for(std::string_view who, const Tensor& info, bool single) {
  const int32_t* const numbers = info.data<int32_t>();
  for (int64_t i = 0; i < info.numel(); ++i)
    if (numbers[i])
      fail(ErrorKind::linear_algebra, who, ": ", single ? std::string() : join("(Batch element ", i, "): "),
           reason(who, numbers[i]));
}

void run_check_errors(Call& c) {
  const Tensor info = c.tensor(0);
  check(info.dtype() == Dtype::i32, "_linalg_check_errors: expected info as int32, got ", name_of(info.dtype()));
  if (info.is_meta()) return;
  const Tensor here = empty(info.sizes(), Dtype::i32);
  copy_into(here, info);
  raise_for(c.text(1), here, c.boolean(2));
}

}  // namespace

void check_errors(const char* who, const Tensor& info, bool single) {
  if (info->level == 0 && info.device().is_cpu() && info.is_contiguous() && !modes.dispatching) [[likely]]
    return raise_for(who, info, single);
  static const Operator* const check_errors = Registry::instance().find("_linalg_check_errors");
  Call inner(*check_errors);
  inner.args[0] = Value(info);
  inner.args[1].kind = Kind::text, inner.args[1].text_ = who;
  inner.args[1].count = static_cast<int64_t>(std::string_view(who).size());
  inner.args[2] = Value(Scalar(single));
  call(inner);
}

REGISTER(linalg) {
  r.add("_linalg_check_errors(Tensor info, str api_name, *, bool is_matrix) -> None", nullptr, run_check_errors,
        kNotDifferentiable | kFunctionOnly | kAnyDevice);
}

}  // namespace cresset
