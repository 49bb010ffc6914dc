// Large products of floats, left to a library in pieces.
#include <algorithm>

#include "base/parallel.h"
#include "ops/gemm.h"

namespace cresset {

void (*library_product)(const LibraryProduct&) = nullptr;

namespace {

// The library is ahead of our tiles by a sixth from about this much work on, and behind below it.
constexpr double kLibraryWork = 4e6;

// Rows (or columns) of one call: at least two pieces, and the same for any number of threads, so that the result is too.
int64_t piece_size(int64_t length) { return std::min<int64_t>(256, (length / 2 + 15) / 16 * 16); }

// One side of a factor must be contiguous.
bool is_plain(const Factor<float>& f) { return !f.pack && !f.packed && f.k_step > 0 && f.line_step > 0 && std::min(f.k_step, f.line_step) == 1 && f.k_step != f.line_step; }

}  // namespace

bool multiply_by_library(const Product<float>& p) {
  if (!library_product || static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k) < kLibraryWork) return false;
  if (p.row_start || !is_plain(p.a) || !is_plain(p.b) || std::min({p.m, p.n, p.k}) < 16 || in_parallel_region()) return false;
  LibraryProduct whole{};
  whole.transpose_a = p.a.k_step != 1;
  whole.transpose_b = p.b.line_step != 1;
  // Where it transposes b it is behind our tiles: by a quarter if it transposes a as well, by a tenth if there is little to sum or few rows.
  if (whole.transpose_b && (whole.transpose_a || p.k <= 256 || p.m <= 64)) return false;
  whole.a_row = std::max(p.a.k_step, p.a.line_step);
  whole.b_row = std::max(p.b.k_step, p.b.line_step);
  whole.k = p.k;
  whole.alpha = p.alpha;
  whole.beta = p.start ? p.beta : 0;
  whole.c_row = p.c_row;
  const bool by_rows = p.m >= p.n;
  const int64_t length = by_rows ? p.m : p.n, size = piece_size(length), pieces = (length + size - 1) / size;
  parallel_for(pieces, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = i * size, count = std::min(size, length - first);
      LibraryProduct piece = whole;
      piece.m = by_rows ? count : p.m;
      piece.n = by_rows ? p.n : count;
      piece.a = p.a.data + (by_rows ? first * p.a.line_step : 0);
      piece.b = p.b.data + (by_rows ? 0 : first * p.b.line_step);
      piece.c = p.c + (by_rows ? first * p.c_row : first);
      if (p.start && p.start != p.c) {
        const float* start = p.start + (by_rows ? first * p.start_row : first);
        for (int64_t r = 0; r < piece.m; ++r) std::copy(start + r * p.start_row, start + r * p.start_row + piece.n, piece.c + r * p.c_row);
      }
      library_product(piece);
    }
  });
  return true;
}

}  // namespace cresset
