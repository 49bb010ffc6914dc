// Dimensions walked in row-major order; neighbors that lie behind one another are one dimension.
#pragma once
#include "base/small_vector.h"

namespace cresset {

struct Space {
  Dims sizes, strides;
  int64_t count = 1;

  void add(int64_t size, int64_t stride) {
    count *= size;
    if (size == 1) return;
    if (!sizes.empty() && strides.back() == size * stride) {
      sizes.back() *= size;
      strides.back() = stride;
    } else {
      sizes.push_back(size);
      strides.push_back(stride);
    }
  }
  int64_t rank() const { return sizes.size(); }
  int64_t inner_size() const { return sizes.empty() ? 1 : sizes.back(); }
  int64_t inner_stride() const { return sizes.empty() ? 0 : strides.back(); }
  // Where the element with this number lies.
  int64_t offset(int64_t index) const {
    int64_t at = 0;
    for (int64_t d = rank() - 1; d > 0; --d) {
      at += index % sizes[d] * strides[d];
      index /= sizes[d];
    }
    return rank() ? at + index * strides[0] : 0;
  }
};

}  // namespace cresset
