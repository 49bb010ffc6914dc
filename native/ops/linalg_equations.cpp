// Equations with matrices, inverses, determinants and least squares.
#include <algorithm>
#include <cmath>
#include <optional>

#include "dispatch/registration.h"
#include "ops/linalg.h"
#include "ops/linalg_small.h"

namespace cresset {
namespace {

double work_of(int64_t n, int64_t columns, int64_t count) {
  return static_cast<double>(n * n) * static_cast<double>(columns * count);
}

void conjugate_in_place(const Tensor& t) {
  visit_lapack(t.dtype(), [&]<class T>() {
    T* const x = t.data<T>();
    for (int64_t i = 0; i < t.numel(); ++i) x[i] = small::conjugate(x[i]);
  });
}

// ---------------------------------------------------------------- A X = B by A = P L U

// Whether B is a vector for each A, not matrices: its shape is A's without the last dimension.
bool are_vectors(const Tensor& a, const Tensor& b) {
  if (b.dim() == 1) return true;
  if (a.dim() - 1 != b.dim()) return false;
  for (int64_t d = 0; d < b.dim(); ++d)
    if (a.size(d) != b.size(d)) return false;
  return true;
}

Tensor as_column(const Tensor& b) {
  Dims sizes = b.sizes(), strides = b.strides();
  sizes.push_back(1), strides.push_back(1);
  return view_of(b, sizes, strides, b.offset());
}

void infer_solve(Call& c) {
  const char* who = c.boolean(3) ? "linalg.solve_ex" : "linalg.solve";
  const Tensor a = c.tensor(0);
  Tensor b = c.tensor(1);
  const bool left = c.boolean(2);
  check_matrix(who, a, MatrixShape::square);
  check_same_dtype(who, a, b);
  const bool vectors_of_b = are_vectors(a, b);
  check(left || !vectors_of_b, who,
        ": Vector broadcasting of the left hand side is not supported for left=False. In this case linalg.solve is "
        "equivalent to B / A.squeeze(-1)");
  if (vectors_of_b) b = as_column(b);
  check_matrix(who, b, MatrixShape::any, "B");
  const Dims batch = check_equation(who, a, b, left);
  check_target(c, who, "result", a.dtype());
  if (vectors_of_b)
    // As in PyTorch, a batch of vectors lies as a matrix of them does.
    c.promise(batch.empty()
                  ? vectors(batch, b.size(-2), a.dtype(), a)
                  : matrices({batch.data(), static_cast<size_t>(batch.size() - 1)}, batch.back(), b.size(-2), a));
  else
    c.promise(matrices(batch, b.size(-2), b.size(-1), a, !left));
  c.promise(matrices(batch_of(a), a.size(-1), a.size(-1), a));
  c.promise(vectors(batch_of(a), a.size(-1), Dtype::i32, a));
  c.promise(Dims(batch_of(a)), Dtype::i32, a.device());
}

// X, which holds B, solved with factors that may be fewer: its columns (its rows unless `left`) follow each other.
void solve_with_factors(const Tensor& X, const Tensor& lu, const int32_t* pivots, bool left, bool adjoint) {
  const int64_t n = lu.size(-1);
  const int64_t columns = left ? X.size(-1) : X.size(-2), count = count_of(batch_of(X));
  if (!X.numel()) return;
  const MatrixColumns factor(lu);
  const BroadcastPlaces place(batch_of(X), batch_of(lu), 1);
  // X A = B is Aᵀ Xᵀ = Bᵀ, and X Aᴴ = B is A conj(X)ᵀ = conj(B)ᵀ.
  const bool conjugates = !left && adjoint && is_complex(X.dtype());
  if (conjugates) conjugate_in_place(X);
  const char form = left ? (adjoint ? 'C' : 'N') : adjoint ? 'N' : 'T';
  std::optional<LapackWork> work;
  if (!solves_fast(X.dtype(), n, columns)) work.emplace(factor.bytes(), work_of(n, columns, count));
  for (int64_t i = 0; i < count; ++i) {
    const int64_t at = place(i);
    solve_lu(X.dtype(), form, n, columns, factor.at(at), pivots + at * n, X.bytes() + i * n * columns * factor.width());
  }
  if (conjugates) conjugate_in_place(X);
}

void run_solve(Call& c) {
  const Tensor b = c.tensor(1), &LU = c.out(1);
  const bool left = c.boolean(2), vectors_of_b = are_vectors(c.tensor(0), b);
  copy_into(LU, c.tensor(0));
  int32_t* const pivots = c.out(2).data<int32_t>();
  factor_lu(MatrixColumns(LU), pivots, c.out(3).data<int32_t>());
  const Tensor x = c.out(0).is_contiguous() || !vectors_of_b ? c.out(0) : empty(c.out(0).sizes(), b.dtype());
  const Tensor X = vectors_of_b ? as_column(x) : x;
  copy_into(X, vectors_of_b ? as_column(b) : b);
  solve_with_factors(X, LU, pivots, left, false);
  if (x.get() != c.out(0).get()) copy_into(c.out(0), x);
  if (c.boolean(3)) check_errors("linalg.solve_ex", c.out(3), c.out(3).dim() == 0);
}

const Operator& solve_ex_whole() {
  static const Operator& op = *Registry::instance().find("_linalg_solve_ex");
  return op;
}
void run_solve_checked(Call& c) {
  call_checked(c, solve_ex_whole(), "linalg.solve", {c.args[0], c.args[1], c.args[2]}, 1);
}

// The first and the last result of an operator that keeps its factors between them.
void call_first_and_last(Call& c, const Operator& op, std::initializer_list<Value> arguments) {
  Call inner(op);
  if (c.given_out) {
    check_type(c.outputs.size() == 2, c.op.name(), "(): out= must hold 2 tensors, got ", c.outputs.size());
    inner.given_out = true;
    const Tensor a(arguments.begin()->tensor_);
    inner.outputs = {c.outputs[0], empty(Dims{0}, a.dtype(), a.device()), empty(Dims{0}, Dtype::i32, a.device()),
                     c.outputs[1]};
  }
  call_with(inner, arguments);
  c.outputs = {inner.outputs[0], inner.outputs.back()};
}
void run_solve_ex(Call& c) { call_first_and_last(c, solve_ex_whole(), {c.args[0], c.args[1], c.args[2], c.args[3]}); }

void infer_inverse(Call& c) {
  const Tensor a = c.tensor(0);
  check_matrix(c.boolean(1) ? "linalg.inv_ex" : "linalg.inv", a, MatrixShape::square);
  check_target(c, "linalg.inv", "inverse", a.dtype());
  c.promise(matrices(batch_of(a), a.size(-1), a.size(-1), a));
  c.promise(Dims(batch_of(a)), Dtype::i32, a.device());
}

void run_inverse(Call& c) {
  const Tensor a = c.tensor(0), &X = c.out(0);
  const int64_t n = a.size(-1);
  const Tensor lu = empty(matrices(batch_of(a), n, n, a));
  copy_into(lu, a);
  const MatrixColumns factor(lu), x(X);
  const Workspace exchanges(factor.count * n, sizeof(int32_t));
  auto* const pivots = reinterpret_cast<int32_t*>(exchanges.data());
  factor_lu(factor, pivots, c.out(1).data<int32_t>());
  std::memset(x.data, 0, static_cast<size_t>(x.count * x.bytes()));
  visit_lapack(a.dtype(), [&]<class T>() {
    for (int64_t i = 0; i < x.count * n; ++i) X.data<T>()[i * n + i % n] = 1;
  });
  solve_with_factors(X, lu, pivots, true, false);
  if (c.boolean(1)) check_errors("linalg.inv_ex", c.out(1), c.out(1).dim() == 0);
}

void run_inverse_checked(Call& c) {
  static const Operator& op = *Registry::instance().find("linalg_inv_ex");
  call_checked(c, op, "linalg.inv", {c.args[0]}, 1);
}

void infer_lu_solve(Call& c) {
  const char* who = "linalg.lu_solve";
  const Tensor lu = c.tensor(0), b = c.tensor(2);
  check_matrix(who, lu, MatrixShape::square, "LU");
  check_matrix(who, b, MatrixShape::any, "B");
  check_same_dtype(who, lu, b, "LU", "B");
  check_pivots(who, lu, c.tensor(1));
  const bool left = c.boolean(3);
  c.promise(matrices(check_equation(who, lu, b, left), b.size(-2), b.size(-1), b, !left));
}
void run_lu_solve(Call& c) {
  const Tensor lu = in_columns(c.tensor(0)), pivots = contiguous(c.tensor(1));
  check_pivots_range("linalg.lu_solve", pivots, lu.size(-1));
  copy_into(c.out(), c.tensor(2));
  solve_with_factors(c.out(), lu, pivots.data<int32_t>(), c.boolean(3), c.boolean(4));
}

void infer_ldl_solve(Call& c) {
  const char* who = "linalg.ldl_solve";
  const Tensor ld = c.tensor(0), b = c.tensor(2);
  check_matrix(who, ld, MatrixShape::square, "LD");
  check_matrix(who, b, MatrixShape::any, "B");
  check_same_dtype(who, ld, b, "LD", "B");
  check_pivots(who, ld, c.tensor(1));
  c.promise(matrices(check_equation(who, ld, b, true), b.size(-2), b.size(-1), b));
}
void run_ldl_solve(Call& c) {
  const Tensor ld = in_columns(c.tensor(0)), pivots = contiguous(c.tensor(1));
  copy_into(c.out(), c.tensor(2));
  const MatrixColumns from(ld), x(c.out());
  const int64_t n = from.rows;
  if (!c.out().numel()) return;
  const Lapack routine = c.boolean(3) && is_complex(x.dtype) ? Lapack::hetrs : Lapack::sytrs;
  const LapackWork work(from.bytes(), work_of(n, x.columns, x.count));
  const Workspace exchanges(n, sizeof(int64_t));
  auto* const wide = reinterpret_cast<int64_t*>(exchanges.data());
  const BroadcastPlaces place(batch_of(c.out()), batch_of(ld), 1);
  for (int64_t i = 0; i < x.count; ++i) {
    const int64_t at = place(i);
    for (int64_t k = 0; k < n; ++k) {
      wide[k] = pivots.data<int32_t>()[at * n + k];
      check(wide[k] && std::abs(wide[k]) <= n, "linalg.ldl_solve: pivots given must all be between 1 and ", n,
            ", the number of rows");
    }
    call_lapack(routine, x.dtype, {'L', n, x.columns, from.at(at), n, static_cast<const void*>(wide), x.at(i), n});
  }
}

// ---------------------------------------------------------------- triangles

// A triangle as it lies, or a copy whose columns do.
Tensor laid_out(const Tensor& t) {
  const auto apart = [&](int64_t d, int64_t size) { return t.stride(d) >= std::max<int64_t>(size, 1); };
  const int64_t n = t.size(-1);
  if ((t.stride(-2) == 1 && apart(-1, n)) || (t.stride(-1) == 1 && apart(-2, n))) return t;
  return in_columns(t);
}

// How far each triangle of a batch is from the first, for X's of a batch to which they are broadcast.
class Steps {
 public:
  Steps(DimsView sizes, const Tensor& t) : sizes_(sizes) {
    const auto n = static_cast<int64_t>(sizes.size()), missing = n - (t.dim() - 2);
    for (int64_t d = 0; d < n; ++d)
      steps_.push_back(d < missing || t.size(d - missing) == 1 ? 0 : t.stride(d - missing));
  }
  int64_t operator()(int64_t i) const {
    int64_t place = 0;
    for (int64_t d = sizes_.size() - 1; d >= 0; --d) {
      place += i % sizes_[d] * steps_[d];
      i /= sizes_[d];
    }
    return place;
  }

 private:
  Dims sizes_, steps_;
};

void infer_solve_triangular(Call& c) {
  const char* who = "linalg.solve_triangular";
  const Tensor a = c.tensor(0), b = c.tensor(1);
  check_matrix(who, a, MatrixShape::square);
  check_matrix(who, b, MatrixShape::any, "B");
  check_same_dtype(who, a, b);
  check_target(c, who, "result", b.dtype());
  c.promise(matrices(check_equation(who, a, b, c.boolean(3)), b.size(-2), b.size(-1), b));
}

void solve_triangles(const Tensor& X, const Tensor& a, bool lower, bool left, bool unit, bool adjoint) {
  const MatrixColumns x(X);
  if (!X.numel()) return;
  const Steps at(batch_of(X), a);
  const int64_t n = a.size(-1), width = x.width();
  std::optional<LapackWork> work;
  if (!solves_fast(x.dtype, n, left ? x.columns : x.rows)) work.emplace(n * n * width, work_of(n, X.numel() / n, 1));
  for (int64_t i = 0; i < x.count; ++i) {
    Triangle triangle{a.bytes() + at(i) * width, a.stride(-2), a.stride(-1), lower, unit, adjoint};
    if (adjoint) std::swap(triangle.row_step, triangle.column_step), triangle.lower = !lower;
    solve_triangle(x.dtype, triangle, left, x.at(i), x.rows, x.columns);
  }
}

void run_solve_triangular(Call& c) {
  copy_into(c.out(), c.tensor(1));
  const Tensor a = c.tensor(0);
  solve_triangles(c.out(), solves_fast(a.dtype(), a.size(-1), c.out().size(c.boolean(3) ? -1 : -2)) ? a : laid_out(a),
                  !c.boolean(2), c.boolean(3), c.boolean(4), false);
}

void infer_cholesky_solve(Call& c) {
  const char* who = "cholesky_solve";
  const Tensor b = c.tensor(0), L = c.tensor(1);
  check_matrix(who, L, MatrixShape::square, "L");
  check_matrix(who, b, MatrixShape::any, "B");
  check_same_dtype(who, b, L, "B", "L");
  c.promise(matrices(check_equation(who, L, b, true), b.size(-2), b.size(-1), b));
}
void run_cholesky_solve(Call& c) {
  copy_into(c.out(), c.tensor(0));
  const Tensor L = in_columns(c.tensor(1));
  const bool upper = c.boolean(2);
  solve_triangles(c.out(), L, !upper, true, false, upper);
  solve_triangles(c.out(), L, !upper, true, false, !upper);
}

void infer_cholesky_inverse(Call& c) {
  const Tensor L = c.tensor(0);
  check_matrix("cholesky_inverse", L, MatrixShape::square, "L");
  c.promise(matrices(batch_of(L), L.size(-1), L.size(-1), L));
}
void run_cholesky_inverse(Call& c) {
  const Tensor L = in_columns(c.tensor(0)), &X = c.out();
  const int64_t n = L.size(-1);
  const MatrixColumns x(X);
  std::memset(x.data, 0, static_cast<size_t>(x.count * x.bytes()));
  visit_lapack(x.dtype, [&]<class T>() {
    for (int64_t i = 0; i < x.count * n; ++i) X.data<T>()[i * n + i % n] = 1;
  });
  const bool upper = c.boolean(1);
  solve_triangles(X, L, !upper, true, false, upper);
  solve_triangles(X, L, !upper, true, false, !upper);
}

// ---------------------------------------------------------------- determinants

// Whether the exchanges of one matrix are an odd number.
bool is_odd(const int32_t* pivots, int64_t n) {
  bool odd = false;
  for (int64_t i = 0; i < n; ++i) odd ^= pivots[i] != i + 1;
  return odd;
}

void infer_det(Call& c) {
  const Tensor a = c.tensor(0);
  check_matrix("linalg.det", a, MatrixShape::square);
  check_target(c, "linalg.det", "result", a.dtype());
  c.promise(Dims(batch_of(a)), a.dtype(), a.device());
  c.promise(matrices(batch_of(a), a.size(-1), a.size(-1), a));
  c.promise(vectors(batch_of(a), a.size(-1), Dtype::i32, a));
}

// Calls f<T>(i, diagonal, odd) with the diagonal of U in A = P L U.
template <class F>
void for_each_diagonal(const Tensor& a, const Tensor& LU, const Tensor& pivots, F&& f) {
  copy_into(LU, a);
  const MatrixColumns lu(LU);
  const int64_t n = lu.rows;
  const Workspace info(lu.count, sizeof(int32_t));
  factor_lu(lu, pivots.data<int32_t>(), reinterpret_cast<int32_t*>(info.data()));
  visit_lapack(a.dtype(), [&]<class T>() {
    for (int64_t i = 0; i < lu.count; ++i)
      f(
          i, [&](int64_t k) { return reinterpret_cast<const T*>(lu.at(i))[k * (n + 1)]; },
          is_odd(pivots.data<int32_t>() + i * n, n));
  });
}

void run_det(Call& c) {
  const int64_t n = c.tensor(0).size(-1);
  for_each_diagonal(c.tensor(0), c.out(1), c.out(2), [&](int64_t i, auto diagonal, bool odd) {
    using T = decltype(diagonal(0));
    T product = odd ? T(-1) : T(1);
    for (int64_t k = 0; k < n; ++k) product = small::times(product, diagonal(k));
    c.out(0).data<T>()[i] = product;
  });
}

void run_det_alone(Call& c) {
  static const Operator& op = *Registry::instance().find("_linalg_det");
  Call inner(op);
  const Tensor a = c.tensor(0);
  if (c.given_out) {
    inner.given_out = true;
    inner.outputs = {c.outputs[0], empty(Dims{0}, a.dtype(), a.device()), empty(Dims{0}, Dtype::i32, a.device())};
  }
  call_with(inner, {c.args[0]});
  c.outputs = {inner.outputs[0]};
}

void infer_slogdet(Call& c) {
  const Tensor a = c.tensor(0);
  check_matrix("linalg.slogdet", a, MatrixShape::square);
  check_target(c, "linalg.slogdet", "sign", a.dtype());
  c.promise(Dims(batch_of(a)), a.dtype(), a.device());
  c.promise(Dims(batch_of(a)), to_real(a.dtype()), a.device());
  c.promise(matrices(batch_of(a), a.size(-1), a.size(-1), a));
  c.promise(vectors(batch_of(a), a.size(-1), Dtype::i32, a));
}

void run_slogdet(Call& c) {
  const int64_t n = c.tensor(0).size(-1);
  for_each_diagonal(c.tensor(0), c.out(2), c.out(3), [&](int64_t i, auto diagonal, bool odd) {
    using T = decltype(diagonal(0));
    T sign = odd ? T(-1) : T(1);
    small::Real<T> sum = 0;
    for (int64_t k = 0; k < n; ++k) {
      const T x = diagonal(k);
      const small::Real<T> size = std::abs(x);
      // A nan has none, infinity that of one, and nothing stays zero.
      if constexpr (small::kIsComplex<T>)
        sign = size == 0 ? T(0) : small::times(sign, x / size);
      else
        sign = std::isnan(x) ? x : x > 0 ? sign : x < 0 ? -sign : T(0) * sign;
      sum += std::log(size);
    }
    c.out(0).data<T>()[i] = sign;
    c.out(1).data<small::Real<T>>()[i] = sum;
  });
}

void run_slogdet_alone(Call& c) {
  static const Operator& op = *Registry::instance().find("_linalg_slogdet");
  Call inner(op);
  const Tensor a = c.tensor(0);
  if (c.given_out) {
    check_type(c.outputs.size() == 2, "linalg.slogdet: out= must hold 2 tensors, got ", c.outputs.size());
    inner.given_out = true;
    inner.outputs = {c.outputs[0], c.outputs[1], empty(Dims{0}, a.dtype(), a.device()),
                     empty(Dims{0}, Dtype::i32, a.device())};
  }
  call_with(inner, {c.args[0]});
  c.outputs = {inner.outputs[0], inner.outputs[1]};
}

// ---------------------------------------------------------------- least squares

Lapack driver_of(const Call& c) {
  const std::string_view name = c.text(3);
  for (const auto& [known, driver] : {std::pair("gels", Lapack::gels), std::pair("gelsy", Lapack::gelsy),
                                      std::pair("gelsd", Lapack::gelsd), std::pair("gelss", Lapack::gelss)})
    if (name == known) return driver;
  fail("torch.linalg.lstsq: parameter `driver` should be one of (gels, gelsy, gelsd, gelss), got ", name);
}

// A and B have the same batch. Residuals are given where the solution is unique and leaves some: never by gelsy, as in
// PyTorch.
void infer_least_squares(Call& c) {
  const char* who = "torch.linalg.lstsq";
  const Tensor a = c.tensor(0), b = c.tensor(1);
  const Lapack driver = driver_of(c);
  check_matrix(who, a, MatrixShape::any);
  check_matrix(who, b, MatrixShape::any, "B");
  check_same_dtype(who, a, b, "input", "other");
  check(a.size(-2) == b.size(-2) && Dims(batch_of(a)) == Dims(batch_of(b)), who,
        ": input.size(-2) should match other.size(-2), and their batches be equal, got shapes ", tuple(a.sizes()),
        " and ", tuple(b.sizes()));
  const int64_t m = a.size(-2), n = a.size(-1);
  const Dtype real = to_real(a.dtype());
  const Device device = a.device();
  const bool has_values = driver == Lapack::gelsd || driver == Lapack::gelss;
  const auto nothing = [&](Dtype dtype) { return TensorInfo{{0}, {}, dtype, device}; };
  c.promise(matrices(batch_of(a), n, b.size(-1), a));
  c.promise(driver != Lapack::gelsy && m > n ? vectors(batch_of(a), b.size(-1), real, a) : nothing(real));
  c.promise(driver == Lapack::gels ? nothing(Dtype::i64) : TensorInfo{Dims(batch_of(a)), {}, Dtype::i64, device});
  c.promise(has_values ? vectors(batch_of(a), std::min(m, n), real, a) : nothing(real));
}

// X holds B, and the solution after it.
void solve_least_squares(const Call& c, Lapack driver, const MatrixColumns& a, const MatrixColumns& x, int64_t m,
                         int64_t n, int64_t* ranks, bool complex) {
  const int64_t k = std::min(m, n), larger = x.rows, columns = x.columns;
  const int64_t real_width = size_of(to_real(x.dtype));
  double double_bound = c.real(2);
  float single_bound = static_cast<float>(double_bound);
  const void* const bound =
      real_width == 4 ? static_cast<const void*>(&single_bound) : static_cast<const void*>(&double_bound);
  // The documented sizes, with the smallest subproblem LAPACK may use (25) taken as 1 to be safe.
  const int64_t levels = std::max<int64_t>(0, static_cast<int64_t>(std::log2(static_cast<double>(k))) + 1);
  int64_t real_size = 0, integer_size = 0;
  if (driver == Lapack::gelsy) {
    real_size = 2 * n, integer_size = n;
  } else if (driver == Lapack::gelss) {
    real_size = 5 * k;
  } else if (driver == Lapack::gelsd) {
    integer_size = 3 * k * levels + 11 * k;
    real_size = 10 * larger + 50 * larger + 8 * larger * levels + 75 * columns +
                std::max<int64_t>(26 * 26, larger * (1 + columns) + 2 * columns);
  }
  const Workspace reals(complex ? real_size : 0, real_width), integers(integer_size, sizeof(int64_t));
  const LapackWork working(a.bytes(), 4 * work_of(k, larger + columns, x.count));
  const auto run = [&](int64_t i, const void* work, int64_t size) -> int64_t {
    const void *const at = a.at(i), *const to = x.at(i), *const real = reals.data(), *const whole = integers.data();
    const void* const values = c.out(3).bytes() + i * k * real_width;
    switch (driver) {
      case Lapack::gels: return call_lapack(driver, x.dtype, {'N', m, n, columns, at, m, to, larger, work, size});
      case Lapack::gelsy:
        std::memset(integers.data(), 0, static_cast<size_t>(n) * sizeof(int64_t));  // any column may move
        return complex ? call_lapack(driver, x.dtype,
                                     {m, n, columns, at, m, to, larger, whole, bound, ranks + i, work, size, real})
                       : call_lapack(driver, x.dtype,
                                     {m, n, columns, at, m, to, larger, whole, bound, ranks + i, work, size});
      case Lapack::gelss:
        return complex ? call_lapack(driver, x.dtype,
                                     {m, n, columns, at, m, to, larger, values, bound, ranks + i, work, size, real})
                       : call_lapack(driver, x.dtype,
                                     {m, n, columns, at, m, to, larger, values, bound, ranks + i, work, size});
      default:
        return complex
                   ? call_lapack(driver, x.dtype,
                                 {m, n, columns, at, m, to, larger, values, bound, ranks + i, work, size, real, whole})
                   : call_lapack(driver, x.dtype,
                                 {m, n, columns, at, m, to, larger, values, bound, ranks + i, work, size, whole});
    }
  };
  const int64_t size =
      workspace_of(driver, x.dtype, {m, n, columns}, [&](void* numbers, int64_t*) { run(0, numbers, -1); }).numbers;
  const Workspace work(size, x.width());
  const Tensor info = empty(batch_of(c.tensor(0)), Dtype::i32);
  for (int64_t i = 0; i < x.count; ++i) info.data<int32_t>()[i] = static_cast<int32_t>(run(i, work.data(), size));
  check_errors(driver == Lapack::gels ? "linalg.lstsq by gels" : "linalg.lstsq", info, info.dim() == 0);
}

// The rows behind the solution are what it leaves.
template <class T>
void sum_residuals(const MatrixColumns& x, int64_t n, int64_t m, small::Real<T>* to) {
  for (int64_t i = 0; i < x.count * x.columns; ++i) {
    const T* const column = reinterpret_cast<const T*>(x.data) + i * x.rows;
    small::Real<T> sum = 0;
    for (int64_t k = n; k < m; ++k) sum += small::square(column[k]);
    to[i] = sum;
  }
}

void run_least_squares(Call& c) {
  const Tensor given = c.tensor(0), b = c.tensor(1);
  const Lapack driver = driver_of(c);
  const int64_t m = given.size(-2), n = given.size(-1), k = std::min(m, n), larger = std::max(m, n);
  const int64_t columns = b.size(-1);
  const bool complex = is_complex(given.dtype());
  const Tensor A = empty(matrices(batch_of(given), m, n, given)),
               X = empty(matrices(batch_of(given), larger, columns, given));
  copy_into(A, given);
  const MatrixColumns a(A), x(X);
  std::memset(x.data, 0, static_cast<size_t>(x.count * x.bytes()));
  const auto rows_of_x = [&](int64_t rows) {
    Dims sizes = X.sizes();
    sizes[X.dim() - 2] = rows;
    return view_of(X, sizes, X.strides(), X.offset());
  };
  copy_into(rows_of_x(m), b);
  int64_t* const ranks = driver == Lapack::gels ? nullptr : c.out(2).data<int64_t>();
  std::fill_n(ranks, driver == Lapack::gels ? 0 : x.count, 0);
  if (k && columns && x.count) solve_least_squares(c, driver, a, x, m, n, ranks, complex);
  copy_into(c.out(0), rows_of_x(n));
  if (driver == Lapack::gelsy || m <= n) return;
  bool unique = true;
  for (int64_t i = 0; i < x.count && ranks; ++i) unique &= ranks[i] == n;
  if (unique)
    visit_lapack(x.dtype, [&]<class T>() { sum_residuals<T>(x, n, m, c.out(1).data<small::Real<T>>()); });
  else
    c.outputs[1] = empty(Dims{0}, to_real(x.dtype));
}

}  // namespace

void solve_lu(Dtype dtype, char form, int64_t n, int64_t columns, const char* lu, const int32_t* pivots, char* x) {
  if (!solves_fast(dtype, n, columns)) {
    const Workspace exchanges(n, sizeof(int64_t));
    auto* const wide = reinterpret_cast<int64_t*>(exchanges.data());
    std::copy_n(pivots, n, wide);
    call_lapack(Lapack::getrs, dtype, {form, n, columns, lu, n, static_cast<const void*>(wide), x, n});
    return;
  }
  visit_lapack(dtype, [&]<class T>() {
    const T* const a = reinterpret_cast<const T*>(lu);
    T* const to = reinterpret_cast<T*>(x);
    const auto exchange = [&](int64_t i) {
      if (const int64_t other = pivots[i] - 1; other != i)
        for (int64_t c = 0; c < columns; ++c) std::swap(to[c * n + i], to[c * n + other]);
    };
    if (form == 'N') {
      for (int64_t i = 0; i < n; ++i) exchange(i);
      small::trsm(a, 1, n, true, true, false, n, to, 1, n, columns);
      small::trsm(a, 1, n, false, false, false, n, to, 1, n, columns);
    } else {
      small::trsm(a, n, 1, true, false, form == 'C', n, to, 1, n, columns);
      small::trsm(a, n, 1, false, true, form == 'C', n, to, 1, n, columns);
      for (int64_t i = n - 1; i >= 0; --i) exchange(i);
    }
  });
}

void solve_triangle(Dtype dtype, const Triangle& a, bool left, char* x, int64_t rows, int64_t columns) {
  const int64_t n = left ? rows : columns;
  if (solves_fast(dtype, n, left ? columns : rows)) {
    visit_lapack(dtype, [&]<class T>() {
      const T* const triangle = reinterpret_cast<const T*>(a.data);
      T* const to = reinterpret_cast<T*>(x);
      if (left)
        small::trsm(triangle, a.row_step, a.column_step, a.lower, a.unit, a.conjugated, n, to, 1, rows, columns);
      else  // X A = B is Aᵀ Xᵀ = Bᵀ
        small::trsm(triangle, a.column_step, a.row_step, !a.lower, a.unit, a.conjugated, n, to, rows, 1, rows);
    });
    return;
  }
  // What has its rows one after the other is, to BLAS, the transpose of a matrix that has its columns so.
  const bool by_columns = a.row_step == 1 && (a.column_step >= n || n == 1);
  const char form = by_columns ? 'N' : a.conjugated ? 'C' : 'T';
  const char side = left ? 'L' : 'R', triangle = by_columns == a.lower ? 'L' : 'U', diagonal = a.unit ? 'U' : 'N';
  const int64_t apart = std::max<int64_t>(by_columns ? a.column_step : a.row_step, 1);
  invariant(!(by_columns && a.conjugated), "a conjugated triangle that lies by columns");
  visit_lapack(dtype, [&]<class T>() {
    const T one = 1;
    call_lapack(Lapack::trsm, dtype,
                {side, triangle, form, diagonal, rows, columns, static_cast<const void*>(&one), a.data, apart,
                 static_cast<const void*>(x), std::max<int64_t>(rows, 1)});
  });
}

REGISTER(linalg_equations) {
  r.add(
      "_linalg_solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False) -> (Tensor result, Tensor LU, "
      "Tensor pivots, Tensor info)",
      infer_solve, run_solve, kFunctionOnly | kFirstResultOnly);
  r.add("linalg_solve(Tensor A, Tensor B, *, bool left=True) -> Tensor", nullptr, run_solve_checked,
        kFunctionOnly | kComposite);
  r.add(
      "linalg_solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False) -> (Tensor result, Tensor info)",
      nullptr, run_solve_ex, kFunctionOnly | kComposite);
  r.add("linalg_inv_ex(Tensor A, *, bool check_errors=False) -> (Tensor inverse, Tensor info)", infer_inverse,
        run_inverse, kFunctionOnly | kFirstResultOnly);
  r.add("linalg_inv(Tensor A) -> Tensor", nullptr, run_inverse_checked, kFunctionOnly | kComposite);
  r.add("linalg_lu_solve(Tensor LU, Tensor pivots, Tensor B, *, bool left=True, bool adjoint=False) -> Tensor",
        infer_lu_solve, run_lu_solve, kFunctionOnly);
  r.add("linalg_ldl_solve(Tensor LD, Tensor pivots, Tensor B, *, bool hermitian=False) -> Tensor", infer_ldl_solve,
        run_ldl_solve, kFunctionOnly);
  r.add(
      "linalg_solve_triangular(Tensor A, Tensor B, *, bool upper, bool left=True, bool unitriangular=False) -> Tensor",
      infer_solve_triangular, run_solve_triangular, kFunctionOnly);
  r.add("cholesky_solve(Tensor input, Tensor input2, bool upper=False) -> Tensor", infer_cholesky_solve,
        run_cholesky_solve);
  r.add("cholesky_inverse(Tensor input, bool upper=False) -> Tensor", infer_cholesky_inverse, run_cholesky_inverse);
  r.add("_linalg_det(Tensor A) -> (Tensor result, Tensor LU, Tensor pivots)", infer_det, run_det,
        kFunctionOnly | kFirstResultOnly);
  r.add("linalg_det(Tensor A) -> Tensor", nullptr, run_det_alone, kFunctionOnly | kComposite);
  r.add("_linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet, Tensor LU, Tensor pivots)", infer_slogdet,
        run_slogdet, kFunctionOnly)
      .constant_results = ~3u;
  r.add("linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet)", nullptr, run_slogdet_alone,
        kFunctionOnly | kComposite);
  r.add(
       "_linalg_lstsq(Tensor A, Tensor B, float rcond, str driver) -> (Tensor solution, Tensor residuals, Tensor rank, "
       "Tensor singular_values)",
       infer_least_squares, run_least_squares, kFunctionOnly)
      .constant_results = 1u << 3;
}

}  // namespace cresset
