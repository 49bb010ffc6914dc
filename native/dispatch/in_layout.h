// Operators that know the private layout work on the memory as it lies: see Note [Private layout] in
// tensor/private_layout.h.
#pragma once
#include "dispatch/operator.h"

namespace cresset {

// Replaces private tensors by physical ones (with the strides of channels_last) where all can be worked on together. If
// not, everything is made plain and the answer is false. Undefined tensors are passed over. With `together`, contiguous
// tensors of the same sizes come along as copies: element by element, two orders are slower than one copy.
bool lay_out(std::span<Tensor> operands, bool together);
// What an operator made of physical tensors, as its user may see it: contiguous, perhaps private.
void hide_layout(Tensor& result);

// While it lives, a call with private arguments has physical ones instead, if its operator can do with them.
class InLayout {
 public:
  explicit InLayout(Call& c);
  ~InLayout() { restore(); }
  InLayout(const InLayout&) = delete;
  void finish();  // after the kernel has run

 private:
  Call& call_;
  int count_ = 0;  // arguments; 0 when nothing was replaced
  Tensor stand_ins_[kMaxArguments];
  TensorImpl* originals_[kMaxArguments] = {};
  void restore();
};

}  // namespace cresset
