// The negative log-likelihood of classes, and cross entropy with its softmax in one pass, and their gradients. The
// scores are [outer][classes][inner]; each position is a sample. Of each sample the largest score and the logarithm of
// the sum of exp(score - largest) are kept; backward makes the softmax from them.
//
// A target that is no class is reported and then counts nothing, as the ignored one.
//
// -D options: ELEMENT (scores), PARAMETER (weights of the classes), KERNEL (see the entries), and those of rows.cuh.
#pragma once
#include "fault.cuh"
#include "rows.cuh"

using T = ELEMENT;
using W = PARAMETER;
using C = opmath<T>;
constexpr int kColumnBlock = 256;

CRESSET_INLINE C power(C x) { return exp_for<is_half<T>>(x); }

// As in native/cuda/loss.cpp.
struct Samples {
  const T* x;
  const int64_t* targets;
  const W* weights;             // null: all are 1
  const double* weights_total;  // of all classes; null: their number
  Fault* fault;                 // null: a bad target was reported before
  int64_t outer, n, inner, count, ignored;
  double smoothing;  // how much of each target is spread over all classes
  int32_t operation, across;

  CRESSET_INLINE int64_t target(int64_t sample, bool reports) const {
    const int64_t t = targets[sample];
    if (t == ignored) return -1;
    if (t >= 0 && t < n) return t;
    if (fault && reports) report(fault, operation, t, sample, n);
    return -1;
  }
  CRESSET_INLINE C weight(int64_t target) const {
    return target < 0 ? C(0) : weights ? convert<C>(weights[target]) : C(1);
  }
  CRESSET_INLINE double total() const { return weights_total ? *weights_total : static_cast<double>(n); }
};

struct LogSum {
  C largest, sum;
};
CRESSET_INLINE C reference_of(C largest) { return largest == C(-INFINITY) ? C(0) : largest; }
CRESSET_INLINE void merge(LogSum& a, const LogSum& b) {
  const C largest = b.largest > a.largest ? b.largest : a.largest, reference = reference_of(largest);
  a = {largest, a.sum * power(a.largest - reference) + b.sum * power(b.largest - reference)};
}
CRESSET_INLINE void add(LogSum& a, C x) {
  if (x > a.largest) {
    a.sum *= power(a.largest - x);
    a.largest = x;
  }
  a.sum += power(x - reference_of(a.largest));
}

// The loss of a sample and the weight of its target go to `losses`, its statistics beside; `each` gets the loss where
// each is wanted.
CRESSET_INLINE void give_loss(const Samples& s, int64_t sample, C score, int64_t t, const LogSum& all, C spread,
                              Pair<C>* losses, T* each, C* statistics) {
  const C log_sum = math::log(all.sum), weight = s.weight(t);
  statistics[sample] = all.largest;
  statistics[s.count + sample] = log_sum;
  C loss = 0;
  if (t >= 0) {
    loss = -((score - all.largest) - log_sum) * weight;
    if (s.smoothing != 0)
      loss = static_cast<C>(1 - s.smoothing) * loss +
             static_cast<C>(s.smoothing / static_cast<double>(s.n)) * (static_cast<C>(s.total()) * log_sum - spread);
  }
  losses[sample] = {loss, weight};
  if (each) each[sample] = convert<T>(loss);
}

// The columns of a block of threads: `across` samples side by side, each shared by kColumnBlock / across threads.
struct Column {
  int64_t first, sample;
  int begin, step;
  bool exists;
  CRESSET_INLINE Column(const Samples& s) {
    const int64_t tiles = (s.inner + s.across - 1) / s.across,
                  column = blockIdx.x % tiles * s.across + threadIdx.x % s.across;
    const int64_t image = blockIdx.x / tiles;
    exists = image < s.outer && column < s.inner;
    first = image * s.n * s.inner + column;
    sample = image * s.inner + column;
    begin = static_cast<int>(threadIdx.x) / s.across;
    step = kColumnBlock / s.across;
  }
};

// ---------------------------------------------------------------- forward

#if KERNEL == 0
extern "C" __global__ void __launch_bounds__(kRowBlock)
    cross_entropy_rows(const Samples s, Pair<C>* losses, T* each, C* statistics) {
  after_earlier_work();
  const int64_t sample = row_of_thread();
  const bool exists = sample < s.count;
  const T* x = s.x + sample * s.n;
  const RowWalk walk(x, x, exists ? s.n : 0);
  LogSum all{C(-INFINITY), C(0)};
  walk.visit([&](int64_t i) { return load_vector<VECTOR>(x + i); },
             [&](int64_t i, const Vector<T, VECTOR>& v) {
               C top = convert<C>(v[0]);
#pragma unroll
               for (int k = 1; k < VECTOR; ++k) top = convert<C>(v[k]) > top ? convert<C>(v[k]) : top;
               if (top > all.largest) {
                 all.sum *= power(all.largest - top);
                 all.largest = top;
               }
               const C reference = reference_of(all.largest);
#pragma unroll
               for (int k = 0; k < VECTOR; ++k) all.sum += power(convert<C>(v[k]) - reference);
             },
             [&](int64_t i) { add(all, convert<C>(x[i])); });
#pragma unroll
  for (int offset = kRowLanes / 2; offset > 0; offset /= 2) merge(all, shuffle_xor(all, offset));
  if constexpr (kRowWarps > 1) {
    all = exchange_warps<0>(all);
#pragma unroll
    for (int offset = kRowWarps / 2; offset > 0; offset /= 2) merge(all, shuffle_xor(all, offset));
  }
  C spread = 0;
  if (s.smoothing != 0) {
    if (exists)
      for (int64_t i = place_in_row(); i < s.n; i += THREADS) spread += (convert<C>(x[i]) - all.largest) * s.weight(i);
    spread = sum_of_row<1>(spread);
  }
  if (!exists || place_in_row() != 0) return;
  const int64_t t = s.target(sample, true);
  give_loss(s, sample, t < 0 ? C(0) : convert<C>(x[t]), t, all, spread, losses, each, statistics);
}
#endif

#if KERNEL == 1
extern "C" __global__ void __launch_bounds__(kColumnBlock)
    cross_entropy_columns(const Samples s, Pair<C>* losses, T* each, C* statistics) {
  after_earlier_work();
  const Column column(s);
  const T* x = s.x + column.first;
  LogSum all{C(-INFINITY), C(0)};
  if (column.exists)
    for (int64_t i = column.begin; i < s.n; i += column.step) add(all, convert<C>(x[i * s.inner]));
  __shared__ LogSum parts[kColumnBlock];
  __shared__ C spreads[kColumnBlock];
  const int lane = static_cast<int>(threadIdx.x) % s.across;
  parts[threadIdx.x] = all;
  __syncthreads();
  all = parts[lane];
#pragma unroll 1
  for (int k = 1; k < column.step; ++k) merge(all, parts[lane + k * s.across]);
  C spread = 0;
  if (s.smoothing != 0) {
    if (column.exists)
      for (int64_t i = column.begin; i < s.n; i += column.step)
        spread += (convert<C>(x[i * s.inner]) - all.largest) * s.weight(i);
    spreads[threadIdx.x] = spread;
    __syncthreads();
    spread = 0;
#pragma unroll 1
    for (int k = 0; k < column.step; ++k) spread += spreads[lane + k * s.across];
  }
  if (!column.exists || column.begin != 0) return;
  const int64_t t = s.target(column.sample, true);
  give_loss(s, column.sample, t < 0 ? C(0) : convert<C>(x[t * s.inner]), t, all, spread, losses, each, statistics);
}
#endif

CRESSET_INLINE int64_t place_of(const Samples& s, int64_t sample, int64_t t) {
  return (sample / s.inner * s.n + t) * s.inner + sample % s.inner;
}

#if KERNEL == 2
extern "C" __global__ void __launch_bounds__(kColumnBlock) nll_loss(const Samples s, Pair<C>* losses, T* each) {
  after_earlier_work();
  const int64_t sample = static_cast<int64_t>(blockIdx.x) * kColumnBlock + threadIdx.x;
  if (sample >= s.count) return;
  const int64_t t = s.target(sample, true);
  const C weight = s.weight(t), loss = t < 0 ? C(0) : -convert<C>(s.x[place_of(s, sample, t)]) * weight;
  losses[sample] = {loss, weight};
  if (each) each[sample] = convert<T>(loss);
}
#endif

#if KERNEL == 3 || KERNEL == 4
// Adds up losses and weights: of samples (3), or of what blocks have made of those (4). Without `partial`, in one
// block, the total weight and the loss are given: divided by that weight with `mean`.
#if KERNEL == 3
using Term = Pair<C>;
#else
using Term = Pair<double>;
#endif
extern "C" __global__ void __launch_bounds__(kColumnBlock)
    loss_sums(const Term* terms, Pair<double>* partial, T* loss, double* total, int64_t count, int32_t mean) {
  after_earlier_work();
  Pair<double> sum{0, 0};
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kColumnBlock + threadIdx.x; i < count;
       i += static_cast<int64_t>(gridDim.x) * kColumnBlock) {
    const Term term = terms[i];
    sum = {sum.first + term.first, sum.second + term.second};
  }
  __shared__ Pair<double> parts[kColumnBlock / 32];
  sum = {sum_lanes<32>(sum.first), sum_lanes<32>(sum.second)};
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x != 0) return;
#pragma unroll 1
  for (int w = 1; w < kColumnBlock / 32; ++w) sum = {sum.first + parts[w].first, sum.second + parts[w].second};
  if (partial) {
    partial[blockIdx.x] = sum;
    return;
  }
  *total = sum.second;
  if (loss) *loss = convert<T>(convert<C>(mean ? sum.first / sum.second : sum.first));
}
#endif

// ---------------------------------------------------------------- gradients

// The gradient of the loss of one sample: `grads` has one for each with `step` 1, and one for all, divided by the total
// weight if that is given, with 0.
struct Grads {
  const C* grads;
  const double* total;
  int64_t step;
  CRESSET_INLINE double of(int64_t sample) const {
    return convert<double>(grads[sample * step]) / (total ? *total : 1.0);
  }
};
// dx = level softmax(x) - even weight, and of the target `own` less.
struct Coefficients {
  C level, even, own, largest, log_sum;
  CRESSET_INLINE Coefficients(const Samples& s, const Grads& g, int64_t sample, int64_t t, const C* statistics) {
    const double share = s.smoothing / static_cast<double>(s.n), grad = t < 0 ? 0 : g.of(sample),
                 rest = (1 - s.smoothing) * static_cast<double>(s.weight(t));
    level = static_cast<C>(grad * (rest + (share != 0 ? share * s.total() : 0)));
    even = static_cast<C>(grad * share);
    own = static_cast<C>(grad * rest);
    largest = statistics[sample];
    log_sum = statistics[s.count + sample];
  }
  CRESSET_INLINE T of(const Samples& s, C x, int64_t i, int64_t t) const {
    C d = level * power((x - largest) - log_sum);
    if (even != 0) d -= even * s.weight(i);
    return convert<T>(i == t ? d - own : d);
  }
};

#if KERNEL == 5
extern "C" __global__ void __launch_bounds__(kRowBlock)
    cross_entropy_gradient_rows(const Samples s, const Grads g, const C* statistics, T* dx) {
  after_earlier_work();
  const int64_t sample = row_of_thread();
  if (sample >= s.count) return;
  const T* x = s.x + sample * s.n;
  dx += sample * s.n;
  const int64_t t = s.target(sample, false);
  const RowWalk walk(x, dx, s.n);
  const Coefficients k(s, g, sample, t, statistics);
  walk.visit([&](int64_t i) { return load_vector<VECTOR>(x + i); },
             [&](int64_t i, const Vector<T, VECTOR>& v) {
               Vector<T, VECTOR> out;
#pragma unroll
               for (int j = 0; j < VECTOR; ++j) out[j] = t < 0 ? convert<T>(C(0)) : k.of(s, convert<C>(v[j]), i + j, t);
               store_vector(dx + i, out);
             },
             [&](int64_t i) { dx[i] = t < 0 ? convert<T>(C(0)) : k.of(s, convert<C>(x[i]), i, t); });
}
#endif

#if KERNEL == 6
extern "C" __global__ void __launch_bounds__(kColumnBlock)
    cross_entropy_gradient_columns(const Samples s, const Grads g, const C* statistics, T* dx) {
  after_earlier_work();
  const Column column(s);
  if (!column.exists) return;
  const int64_t t = s.target(column.sample, false);
  const Coefficients k(s, g, column.sample, t, statistics);
  for (int64_t i = column.begin; i < s.n; i += column.step) {
    const int64_t at = column.first + i * s.inner;
    dx[at] = t < 0 ? convert<T>(C(0)) : k.of(s, convert<C>(s.x[at]), i, t);
  }
}
#endif

#if KERNEL == 7
// The other elements are zero already.
extern "C" __global__ void __launch_bounds__(kColumnBlock) nll_loss_gradient(const Samples s, const Grads g, T* dx) {
  after_earlier_work();
  const int64_t sample = static_cast<int64_t>(blockIdx.x) * kColumnBlock + threadIdx.x;
  if (sample >= s.count) return;
  const int64_t t = s.target(sample, false);
  if (t >= 0) dx[place_of(s, sample, t)] = convert<T>(static_cast<C>(-g.of(sample) * static_cast<double>(s.weight(t))));
}
#endif
