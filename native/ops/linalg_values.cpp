// Eigenvalues and singular values, and the vectors that belong to them.
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "dispatch/registration.h"
#include "ops/linalg.h"

namespace cresset {
namespace {

double cube(int64_t n) { return static_cast<double>(n) * static_cast<double>(n) * static_cast<double>(n); }

TensorInfo nothing_like(const Tensor& t) { return {{0}, {}, t.dtype(), t.device()}; }

// ---------------------------------------------------------------- A = V diag(L) Vᴴ

bool is_upper(const Call& c) {
  const std::string_view which = c.text(1);
  check(which == "L" || which == "U" || which == "l" || which == "u", c.boolean(2) ? "linalg.eigh" : "linalg.eigvalsh",
        ": Expected UPLO argument to be 'L' or 'U', but got ", which);
  return which == "U" || which == "u";
}

void infer_eigh(Call& c) {
  const Tensor a = c.tensor(0);
  const bool has_vectors = c.boolean(2);
  const char* who = has_vectors ? "linalg.eigh" : "linalg.eigvalsh";
  check_matrix(who, a, MatrixShape::square);
  is_upper(c);
  check_target(c, who, has_vectors ? "eigenvalues" : "result", to_real(a.dtype()));
  c.promise(vectors(batch_of(a), a.size(-1), to_real(a.dtype()), a));
  c.promise(has_vectors ? matrices(batch_of(a), a.size(-1), a.size(-1), a) : nothing_like(a));
}

void run_eigh(Call& c) {
  const Tensor a = c.tensor(0);
  const bool has_vectors = c.boolean(2);
  const Tensor V = has_vectors ? c.out(1) : empty(matrices(batch_of(a), a.size(-1), a.size(-1), a));
  copy_into(V, a);
  const MatrixColumns v(V);
  const int64_t n = v.rows;
  if (!n || !v.count) return;
  const bool complex = is_complex(v.dtype);
  const char job = has_vectors ? 'V' : 'N', triangle = is_upper(c) ? 'U' : 'L';
  const int64_t real_width = size_of(to_real(v.dtype)), real_size = has_vectors ? 1 + 5 * n + 2 * n * n : n;
  const LapackWork working(v.bytes(), 4 * cube(n) * static_cast<double>(v.count));
  const Workspace reals(complex ? real_size : 0, real_width);
  const auto run = [&](int64_t i, const void* work, int64_t size, const void* integers, int64_t integer_size) {
    const void *const at = v.at(i), *const values = c.out(0).bytes() + i * n * real_width, *const real = reals.data();
    return complex ? call_lapack(Lapack::syevd, v.dtype,
                                 {job, triangle, n, at, n, values, work, size, real, real_size, integers, integer_size})
                   : call_lapack(Lapack::syevd, v.dtype,
                                 {job, triangle, n, at, n, values, work, size, integers, integer_size});
  };
  const LapackSizes sizes = workspace_of(Lapack::syevd, v.dtype, {n, has_vectors},
                                         [&](void* work, int64_t* integers) { run(0, work, -1, integers, -1); });
  const Workspace work(sizes.numbers, v.width()), integers(sizes.integers, sizeof(int64_t));
  const Tensor info = empty(batch_of(a), Dtype::i32);
  for (int64_t i = 0; i < v.count; ++i)
    info.data<int32_t>()[i] = static_cast<int32_t>(run(i, work.data(), sizes.numbers, integers.data(), sizes.integers));
  check_errors(has_vectors ? "linalg.eigh" : "linalg.eigvalsh", info, info.dim() == 0);
}

// The operator that finds vectors, too, where a derivative may be asked for, and only the values elsewhere.
void call_for_values(Call& c, const char* name, std::initializer_list<Value> with_vectors,
                     std::initializer_list<Value> without, int at, Dtype rest) {
  const Operator& op = *Registry::instance().find(name);
  Call inner(op);
  const Tensor a = c.tensor(0);
  if (c.given_out) {
    check_type(c.outputs.size() == 1, c.op.name(), "(): out= must be a tensor");
    inner.given_out = true;
    for (int i = 0; i < static_cast<int>(op.signature.results.size()); ++i)
      inner.outputs.push_back(i == at ? c.outputs[0] : empty(Dims{0}, rest, a.device()));
  }
  call_with(inner, is_differentiated(a) && !c.given_out ? with_vectors : without);
  c.outputs = {inner.outputs[at]};
}

void run_eigh_whole(Call& c) {
  static const Operator& op = *Registry::instance().find("_linalg_eigh");
  Call inner(op);
  inner.given_out = c.given_out;
  inner.outputs = c.outputs;
  call_with(inner, {c.args[0], c.args[1], Value(Scalar(true))});
  c.outputs = inner.outputs;
}
void run_eigvalsh(Call& c) {
  const Value yes(Scalar(true)), no(Scalar(false));
  call_for_values(c, "_linalg_eigh", {c.args[0], c.args[1], yes}, {c.args[0], c.args[1], no}, 0, c.tensor(0).dtype());
}

// ---------------------------------------------------------------- A V = V diag(L)

void infer_eig(Call& c) {
  const Tensor a = c.tensor(0);
  const bool has_vectors = c.boolean(1);
  const char* who = has_vectors ? "linalg.eig" : "linalg.eigvals";
  check_matrix(who, a, MatrixShape::square);
  const Dtype dtype = is_complex(a.dtype()) ? a.dtype() : to_complex(a.dtype());
  check_target(c, who, "eigenvalues", dtype);
  c.promise(vectors(batch_of(a), a.size(-1), dtype, a));
  TensorInfo V = has_vectors ? matrices(batch_of(a), a.size(-1), a.size(-1), a) : nothing_like(a);
  V.dtype = dtype;
  c.promise(V);
}

bool all_finite(const MatrixColumns& a) {
  const auto count = a.count * a.rows * a.columns * (is_complex(a.dtype) ? 2 : 1);
  const auto look = [&]<class R>(const R* x) {
    bool finite = true;
    for (int64_t i = 0; i < count; ++i) finite &= std::isfinite(x[i]);
    return finite;
  };
  return size_of(to_real(a.dtype)) == 4 ? look(reinterpret_cast<const float*>(a.data))
                                        : look(reinterpret_cast<const double*>(a.data));
}

// Of a pair of conjugate values, LAPACK gives the vectors' real and imaginary parts as two columns.
template <class R>
void pair_up(const R* values, const R* imaginary, const R* v, int64_t n, std::complex<R>* L, std::complex<R>* V) {
  for (int64_t j = 0; j < n; ++j) {
    L[j] = {values[j], imaginary[j]};
    if (!V) continue;
    const bool opens = imaginary[j] > 0, closes = imaginary[j] < 0;
    const R* const re = v + (closes ? j - 1 : j) * n;
    const R* const im = opens ? re + n : re + n * closes;
    for (int64_t i = 0; i < n; ++i) V[j * n + i] = {re[i], opens ? im[i] : closes ? -im[i] : R(0)};
  }
}

void run_eig(Call& c) {
  const Tensor given = c.tensor(0);
  const bool has_vectors = c.boolean(1), complex = is_complex(given.dtype());
  const char* who = has_vectors ? "linalg.eig" : "linalg.eigvals";
  const Tensor A = empty(matrices(batch_of(given), given.size(-1), given.size(-1), given));
  copy_into(A, given);
  const MatrixColumns a(A);
  const int64_t n = a.rows, width = a.width();
  check(all_finite(a), "torch.", who, ": input tensor should not contain infs or NaNs.");
  if (!n || !a.count) return;
  const Tensor &L = c.out(0), &V = c.out(1);
  const Workspace values(complex ? 0 : 2 * n, width), real_vectors(complex || !has_vectors ? 0 : n * n, width),
      reals(complex ? 2 * n : 0, size_of(to_real(a.dtype)));
  const LapackWork working(a.bytes(), 10 * cube(n) * static_cast<double>(a.count));
  const auto run = [&](int64_t i, const void* work, int64_t size) {
    const void *const at = a.at(i), *const none = work, *const real = reals.data();
    const char job = has_vectors ? 'V' : 'N';
    const int64_t one = 1;
    if (complex) {
      const void* const to = has_vectors ? V.bytes() + i * n * n * width : work;
      return call_lapack(Lapack::geev, a.dtype,
                         {'N', job, n, at, n, static_cast<const void*>(L.bytes() + i * n * width), none, one, to, n,
                          work, size, real});
    }
    const void *const re = values.data(), *const im = values.data() + n * width, *const to = real_vectors.data();
    return call_lapack(Lapack::geev, a.dtype, {'N', job, n, at, n, re, im, none, one, to, n, work, size});
  };
  const int64_t size = workspace_of(Lapack::geev, a.dtype, {n, has_vectors}, [&](void* numbers, int64_t*) {
                         run(0, numbers, -1);
                       }).numbers;
  const Workspace work(size, width);
  const Tensor info = empty(batch_of(given), Dtype::i32);
  for (int64_t i = 0; i < a.count; ++i) {
    info.data<int32_t>()[i] = static_cast<int32_t>(run(i, work.data(), size));
    if (complex) continue;
    const auto pair = [&]<class R>(R) {
      const R* const found = reinterpret_cast<const R*>(values.data());
      pair_up(found, found + n, reinterpret_cast<const R*>(real_vectors.data()), n, L.data<std::complex<R>>() + i * n,
              has_vectors ? V.data<std::complex<R>>() + i * n * n : nullptr);
    };
    a.dtype == Dtype::f32 ? pair(0.f) : pair(0.0);
  }
  check_errors(who, info, info.dim() == 0);
}

void run_eig_whole(Call& c) {
  static const Operator& op = *Registry::instance().find("_linalg_eig");
  Call inner(op);
  inner.given_out = c.given_out;
  inner.outputs = c.outputs;
  call_with(inner, {c.args[0], Value(Scalar(true))});
  c.outputs = inner.outputs;
}
void run_eigvals(Call& c) {
  const Dtype own = c.tensor(0).dtype();
  call_for_values(c, "_linalg_eig", {c.args[0], Value(Scalar(true))}, {c.args[0], Value(Scalar(false))}, 0,
                  is_complex(own) ? own : to_complex(own));
}

// ---------------------------------------------------------------- A = U diag(S) Vᴴ

void infer_svd(Call& c) {
  const Tensor a = c.tensor(0);
  check_matrix("linalg.svd", a, MatrixShape::any);
  const std::string_view driver = c.text(3);
  check(!c.has(3) || is_accelerator(a.device()),
        "torch.linalg.svd: keyword argument `driver=` is only supported on CUDA inputs, got '", driver, "'");
  check(!c.has(3) || driver == "gesvd" || driver == "gesvdj" || driver == "gesvda",
        "torch.linalg.svd: unknown svd driver '", driver, "'; choose from gesvd, gesvdj, gesvda or None");
  const bool whole = c.boolean(1), has_vectors = c.boolean(2);
  const int64_t m = a.size(-2), n = a.size(-1), k = std::min(m, n);
  if (has_vectors) check_target(c, "linalg.svd", "U", a.dtype());
  c.promise(has_vectors ? matrices(batch_of(a), m, whole ? m : k, a) : nothing_like(a));
  c.promise(vectors(batch_of(a), k, to_real(a.dtype()), a));
  c.promise(has_vectors ? matrices(batch_of(a), whole ? n : k, n, a) : nothing_like(a));
}

void make_identity(const Tensor& t) {
  fill(t, Scalar(0));
  const MatrixColumns to(t);
  visit_lapack(to.dtype, [&]<class T>() {
    for (int64_t i = 0; i < to.count; ++i)
      for (int64_t k = 0; k < std::min(to.rows, to.columns); ++k) reinterpret_cast<T*>(to.at(i))[k * (to.rows + 1)] = 1;
  });
}

// Whether one of the numbers of a matrix is infinite, and whether one is nan.
std::pair<bool, bool> infinite_and_nan(const MatrixColumns& a, int64_t i) {
  bool infinite = false, nan = false;
  const int64_t count = a.rows * a.columns * (is_complex(a.dtype) ? 2 : 1);
  const auto look = [&]<class R>(const R* x) {
    for (int64_t k = 0; k < count; ++k) infinite |= std::isinf(x[k]), nan |= std::isnan(x[k]);
  };
  if (size_of(to_real(a.dtype)) == 4)
    look(reinterpret_cast<const float*>(a.at(i)));
  else
    look(reinterpret_cast<const double*>(a.at(i)));
  return {infinite, nan};
}

void fill_nan(char* at, int64_t bytes, Dtype dtype) {
  if (size_of(to_real(dtype)) == 4)
    std::fill_n(reinterpret_cast<float*>(at), bytes / 4, std::numeric_limits<float>::quiet_NaN());
  else
    std::fill_n(reinterpret_cast<double*>(at), bytes / 8, std::numeric_limits<double>::quiet_NaN());
}

void run_svd(Call& c) {
  const Tensor given = c.tensor(0), &U = c.out(0), &S = c.out(1), &Vh = c.out(2);
  const bool whole = c.boolean(1), has_vectors = c.boolean(2), complex = is_complex(given.dtype());
  const int64_t m = given.size(-2), n = given.size(-1), k = std::min(m, n), larger = std::max(m, n);
  if (!k) {
    if (has_vectors) make_identity(U), make_identity(Vh);
    return;
  }
  const Tensor A = empty(matrices(batch_of(given), m, n, given));
  copy_into(A, given);
  const MatrixColumns a(A);
  if (!a.count) return;
  const int64_t width = a.width(), real_width = size_of(S.dtype());
  const int64_t u_columns = has_vectors ? U.size(-1) : 1, vh_rows = has_vectors ? Vh.size(-2) : 1;
  const int64_t u_bytes = m * u_columns * width, vh_bytes = vh_rows * n * width;
  const char job = !has_vectors ? 'N' : whole ? 'A' : 'S';
  // The documented size, which serves all versions of LAPACK.
  const int64_t real_size = !complex      ? 0
                            : has_vectors ? std::max(5 * k * k + 5 * k, 2 * larger * k + 2 * k * k + k)
                                          : 7 * k;
  const Workspace integers(8 * k, sizeof(int64_t)), reals(real_size, real_width);
  const LapackWork working(a.bytes(), 6 * static_cast<double>(k * k) * static_cast<double>(larger * a.count));
  const auto run = [&](int64_t i, const void* work, int64_t size) {
    const void *const at = a.at(i), *const s = S.bytes() + i * k * real_width, *const whole_numbers = integers.data();
    const void* const u = has_vectors ? U.bytes() + i * u_bytes : work;
    const void* const vh = has_vectors ? Vh.bytes() + i * vh_bytes : work;
    const void* const real = reals.data();
    const int64_t u_rows = has_vectors ? m : 1;
    return complex ? call_lapack(Lapack::gesdd, a.dtype,
                                 {job, m, n, at, m, s, u, u_rows, vh, vh_rows, work, size, real, whole_numbers})
                   : call_lapack(Lapack::gesdd, a.dtype,
                                 {job, m, n, at, m, s, u, u_rows, vh, vh_rows, work, size, whole_numbers});
  };
  const int64_t size =
      workspace_of(Lapack::gesdd, a.dtype, {job, m, n}, [&](void* numbers, int64_t*) { run(0, numbers, -1); }).numbers;
  const Workspace work(size, width);
  const Tensor info = empty(batch_of(given), Dtype::i32);
  for (int64_t i = 0; i < a.count; ++i) {
    // gesdd may never come back from infinities: the results of their matrices are nan.
    const auto [infinite, nan] = infinite_and_nan(a, i);
    if (infinite) {
      fill_nan(S.bytes() + i * k * real_width, k * real_width, a.dtype);
      if (has_vectors) {
        fill_nan(U.bytes() + i * u_bytes, u_bytes, a.dtype);
        fill_nan(Vh.bytes() + i * vh_bytes, vh_bytes, a.dtype);
      }
      info.data<int32_t>()[i] = nan ? -4 : 0;
    } else {
      info.data<int32_t>()[i] = static_cast<int32_t>(run(i, work.data(), size));
    }
  }
  check_errors("linalg.svd", info, info.dim() == 0);
}

void run_svd_whole(Call& c) {
  static const Operator& op = *Registry::instance().find("_linalg_svd");
  Call inner(op);
  inner.given_out = c.given_out;
  inner.outputs = c.outputs;
  call_with(inner, {c.args[0], c.args[1], Value(Scalar(true)), c.args[2]});
  c.outputs = inner.outputs;
}
void run_svdvals(Call& c) {
  const Value yes(Scalar(true)), no(Scalar(false));
  call_for_values(c, "_linalg_svd", {c.args[0], no, yes, c.args[1]}, {c.args[0], no, no, c.args[1]}, 1,
                  c.tensor(0).dtype());
}

}  // namespace

REGISTER(linalg_values) {
  r.add("_linalg_eigh(Tensor A, str UPLO=L, bool compute_v=True) -> (Tensor eigenvalues, Tensor eigenvectors)",
        infer_eigh, run_eigh, kFunctionOnly);
  r.add("linalg_eigh(Tensor A, str UPLO=L) -> (Tensor eigenvalues, Tensor eigenvectors)", nullptr, run_eigh_whole,
        kFunctionOnly | kComposite);
  r.add("linalg_eigvalsh(Tensor A, str UPLO=L) -> Tensor", nullptr, run_eigvalsh, kFunctionOnly | kComposite);
  r.add("_linalg_eig(Tensor A, bool compute_v=True) -> (Tensor eigenvalues, Tensor eigenvectors)", infer_eig, run_eig,
        kFunctionOnly);
  r.add("linalg_eig(Tensor A) -> (Tensor eigenvalues, Tensor eigenvectors)", nullptr, run_eig_whole,
        kFunctionOnly | kComposite);
  r.add("linalg_eigvals(Tensor A) -> Tensor", nullptr, run_eigvals, kFunctionOnly | kComposite);
  r.add(
      "_linalg_svd(Tensor A, bool full_matrices=False, bool compute_uv=True, *, str? driver=None) -> (Tensor U, Tensor "
      "S, Tensor Vh)",
      infer_svd, run_svd, kFunctionOnly);
  r.add("linalg_svd(Tensor A, bool full_matrices=True, *, str? driver=None) -> (Tensor U, Tensor S, Tensor Vh)",
        nullptr, run_svd_whole, kFunctionOnly | kComposite);
  r.add("linalg_svdvals(Tensor A, *, str? driver=None) -> Tensor", nullptr, run_svdvals, kFunctionOnly | kComposite);
}

}  // namespace cresset
