#include "cuda/transpose.h"

#include <algorithm>
#include <limits>

#include "cuda/divider.h"
#include "cuda/launch.h"
#include "cuda/pointwise.h"

namespace cresset::cuda {
namespace {

constexpr int kTile = 32, kRows = 8, kMostDims = 8;

const KernelFamily kTranspose("transpose.cuh", "transpose", {"WORD", "RANK"}, {"-DSINGLE"});
const KernelFamily kPairs("transpose.cuh", "transpose_pairs", {"RANK"}, {"-DPAIRS"});

// As in transpose.cuh.
struct Transposition {
  char* to;
  const char* from;
  int64_t columns, rows, to_row, from_column;
  Divider column_tiles, row_tiles;
  Divider sizes[kMostDims];
  int64_t to_strides[kMostDims] = {}, from_strides[kMostDims] = {};
};

Dtype word_dtype(int64_t width) {
  return width == 1   ? Dtype::u8
         : width == 2 ? Dtype::i16
         : width == 4 ? Dtype::i32
         : width == 8 ? Dtype::i64
                      : Dtype::c128;
}

struct Walked {
  Dims sizes, to, from;
};

// Both sides walk the last dimension one by one: its elements are taken as fewer, wider words. Gives the width.
int64_t widen(Walked& w, const char* to, const char* from, int64_t width) {
  const int64_t last = w.sizes.size() - 1;
  if (last < 0 || w.to[last] != 1 || w.from[last] != 1) return width;
  int64_t word = 16;
  const auto fits = [&](int64_t elements) {
    while (elements * width % word) word /= 2;
  };
  fits(w.sizes[last]);
  for (int64_t d = 0; d < last; ++d) fits(w.to[d]), fits(w.from[d]);
  while ((reinterpret_cast<uintptr_t>(to) | reinterpret_cast<uintptr_t>(from)) % static_cast<uintptr_t>(word))
    word /= 2;
  if (word <= width) return width;
  const int64_t elements = word / width;
  w.sizes[last] /= elements;
  for (int64_t d = 0; d < last; ++d) w.to[d] /= elements, w.from[d] /= elements;
  return word;
}

bool copy_by_tiles(const Walked& w, char* to, const char* from, int64_t width, Device device) {
  const int64_t rank = w.sizes.size(), last = rank - 1;
  if (rank < 2 || rank - 2 > kMostDims || w.to[last] != 1 || w.sizes[last] < 8) return false;
  int64_t other = -1;  // the innermost dimension of `from`
  for (int64_t d = 0; d < last; ++d)
    if (w.from[d] == 1 && w.sizes[d] >= 8 && (other < 0 || w.sizes[d] > w.sizes[other])) other = d;
  if (other < 0 || w.from[last] <= 1) return false;
  Transposition t{to, from, w.sizes[last], w.sizes[other], w.to[other], w.from[last], {}, {}, {}, {}, {}};
  int64_t together = t.columns | t.rows | t.to_row | t.from_column |
                     static_cast<int64_t>((reinterpret_cast<uintptr_t>(to) | reinterpret_cast<uintptr_t>(from)) / 2);
  for (int64_t d = 0; d < last; ++d)
    if (d != other) together |= w.to[d] | w.from[d];
  const bool pairs = width == 2 && together % 2 == 0;
  const int64_t tile = pairs ? 2 * kTile : kTile, column_tiles = divide_up(t.columns, tile),
                row_tiles = divide_up(t.rows, tile);
  t.column_tiles = Divider(column_tiles);
  t.row_tiles = Divider(row_tiles);
  int64_t blocks = column_tiles * row_tiles;
  const int compiled = rank - 2 <= 1 ? 1 : rank - 2 <= 3 ? 3 : kMostDims;
  int64_t at = compiled - (rank - 2);
  for (int64_t d = 0; d < last; ++d) {
    if (d == other) continue;
    t.sizes[at] = Divider(w.sizes[d]);
    t.to_strides[at] = w.to[d];
    t.from_strides[at++] = w.from[d];
    blocks *= w.sizes[d];
  }
  if (blocks >= std::numeric_limits<int32_t>::max()) return false;
  if (pairs)
    kPairs.launch(Place(device), {compiled}, blocks, kTile * kRows, 0, t);
  else
    kTranspose.launch(Place(device), {static_cast<int>(width), compiled}, blocks, kTile * kRows, 0, t);
  return true;
}

}  // namespace

void copy_strided(const Operand& to, const Operand& from, DimsView sizes, Device device) {
  if (to.dtype != from.dtype) return launch_copy(to, from, sizes, device);
  Walked w{Dims(sizes), to.strides, from.strides};
  Dims* strides[2] = {&w.to, &w.from};
  coalesce(w.sizes, strides, 2);
  for (const int64_t s : w.sizes)
    if (s == 0) return;
  const int64_t width = widen(w, to.data, from.data, size_of(to.dtype));
  if (copy_by_tiles(w, to.data, from.data, width, device)) return;
  const Dtype word = word_dtype(width);
  launch_copy({to.data, word, word, w.to}, {from.data, word, word, w.from}, w.sizes, device);
}

}  // namespace cresset::cuda
