// What tiles of rows tell one another in a scan of one pass: see Note [Looking back] in
// cresset/cuda/kernels/look_back.cuh.
#pragma once
#include "cuda/launch.h"

namespace cresset::cuda {

class LookBack {
 public:
  // The same as in look_back.cuh.
  struct Slots {
    void *ready = nullptr, *values = nullptr;
    int64_t tiles = 0, groups = 0;
  } slots;

  // For rows of so many tiles; none, where nothing looks back. No value has more than 16 bytes.
  LookBack(int64_t rows, int64_t tiles, Device device) {
    if (tiles == 0) return;
    slots.tiles = tiles;
    slots.groups = tiles / 32;
    const int64_t count = rows * (tiles + slots.groups + slots.groups / 32 + 1);
    ready_ = full({{count + 2}}, Scalar(0), Dtype::i32, device);
    values_ = empty({{count, 16}}, Dtype::u8, device);
    slots.ready = ready_.bytes() + 8;
    slots.values = values_.bytes();
  }
  void* tickets() const { return ready_.defined() ? ready_.bytes() : nullptr; }

 private:
  Tensor ready_, values_;
};

}  // namespace cresset::cuda
