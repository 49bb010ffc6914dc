// What the product of matrices needs from one instruction set: see Note [How a product is computed] in gemm.h.
#pragma once
#include <cstddef>

#include "ops/gemm.h"

namespace cresset {

// k in blocks so long that adding their sums costs little, while a panel of b is read again from the second-level
// cache. The length of the blocks decides the order of sums, so it is the same on every machine; rows are taken
// together as they fit that cache, which changes no sum.
inline constexpr int64_t kBlockK = 384, kBlockN = 3072;
int64_t first_level_cache(), second_level_cache();  // bytes
inline constexpr int64_t kFewLines = 4;             // so few are never worth packing the other side
inline constexpr int64_t kSeveralLines = 8;         // nor so many, if the lines are long
inline constexpr int64_t kMostRows = 8;             // of a tile, in any instruction set
inline constexpr int64_t kManyLines = 1024;         // with more, packing the other side costs less than 1 %
inline constexpr int64_t kPage = 4096;              // bytes

// Serial products. No dimension is zero.
template <class T>
struct ProductKernels {
  void (*tiles)(const Product<T>&);      // any
  void (*few_lines)(const Product<T>&);  // a or b has at most kSeveralLines lines; the lines of both are contiguous
  void (*one_line)(
      const Product<T>&);  // a or b has one line, the other's lie side by side; if it is b's, c is contiguous
  void (*pack_rows)(const Factor<T>& a, int64_t m, int64_t k, T* to);
};

template <class T>
ProductKernels<T> product_kernels_baseline();
template <class T>
ProductKernels<T> product_kernels_avx2();
template <class T>
ProductKernels<T> product_kernels_avx512();
ProductKernels<float> product_kernels_of_pairs();         // for multiply_pairs
ProductKernels<float> product_kernels_of_matrix_tiles();  // likewise, where the processor has AMX

// A piece of aligned memory that a thread keeps and that grows as needed; what it held is lost when it grows.
class Scratch {
 public:
  Scratch() = default;
  Scratch(const Scratch&) = delete;
  ~Scratch();
  template <class T>
  T* take(int64_t elements) {
    const auto bytes = static_cast<size_t>(elements) * sizeof(T);
    if (bytes > size_) grow(bytes);
    return static_cast<T*>(memory_);
  }

 private:
  void grow(size_t bytes);
  void* memory_ = nullptr;
  size_t size_ = 0;
};
Scratch& panel_scratch();  // of the calling thread

}  // namespace cresset
