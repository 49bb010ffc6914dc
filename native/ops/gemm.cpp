#include "ops/gemm.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <type_traits>
#include <vector>
#ifdef __x86_64__
#include <cpuid.h>
#endif

#include "base/error.h"
#include "base/levels.h"
#include "base/parallel.h"
#include "ops/gemm_kernels.h"
#include "tensor/blocks.h"

namespace cresset {
namespace {

template <class T>
using Serial = void (*)(const Product<T>&);

constexpr int64_t kWorkPerThread = 1 << 19;  // multiplications
constexpr int64_t kLongK = 16384;            // a small c with a longer sum is computed as several sums

template <class T>
ProductKernels<T> find_kernels() {
  if constexpr (std::is_same_v<T, uint32_t>)
    return BY_LEVEL_256(product_kernels, <T>());
  else
    return BY_LEVEL(product_kernels, <T>());
}

template <class T>
const ProductKernels<T>& the_kernels() {
  static const ProductKernels<T> the = find_kernels<T>();
  return the;
}

// A column times a row, of which nothing is summed: memory is waited for, so each row is written once, past the cache
// where it is large. (2048 x 2048 with a start: 0.8 ms instead of 2.1.)
template <class T>
struct OuterRow {
  template <class Fma>
  CRESSET_INLINE void run(T factor, const T* b, const T* start, T alpha, T beta, T* to, int64_t n) {
    if (start)
      for (int64_t j = 0; j < n; ++j) to[j] = alpha * (factor * b[j]) + beta * start[j];
    else
      for (int64_t j = 0; j < n; ++j) to[j] = alpha * (factor * b[j]);
  }
};
constexpr int64_t kShortestOuterRow = 32;

template <class T>
void outer_product(const Product<T>& p) {
  RowWriter<T> writer(p.c_row == p.n &&
                      streams_rows(p.c, p.m, p.n, sizeof(T), p.start && p.start_row && p.start != p.c ? 1 : 0));
  for (int64_t i = 0; i < p.m; ++i) {
    T* const row = p.c + i * p.c_row;
    run_vectorized_256<OuterRow<T>>(p.a.data[i * p.a.line_step], p.b.data,
                                    p.start ? p.start + i * p.start_row : nullptr, p.alpha, p.beta, writer.place(row),
                                    p.n);
    writer.write(row, p.n);
  }
  writer.finish();
}

// The way for the shape. It decides the order of the sums, so it is chosen before threads share the work out.
template <class T>
Serial<T> choose(const Product<T>& p, const ProductKernels<T>& kernels) {
  const int64_t few = std::min(p.m, p.n);
  const bool of_pairs = kernels.tiles != the_kernels<T>().tiles;
  if (p.k == 1 && !of_pairs && few > 1 && p.n >= kShortestOuterRow && p.b.line_step == 1 && !p.a.pack && !p.a.packed &&
      !p.b.pack && !p.row_start)
    return outer_product<T>;
  if (few > kSeveralLines || p.a.pack || p.b.pack || p.row_start) return kernels.tiles;
  if (few > kFewLines)
    return p.a.k_step == 1 && p.b.k_step == 1 && p.k >= 512 && std::max(p.m, p.n) >= 64 ? kernels.few_lines
                                                                                        : kernels.tiles;
  // With little k, panels are better than sums along it.
  if (p.a.k_step == 1 && p.b.k_step == 1 && (few == 1 || p.k >= 64)) return kernels.few_lines;
  if (p.m == 1 && p.b.line_step == 1) return kernels.one_line;
  if (p.n == 1 && p.a.line_step == 1 && p.c_row == 1 && (!p.start || p.start_row == 1)) return kernels.one_line;
  return kernels.tiles;
}

// c = beta start: what is left of a product over nothing.
template <class T>
void scale_start(const Product<T>& p) {
  for (int64_t i = 0; i < p.m; ++i)
    for (int64_t j = 0; j < p.n; ++j)
      p.c[i * p.c_row + j] =
          (p.start ? p.beta * p.start[i * p.start_row + j] : T(0)) + (p.row_start ? p.row_start[i] : T(0));
}

// The grid of blocks of c that threads share out: of equal ones the one whose threads share the columns, since b is
// what is packed more often.
template <class T>
void multiply_blocks(const Product<T>& p, int64_t threads, Serial<T> serially) {
  int64_t across = 1;
  for (int64_t g = 1; g <= threads; ++g)
    if (threads % g == 0 && p.m / (threads / g) + p.n / g <= p.m / (threads / across) + p.n / across) across = g;
  const int64_t down = threads / across;
  constexpr int64_t kRowUnit = kMostRows, kColumnUnit = 16;  // a tile's rows, and the widest vector
  const int64_t row_units = (p.m + kRowUnit - 1) / kRowUnit, column_units = (p.n + kColumnUnit - 1) / kColumnUnit;
  parallel_for(threads, 1, [&](int64_t begin, int64_t end) {
    for (int64_t cell = begin; cell < end; ++cell) {
      const int64_t y = cell / across, x = cell % across;
      const int64_t i0 = row_units * y / down * kRowUnit, i1 = std::min(p.m, row_units * (y + 1) / down * kRowUnit);
      const int64_t j0 = column_units * x / across * kColumnUnit,
                    j1 = std::min(p.n, column_units * (x + 1) / across * kColumnUnit);
      if (i0 >= i1 || j0 >= j1) continue;
      Product<T> part = p;
      if (threads > 1) part.next = nullptr;
      part.m = i1 - i0;
      part.n = j1 - j0;
      part.a = p.a.from(i0);
      part.b = p.b.from(j0);
      part.c += i0 * p.c_row + j0;
      if (part.start) part.start += i0 * p.start_row + j0;
      if (part.row_start) part.row_start += i0;
      serially(part);
    }
  });
}

// Each piece of k gives a c of its own; they are added in order.
template <class T>
void multiply_pieces(const Product<T>& p, Serial<T> serially) {
  const int64_t pieces = (p.k + kLongK - 1) / kLongK, size = p.m * p.n;
  std::vector<T> parts(static_cast<size_t>(pieces * size));
  parallel_for(pieces, 1, [&](int64_t begin, int64_t end) {
    for (int64_t piece = begin; piece < end; ++piece) {
      Product<T> part = p;
      const int64_t k0 = piece * kLongK;
      part.k = std::min(kLongK, p.k - k0);
      part.a = p.a.from_k(k0);
      part.b = p.b.from_k(k0);
      part.c = parts.data() + piece * size;
      part.c_row = p.n;
      part.start = nullptr;
      serially(part);
    }
  });
  for (int64_t i = 0; i < p.m; ++i)
    for (int64_t j = 0; j < p.n; ++j) {
      T sum = parts[static_cast<size_t>(i * p.n + j)];
      for (int64_t piece = 1; piece < pieces; ++piece) sum += parts[static_cast<size_t>(piece * size + i * p.n + j)];
      p.c[i * p.c_row + j] = p.start ? sum + p.beta * p.start[i * p.start_row + j] : sum;
    }
}

template <class T>
void multiply_by(const ProductKernels<T>& kernels, const Product<T>& p) {
  if (p.m == 0 || p.n == 0) return;
  if (p.k == 0) return scale_start(p);
  const Serial<T> serially = choose(p, kernels);
  const double work = static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k);
  if (work < 2 * kWorkPerThread) return serially(p);
  if (p.k > 2 * kLongK && p.m * p.n <= 32768 && !p.row_start) return multiply_pieces(p, serially);
  if (in_parallel_region()) return serially(p);
  multiply_blocks(p, std::min<int64_t>(thread_count(), static_cast<int64_t>(work / kWorkPerThread)), serially);
}

}  // namespace

Scratch::~Scratch() { std::free(memory_); }

void Scratch::grow(size_t bytes) {
  std::free(memory_);
  size_ = (bytes + 4095) / 4096 * 4096;
  memory_ = std::aligned_alloc(4096, size_);
  if (!memory_) {
    size_ = 0;
    fail(ErrorKind::out_of_memory, "out of memory: could not allocate ", bytes, " bytes for a matrix product");
  }
}

int64_t first_level_cache() {
  static const int64_t bytes = std::clamp<int64_t>(::sysconf(_SC_LEVEL1_DCACHE_SIZE), 32 << 10, 128 << 10);
  return bytes;
}

int64_t second_level_cache() {
  static const int64_t bytes = [] {
    const long size = ::sysconf(_SC_LEVEL2_CACHE_SIZE);
    return std::clamp<int64_t>(size, 256 << 10, 2 << 20);  // some machines do not tell: then it is zero
  }();
  return bytes;
}

Scratch& panel_scratch() {
  thread_local Scratch scratch;
  return scratch;
}

template <class T>
void multiply(const Product<T>& p) {
  multiply_by(the_kernels<T>(), p);
}

#ifdef __x86_64__
bool multiplies_pairs() {
  static const bool can = std::string_view(instruction_set()) == "avx512" && __builtin_cpu_supports("avx512bf16");
  return can;
}
// Tile registers are 8 KB that the system keeps for each thread that uses them; a process asks for them once.
bool may_use_matrix_tiles() {
#ifdef __linux__
  constexpr int kAskForState = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  unsigned a, b, c, features;
  constexpr unsigned kProductsOfPairs = 1u << 22, kTiles = 1u << 24;
  return __get_cpuid_count(7, 0, &a, &b, &c, &features) && (features & kProductsOfPairs) && (features & kTiles) &&
         syscall(SYS_arch_prctl, kAskForState, kTileData) == 0;
#else
  return false;
#endif
}
void multiply_pairs(const Product<float>& p) {
  static const ProductKernels<float> the =
      may_use_matrix_tiles() ? product_kernels_of_matrix_tiles() : product_kernels_of_pairs();
  multiply_by(the, p);
}
#else
bool multiplies_pairs() { return false; }
void multiply_pairs(const Product<float>&) {}
#endif

template <class T>
void multiply_here(const Product<T>& p) {
  if (p.m == 0 || p.n == 0) return;
  p.k == 0 ? scale_start(p) : the_kernels<T>().tiles(p);
}

template <class T>
int64_t packed_rows_size(int64_t m, int64_t k) {
  return (m + kMostRows - 1) / kMostRows * kMostRows * k;
}

template <class T>
Factor<T> pack_rows(const Factor<T>& a, int64_t m, int64_t k, T* to) {
  the_kernels<T>().pack_rows(a, m, k, to);
  Factor<T> f;
  f.data = to;
  f.packed = true;
  return f;
}

#define CRESSET_INSTANTIATE(T)                            \
  template void multiply(const Product<T>&);              \
  template void multiply_here(const Product<T>&);         \
  template int64_t packed_rows_size<T>(int64_t, int64_t); \
  template Factor<T> pack_rows(const Factor<T>&, int64_t, int64_t, T*);
CRESSET_INSTANTIATE(float)
CRESSET_INSTANTIATE(double)
CRESSET_INSTANTIATE(uint32_t)
CRESSET_INSTANTIATE(uint64_t)

}  // namespace cresset
