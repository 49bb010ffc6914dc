// Layer and RMS normalization of rows, y = (x - mean) rstd weight + bias, and the gradients. A row stays in registers;
// one too long for that is walked several times.
//
// -D options: ELEMENT, PARAMETER (weight and bias), STATISTIC (mean and rstd), CENTERED (0: RMS normalization), KERNEL
// (see the entries), and those of rows.cuh. A weight or bias that is null counts as 1 or 0.
// With FUSED, rows are read and written by expressions: native/cuda/fused.h.
#pragma once
#include "rows.cuh"

using T = ELEMENT;
using W = PARAMETER;
using S = STATISTIC;
using C = opmath<T>;

template <int N>
CRESSET_INLINE void load_parameters(C (&to)[N], const W* from, int64_t at, C neutral) {
  if (!from) {
#pragma unroll
    for (int k = 0; k < N; ++k) to[k] = neutral;
    return;
  }
  const auto v = load_vector<N>(from + at);
#pragma unroll
  for (int k = 0; k < N; ++k) to[k] = convert<C>(v[k]);
}
// Memory takes as long to find a weight as a row; where there are few rows nobody else has asked for it before.
CRESSET_INLINE void expect_parameters(const W* from, int64_t at) {
#ifndef CRESSET_EMULATED
  if (from && gridDim.x < 64) asm volatile("prefetch.global.L2 [%0];" ::"l"(from + at));
#endif
}
CRESSET_INLINE C parameter(const W* from, int64_t at, C neutral) { return from ? convert<C>(from[at]) : neutral; }

struct Moments {
  C count, mean, squares;
};

#ifdef FUSED
#define FIRST_AT(i) row_input_0(plan, i)
#define SECOND_AT(i) row_input_1(plan, i)
#define STORE_AT(i, v) row_output(plan, i, v)
template <class To>
CRESSET_INLINE To extra(const Plan& plan, int i) {
  return __builtin_bit_cast(To, plan.extra[i]);
}
#endif

// ---------------------------------------------------------------- forward

#if KERNEL == 0
#ifdef FUSED
extern "C" __global__ void __launch_bounds__(kRowBlock) normalize_rows(const Plan plan) {
  after_earlier_work();
  S *const means = extra<S*>(plan, 0), *const rstds = extra<S*>(plan, 1);
  const W *const weight = extra<const W*>(plan, 2), *const bias = extra<const W*>(plan, 3);
  const int64_t rows = extra<int64_t>(plan, 4);
  const auto n = static_cast<int32_t>(extra<int64_t>(plan, 5));
  const double eps = extra<double>(plan, 6);
#else
#define FIRST_AT(i) load_vector<VECTOR>(x + (i))
#define STORE_AT(i, v) store_vector(y + (i), v)
extern "C" __global__ void __launch_bounds__(kRowBlock)
    normalize_rows(const T* x, T* y, S* means, S* rstds, const W* weight, const W* bias, int64_t rows, int32_t n,
                   double eps) {
  after_earlier_work();
#endif
  const int64_t row = row_of_thread(), start = row * n;
  const int place = place_in_row() * VECTOR;
  const bool exists = row < rows;
  Vector<T, VECTOR> loaded[PER];
#pragma unroll
  for (int p = 0; p < PER; ++p)
    if (exists && place + p * THREADS * VECTOR < n) {
      expect_parameters(weight, place + p * THREADS * VECTOR);
      expect_parameters(bias, place + p * THREADS * VECTOR);
      loaded[p] = FIRST_AT(start + place + p * THREADS * VECTOR);
    }
  C values[PER][VECTOR], mean = 0, squares = 0;
#pragma unroll
  for (int p = 0; p < PER; ++p) {
    const bool there = exists && place + p * THREADS * VECTOR < n;
#pragma unroll
    for (int k = 0; k < VECTOR; ++k) {
      values[p][k] = there ? convert<C>(loaded[p][k]) : C(0);
      if (CENTERED)
        mean += values[p][k];
      else
        squares += values[p][k] * values[p][k];
    }
  }
#if CENTERED
  // Each warp sums squares about its own mean; then the moments of the warps are brought together, which takes one
  // barrier.
  int count = 0;
  const int first = place_in_row() / 32 * 32;
#pragma unroll
  for (int p = 0; p < PER; ++p) {
    const int left = n / VECTOR - p * THREADS - first;
    count += left < 0 ? 0 : left > kRowLanes ? kRowLanes : left;
  }
  const C here = static_cast<C>(count * VECTOR);
  mean = count ? sum_lanes<kRowLanes>(mean) / here : sum_lanes<kRowLanes>(mean);
#pragma unroll
  for (int p = 0; p < PER; ++p) {
    if (place + p * THREADS * VECTOR >= n) continue;
#pragma unroll
    for (int k = 0; k < VECTOR; ++k) squares += (values[p][k] - mean) * (values[p][k] - mean);
  }
  squares = sum_lanes<kRowLanes>(squares);
  if constexpr (kRowWarps > 1) {
    const Moments other = exchange_warps<0>(Moments{here, mean, squares});
    mean = sum_lanes<kRowWarps>(other.count * other.mean) / static_cast<C>(n);
    const C apart = other.mean - mean;
    squares = sum_lanes<kRowWarps>(other.squares + other.count * apart * apart);
  }
#else
  squares = sum_of_row<0>(squares);
#endif
  const C rstd = 1 / math::sqrt(squares / static_cast<C>(n) + static_cast<C>(eps));
  if (!exists) return;
  if (place == 0) {
    if (CENTERED && means) means[row] = convert<S>(mean);
    if (rstds) rstds[row] = convert<S>(rstd);
  }
#pragma unroll
  for (int p = 0; p < PER; ++p) {
    const int at = place + p * THREADS * VECTOR;
    if (at >= n) continue;
    C w[VECTOR], b[VECTOR];
    load_parameters(w, weight, at, C(1));
    load_parameters(b, bias, at, C(0));
    Vector<T, VECTOR> out;
#pragma unroll
    for (int k = 0; k < VECTOR; ++k)
      out[k] = convert<T>((CENTERED ? values[p][k] - mean : values[p][k]) * rstd * w[k] + b[k]);
    STORE_AT(start + at, out);
  }
}
#endif

#if KERNEL == 1
extern "C" __global__ void __launch_bounds__(kRowBlock)
    normalize_long(const T* x, T* y, S* means, S* rstds, const W* weight, const W* bias, int64_t rows, int64_t n,
                   double eps) {
  after_earlier_work();
  const int64_t row = blockIdx.x;
  x += row * n;
  y += row * n;
  const RowWalk walk(x, y, n);
  C mean = 0, squares = 0;
#if CENTERED
  walk.visit([&](int64_t i) { return load_vector<VECTOR>(x + i); },
             [&](int64_t i, const Vector<T, VECTOR>& v) {
#pragma unroll
               for (int k = 0; k < VECTOR; ++k) mean += convert<C>(v[k]);
             },
             [&](int64_t i) { mean += convert<C>(x[i]); });
  mean = sum_of_row<0>(mean) / static_cast<C>(n);
#endif
  walk.visit([&](int64_t i) { return load_vector<VECTOR>(x + i); },
             [&](int64_t i, const Vector<T, VECTOR>& v) {
#pragma unroll
               for (int k = 0; k < VECTOR; ++k) squares += (convert<C>(v[k]) - mean) * (convert<C>(v[k]) - mean);
             },
             [&](int64_t i) { squares += (convert<C>(x[i]) - mean) * (convert<C>(x[i]) - mean); });
  const C rstd = 1 / math::sqrt(sum_of_row<1>(squares) / static_cast<C>(n) + static_cast<C>(eps));
  if (threadIdx.x == 0) {
    if (CENTERED) means[row] = convert<S>(mean);
    rstds[row] = convert<S>(rstd);
  }
  const auto made = [&](T v, int64_t i) {
    return convert<T>((convert<C>(v) - mean) * rstd * parameter(weight, i, C(1)) + parameter(bias, i, C(0)));
  };
  walk.visit([&](int64_t i) { return load_vector<VECTOR>(x + i); },
             [&](int64_t i, const Vector<T, VECTOR>& v) {
               Vector<T, VECTOR> out;
#pragma unroll
               for (int k = 0; k < VECTOR; ++k) out[k] = made(v[k], i + k);
               store_vector(y + i, out);
             },
             [&](int64_t i) { y[i] = made(x[i], i); });
}
#endif

// ---------------------------------------------------------------- the gradient of the input
// With h = (x - mean) rstd and k = grad weight: dx = rstd (k - mean(k) - h mean(k h)); mean(k) falls away for RMS.

#if KERNEL == 2
#ifdef FUSED
extern "C" __global__ void __launch_bounds__(kRowBlock) normalize_gradient_rows(const Plan plan) {
  after_earlier_work();
  const S *const means = extra<const S*>(plan, 0), *const rstds = extra<const S*>(plan, 1);
  const W* const weight = extra<const W*>(plan, 2);
  const int64_t rows = extra<int64_t>(plan, 3);
  const auto n = static_cast<int32_t>(extra<int64_t>(plan, 4));
#else
#define FIRST_AT(i) load_vector<VECTOR>(g + (i))
#define SECOND_AT(i) load_vector<VECTOR>(x + (i))
#define STORE_AT(i, v) store_vector(dx + (i), v)
extern "C" __global__ void __launch_bounds__(kRowBlock)
    normalize_gradient_rows(const T* g, const T* x, const S* means, const S* rstds, const W* weight, T* dx,
                            int64_t rows, int32_t n) {
  after_earlier_work();
#endif
  const int64_t row = row_of_thread(), start = row * n;
  const int place = place_in_row() * VECTOR;
  const bool exists = row < rows;
  Vector<T, VECTOR> grads[PER], values[PER];
#pragma unroll
  for (int p = 0; p < PER; ++p)
    if (exists && place + p * THREADS * VECTOR < n) {
      grads[p] = FIRST_AT(start + place + p * THREADS * VECTOR);
      values[p] = SECOND_AT(start + place + p * THREADS * VECTOR);
    }
  const C mean = exists && CENTERED ? convert<C>(means[row]) : C(0), rstd = exists ? convert<C>(rstds[row]) : C(0);
  C level = 0, slope = 0;
#pragma unroll
  for (int p = 0; p < PER; ++p) {
    const int at = place + p * THREADS * VECTOR;
    if (!exists || at >= n) continue;
    C w[VECTOR];
    load_parameters(w, weight, at, C(1));
#pragma unroll
    for (int k = 0; k < VECTOR; ++k) {
      const C grad = convert<C>(grads[p][k]) * w[k];
      level += grad;
      slope += grad * ((convert<C>(values[p][k]) - mean) * rstd);
    }
  }
  const Pair<C> sums = sums_of_row<0>(level, slope);
  level = CENTERED ? sums.first / static_cast<C>(n) : C(0);
  slope = sums.second / static_cast<C>(n);
#pragma unroll
  for (int p = 0; p < PER; ++p) {
    const int at = place + p * THREADS * VECTOR;
    if (!exists || at >= n) continue;
    C w[VECTOR];
    load_parameters(w, weight, at, C(1));
    Vector<T, VECTOR> out;
#pragma unroll
    for (int k = 0; k < VECTOR; ++k)
      out[k] = convert<T>(rstd *
                          (convert<C>(grads[p][k]) * w[k] - level - (convert<C>(values[p][k]) - mean) * rstd * slope));
    STORE_AT(start + at, out);
  }
}
#endif

#if KERNEL == 3
extern "C" __global__ void __launch_bounds__(kRowBlock)
    normalize_gradient_long(const T* g, const T* x, const S* means, const S* rstds, const W* weight, T* dx,
                            int64_t rows, int64_t n) {
  after_earlier_work();
  const int64_t row = blockIdx.x;
  g += row * n;
  x += row * n;
  dx += row * n;
  RowWalk walk(g, x, n);
  const RowWalk other(g, dx, n);
  if (other.vectors == 0) walk = other;
  const C mean = CENTERED ? convert<C>(means[row]) : C(0), rstd = convert<C>(rstds[row]);
  C level = 0, slope = 0;
  const auto add = [&](T a, T b, int64_t i) {
    const C grad = convert<C>(a) * parameter(weight, i, C(1));
    level += grad;
    slope += grad * ((convert<C>(b) - mean) * rstd);
  };
  walk.visit([&](int64_t i) { return load_two(g + i, x + i); },
             [&](int64_t i, const TwoVectors<T, T>& both) {
               const auto &a = both.first, &b = both.second;
#pragma unroll
               for (int k = 0; k < VECTOR; ++k) add(a[k], b[k], i + k);
             },
             [&](int64_t i) { add(g[i], x[i], i); });
  const Pair<C> sums = sums_of_row<0>(level, slope);
  level = CENTERED ? sums.first / static_cast<C>(n) : C(0);
  slope = sums.second / static_cast<C>(n);
  const auto made = [&](T a, T b, int64_t i) {
    return convert<T>(rstd *
                      (convert<C>(a) * parameter(weight, i, C(1)) - level - (convert<C>(b) - mean) * rstd * slope));
  };
  walk.visit([&](int64_t i) { return load_two(g + i, x + i); },
             [&](int64_t i, const TwoVectors<T, T>& both) {
               const auto &a = both.first, &b = both.second;
               Vector<T, VECTOR> out;
#pragma unroll
               for (int k = 0; k < VECTOR; ++k) out[k] = made(a[k], b[k], i + k);
               store_vector(dx + i, out);
             },
             [&](int64_t i) { dx[i] = made(g[i], x[i], i); });
}
#endif

// ---------------------------------------------------------------- the gradients of weight and bias
// Sums of grad h and of grad over the rows. Grid: tiles of 32 VECTOR columns, splits of the rows; 8 rows at a time.

constexpr int kAcross = 32, kDown = 8;

#if KERNEL == 4
#ifdef FUSED
extern "C" __global__ void __launch_bounds__(kAcross* kDown) normalize_parameters(const Plan plan) {
  after_earlier_work();
  const S *const means = extra<const S*>(plan, 0), *const rstds = extra<const S*>(plan, 1);
  auto* const partial = extra<Pair<C>*>(plan, 2);
  const int64_t rows = extra<int64_t>(plan, 3), n = extra<int64_t>(plan, 4), chunk = extra<int64_t>(plan, 5);
#else
#define FIRST_AT(i) load_vector<VECTOR>(g + (i))
#define SECOND_AT(i) load_vector<VECTOR>(x + (i))
extern "C" __global__ void __launch_bounds__(kAcross* kDown)
    normalize_parameters(const T* g, const T* x, const S* means, const S* rstds, Pair<C>* partial, int64_t rows,
                         int64_t n, int64_t chunk) {
  after_earlier_work();
#endif
  constexpr int kUnroll = 4;
  __shared__ Pair<C> parts[kDown][kAcross];
  const int lane = static_cast<int>(threadIdx.x) % kAcross, down = static_cast<int>(threadIdx.x) / kAcross;
  const int64_t column = (static_cast<int64_t>(blockIdx.x) * kAcross + lane) * VECTOR;
  const int64_t begin = blockIdx.y * chunk, end = begin + chunk < rows ? begin + chunk : rows;
  Pair<C> sums[VECTOR];
#pragma unroll
  for (int k = 0; k < VECTOR; ++k) sums[k] = {C(0), C(0)};
  if (column < n) {
    const auto add = [&](const Vector<T, VECTOR>& a, const Vector<T, VECTOR>& b, C mean, C rstd) {
#pragma unroll
      for (int k = 0; k < VECTOR; ++k) {
        sums[k].first += convert<C>(a[k]) * ((convert<C>(b[k]) - mean) * rstd);
        sums[k].second += convert<C>(a[k]);
      }
    };
    int64_t r = begin + down;
#pragma unroll 1
    for (; r + kDown * (kUnroll - 1) < end; r += kDown * kUnroll) {
      Vector<T, VECTOR> a[kUnroll], b[kUnroll];
      C mean[kUnroll], rstd[kUnroll];
#pragma unroll
      for (int u = 0; u < kUnroll; ++u) {
        const int64_t row = r + u * kDown;
        a[u] = FIRST_AT(row * n + column);
        b[u] = SECOND_AT(row * n + column);
        mean[u] = CENTERED ? convert<C>(means[row]) : C(0);
        rstd[u] = convert<C>(rstds[row]);
      }
#pragma unroll
      for (int u = 0; u < kUnroll; ++u) add(a[u], b[u], mean[u], rstd[u]);
    }
#pragma unroll 1
    for (; r < end; r += kDown)
      add(FIRST_AT(r * n + column), SECOND_AT(r * n + column), CENTERED ? convert<C>(means[r]) : C(0),
          convert<C>(rstds[r]));
  }
#pragma unroll
  for (int k = 0; k < VECTOR; ++k) {
    __syncthreads();
    parts[down][lane] = sums[k];
    __syncthreads();
    if (down == 0 && column < n) {
      Pair<C> sum = parts[0][lane];
#pragma unroll
      for (int d = 1; d < kDown; ++d) sum = {sum.first + parts[d][lane].first, sum.second + parts[d][lane].second};
      partial[blockIdx.y * n + column + k] = sum;
    }
  }
}
#endif

#if KERNEL == 5
// STATISTIC is the dtype of the results.
extern "C" __global__ void __launch_bounds__(kAcross* kDown)
    normalize_parameters_finish(const Pair<C>* partial, S* dw, S* db, int64_t splits, int64_t n) {
  after_earlier_work();
  __shared__ Pair<double> parts[kDown][kAcross];
  const int lane = static_cast<int>(threadIdx.x) % kAcross, down = static_cast<int>(threadIdx.x) / kAcross;
  const int64_t column = static_cast<int64_t>(blockIdx.x) * kAcross + lane;
  Pair<double> sum{0, 0};
  if (column < n)
    for (int64_t k = down; k < splits; k += kDown) {
      const Pair<C> part = partial[k * n + column];
      sum = {sum.first + part.first, sum.second + part.second};
    }
  parts[down][lane] = sum;
  __syncthreads();
  if (down != 0 || column >= n) return;
  for (int d = 1; d < kDown; ++d) sum = {sum.first + parts[d][lane].first, sum.second + parts[d][lane].second};
  dw[column] = convert<S>(convert<C>(sum.first));
  db[column] = convert<S>(convert<C>(sum.second));
}
#endif
