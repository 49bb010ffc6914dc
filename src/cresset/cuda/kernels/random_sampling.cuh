// Samples that need more than a few words an element: choices by weight (multinomial), Poisson, gamma, binomial and
// Dirichlet numbers, and how gamma and Dirichlet samples move with their parameters. Note [Words of an element] in
// philox.cuh.
#pragma once
#include "math.cuh"
#include "philox.cuh"

using T = ELEMENT;
using Real = opmath<T>;
constexpr int kThreads = 256;

// ---- multinomial: weights lie in rows of `categories`

#if defined(CHOOSE) || defined(KEYS)
// The largest of weight / Exp(1) is a category chosen by weight; the largest few are so many without replacement.
__device__ __forceinline__ Real key_of(T weight, const uint32_t* words) {
  return convert<Real>(weight) / exponential<Real>(words);
}
constexpr int kWords = Unit<Real>::words, kUnit = 4 / kWords;  // elements of one block of words
#endif

#ifdef CHOOSE
struct Best {
  Real key;
  int64_t place;
};
__device__ __forceinline__ Best better(Best a, Best b) {
  return b.key > a.key || (b.key == a.key && b.place < a.place) ? b : a;
}

// One category of each row; a block a row.
extern "C" __global__ void __launch_bounds__(kThreads)
    choose(int64_t* out, const T* weights, const int64_t categories, const RandomStart start) {
  after_earlier_work();
  const Philox philox(start);
  const int64_t begin = static_cast<int64_t>(blockIdx.x) * categories, end = begin + categories;
  Best best{Real(-1), begin};
  for (int64_t unit = begin / kUnit + threadIdx.x; unit * kUnit < end; unit += kThreads) {
    uint32_t words[4];
    philox.block(static_cast<uint64_t>(unit), words);
#pragma unroll
    for (int i = 0; i < kUnit; ++i) {
      const int64_t at = unit * kUnit + i;
      if (at >= begin && at < end) best = better(best, {key_of(weights[at], words + i * kWords), at});
    }
  }
  __shared__ Real keys[kThreads / 32];
  __shared__ int64_t places[kThreads / 32];
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) {
    const Best other{__shfl_xor_sync(0xffffffffu, best.key, distance),
                     static_cast<int64_t>(__shfl_xor_sync(0xffffffffu, static_cast<long long>(best.place), distance))};
    best = better(best, other);
  }
  if (threadIdx.x % 32 == 0) keys[threadIdx.x / 32] = best.key, places[threadIdx.x / 32] = best.place;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int w = 1; w < kThreads / 32; ++w) best = better(best, {keys[w], places[w]});
    out[blockIdx.x] = best.place - begin;
  }
}
#endif

#ifdef KEYS
extern "C" __global__ void __launch_bounds__(kThreads)
    keys(Real* out, const T* weights, const int64_t count, const RandomStart start) {
  after_earlier_work();
  const int64_t unit = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (unit * kUnit >= count) return;
  uint32_t words[4];
  Philox(start).block(static_cast<uint64_t>(unit), words);
#pragma unroll
  for (int i = 0; i < kUnit; ++i)
    if (unit * kUnit + i < count) out[unit * kUnit + i] = key_of(weights[unit * kUnit + i], words + i * kWords);
}
#endif

#ifdef CUMULATE
// The running sums of each row; a block a row, which carries the sum from one stretch of it to the next.
extern "C" __global__ void __launch_bounds__(kThreads)
    cumulate(Real* sums, const T* weights, const int64_t categories) {
  after_earlier_work();
  __shared__ Real of_warps[kThreads / 32];
  __shared__ Real carried;
  const int lane = static_cast<int>(threadIdx.x % 32), warp = static_cast<int>(threadIdx.x / 32);
  const int64_t begin = static_cast<int64_t>(blockIdx.x) * categories;
  if (threadIdx.x == 0) carried = Real(0);
  __syncthreads();
  for (int64_t first = 0; first < categories; first += kThreads) {
    const int64_t at = first + threadIdx.x;
    Real sum = at < categories ? convert<Real>(weights[begin + at]) : Real(0);
#pragma unroll
    for (int distance = 1; distance < 32; distance *= 2) {
      const Real before = __shfl_up_sync(0xffffffffu, sum, distance);
      if (lane >= distance) sum += before;
    }
    if (lane == 31) of_warps[warp] = sum;
    __syncthreads();
    Real before = carried;
    for (int w = 0; w < warp; ++w) before += of_warps[w];
    sum += before;
    if (at < categories) sums[begin + at] = sum;
    __syncthreads();
    if (threadIdx.x == kThreads - 1) carried = sum;
    __syncthreads();
  }
}
#endif

#ifdef PICK
// With replacement: the first category whose running sum is above a share of the whole.
extern "C" __global__ void __launch_bounds__(kThreads)
    pick(int64_t* out, const T* sums, const int64_t categories, const int64_t samples, const int64_t count,
         const RandomStart start) {
  after_earlier_work();
  const int64_t sample = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (sample >= count) return;
  constexpr int words_each = Unit<T>::words;
  uint32_t words[4];
  Philox(start).block(static_cast<uint64_t>(sample * words_each / 4), words);
  const uint32_t own[2] = {words_each == 1 ? (sample % 4 == 0   ? words[0]
                                              : sample % 4 == 1 ? words[1]
                                              : sample % 4 == 2 ? words[2]
                                                                : words[3])
                                           : (sample % 2 ? words[2] : words[0]),
                           sample % 2 ? words[3] : words[1]};
  const T* const row = sums + sample / samples * categories;
  const T whole = row[categories - 1], share = Unit<T>::closed(own) * whole;
  const bool rounded_up = !(share < whole);
  int64_t low = 0, high = categories - 1;
  while (low < high) {
    const int64_t middle = (low + high) / 2;
    if (rounded_up ? row[middle] >= whole : row[middle] > share)
      high = middle;
    else
      low = middle + 1;
  }
  out[sample] = low;
}
#endif

// ---- a stream of its own for each element

#if defined(POISSON) || defined(GAMMA) || defined(BINOMIAL)
#include "random_samples.h"

// One word after the other, those of a block of four before the next is made.
template <class Real>
class Source {
 public:
  __device__ __forceinline__ Source(const RandomStart& start, int64_t element)
      : philox_(start), stream_(static_cast<uint64_t>(element) + 1) {}
  __device__ __forceinline__ Real uniform() {
    uint32_t words[Unit<Real>::words];
#pragma unroll
    for (uint32_t& w : words) w = word();
    return Unit<Real>::closed(words);
  }
  __device__ __forceinline__ Real normal() {
    if (has_kept_) {
      has_kept_ = false;
      return kept_;
    }
    uint32_t words[2 * Unit<Real>::words];
#pragma unroll
    for (uint32_t& w : words) w = word();
    Real first;
    normal_pair<Real>(words, first, kept_);
    has_kept_ = true;
    return first;
  }

 private:
  __device__ __forceinline__ uint32_t word() {
    if (left_ == 0) {
      philox_.block(next_++, words_, stream_);
      left_ = 4;
    }
    --left_;
    const uint32_t first = words_[0];
    words_[0] = words_[1], words_[1] = words_[2], words_[2] = words_[3];
    return first;
  }

  Philox philox_;
  uint64_t stream_, next_ = 0;
  uint32_t words_[4];
  int left_ = 0;
  Real kept_ = 0;
  bool has_kept_ = false;
};
#endif

#ifdef POISSON
extern "C" __global__ void __launch_bounds__(kThreads)
    poisson(T* out, const T* rates, const int64_t count, const RandomStart start) {
  after_earlier_work();
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= count) return;
  const Real rate = convert<Real>(rates[i]);
  if (rate >= Real(0) && rate < Real(samples::kFew)) {
    Source<Real> source(start, i);
    out[i] = convert<T>(samples::poisson_of_few(rate, source));
  } else {
    Source<double> source(start, i);
    out[i] =
        convert<T>(rate >= Real(0) ? samples::poisson(static_cast<double>(rate), source) : static_cast<double>(NAN));
  }
}
#endif

#ifdef GAMMA
constexpr float kLargeShape = 1024;  // from there on differences of single precision have few digits left
template <class Number>
__device__ __forceinline__ RESULT gamma_sample(RESULT shape, int64_t element, const RandomStart& start) {
  Source<Number> source(start, element);
  return static_cast<RESULT>(samples::gamma(shape, source));
}
// Apart from the kernel, whose threads would all have its registers.
__device__ __noinline__ RESULT large_gamma_sample(RESULT shape, int64_t element, const RandomStart& start) {
  return gamma_sample<double>(shape, element, start);
}
// RESULT is the dtype of the samples; SHAPE what is computed with. Below `smallest` there are none.
extern "C" __global__ void __launch_bounds__(kThreads)
    gamma_samples(RESULT* out, const T* shapes, const int64_t count, const RandomStart start, const double smallest) {
  after_earlier_work();
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= count) return;
  const RESULT shape = convert<RESULT>(shapes[i]);
  const RESULT sample = !(shape >= RESULT(0))         ? static_cast<RESULT>(NAN)
                        : shape < RESULT(kLargeShape) ? gamma_sample<opmath<RESULT>>(shape, i, start)
                                                      : large_gamma_sample(shape, i, start);
  out[i] = sample < static_cast<RESULT>(smallest) ? static_cast<RESULT>(smallest) : sample;
}
#endif

#ifdef BINOMIAL
extern "C" __global__ void __launch_bounds__(kThreads)
    binomial(T* out, const T* trials, const T* probabilities, const int64_t count, const RandomStart start) {
  after_earlier_work();
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= count) return;
  Source<double> source(start, i);
  out[i] = samples::binomial(trials[i], probabilities[i], source);
}
#endif

#ifdef SHARES
// Each row of positive numbers divided by its sum, kept inside (0, 1).
extern "C" __global__ void __launch_bounds__(kThreads)
    shares(T* out, const double* samples, const int64_t rows, const int64_t length, const double smallest,
           const double largest) {
  after_earlier_work();
  const int64_t row = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (row >= rows) return;
  double sum = 0;
  for (int64_t i = row * length; i < (row + 1) * length; ++i) sum += samples[i];
  for (int64_t i = row * length; i < (row + 1) * length; ++i) {
    const double share = samples[i] / sum;
    const T value = static_cast<T>(share), low = static_cast<T>(smallest), high = static_cast<T>(largest);
    out[i] = share != share ? value : value < low ? low : value > high ? high : value;
  }
}
#endif

#if defined(GAMMA_GRADIENT) || defined(DIRICHLET_GRADIENT)
#include "sample_gradients.h"
#endif

#ifdef GAMMA_GRADIENT
extern "C" __global__ void __launch_bounds__(kThreads)
    gamma_gradient(T* out, const T* shapes, const T* samples, const int64_t count) {
  after_earlier_work();
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i < count) out[i] = static_cast<T>(cresset::samples::gamma_sample_gradient(shapes[i], samples[i]));
}
#endif

#ifdef DIRICHLET_GRADIENT
extern "C" __global__ void __launch_bounds__(kThreads)
    dirichlet_gradient(T* out, const T* samples, const T* concentrations, const T* totals, const int64_t count) {
  after_earlier_work();
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i < count)
    out[i] = static_cast<T>(cresset::samples::dirichlet_sample_gradient(samples[i], concentrations[i], totals[i]));
}
#endif
