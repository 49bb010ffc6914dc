// Images and volumes in another size, along up to three dimensions at once: MAKE, new elements of old ones, and BACK,
// old elements of the new ones that were made of them: the gradient, gathered in a fixed order. A thread computes one
// place of up to 8 planes, so that the weights are computed once for them. TAPS: the most along a dimension; 0: wide
// filters along some, whose weights are divided by the sum of all, which TOTALS makes beforehand for BACK.
#pragma once
#include "divider.cuh"
#include "resampled_axis.h"

constexpr int kPlanes = 8;
using A = opmath<T>;

// The same as in native/cuda/resampling.cpp.
struct Resampling {
  int64_t planes, places;  // of a plane that is computed
  Divider heights, widths, place_blocks;
  int64_t from_plane, from_depth, from_row;  // steps of what is read, whose innermost elements lie side by side
  ResampledAxis axes[3];
  A* totals[3];  // of the new elements of each axis
};

#ifdef TOTALS
extern "C" __global__ void __launch_bounds__(256) filter_totals(const Resampling r) {
  after_earlier_work();
  int32_t i = static_cast<int32_t>(blockIdx.x) * 256 + static_cast<int32_t>(threadIdx.x);
#pragma unroll
  for (int d = 0; d < 3; ++d) {
    const ResampledAxis& axis = r.axes[d];
    if (i >= 0 && i < axis.new_size) r.totals[d][i] = axis.mode >= kWideLinear ? filter_of<A>(axis, i).total() : A(1);
    i -= axis.new_size;
  }
}
#else

struct Where {
  int64_t first_plane, place;
  int32_t at[3];
};
__device__ __forceinline__ bool find(const Resampling& r, Where& w) {
  const uint32_t block = blockIdx.x, group = divided(block, r.place_blocks);
  w.first_plane = static_cast<int64_t>(group) * kPlanes;
  w.place = static_cast<int64_t>(block - group * r.place_blocks.divisor) * 256 + threadIdx.x;
  if (w.place >= r.places) return false;
  const uint32_t place = static_cast<uint32_t>(w.place), rows = divided(place, r.widths),
                 layers = divided(rows, r.heights);
  w.at[2] = static_cast<int32_t>(place - rows * r.widths.divisor);
  w.at[1] = static_cast<int32_t>(rows - layers * r.heights.divisor);
  w.at[0] = static_cast<int32_t>(layers);
  return true;
}

// Adds weight * x to the sums of the planes.
__device__ __forceinline__ void add_planes(A (&sums)[kPlanes], A weight, const T* x, int64_t step, int planes) {
  T v[kPlanes];
#pragma unroll
  for (int p = 0; p < kPlanes; ++p)
    if (p < planes) v[p] = x[p * step];
#pragma unroll
  for (int p = 0; p < kPlanes; ++p)
    if (p < planes) sums[p] = sums[p] + weight * convert<A>(v[p]);
}
__device__ __forceinline__ void add_sums(A (&sums)[kPlanes], A weight, const A (&more)[kPlanes]) {
#pragma unroll
  for (int p = 0; p < kPlanes; ++p) sums[p] = sums[p] + weight * more[p];
}

#if TAPS == 0
// The old elements of a new one along an axis, and their weights.
struct Filter {
  int32_t begin, end;
  bool is_wide;
  ResampledFilter<A> wide;
  A total;
  CRESSET_INLINE Filter(const ResampledAxis& axis, int32_t i)
      : begin(i), end(i + 1), is_wide(axis.mode >= kWideLinear), wide{}, total(1) {
    if (!is_wide) return;  // the axis stays as it is
    wide = filter_of<A>(axis, i);
    begin = wide.begin, end = wide.end, total = wide.total();
  }
  CRESSET_INLINE A weight(int32_t at) const { return is_wide ? wide.weight(at) / total : A(1); }
};
// How much an old element counts for the new one i.
CRESSET_INLINE A weight_back(const Resampling& r, int d, int32_t i, int32_t at) {
  if (r.axes[d].mode < kWideLinear) return A(1);
  const ResampledFilter<A> filter = filter_of<A>(r.axes[d], i);
  return at < filter.begin || at >= filter.end ? A(0) : filter.weight(at) / r.totals[d][i];
}
#else
CRESSET_INLINE A weight_back(const Resampling& r, int d, int32_t i, int32_t at) {
  return weight_of<A>(r.axes[d], i, at);
}
#endif

extern "C" __global__ void __launch_bounds__(256) resample(const T* x, T* y, const Resampling r) {
  after_earlier_work();
  Where w;
  if (!find(r, w)) return;
  const int64_t rest = r.planes - w.first_plane;
  const int planes = rest < kPlanes ? static_cast<int>(rest) : kPlanes;
  const T* from = x + w.first_plane * r.from_plane;
  A total[kPlanes] = {};
#if defined(MAKE) && TAPS == 0
  const Filter z(r.axes[0], w.at[0]), v(r.axes[1], w.at[1]), u(r.axes[2], w.at[2]);
#pragma unroll 1
  for (int32_t k = z.begin; k < z.end; ++k) {
    A layer[kPlanes] = {};
#pragma unroll 1
    for (int32_t j = v.begin; j < v.end; ++j) {
      A row[kPlanes] = {};
      const T* line = from + k * r.from_depth + j * r.from_row;
#pragma unroll 1
      for (int32_t i = u.begin; i < u.end; ++i) add_planes(row, u.weight(i), line + i, r.from_plane, planes);
      add_sums(layer, v.weight(j), row);
    }
    add_sums(total, z.weight(k), layer);
  }
#elif defined(MAKE)
  const ResampledTaps<A> z = taps_of<A>(r.axes[0], w.at[0]), v = taps_of<A>(r.axes[1], w.at[1]),
                         u = taps_of<A>(r.axes[2], w.at[2]);
#pragma unroll
  for (int k = 0; k < (TAPS == 4 ? 1 : TAPS); ++k) {  // volumes are not cubic
    if (k >= z.count) break;
    A layer[kPlanes] = {};
#pragma unroll
    for (int j = 0; j < TAPS; ++j) {
      if (j >= v.count) break;
      A row[kPlanes] = {};
      const T* line = from + z.at[k] * r.from_depth + v.at[j] * r.from_row;
#pragma unroll
      for (int i = 0; i < TAPS; ++i)
        if (i < u.count) add_planes(row, u.weight[i], line + u.at[i], r.from_plane, planes);
      add_sums(layer, v.weight[j], row);
    }
    add_sums(total, z.weight[k], layer);
  }
#else
  const ResampledRange z = made_of(r.axes[0], w.at[0]), v = made_of(r.axes[1], w.at[1]),
                       u = made_of(r.axes[2], w.at[2]);
#pragma unroll 1
  for (int32_t k = z.begin; k < z.end; ++k) {
    const A depth_weight = weight_back(r, 0, k, w.at[0]);
    if (depth_weight == 0) continue;
    A layer[kPlanes] = {};
#pragma unroll 1
    for (int32_t j = v.begin; j < v.end; ++j) {
      const A row_weight = weight_back(r, 1, j, w.at[1]);
      if (row_weight == 0) continue;
      A row[kPlanes] = {};
      const T* line = from + k * r.from_depth + j * r.from_row;
#pragma unroll 1
      for (int32_t i = u.begin; i < u.end; ++i) {
        const A weight = weight_back(r, 2, i, w.at[2]);
        if (weight != 0) add_planes(row, weight, line + i, r.from_plane, planes);
      }
      add_sums(layer, row_weight, row);
    }
    add_sums(total, depth_weight, layer);
  }
#endif
#pragma unroll
  for (int p = 0; p < kPlanes; ++p)
    if (p < planes) y[(w.first_plane + p) * r.places + w.place] = convert<T>(total[p]);
}
#endif
