// What the operators of grid_sample are told: the sizes of an input and a grid.
#pragma once
#include "base/grid_taps.h"
#include "dispatch/call.h"

namespace cresset {

struct GridShape {
  int64_t samples, channels, places = 1, elements = 1;
  int rank;  // 2 or 3 dimensions
  int32_t sizes[3] = {1, 1, 1};
  GridShape(const char* who, DimsView input, DimsView grid);
};

// The number of elements that are read along each dimension.
inline int taps_of_mode(int64_t mode) { return mode == kGridNearest ? 1 : mode == kGridBicubic ? 4 : 2; }

}  // namespace cresset
