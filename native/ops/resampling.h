// The dimensions of `_resample`, read from its arguments.
#pragma once
#include <array>

#include "base/resampled_axis.h"
#include "dispatch/call.h"

namespace cresset {

struct ResampledAxes {
  std::array<ResampledAxis, 3> all;  // depth, height, width; those that are not there have one element
  bool back;                         // from new elements to old ones
  explicit ResampledAxes(const Call& c);
  int64_t old_count() const { return int64_t{all[0].old_size} * all[1].old_size * all[2].old_size; }
  int64_t new_count() const { return int64_t{all[0].new_size} * all[1].new_size * all[2].new_size; }
  bool is_nearest() const {
    for (const ResampledAxis& a : all)
      if (a.mode >= kLinear) return false;
    return true;
  }
};

}  // namespace cresset
