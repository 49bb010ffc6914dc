// D = epilogue(alpha op(A) op(B) + beta C) by plain loops, for the emulated cuBLASLt.
#pragma once
#include <complex>
#include <cstdint>

#include "number_types.h"

namespace emulator {

struct Layout {  // columns lie one after another
  uint32_t type = 0;
  int32_t order = 0;
  uint64_t rows = 0, columns = 0;
  int64_t leading = 0;
  int32_t batches = 1;
  int64_t stride = 0;  // elements from one batch to the next
  // From the first element to behind the last one, in elements.
  uint64_t extent() const {
    return (columns - 1) * uint64_t(leading) + rows + uint64_t(batches - 1) * uint64_t(stride < 0 ? -stride : stride);
  }
};

enum Epilogue : uint32_t { kRelu = 2, kBias = 4, kGelu = 32, kBiasGradientA = 256, kBiasGradientB = 512 };

struct Product {
  int compute = 0, scale = 0;
  int32_t transpose_a = 0, transpose_b = 0;  // 0 as it is, 1 transposed, 2 transposed and conjugated
  uint32_t epilogue = 1;
  void* bias = nullptr;
  int64_t bias_stride = 0;
  const float *a_scale = nullptr, *b_scale = nullptr;  // on the device
  Layout a, b, c, d;
  const void *a_data = nullptr, *b_data = nullptr, *c_data = nullptr;
  void* d_data = nullptr;
  std::complex<double> alpha = 1, beta = 0;
  uint64_t inner() const { return transpose_a ? a.rows : a.columns; }
};
void multiply(const Product& product);

}  // namespace emulator
