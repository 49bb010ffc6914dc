// Reductions over any dimensions: what one element adds is written as a short struct for each OPERATION; who reads
// which element is in reduce_rows (a result's elements are neighbors) and reduce_columns (neighboring results come from
// neighboring elements). A long reduction is split, and reduce_partial merges what the splits made.
//
// -D options: OPERATION, ELEMENT (as stored), COMPUTED (computed in), RESULT (as stored), VECTOR (elements of a load),
// CONTIGUOUS (a result's elements lie behind one another), BIG (more than 2^31 elements), KERNEL (0 rows, 1 columns,
// 2 partial).
#pragma once
#include "block.cuh"

using T = ELEMENT;
using C = COMPUTED;
using R = RESULT;

#if BIG
using Index = int64_t;
#else
using Index = uint32_t;  // of elements: there are fewer than 2^31
#endif

constexpr int kBlock = 256;
constexpr int kUnroll = 4, kColumnUnroll = 8;

// The numbers are those of native/cuda/reduction.h.
enum Operations {
  kSum,
  kNansum,
  kMean,
  kProduct,
  kAny,
  kAll,
  kCount,
  kLargest,
  kSmallest,
  kArgLargest,
  kArgSmallest,
  kLargestPlace,
  kSmallestPlace,
  kNorm1,
  kNorm2,
  kNormLargest,
  kNormSmallest,
  kNormPower,
  kLogSumExp,
  kVariance,
  kVarianceMean,
  kMoments,
  kGradientSums,
  kExtremes,
  kDot,
};

struct Plan {
  const void *input, *other, *constants;
  void *partial, *first, *second;  // accumulators [split][result], null when a split is all; the results
  int64_t count, length, chunk;    // results; elements of each; elements of a split
  int64_t columns, column_stride;  // of reduce_columns: the innermost dimension of the results
  int64_t constant_period;         // results that share a constant
  double parameter, root;
  int32_t lanes, splits;  // threads of a result, or side by side
  Walk kept, folded;
};

// ---------------------------------------------------------------- operations
// Lane: what a thread gathers; Accumulator: what lanes, threads and splits are merged in.

template <class A, class B>
CRESSET_INLINE A added(A a, B b) {
  if constexpr (is_same<A, int64_t>)
    return math::add(a, b);
  else
    return a + b;
}

#if OPERATION <= 2
struct Operation {
  using Lane = C;
  using Accumulator = wide<C>;
  static CRESSET_INLINE Lane start() { return C(0); }
  static CRESSET_INLINE void step(Lane& lane, C x, int64_t) { lane = added(lane, x); }
  static CRESSET_INLINE Accumulator total(const Lane& lane) { return convert<Accumulator>(lane); }
  static CRESSET_INLINE void merge(Accumulator& a, const Accumulator& b) { a = added(a, b); }
  static CRESSET_INLINE void finish(const Accumulator& a, const Plan& plan, int64_t at) {
#if OPERATION == 2
    static_cast<R*>(plan.first)[at] = convert<R>(convert<C>(a / static_cast<part<Accumulator>>(plan.length)));
#else
    static_cast<R*>(plan.first)[at] = convert<R>(convert<C>(a));
#endif
  }
};
#endif

#if OPERATION == 3
struct Operation {
  using Lane = C;
  using Accumulator = C;
  static CRESSET_INLINE Lane start() { return C(1); }
  template <class A>
  static CRESSET_INLINE A times(A a, A b) {
    if constexpr (is_same<A, int64_t>)
      return math::mul(a, b);
    else
      return a * b;
  }
  static CRESSET_INLINE void step(Lane& lane, C x, int64_t) { lane = times(lane, x); }
  static CRESSET_INLINE Accumulator total(const Lane& lane) { return lane; }
  static CRESSET_INLINE void merge(Accumulator& a, const Accumulator& b) { a = times(a, b); }
  static CRESSET_INLINE void finish(const Accumulator& a, const Plan& plan, int64_t at) {
    static_cast<R*>(plan.first)[at] = convert<R>(a);
  }
};
#endif

#if OPERATION >= 4 && OPERATION <= 6
// Of elements as bools: C is bool.
struct Operation {
  using Lane = int32_t;
#if OPERATION == 6
  using Accumulator = int64_t;
#else
  using Accumulator = int32_t;
#endif
  static CRESSET_INLINE Lane start() { return OPERATION == 5; }
  static CRESSET_INLINE void step(Lane& lane, bool x, int64_t) {
    lane = OPERATION == 4 ? lane | x : OPERATION == 5 ? lane & x : lane + x;
  }
  static CRESSET_INLINE Accumulator total(const Lane& lane) { return lane; }
  static CRESSET_INLINE void merge(Accumulator& a, const Accumulator& b) {
    a = OPERATION == 4 ? a | b : OPERATION == 5 ? a & b : a + b;
  }
  static CRESSET_INLINE void finish(const Accumulator& a, const Plan& plan, int64_t at) {
    static_cast<R*>(plan.first)[at] = convert<R>(a);
  }
};
#endif

template <class V>
CRESSET_INLINE V lowest() {
  if constexpr (is_float<V>)
    return V(-INFINITY);
  else
    return INT64_MIN;
}
template <class V>
CRESSET_INLINE V highest() {
  if constexpr (is_float<V>)
    return V(INFINITY);
  else
    return ~INT64_MIN;
}

#if OPERATION == 7 || OPERATION == 8 || OPERATION == 15 || OPERATION == 16
// Nan wins.
struct Operation {
  static constexpr bool kUp = OPERATION == 7 || OPERATION == 15;
  static constexpr bool kAbsolute = OPERATION == 15 || OPERATION == 16;
  using Lane = C;
  using Accumulator = C;
  static CRESSET_INLINE Lane start() { return kUp ? (kAbsolute ? C(0) : lowest<C>()) : highest<C>(); }
  static CRESSET_INLINE void step(Lane& lane, C x, int64_t) {
    if constexpr (kAbsolute) x = math::abs(x);
    const C winner = (kUp ? x > lane : x < lane) ? x : lane;
    lane = x != x ? x : winner;
  }
  static CRESSET_INLINE Accumulator total(const Lane& lane) { return lane; }
  static CRESSET_INLINE void merge(Accumulator& a, const Accumulator& b) {
    const C winner = (kUp ? b > a : b < a) ? b : a;
    a = b != b ? b : winner;
  }
  static CRESSET_INLINE void finish(const Accumulator& a, const Plan& plan, int64_t at) {
    static_cast<R*>(plan.first)[at] = convert<R>(a);
  }
};
#endif

#if OPERATION >= 9 && OPERATION <= 12
// The first nan wins, else the first of the best.
struct Operation {
  static constexpr bool kUp = OPERATION == 9 || OPERATION == 11;
  struct Accumulator {
    C value;
    int64_t index;
  };
  using Lane = Accumulator;
  static CRESSET_INLINE Lane start() { return {kUp ? lowest<C>() : highest<C>(), -1}; }
  // A thread sees its elements in their order, so that an equal one never takes the place, but that of no element.
  static CRESSET_INLINE void step(Lane& lane, C x, int64_t index) {
    const bool takes =
        (kUp ? x > lane.value : x < lane.value) || (x != x && lane.value == lane.value) || lane.index < 0;
    lane.value = takes ? x : lane.value;
    lane.index = takes ? index : lane.index;
  }
  static CRESSET_INLINE Accumulator total(const Lane& lane) { return lane; }
  static CRESSET_INLINE void merge(Accumulator& a, const Accumulator& b) {
    if (b.index < 0) return;
    const bool a_nan = a.value != a.value, b_nan = b.value != b.value;
    const bool better = a.index < 0 || (b_nan && !a_nan) || (!a_nan && (kUp ? b.value > a.value : b.value < a.value));
    const bool equal = (a_nan && b_nan) || a.value == b.value;
    if (better || (equal && b.index < a.index)) a = b;
  }
  static CRESSET_INLINE void finish(const Accumulator& a, const Plan& plan, int64_t at) {
#if OPERATION == 9 || OPERATION == 10
    static_cast<int64_t*>(plan.first)[at] = a.index;
#else
    static_cast<R*>(plan.first)[at] = convert<R>(a.value);
    static_cast<int64_t*>(plan.second)[at] = a.index;
#endif
  }
};
#endif

#if OPERATION == 13 || OPERATION == 14 || OPERATION == 17
// Sums of |x|, of its square, of a power of it. Only here a step needs the plan's parameter.
struct Operation {
  using Lane = C;
  using Accumulator = wide<C>;
  static CRESSET_INLINE Lane start() { return C(0); }
  static CRESSET_INLINE void step(Lane& lane, C x, int64_t, C power) {
    lane += OPERATION == 14 ? x * x : OPERATION == 13 ? math::abs(x) : math::pow(math::abs(x), power);
  }
  static CRESSET_INLINE Accumulator total(const Lane& lane) { return lane; }
  static CRESSET_INLINE void merge(Accumulator& a, const Accumulator& b) { a += b; }
  static CRESSET_INLINE void finish(const Accumulator& a, const Plan& plan, int64_t at) {
    static_cast<R*>(plan.first)[at] =
        convert<R>(convert<C>(OPERATION == 14   ? math::sqrt(a)
                              : OPERATION == 13 ? a
                                                : math::pow(a, static_cast<Accumulator>(plan.root))));
  }
};
#endif

#if OPERATION == 18
// The sum of exp(x - largest) beside the largest.
struct Operation {
  struct Lane {
    C largest, sum;
  };
  struct Accumulator {
    wide<C> largest, sum;
  };
  static CRESSET_INLINE Lane start() { return {lowest<C>(), C(0)}; }
  static CRESSET_INLINE void step(Lane& lane, C x, int64_t) {
    const C e = x == lane.largest ? C(1) : math::exp(-math::abs(x - lane.largest));
    if (x > lane.largest)
      lane = {x, lane.sum * e + 1};
    else
      lane.sum += e;
  }
  static CRESSET_INLINE Accumulator total(const Lane& lane) { return {lane.largest, lane.sum}; }
  static CRESSET_INLINE void merge(Accumulator& a, const Accumulator& b) {
    const wide<C> e = a.largest == b.largest ? wide<C>(1) : math::exp(-math::abs(a.largest - b.largest));
    if (b.largest > a.largest)
      a = {b.largest, a.sum * e + b.sum};
    else
      a.sum += b.sum * e;
  }
  static CRESSET_INLINE void finish(const Accumulator& a, const Plan& plan, int64_t at) {
    static_cast<R*>(plan.first)[at] = convert<R>(convert<C>(math::log(a.sum) + a.largest));
  }
};
#endif

#if OPERATION >= 19 && OPERATION <= 21
// A lane sums distances from its first element, which lies among the others: so the squares are about as small as those
// from the mean, from which Chan's formula makes one set of moments of two.
struct Operation {
  struct Lane {
    C reference, sum, squares;
    int32_t count;
  };
  struct Accumulator {
    double count, mean, squares;
  };
  static CRESSET_INLINE Lane start() { return {C(0), C(0), C(0), 0}; }
  static CRESSET_INLINE void step(Lane& lane, C x, int64_t) {
    if (lane.count == 0) lane.reference = x;
    const C distance = x - lane.reference;
    lane.sum += distance;
    lane.squares += distance * distance;
    ++lane.count;
  }
  static CRESSET_INLINE Accumulator total(const Lane& lane) {
    if (lane.count == 0) return {0, 0, 0};
    const double count = lane.count, sum = lane.sum, mean = sum / count;
    // Squares that overflow stay infinite: the difference of two infinities would be nan.
    const double squares = isinf(lane.squares) && isfinite(sum) ? lane.squares : lane.squares - sum * mean;
    return {count, lane.reference + mean, squares < 0 ? 0 : squares};
  }
  static CRESSET_INLINE void merge(Accumulator& a, const Accumulator& b) {
    if (b.count == 0) return;
    if (a.count == 0) {
      a = b;
      return;
    }
    const double total = a.count + b.count, apart = b.mean - a.mean, share = b.count / total;
    a = {total, a.mean + apart * share, a.squares + b.squares + apart * apart * (a.count * share)};
  }
  static CRESSET_INLINE void finish(const Accumulator& a, const Plan& plan, int64_t at) {
#if OPERATION == 21  // the mean and the mean square distance, for normalization
    static_cast<double*>(plan.first)[at] = a.mean;
    static_cast<double*>(plan.second)[at] = a.squares / a.count;
#else
    const double freedom = static_cast<double>(plan.length) - plan.parameter;
    const double variance = a.squares / (freedom > 0 ? freedom : 0.0);
    static_cast<R*>(plan.first)[at] = convert<R>(convert<C>(plan.root != 0 ? math::sqrt(variance) : variance));
#if OPERATION == 20
    static_cast<R*>(plan.second)[at] = convert<R>(convert<C>(plan.length ? a.mean : double(NAN)));
#endif
#endif
  }
};
#endif

#if OPERATION == 22
// Sums of a gradient, and of it times the distance of another tensor from a constant of each result: the input is the
// gradient, R the dtype of the constants, and the results are double.
struct Operation {
  struct Lane {
    C level, slope;
  };
  struct Accumulator {
    double level, slope;
  };
  static CRESSET_INLINE Lane start() { return {C(0), C(0)}; }
  static CRESSET_INLINE void step(Lane& lane, C grad, C other, C mean) {
    lane.level += grad;
    lane.slope += grad * (other - mean);
  }
  static CRESSET_INLINE Accumulator total(const Lane& lane) { return {lane.level, lane.slope}; }
  static CRESSET_INLINE void merge(Accumulator& a, const Accumulator& b) { a = {a.level + b.level, a.slope + b.slope}; }
  static CRESSET_INLINE void finish(const Accumulator& a, const Plan& plan, int64_t at) {
    static_cast<double*>(plan.first)[at] = a.level;
    static_cast<double*>(plan.second)[at] = a.slope;
  }
};
#endif

#if OPERATION == 23
// The smallest and the largest; nan wins.
struct Operation {
  struct Accumulator {
    C low, high;
  };
  using Lane = Accumulator;
  static CRESSET_INLINE Lane start() { return {highest<C>(), lowest<C>()}; }
  static CRESSET_INLINE void step(Lane& lane, C x, int64_t) {
    const C low = x < lane.low ? x : lane.low, high = x > lane.high ? x : lane.high;
    lane = {x != x ? x : low, x != x ? x : high};
  }
  static CRESSET_INLINE Accumulator total(const Lane& lane) { return lane; }
  static CRESSET_INLINE void merge(Accumulator& a, const Accumulator& b) {
    const C low = b.low < a.low ? b.low : a.low, high = b.high > a.high ? b.high : a.high;
    a = {b.low != b.low ? b.low : low, b.high != b.high ? b.high : high};
  }
  static CRESSET_INLINE void finish(const Accumulator& a, const Plan& plan, int64_t at) {
    static_cast<R*>(plan.first)[at] = convert<R>(a.low);
    static_cast<R*>(plan.second)[at] = convert<R>(a.high);
  }
};
#endif

#if OPERATION == 24
// The sum of products with another tensor.
struct Operation {
  using Lane = C;
  using Accumulator = wide<C>;
  static CRESSET_INLINE Lane start() { return C(0); }
  static CRESSET_INLINE void step(Lane& lane, C x, C other, C) { lane += x * other; }
  static CRESSET_INLINE Accumulator total(const Lane& lane) { return lane; }
  static CRESSET_INLINE void merge(Accumulator& a, const Accumulator& b) { a += b; }
  static CRESSET_INLINE void finish(const Accumulator& a, const Plan& plan, int64_t at) {
    static_cast<R*>(plan.first)[at] = convert<R>(convert<C>(a));
  }
};
#endif

using Accumulator = Operation::Accumulator;
using Lane = Operation::Lane;

#if OPERATION == 22 || OPERATION == 24
#define TWO_INPUTS 1
#else
#define TWO_INPUTS 0
#endif

// A constant of the step: the mean that gradients are taken about, or the power of a norm.
CRESSET_INLINE C constant_of(const Plan& plan, int64_t result) {
#if OPERATION == 22
  return convert<C>(static_cast<const R*>(plan.constants)[result / plan.constant_period]);
#elif OPERATION >= 13 && OPERATION <= 17
  return static_cast<C>(plan.parameter);
#else
  return C(0);
#endif
}
CRESSET_INLINE void step(Lane& lane, T x, T other, int64_t index, C constant) {
#if TWO_INPUTS
  Operation::step(lane, convert<C>(x), convert<C>(other), constant);
#elif OPERATION == 13 || OPERATION == 14 || OPERATION == 17
  Operation::step(lane, convert<C>(x), index, constant);
#elif OPERATION == 1
  if (const auto value = convert<opmath<T>>(x); value == value) Operation::step(lane, convert<C>(x), index);
#else
  Operation::step(lane, convert<C>(x), index);
#endif
}

// Where the elements of `from` lie, and those of the second input, which lie alike.
struct Source {
  const T *x, *other;
  CRESSET_INLINE Source(const Plan& plan, int64_t offset) {
    x = static_cast<const T*>(plan.input) + offset;
#if TWO_INPUTS
    other = static_cast<const T*>(plan.other) + offset;
#else
    other = x;
#endif
  }
};
template <int COUNT>
struct Loads {
  Vector<T, VECTOR> x[COUNT];
#if TWO_INPUTS
  Vector<T, VECTOR> other[COUNT];
#endif
  CRESSET_INLINE void load(int u, const Source& source, int64_t offset) {
    x[u] = load_vector<VECTOR>(source.x + offset);
#if TWO_INPUTS
    other[u] = load_vector<VECTOR>(source.other + offset);
#endif
  }
  CRESSET_INLINE T second(int u, int k) const {
#if TWO_INPUTS
    return other[u][k];
#else
    return x[u][k];
#endif
  }
};

// ---------------------------------------------------------------- threads

#define SHARED_ACCUMULATORS __shared__ __align__(16) char shared_bytes[kBlock * sizeof(Accumulator)]

// `lanes` neighboring threads make one accumulator, which the first of them has afterwards.
CRESSET_INLINE Accumulator merge_neighbors(Accumulator a, int lanes, char* shared_bytes) {
  const int within = lanes < 32 ? lanes : 32;
#pragma unroll 1
  for (int offset = within / 2; offset > 0; offset /= 2) Operation::merge(a, shuffle_xor(a, offset));
  if (lanes <= 32) return a;
  auto* parts = reinterpret_cast<Accumulator*>(shared_bytes);
  const int thread = static_cast<int>(threadIdx.x);
  if (thread % 32 == 0) parts[thread / 32] = a;
  __syncthreads();
  if ((thread & (lanes - 1)) == 0)
#pragma unroll 1
    for (int w = 1; w < lanes / 32; ++w) Operation::merge(a, parts[thread / 32 + w]);
  return a;
}
// Threads whose numbers are the same modulo `across` (a power of two up to 32) make one accumulator, which the first
// has afterwards.
CRESSET_INLINE Accumulator merge_apart(Accumulator a, int across, char* shared_bytes) {
#pragma unroll 1
  for (int offset = 16; offset >= across; offset /= 2) Operation::merge(a, shuffle_xor(a, offset));
  auto* parts = reinterpret_cast<Accumulator*>(shared_bytes);
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  __syncthreads();  // the memory may be in use from the call before
  if (lane < across) parts[warp * across + lane] = a;
  __syncthreads();
  if (warp == 0 && lane < across)
#pragma unroll 1
    for (int w = 1; w < kBlock / 32; ++w) Operation::merge(a, parts[w * across + lane]);
  return a;
}

CRESSET_INLINE void give(const Accumulator& a, const Plan& plan, int64_t result) {
  if (plan.partial)
    static_cast<Accumulator*>(plan.partial)[static_cast<int64_t>(blockIdx.y) * plan.count + result] = a;
  else
    Operation::finish(a, plan, result);
}

// ---------------------------------------------------------------- kernels

#if KERNEL == 0
// Grid: groups of results, splits. A result's elements are shared by plan.lanes neighboring threads.
extern "C" __global__ void __launch_bounds__(kBlock) reduce_rows(const Plan plan) {
  after_earlier_work();
  SHARED_ACCUMULATORS;
  const int lane = static_cast<int>(threadIdx.x) & (plan.lanes - 1);
  const int64_t result = (static_cast<int64_t>(blockIdx.x) * kBlock + threadIdx.x) >> (__ffs(plan.lanes) - 1);
  Lane lanes[VECTOR];
#pragma unroll
  for (int k = 0; k < VECTOR; ++k) lanes[k] = Operation::start();
  if (result < plan.count) {
    const Source source(plan, plan.kept.offset<BIG>(result));
    const C constant = constant_of(plan, result);
    const Index chunk = static_cast<Index>(plan.chunk), length = static_cast<Index>(plan.length),
                begin = blockIdx.y * chunk;
    const Index end = begin + chunk < length ? begin + chunk : length, last = begin + (end - begin) / VECTOR * VECTOR,
                stride = plan.lanes * VECTOR;
    const auto place = [&](Index i) { return CONTIGUOUS ? static_cast<int64_t>(i) : plan.folded.offset<BIG>(i); };
    Index i = begin + lane * VECTOR;
#pragma unroll 1
    for (; i + stride * (kUnroll - 1) < last; i += stride * kUnroll) {
      Loads<kUnroll> loads;
#pragma unroll
      for (int u = 0; u < kUnroll; ++u) loads.load(u, source, place(i + u * stride));
#pragma unroll
      for (int u = 0; u < kUnroll; ++u)
#pragma unroll
        for (int k = 0; k < VECTOR; ++k)
          step(lanes[k], loads.x[u][k], loads.second(u, k), i + u * stride + k, constant);
    }
#pragma unroll 1
    for (; i < last; i += stride) {
      Loads<1> loads;
      loads.load(0, source, place(i));
#pragma unroll
      for (int k = 0; k < VECTOR; ++k) step(lanes[k], loads.x[0][k], loads.second(0, k), i + k, constant);
    }
    if (VECTOR > 1)
#pragma unroll 1
      for (i = last + lane; i < end; i += plan.lanes)
        step(lanes[0], source.x[place(i)], source.other[place(i)], i, constant);
  }
  Accumulator a = Operation::total(lanes[0]);
#pragma unroll
  for (int k = 1; k < VECTOR; ++k) Operation::merge(a, Operation::total(lanes[k]));
  a = merge_neighbors(a, plan.lanes, shared_bytes);
  if (lane == 0 && result < plan.count) give(a, plan, result);
}
#endif

#if KERNEL == 1
// Grid: tiles of columns of all outer results, splits. plan.lanes threads stand side by side, each with VECTOR columns.
extern "C" __global__ void __launch_bounds__(kBlock) reduce_columns(const Plan plan) {
  after_earlier_work();
  const int across = plan.lanes, shift = __ffs(across) - 1, down = kBlock >> shift;
  const uint32_t tiles = static_cast<uint32_t>((plan.columns + across * VECTOR - 1) / VECTOR >> shift),
                 outer = blockIdx.x / tiles;
  const int64_t column =
      (static_cast<int64_t>(blockIdx.x - outer * tiles) * across + (threadIdx.x & (across - 1))) * VECTOR;
  const int64_t result = outer * plan.columns + column;
  Lane lanes[VECTOR];
#pragma unroll
  for (int k = 0; k < VECTOR; ++k) lanes[k] = Operation::start();
  if (column < plan.columns) {
    const Source source(plan, plan.kept.offset<BIG>(outer) + column * plan.column_stride);
    C constants[VECTOR];
#pragma unroll
    for (int k = 0; k < VECTOR; ++k) constants[k] = constant_of(plan, result + k);
    const Index chunk = static_cast<Index>(plan.chunk), length = static_cast<Index>(plan.length),
                begin = blockIdx.y * chunk;
    const Index end = begin + chunk < length ? begin + chunk : length;
    Index i = begin + (threadIdx.x >> shift);
#pragma unroll 1
    for (; i + down * (kColumnUnroll - 1) < end; i += down * kColumnUnroll) {
      Loads<kColumnUnroll> loads;
#pragma unroll
      for (int u = 0; u < kColumnUnroll; ++u) loads.load(u, source, plan.folded.offset<BIG>(i + u * down));
#pragma unroll
      for (int u = 0; u < kColumnUnroll; ++u)
#pragma unroll
        for (int k = 0; k < VECTOR; ++k) step(lanes[k], loads.x[u][k], loads.second(u, k), i + u * down, constants[k]);
    }
#pragma unroll 1
    for (; i < end; i += down) {
      Loads<1> loads;
      loads.load(0, source, plan.folded.offset<BIG>(i));
#pragma unroll
      for (int k = 0; k < VECTOR; ++k) step(lanes[k], loads.x[0][k], loads.second(0, k), i, constants[k]);
    }
  }
  // As merge_apart, of all columns of the tile at once: threads of a column within a warp, then those of other warps.
  __shared__ __align__(16) char shared_bytes[kBlock * VECTOR * sizeof(Accumulator)];
  auto* parts = reinterpret_cast<Accumulator*>(shared_bytes);
  const int side = across < 32 ? 32 : across, group = static_cast<int>(threadIdx.x) / side,
            lane = static_cast<int>(threadIdx.x) & (side - 1), width = across * VECTOR;
  Accumulator totals[VECTOR];
#pragma unroll
  for (int k = 0; k < VECTOR; ++k) totals[k] = Operation::total(lanes[k]);
#pragma unroll 1  // so that there is one copy of the merging: it is much to compile and little to run
  for (int k = 0; k < VECTOR; ++k) {
    Accumulator a = totals[k];
#pragma unroll 1
    for (int offset = 16; offset >= across; offset /= 2) Operation::merge(a, shuffle_xor(a, offset));
    if (lane < across) parts[group * width + lane * VECTOR + k] = a;
  }
  __syncthreads();
  const int64_t first = static_cast<int64_t>(blockIdx.x - outer * tiles) * width;
#pragma unroll 1
  for (int mine = static_cast<int>(threadIdx.x); mine < width && first + mine < plan.columns; mine += kBlock) {
    Accumulator a = parts[mine];
#pragma unroll 1
    for (int g = 1; g < kBlock / side; ++g) Operation::merge(a, parts[g * width + mine]);
    give(a, plan, outer * plan.columns + first + mine);
  }
}
#endif

#if KERNEL == 2
// Merges the splits of neighboring results.
extern "C" __global__ void __launch_bounds__(kBlock) reduce_partial(const Plan plan) {
  after_earlier_work();
  SHARED_ACCUMULATORS;
  const int across = plan.lanes, shift = __ffs(across) - 1, down = kBlock >> shift;
  const int64_t result = static_cast<int64_t>(blockIdx.x) * across + (threadIdx.x & (across - 1));
  Accumulator a = Operation::total(Operation::start());
  if (result < plan.count) {
    const auto* parts = static_cast<const Accumulator*>(plan.partial) + result;
#pragma unroll 4  // so that what comes from memory is on its way together
    for (int split = threadIdx.x >> shift; split < plan.splits; split += down)
      Operation::merge(a, parts[split * plan.count]);
  }
  a = merge_apart(a, across, shared_bytes);
  if (static_cast<int>(threadIdx.x) < across && result < plan.count) Operation::finish(a, plan, result);
}
#endif
