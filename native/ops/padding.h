// What `_pad` asks for, as steps over dense memory: outer x three axes x inner elements that move together.
#pragma once
#include "base/padded_axis.h"
#include "dispatch/call.h"

namespace cresset {

struct PadStep {
  int64_t outer = 1, inner = 1;
  PaddedAxis<int64_t> axes[3];
  int64_t old_count() const { return outer * inner * axes[0].size * axes[1].size * axes[2].size; }
  int64_t new_count() const { return outer * inner * axes[0].padded * axes[1].padded * axes[2].padded; }
};

struct Padding {
  PadMode mode;
  bool back;                      // from the new sizes to the old: what an old element became is summed
  SmallVector<PadStep, 2> steps;  // one, or several where dimensions far apart get a constant

  explicit Padding(const Call& c);
};

}  // namespace cresset
