// One coordinate of a grid: which elements along a dimension a place between them is read from, how they count, and how
// that changes with the coordinate.
//
// CUDA kernels include this file too: cresset/cuda/kernels/grid.cuh.
#pragma once
#ifndef CRESSET_KERNEL
#include <cmath>
#include <cstdint>
#ifndef CRESSET_DEVICE
#define CRESSET_DEVICE
#endif
#endif
#include "resampled_axis.h"

namespace cresset {

enum GridMode : int32_t { kGridBilinear, kGridNearest, kGridBicubic };
enum GridPadding : int32_t { kPadZeros, kPadBorder, kPadReflection };

// Up to four elements; those outside have the place -1.
template <class Real>
struct GridTaps {
  int32_t at[kMostTaps];
  Real weight[kMostTaps], slope[kMostTaps];  // slope: of the weight, by the coordinate
};

// From outside to inside; `slope` is multiplied by that of what is done.
template <class Real>
CRESSET_DEVICE inline Real brought_inside(Real x, int32_t size, int32_t padding, bool align_corners, Real& slope) {
  if (padding == kPadZeros) return x;
  if (padding == kPadReflection) {
    const Real low = align_corners ? Real(0) : Real(-0.5),
               span = align_corners ? static_cast<Real>(size - 1) : static_cast<Real>(size);
    if (span == 0) {
      x = 0;
      slope = 0;
    } else {
      if (x < low) slope = -slope;
      const Real distance = x < low ? low - x : x - low, extra = fmod(distance, span), turns = floor(distance / span);
      const bool even = fmod(turns, Real(2)) == 0;
      x = even ? extra + low : span - extra + low;
      if (!even) slope = -slope;
    }
  }
  const Real last = static_cast<Real>(size - 1);
  slope =
      (x > 0) & (x < last) ? slope : Real(0);  // at the border and beyond it the place no longer depends on the grid
  const Real above = x > 0 ? x : Real(0);
  return above < last ? above : last;
}

template <class Real>
CRESSET_DEVICE inline int32_t place_inside(Real x, int32_t size) {
  return static_cast<int32_t>((x >= 0) & (x <= static_cast<Real>(size - 1)) ? x : Real(-1));
}

// From [-1, 1] to between the elements.
template <class Real>
CRESSET_DEVICE inline Real grid_place(Real coordinate, int32_t size, bool align_corners) {
  const Real whole = static_cast<Real>(size);
  return align_corners ? (coordinate + 1) / 2 * (whole - 1) : ((coordinate + 1) * whole - 1) / 2;
}

// `taps` of them for a place: 1 for nearest, 2 for bilinear, 4 for bicubic.
template <int taps, class Real>
CRESSET_DEVICE inline GridTaps<Real> taps_at(Real x, int32_t size, int32_t padding, bool align_corners) {
  GridTaps<Real> t;
  const Real whole = static_cast<Real>(size);
  Real slope = align_corners ? (whole - 1) / 2 : whole / 2;
  if (taps != 4) x = brought_inside(x, size, padding, align_corners, slope);
  if (taps == 1) {
    t.at[0] = place_inside(Real(rint(x)), size);
    t.weight[0] = 1, t.slope[0] = 0;
    return t;
  }
  const Real first = floor(x);
  if (taps == 2) {
    t.at[0] = place_inside(first, size), t.at[1] = place_inside(first + 1, size);
    t.weight[0] = first + 1 - x, t.weight[1] = x - first;
    t.slope[0] = -slope, t.slope[1] = slope;
    return t;
  }
  constexpr Real a = Real(-0.75);
  const Real part = x - first;
  t.weight[0] = cubic_far(part + 1), t.weight[1] = cubic_near(part), t.weight[2] = cubic_near(1 - part),
  t.weight[3] = cubic_far(2 - part);
  const auto near_slope = [](Real v) { return (3 * (a + 2) * v - 2 * (a + 3)) * v; };
  const auto far_slope = [](Real v) { return (3 * a * v - 10 * a) * v + 8 * a; };
  t.slope[0] = far_slope(part + 1) * slope, t.slope[1] = near_slope(part) * slope;
  t.slope[2] = -near_slope(1 - part) * slope, t.slope[3] = -far_slope(2 - part) * slope;
  for (int k = 0; k < 4; ++k) {
    Real ignored = 0;
    t.at[k] = place_inside(
        Real(floor(brought_inside(first + static_cast<Real>(k - 1), size, padding, align_corners, ignored))), size);
  }
  return t;
}

template <int taps, class Real>
CRESSET_DEVICE inline GridTaps<Real> grid_taps(Real coordinate, int32_t size, int32_t padding, bool align_corners) {
  return taps_at<taps>(grid_place(coordinate, size, align_corners), size, padding, align_corners);
}

}  // namespace cresset
