// All tensors of a call lie on one device. A single number on the CPU, and an index there, come along; anything else is
// an error that names both.
#pragma once
#include "dispatch/operator.h"

namespace cresset {

bool lies_on(const Call& c, Device device);  // all tensors do

// While it lives, a call on a device has copies there of the arguments that came along.
class Placement {
 public:
  Placement(Call& c, Device device);
  ~Placement();
  Placement(const Placement&) = delete;

 private:
  Call& call_;
  Value originals_[kMaxArguments];
  SmallVector<Tensor, 2> copies_[kMaxArguments];
  void place(int i, Device device);
};

}  // namespace cresset
