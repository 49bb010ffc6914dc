// Strided dimensions on their way to a kernel: the structs are those of cresset/cuda/kernels/block.cuh.
#pragma once
#include <cstdint>

#include "base/small_vector.h"
#include "cuda/divider.h"

namespace cresset::cuda {

struct Walk {
  static constexpr int kMostDims = 12;
  int32_t rank = 0, unused = 0;
  int64_t count = 1;
  Divider sizes[kMostDims];
  int64_t strides[kMostDims] = {};
};

// Dimensions walked in row-major order; neighbours that lie behind one another are one dimension.
struct Space {
  SmallVector<int64_t, 6> sizes, strides;
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
  bool fits() const {
    for (int64_t d = 1; d < rank(); ++d)
      if (sizes[d] >= int64_t{1} << 32) return false;
    return rank() <= Walk::kMostDims;
  }
  Walk walk() const {
    Walk w;
    w.rank = static_cast<int32_t>(rank());
    w.count = count;
    for (int64_t d = 0; d < rank(); ++d) {
      w.sizes[d] = Divider(sizes[d]);
      w.strides[d] = strides[d];
    }
    return w;
  }
};

// The most elements, a power of two up to `most`, that can be loaded at once: all strides but the innermost, and the address, are multiples.
inline int common_vector(int most, int64_t width, const void* data, std::initializer_list<const Space*> spaces, bool inner_of_last) {
  int64_t bits = static_cast<int64_t>(reinterpret_cast<uintptr_t>(data)) / width | most;
  if (reinterpret_cast<uintptr_t>(data) % static_cast<uintptr_t>(width)) return 1;
  const Space* last = *(spaces.end() - 1);
  for (const Space* s : spaces)
    for (int64_t d = 0; d < s->rank() - (inner_of_last && s == last); ++d) bits |= s->strides[d];
  return static_cast<int>(bits & -bits);
}

}  // namespace cresset::cuda
