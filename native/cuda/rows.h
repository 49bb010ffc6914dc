// How many threads a row gets: see cresset/cuda/kernels/rows.cuh.
#pragma once
#include <algorithm>
#include <bit>
#include <initializer_list>

#include "cuda/launch.h"

namespace cresset::cuda {

struct RowPlan {
  RowPlan() = default;
  int threads = 512, vector = 1, per = 1;
  bool in_registers = false;
  int64_t block = 512, blocks = 0;

  // Rows of n elements; `width` is the largest of an element, and a thread has room for `most` elements.
  RowPlan(int64_t rows, int64_t n, int64_t width, int most, std::initializer_list<const void*> addresses)
      : blocks(rows) {
    const int whole = static_cast<int>(std::max<int64_t>(1, 16 / width));
    uintptr_t bits = static_cast<uintptr_t>(n) | static_cast<uintptr_t>(whole);
    for (const void* p : addresses) {
      const auto at = reinterpret_cast<uintptr_t>(p), step = static_cast<uintptr_t>(width);
      bits |= at % step ? 1 : at / step;
    }
    vector = static_cast<int>(bits & -bits);
    const int64_t vectors = divide_up(n, vector), limit = std::max(1, most / vector);
    const auto above = [](int64_t x) {
      return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(x, 1))));
    };
    int64_t wanted = vectors <= 32 * limit ? std::min<int64_t>(32, above(vectors)) : above(divide_up(vectors, limit));
    if (wanted > 512)
      wanted =
          above(divide_up(vectors, std::max<int64_t>(1, limit / 2)));  // there are fewer registers for each of so many
    if (wanted > 1024) {                                               // too long: walked more than once
      vector = whole;
      return;
    }
    in_registers = true;
    threads = static_cast<int>(wanted);
    per = static_cast<int>(divide_up(vectors, wanted));
    if (per > 8) per = static_cast<int>(divide_up(per, 4) * 4);  // fewer kernels to compile
    block = std::max<int64_t>(threads, 128);
    blocks = divide_up(rows, block / threads);
  }
};

// Rows that are walked, however long they are: as many threads as have a few vectors each.
inline RowPlan rows_walked(int64_t rows, int64_t n, int64_t width) {
  RowPlan plan;
  plan.vector = static_cast<int>(std::max<int64_t>(1, 16 / width));
  const int64_t vectors = divide_up(n, plan.vector);
  plan.threads = vectors < 32 ? static_cast<int>(std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(vectors, 2))))
                 : vectors >= 2048 ? 512
                 : vectors >= 512  ? 256
                 : vectors >= 256  ? 128
                                   : 32;
  plan.block = std::max<int64_t>(plan.threads, 128);
  plan.blocks = divide_up(rows, plan.block / plan.threads);
  return plan;
}

}  // namespace cresset::cuda
