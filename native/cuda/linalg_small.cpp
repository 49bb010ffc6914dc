#include "cuda/linalg_small.h"

#include <algorithm>
#include <limits>

#include "cuda/launch.h"

namespace cresset::cuda {
namespace {

constexpr int64_t kMostRows = 128;          // of a triangle: four a lane
constexpr int64_t kMostBytes = 160 * 1024;  // of a block's shared memory
constexpr int64_t kSolveThreads = 128;      // as there
constexpr int64_t kMostBlocks = std::numeric_limits<int32_t>::max();

// What a matrix takes there: as in linalg_small.cuh.
int64_t bytes_of(Dtype d, int64_t rows, int64_t columns) { return (rows | 1) * columns * size_of(d); }
int rows_a_lane(int64_t rows) { return rows <= 32 ? 1 : rows <= 64 ? 2 : 4; }
// Threads for so many columns, of which a warp has one at a time.
int64_t threads_for(int64_t columns) { return columns <= 8 ? 128 : columns <= 16 ? 256 : 512; }

Place place_of(const Matrices& m) { return Place(Device{DeviceType::cuda, static_cast<int8_t>(m.device)}); }
int32_t small(int64_t n) { return static_cast<int32_t>(n); }

}  // namespace

bool solve_small(const Matrices& a, const Matrices& b, std::span<const Triangle> triangles, const int* pivots,
                 bool exchanges_last) {
  static const KernelFamily kernel("linalg_small.cuh", "solve_small", {"T", "ROWS"}, {"-DSOLVE", "--fmad=true"});
  const int64_t n = a.rows, shared = bytes_of(a.dtype, n, n) + 2 * n * 4;
  if (n > kMostRows || shared > kMostBytes) return false;
  int32_t kinds = exchanges_last ? 1 << 16 : 0, shift = 0;
  for (const Triangle& t : triangles) {
    const bool transposed = t.form != Form::plain;
    const int32_t kind =
        1 | (t.upper != transposed) << 1 | t.unit << 2 | transposed << 3 | (t.form == Form::adjoint) << 4;
    kinds |= kind << shift;
    shift += 8;
  }
  const int64_t warps = kSolveThreads / 32, wanted = 8 * properties(a.device).multiprocessors,
                each = warps * std::max<int64_t>(1, a.count * b.columns / (warps * wanted)),
                blocks = divide_up(b.columns, each);
  if (a.count * blocks > kMostBlocks) return false;
  kernel.launch(place_of(a), {a.dtype, rows_a_lane(n)}, a.count * blocks, kSolveThreads, shared, a.data, b.data, pivots,
                small(n), small(b.columns), small(each), small(blocks), kinds);
  return true;
}

bool geqrf_small(const Matrices& a, char* tau) {
  static const KernelFamily kernel("linalg_small.cuh", "factor_small", {"T"}, {"-DFACTOR", "--fmad=true"});
  const int64_t shared = bytes_of(a.dtype, a.rows, a.columns);
  if (shared > kMostBytes || std::min(a.rows, a.columns) > kMostRows || a.count > kMostBlocks) return false;
  kernel.launch(place_of(a), {a.dtype}, a.count, threads_for(a.columns), shared, a.data, tau, small(a.rows),
                small(a.columns));
  return true;
}

bool orgqr_small(const Matrices& q, const char* tau, int64_t reflectors) {
  static const KernelFamily kernel("linalg_small.cuh", "form_small", {"T"}, {"-DFORM", "--fmad=true"});
  const int64_t shared = bytes_of(q.dtype, q.rows, q.columns);
  if (shared > kMostBytes || reflectors > kMostRows || q.count > kMostBlocks) return false;
  kernel.launch(place_of(q), {q.dtype}, q.count, threads_for(q.columns), shared, q.data, tau, small(q.rows),
                small(q.columns), small(reflectors));
  return true;
}

bool least_squares_small(const Matrices& a, const Matrices& b, int* info) {
  static const KernelFamily kernel("linalg_small.cuh", "least_squares_small", {"T", "ROWS"},
                                   {"-DLEAST", "--fmad=true"});
  const int64_t columns = a.columns + b.columns, shared = bytes_of(a.dtype, a.rows, columns);
  if (a.rows < a.columns || shared > kMostBytes || a.columns > kMostRows || a.count > kMostBlocks) return false;
  kernel.launch(place_of(a), {a.dtype, rows_a_lane(a.columns)}, a.count, threads_for(columns), shared, a.data, b.data,
                info, small(a.rows), small(a.columns), small(b.columns));
  return true;
}

}  // namespace cresset::cuda
