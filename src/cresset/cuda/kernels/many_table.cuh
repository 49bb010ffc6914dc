// Many tensors in one launch: a table of where they lie, in the kernel's parameters, and the share of one of them that
// a block works on. The same layout as class Table in native/cuda/many.cpp. -D options:
//   LISTS      tensors of one target        CAPACITY   targets in the table, a multiple of four
//   NUMBERS    numbers of a target          SINGLES    how many of them, the last ones, are tensors of one element on
//   the device
#pragma once
#include "types.cuh"

constexpr int kRows = 16;  // targets whose numbers are equal share a row

struct Table {
  const float* scale;  // one number on the device, in the sense of the kernel; may be null
  float* found;        // another one
  int64_t chunk;       // elements of a block
  int64_t targets;
  double numbers[kRows][NUMBERS];
  uint64_t tensors[LISTS][CAPACITY];
  int64_t counts[CAPACITY];
#if SINGLES
  uint64_t singles[SINGLES][CAPACITY];
#endif
  uint32_t first_blocks[CAPACITY];
  uint16_t rows[CAPACITY];
};

struct Share {
  int target;
  int64_t begin;
  int32_t count;
};

// The share of this block: the last target whose first block is not behind it.
__device__ __forceinline__ Share find_share(const Table& table) {
  int low = 0, high = static_cast<int>(table.targets) - 1;
  while (low < high) {
    const int middle = (low + high + 1) / 2;
    if (table.first_blocks[middle] <= blockIdx.x)
      low = middle;
    else
      high = middle - 1;
  }
  const int64_t begin = static_cast<int64_t>(blockIdx.x - table.first_blocks[low]) * table.chunk,
                left = table.counts[low] - begin;
  return {low, begin, static_cast<int32_t>(left < table.chunk ? left : table.chunk)};
}
