// Strided dimensions on their way to a kernel: the structs are those of cresset/cuda/kernels/block.cuh.
#pragma once
#include <cstdint>

#include "cuda/divider.h"
#include "tensor/space.h"

namespace cresset::cuda {

struct Walk {
  static constexpr int kMostDims = 12;
  int32_t rank = 0, unused = 0;
  int64_t count = 1;
  Divider sizes[kMostDims];
  int64_t strides[kMostDims] = {};
};

// The dimensions of a tensor as a kernel is told them.
struct Space : cresset::Space {
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

// The most elements, a power of two up to `most`, that can be loaded at once: all strides but the innermost, and the
// address, are multiples.
inline int common_vector(int most, int64_t width, const void* data, std::initializer_list<const Space*> spaces,
                         bool inner_of_last) {
  int64_t bits = static_cast<int64_t>(reinterpret_cast<uintptr_t>(data)) / width | most;
  if (reinterpret_cast<uintptr_t>(data) % static_cast<uintptr_t>(width)) return 1;
  const Space* last = *(spaces.end() - 1);
  for (const Space* s : spaces)
    for (int64_t d = 0; d < s->rank() - (inner_of_last && s == last); ++d) bits |= s->strides[d];
  return static_cast<int>(bits & -bits);
}

}  // namespace cresset::cuda
