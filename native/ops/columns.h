// One dimension of images whose patches are columns, read from the arguments of `_from_columns`.
#pragma once
#include "dispatch/call.h"

namespace cresset {

struct PatchAxis {
  int64_t size, kernel, dilation, padding, stride, places;
  PatchAxis(const Call& c, size_t d);
};

}  // namespace cresset
