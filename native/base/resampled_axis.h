// One dimension of an image that changes its size: which old elements a new one is made of, and how they count.
//
// CUDA kernels include this file too: cresset/cuda/kernels/resampling.cuh.
#pragma once
#ifndef CRESSET_KERNEL
#include <cmath>
#include <cstdint>
#ifndef CRESSET_DEVICE
#define CRESSET_DEVICE
#endif
#endif

namespace cresset {

// The last three are filters as wide as the step, where elements are left out: of a triangle, a cubic and Lanczos'.
enum ResampledMode : int32_t { kSame, kNearest, kNearestExact, kLinear, kCubic, kWideLinear, kWideCubic, kLanczos };
constexpr int kMostTaps = 4;  // of the modes before those

struct ResampledAxis {
  int32_t old_size = 1, new_size = 1, mode = kSame, align_corners = 0;
  double step = 1;  // from one new element to the next, in old ones
};

// The old elements `at` of a new one, with their weights. The same element may be there twice, at an end.
template <class Real>
struct ResampledTaps {
  int32_t count, at[kMostTaps];
  Real weight[kMostTaps];
};

// Keys' cubic convolution.
template <class Real>
CRESSET_DEVICE inline Real cubic_near(Real x, Real a = Real(-0.75)) {  // |x| <= 1
  return ((a + 2) * x - (a + 3)) * x * x + 1;
}
template <class Real>
CRESSET_DEVICE inline Real cubic_far(Real x, Real a = Real(-0.75)) {  // 1 < |x| < 2
  return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
}

template <class Real>
CRESSET_DEVICE inline ResampledTaps<Real> taps_of(const ResampledAxis& a, int32_t i) {
  ResampledTaps<Real> t;
  const int32_t last = a.old_size - 1;
  t.count = 1, t.at[0] = i, t.weight[0] = 1;
  if (a.mode == kSame) return t;
  if (a.mode == kNearest || a.mode == kNearestExact) {
    const float at =
        (a.mode == kNearest ? static_cast<float>(i) : static_cast<float>(i) + 0.5f) * static_cast<float>(a.step);
    const int32_t place = static_cast<int32_t>(floor(at));
    t.at[0] = place < last ? place : last;
    return t;
  }
  const Real step = static_cast<Real>(a.step), whole = static_cast<Real>(i);
  Real at = a.align_corners ? whole * step : (whole + Real(0.5)) * step - Real(0.5);
  if (a.mode == kLinear) {
    at = at < 0 ? Real(0) : at;
    int32_t first = static_cast<int32_t>(at);
    first = first < last ? first : last;
    Real part = at - static_cast<Real>(first);
    part = part < 1 ? part : Real(1);
    t.count = 2, t.at[0] = first, t.at[1] = first < last ? first + 1 : last;
    t.weight[0] = 1 - part, t.weight[1] = part;
    return t;
  }
  const Real first = floor(at);
  const Real found = at - first, part = found < 0 ? Real(0) : found < 1 ? found : Real(1);
  t.count = 4;
  t.weight[0] = cubic_far(part + 1), t.weight[1] = cubic_near(part), t.weight[2] = cubic_near(1 - part),
  t.weight[3] = cubic_far(2 - part);
  for (int k = 0; k < 4; ++k) {
    const int32_t place = static_cast<int32_t>(first) + k - 1;
    t.at[k] = place < 0 ? 0 : place < last ? place : last;
  }
  return t;
}

// How much the old element `at` counts for the new one i.
template <class Real>
CRESSET_DEVICE inline Real weight_of(const ResampledAxis& a, int32_t i, int32_t at) {
  const ResampledTaps<Real> t = taps_of<Real>(a, i);
  Real sum = 0;
  for (int k = 0; k < kMostTaps; ++k)
    if (k < t.count && t.at[k] == at) sum += t.weight[k];
  return sum;
}

// Of which old elements a new one is made by a wide filter, and how they count: by their weight over the sum of all.
// Elements have their center at a half.
template <class Real>
struct ResampledFilter {
  int32_t begin, end, mode;
  Real middle, inverse;

  CRESSET_DEVICE Real weight(int32_t at) const {
    const Real x = Real(fabs((static_cast<Real>(at) - middle + Real(0.5)) * inverse));
    if (mode == kWideLinear) return x < 1 ? 1 - x : Real(0);
    if (mode == kWideCubic) return x < 1 ? cubic_near(x, Real(-0.5)) : x < 2 ? cubic_far(x, Real(-0.5)) : Real(0);
    if (x >= 3) return 0;
    const Real angle = Real(3.14159265358979323846) * x;
    return x == 0 ? Real(1) : Real(sin(angle)) / angle * (Real(sin(angle / 3)) / (angle / 3));
  }
  CRESSET_DEVICE Real total() const {
    Real sum = 0;
    for (int32_t at = begin; at < end; ++at) sum += weight(at);
    return sum;
  }
};
CRESSET_DEVICE inline float reach_of(int32_t mode) {
  return mode == kLanczos ? 3.0f : mode == kCubic || mode == kWideCubic ? 2.0f : 1.0f;
}
template <class Real>
CRESSET_DEVICE inline ResampledFilter<Real> filter_of(const ResampledAxis& a, int32_t i) {
  const Real step = static_cast<Real>(a.step), reach = static_cast<Real>(reach_of(a.mode)),
             support = step >= 1 ? reach * step : reach, middle = (static_cast<Real>(i) + Real(0.5)) * step,
             low = middle - support + Real(0.5), high = middle + support + Real(0.5);
  return {low > 0 ? static_cast<int32_t>(low) : 0,
          high < static_cast<Real>(a.old_size) ? static_cast<int32_t>(high) : a.old_size, a.mode, middle,
          step >= 1 ? 1 / step : Real(1)};
}

// The new elements that may be made of old element `at`: all that are, and a few that are not.
struct ResampledRange {
  int32_t begin, end;
};
CRESSET_DEVICE inline ResampledRange made_of(const ResampledAxis& a, int32_t at) {
  if (a.mode == kSame) return {at, at + 1};
  if (!(a.step > 0)) return {0, a.new_size};
  const bool is_wide = a.mode >= kWideLinear;
  const float step = static_cast<float>(a.step), inverse = 1.0f / step,
              reach = reach_of(a.mode) * (is_wide && step > 1.0f ? step : 1.0f),
              shift = (a.align_corners && !is_wide) || a.mode == kNearest || a.mode == kNearestExact ? 0.0f : 0.5f;
  const float low = (static_cast<float>(at) - reach + shift) * inverse - 1.0f,
              high = (static_cast<float>(at) + reach + shift) * inverse + 1.0f;
  const int32_t begin = at == 0 || low < 0 ? 0 : static_cast<int32_t>(low),
                end = at == a.old_size - 1 || high >= static_cast<float>(a.new_size) ? a.new_size
                                                                                     : static_cast<int32_t>(high) + 1;
  return {begin, end < a.new_size ? end : a.new_size};
}

}  // namespace cresset
