#include "cuda/cusolver.h"

#include <limits>
#include <mutex>
#include <vector>

#include "base/error.h"
#include "cuda/launch.h"
#include "cuda/library.h"
#include "cuda/workspace.h"

namespace cresset::cuda {
namespace {

using LibraryStatus = int;
using Handle = void*;
using Parameters = void*;

// Numbers of the interfaces of cuSOLVER and cuBLAS.
constexpr LibraryStatus kDone = 0;
enum DataType : int { kR32F = 0, kR64F = 1, kC32F = 4, kC64F = 5 };
constexpr int kLower = 0, kUpper = 1, kLeft = 0, kRight = 1, kNoVectors = 0, kVectors = 1;

// name, parameters
#define CRESSET_CUSOLVER_FUNCTIONS(X)                                                                                 \
  X(cusolverDnCreate, (Handle * handle))                                                                              \
  X(cusolverDnSetStream, (Handle handle, StreamHandle stream))                                                        \
  X(cusolverDnCreateParams, (Parameters * parameters))                                                                \
  X(cusolverDnCreateGesvdjInfo, (void** settings))                                                                    \
  X(cusolverDnXpotrf_bufferSize, (Handle, Parameters, int triangle, int64_t n, int type, const void* a, int64_t ld,   \
                                  int compute, size_t* device, size_t* host))                                         \
  X(cusolverDnXpotrf, (Handle, Parameters, int triangle, int64_t n, int type, void* a, int64_t ld, int compute,       \
                       void* device, size_t device_bytes, void* host, size_t host_bytes, int* info))                  \
  X(cusolverDnXgetrf_bufferSize, (Handle, Parameters, int64_t m, int64_t n, int type, const void* a, int64_t ld,      \
                                  int compute, size_t* device, size_t* host))                                         \
  X(cusolverDnXgetrf, (Handle, Parameters, int64_t m, int64_t n, int type, void* a, int64_t ld, int64_t* pivots,      \
                       int compute, void* device, size_t device_bytes, void* host, size_t host_bytes, int* info))     \
  X(cusolverDnXgetrs, (Handle, Parameters, int form, int64_t n, int64_t columns, int type, const void* a, int64_t ld, \
                       const int64_t* pivots, int b_type, void* b, int64_t b_ld, int* info))                          \
  X(cusolverDnXsytrs_bufferSize,                                                                                      \
    (Handle, int triangle, int64_t n, int64_t columns, int type, const void* a, int64_t ld, const int64_t* pivots,    \
     int b_type, void* b, int64_t b_ld, size_t* device, size_t* host))                                                \
  X(cusolverDnXsytrs,                                                                                                 \
    (Handle, int triangle, int64_t n, int64_t columns, int type, const void* a, int64_t ld, const int64_t* pivots,    \
     int b_type, void* b, int64_t b_ld, void* device, size_t device_bytes, void* host, size_t host_bytes, int* info)) \
  X(cusolverDnXgeqrf_bufferSize, (Handle, Parameters, int64_t m, int64_t n, int type, const void* a, int64_t ld,      \
                                  int tau_type, const void* tau, int compute, size_t* device, size_t* host))          \
  X(cusolverDnXgeqrf,                                                                                                 \
    (Handle, Parameters, int64_t m, int64_t n, int type, void* a, int64_t ld, int tau_type, void* tau, int compute,   \
     void* device, size_t device_bytes, void* host, size_t host_bytes, int* info))                                    \
  X(cusolverDnXsyevd_bufferSize,                                                                                      \
    (Handle, Parameters, int vectors, int triangle, int64_t n, int type, const void* a, int64_t ld, int value_type,   \
     const void* values, int compute, size_t* device, size_t* host))                                                  \
  X(cusolverDnXsyevd,                                                                                                 \
    (Handle, Parameters, int vectors, int triangle, int64_t n, int type, void* a, int64_t ld, int value_type,         \
     void* values, int compute, void* device, size_t device_bytes, void* host, size_t host_bytes, int* info))         \
  X(cusolverDnXgesvd_bufferSize,                                                                                      \
    (Handle, Parameters, signed char u_job, signed char v_job, int64_t m, int64_t n, int type, const void* a,         \
     int64_t ld, int value_type, const void* values, int u_type, const void* u, int64_t u_ld, int v_type,             \
     const void* v, int64_t v_ld, int compute, size_t* device, size_t* host))                                         \
  X(cusolverDnXgesvd,                                                                                                 \
    (Handle, Parameters, signed char u_job, signed char v_job, int64_t m, int64_t n, int type, void* a, int64_t ld,   \
     int value_type, void* values, int u_type, void* u, int64_t u_ld, int v_type, void* v, int64_t v_ld, int compute, \
     void* device, size_t device_bytes, void* host, size_t host_bytes, int* info))

// Those that not every version has; null where it has not.
#define CRESSET_NEWER_FUNCTIONS(X)                                                                                     \
  X(cusolverDnXsyevBatched_bufferSize,                                                                                 \
    (Handle, Parameters, int vectors, int triangle, int64_t n, int type, const void* a, int64_t ld, int value_type,    \
     const void* values, int compute, size_t* device, size_t* host, int64_t count))                                    \
  X(cusolverDnXsyevBatched, (Handle, Parameters, int vectors, int triangle, int64_t n, int type, void* a, int64_t ld,  \
                             int value_type, void* values, int compute, void* device, size_t device_bytes, void* host, \
                             size_t host_bytes, int* info, int64_t count))                                             \
  X(cusolverDnXgeev_bufferSize,                                                                                        \
    (Handle, Parameters, int left, int right, int64_t n, int type, const void* a, int64_t ld, int value_type,          \
     const void* values, int left_type, const void* left_vectors, int64_t left_ld, int right_type,                     \
     const void* right_vectors, int64_t right_ld, int compute, size_t* device, size_t* host))                          \
  X(cusolverDnXgeev,                                                                                                   \
    (Handle, Parameters, int left, int right, int64_t n, int type, void* a, int64_t ld, int value_type, void* values,  \
     int left_type, void* left_vectors, int64_t left_ld, int right_type, void* right_vectors, int64_t right_ld,        \
     int compute, void* device, size_t device_bytes, void* host, size_t host_bytes, int* info))

// Those of which there is one for each dtype: name for real and for complex numbers, between a letter for the dtype and
// an ending; parameters.
#define CRESSET_TYPED_FUNCTIONS(X)                                                                                     \
  X(cusolver, potrfBatched, potrfBatched, "", (Handle, int triangle, int n, void** a, int ld, int* info, int count))   \
  X(cusolver, orgqr_bufferSize, ungqr_bufferSize, "",                                                                  \
    (Handle, int m, int n, int k, const void* a, int ld, const void* tau, int* work))                                  \
  X(cusolver, orgqr, ungqr, "",                                                                                        \
    (Handle, int m, int n, int k, void* a, int ld, const void* tau, void* work, int work_size, int* info))             \
  X(cusolver, ormqr_bufferSize, unmqr_bufferSize, "",                                                                  \
    (Handle, int side, int form, int m, int n, int k, const void* a, int ld, const void* tau, const void* c, int c_ld, \
     int* work))                                                                                                       \
  X(cusolver, ormqr, unmqr, "",                                                                                        \
    (Handle, int side, int form, int m, int n, int k, const void* a, int ld, const void* tau, void* c, int c_ld,       \
     void* work, int work_size, int* info))                                                                            \
  X(cusolver, sytrf_bufferSize, sytrf_bufferSize, "", (Handle, int n, void* a, int ld, int* work))                     \
  X(cusolver, sytrf, sytrf, "",                                                                                        \
    (Handle, int triangle, int n, void* a, int ld, int* pivots, void* work, int work_size, int* info))                 \
  X(cusolver, gesvdj_bufferSize, gesvdj_bufferSize, "",                                                                \
    (Handle, int vectors, int economical, int m, int n, const void* a, int ld, const void* values, const void* u,      \
     int u_ld, const void* v, int v_ld, int* work, void* settings))                                                    \
  X(cusolver, gesvdj, gesvdj, "",                                                                                      \
    (Handle, int vectors, int economical, int m, int n, void* a, int ld, void* values, void* u, int u_ld, void* v,     \
     int v_ld, void* work, int work_size, int* info, void* settings))                                                  \
  X(cusolver, gesvdjBatched_bufferSize, gesvdjBatched_bufferSize, "",                                                  \
    (Handle, int vectors, int m, int n, const void* a, int ld, const void* values, const void* u, int u_ld,            \
     const void* v, int v_ld, int* work, void* settings, int count))                                                   \
  X(cusolver, gesvdjBatched, gesvdjBatched, "",                                                                        \
    (Handle, int vectors, int m, int n, void* a, int ld, void* values, void* u, int u_ld, void* v, int v_ld,           \
     void* work, int work_size, int* info, void* settings, int count))                                                 \
  X(cublas, trsm, trsm, "_v2",                                                                                         \
    (Handle, int side, int triangle, int form, int unit, int m, int n, const void* alpha, const void* a, int ld,       \
     void* b, int b_ld))                                                                                               \
  X(cublas, trsmBatched, trsmBatched, "",                                                                              \
    (Handle, int side, int triangle, int form, int unit, int m, int n, const void* alpha, void* const* a, int ld,      \
     void* const* b, int b_ld, int count))                                                                             \
  X(cublas, getrfBatched, getrfBatched, "", (Handle, int n, void* const* a, int ld, int* pivots, int* info, int count))

#define CRESSET_CUBLAS_FUNCTIONS(X)     \
  X(cublasCreate_v2, (Handle * handle)) \
  X(cublasSetStream_v2, (Handle handle, StreamHandle stream))

// Which of the four functions of a typed one.
int place_of(Dtype d) { return d == Dtype::f32 ? 0 : d == Dtype::f64 ? 1 : d == Dtype::c64 ? 2 : 3; }

template <class Function>
struct Typed {
  Function* of[4] = {};
  Function* operator[](Dtype d) const { return of[place_of(d)]; }
};

struct Libraries {
#define CRESSET_MEMBER(name, parameters) LibraryStatus(*name) parameters = nullptr;
  CRESSET_CUSOLVER_FUNCTIONS(CRESSET_MEMBER)
  CRESSET_NEWER_FUNCTIONS(CRESSET_MEMBER)
  CRESSET_CUBLAS_FUNCTIONS(CRESSET_MEMBER)
#undef CRESSET_MEMBER
#define CRESSET_MEMBER(library, name, complex_name, ending, parameters) Typed<LibraryStatus parameters> name;
  CRESSET_TYPED_FUNCTIONS(CRESSET_MEMBER)
#undef CRESSET_MEMBER
  std::string problem;
};

template <class Function>
void find_typed(Typed<Function>& to, const Library& file, const std::string& start, const char* name,
                const char* complex_name, const char* ending) {
  for (int i = 0; i < 4; ++i)
    to.of[i] =
        reinterpret_cast<Function*>(file.symbol((start + "SDCZ"[i] + (i < 2 ? name : complex_name) + ending).c_str()));
}

const Libraries& libraries() {
  static const Libraries* const the = [] {
    // Those that cuSOLVER opens by itself, so that it finds the ones that we have found.
    static const auto* const others =
        new Library[3]{Library{"libnvJitLink.so.13", "libnvJitLink.so.12", "libnvJitLink.so"},
                       Library{"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so"},
                       Library{"libcusparse.so.12", "libcusparse.so"}};
    (void)others;
    const Library cublas{"libcublas.so.13", "libcublas.so.12", "libcublas.so"},
        cusolver{"libcusolver.so.12", "libcusolver.so.11", "libcusolver.so"};
    auto* f = new Libraries;
    if (!cublas.found() || !cusolver.found()) {
      f->problem = cublas.found() ? cusolver.problem() : cublas.problem();
      return f;
    }
#define CRESSET_FIND(name, parameters) f->name = reinterpret_cast<decltype(f->name)>(cusolver.symbol(#name));
    CRESSET_CUSOLVER_FUNCTIONS(CRESSET_FIND)
#undef CRESSET_FIND
#define CRESSET_FIND(name, parameters) f->name = reinterpret_cast<decltype(f->name)>(cusolver.find(#name));
    CRESSET_NEWER_FUNCTIONS(CRESSET_FIND)
#undef CRESSET_FIND
#define CRESSET_FIND(name, parameters) f->name = reinterpret_cast<decltype(f->name)>(cublas.symbol(#name));
    CRESSET_CUBLAS_FUNCTIONS(CRESSET_FIND)
#undef CRESSET_FIND
    const std::string cusolver_start = "cusolverDn", cublas_start = "cublas";
#define CRESSET_FIND(library, name, complex_name, ending, parameters) \
  find_typed(f->name, library, library##_start, #name, #complex_name, ending);
    CRESSET_TYPED_FUNCTIONS(CRESSET_FIND)
#undef CRESSET_FIND
    return f;
  }();
  return *the;
}

void check_done(LibraryStatus status, const char* what) {
  if (status == kDone) [[likely]]
    return;
  const std::string_view call(what);
  fail("CUDA error: status ", status, " when calling `", call.substr(0, call.find_first_of("([")), "`");
}
// A call does not overtake what was launched before (Note [Launching on another thread]).
#define CRESSET_LIBRARY(call) check_done((finish_launches(), libraries().call), #call)

std::mutex lock;  // a handle serves one call at a time

// A device's handles, on the stream of its work: what a routine puts there comes after everything that was asked for
// before.
struct Handles {
  Handle solver = nullptr, blas = nullptr;
  Parameters parameters = nullptr;
  void* jacobi = nullptr;
  StreamHandle stream = nullptr;
};
const Handles& handles(int device) {
  static Handles all[kMaxDevices];
  Handles& h = all[device];
  const StreamHandle stream = enter(device);
  const bool is_new = !h.solver;
  if (is_new) {
    CRESSET_LIBRARY(cusolverDnCreate(&h.solver));
    CRESSET_LIBRARY(cublasCreate_v2(&h.blas));
    CRESSET_LIBRARY(cusolverDnCreateParams(&h.parameters));
    CRESSET_LIBRARY(cusolverDnCreateGesvdjInfo(&h.jacobi));
  }
  if (is_new || h.stream != stream) {
    CRESSET_LIBRARY(cusolverDnSetStream(h.solver, stream));
    CRESSET_LIBRARY(cublasSetStream_v2(h.blas, stream));
    h.stream = stream;
  }
  return h;
}

DataType data_type(Dtype d) {
  static constexpr DataType all[] = {kR32F, kR64F, kC32F, kC64F};
  return all[place_of(d)];
}
DataType real_type(Dtype d) { return d == Dtype::f32 || d == Dtype::c64 ? kR32F : kR64F; }
int64_t real_bytes(Dtype d) { return real_type(d) == kR32F ? 4 : 8; }
bool is_complex_number(Dtype d) { return d == Dtype::c64 || d == Dtype::c128; }

// A size as the older functions take it.
int narrow(int64_t n) {
  check(n <= std::numeric_limits<int>::max(), "linalg: a matrix with a size of ", n, " is too large for cuSOLVER");
  return static_cast<int>(n);
}

// Memory on the device and on the host for one call of the 64-bit interface.
struct Buffers {
  Workspace device;
  std::vector<char> host;
  size_t device_bytes;
  Buffers(int where, size_t device_size, size_t host_size)
      : device(where, device_size), host(host_size), device_bytes(device_size) {}
};

// Where the matrices start, on the device.
Tensor addresses(const Matrices& m) {
  static const KernelFamily kernel("linalg.cuh", "addresses", {}, {"-DADDRESSES"});
  const Device device{DeviceType::cuda, static_cast<int8_t>(m.device)};
  const Tensor out = empty({{m.count}}, Dtype::i64, device);
  const int64_t first = reinterpret_cast<int64_t>(m.data), step = m.rows * m.columns * size_of(m.dtype);
  kernel.launch(Place(device), {}, divide_up(m.count, 256), 256, 0, out.bytes(), first, step, m.count);
  return out;
}
void** pointers(const Tensor& addresses) { return reinterpret_cast<void**>(addresses.bytes()); }

}  // namespace

Matrices::Matrices(const Tensor& t)
    : dtype(t.dtype()),
      rows(t.size(-2)),
      columns(t.size(-1)),
      count(rows * columns != 0 ? t.numel() / (rows * columns) : 0),
      data(t.bytes()),
      device(t.device().index) {
  Dims sizes(t.sizes()), strides(t.strides());
  std::swap(sizes[sizes.size() - 1], sizes[sizes.size() - 2]);
  std::swap(strides[strides.size() - 1], strides[strides.size() - 2]);
  invariant(t.device().type == DeviceType::cuda && is_contiguous(sizes, strides),
            "matrices for cuSOLVER lie column after column on a device");
}

const std::string& cusolver_problem() { return libraries().problem; }
bool has_geev() { return libraries().cusolverDnXgeev && libraries().cusolverDnXgeev_bufferSize; }

void potrf(const Matrices& a, bool upper, int* info) {
  std::lock_guard guard(lock);
  const int triangle = upper ? kUpper : kLower;
  if (a.count > 1) {
    const Tensor where = addresses(a);
    const Handles& h = handles(a.device);
    CRESSET_LIBRARY(potrfBatched[a.dtype](h.solver, triangle, narrow(a.rows), pointers(where), narrow(a.rows), info,
                                          narrow(a.count)));
    return;
  }
  size_t device = 0, host = 0;
  const DataType type = data_type(a.dtype);
  CRESSET_LIBRARY(cusolverDnXpotrf_bufferSize(handles(a.device).solver, handles(a.device).parameters, triangle, a.rows,
                                              type, a.data, a.rows, type, &device, &host));
  Buffers work(a.device, device, host);
  const Handles& h = handles(a.device);
  CRESSET_LIBRARY(cusolverDnXpotrf(h.solver, h.parameters, triangle, a.rows, type, a.data, a.rows, type,
                                   work.device.data(), device, work.host.data(), host, info));
}

void getrf(const Matrices& a, int64_t* pivots, int* info) {
  std::lock_guard guard(lock);
  size_t device = 0, host = 0;
  const DataType type = data_type(a.dtype);
  CRESSET_LIBRARY(cusolverDnXgetrf_bufferSize(handles(a.device).solver, handles(a.device).parameters, a.rows, a.columns,
                                              type, a.data, a.rows, type, &device, &host));
  Buffers work(a.device, device, host);
  const Handles& h = handles(a.device);
  for (int64_t i = 0; i < a.count; ++i)
    CRESSET_LIBRARY(cusolverDnXgetrf(h.solver, h.parameters, a.rows, a.columns, type, a.at(i), a.rows,
                                     pivots ? pivots + i * std::min(a.rows, a.columns) : nullptr, type,
                                     work.device.data(), device, work.host.data(), host, info + i));
}

void getrf_batched(const Matrices& a, int* pivots, int* info) {
  std::lock_guard guard(lock);
  const Tensor where = addresses(a);
  CRESSET_LIBRARY(getrfBatched[a.dtype](handles(a.device).blas, narrow(a.rows), pointers(where), narrow(a.rows), pivots,
                                        info, narrow(a.count)));
}

void getrs(const Matrices& lu, const int64_t* pivots, const Matrices& b, Form form) {
  std::lock_guard guard(lock);
  const DataType type = data_type(lu.dtype);
  const Workspace info(lu.device, sizeof(int));
  const Handles& h = handles(lu.device);
  for (int64_t i = 0; i < lu.count; ++i)
    CRESSET_LIBRARY(cusolverDnXgetrs(h.solver, h.parameters, static_cast<int>(form), lu.rows, b.columns, type, lu.at(i),
                                     lu.rows, pivots + i * lu.rows, type, b.at(i), b.rows,
                                     reinterpret_cast<int*>(info.data())));
}

void trsm(const Matrices& a, const Matrices& b, bool upper, bool left, bool unit, Form form) {
  std::lock_guard guard(lock);
  const float one[2] = {1, 0};
  const double wide_one[2] = {1, 0};
  const void* const alpha = real_type(a.dtype) == kR32F ? static_cast<const void*>(one) : wide_one;
  const int side = left ? kLeft : kRight, triangle = upper ? kUpper : kLower, m = narrow(b.rows), n = narrow(b.columns),
            ld = narrow(a.rows);
  if (a.count == 1 || (a.count <= 8 && a.rows >= 64)) {
    const Handles& h = handles(a.device);
    for (int64_t i = 0; i < a.count; ++i)
      CRESSET_LIBRARY(
          trsm[a.dtype](h.blas, side, triangle, static_cast<int>(form), unit, m, n, alpha, a.at(i), ld, b.at(i), m));
    return;
  }
  const Tensor where = addresses(a), b_where = addresses(b);
  CRESSET_LIBRARY(trsmBatched[a.dtype](handles(a.device).blas, side, triangle, static_cast<int>(form), unit, m, n,
                                       alpha, pointers(where), ld, pointers(b_where), m, narrow(a.count)));
}

void geqrf(const Matrices& a, char* tau) {
  std::lock_guard guard(lock);
  size_t device = 0, host = 0;
  const DataType type = data_type(a.dtype);
  const Workspace info(a.device, sizeof(int));
  CRESSET_LIBRARY(cusolverDnXgeqrf_bufferSize(handles(a.device).solver, handles(a.device).parameters, a.rows, a.columns,
                                              type, a.data, a.rows, type, tau, type, &device, &host));
  Buffers work(a.device, device, host);
  const int64_t step = std::min(a.rows, a.columns) * size_of(a.dtype);
  const Handles& h = handles(a.device);
  for (int64_t i = 0; i < a.count; ++i)
    CRESSET_LIBRARY(cusolverDnXgeqrf(h.solver, h.parameters, a.rows, a.columns, type, a.at(i), a.rows, type,
                                     tau + i * step, type, work.device.data(), device, work.host.data(), host,
                                     reinterpret_cast<int*>(info.data())));
}

void orgqr(const Matrices& a, const char* tau, int64_t reflectors) {
  std::lock_guard guard(lock);
  const int m = narrow(a.rows), n = narrow(a.columns), k = narrow(reflectors);
  int size = 0;
  CRESSET_LIBRARY(orgqr_bufferSize[a.dtype](handles(a.device).solver, m, n, k, a.data, m, tau, &size));
  const Workspace work(a.device, static_cast<size_t>(size * size_of(a.dtype))), info(a.device, sizeof(int));
  const Handles& h = handles(a.device);
  for (int64_t i = 0; i < a.count; ++i)
    CRESSET_LIBRARY(orgqr[a.dtype](h.solver, m, n, k, a.at(i), m, tau + i * reflectors * size_of(a.dtype), work.data(),
                                   size, reinterpret_cast<int*>(info.data())));
}

void ormqr(const Matrices& a, const char* tau, int64_t reflectors, const Matrices& c, bool left, Form form) {
  std::lock_guard guard(lock);
  const int side = left ? kLeft : kRight, m = narrow(c.rows), n = narrow(c.columns), k = narrow(reflectors),
            ld = narrow(a.rows);
  int size = 0;
  CRESSET_LIBRARY(ormqr_bufferSize[a.dtype](handles(a.device).solver, side, static_cast<int>(form), m, n, k, a.data, ld,
                                            tau, c.data, m, &size));
  const Workspace work(a.device, static_cast<size_t>(size * size_of(a.dtype))), info(a.device, sizeof(int));
  const Handles& h = handles(a.device);
  for (int64_t i = 0; i < a.count; ++i)
    CRESSET_LIBRARY(ormqr[a.dtype](h.solver, side, static_cast<int>(form), m, n, k, a.at(i), ld,
                                   tau + i * reflectors * size_of(a.dtype), c.at(i), m, work.data(), size,
                                   reinterpret_cast<int*>(info.data())));
}

void sytrf(const Matrices& a, int* pivots, int* info) {
  std::lock_guard guard(lock);
  const int n = narrow(a.rows);
  int size = 0;
  CRESSET_LIBRARY(sytrf_bufferSize[a.dtype](handles(a.device).solver, n, a.data, n, &size));
  const Workspace work(a.device, static_cast<size_t>(size * size_of(a.dtype)));
  const Handles& h = handles(a.device);
  for (int64_t i = 0; i < a.count; ++i)
    CRESSET_LIBRARY(sytrf[a.dtype](h.solver, kLower, n, a.at(i), n, pivots + i * n, work.data(), size, info + i));
}

void sytrs(const Matrices& a, const int64_t* pivots, const Matrices& b) {
  std::lock_guard guard(lock);
  size_t device = 0, host = 0;
  const DataType type = data_type(a.dtype);
  const Workspace info(a.device, sizeof(int));
  CRESSET_LIBRARY(cusolverDnXsytrs_bufferSize(handles(a.device).solver, kLower, a.rows, b.columns, type, a.data, a.rows,
                                              pivots, type, b.data, b.rows, &device, &host));
  Buffers work(a.device, device, host);
  const Handles& h = handles(a.device);
  for (int64_t i = 0; i < a.count; ++i)
    CRESSET_LIBRARY(cusolverDnXsytrs(h.solver, kLower, a.rows, b.columns, type, a.at(i), a.rows, pivots + i * a.rows,
                                     type, b.at(i), b.rows, work.device.data(), device, work.host.data(), host,
                                     reinterpret_cast<int*>(info.data())));
}

void syevd(const Matrices& a, char* values, bool upper, bool vectors, int* info) {
  constexpr int64_t kMostTogether = 512;  // rows: larger ones fill the device by themselves
  std::lock_guard guard(lock);
  size_t device = 0, host = 0;
  const int triangle = upper ? kUpper : kLower, job = vectors ? kVectors : kNoVectors;
  const DataType type = data_type(a.dtype), real = real_type(a.dtype);
  if (a.count > 1 && a.rows <= kMostTogether && libraries().cusolverDnXsyevBatched &&
      libraries().cusolverDnXsyevBatched_bufferSize) {
    CRESSET_LIBRARY(cusolverDnXsyevBatched_bufferSize(handles(a.device).solver, handles(a.device).parameters, job,
                                                      triangle, a.rows, type, a.data, a.rows, real, values, type,
                                                      &device, &host, a.count));
    Buffers work(a.device, device, host);
    const Handles& h = handles(a.device);
    CRESSET_LIBRARY(cusolverDnXsyevBatched(h.solver, h.parameters, job, triangle, a.rows, type, a.data, a.rows, real,
                                           values, type, work.device.data(), device, work.host.data(), host, info,
                                           a.count));
    return;
  }
  CRESSET_LIBRARY(cusolverDnXsyevd_bufferSize(handles(a.device).solver, handles(a.device).parameters, job, triangle,
                                              a.rows, type, a.data, a.rows, real, values, type, &device, &host));
  Buffers work(a.device, device, host);
  const Handles& h = handles(a.device);
  for (int64_t i = 0; i < a.count; ++i)
    CRESSET_LIBRARY(cusolverDnXsyevd(h.solver, h.parameters, job, triangle, a.rows, type, a.at(i), a.rows, real,
                                     values + i * a.rows * real_bytes(a.dtype), type, work.device.data(), device,
                                     work.host.data(), host, info + i));
}

void gesvdj(const Matrices& a, char* values, const Matrices* u, const Matrices* v, int* info) {
  constexpr int64_t kMostBatched = 32;  // rows and columns
  std::lock_guard guard(lock);
  const int m = narrow(a.rows), n = narrow(a.columns), k = std::min(m, n), job = u ? kVectors : kNoVectors;
  const bool batched =
      a.count > 1 && m <= kMostBatched && n <= kMostBatched && (!u || (u->columns == m && v->columns == n));
  const int economical = !batched && (!u || (u->columns == k && v->columns == k));
  // Memory for vectors is there even if only values are asked for: which versions of the library touch it is not said.
  const int64_t u_step = u ? 0 : m * (batched ? m : k) * size_of(a.dtype),
                v_step = u ? 0 : n * (batched ? n : k) * size_of(a.dtype), kept = batched ? a.count : 1;
  const Workspace no_u(a.device, static_cast<size_t>(u_step * kept)),
      no_v(a.device, static_cast<size_t>(v_step * kept));
  char *const u_data = u ? u->data : no_u.data(), *const v_data = v ? v->data : no_v.data();
  int size = 0;
  if (batched) {
    CRESSET_LIBRARY(gesvdjBatched_bufferSize[a.dtype](handles(a.device).solver, job, m, n, a.data, m, values, u_data, m,
                                                      v_data, n, &size, handles(a.device).jacobi, narrow(a.count)));
    const Workspace work(a.device, static_cast<size_t>(size * size_of(a.dtype)));
    const Handles& h = handles(a.device);
    CRESSET_LIBRARY(gesvdjBatched[a.dtype](h.solver, job, m, n, a.data, m, values, u_data, m, v_data, n, work.data(),
                                           size, info, h.jacobi, narrow(a.count)));
    return;
  }
  CRESSET_LIBRARY(gesvdj_bufferSize[a.dtype](handles(a.device).solver, job, economical, m, n, a.data, m, values, u_data,
                                             m, v_data, n, &size, handles(a.device).jacobi));
  const Workspace work(a.device, static_cast<size_t>(size * size_of(a.dtype)));
  const Handles& h = handles(a.device);
  for (int64_t i = 0; i < a.count; ++i)
    CRESSET_LIBRARY(gesvdj[a.dtype](h.solver, job, economical, m, n, a.at(i), m, values + i * k * real_bytes(a.dtype),
                                    u ? u->at(i) : u_data, m, v ? v->at(i) : v_data, n, work.data(), size, info + i,
                                    h.jacobi));
}

void gesvd(const Matrices& a, char* values, const Matrices* u, const Matrices* vh, int* info) {
  std::lock_guard guard(lock);
  const DataType type = data_type(a.dtype), real = real_type(a.dtype);
  // "A": all columns; "S": those that belong to a singular value.
  const auto job = static_cast<signed char>(!u ? 'N' : u->columns == a.rows && vh->rows == a.columns ? 'A' : 'S');
  const int64_t vh_ld = vh ? vh->rows : a.columns;
  size_t device = 0, host = 0;
  CRESSET_LIBRARY(cusolverDnXgesvd_bufferSize(
      handles(a.device).solver, handles(a.device).parameters, job, job, a.rows, a.columns, type, a.data, a.rows, real,
      values, type, u ? u->data : nullptr, a.rows, type, vh ? vh->data : nullptr, vh_ld, type, &device, &host));
  Buffers work(a.device, device, host);
  const Handles& h = handles(a.device);
  for (int64_t i = 0; i < a.count; ++i)
    CRESSET_LIBRARY(cusolverDnXgesvd(h.solver, h.parameters, job, job, a.rows, a.columns, type, a.at(i), a.rows, real,
                                     values + i * a.columns * real_bytes(a.dtype), type, u ? u->at(i) : nullptr, a.rows,
                                     type, vh ? vh->at(i) : nullptr, vh_ld, type, work.device.data(), device,
                                     work.host.data(), host, info + i));
}

void geev(const Matrices& a, char* values, const Matrices* vectors, int* info) {
  std::lock_guard guard(lock);
  const DataType type = data_type(a.dtype);
  const int job = vectors ? kVectors : kNoVectors;
  const int64_t step = a.rows * (is_complex_number(a.dtype) ? 1 : 2) * size_of(a.dtype);
  size_t device = 0, host = 0;
  CRESSET_LIBRARY(cusolverDnXgeev_bufferSize(handles(a.device).solver, handles(a.device).parameters, kNoVectors, job,
                                             a.rows, type, a.data, a.rows, type, values, type, nullptr, a.rows, type,
                                             vectors ? vectors->data : nullptr, a.rows, type, &device, &host));
  Buffers work(a.device, device, host);
  const Handles& h = handles(a.device);
  for (int64_t i = 0; i < a.count; ++i)
    CRESSET_LIBRARY(cusolverDnXgeev(h.solver, h.parameters, kNoVectors, job, a.rows, type, a.at(i), a.rows, type,
                                    values + i * step, type, nullptr, a.rows, type, vectors ? vectors->at(i) : nullptr,
                                    a.rows, type, work.device.data(), device, work.host.data(), host, info + i));
}

}  // namespace cresset::cuda
