// What normalizations share: those of rows (normalization_rows.cpp) and of channels (normalization.cpp).
#pragma once
#include "cuda/backend.h"
#include "cuda/reduction.h"
#include "dispatch/call.h"
#include "ops/computed.h"

namespace cresset::cuda {

inline void* address_of(const Tensor& t) { return t.defined() ? t.bytes() : nullptr; }
inline Tensor scratch(int64_t count, Dtype dtype, Device device) {
  const int64_t sizes[] = {count};
  return empty(sizes, dtype, device);
}

// Weight and bias in one dtype; either may be missing.
struct Parameters {
  Tensor weight, bias;
  Dtype dtype;
  Parameters(const Call& c, int weight_at, int bias_at, Dtype otherwise) : dtype(otherwise) {
    if (c.has(weight_at)) weight = c.tensor(weight_at);
    if (bias_at >= 0 && c.has(bias_at)) bias = c.tensor(bias_at);
    if (weight.defined() && bias.defined())
      dtype = promote(weight.dtype(), bias.dtype());
    else if (weight.defined() || bias.defined())
      dtype = (weight.defined() ? weight : bias).dtype();
    if (weight.defined()) weight = contiguous(convert(weight, dtype));
    if (bias.defined()) bias = contiguous(convert(bias, dtype));
  }
};

// Two vectors of one dtype.
struct Twins {
  Tensor memory;
  char *first, *second;
  Twins(int64_t count, Dtype dtype, Device device)
      : memory(scratch(2 * count, dtype, device)), first(memory.bytes()), second(first + count * size_of(dtype)) {}
};

// The gradients of weight and bias, or the statistics, of no elements.
inline void fill_parameters(const Call& c) {
  fill(c.out(1), Scalar(0));
  fill(c.out(2), Scalar(0));
}

}  // namespace cresset::cuda
