// Reductions on the device, for the operators and for normalization.
#pragma once
#include "cuda/launch.h"

namespace cresset::cuda {

// The numbers are those of cresset/cuda/kernels/reduction.cuh.
enum class Operation : int {
  sum,
  nansum,
  mean,
  product,
  any,
  all,
  count,
  largest,
  smallest,
  arg_largest,
  arg_smallest,
  largest_place,
  smallest_place,
  norm_1,
  norm_2,
  norm_largest,
  norm_smallest,
  norm_power,
  log_sum_exp,
  variance,
  variance_mean,
  moments,        // the mean and the mean square distance from it, both double
  gradient_sums,  // of a gradient, and of it times the distance of `other` from a constant of each result, both double
  extremes,       // the smallest and the largest
  dot,            // the sum of the products with `other`
};

struct Reduction {
  Operation operation;
  Dtype computed, result;  // gradient_sums: the dtype of the constants
  void* first;             // contiguous
  void* second = nullptr;
  double parameter = 0;         // the correction of a variance, the order of a norm
  double root = 0;              // a variance: whether its root is wanted; a norm: 1 / order
  const void* other = nullptr;  // a tensor that lies as the input does
  const void* constants = nullptr;
  int64_t constant_period = 1;  // results that share a constant
};

// Over the dims whose bit is set.
void reduce(const Tensor& t, uint64_t reduced, const Reduction& r);

// What sums of a dtype are computed in; Dtype::count where there is no kernel.
Dtype computed_in(Dtype d);
// Whether kernels can read elements of the dtype.
bool has_elements(Dtype d);
inline bool has_kernel(Dtype d) { return is_floating(d) && has_elements(d); }  // of rows: losses, normalizations

}  // namespace cresset::cuda
