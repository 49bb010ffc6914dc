// Adam whose two running means are kept in 8 bits.
//
// Note [Means in 8 bits]
// A block of 256 elements has the largest magnitude of its mean in single precision, and for each element a byte: which
// of 256 values between -1 and 1 (0 and 1 for the mean of squares) is nearest to the element's share of that. The
// values lie densely near zero, seven powers of ten deep, so that small elements beside a large one keep some digits. A
// step reads a block, computes in single precision, changes the parameter by the new means as they are, and then rounds
// them. A mean of squares that is not zero is not rounded to zero: the step would be divided by next to nothing.
#pragma once
#include "tensor/tensor.h"

namespace cresset {

inline constexpr int64_t kEightBitBlock = 256;

struct EightBitAdam {
  Tensor param, grad;                    // contiguous
  Tensor first, second;                  // bytes
  Tensor first_largest, second_largest;  // floats, one a block
  Tensor first_values, second_values;    // 256 floats, ascending
  double lr, beta1, beta2, eps, weight_decay;
  int64_t step;    // from 1 on
  bool decoupled;  // weight decay shrinks the parameter, instead of being added to the gradient
};

// What a step computes with, in single precision; the CUDA kernel has the same struct.
struct EightBitNumbers {
  float beta1, beta2, eps, step_size, root, shrink, added;
};
EightBitNumbers numbers_of(const EightBitAdam& step);

void adam_in_8_bits(const EightBitAdam& step);  // of a parameter on the CPU

}  // namespace cresset
