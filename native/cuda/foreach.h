// One operation on every tensor of a list, in one launch.
#pragma once
#include <span>

#include "dispatch/call.h"

namespace cresset::cuda {

// An input of a pointwise operator for each target: tensors, numbers, or one tensor of one element for all.
struct ForeachInput {
  enum Kind { tensors, numbers, shared } kind;
  std::vector<Tensor> list;    // as many as targets; of `shared` one
  std::vector<double> values;  // as many as targets
};

// Whether launch_foreach can do it: real floating dtypes, all tensors of one dtype, device and dense layout.
bool can_foreach(const Operator& op, const std::vector<ForeachInput>& inputs);
// The formula of a pointwise operator; `attributes` are its scalar attributes, each with a number for every target.
// Writes to `results`, which may be the tensors of the first input.
void launch_foreach(const Operator& op, const std::vector<ForeachInput>& inputs,
                    const std::vector<std::vector<double>>& attributes, const std::vector<Tensor>& results);

// Copies each of `from` into its tensor of `to`, converted between real floating dtypes; without `from` they become
// zero. One device, the same layouts; all of `to` have one dtype, and all of `from`.
void launch_copies(const std::vector<Tensor>& to, const std::vector<Tensor>& from);

// The norms of all tensors, of one dtype and device, as one tensor; `order` is 1, 2 or 0 for the largest magnitude.
Tensor launch_norms(const std::vector<Tensor>& tensors, int order);
// Multiplies the tensors, of one dtype and device, by *factor, and sets *found to one where an element is not finite.
void launch_unscale(const std::vector<Tensor>& tensors, const Tensor& factor, const Tensor& found);
void launch_update_scale(const Tensor& scale, const Tensor& tracker, const Tensor& found, double growth, double backoff,
                         int interval);

}  // namespace cresset::cuda
