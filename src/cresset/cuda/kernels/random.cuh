// Fills of memory that lies densely with random numbers, dropout, and random permutations. Note [Words of an element]
// in philox.cuh.
#pragma once
#include "philox.cuh"

using T = ELEMENT;
constexpr int kThreads = 256;

__device__ __forceinline__ bool is_aligned(const void* p, int bytes) {
  return reinterpret_cast<uint64_t>(p) % static_cast<uint64_t>(bytes) == 0;
}

#ifdef KIND
#define UNIFORM 0
#define NORMAL 1
#define LOG_NORMAL 2
#define CAUCHY 3
#define EXPONENTIAL 4
#define GEOMETRIC 5
#define BERNOULLI 6
#define INTEGERS 7
#define WIDE_INTEGERS 8

using Real = opmath<T>;
#if KIND == BERNOULLI || KIND == INTEGERS
constexpr int kWords = 1;
#elif KIND == WIDE_INTEGERS
constexpr int kWords = 2;
#elif KIND == GEOMETRIC
template <int bytes>
struct WaitOf {
  using type = float;
};
template <>
struct WaitOf<8> {
  using type = double;
};
using Wait = typename WaitOf<sizeof(T)>::type;
constexpr int kWords = Unit<Wait>::words;
#else
constexpr int kWords = Unit<Real>::words;
#endif

// What the distributions are told: two real numbers and two whole ones, each in the sense of the kind.
struct Arguments {
  double a, b;
  uint64_t range;
  int64_t base;
};

// `count` elements, an even number, of the words of these elements.
template <int count>
__device__ __forceinline__ void draw(const uint32_t* words, T* values, const Arguments& arguments) {
#if KIND == UNIFORM
  const Real from = static_cast<Real>(arguments.a), to = static_cast<Real>(arguments.b), range = to - from;
  const Real excluded = static_cast<Real>(convert<T>(to));
  for (int i = 0; i < count; ++i) {
    const T value = convert<T>(Unit<Real>::closed(words + i * kWords) * range + from);
    values[i] = static_cast<Real>(value) == excluded ? convert<T>(from) : value;
  }
#elif KIND == NORMAL || KIND == LOG_NORMAL
  const Real mean = static_cast<Real>(arguments.a), deviation = static_cast<Real>(arguments.b);
  for (int i = 0; i < count; i += 2) {
    Real first, second;
    normal_pair<Real>(words + i * kWords, first, second);
    first = first * deviation + mean;
    second = second * deviation + mean;
#if KIND == LOG_NORMAL
    first = exp(first);
    second = exp(second);
#endif
    values[i] = convert<T>(first);
    values[i + 1] = convert<T>(second);
  }
#elif KIND == CAUCHY
  const Real median = static_cast<Real>(arguments.a), sigma = static_cast<Real>(arguments.b);
  for (int i = 0; i < count; ++i)
    values[i] =
        convert<T>(median + sigma * tan(Real(3.14159265358979323846) * Unit<Real>::centered(words + i * kWords)));
#elif KIND == EXPONENTIAL
  const Real mean = static_cast<Real>(arguments.a);
  for (int i = 0; i < count; ++i) values[i] = convert<T>(exponential<Real>(words + i * kWords) * mean);
#elif KIND == GEOMETRIC
  const Wait log_failure = static_cast<Wait>(arguments.a);
  for (int i = 0; i < count; ++i) {
    const Wait wait = ceil(log(Unit<Wait>::open(words + i * kWords)) / log_failure);
    values[i] = convert<T>(fmax(wait, Wait(1)));
  }
#elif KIND == BERNOULLI
  for (int i = 0; i < count; ++i) values[i] = convert<T>(words[i] < arguments.range);
#elif KIND == INTEGERS
  // The upper half of the product: as even as the remainder, and quicker.
  const uint32_t range = static_cast<uint32_t>(arguments.range);
  for (int i = 0; i < count; ++i)
    values[i] = convert<T>(arguments.base + static_cast<int64_t>(__umulhi(words[i], range)));
#else
  const uint64_t range = arguments.range;  // 0 stands for 2^64
  for (int i = 0; i < count; ++i) {
    const uint64_t drawn = pair(words + 2 * i);
    values[i] = convert<T>(static_cast<int64_t>(static_cast<uint64_t>(arguments.base) +
                                                (range ? static_cast<uint64_t>(__umul64hi(drawn, range)) : drawn)));
  }
#endif
}

constexpr int kVector = vector_length<T>;
constexpr int kUnit = kVector * kWords >= 4 ? kVector : 4 / kWords;  // elements of whole blocks and whole vectors

struct Drawn {
  Vector<T, kVector> vectors[kUnit / kVector];
};
__device__ __forceinline__ Drawn draw_unit(const int64_t unit, const Philox& philox, const Arguments& arguments) {
  constexpr int kBlocks = kUnit * kWords / 4;
  uint32_t words[4 * kBlocks];
#pragma unroll
  for (int b = 0; b < kBlocks; ++b) philox.block(static_cast<uint64_t>(unit * kBlocks + b), words + 4 * b);
  Drawn drawn;
#pragma unroll
  for (int v = 0; v < kUnit / kVector; ++v)
    draw<kVector>(words + v * kVector * kWords, drawn.vectors[v].values, arguments);
  return drawn;
}

__device__ __forceinline__ void store_unit(T* out, const int64_t unit, const Drawn& drawn) {
  if constexpr (kUnit == 2 * kVector) {
    // Of two vectors a thread, each store of the warp takes 32 that lie side by side.
    struct Parts {
      uint32_t at[4];
    };
    const int lane = static_cast<int>(threadIdx.x % 32);
    const Parts first = __builtin_bit_cast(Parts, drawn.vectors[0]),
                second = __builtin_bit_cast(Parts, drawn.vectors[1]);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      Parts taken;
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        const uint32_t even = __shfl_sync(0xffffffffu, first.at[k], half * 16 + lane / 2),
                       odd = __shfl_sync(0xffffffffu, second.at[k], half * 16 + lane / 2);
        taken.at[k] = lane % 2 ? odd : even;
      }
      store_vector(out + (unit - lane) * kUnit + (half * 32 + lane) * kVector,
                   __builtin_bit_cast(Vector<T, kVector>, taken));
    }
  } else {
#pragma unroll
    for (int v = 0; v < kUnit / kVector; ++v) store_vector(out + unit * kUnit + v * kVector, drawn.vectors[v]);
  }
}

// Two units a thread, of one vector each: what both have in common, the keys of the rounds above all, is made once.
constexpr int kUnits = kUnit == kVector ? 2 : 1;  // as in native/cuda/random.cpp
extern "C" __global__ void __launch_bounds__(kThreads)
    fill(T* out, const int64_t count, const RandomStart start, const Arguments arguments) {
  after_earlier_work();
  const Philox philox(start);
  const int64_t begin = static_cast<int64_t>(blockIdx.x) * (kUnits * kThreads), first = begin + threadIdx.x;
  if ((begin + kUnits * kThreads) * kUnit <= count && is_aligned(out, 16)) {
#pragma unroll
    for (int u = 0; u < kUnits; ++u)
      store_unit(out, first + u * kThreads, draw_unit(first + u * kThreads, philox, arguments));
    return;
  }
#pragma unroll 1
  for (int u = 0; u < kUnits; ++u) {
    const int64_t unit = first + u * kThreads;
    if (unit * kUnit >= count) return;
    const Drawn drawn = draw_unit(unit, philox, arguments);
    for (int i = 0; i < kUnit && unit * kUnit + i < count; ++i)
      out[unit * kUnit + i] = drawn.vectors[i / kVector].values[i % kVector];
  }
}
#endif

#ifdef PROBABILITY
// One coin for each probability.
extern "C" __global__ void __launch_bounds__(kThreads)
    toss(T* out, const PROBABILITY* probabilities, const int64_t count, const RandomStart start) {
  after_earlier_work();
  using Real = opmath<PROBABILITY>;
  constexpr int kWords = Unit<Real>::words, kUnit = 4 / kWords;
  const Philox philox(start);
  const int64_t unit = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (unit * kUnit >= count) return;
  uint32_t words[4];
  philox.block(static_cast<uint64_t>(unit), words);
#pragma unroll
  for (int i = 0; i < kUnit; ++i) {
    const int64_t at = unit * kUnit + i;
    if (at < count) out[at] = convert<T>(Unit<Real>::closed(words + i * kWords) < convert<Real>(probabilities[at]));
  }
}
#endif

#if defined(DROPOUT) || defined(DROPOUT_BACKWARD)
using Real = opmath<T>;
constexpr int kVector = vector_length<T>;
constexpr int kUnit = kVector < 4 ? 4 : kVector;
constexpr int kUnroll = 2;
// What is dropped is multiplied by zero, so that nan and infinity show.
__device__ __forceinline__ T scaled(T value, bool kept, Real scale) {
  return convert<T>(static_cast<Real>(value) * (kept ? scale : Real(0)));
}
#endif

#ifdef DROPOUT
// A word below `limit` keeps its element.
extern "C" __global__ void __launch_bounds__(kThreads)
    dropout(T* out, bool* mask, const T* input, const int64_t count, const RandomStart start, const uint64_t limit,
            const double scale) {
  after_earlier_work();
  const Philox philox(start);
  const Real factor = static_cast<Real>(scale);
  const bool vectors = is_aligned(out, 16) && is_aligned(input, 16) && is_aligned(mask, kUnit);
  const int64_t first = static_cast<int64_t>(blockIdx.x) * (kThreads * kUnroll) + threadIdx.x;
  if (vectors && (first + (kUnroll - 1) * kThreads + 1) * kUnit <= count) {
    Vector<T, kVector> values[kUnroll][kUnit / kVector];
#pragma unroll
    for (int u = 0; u < kUnroll; ++u)
#pragma unroll
      for (int v = 0; v < kUnit / kVector; ++v)
        values[u][v] = load_vector<kVector>(input + (first + u * kThreads) * kUnit + v * kVector);
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      const int64_t unit = first + u * kThreads;
      uint32_t words[kUnit];
#pragma unroll
      for (int b = 0; b < kUnit / 4; ++b) philox.block(static_cast<uint64_t>(unit * (kUnit / 4) + b), words + 4 * b);
      Vector<bool, kUnit> kept;
#pragma unroll
      for (int i = 0; i < kUnit; ++i) {
        kept.values[i] = words[i] < limit;
        T& value = values[u][i / kVector].values[i % kVector];
        value = scaled(value, kept.values[i], factor);
      }
#pragma unroll
      for (int v = 0; v < kUnit / kVector; ++v) store_vector(out + unit * kUnit + v * kVector, values[u][v]);
      store_vector(mask + unit * kUnit, kept);
    }
    return;
  }
#pragma unroll 1
  for (int u = 0; u < kUnroll; ++u) {
    const int64_t unit = first + u * kThreads;
#pragma unroll 1
    for (int b = 0; b < kUnit / 4; ++b) {
      const int64_t at = unit * kUnit + 4 * b;
      if (at >= count) return;
      uint32_t words[4];
      philox.block(static_cast<uint64_t>(at / 4), words);
      for (int i = 0; i < 4 && at + i < count; ++i) {
        const bool kept = words[i] < limit;
        out[at + i] = scaled(input[at + i], kept, factor);
        mask[at + i] = kept;
      }
    }
  }
}
#endif

#ifdef DROPOUT_BACKWARD
extern "C" __global__ void __launch_bounds__(kThreads)
    dropout_backward(T* out, const T* grad, const bool* mask, const int64_t count, const double scale) {
  after_earlier_work();
  const Real factor = static_cast<Real>(scale);
  const bool vectors = is_aligned(out, 16) && is_aligned(grad, 16) && is_aligned(mask, kVector);
  const int64_t first = static_cast<int64_t>(blockIdx.x) * (kThreads * kUnroll) + threadIdx.x;
  if (vectors && (first + (kUnroll - 1) * kThreads + 1) * kVector <= count) {
    Vector<T, kVector> values[kUnroll];
    Vector<bool, kVector> kept[kUnroll];
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      values[u] = load_vector<kVector>(grad + (first + u * kThreads) * kVector);
      kept[u] = load_vector<kVector>(mask + (first + u * kThreads) * kVector);
    }
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
#pragma unroll
      for (int i = 0; i < kVector; ++i) values[u].values[i] = scaled(values[u].values[i], kept[u].values[i], factor);
      store_vector(out + (first + u * kThreads) * kVector, values[u]);
    }
    return;
  }
#pragma unroll 1
  for (int u = 0; u < kUnroll; ++u)
#pragma unroll 1
    for (int i = 0; i < kVector; ++i) {
      const int64_t at = (first + u * kThreads) * kVector + i;
      if (at < count) out[at] = scaled(grad[at], mask[at], factor);
    }
}
#endif

#ifdef PERMUTATION_OF_FEW
// One block: every number has a random key, and its place is how many keys are smaller.
extern "C" __global__ void __launch_bounds__(1024) permute_few(T* out, const int32_t count, const RandomStart start) {
  after_earlier_work();
  __shared__ uint64_t keys[1024];
  const Philox philox(start);
  const int i = static_cast<int>(threadIdx.x);
  uint32_t words[4];
  philox.block(static_cast<uint64_t>(i / 2), words);
  const uint64_t own = pair(words + 2 * (i % 2));
  keys[i] = own;
  __syncthreads();
  if (i >= count) return;
  int place = 0;
  for (int j = 0; j < count; ++j) place += keys[j] < own || (keys[j] == own && j < i);
  out[place] = convert<T>(static_cast<int64_t>(i));
}
#endif

#ifdef PERMUTATION
// Note [Permutations without sorting]
// A Feistel network is a permutation of the numbers of `low + high` bits for any functions of its rounds; here each
// round mixes one half with its own random key into the other. Numbers that come out at `count` or above are put in
// again until they are below it, which permutes those below it. At most half of all numbers are above, so that is
// quick; nothing is sorted, and no memory is needed but the result.
constexpr int kRounds = 12;

__device__ __forceinline__ uint32_t mixed(uint32_t x, uint32_t key) {
  x = (x ^ key) * 0x85ebca6bu;
  x = (x ^ x >> 15 ^ key >> 7) * 0xc2b2ae35u;
  x = (x ^ x >> 13) * 0x27d4eb2fu;
  return x ^ x >> 16;
}

extern "C" __global__ void __launch_bounds__(kThreads)
    permute(T* out, const int64_t count, const RandomStart start, const int32_t low, const int32_t high) {
  after_earlier_work();
  __shared__ uint32_t keys[kRounds];
  if (threadIdx.x < kRounds / 4) Philox(start).block(threadIdx.x, keys + 4 * threadIdx.x);
  __syncthreads();
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= count) return;
  const uint32_t low_mask = (1u << low) - 1, high_mask = (1u << high) - 1;
  uint64_t value = static_cast<uint64_t>(i);
  do {
    uint32_t left = static_cast<uint32_t>(value >> low), right = static_cast<uint32_t>(value) & low_mask;
#pragma unroll
    for (int round = 0; round < kRounds; round += 2) {
      left = (left ^ mixed(right, keys[round])) & high_mask;
      right = (right ^ mixed(left, keys[round + 1])) & low_mask;
    }
    value = static_cast<uint64_t>(left) << low | right;
  } while (value >= static_cast<uint64_t>(count));
  out[i] = convert<T>(static_cast<int64_t>(value));
}
#endif
