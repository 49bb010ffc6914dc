// Batch and group normalization: what one channel, or one row of a channel, is multiplied by and moved by, and doing
// that to all elements. The sums over elements are those of reduction.cuh.
//
// A row is one channel of one image. `wide` rows share mean and rstd (1 for batch normalization, whose rows are the
// channels themselves), and `channels` rows later the weights repeat.
//
// -D options: ELEMENT, PARAMETER (weight and bias), STATISTIC (mean and rstd), RUNNING (running mean and variance),
// KERNEL (see the entries), VECTOR, INSIDE (the channels of a point are neighbors in memory).
#pragma once
#include "block.cuh"

using T = ELEMENT;
using W = PARAMETER;
using S = STATISTIC;
using V = RUNNING;
using C = opmath<T>;
constexpr int kBlock = 256;

CRESSET_INLINE int64_t thread_of_grid() { return static_cast<int64_t>(blockIdx.x) * kBlock + threadIdx.x; }
CRESSET_INLINE double parameter(const W* from, int64_t at, double neutral) {
  return from ? convert<double>(from[at]) : neutral;
}

// ---------------------------------------------------------------- coefficients

#if KERNEL == 0
// y = x scale + shift. `averages` and `variances` are of the elements; the running ones are moved towards them.
extern "C" __global__ void __launch_bounds__(kBlock)
    channel_coefficients(const double* averages, const double* variances, S* means, S* rstds, V* running_mean,
                         V* running_variance, const W* weight, const W* bias, C* scale, C* shift, int64_t rows,
                         int64_t channels, int64_t wide, double count, double momentum, double eps) {
  after_earlier_work();
  const int64_t row = thread_of_grid();
  if (row >= rows) return;
  const int64_t at = row / wide, channel = row % channels;
  const double average = averages[at], variance = variances[at];
  // Backward sees what is stored, so that is used here too.
  const S mean = convert<S>(convert<C>(average)),
          rstd = convert<S>(convert<C>(variance == 0 && eps == 0 ? 0.0 : 1 / math::sqrt(variance + eps)));
  if (row % wide == 0) {
    means[at] = mean;
    rstds[at] = rstd;
    if (running_mean)
      running_mean[at] = convert<V>((1 - momentum) * convert<double>(running_mean[at]) + momentum * average);
    if (running_variance)
      running_variance[at] = convert<V>((1 - momentum) * convert<double>(running_variance[at]) +
                                        momentum * (variance * count / (count - 1)));
  }
  const double factor = convert<double>(rstd) * parameter(weight, channel, 1);
  scale[row] = convert<C>(factor);
  shift[row] = convert<C>(parameter(bias, channel, 0) - convert<double>(mean) * factor);
}
#endif

#if KERNEL == 1
// The same from the running statistics.
extern "C" __global__ void __launch_bounds__(kBlock)
    channel_evaluation(const V* running_mean, const V* running_variance, const W* weight, const W* bias, C* scale,
                       C* shift, int64_t channels, double eps) {
  after_earlier_work();
  const int64_t channel = thread_of_grid();
  if (channel >= channels) return;
  const double factor = parameter(weight, channel, 1) / math::sqrt(convert<double>(running_variance[channel]) + eps);
  scale[channel] = convert<C>(factor);
  shift[channel] = convert<C>(parameter(bias, channel, 0) - convert<double>(running_mean[channel]) * factor);
}
#endif

#if KERNEL == 2
// dx = a grad - b x - d, of each row, from the sums of grad (`levels`) and of grad (x - mean) (`slopes`) of the rows.
// `share` is one over the elements that share a mean, or 0 where mean and rstd are constants.
extern "C" __global__ void __launch_bounds__(kBlock)
    channel_gradients(const double* levels, const double* slopes, const S* means, const S* rstds, const W* weight, C* a,
                      C* b, C* d, W* dw, W* db, int64_t rows, int64_t channels, int64_t wide, double share) {
  after_earlier_work();
  const int64_t thread = thread_of_grid(), groups = rows / wide;
  if (thread < groups) {
    double level = 0, slope = 0;
    for (int64_t row = thread * wide; row < (thread + 1) * wide; ++row) {
      const double w = parameter(weight, row % channels, 1);
      level += levels[row] * w;
      slope += slopes[row] * w;
    }
    const double rstd = convert<double>(rstds[thread]), mean = convert<double>(means[thread]);
    const double p = rstd * level * share, q = rstd * rstd * rstd * slope * share;
    for (int64_t row = thread * wide; row < (thread + 1) * wide; ++row) {
      a[row] = convert<C>(rstd * parameter(weight, row % channels, 1));
      b[row] = convert<C>(q);
      d[row] = convert<C>(p - q * mean);
    }
  } else if (thread < groups + channels) {
    double slope = 0, level = 0;
    for (int64_t row = thread - groups; row < rows; row += channels) {
      slope += slopes[row] * convert<double>(rstds[row / wide]);
      level += levels[row];
    }
    dw[thread - groups] = convert<W>(convert<C>(slope));
    db[thread - groups] = convert<W>(convert<C>(level));
  }
}
#endif

// ---------------------------------------------------------------- elements

// The row of each element of a vector: neighbors may belong to the next row.
struct RowOfElement {
  int64_t row;
  int64_t left;  // elements up to the next row
  int64_t period;
  CRESSET_INLINE RowOfElement(int64_t at, int64_t space, int64_t period) : period(period) {
#if INSIDE
    row = (at < (int64_t{1} << 31) ? static_cast<uint32_t>(at) % static_cast<uint32_t>(period) : at % period);
    left = 1;
#else
    const int64_t all = at < (int64_t{1} << 31) ? static_cast<uint32_t>(at) / static_cast<uint32_t>(space) : at / space;
    left = (all + 1) * space - at;
    row = all < (int64_t{1} << 31) ? static_cast<uint32_t>(all) % static_cast<uint32_t>(period) : all % period;
#endif
  }
  // VECTOR is at most the space, or a divisor of the channels.
  CRESSET_INLINE int64_t of(int k) const {
#if INSIDE
    return row + k;
#else
    return k < left ? row : row + 1 < period ? row + 1 : 0;
#endif
  }
};
constexpr int kUnroll = 4;

// The coefficients of a vector's elements. Channels that are neighbors are loaded as such: one by one, the threads of a
// warp would read far apart.
CRESSET_INLINE Vector<C, VECTOR> coefficients(const C* from, const RowOfElement& rows) {
#if INSIDE
  return load_vector<VECTOR>(from + rows.row);
#else
  Vector<C, VECTOR> all;
#pragma unroll
  for (int k = 0; k < VECTOR; ++k) all[k] = from[rows.of(k)];
  return all;
#endif
}

#if KERNEL == 3
extern "C" __global__ void __launch_bounds__(kBlock)
    channel_scale(const T* x, T* y, const C* scale, const C* shift, int64_t count, int64_t space, int64_t period) {
  after_earlier_work();
  const int64_t first = (static_cast<int64_t>(blockIdx.x) * kBlock * kUnroll + threadIdx.x) * VECTOR;
  Vector<T, VECTOR> loaded[kUnroll];
#pragma unroll
  for (int u = 0; u < kUnroll; ++u)
    if (first + u * kBlock * VECTOR + VECTOR <= count) loaded[u] = load_vector<VECTOR>(x + first + u * kBlock * VECTOR);
#pragma unroll
  for (int u = 0; u < kUnroll; ++u) {
    const int64_t at = first + u * kBlock * VECTOR;
    if (at >= count) return;
    const RowOfElement rows(at, space, period);
    if (at + VECTOR > count) {
      for (int k = 0; at + k < count; ++k)
        y[at + k] = convert<T>(convert<C>(x[at + k]) * scale[rows.of(k)] + shift[rows.of(k)]);
      return;
    }
    const Vector<C, VECTOR> factors = coefficients(scale, rows), shifts = coefficients(shift, rows);
    Vector<T, VECTOR> out;
#pragma unroll
    for (int k = 0; k < VECTOR; ++k) out[k] = convert<T>(convert<C>(loaded[u][k]) * factors[k] + shifts[k]);
    store_vector(y + at, out);
  }
}
#endif

#if KERNEL == 4
extern "C" __global__ void __launch_bounds__(kBlock)
    channel_gradient(const T* g, const T* x, T* dx, const C* a, const C* b, const C* d, int64_t count, int64_t space,
                     int64_t period) {
  after_earlier_work();
  const int64_t first = (static_cast<int64_t>(blockIdx.x) * kBlock * kUnroll + threadIdx.x) * VECTOR;
  Vector<T, VECTOR> grads[kUnroll], values[kUnroll];
#pragma unroll
  for (int u = 0; u < kUnroll; ++u)
    if (first + u * kBlock * VECTOR + VECTOR <= count) {
      grads[u] = load_vector<VECTOR>(g + first + u * kBlock * VECTOR);
      values[u] = load_vector<VECTOR>(x + first + u * kBlock * VECTOR);
    }
  const auto made = [](T grad, T value, C a, C b, C d) {
    return convert<T>(a * convert<C>(grad) - b * convert<C>(value) - d);
  };
#pragma unroll
  for (int u = 0; u < kUnroll; ++u) {
    const int64_t at = first + u * kBlock * VECTOR;
    if (at >= count) return;
    const RowOfElement rows(at, space, period);
    if (at + VECTOR > count) {
      for (int k = 0; at + k < count; ++k)
        dx[at + k] = made(g[at + k], x[at + k], a[rows.of(k)], b[rows.of(k)], d[rows.of(k)]);
      return;
    }
    const Vector<C, VECTOR> as = coefficients(a, rows), bs = coefficients(b, rows), ds = coefficients(d, rows);
    Vector<T, VECTOR> out;
#pragma unroll
    for (int k = 0; k < VECTOR; ++k) out[k] = made(grads[u][k], values[u][k], as[k], bs[k], ds[k]);
    store_vector(dx + at, out);
  }
}
#endif
