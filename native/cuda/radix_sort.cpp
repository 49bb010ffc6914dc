#include "cuda/radix_sort.h"

#include "cuda/divider.h"

namespace cresset::cuda {
namespace {

constexpr int kBlock = 256, kTile = kBlock * 16, kDigits = 256;  // as in radix_sort.cuh

const KernelFamily kCount("radix_sort.cuh", "count_digits", {"KEY", "FIRST", "BY_ROW", "LEAVES_OUT"}, {"-DCOUNT"});
const KernelFamily kSum("radix_sort.cuh", "sum_counts", {"KEY"},
                        {"-DSUM", "-DFIRST=0", "-DBY_ROW=0", "-DLEAVES_OUT=0"});
const KernelFamily kMove("radix_sort.cuh", "move_by_digit", {"KEY", "FIRST", "BY_ROW", "LEAVES_OUT"}, {"-DMOVE"});
const KernelFamily kFew("radix_sort.cuh", "sort_few", {"KEY", "ITEMS"}, {"-DFEW"});

// As in radix_sort.cuh.
struct Pass {
  char *from_keys, *from_positions, *to_keys, *to_positions;
};
struct Passes {
  char *given, *keys[2], *positions[2], *differing;
  int32_t number, by_key, by_row;
};

}  // namespace

SortedKeys sort_keys(const Place& place, const Tensor& keys, int64_t n, int bits, int64_t row_length,
                     const Tensor& differing) {
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
  const auto room = [&](Dtype d) { return empty({{n}}, d, device); };
  const bool twice = passes + row_passes > 1;
  const Tensor to_keys = room(keys.dtype()), to_positions = room(Dtype::i32),
               other_keys = twice ? room(keys.dtype()) : to_keys,
               other_positions = twice ? room(Dtype::i32) : to_positions;
  const auto count = static_cast<int32_t>(n);
  for (int pass = 0; pass < passes + row_passes; ++pass) {
    const bool by_row = pass >= passes;
    const auto shift = static_cast<int32_t>(8 * (by_row ? pass - passes : pass));
    const Divider length = Divider(by_row ? row_length : 1);
    const auto make = [&](const auto& which, bool first, bool leaves_out) {
      kCount.launch(place, {kind, first, by_row, leaves_out}, tiles, kBlock, 0, which, count, shift, length,
                    counts.bytes(), tiles);
      kSum.launch(place, {kind}, kDigits, kBlock, 0, counts.bytes(), totals, tiles);
      kMove.launch(place, {kind, first, by_row, leaves_out}, tiles, kBlock, 0, which, count, shift, length,
                   counts.bytes(), totals, tiles);
    };
    if (differing.defined()) {
      make(Passes{keys.bytes(),
                  {to_keys.bytes(), other_keys.bytes()},
                  {to_positions.bytes(), other_positions.bytes()},
                  differing.bytes(),
                  pass,
                  passes,
                  row_passes},
           false, true);
      continue;
    }
    const bool to_other = (passes + row_passes - 1 - pass) % 2;  // the last one writes to what is returned
    const Tensor &target = to_other ? other_keys : to_keys,
                 &target_positions = to_other ? other_positions : to_positions,
                 &source = to_other ? to_keys : other_keys,
                 &source_positions = to_other ? to_positions : other_positions;
    make(Pass{pass ? source.bytes() : keys.bytes(), pass ? source_positions.bytes() : nullptr, target.bytes(),
              target_positions.bytes()},
         pass == 0, false);
  }
  return {to_keys, to_positions};
}

}  // namespace cresset::cuda
