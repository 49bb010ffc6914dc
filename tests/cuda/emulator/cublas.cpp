// cuBLAS's interface, as far as equations: triangles, and small batches of A = P L U. Each function exists for the four
// dtypes.
#include "solver_handle.h"

namespace {

using namespace emulator;

enum Result { SUCCESS = 0, NOT_INITIALIZED = 1, INVALID_VALUE = 7, EXECUTION_FAILED = 13 };

Result refused(const char* who, const char* why) {
  complain("%s: %s", who, why);
  return INVALID_VALUE;
}
bool is_enum(int value, int most) { return value >= 0 && value <= most; }

struct Triangle {
  int side, fill, form, unit, m, n, leading, b_leading;
  int64_t order() const { return side == 0 ? m : n; }
  bool is_good() const {
    return is_enum(side, 1) && is_enum(fill, 1) && is_enum(form, 2) && is_enum(unit, 1) && m >= 0 && n >= 0 &&
           leading >= std::max<int64_t>(1, order()) && b_leading >= std::max(1, m);
  }
  void solve(int type, Number alpha, const void* a, void* b) const {
    Matrix right(type, b, m, n, b_leading);
    for (Number& x : right.elements) x *= alpha;
    solve_triangle(Matrix(type, a, order(), order(), leading), right, fill == 1, side == 0, unit == 1, Form(form));
    right.store(type, b, b_leading);
  }
};

Result trsm(int type, Handle* handle, Triangle t, const void* alpha, const void* a, void* b) {
  if (!t.is_good()) return refused("cublasTrsm", "a size or a choice");
  const Number factor = read_number(type, alpha, 0);
  const bool done = work_on("cublasTrsm", handle,
                            {Range::matrix("A", type, a, t.order(), t.order(), t.leading),
                             Range::matrix("B", type, b, t.m, t.n, t.b_leading)},
                            [=] { t.solve(type, factor, a, b); });
  return done ? SUCCESS : EXECUTION_FAILED;
}

Result trsm_batched(int type, Handle* handle, Triangle t, const void* alpha, void* const* a, void* const* b,
                    int count) {
  if (!t.is_good() || count < 0) return refused("cublasTrsmBatched", "a size or a choice");
  const Number factor = read_number(type, alpha, 0);
  const uint64_t pointers = uint64_t(count) * 8;
  const uint64_t a_bytes = uint64_t((t.order() - 1) * t.leading + t.order()) * bytes_of(type),
                 b_bytes = uint64_t(int64_t(t.n - 1) * t.b_leading + t.m) * bytes_of(type);
  const bool done = work_on("cublasTrsmBatched", handle,
                            {{"the pointers to A", a, pointers}, {"the pointers to B", b, pointers}}, [=] {
                              if (!may_use_all("cublasTrsmBatched", handle->device, a, count, a_bytes) ||
                                  !may_use_all("cublasTrsmBatched", handle->device, b, count, b_bytes))
                                return;
                              for (int i = 0; i < count; ++i) t.solve(type, factor, a[i], b[i]);
                            });
  return done ? SUCCESS : EXECUTION_FAILED;
}

Result getrf_batched(int type, Handle* handle, int n, void* const* a, int leading, int* pivots, int* info, int count) {
  if (n < 0 || leading < std::max(1, n) || count < 0) return refused("cublasGetrfBatched", "a size");
  const bool done = work_on("cublasGetrfBatched", handle,
                            {{"the pointers", a, uint64_t(count) * 8},
                             {"the pivots", pivots, pivots ? uint64_t(count) * uint64_t(n) * 4 : 0},
                             {"info", info, uint64_t(count) * 4}},
                            [=] {
                              if (!may_use_all("cublasGetrfBatched", handle->device, a, count,
                                               uint64_t(int64_t(n - 1) * leading + n) * bytes_of(type)))
                                return;
                              for (int i = 0; i < count; ++i) {
                                Matrix m(type, a[i], n, n, leading);
                                std::vector<int64_t> found;
                                info[i] = factor_lu(m, pivots ? &found : nullptr);
                                for (int k = 0; k < n && pivots; ++k) pivots[i * n + k] = int(found[size_t(k)]);
                                m.store(type, a[i], leading);
                              }
                            });
  return done ? SUCCESS : EXECUTION_FAILED;
}

Result getrs_batched(int type, Handle* handle, int form, int n, int columns, void* const* a, int leading,
                     const int* pivots, void* const* b, int b_leading, int* info, int count) {
  *info = 0;  // on the host
  if (!is_enum(form, 2) || n < 0 || columns < 0 || leading < std::max(1, n) || b_leading < std::max(1, n) || count < 0)
    return refused("cublasGetrsBatched", "a size or a choice");
  const bool done = work_on("cublasGetrsBatched", handle,
                            {{"the pointers to A", a, uint64_t(count) * 8},
                             {"the pointers to B", b, uint64_t(count) * 8},
                             {"the pivots", pivots, uint64_t(count) * uint64_t(n) * 4}},
                            [=] {
                              const uint64_t a_bytes = uint64_t(int64_t(n - 1) * leading + n) * bytes_of(type),
                                             b_bytes = uint64_t(int64_t(columns - 1) * b_leading + n) * bytes_of(type);
                              if (!may_use_all("cublasGetrsBatched", handle->device, a, count, a_bytes) ||
                                  !may_use_all("cublasGetrsBatched", handle->device, b, count, b_bytes))
                                return;
                              for (int i = 0; i < count; ++i) {
                                Matrix right(type, b[i], n, columns, b_leading);
                                const std::vector<int64_t> exchanges(pivots + i * n, pivots + (i + 1) * n);
                                solve_lu(Matrix(type, a[i], n, n, leading), exchanges.data(), right, Form(form));
                                right.store(type, b[i], b_leading);
                              }
                            });
  return done ? SUCCESS : EXECUTION_FAILED;
}

}  // namespace

EMULATOR_API int cublasCreate_v2(Handle** handle) {
  std::lock_guard guard(lock());
  if (!current()) return NOT_INITIALIZED;
  *handle = new Handle{current()};
  return SUCCESS;
}
EMULATOR_API int cublasSetStream_v2(Handle* handle, void* stream) { return handle->stream = stream, SUCCESS; }

#define EMULATOR_TYPED(letter, type)                                                                                \
  EMULATOR_API int cublas##letter##trsm_v2(Handle* h, int side, int fill, int form, int unit, int m, int n,         \
                                           const void* alpha, const void* a, int lda, void* b, int ldb) {           \
    return trsm(type, h, {side, fill, form, unit, m, n, lda, ldb}, alpha, a, b);                                    \
  }                                                                                                                 \
  EMULATOR_API int cublas##letter##trsmBatched(Handle* h, int side, int fill, int form, int unit, int m, int n,     \
                                               const void* alpha, void* const* a, int lda, void* const* b, int ldb, \
                                               int count) {                                                         \
    return trsm_batched(type, h, {side, fill, form, unit, m, n, lda, ldb}, alpha, a, b, count);                     \
  }                                                                                                                 \
  EMULATOR_API int cublas##letter##getrfBatched(Handle* h, int n, void* const* a, int lda, int* pivots, int* info,  \
                                                int count) {                                                        \
    return getrf_batched(type, h, n, a, lda, pivots, info, count);                                                  \
  }                                                                                                                 \
  EMULATOR_API int cublas##letter##getrsBatched(Handle* h, int form, int n, int columns, void* const* a, int lda,   \
                                                const int* pivots, void* const* b, int ldb, int* info, int count) { \
    return getrs_batched(type, h, form, n, columns, a, lda, pivots, b, ldb, info, count);                           \
  }
EMULATOR_TYPED(S, CUDA_R_32F)
EMULATOR_TYPED(D, CUDA_R_64F)
EMULATOR_TYPED(C, CUDA_C_32F)
EMULATOR_TYPED(Z, CUDA_C_64F)
