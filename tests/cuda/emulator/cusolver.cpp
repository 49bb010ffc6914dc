// cuSOLVER's interface for dense matrices: the 64-bit functions, and those of the older ones that have no such form.
// Sizes, choices, workspaces and addresses are checked; dense.cpp computes. Rotations of 7 x 7 matrices never converge,
// so that what follows then is tested.
#include <algorithm>

#include "solver_handle.h"

namespace {

using namespace emulator;

enum Result { SUCCESS = 0, NOT_INITIALIZED = 1, INVALID_VALUE = 3, EXECUTION_FAILED = 6 };
constexpr size_t kDeviceBytes = 768, kHostBytes = 96;
constexpr int kWork = 80;  // elements, of the older functions

Result refused(const char* who, const char* why) {
  complain("%s: %s", who, why);
  return INVALID_VALUE;
}
bool is_type(int type) { return type == CUDA_R_32F || type == CUDA_R_64F || type == CUDA_C_32F || type == CUDA_C_64F; }
bool is_complex(int type) { return type == CUDA_C_32F || type == CUDA_C_64F; }
int real_of(int type) { return type == CUDA_C_32F ? CUDA_R_32F : type == CUDA_C_64F ? CUDA_R_64F : type; }

Result sizes(size_t* device, size_t* host) { return *device = kDeviceBytes, *host = kHostBytes, SUCCESS; }

// The workspaces of a call of the 64-bit interface.
struct Buffers {
  void* device;
  size_t device_bytes;
  void* host;
  size_t host_bytes;
  bool are_good() const { return device && host && device_bytes >= kDeviceBytes && host_bytes >= kHostBytes; }
  Range range() const { return {"the workspace", device, device_bytes}; }
};
Range one(const int* info) { return {"info", info, 4}; }

Result given(bool done) { return done ? SUCCESS : EXECUTION_FAILED; }

void store_reals(const std::vector<double>& values, int type, void* to) {
  for (size_t i = 0; i < values.size(); ++i) write_number(type, to, int64_t(i), values[i]);
}

void decompose_hermitian(bool vectors, bool upper, int64_t n, int type, void* a, int64_t leading, void* values,
                         int* info) {
  Matrix m(type, a, n, n, leading);
  store_reals(eigen_hermitian(m, upper), real_of(type), values);
  if (!vectors) std::fill(m.elements.begin(), m.elements.end(), Number(77, 77));  // A is destroyed
  m.store(type, a, leading);
  *info = 0;
}

// With `whole` all columns of U and V, else as many as there are values.
void decompose_singular(bool vectors, bool whole, int64_t m, int64_t n, int type, void* a, int64_t leading,
                        void* values, void* u, int64_t u_leading, void* v, int64_t v_leading, bool adjoint_v,
                        bool converges, int* info) {
  Matrix left, right;
  std::vector<double> found;
  const int64_t k = std::min(m, n);
  if (!singular_values(Matrix(type, a, m, n, leading), left, found, right) || !converges) {
    *info = int(k + 1);
    return;
  }
  store_reals(found, real_of(type), values);
  Matrix(m, n).store(type, a, leading);
  *info = 0;
  if (!vectors) return;
  const auto shortened = [&](Matrix x) {
    x.columns = whole ? x.columns : k;
    x.elements.resize(size_t(x.rows * x.columns));
    return x;
  };
  shortened(left).store(type, u, u_leading);
  (adjoint_v ? shortened(right).in(adjoint) : shortened(right)).store(type, v, v_leading);
}

Result gesvdj_size(int* size) { return *size = kWork, SUCCESS; }

Result gesvdj(int type, Handle* h, int job, int economical, int m, int n, void* a, int lda, void* values, void* u,
              int ldu, void* v, int ldv, void* work, int size, int* info, void* settings, int count, bool batched) {
  const char* const who = batched ? "cusolverDnGesvdjBatched" : "cusolverDnGesvdj";
  if (!h || !settings || m < 1 || n < 1 || lda < m || ldu < m || ldv < n || job < 0 || job > 1 || size < kWork ||
      count < 1)
    return refused(who, "a size or a choice");
  if (batched && (m > 32 || n > 32)) return refused(who, "more than 32 rows or columns");
  const int64_t k = std::min(m, n), u_columns = economical ? k : m, v_columns = economical ? k : n;
  const auto width = uint64_t(bytes_of(type)), real = uint64_t(bytes_of(real_of(type)));
  const auto items = uint64_t(count);
  const bool done = work_on(
      who, h,
      {{"A", a, items * uint64_t(lda) * uint64_t(n) * width},
       {"S", values, items * uint64_t(k) * real},
       {"U", u, items * uint64_t(ldu * u_columns) * width},
       {"V", v, items * uint64_t(ldv * v_columns) * width},
       {"the workspace", work, uint64_t(size) * width},
       {"info", info, items * 4}},
      [=] {
        const auto at = [](void* data, int64_t bytes) { return static_cast<char*>(data) + bytes; };
        for (int64_t i = 0; i < count; ++i)
          decompose_singular(job == 1, !economical, m, n, type, at(a, i * lda * n * int64_t(width)), lda,
                             at(values, i * k * int64_t(real)), at(u, i * ldu * u_columns * int64_t(width)), ldu,
                             at(v, i * ldv * v_columns * int64_t(width)), ldv, false, m != 7 || n != 7, info + i);
      });
  return given(done);
}

Result orgqr(int type, Handle* h, int m, int n, int k, void* a, int lda, const void* tau, void* work, int size,
             int* info) {
  if (!h || m < 0 || n < 0 || n > m || k < 0 || k > n || lda < std::max(1, m) || size < kWork)
    return refused("cusolverDnOrgqr", "a size");
  return given(work_on("cusolverDnOrgqr", h,
                       {Range::matrix("A", type, a, m, n, lda),
                        {"tau", tau, uint64_t(k) * bytes_of(type)},
                        {"the workspace", work, uint64_t(size) * bytes_of(type)},
                        one(info)},
                       [=] {
                         std::vector<Number> factors;
                         for (int i = 0; i < k; ++i) factors.push_back(read_number(type, tau, i));
                         Matrix q = reflections(Matrix(type, a, m, n, lda), factors);
                         q.columns = n;
                         q.store(type, a, lda);
                         *info = 0;
                       }));
}

Result ormqr(int type, Handle* h, int side, int form, int m, int n, int k, const void* a, int lda, const void* tau,
             void* c, int ldc, void* work, int size, int* info) {
  const int order = side == 0 ? m : n;
  if (!h || side < 0 || side > 1 || m < 0 || n < 0 || k < 0 || k > order || lda < std::max(1, order) ||
      ldc < std::max(1, m) || size < kWork)
    return refused("cusolverDnOrmqr", "a size");
  if (form != 0 && form != (is_complex(type) ? 2 : 1))
    return refused("cusolverDnOrmqr", "real matrices are transposed, complex ones also conjugated");
  return given(work_on("cusolverDnOrmqr", h,
                       {Range::matrix("A", type, a, order, k, lda),
                        {"tau", tau, uint64_t(k) * bytes_of(type)},
                        Range::matrix("C", type, c, m, n, ldc),
                        {"the workspace", work, uint64_t(size) * bytes_of(type)},
                        one(info)},
                       [=] {
                         std::vector<Number> factors;
                         for (int i = 0; i < k; ++i) factors.push_back(read_number(type, tau, i));
                         const Matrix q = reflections(Matrix(type, a, order, k, lda), factors).in(Form(form)),
                                      other(type, c, m, n, ldc);
                         (side == 0 ? product(q, other) : product(other, q)).store(type, c, ldc);
                         *info = 0;
                       }));
}

Result sytrf(int type, Handle* h, int fill, int n, void* a, int lda, int* pivots, void* work, int size, int* info) {
  if (!h || fill != 0 || n < 1 || lda < n || size < kWork)
    return refused("cusolverDnSytrf", "a size, or the upper triangle, which is not emulated");
  return given(work_on("cusolverDnSytrf", h,
                       {Range::matrix("A", type, a, n, n, lda),
                        {"the pivots", pivots, uint64_t(n) * 4},
                        {"the workspace", work, uint64_t(size) * bytes_of(type)},
                        one(info)},
                       [=] {
                         Matrix m(type, a, n, n, lda);
                         std::vector<int64_t> found;
                         *info = factor_symmetric(m, found);
                         std::copy(found.begin(), found.end(), pivots);
                         m.store(type, a, lda);
                       }));
}

Result potrf_batched(int type, Handle* h, int fill, int n, void** a, int lda, int* info, int count) {
  if (!h || fill < 0 || fill > 1 || n < 0 || lda < std::max(1, n) || count < 0)
    return refused("cusolverDnPotrfBatched", "a size or a choice");
  return given(work_on("cusolverDnPotrfBatched", h,
                       {{"the pointers", a, uint64_t(count) * 8}, {"info", info, uint64_t(count) * 4}}, [=] {
                         if (!may_use_all("cusolverDnPotrfBatched", h->device, a, count,
                                          uint64_t(int64_t(n - 1) * lda + n) * bytes_of(type)))
                           return;
                         for (int i = 0; i < count; ++i) {
                           Matrix m(type, a[i], n, n, lda);
                           info[i] = factor_cholesky(m, fill == 1);
                           for (int64_t r = 0; r < n; ++r)
                             for (int64_t c = 0; c < n; ++c)
                               if (fill == 1 ? r > c : r < c) m(r, c) = 77;  // the other triangle is its workspace
                           m.store(type, a[i], lda);
                         }
                       }));
}

}  // namespace

EMULATOR_API int cusolverDnCreate(Handle** handle) {
  std::lock_guard guard(lock());
  if (!current()) return NOT_INITIALIZED;
  *handle = new Handle{current()};
  return SUCCESS;
}
EMULATOR_API int cusolverDnSetStream(Handle* handle, void* stream) { return handle->stream = stream, SUCCESS; }
EMULATOR_API int cusolverDnCreateParams(void** parameters) { return *parameters = new int(0), SUCCESS; }
EMULATOR_API int cusolverDnCreateGesvdjInfo(void** settings) { return *settings = new int(0), SUCCESS; }

EMULATOR_API int cusolverDnXpotrf_bufferSize(Handle*, void*, int, int64_t, int, const void*, int64_t, int,
                                             size_t* device, size_t* host) {
  return sizes(device, host);
}
EMULATOR_API int cusolverDnXpotrf(Handle* h, void* parameters, int fill, int64_t n, int type, void* a, int64_t lda,
                                  int compute, void* device, size_t device_bytes, void* host, size_t host_bytes,
                                  int* info) {
  const Buffers buffers{device, device_bytes, host, host_bytes};
  if (!h || !parameters || fill < 0 || fill > 1 || n < 0 || !is_type(type) || compute != type ||
      lda < std::max<int64_t>(1, n) || !buffers.are_good())
    return refused("cusolverDnXpotrf", "an argument");
  return given(
      work_on("cusolverDnXpotrf", h, {Range::matrix("A", type, a, n, n, lda), buffers.range(), one(info)}, [=] {
        Matrix m(type, a, n, n, lda);
        *info = factor_cholesky(m, fill == 1);
        m.store(type, a, lda);
      }));
}

EMULATOR_API int cusolverDnXgetrf_bufferSize(Handle*, void*, int64_t, int64_t, int, const void*, int64_t, int,
                                             size_t* device, size_t* host) {
  return sizes(device, host);
}
EMULATOR_API int cusolverDnXgetrf(Handle* h, void* parameters, int64_t m, int64_t n, int type, void* a, int64_t lda,
                                  int64_t* pivots, int compute, void* device, size_t device_bytes, void* host,
                                  size_t host_bytes, int* info) {
  const Buffers buffers{device, device_bytes, host, host_bytes};
  if (!h || !parameters || m < 0 || n < 0 || !is_type(type) || compute != type || lda < std::max<int64_t>(1, m) ||
      !buffers.are_good())
    return refused("cusolverDnXgetrf", "an argument");
  const uint64_t exchanges = uint64_t(std::min(m, n));
  return given(work_on("cusolverDnXgetrf", h,
                       {Range::matrix("A", type, a, m, n, lda),
                        {"the pivots", pivots, pivots ? exchanges * 8 : 0},
                        buffers.range(),
                        one(info)},
                       [=] {
                         Matrix matrix(type, a, m, n, lda);
                         std::vector<int64_t> found;
                         *info = factor_lu(matrix, pivots ? &found : nullptr);
                         std::copy(found.begin(), found.end(), pivots);
                         matrix.store(type, a, lda);
                       }));
}

EMULATOR_API int cusolverDnXgetrs(Handle* h, void* parameters, int form, int64_t n, int64_t columns, int type,
                                  const void* a, int64_t lda, const int64_t* pivots, int b_type, void* b, int64_t ldb,
                                  int* info) {
  if (!h || !parameters || form < 0 || form > 2 || n < 0 || columns < 0 || !is_type(type) || b_type != type ||
      lda < std::max<int64_t>(1, n) || ldb < std::max<int64_t>(1, n))
    return refused("cusolverDnXgetrs", "an argument");
  return given(work_on("cusolverDnXgetrs", h,
                       {Range::matrix("A", type, a, n, n, lda),
                        Range::matrix("B", type, b, n, columns, ldb),
                        {"the pivots", pivots, uint64_t(n) * 8},
                        one(info)},
                       [=] {
                         Matrix right(type, b, n, columns, ldb);
                         solve_lu(Matrix(type, a, n, n, lda), pivots, right, Form(form));
                         right.store(type, b, ldb);
                         *info = 0;
                       }));
}

EMULATOR_API int cusolverDnXsytrs_bufferSize(Handle*, int, int64_t, int64_t, int, const void*, int64_t, const int64_t*,
                                             int, void*, int64_t, size_t* device, size_t* host) {
  return sizes(device, host);
}
EMULATOR_API int cusolverDnXsytrs(Handle* h, int fill, int64_t n, int64_t columns, int type, const void* a, int64_t lda,
                                  const int64_t* pivots, int b_type, void* b, int64_t ldb, void* device,
                                  size_t device_bytes, void* host, size_t host_bytes, int* info) {
  const Buffers buffers{device, device_bytes, host, host_bytes};
  if (!h || fill != 0 || n < 1 || columns < 1 || !is_type(type) || b_type != type || lda < n || ldb < n ||
      !buffers.are_good())
    return refused("cusolverDnXsytrs", "an argument");
  return given(work_on("cusolverDnXsytrs", h,
                       {Range::matrix("A", type, a, n, n, lda),
                        Range::matrix("B", type, b, n, columns, ldb),
                        {"the pivots", pivots, uint64_t(n) * 8},
                        buffers.range(),
                        one(info)},
                       [=] {
                         Matrix right(type, b, n, columns, ldb);
                         solve_symmetric(Matrix(type, a, n, n, lda), pivots, right);
                         right.store(type, b, ldb);
                         *info = 0;
                       }));
}

EMULATOR_API int cusolverDnXgeqrf_bufferSize(Handle*, void*, int64_t, int64_t, int, const void*, int64_t, int,
                                             const void*, int, size_t* device, size_t* host) {
  return sizes(device, host);
}
EMULATOR_API int cusolverDnXgeqrf(Handle* h, void* parameters, int64_t m, int64_t n, int type, void* a, int64_t lda,
                                  int tau_type, void* tau, int compute, void* device, size_t device_bytes, void* host,
                                  size_t host_bytes, int* info) {
  const Buffers buffers{device, device_bytes, host, host_bytes};
  if (!h || !parameters || m < 0 || n < 0 || !is_type(type) || tau_type != type || compute != type ||
      lda < std::max<int64_t>(1, m) || !buffers.are_good())
    return refused("cusolverDnXgeqrf", "an argument");
  return given(work_on("cusolverDnXgeqrf", h,
                       {Range::matrix("A", type, a, m, n, lda),
                        {"tau", tau, uint64_t(std::min(m, n)) * bytes_of(type)},
                        buffers.range(),
                        one(info)},
                       [=] {
                         Matrix matrix(type, a, m, n, lda);
                         std::vector<Number> factors;
                         factor_qr(matrix, factors);
                         matrix.store(type, a, lda);
                         for (size_t i = 0; i < factors.size(); ++i) write_number(type, tau, int64_t(i), factors[i]);
                         *info = 0;
                       }));
}

EMULATOR_API int cusolverDnXsyevd_bufferSize(Handle*, void*, int, int, int64_t, int, const void*, int64_t, int,
                                             const void*, int, size_t* device, size_t* host) {
  return sizes(device, host);
}
EMULATOR_API int cusolverDnXsyevBatched_bufferSize(Handle*, void*, int, int, int64_t, int, const void*, int64_t, int,
                                                   const void*, int, size_t* device, size_t* host, int64_t) {
  return sizes(device, host);
}
EMULATOR_API int cusolverDnXsyevBatched(Handle* h, void* parameters, int job, int fill, int64_t n, int type, void* a,
                                        int64_t lda, int value_type, void* values, int compute, void* device,
                                        size_t device_bytes, void* host, size_t host_bytes, int* info, int64_t count) {
  const Buffers buffers{device, device_bytes, host, host_bytes};
  if (!h || !parameters || job < 0 || job > 1 || fill < 0 || fill > 1 || n < 1 || !is_type(type) ||
      value_type != real_of(type) || compute != type || lda < n || count < 1 || !buffers.are_good())
    return refused("cusolverDnXsyev", "an argument");
  const auto width = int64_t(bytes_of(type)), real = int64_t(bytes_of(value_type));
  return given(work_on("cusolverDnXsyev", h,
                       {{"A", a, uint64_t(count * lda * n * width)},
                        {"the values", values, uint64_t(count * n * real)},
                        buffers.range(),
                        {"info", info, uint64_t(count) * 4}},
                       [=] {
                         for (int64_t i = 0; i < count; ++i)
                           decompose_hermitian(job == 1, fill == 1, n, type,
                                               static_cast<char*>(a) + i * lda * n * width, lda,
                                               static_cast<char*>(values) + i * n * real, info + i);
                       }));
}
EMULATOR_API int cusolverDnXsyevd(Handle* h, void* parameters, int job, int fill, int64_t n, int type, void* a,
                                  int64_t lda, int value_type, void* values, int compute, void* device,
                                  size_t device_bytes, void* host, size_t host_bytes, int* info) {
  return cusolverDnXsyevBatched(h, parameters, job, fill, n, type, a, lda, value_type, values, compute, device,
                                device_bytes, host, host_bytes, info, 1);
}

EMULATOR_API int cusolverDnXgesvd_bufferSize(Handle*, void*, signed char, signed char, int64_t, int64_t, int,
                                             const void*, int64_t, int, const void*, int, const void*, int64_t, int,
                                             const void*, int64_t, int, size_t* device, size_t* host) {
  return sizes(device, host);
}
EMULATOR_API int cusolverDnXgesvd(Handle* h, void* parameters, signed char u_job, signed char v_job, int64_t m,
                                  int64_t n, int type, void* a, int64_t lda, int value_type, void* values, int u_type,
                                  void* u, int64_t ldu, int v_type, void* v, int64_t ldv, int compute, void* device,
                                  size_t device_bytes, void* host, size_t host_bytes, int* info) {
  const Buffers buffers{device, device_bytes, host, host_bytes};
  if (!h || !parameters || u_job != v_job || (u_job != 'N' && u_job != 'S' && u_job != 'A') || n < 1 ||
      !is_type(type) || value_type != real_of(type) || u_type != type || v_type != type || compute != type || lda < m ||
      ldu < m || ldv < n || !buffers.are_good())
    return refused("cusolverDnXgesvd", "an argument");
  if (m < n) return refused("cusolverDnXgesvd", "a wide matrix");
  const bool vectors = u_job != 'N';
  return given(work_on("cusolverDnXgesvd", h,
                       {Range::matrix("A", type, a, m, n, lda),
                        {"S", values, uint64_t(n) * bytes_of(value_type)},
                        Range::matrix("U", type, u, m, vectors ? u_job == 'A' ? m : n : 0, ldu),
                        Range::matrix("V", type, v, n, vectors ? n : 0, ldv),
                        buffers.range(),
                        one(info)},
                       [=] {
                         decompose_singular(vectors, u_job == 'A', m, n, type, a, lda, values, u, ldu, v, ldv, true,
                                            true, info);
                       }));
}

EMULATOR_API int cusolverDnXgeev_bufferSize(Handle*, void*, int, int, int64_t, int, const void*, int64_t, int,
                                            const void*, int, const void*, int64_t, int, const void*, int64_t, int,
                                            size_t* device, size_t* host) {
  return sizes(device, host);
}
EMULATOR_API int cusolverDnXgeev(Handle* h, void* parameters, int left, int right, int64_t n, int type, void* a,
                                 int64_t lda, int value_type, void* values, int left_type, void*, int64_t,
                                 int right_type, void* vectors, int64_t ldv, int compute, void* device,
                                 size_t device_bytes, void* host, size_t host_bytes, int* info) {
  const Buffers buffers{device, device_bytes, host, host_bytes};
  if (!h || !parameters || left != 0 || right < 0 || right > 1 || n < 1 || !is_type(type) || value_type != type ||
      left_type != type || right_type != type || compute != type || lda < n || (right && ldv < n) ||
      !buffers.are_good())
    return refused("cusolverDnXgeev", "an argument");
  const uint64_t numbers = uint64_t(n) * (is_complex(type) ? 1 : 2);
  return given(work_on("cusolverDnXgeev", h,
                       {Range::matrix("A", type, a, n, n, lda),
                        {"the values", values, numbers * bytes_of(type)},
                        Range::matrix("the vectors", type, vectors, n, right ? n : 0, ldv),
                        buffers.range(),
                        one(info)},
                       [=] {
                         Matrix v;
                         const std::vector<Number> found = eigen_general(Matrix(type, a, n, n, lda), v);
                         *info = 0;
                         if (is_complex(type)) {
                           for (int64_t i = 0; i < n; ++i) write_number(type, values, i, found[size_t(i)]);
                           if (right) v.store(type, vectors, ldv);
                           return;
                         }
                         // A real matrix: real values, and pairs of conjugate ones, of which the one with the positive
                         // imaginary part comes first.
                         Matrix packed(n, n);
                         int64_t at = 0;
                         double scale = 0;
                         for (const Number x : found) scale = std::max(scale, std::abs(x));
                         for (int64_t k = 0; k < n; ++k) {
                           const bool is_real = std::abs(found[size_t(k)].imag()) <= 1e-9 * scale;
                           if (!is_real && found[size_t(k)].imag() < 0) continue;
                           for (int64_t half = 0; half < (is_real ? 1 : 2) && at < n; ++half, ++at) {
                             write_number(type, values, at, found[size_t(k)].real());
                             write_number(type, values, n + at,
                                          is_real ? 0 : (half ? -1 : 1) * found[size_t(k)].imag());
                             for (int64_t i = 0; i < n; ++i) packed(i, at) = half ? v(i, k).imag() : v(i, k).real();
                           }
                         }
                         if (right) packed.store(type, vectors, ldv);
                       }));
}

#define EMULATOR_TYPED(letter, org, orm, type)                                                                         \
  EMULATOR_API int cusolverDn##letter##potrfBatched(Handle* h, int fill, int n, void** a, int lda, int* info,          \
                                                    int count) {                                                       \
    return potrf_batched(type, h, fill, n, a, lda, info, count);                                                       \
  }                                                                                                                    \
  EMULATOR_API int cusolverDn##letter##org##_bufferSize(Handle*, int, int, int, const void*, int, const void*,         \
                                                        int* size) {                                                   \
    return *size = kWork, SUCCESS;                                                                                     \
  }                                                                                                                    \
  EMULATOR_API int cusolverDn##letter##org(Handle* h, int m, int n, int k, void* a, int lda, const void* tau,          \
                                           void* work, int size, int* info) {                                          \
    return orgqr(type, h, m, n, k, a, lda, tau, work, size, info);                                                     \
  }                                                                                                                    \
  EMULATOR_API int cusolverDn##letter##orm##_bufferSize(Handle*, int, int, int, int, int, const void*, int,            \
                                                        const void*, const void*, int, int* size) {                    \
    return *size = kWork, SUCCESS;                                                                                     \
  }                                                                                                                    \
  EMULATOR_API int cusolverDn##letter##orm(Handle* h, int side, int form, int m, int n, int k, const void* a, int lda, \
                                           const void* tau, void* c, int ldc, void* work, int size, int* info) {       \
    return ormqr(type, h, side, form, m, n, k, a, lda, tau, c, ldc, work, size, info);                                 \
  }                                                                                                                    \
  EMULATOR_API int cusolverDn##letter##sytrf_bufferSize(Handle*, int, void*, int, int* size) {                         \
    return *size = kWork, SUCCESS;                                                                                     \
  }                                                                                                                    \
  EMULATOR_API int cusolverDn##letter##sytrf(Handle* h, int fill, int n, void* a, int lda, int* pivots, void* work,    \
                                             int size, int* info) {                                                    \
    return sytrf(type, h, fill, n, a, lda, pivots, work, size, info);                                                  \
  }                                                                                                                    \
  EMULATOR_API int cusolverDn##letter##gesvdj_bufferSize(Handle*, int, int, int, int, const void*, int, const void*,   \
                                                         const void*, int, const void*, int, int* size, void*) {       \
    return gesvdj_size(size);                                                                                          \
  }                                                                                                                    \
  EMULATOR_API int cusolverDn##letter##gesvdj(Handle* h, int job, int economical, int m, int n, void* a, int lda,      \
                                              void* s, void* u, int ldu, void* v, int ldv, void* work, int size,       \
                                              int* info, void* settings) {                                             \
    return gesvdj(type, h, job, economical, m, n, a, lda, s, u, ldu, v, ldv, work, size, info, settings, 1, false);    \
  }                                                                                                                    \
  EMULATOR_API int cusolverDn##letter##gesvdjBatched_bufferSize(Handle*, int, int, int, const void*, int, const void*, \
                                                                const void*, int, const void*, int, int* size, void*,  \
                                                                int) {                                                 \
    return gesvdj_size(size);                                                                                          \
  }                                                                                                                    \
  EMULATOR_API int cusolverDn##letter##gesvdjBatched(Handle* h, int job, int m, int n, void* a, int lda, void* s,      \
                                                     void* u, int ldu, void* v, int ldv, void* work, int size,         \
                                                     int* info, void* settings, int count) {                           \
    return gesvdj(type, h, job, 0, m, n, a, lda, s, u, ldu, v, ldv, work, size, info, settings, count, true);          \
  }
EMULATOR_TYPED(S, orgqr, ormqr, CUDA_R_32F)
EMULATOR_TYPED(D, orgqr, ormqr, CUDA_R_64F)
EMULATOR_TYPED(C, ungqr, unmqr, CUDA_C_32F)
EMULATOR_TYPED(Z, ungqr, unmqr, CUDA_C_64F)
