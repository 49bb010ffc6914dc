// Products of matrices by NVIDIA's cuBLASLt, opened when the first product is asked for.
//
// A product is planned once: descriptors and the algorithm that the library's heuristic finds best are kept by what
// they depend on (sizes, steps, dtype, alignment, settings), so that asking again costs a look into a table and the
// launch.
//
// Note [Measured plans]
// The heuristic offers several algorithms and does not always put the fastest first: on an H200 others took 0.8 to 0.99
// of its time. In a program that compiles, a product of some size that is asked for again and again has them measured,
// where it stands, with its own factors. Those that add up in the same order have the same bits: an algorithm takes the
// place of the first one only if neither of them splits k and both gave the same bits here. With mode="max-autotune"
// the fastest does, whatever its bits.
#pragma once
#include <atomic>

#include "base/scalar.h"
#include "cuda/launch.h"

namespace cresset::cuda {

// What float32 and half-precision products may do for speed: cresset.backends.cuda.matmul.
struct ProductSettings {
  std::atomic<bool> tf32 = false, reduced_f16 = true, reduced_bf16 = true;
};
extern ProductSettings product_settings;

// Note [Measured plans]
struct ProductMeasuring {
  enum Level : int { never = 0, same_bits = 1, any_bits = 2 };
  std::atomic<int> level = never;
  std::atomic<double> from = 2e9;                  // the least number of operations of a product that is measured
  std::atomic<int64_t> measured = 0, changed = 0;  // plans
};
extern ProductMeasuring product_measuring;

// D = alpha op(A) op(B) + beta C + bias for a batch of matrices that lie column after column, as the library has them:
// op(A) is m x k, op(B) is k x n, and the column j of a matrix starts at j * ld. Everything is counted in elements.
struct MatrixProduct {
  struct Factor {
    const void* data = nullptr;
    int64_t ld = 0, batch_step = 0;
    bool transposed = false;
  };
  Dtype dtype = Dtype::f32;
  Dtype b_dtype = Dtype::count,
        d_dtype = Dtype::count;  // where they are others: int8 gives int32, 8-bit floats a wider one
  const void *a_scale = nullptr, *b_scale = nullptr;  // float32 numbers on the device, for 8-bit floats
  bool fast_sums = false;                             // 8-bit floats: summed with fewer digits
  bool tf32 = false;                                  // float32: by TF32 also where the setting is not on
  int64_t m = 0, n = 0, k = 0, batch = 1;
  Factor a, b, c;  // c is D itself when nothing is said about it
  void* d = nullptr;
  int64_t ldd = 0, d_step = 0;
  const void* bias = nullptr;  // m elements, added to every column; not for float64 and complex dtypes
  Scalar alpha = 1, beta = 0;
  Dtype type_of_b() const { return b_dtype == Dtype::count ? dtype : b_dtype; }
  Dtype type_of_d() const { return d_dtype == Dtype::count ? dtype : d_dtype; }
};

bool multiplies(Dtype dtype);  // whether the library has products of it
bool has_bias_epilogue(Dtype dtype);
// False when the library has no algorithm for it; nothing was done then.
bool multiply(const Place& place, const MatrixProduct& p);
void check_product(bool done, const char* who, const MatrixProduct& p);  // raises that there is no algorithm

}  // namespace cresset::cuda
