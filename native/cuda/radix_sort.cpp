#include "cuda/radix_sort.h"

#include <utility>

#include "cuda/divider.h"

namespace cresset::cuda {
namespace {

constexpr int kBlock = 256, kTile = kBlock * 16, kDigits = 256;  // as in radix_sort.cuh

const KernelFamily kCount("radix_sort.cuh", "count_digits", {"KEY", "FIRST", "BY_ROW"}, {"-DCOUNT"});
const KernelFamily kSum("radix_sort.cuh", "sum_counts", {"KEY", "FIRST", "BY_ROW"}, {"-DSUM"});
const KernelFamily kMove("radix_sort.cuh", "move_by_digit", {"KEY", "FIRST", "BY_ROW"}, {"-DMOVE"});
const KernelFamily kFew("radix_sort.cuh", "sort_few", {"KEY", "ITEMS"}, {"-DFEW"});

}  // namespace

SortedKeys sort_keys(const Place& place, const Tensor& keys, int64_t n, int bits, int64_t row_length) {
  const Device device = keys.device();
  const Dtype kind = keys.dtype() == Dtype::i64 ? Dtype::u64 : Dtype::u32;
  const int64_t rows = row_length ? n / row_length : 1;
  if (rows == 1 && n <= kBlock * (kind == Dtype::u64 ? 8 : 16)) {
    const SortedKeys sorted{empty({{n}}, keys.dtype(), device), empty({{n}}, Dtype::i32, device)};
    int items = 1;
    while (kBlock * items < n) items *= 2;
    kFew.launch(place, {kind, items}, 1, kBlock, 0, keys.bytes(), sorted.keys.bytes(), sorted.positions.bytes(),
                static_cast<int32_t>(n), static_cast<int32_t>(bits));
    return sorted;
  }
  // One pass at least, which writes the positions down.
  const int passes = bits > 8 ? (bits + 7) / 8 : 1, row_passes = rows > 1 ? (bits_for(rows - 1) + 7) / 8 : 0;
  const auto tiles = static_cast<int32_t>(divide_up(n, kTile));
  const Tensor counts = empty({{int64_t{kDigits} * tiles + kDigits}}, Dtype::i32, device);
  char* totals = counts.bytes() + int64_t{kDigits} * tiles * 4;
  Tensor from_keys = keys, from_positions;
  Tensor room_keys[2], room_positions[2];
  const auto count = static_cast<int32_t>(n);
  for (int pass = 0; pass < passes + row_passes; ++pass) {
    const bool first = pass == 0, by_row = pass >= passes;
    const auto shift = static_cast<int32_t>(8 * (by_row ? pass - passes : pass));
    const Divider length = Divider(by_row ? row_length : 1);
    Tensor& to_keys = room_keys[pass % 2];
    Tensor& to_positions = room_positions[pass % 2];
    if (!to_keys.defined())
      to_keys = empty({{n}}, keys.dtype(), device), to_positions = empty({{n}}, Dtype::i32, device);
    char* positions = from_positions.defined() ? from_positions.bytes() : nullptr;
    kCount.launch(place, {kind, first, by_row}, tiles, kBlock, 0, from_keys.bytes(), positions, count, shift, length,
                  counts.bytes(), tiles);
    kSum.launch(place, {kind, false, false}, kDigits, kBlock, 0, counts.bytes(), totals, tiles);
    kMove.launch(place, {kind, first, by_row}, tiles, kBlock, 0, from_keys.bytes(), positions, to_keys.bytes(),
                 to_positions.bytes(), count, shift, length, counts.bytes(), totals, tiles);
    from_keys = to_keys;
    from_positions = to_positions;
  }
  return {from_keys, from_positions};
}

}  // namespace cresset::cuda
