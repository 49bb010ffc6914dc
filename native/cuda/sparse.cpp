// Products with sparse matrices on the device. A matrix is given by its rows, as in native/ops/sparse.cpp.
#include <algorithm>
#include <bit>
#include <limits>

#include "cuda/backend.h"
#include "cuda/fault.h"
#include "cuda/radix_sort.h"
#include "dispatch/on_host.h"
#include "dispatch/registration.h"

namespace cresset::cuda {
namespace {

constexpr int64_t kBlock = 256, kEach = 4;  // as below
constexpr int64_t kLongRow = 512;           // a row of more elements is a block's, not a warp's

// T: the elements, COMPUTED: what they are summed in (whole numbers wrap around), INDEX: that of rows and columns. A
// thread has VECTOR columns of the dense matrix, ACROSS neighbors have a strip of it. WARPS of a block share a row.
const KernelText kText{
    R"cuda(// with T=dtype_f32 COMPUTED=dtype_f32 INDEX=dtype_i64 VECTOR=4 ACROSS=8 WARPS=1, T=dtype_bf16 COMPUTED=dtype_f32 INDEX=dtype_i32 VECTOR=8 ACROSS=32 WARPS=8, T=dtype_u8 COMPUTED=dtype_i32 INDEX=dtype_i64 VECTOR=1 ACROSS=1 WARPS=1, T=dtype_c128 COMPUTED=dtype_c128 INDEX=dtype_i64 VECTOR=1 ACROSS=32 WARPS=8
#include "block.cuh"
#include "fault.cuh"

using C = COMPUTED;
constexpr int kEach = 4;  // elements that a thread has on their way

template <class A>
CRESSET_INLINE A plus_product(A sum, A a, A b) {
  if constexpr (is_integer<A>)
    return static_cast<A>(static_cast<uint64_t>(sum) + static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  else
    return sum + a * b;
}

// out[row] = the sum over its elements of value * dense[column]. Groups of ACROSS take the elements of a row by turns;
// their sums are added by a fixed tree.
extern "C" __global__ void __launch_bounds__(256)
    sparse_product(const INDEX* begins, const INDEX* columns, const T* values, const T* dense, T* out, int64_t rows,
                   int64_t count, int64_t height, int64_t width, int64_t strips, Fault* fault, int32_t operation) {
  after_earlier_work();
  constexpr int kGroups = 32 * WARPS / ACROSS;
  const int thread = static_cast<int>(threadIdx.x), group = thread % (32 * WARPS) / ACROSS;
  const int64_t unit = (static_cast<int64_t>(blockIdx.x) * 256 + thread) / (32 * WARPS), row = unit / strips,
                at = (unit % strips * ACROSS + thread % ACROSS) * VECTOR;
  C sums[VECTOR];
#pragma unroll
  for (int j = 0; j < VECTOR; ++j) sums[j] = C(0);
  if (row < rows && at < width) {
    int64_t begin = begins[row], end = begins[row + 1];
    if (begin < 0 || end > count) {
      report(fault, operation, begin < 0 ? begin : end, row, count);
      begin = end = 0;
    }
#pragma unroll 1
    for (int64_t e = begin + group; e < end; e += kGroups * kEach) {
      int64_t from[kEach];
      C value[kEach];
      Vector<T, VECTOR> x[kEach];
#pragma unroll
      for (int k = 0; k < kEach; ++k) {
        const int64_t i = e + k * kGroups;
        from[k] = -1;
        if (i < end) from[k] = columns[i], value[k] = convert<C>(values[i]);
        if (i < end && (from[k] < 0 || from[k] >= height)) {
          report(fault, operation, from[k], i, height);
          from[k] = -1;
        }
      }
#pragma unroll
      for (int k = 0; k < kEach; ++k)
        if (from[k] >= 0) x[k] = load_vector<VECTOR>(dense + from[k] * width + at);
#pragma unroll
      for (int k = 0; k < kEach; ++k)
        if (from[k] >= 0)
#pragma unroll
          for (int j = 0; j < VECTOR; ++j) sums[j] = plus_product(sums[j], value[k], convert<C>(x[k][j]));
    }
  }
#pragma unroll
  for (int j = 0; j < VECTOR; ++j)
#pragma unroll
    for (int offset = 16; offset >= ACROSS; offset /= 2) sums[j] = sums[j] + shuffle_xor(sums[j], offset);
#if WARPS > 1
  __shared__ __align__(16) char bytes[WARPS * ACROSS * VECTOR * sizeof(C)];
  C* const parts = reinterpret_cast<C*>(bytes);
  const int own = thread % ACROSS * VECTOR;
  if (thread % 32 < ACROSS)
#pragma unroll
    for (int j = 0; j < VECTOR; ++j) parts[thread / 32 * ACROSS * VECTOR + own + j] = sums[j];
  __syncthreads();
  if (thread < ACROSS)
#pragma unroll 1
    for (int w = 1; w < WARPS; ++w)
#pragma unroll
      for (int j = 0; j < VECTOR; ++j) sums[j] = sums[j] + parts[w * ACROSS * VECTOR + own + j];
#endif
  if (row >= rows || at >= width || group > 0) return;
  Vector<T, VECTOR> result;
#pragma unroll
  for (int j = 0; j < VECTOR; ++j) result[j] = convert<T>(sums[j]);
  store_vector(out + row * width + at, result);
}

// The last row that begins at or before element e, among those from `low` on.
CRESSET_INLINE int64_t row_at(const INDEX* begins, int64_t low, int64_t rows, int64_t e) {
  int64_t high = rows;
  while (low + 1 < high) {
    const int64_t middle = (low + high) / 2;
    if (begins[middle] <= e)
      low = middle;
    else
      high = middle;
  }
  return low;
}

// out[e] = <left[row of e], right[column of e]>: ACROSS threads have an element, kEach of them one after another.
extern "C" __global__ void __launch_bounds__(256)
    sparse_sampled_product(const INDEX* begins, const INDEX* columns, const T* left, const T* right, T* out,
                           int64_t rows, int64_t count, int64_t height, int64_t width, Fault* fault,
                           int32_t operation) {
  after_earlier_work();
  const int64_t first = (static_cast<int64_t>(blockIdx.x) * 256 + threadIdx.x) / ACROSS * kEach;
  const int lane = static_cast<int>(threadIdx.x) % ACROSS;
  int64_t row = first < count ? row_at(begins, 0, rows, first) : 0;
#pragma unroll 1
  for (int64_t e = first; e < first + kEach; ++e) {
    C sum = C(0);
    if (e < count) {
      if (row + 1 < rows && begins[row + 1] <= e) row = row_at(begins, row + 1, rows, e);
      const int64_t column = columns[e];
      const bool bad = column < 0 || column >= height;
      if (bad && lane == 0) report(fault, operation, column, e, height);
      const T *a = left + row * width, *b = right + column * width;
#pragma unroll 2
      for (int64_t at = bad ? width : lane * VECTOR; at < width; at += ACROSS * VECTOR) {
        const Vector<T, VECTOR> x = load_vector<VECTOR>(a + at), y = load_vector<VECTOR>(b + at);
#pragma unroll
        for (int j = 0; j < VECTOR; ++j) sum = plus_product(sum, convert<C>(x[j]), convert<C>(y[j]));
      }
    }
    sum = sum_lanes<ACROSS>(sum);
    if (e < count && lane == 0) out[e] = convert<T>(sum);
  }
}
)cuda"};
const KernelFamily kProduct(kText, "sparse_product", {"T", "COMPUTED", "INDEX", "VECTOR", "ACROSS", "WARPS"},
                            {"--fmad=true"});
const KernelFamily kSampled(kText, "sparse_sampled_product", {"T", "COMPUTED", "INDEX", "VECTOR", "ACROSS", "WARPS"},
                            {"--fmad=true"});

const KernelText kSorted{R"cuda(// with INDEX=dtype_i64, INDEX=dtype_i32
#include "fault.cuh"

// The rows of elements as keys of a sort; a bad one counts as the first.
extern "C" __global__ void __launch_bounds__(256)
    row_keys(const INDEX* rows, int32_t* keys, int64_t n, int64_t count, Fault* fault, int32_t operation) {
  after_earlier_work();
  const int64_t i = static_cast<int64_t>(blockIdx.x) * 256 + threadIdx.x;
  if (i >= n) return;
  const int64_t row = rows[i];
  const bool bad = row < 0 || row >= count;
  if (bad) report(fault, operation, row, i, count);
  keys[i] = bad ? 0 : static_cast<int32_t>(row);
}

// begins[r]: the first of the sorted keys that is not below r. The positions become the order.
extern "C" __global__ void __launch_bounds__(256)
    row_begins(const int32_t* keys, const int32_t* positions, int64_t* begins, int64_t* order, int64_t n,
               int64_t count) {
  after_earlier_work();
  const int64_t i = static_cast<int64_t>(blockIdx.x) * 256 + threadIdx.x;
  if (i < n) order[i] = positions[i];
  if (i > count) return;
  int64_t low = 0, high = n;
  while (low < high) {
    const int64_t middle = (low + high) / 2;
    if (keys[middle] < i)
      low = middle + 1;
    else
      high = middle;
  }
  begins[i] = low;
}
)cuda"};
const KernelFamily kKeys(kSorted, "row_keys", {"INDEX"});
const KernelFamily kBegins(kSorted, "row_begins", {"INDEX"});

// Rows and columns in one dtype, elements that lie side by side, and how the dense matrices are read.
struct Problem {
  Tensor begins, columns;
  Dtype computed;
  int vector = 1, lanes = 1;

  Problem(const Call& c, Dtype dtype)
      : computed(size_of(dtype) < 4 && is_integral(dtype)      ? Dtype::i32
                 : dtype == Dtype::f16 || dtype == Dtype::bf16 ? Dtype::f32
                                                               : dtype) {
    begins = c.tensor(0), columns = c.tensor(1);
    const bool narrow = begins.dtype() == Dtype::i32 && columns.dtype() == Dtype::i32;
    begins = contiguous_on_device(convert(begins, narrow ? Dtype::i32 : Dtype::i64));
    columns = contiguous_on_device(convert(columns, narrow ? Dtype::i32 : Dtype::i64));
  }
  void read(int64_t width, Dtype dtype, std::initializer_list<const Tensor*> matrices) {
    const int64_t size = size_of(dtype);
    vector = static_cast<int>(std::min<int64_t>(16 / size, 8));
    while (vector > 1 && (width % vector || std::any_of(matrices.begin(), matrices.end(), [&](const Tensor* m) {
                            return reinterpret_cast<uintptr_t>(m->bytes()) % static_cast<uintptr_t>(vector * size);
                          })))
      vector /= 2;
    const auto vectors = static_cast<uint64_t>(std::max<int64_t>(divide_up(width, vector), 1));
    lanes = static_cast<int>(std::min<uint64_t>(std::bit_ceil(vectors), 32));
  }
};

bool is_multiplied(Dtype d) {
  return d != Dtype::b8 && (is_integral(d) || d == Dtype::f16 || d == Dtype::bf16 || d == Dtype::f32 ||
                            d == Dtype::f64 || d == Dtype::c64 || d == Dtype::c128);
}

void run_product(Call& c) {
  static const auto number = static_cast<int32_t>(operation_number("sparse_product"));
  const Tensor& out = c.out();
  const Dtype dtype = out.dtype();
  if (!is_multiplied(dtype)) return execute_on_host(c, out.device());
  if (out.numel() == 0) return;
  Problem p(c, dtype);
  const Tensor values = contiguous_on_device(c.tensor(2)), dense = contiguous_on_device(c.tensor(3));
  const int64_t rows = out.size(0), width = out.size(1), count = values.numel();
  if (count == 0) return fill(out, Scalar(0));
  p.read(width, dtype, {&dense, &out});
  const int warps = count / rows > kLongRow ? 8 : 1;
  const int64_t strips = divide_up(width, p.vector * p.lanes);
  const Place place(out.device());
  kProduct.launch(place, {dtype, p.computed, p.begins.dtype(), p.vector, p.lanes, warps},
                  divide_up(rows * strips * 32 * warps, kBlock), kBlock, 0, p.begins.bytes(), p.columns.bytes(),
                  values.bytes(), dense.bytes(), out.bytes(), rows, count, dense.size(0), width, strips,
                  fault_place(place.device), number);
}

void run_sampled(Call& c) {
  static const auto number = static_cast<int32_t>(operation_number("sparse_sampled_product"));
  const Tensor& out = c.out();
  const Dtype dtype = out.dtype();
  if (out.numel() == 0) return;
  if (!is_multiplied(dtype) || c.tensor(2).size(0) == 0) return execute_on_host(c, out.device());
  Problem p(c, dtype);
  const Tensor left = contiguous_on_device(c.tensor(2)), right = contiguous_on_device(c.tensor(3));
  const int64_t width = left.size(1), count = out.numel();
  p.read(width, dtype, {&left, &right});
  const Place place(out.device());
  kSampled.launch(place, {dtype, p.computed, p.begins.dtype(), p.vector, p.lanes, 1},
                  divide_up(divide_up(count, kEach) * p.lanes, kBlock), kBlock, 0, p.begins.bytes(), p.columns.bytes(),
                  left.bytes(), right.bytes(), out.bytes(), left.size(0), count, right.size(0), width,
                  fault_place(place.device), number);
}

void run_sort_rows(Call& c) {
  static const auto number = static_cast<int32_t>(operation_number("sparse_sort_rows"));
  const Tensor given = c.tensor(0),
               rows = contiguous_on_device(given.dtype() == Dtype::i32 ? given : convert(given, Dtype::i64));
  const int64_t n = rows.numel(), count = c.integer(1);
  check_value(count >= 0, "sparse_sort_rows: the number of rows must not be negative, got ", count);
  if (std::max(n, count) >= std::numeric_limits<int32_t>::max() - 4096) return execute_on_host(c, given.device());
  const Place place(given.device());
  const Tensor keys = empty({{n}}, Dtype::i32, given.device());
  if (n)
    kKeys.launch(place, {rows.dtype()}, divide_up(n, kBlock), kBlock, 0, rows.bytes(), keys.bytes(), n, count,
                 fault_place(place.device), number);
  const SortedKeys sorted = n ? sort_keys(place, keys, n, bits_for(count - 1)) : SortedKeys{keys, keys};
  const Tensor begins = empty({{count + 1}}, Dtype::i64, given.device()),
               order = empty({{n}}, Dtype::i64, given.device());
  kBegins.launch(place, {rows.dtype()}, divide_up(std::max(n, count + 1), kBlock), kBlock, 0, sorted.keys.bytes(),
                 sorted.positions.bytes(), begins.bytes(), order.bytes(), n, count);
  c.give(begins);
  c.give(order);
}

}  // namespace

REGISTER_KERNELS(sparse) {
  r.set_kernel("sparse_product", DeviceType::cuda, run_product);
  r.set_kernel("sparse_sampled_product", DeviceType::cuda, run_sampled);
  r.set_kernel("sparse_sort_rows", DeviceType::cuda, run_sort_rows);
}

}  // namespace cresset::cuda
