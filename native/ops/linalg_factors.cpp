// Matrices as products of simpler ones: Cholesky's, LU, LDL and QR.
#include <algorithm>
#include <atomic>

#include "base/parallel.h"
#include "dispatch/registration.h"
#include "ops/linalg.h"
#include "ops/linalg_small.h"

namespace cresset {

namespace {

constexpr int64_t kGrainSteps = 1 << 16;  // of a batch of small matrices, for one more thread

// f(i) for each of `count` small matrices that take so many steps each.
template <class F>
void for_each_small(int64_t count, int64_t steps, F&& f) {
  parallel_for(count, std::max<int64_t>(1, kGrainSteps / std::max<int64_t>(steps, 1)), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) f(i);
  });
}

double cube(int64_t n) { return static_cast<double>(n) * static_cast<double>(n) * static_cast<double>(n); }

// ---------------------------------------------------------------- A = L Lᴴ

void infer_cholesky(Call& c) {
  const Tensor a = c.tensor(0);
  check_matrix("linalg.cholesky", a, MatrixShape::square);
  check_target(c, "linalg.cholesky", "result", a.dtype());
  c.promise(matrices(batch_of(a), a.size(-1), a.size(-1), a));
  c.promise(Dims(batch_of(a)), Dtype::i32, a.device());
}

// Reads one triangle of the adjoint or of the matrix itself, so that it is the lower one, and writes it back.
template <class T>
int32_t small_cholesky(T* to, int64_t n, bool upper) {
  T other[32 * 32];
  T* const work = upper ? other : to;
  if (upper)
    for (int64_t j = 0; j < n; ++j)
      for (int64_t i = j; i < n; ++i) other[j * n + i] = small::conjugate(to[i * n + j]);
  const int32_t info = small::potrf(work, n);
  for (int64_t j = 0; j < n; ++j)
    for (int64_t i = j; i < n; ++i) {
      const T value = work[j * n + i];
      if (i != j) to[upper ? j * n + i : i * n + j] = 0;
      if (upper) to[i * n + j] = small::conjugate(value);
    }
  return info;
}

// A pivot that is nan makes all later ones so, and is not positive; some LAPACKs do not say it.
int32_t first_nan(const MatrixColumns& a, int64_t i) {
  return visit_lapack(a.dtype, [&]<class T>() -> int32_t {
    const T* const matrix = reinterpret_cast<const T*>(a.at(i));
    for (int64_t j = 0; j < a.rows; ++j)
      if (std::isnan(std::real(matrix[j * (a.rows + 1)]))) return static_cast<int32_t>(j + 1);
    return 0;
  });
}

void run_cholesky(Call& c) {
  copy_into(c.out(0), c.tensor(0));
  const MatrixColumns a(c.out(0));
  const int64_t n = a.rows;
  const bool upper = c.boolean(1);
  int32_t* const info = c.out(1).data<int32_t>();
  if (factorizes_fast(a.dtype, n, n)) {
    visit_lapack(a.dtype, [&]<class T>() {
      for_each_small(a.count, n * n * n,
                     [&](int64_t i) { info[i] = small_cholesky(reinterpret_cast<T*>(a.at(i)), n, upper); });
    });
  } else {
    const LapackWork work(a.bytes(), cube(n) / 3 * static_cast<double>(a.count));
    for (int64_t i = 0; i < a.count; ++i) {
      info[i] = static_cast<int32_t>(call_lapack(Lapack::potrf, a.dtype, {upper ? 'U' : 'L', n, a.at(i), n}));
      if (!info[i]) info[i] = first_nan(a, i);
    }
    clear_triangle(a, !upper);
  }
  if (c.boolean(2)) check_errors("linalg.cholesky_ex", c.out(1), c.out(1).dim() == 0);
}

void run_cholesky_checked(Call& c) {
  static const Operator& op = *Registry::instance().find("linalg_cholesky_ex");
  call_checked(c, op, "linalg.cholesky", {c.args[0], c.args[1]}, 1);
}

// ---------------------------------------------------------------- A = P L U

void check_pivoting(const char* who, const Call& c, int at) {
  check(c.boolean(at) || is_accelerator(c.tensor(0).device()), who,
        ": LU without pivoting is not implemented on the CPU");
}

void infer_lu_factor(Call& c) {
  const Tensor a = c.tensor(0);
  check_matrix("linalg.lu_factor", a, MatrixShape::any);
  check_pivoting("linalg.lu_factor", c, 1);
  check_target(c, "linalg.lu_factor", "LU", a.dtype());
  const int64_t m = a.size(-2), n = a.size(-1);
  c.promise(matrices(batch_of(a), m, n, a));
  c.promise(vectors(batch_of(a), std::min(m, n), Dtype::i32, a));
  c.promise(Dims(batch_of(a)), Dtype::i32, a.device());
}

void run_lu_factor(Call& c) {
  copy_into(c.out(0), c.tensor(0));
  factor_lu(MatrixColumns(c.out(0)), c.out(1).data<int32_t>(), c.out(2).data<int32_t>());
  if (c.boolean(2)) check_errors("linalg.lu_factor_ex", c.out(2), c.out(2).dim() == 0);
}

void run_lu_factor_checked(Call& c) {
  static const Operator& op = *Registry::instance().find("linalg_lu_factor_ex");
  call_checked(c, op, "linalg.lu_factor", {c.args[0], c.args[1]}, 2);
}

// Which of `rows` rows stands where after the exchanges of the rows i and pivots[i], from 1.
void order_rows(const int32_t* pivots, int64_t count, int64_t rows, int64_t* order) {
  for (int64_t i = 0; i < rows; ++i) order[i] = i;
  for (int64_t i = 0; i < count; ++i) std::swap(order[i], order[pivots[i] - 1]);
}

void infer_row_order(Call& c) {
  const Tensor pivots = c.tensor(0);
  const Dims& sizes = pivots.sizes();
  check(pivots.dtype() == Dtype::i32 && pivots.dim() > 0 && pivots.size(-1) <= c.integer(1),
        "_linalg_row_order: expected at most ", c.integer(1), " exchanges as int32, got shape ", tuple(sizes), " of ",
        name_of(pivots.dtype()));
  c.promise(vectors({sizes.data(), static_cast<size_t>(sizes.size() - 1)}, c.integer(1), Dtype::i64, pivots));
}
void run_row_order(Call& c) {
  const Tensor pivots = contiguous(c.tensor(0));
  const int64_t rows = c.integer(1), k = pivots.size(-1);
  check_pivots_range("_linalg_row_order", pivots, rows);
  for (int64_t i = 0; rows && i < c.out().numel() / rows; ++i)
    order_rows(pivots.data<int32_t>() + i * k, k, rows, c.out().data<int64_t>() + i * rows);
}

// (P, L, U) of a factor and its pivots, what is not asked for empty.
void promise_unpacked(Call& c, const Tensor& lu, bool triangles, bool permutation) {
  const DimsView batch = batch_of(lu);
  const int64_t m = lu.size(-2), n = lu.size(-1), k = std::min(m, n);
  const TensorInfo nothing{{0}, {}, lu.dtype(), lu.device()};
  c.promise(permutation ? matrices(batch, m, m, lu, true) : nothing);
  c.promise(triangles ? matrices(batch, m, k, lu, true) : nothing);
  c.promise(triangles ? matrices(batch, k, n, lu, true) : nothing);
}

// Numbers are moved, not computed with: T is as wide as they are, and `one` is theirs.
template <class T>
void unpack(const Call& c, T one, const T* lu, int64_t row_step, int64_t column_step, int64_t batch_step,
            const int32_t* pivots, int64_t m, int64_t n, int64_t count) {
  const int64_t k = std::min(m, n);
  const bool triangles = c.out(1).dim() > 1, permutation = c.out(0).dim() > 1;
  const Workspace order(m, sizeof(int64_t));
  auto* const rows = reinterpret_cast<int64_t*>(order.data());
  for (int64_t b = 0; b < count; ++b) {
    const T* const from = lu + b * batch_step;
    if (permutation) {
      T* const P = c.out(0).data<T>() + b * m * m;
      order_rows(pivots + b * k, k, m, rows);
      std::fill_n(P, m * m, T{});
      for (int64_t i = 0; i < m; ++i) P[rows[i] * m + i] = one;
    }
    if (!triangles) continue;
    T* const L = c.out(1).data<T>() + b * m * k;
    T* const U = c.out(2).data<T>() + b * k * n;
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < k; ++j) L[i * k + j] = i > j ? from[i * row_step + j * column_step] : i == j ? one : T{};
    for (int64_t i = 0; i < k; ++i)
      for (int64_t j = 0; j < n; ++j) U[i * n + j] = i <= j ? from[i * row_step + j * column_step] : T{};
  }
}
// The same for numbers of any dtype.
void unpack_numbers(const Call& c, const Tensor& lu, int64_t row_step, int64_t column_step, const int32_t* pivots,
                    int64_t count) {
  const int64_t m = lu.size(-2), n = lu.size(-1);
  const Tensor one = scalar_tensor(Scalar(int64_t{1}), lu.dtype());
  visit_width(size_of(lu.dtype()), [&]<class T>() {
    unpack(c, *one.data<T>(), lu.data<T>(), row_step, column_step, m * n, pivots, m, n, count);
  });
}

void infer_lu(Call& c) {
  const Tensor a = c.tensor(0);
  check_matrix("linalg.lu", a, MatrixShape::any);
  check_pivoting("linalg.lu", c, 1);
  check_target(c, "linalg.lu", "P", a.dtype());
  promise_unpacked(c, a, true, c.boolean(1));
}
void run_lu(Call& c) {
  const Tensor a = c.tensor(0), lu = empty(matrices(batch_of(a), a.size(-2), a.size(-1), a));
  copy_into(lu, a);
  const MatrixColumns factor(lu);
  const int64_t m = factor.rows, n = factor.columns, k = std::min(m, n);
  const Workspace pivots(factor.count * k, sizeof(int32_t)), infos(factor.count, sizeof(int32_t));
  auto* const exchanges = reinterpret_cast<int32_t*>(pivots.data());
  factor_lu(factor, exchanges, reinterpret_cast<int32_t*>(infos.data()));
  unpack_numbers(c, lu, 1, m, exchanges, factor.count);
}

void infer_lu_unpack(Call& c) {
  const Tensor lu = c.tensor(0);
  check(lu.dim() >= 2, "lu_unpack: The input tensor LU_data must have at least 2 dimensions, got shape ",
        tuple(lu.sizes()), ".");
  if (c.boolean(3)) check_pivots("lu_unpack", lu, c.tensor(1));
  promise_unpacked(c, lu, c.boolean(2), c.boolean(3));
}
void run_lu_unpack(Call& c) {
  const Tensor lu = contiguous(c.tensor(0)), pivots = contiguous(c.tensor(1));
  if (c.boolean(3)) check_pivots_range("lu_unpack", pivots, lu.size(-2));
  const auto* const exchanges = c.boolean(3) ? pivots.data<int32_t>() : nullptr;
  unpack_numbers(c, lu, lu.size(-1), 1, exchanges, count_of(batch_of(lu)));
}

// ---------------------------------------------------------------- A = L D Lᵀ

void infer_ldl_factor(Call& c) {
  const Tensor a = c.tensor(0);
  check_matrix("linalg.ldl_factor_ex", a, MatrixShape::square);
  c.promise(matrices(batch_of(a), a.size(-1), a.size(-1), a));
  c.promise(vectors(batch_of(a), a.size(-1), Dtype::i32, a));
  c.promise(Dims(batch_of(a)), Dtype::i32, a.device());
}

void run_ldl_factor(Call& c) {
  copy_into(c.out(0), c.tensor(0));
  const MatrixColumns a(c.out(0));
  const int64_t n = a.rows;
  const Lapack routine = c.boolean(1) && is_complex(a.dtype) ? Lapack::hetrf : Lapack::sytrf;
  int32_t *const pivots = c.out(1).data<int32_t>(), *const info = c.out(2).data<int32_t>();
  const LapackWork working(a.bytes(), cube(n) / 3 * static_cast<double>(a.count));
  const Workspace exchanges(n, sizeof(int64_t));
  const auto* const wide = reinterpret_cast<const int64_t*>(exchanges.data());
  const int64_t size = n == 0 ? 1 : workspace_of(routine, a.dtype, {n}, [&](void* numbers, int64_t*) {
                                      call_lapack(routine, a.dtype, {'L', n, a.data, n, wide, numbers, int64_t{-1}});
                                    }).numbers;
  const Workspace work(size, a.width());
  for (int64_t i = 0; i < a.count; ++i) {
    info[i] =
        n ? static_cast<int32_t>(call_lapack(routine, a.dtype, {'L', n, a.at(i), n, wide, work.data(), size})) : 0;
    std::copy_n(wide, n, pivots + i * n);
  }
  clear_triangle(a, true);
  if (c.boolean(2)) check_errors("linalg.ldl_factor_ex", c.out(2), c.out(2).dim() == 0);
}

void run_ldl_factor_checked(Call& c) {
  static const Operator& op = *Registry::instance().find("linalg_ldl_factor_ex");
  call_checked(c, op, "linalg.ldl_factor", {c.args[0], c.args[1]}, 2);
}

// ---------------------------------------------------------------- A = Q R

// Householder's form in place, for a whole batch.
void factor_qr(const MatrixColumns& a, char* tau, const Tensor& original) {
  const int64_t m = a.rows, n = a.columns, k = std::min(m, n);
  if (!k) return;
  if (factorizes_fast(a.dtype, m, n)) {
    std::atomic<bool> all = true;
    visit_lapack(a.dtype, [&]<class T>() {
      for_each_small(a.count, m * n * k, [&](int64_t i) {
        if (!small::geqrf(reinterpret_cast<T*>(a.at(i)), m, n, reinterpret_cast<T*>(tau) + i * k)) all = false;
      });
    });
    if (all) return;
    const Tensor again = in_columns(original);  // those that were begun are spoiled
    std::memcpy(a.data, again.bytes(), static_cast<size_t>(a.count * a.bytes()));
  }
  const LapackWork working(a.bytes(), 2.0 * static_cast<double>(m * n * k) * static_cast<double>(a.count));
  const int64_t size = workspace_of(Lapack::geqrf, a.dtype, {m, n}, [&](void* numbers, int64_t*) {
                         call_lapack(Lapack::geqrf, a.dtype, {m, n, a.data, m, tau, numbers, int64_t{-1}});
                       }).numbers;
  const Workspace work(size, a.width());
  for (int64_t i = 0; i < a.count; ++i)
    call_lapack(Lapack::geqrf, a.dtype, {m, n, a.at(i), m, tau + i * k * a.width(), work.data(), size});
}

// The first columns of the product of k reflectors, over the reflectors.
void make_q(const MatrixColumns& q, const char* tau, int64_t k) {
  const int64_t m = q.rows, n = q.columns;
  if (!m || !n) return;
  if (factorizes_fast(q.dtype, m, n)) {
    visit_lapack(q.dtype, [&]<class T>() {
      for_each_small(q.count, m * n * k, [&](int64_t i) {
        small::orgqr(reinterpret_cast<T*>(q.at(i)), m, n, k, reinterpret_cast<const T*>(tau) + i * k);
      });
    });
    return;
  }
  const LapackWork working(q.bytes(), 2.0 * static_cast<double>(m * n * k) * static_cast<double>(q.count));
  const int64_t size = workspace_of(Lapack::orgqr, q.dtype, {m, n, k}, [&](void* numbers, int64_t*) {
                         call_lapack(Lapack::orgqr, q.dtype, {m, n, k, q.data, m, tau, numbers, int64_t{-1}});
                       }).numbers;
  const Workspace work(size, q.width());
  for (int64_t i = 0; i < q.count; ++i)
    call_lapack(Lapack::orgqr, q.dtype, {m, n, k, q.at(i), m, tau + i * k * q.width(), work.data(), size});
}

void infer_geqrf(Call& c) {
  const Tensor a = c.tensor(0);
  check_matrix("geqrf", a, MatrixShape::any, "input");
  c.promise(matrices(batch_of(a), a.size(-2), a.size(-1), a));
  c.promise(vectors(batch_of(a), std::min(a.size(-2), a.size(-1)), a.dtype(), a));
}
void run_geqrf(Call& c) {
  copy_into(c.out(0), c.tensor(0));
  factor_qr(MatrixColumns(c.out(0)), c.out(1).bytes(), c.tensor(0));
}

void infer_qr(Call& c) {
  const Tensor a = c.tensor(0);
  check_matrix("linalg.qr", a, MatrixShape::any);
  const std::string_view mode = c.text(1);
  check(mode == "reduced" || mode == "complete" || mode == "r", "qr received unrecognized mode '", mode,
        "' but expected one of 'reduced' (default), 'r', or 'complete'");
  check_target(c, "linalg.qr", "Q", a.dtype());
  const int64_t m = a.size(-2), n = a.size(-1), k = mode == "complete" ? m : std::min(m, n);
  c.promise(mode == "r" ? TensorInfo{{0}, {}, a.dtype(), a.device()} : matrices(batch_of(a), m, k, a));
  c.promise(matrices(batch_of(a), k, n, a));
}

void run_qr(Call& c) {
  const Tensor a = c.tensor(0), &Q = c.out(0), &R = c.out(1);
  const int64_t m = a.size(-2), n = a.size(-1), k = std::min(m, n), count = count_of(batch_of(a));
  const MatrixColumns r(R);
  const Workspace tau(k * count, r.width());
  if (Q.dim() < 2 || n > m) {  // the reflectors stand where R will be, or in a copy of A
    const Tensor work = r.rows == m ? R : empty(matrices(batch_of(a), m, n, a));
    copy_into(work, a);
    const MatrixColumns reflectors(work);
    factor_qr(reflectors, tau.data(), a);
    if (Q.dim() >= 2) {
      const MatrixColumns q(Q);
      for (int64_t i = 0; i < count; ++i) std::memcpy(q.at(i), reflectors.at(i), static_cast<size_t>(q.bytes()));
      make_q(q, tau.data(), k);
    }
    if (r.rows == m)
      clear_triangle(r, false);
    else
      copy_upper(r, reflectors);
    return;
  }
  const MatrixColumns q(Q);
  if (q.columns == n) {
    copy_into(Q, a);
    factor_qr(q, tau.data(), a);
    copy_upper(r, q);
  } else {  // more columns than A has
    const Tensor work = empty(matrices(batch_of(a), m, n, a));
    copy_into(work, a);
    const MatrixColumns reflectors(work);
    factor_qr(reflectors, tau.data(), a);
    copy_upper(r, reflectors);
    for (int64_t i = 0; i < count; ++i) std::memcpy(q.at(i), reflectors.at(i), static_cast<size_t>(reflectors.bytes()));
  }
  make_q(q, tau.data(), k);
}

void check_reflectors(const char* who, const Tensor& a, const Tensor& tau) {
  check_matrix(who, a, MatrixShape::any, "input");
  check(tau.dim() > 0 && a.size(-1) >= tau.size(-1), who,
        ": input.shape[-1] must be greater than or equal to tau.shape[-1], got shapes ", tuple(a.sizes()), " and ",
        tuple(tau.sizes()));
  check(tau.sizes() == with(batch_of(a), {tau.size(-1)}), who,
        ": Expected tau to have one dimension less than input and the same batch, got shapes ", tuple(a.sizes()),
        " and ", tuple(tau.sizes()));
  check(a.dtype() == tau.dtype(), who, ": tau dtype ", name_of(tau.dtype()), " does not match input dtype ",
        name_of(a.dtype()));
}

void infer_householder(Call& c) {
  const char* who = "linalg.householder_product";
  const Tensor a = c.tensor(0);
  check_reflectors(who, a, c.tensor(1));
  check(a.size(-2) >= a.size(-1), who, ": input.shape[-2] must be greater than or equal to input.shape[-1], got ",
        a.size(-2), " and ", a.size(-1));
  check_target(c, who, "result", a.dtype());
  c.promise(matrices(batch_of(a), a.size(-2), a.size(-1), a));
}
void run_householder(Call& c) {
  copy_into(c.out(), c.tensor(0));
  make_q(MatrixColumns(c.out()), contiguous(c.tensor(1)).bytes(), c.tensor(1).size(-1));
}

void infer_ormqr(Call& c) {
  const Tensor a = c.tensor(0), tau = c.tensor(1), other = c.tensor(2);
  const bool left = c.boolean(3);
  for (const auto& [t, name] : {std::pair(a, "input"), std::pair(other, "other")})
    check(t.dim() >= 2, "ormqr: The input tensor ", name, " must have at least 2 dimensions, got shape ",
          tuple(t.sizes()), ".");
  const int side = left ? -2 : -1;
  check(other.size(side) == a.size(-2), "ormqr: other.shape[", side, "] must be equal to input.shape[-2], got shapes ",
        tuple(a.sizes()), " and ", tuple(other.sizes()));
  check(tau.dim() == 0 || tau.size(-1) == std::min(other.size(side), a.size(-1)),
        "ormqr: tau.shape[-1] must be equal to "
        "min(other.shape[",
        side, "], input.shape[-1]), got ", tau.size(-1), " and ", std::min(other.size(side), a.size(-1)));
  check_reflectors("ormqr", a, tau);
  check(a.dtype() == other.dtype() && Dims(batch_of(a)) == Dims(batch_of(other)),
        "ormqr: Expected other to have the dtype and the batch of input, got torch.", name_of(other.dtype()), ' ',
        tuple(other.sizes()), " and torch.", name_of(a.dtype()), ' ', tuple(a.sizes()));
  c.promise(matrices(batch_of(other), other.size(-2), other.size(-1), other));
}

void run_ormqr(Call& c) {
  const Tensor a = in_columns(c.tensor(0)), tau = contiguous(c.tensor(1));
  copy_into(c.out(), c.tensor(2));
  const MatrixColumns from(a), to(c.out());
  const int64_t m = to.rows, n = to.columns, k = tau.size(-1), rows = from.rows;
  if (!c.out().numel() || !k) return;
  const char side = c.boolean(3) ? 'L' : 'R', form = !c.boolean(4) ? 'N' : is_complex(to.dtype) ? 'C' : 'T';
  const LapackWork working(std::max(from.bytes(), to.bytes()),
                           2.0 * static_cast<double>(m * n * k) * static_cast<double>(to.count));
  const auto run = [&](int64_t i, const void* work, int64_t size) {
    call_lapack(Lapack::ormqr, to.dtype,
                {side, form, m, n, k, from.at(i), rows, tau.bytes() + i * k * to.width(), to.at(i), m, work, size});
  };
  const int64_t size = workspace_of(Lapack::ormqr, to.dtype, {side, form, m, n, k}, [&](void* numbers, int64_t*) {
                         run(0, numbers, -1);
                       }).numbers;
  const Workspace work(size, to.width());
  for (int64_t i = 0; i < to.count; ++i) run(i, work.data(), size);
}

}  // namespace

void factor_lu(const MatrixColumns& lu, int32_t* pivots, int32_t* info) {
  const int64_t m = lu.rows, n = lu.columns, k = std::min(m, n);
  if (factorizes_fast(lu.dtype, m, n)) {
    visit_lapack(lu.dtype, [&]<class T>() {
      for_each_small(lu.count, m * n * k,
                     [&](int64_t i) { info[i] = small::getrf(reinterpret_cast<T*>(lu.at(i)), m, n, pivots + i * k); });
    });
    return;
  }
  std::fill_n(info, lu.count, 0);
  if (!k) return;
  const LapackWork work(lu.bytes(), static_cast<double>(m * n) * static_cast<double>(k * lu.count));
  const Workspace exchanges(k, sizeof(int64_t));
  const auto* const wide = reinterpret_cast<const int64_t*>(exchanges.data());
  for (int64_t i = 0; i < lu.count; ++i) {
    info[i] = static_cast<int32_t>(call_lapack(Lapack::getrf, lu.dtype, {m, n, lu.at(i), m, wide}));
    std::copy_n(wide, k, pivots + i * k);
  }
}

REGISTER(linalg_factors) {
  r.add("linalg_cholesky_ex(Tensor A, *, bool upper=False, bool check_errors=False) -> (Tensor L, Tensor info)",
        infer_cholesky, run_cholesky, kFunctionOnly | kFirstResultOnly);
  r.add("linalg_cholesky(Tensor A, *, bool upper=False) -> Tensor", nullptr, run_cholesky_checked,
        kFunctionOnly | kComposite);
  r.add(
      "linalg_lu_factor_ex(Tensor A, *, bool pivot=True, bool check_errors=False) -> (Tensor LU, Tensor pivots, Tensor "
      "info)",
      infer_lu_factor, run_lu_factor, kFunctionOnly | kFirstResultOnly);
  r.add("linalg_lu_factor(Tensor A, *, bool pivot=True) -> (Tensor LU, Tensor pivots)", nullptr, run_lu_factor_checked,
        kFunctionOnly | kComposite);
  r.add("linalg_lu(Tensor A, *, bool pivot=True) -> (Tensor P, Tensor L, Tensor U)", infer_lu, run_lu, kFunctionOnly)
      .constant_results = 1;
  r.add(
       "lu_unpack(Tensor LU_data, Tensor LU_pivots, bool unpack_data=True, bool unpack_pivots=True) -> (Tensor P, "
       "Tensor "
       "L, Tensor U)",
       infer_lu_unpack, run_lu_unpack, kFunctionOnly)
      .constant_results = 1;
  r.add("_linalg_row_order(Tensor pivots, int rows) -> Tensor", infer_row_order, run_row_order,
        kFunctionOnly | kNotDifferentiable);
  r.add(
      "linalg_ldl_factor_ex(Tensor A, *, bool hermitian=False, bool check_errors=False) -> (Tensor LD, Tensor pivots, "
      "Tensor info)",
      infer_ldl_factor, run_ldl_factor, kFunctionOnly | kFirstResultOnly);
  r.add("linalg_ldl_factor(Tensor A, *, bool hermitian=False) -> (Tensor LD, Tensor pivots)", nullptr,
        run_ldl_factor_checked, kFunctionOnly | kComposite);
  r.add("geqrf(Tensor input) -> (Tensor a, Tensor tau)", infer_geqrf, run_geqrf);
  r.add("linalg_qr(Tensor A, str mode=reduced) -> (Tensor Q, Tensor R)", infer_qr, run_qr, kFunctionOnly);
  r.add("linalg_householder_product(Tensor input, Tensor tau) -> Tensor", infer_householder, run_householder,
        kFunctionOnly);
  r.add("ormqr(Tensor input, Tensor input2, Tensor input3, bool left=True, bool transpose=False) -> Tensor",
        infer_ormqr, run_ormqr);
}

}  // namespace cresset
