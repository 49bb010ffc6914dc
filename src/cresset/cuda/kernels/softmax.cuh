// softmax and log_softmax and their gradients. A row stays in registers, so that memory is read once and written once;
// a row too long for that is read twice; along another dimension than the last, rows stand side by side.
//
// -D options: ELEMENT, RESULT, LOG, KERNEL (0 rows, 1 long rows, 2 columns, and 3, 4, 5 for the gradients), and those
// of rows.cuh.
#pragma once
#include "rows.cuh"

using T = ELEMENT;
using R = RESULT;
using C = decltype(opmath<T>() + opmath<R>());
constexpr bool kHalf = is_half<R>;

CRESSET_INLINE C power(C x) { return exp_for<kHalf>(x); }
// A nan is passed over here, and comes out by the sum.
CRESSET_INLINE float max_of(float a, float b) { return ::fmaxf(a, b); }
CRESSET_INLINE double max_of(double a, double b) { return ::fmax(a, b); }
// What is subtracted before exp: a row, or part of one, may have nothing but -infinity.
CRESSET_INLINE C reference_of(C largest) { return largest == C(-INFINITY) ? C(0) : largest; }

// The largest element, and the sum of exp(element - its reference).
struct LogSum {
  C largest, sum;
};
CRESSET_INLINE void merge(LogSum& a, const LogSum& b) {
  const C largest = max_of(a.largest, b.largest), reference = reference_of(largest);
  a = {largest, a.sum * power(a.largest - reference) + b.sum * power(b.largest - reference)};
}
CRESSET_INLINE void add(LogSum& a, C x) {
  if (x > a.largest) {
    a.sum *= power(a.largest - x);
    a.largest = x;
  }
  a.sum += power(x - reference_of(a.largest));
}
template <int SLOT>
CRESSET_INLINE LogSum log_sum_of_row(LogSum a) {
#pragma unroll
  for (int offset = kRowLanes / 2; offset > 0; offset /= 2) merge(a, shuffle_xor(a, offset));
  if constexpr (kRowWarps > 1) {
    a = exchange_warps<SLOT>(a);
#pragma unroll
    for (int offset = kRowWarps / 2; offset > 0; offset /= 2) merge(a, shuffle_xor(a, offset));
  }
  return a;
}

// ---------------------------------------------------------------- forward

#if KERNEL == 0
extern "C" __global__ void __launch_bounds__(kRowBlock) softmax_rows(const T* x, R* y, int64_t rows, int32_t n) {
  after_earlier_work();
  const int64_t row = row_of_thread();
  const int place = place_in_row() * VECTOR;
  const bool exists = row < rows;
  x += row * n;
  y += row * n;
  Vector<T, VECTOR> loaded[PER];
#pragma unroll
  for (int p = 0; p < PER; ++p)
    if (exists && place + p * THREADS * VECTOR < n) loaded[p] = load_vector<VECTOR>(x + place + p * THREADS * VECTOR);
  C values[PER][VECTOR], largest = C(-INFINITY);
#pragma unroll
  for (int p = 0; p < PER; ++p) {
    const bool there = exists && place + p * THREADS * VECTOR < n;
#pragma unroll
    for (int k = 0; k < VECTOR; ++k) {
      values[p][k] = there ? convert<C>(loaded[p][k]) : C(-INFINITY);
      largest = max_of(largest, values[p][k]);
    }
  }
  // Each warp sums about its own largest element; only the sums of warps are brought together.
#pragma unroll
  for (int offset = kRowLanes / 2; offset > 0; offset /= 2) largest = max_of(largest, shuffle_xor(largest, offset));
  const C reference = reference_of(largest);
  C sum = 0;
#pragma unroll
  for (int p = 0; p < PER; ++p)
#pragma unroll
    for (int k = 0; k < VECTOR; ++k) {
      const C e = power(values[p][k] - reference);
      sum += e;
      if (!LOG) values[p][k] = e;
    }
  sum = sum_lanes<kRowLanes>(sum);
  LogSum all{largest, sum};
  if constexpr (kRowWarps > 1) {
    const LogSum other = exchange_warps<0>(all);
    C top = other.largest;
#pragma unroll
    for (int offset = kRowWarps / 2; offset > 0; offset /= 2) top = max_of(top, shuffle_xor(top, offset));
    all = {top, sum_lanes<kRowWarps>(other.sum * power(other.largest - reference_of(top)))};
  }
  if (!exists) return;
  // A row of nothing but -infinity is nan, as in PyTorch.
  const C factor = LOG ? math::log(all.sum) : power(reference - all.largest) / all.sum;
#pragma unroll
  for (int p = 0; p < PER; ++p) {
    if (place + p * THREADS * VECTOR >= n) continue;
    Vector<R, VECTOR> out;
#pragma unroll
    for (int k = 0; k < VECTOR; ++k)
      out[k] = convert<R>(LOG ? (values[p][k] - all.largest) - factor : values[p][k] * factor);
    store_vector(y + place + p * THREADS * VECTOR, out);
  }
}
#endif

CRESSET_INLINE R result(C x, const LogSum& all, C factor) {
  return convert<R>(LOG ? (x - all.largest) - factor : power(x - all.largest) * factor);
}

#if KERNEL == 1
extern "C" __global__ void __launch_bounds__(kRowBlock) softmax_long(const T* x, R* y, int64_t rows, int64_t n) {
  after_earlier_work();
  x += blockIdx.x * n;
  y += blockIdx.x * n;
  const RowWalk walk(x, y, n);
  LogSum all{C(-INFINITY), C(0)};
  walk.visit([&](int64_t i) { return load_vector<VECTOR>(x + i); },
             [&](int64_t i, const Vector<T, VECTOR>& v) {
               C top = convert<C>(v[0]);
#pragma unroll
               for (int k = 1; k < VECTOR; ++k) top = max_of(top, convert<C>(v[k]));
               if (top > all.largest) {
                 all.sum *= power(all.largest - top);
                 all.largest = top;
               }
               const C reference = reference_of(all.largest);
#pragma unroll
               for (int k = 0; k < VECTOR; ++k) all.sum += power(convert<C>(v[k]) - reference);
             },
             [&](int64_t i) { add(all, convert<C>(x[i])); });
  all = log_sum_of_row<0>(all);
  const C factor = LOG ? math::log(all.sum) : 1 / all.sum;
  walk.visit([&](int64_t i) { return load_vector<VECTOR>(x + i); },
             [&](int64_t i, const Vector<T, VECTOR>& v) {
               Vector<R, VECTOR> out;
#pragma unroll
               for (int k = 0; k < VECTOR; ++k) out[k] = result(convert<C>(v[k]), all, factor);
               store_vector(y + i, out);
             },
             [&](int64_t i) { y[i] = result(convert<C>(x[i]), all, factor); });
}
#endif

#if KERNEL == 2 || KERNEL == 5
// A block of 256 threads: `across` columns side by side, each shared by 256 / across threads.
constexpr int kColumnBlock = 256;
struct Column {
  int64_t first;  // the place of the column's first element
  int begin, step;
  bool exists;
  CRESSET_INLINE Column(int64_t outer, int64_t n, int64_t inner, int across) {
    const int64_t tiles = (inner + across - 1) / across, column = blockIdx.x % tiles * across + threadIdx.x % across;
    const int64_t image = blockIdx.x / tiles;
    exists = image < outer && column < inner;
    first = image * n * inner + column;
    begin = static_cast<int>(threadIdx.x) / across;
    step = kColumnBlock / across;
  }
};
#endif

#if KERNEL == 2
extern "C" __global__ void __launch_bounds__(kColumnBlock)
    softmax_columns(const T* x, R* y, int64_t outer, int64_t n, int64_t inner, int32_t across) {
  after_earlier_work();
  const Column column(outer, n, inner, across);
  x += column.first;
  y += column.first;
  LogSum all{C(-INFINITY), C(0)};
  if (column.exists)
    for (int64_t i = column.begin; i < n; i += column.step) add(all, convert<C>(x[i * inner]));
  __shared__ __align__(16) char bytes[kColumnBlock * sizeof(LogSum)];
  auto* parts = reinterpret_cast<LogSum*>(bytes);
  parts[threadIdx.x] = all;
  __syncthreads();
  all = parts[threadIdx.x % across];
#pragma unroll 1
  for (int k = 1; k < column.step; ++k) merge(all, parts[threadIdx.x % across + k * across]);
  const C factor = LOG ? math::log(all.sum) : 1 / all.sum;
  if (column.exists)
    for (int64_t i = column.begin; i < n; i += column.step)
      y[i * inner] = result(convert<C>(x[i * inner]), all, factor);
}
#endif

// ---------------------------------------------------------------- gradients
// With y the result: (g - sum(g y)) y, and g - exp(y) sum(g) for log_softmax.

CRESSET_INLINE C term(C g, C y) { return LOG ? g : g * y; }
CRESSET_INLINE R gradient(C g, C y, C sum) { return convert<R>(LOG ? g - power(y) * sum : (g - sum) * y); }

#if KERNEL == 3
extern "C" __global__ void __launch_bounds__(kRowBlock)
    softmax_gradient_rows(const T* g, const T* y, R* out, int64_t rows, int32_t n) {
  after_earlier_work();
  const int64_t row = row_of_thread();
  const int place = place_in_row() * VECTOR;
  const bool exists = row < rows;
  g += row * n;
  y += row * n;
  out += row * n;
  Vector<T, VECTOR> grads[PER], results[PER];
#pragma unroll
  for (int p = 0; p < PER; ++p)
    if (exists && place + p * THREADS * VECTOR < n) {
      grads[p] = load_vector<VECTOR>(g + place + p * THREADS * VECTOR);
      results[p] = load_vector<VECTOR>(y + place + p * THREADS * VECTOR);
    }
  C sum = 0;
#pragma unroll
  for (int p = 0; p < PER; ++p)
    if (exists && place + p * THREADS * VECTOR < n)
#pragma unroll
      for (int k = 0; k < VECTOR; ++k) sum += term(convert<C>(grads[p][k]), convert<C>(results[p][k]));
  sum = sum_of_row<0>(sum);
#pragma unroll
  for (int p = 0; p < PER; ++p) {
    if (!exists || place + p * THREADS * VECTOR >= n) continue;
    Vector<R, VECTOR> made;
#pragma unroll
    for (int k = 0; k < VECTOR; ++k) made[k] = gradient(convert<C>(grads[p][k]), convert<C>(results[p][k]), sum);
    store_vector(out + place + p * THREADS * VECTOR, made);
  }
}
#endif

#if KERNEL == 4
extern "C" __global__ void __launch_bounds__(kRowBlock)
    softmax_gradient_long(const T* g, const T* y, R* out, int64_t rows, int64_t n) {
  after_earlier_work();
  g += blockIdx.x * n;
  y += blockIdx.x * n;
  out += blockIdx.x * n;
  RowWalk walk(g, y, n);
  const RowWalk other(g, out, n);
  if (other.vectors == 0) walk = other;
  C sum = 0;
  walk.visit([&](int64_t i) { return load_two(g + i, y + i); },
             [&](int64_t i, const TwoVectors<T, T>& both) {
               const auto &a = both.first, &b = both.second;
#pragma unroll
               for (int k = 0; k < VECTOR; ++k) sum += term(convert<C>(a[k]), convert<C>(b[k]));
             },
             [&](int64_t i) { sum += term(convert<C>(g[i]), convert<C>(y[i])); });
  sum = sum_of_row<0>(sum);
  walk.visit([&](int64_t i) { return load_two(g + i, y + i); },
             [&](int64_t i, const TwoVectors<T, T>& both) {
               const auto &a = both.first, &b = both.second;
               Vector<R, VECTOR> made;
#pragma unroll
               for (int k = 0; k < VECTOR; ++k) made[k] = gradient(convert<C>(a[k]), convert<C>(b[k]), sum);
               store_vector(out + i, made);
             },
             [&](int64_t i) { out[i] = gradient(convert<C>(g[i]), convert<C>(y[i]), sum); });
}
#endif

#if KERNEL == 5
extern "C" __global__ void __launch_bounds__(kColumnBlock)
    softmax_gradient_columns(const T* g, const T* y, R* out, int64_t outer, int64_t n, int64_t inner, int32_t across) {
  after_earlier_work();
  const Column column(outer, n, inner, across);
  g += column.first;
  y += column.first;
  out += column.first;
  C sum = 0;
  if (column.exists)
    for (int64_t i = column.begin; i < n; i += column.step)
      sum += term(convert<C>(g[i * inner]), convert<C>(y[i * inner]));
  __shared__ C parts[kColumnBlock];
  parts[threadIdx.x] = sum;
  __syncthreads();
  sum = 0;
#pragma unroll 1
  for (int k = 0; k < column.step; ++k) sum += parts[threadIdx.x % across + k * across];
  if (column.exists)
    for (int64_t i = column.begin; i < n; i += column.step)
      out[i * inner] = gradient(convert<C>(g[i * inner]), convert<C>(y[i * inner]), sum);
}
#endif
