// Samples that take as many uniform numbers as chance wants: Poisson, gamma and binomial. A `Source` has uniform(), in
// [0, 1), and normal(), both in the precision that is computed in; binomial wants double.
//
// CUDA kernels include this file too: cresset/cuda/kernels/random_sampling.cuh.
#pragma once
#ifndef CRESSET_KERNEL
#include <cmath>
#include <cstdint>
#ifndef CRESSET_DEVICE
#define CRESSET_DEVICE
#endif
#endif

namespace cresset::samples {

#ifndef CRESSET_KERNEL  // CUDA has them for float and double under one name
using std::ceil, std::exp, std::fabs, std::floor, std::lgamma, std::log, std::log1p, std::pow, std::sqrt;
#endif

// The number of unit exponentials that fit into `rate`, with their product instead of their sum.
template <class Real, class Source>
CRESSET_DEVICE inline Real poisson_of_few(Real rate, Source& source) {
  const Real limit = exp(-rate);
  int events = 0;
  for (Real product = source.uniform(); product > limit; product *= source.uniform()) ++events;
  return static_cast<Real>(events);
}

constexpr double kFew = 10;
template <class Source>
CRESSET_DEVICE inline double poisson(double rate, Source& source) {
  if (rate == 0) return 0;
  if (rate < kFew) return poisson_of_few(rate, source);
  // Hörmann's transformed rejection (PTRS, 1993).
  const double log_rate = log(rate);
  const double b = 0.931 + 2.53 * sqrt(rate);
  const double a = -0.059 + 0.02483 * b;
  const double inverse_alpha = 1.1239 + 1.1328 / (b - 3.4);
  const double accepted = 0.9277 - 3.6224 / (b - 2);
  for (;;) {
    const double u = source.uniform() - 0.5;
    const double v = source.uniform();
    const double margin = 0.5 - fabs(u);
    const double k = floor((2 * a / margin + b) * u + rate + 0.43);
    if (margin >= 0.07 && v <= accepted) return k;
    if (k < 0 || (margin < 0.013 && v > margin)) continue;
    if (log(v) + log(inverse_alpha) - log(a / (margin * margin) + b) <= -rate + k * log_rate - lgamma(k + 1)) return k;
  }
}

template <class T, class Source>
CRESSET_DEVICE inline auto gamma(T shape, Source& source) -> decltype(source.uniform()) {
  using Real = decltype(source.uniform());
  if (shape == 0) return 0;
  Real scale = 1;
  if (shape < 1) {
    // A sample of shape + 1 times u^(1 / shape) has this shape, and is accepted more often.
    scale = pow(1 - source.uniform(), static_cast<Real>(1 / shape));
    shape += 1;
  }
  const Real d = shape - 1.0f / 3.0f;
  const Real c = 1 / sqrt(9 * d);
  for (;;) {
    Real x, y;
    do {
      x = source.normal();
      y = 1 + c * x;
    } while (y <= 0);
    const Real v = y * y * y;
    const Real u = 1 - source.uniform();
    const Real square = x * x;
    if (u < 1 - 0.0331f * square * square) return scale * d * v;
    if (log(u) < Real(0.5) * square + d * (1 - v + log(v))) return scale * d * v;
  }
}

// log(k!) minus Stirling's formula for it.
CRESSET_DEVICE inline double stirling_tail(double k) {
  constexpr double tails[10] = {0.0810614667953272,  0.0413406959554092, 0.0276779256849983, 0.02079067210376509,
                                0.0166446911898211,  0.0138761288230707, 0.0118967099458917, 0.0104112652619720,
                                0.00925546218271273, 0.00833056343336287};
  if (k < 10) return tails[static_cast<int>(k)];
  const double square = (k + 1) * (k + 1);
  return (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / (k + 1);
}

// Count geometric waiting times until they exceed the number of trials: quick where few successes are expected.
template <class T, class Source>
CRESSET_DEVICE inline T binomial_by_waiting(T trials, T probability, Source& source) {
  const double log_failure = log1p(-probability);
  double waited = 0;
  for (T successes = 0;; successes += 1) {
    waited += ceil(log(source.uniform()) / log_failure);
    if (waited > trials) return successes;
  }
}

// Hörmann's transformed rejection (BTRS, 1993). Products of the arguments alone are in T's precision, as in PyTorch.
template <class T, class Source>
CRESSET_DEVICE inline T binomial_by_rejection(T trials, T probability, Source& source) {
  const double deviation = sqrt(trials * probability * (1 - probability));
  const double b = 1.15 + 2.53 * deviation;
  const double a = -0.0873 + 0.0248 * b + 0.01 * probability;
  const double c = trials * probability + 0.5;
  const double accepted = 0.92 - 4.2 / b;
  const double odds = probability / (1 - probability);
  const double alpha = (2.83 + 5.1 / b) * deviation;
  const double mode = floor((trials + 1) * probability);
  for (;;) {
    const double u = source.uniform() - 0.5;
    const double v = source.uniform();
    const double margin = 0.5 - fabs(u);
    const T k = static_cast<T>(floor((2 * a / margin + b) * u + c));
    if (k < 0 || k > trials) continue;
    if (margin >= 0.07 && v <= accepted) return k;
    const double bound = (mode + 0.5) * log((mode + 1) / (odds * (trials - mode + 1))) +
                         (trials + 1) * log((trials - mode + 1) / (trials - k + 1)) +
                         (k + 0.5) * log(odds * (trials - k + 1) / (k + 1)) + stirling_tail(mode) +
                         stirling_tail(trials - mode) - stirling_tail(k) - stirling_tail(trials - k);
    if (log(v * alpha / (a / (margin * margin) + b)) <= bound) return k;
  }
}

template <class T, class Source>
CRESSET_DEVICE inline T binomial_of_rare(T trials, T probability, Source& source) {
  return trials * probability >= 10 ? binomial_by_rejection(trials, probability, source)
                                    : binomial_by_waiting(trials, probability, source);
}

template <class T, class Source>
CRESSET_DEVICE inline T binomial(T trials, T probability, Source& source) {
  if (trials != trials || probability != probability) return static_cast<T>(NAN);
  if (trials <= 0 || probability <= 0) return 0;
  if (probability >= 1) return trials;
  if (probability <= T(0.5)) return binomial_of_rare(trials, probability, source);
  return trials - binomial_of_rare(trials, static_cast<T>(1.0 - probability), source);
}

}  // namespace cresset::samples
