// The step of an optimizer over many parameters at once: one pass over all elements of all of them.
#pragma once
#include <vector>

#include "dispatch/update.h"
#include "tensor/tensor.h"

namespace cresset {

// One parameter with its gradient, what is kept for it, and its singles, in the order of the variant.
struct UpdateTarget {
  Tensor tensors[kMaxUpdateTensors];
  Tensor singles[kMaxUpdateSingles];
  // Set by prepare_update.
  Tensor packed[kMaxUpdateTensors];  // a contiguous copy, where the tensor is not laid out like the parameter
  Dtype dtype[kMaxUpdateTensors];    // of the real numbers that are stored
  bool in_double = false, converts = false;
  bool singles_on_device = false;  // otherwise they are on the CPU, whatever device the parameter is on
  int64_t count = 0, begin = 0;    // real numbers, and how many come before
};

// The parameters of one group.
struct UpdateGroup {
  const UpdateVariant* variant = nullptr;
  double numbers[kMaxUpdateNumbers];
  std::vector<UpdateTarget> targets;
};

double read_single(const Tensor& t);                            // one number on the CPU
const UpdateVariant* find_update(const char* name, int flags);  // null: there is none
// Checks all that can go wrong and makes the copies that are needed; writes nothing.
void prepare_update(const char* who, UpdateGroup& group);
void run_update(UpdateGroup& group);
// After a step: what was copied is written back, the versions go up, and the singles on the CPU move on.
void finish_update(UpdateGroup& group);

// The step of all groups, whose parameters are on devices of one kind: what a Backend runs. `scale` and `found` are
// undefined, or one float each on the device: the gradients are divided by `scale` first, and nothing happens when
// `found` is not zero. The CPU has neither.
struct UpdateLaunch {
  const char* who;
  std::vector<UpdateGroup>& groups;
  const Tensor &scale, &found;
};

}  // namespace cresset
