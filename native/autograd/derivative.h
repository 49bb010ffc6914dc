// What autograd knows of a derivative beyond what an operator holds: for whose gradients it reads an argument.
#pragma once
#include "dispatch/operator.h"

namespace cresset {

// Every derivative is one of these.
class ReadingDerivative : public Derivative {
 public:
  // For each of `saves`, of an argument: bit i, it is read for the gradient of argument i. When none of these needs
  // one, its information is kept instead of the tensor. Zero: it is always kept.
  std::vector<uint32_t> only_for;
};

inline uint32_t only_for(const Operator& op, int64_t saved) {
  return static_cast<const ReadingDerivative&>(*op.derivative).only_for[static_cast<size_t>(saved)];
}

}  // namespace cresset
