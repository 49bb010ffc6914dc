// The product of two matrices of which matmul, linear and convolution are made.
//
// Note [How a product is computed]
// C = A B is cut into tiles of a few rows by two vectors of columns, which stay in registers while the summed dimension
// k runs. A factor that is large, or that lies badly, is first copied ("packed") into panels: for each k, the tile's
// lines side by side. k runs in blocks of kBlockK: a block's sum starts from zero, and the blocks' sums are added in
// order. So an element of C depends on its row of A, its column of B and the strategy for the shape, never on the
// number of threads.
#pragma once
#include <cstdint>

namespace cresset {

// One factor of a product: the rows of A or the columns of B, here both called lines, of k elements each.
template <class T>
struct Factor {
  const T* data = nullptr;
  int64_t line_step = 0, k_step = 0;
  // What does not lie in memory as lines with steps (the patches of an image) packs itself: panel[p * width + i]
  // becomes element k0 + p of line first + i, for p < length; lines from count to width become zero.
  using Pack = void (*)(const void* context, T* panel, int64_t width, int64_t first, int64_t count, int64_t k0,
                        int64_t length);
  Pack pack = nullptr;
  const void* context = nullptr;
  int64_t first = 0, k_first = 0;  // of the lines and of k, when it packs itself
  bool packed = false;             // only of a: data holds the panels of all lines, as pack_rows makes them

  Factor from(int64_t line) const {
    Factor f = *this;
    if (pack)
      f.first += line;
    else
      f.data += line * line_step;
    return f;
  }
  Factor from_k(int64_t k) const {
    Factor f = *this;
    if (pack)
      f.k_first += k;
    else
      f.data += k * k_step;
    return f;
  }
};

// c = alpha a b + beta start, where a has m lines and b has n. Rows of c and of start are contiguous. start may be c
// itself; without one, it counts as zero. row_start has one number for each row of c, added to all of it.
template <class T>
struct Product {
  int64_t m = 0, n = 0, k = 0;
  Factor<T> a, b;
  T* c = nullptr;
  int64_t c_row = 0;
  const T* start = nullptr;
  int64_t start_row = 0;
  const T* row_start = nullptr;
  T alpha = 1, beta = 1;
  const Product* next = nullptr;  // of a batch: its operands are fetched into the cache meanwhile
};

// T is float, double, uint32_t or uint64_t (signed integers wrap the same way). Threads are used where they help.
template <class T>
void multiply(const Product<T>& product);

// The same of bfloat16 numbers: a float of a factor stands for two of them, which follow each other along k. Only where
// the processor has such products.
bool multiplies_pairs();
void multiply_pairs(const Product<float>& product);

// For who shares the work out himself: the product by tiles on the calling thread, and a factor a packed once for many
// products.
template <class T>
void multiply_here(const Product<T>& product);
template <class T>
int64_t packed_rows_size(int64_t m, int64_t k);  // in elements
template <class T>
Factor<T> pack_rows(const Factor<T>& a, int64_t m, int64_t k, T* to);

}  // namespace cresset
